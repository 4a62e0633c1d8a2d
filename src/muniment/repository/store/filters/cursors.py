"""Where in a list does the next page begin?

A cursor says where: sealed, and valid for one caller and one list.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.refusals import Malformed
from muniment.repository import keys

Place = tuple[str | int | float | None, ...]

_PURPOSE = "cursor"


class CursorBinding(msgspec.Struct, frozen=True):
    """What a cursor is valid for.

    ``caller`` is empty for a list that needs no sign-in; ``selection`` is the filter and the sort as written.
    """

    repository_id: int
    caller: str
    name: str
    selection: str = ""


class Part(msgspec.Struct, frozen=True):
    """A wanted page: its number from 1 on, its size in members."""

    number: int
    size: int
    cursor: str | None = None


class Stretch(msgspec.Struct, frozen=True):
    """Read at most ``limit`` members after a place, or else after ``offset`` members."""

    after: Place | None
    offset: int
    limit: int


class _Placed(Protocol):
    @property
    def place(self) -> Place | None: ...


Member = TypeVar("Member", bound=_Placed)


def every_page(read: Callable[[Stretch], Sequence[Member]], size: int) -> Iterator[Sequence[Member]]:
    """``read`` reads one page."""
    page = read(Stretch(None, 0, size))
    while page:
        yield page
        page = read(Stretch(page[-1].place, 0, size))


def stretch(cx: Connection, binding: CursorBinding, part: Part) -> Stretch:
    """Return the page and one member more.

    Raises Malformed if the cursor was not made for this list, this caller and this page.
    """
    if part.cursor is None:
        return Stretch(None, (part.number - 1) * part.size, part.size + 1)
    try:
        plain = keys.seal(cx).open(part.cursor, *_labels(binding, part.number))
    except keys.BadSeal as error:
        raise Malformed("The cursor does not belong to this page: follow 'next', or leave the cursor out.") from error
    return Stretch(tuple(msgspec.msgpack.decode(plain, type=list[Any])), 0, part.size + 1)


def next_cursor(cx: Connection, binding: CursorBinding, part: Part, places: Sequence[Place]) -> str | None:
    """``places`` has those of this page, and one more if a member follows."""
    if len(places) <= part.size:
        return None
    plain = msgspec.msgpack.encode(places[part.size - 1])
    return keys.seal(cx).seal(plain, *_labels(binding, part.number + 1))


def _labels(binding: CursorBinding, number: int) -> tuple[str, ...]:
    return (_PURPOSE, str(binding.repository_id), binding.caller, binding.name, binding.selection, str(number))
