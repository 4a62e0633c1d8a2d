"""Where in a list does the next page begin? Only we can read a cursor, and it is valid for one caller and one list.

It holds the last member of the page before. So the database goes on from there, however deep the page is, and members
that come or go meanwhile move no other member across the edge of the page.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository import keys
from muniment.repository.keys import BadSeal
from muniment.web.refusals import Malformed

Place = tuple[str | int, ...]
"""The values of one member by which its list is ordered."""

_PURPOSE = "cursor"


class Listing(msgspec.Struct, frozen=True):
    """One list as one caller sees it. A cursor is bound to it. ``caller`` is empty if nobody needs to sign in."""

    repository_id: int
    caller: str
    name: str


class Part(msgspec.Struct, frozen=True):
    """The requested part of a list: page ``number`` of ``size`` members, found by the cursor if there is one."""

    number: int
    size: int
    cursor: str | None = None


class Stretch(msgspec.Struct, frozen=True):
    """The part of a list to read from the database: ``limit`` members after a place or after ``offset`` members."""

    after: Place | None
    offset: int
    limit: int


def stretch(cx: Connection, listing: Listing, part: Part) -> Stretch:
    """Return the part to read from the database: the page and one member more. Raises Malformed for a wrong cursor."""
    if part.cursor is None:
        return Stretch(None, (part.number - 1) * part.size, part.size + 1)
    try:
        plain = keys.seal(cx).open(part.cursor, *_binding(listing, part.number))
    except BadSeal as error:
        raise Malformed("The cursor is none of this page: follow 'next', or leave the cursor out.") from error
    return Stretch(tuple(msgspec.msgpack.decode(plain, type=list[Any])), 0, part.size + 1)


def next_cursor(cx: Connection, listing: Listing, part: Part, places: Sequence[Place]) -> str | None:
    """Make the cursor of the next page from the places of the members read; None when nothing follows."""
    if len(places) <= part.size:
        return None
    plain = msgspec.msgpack.encode(places[part.size - 1])
    return keys.seal(cx).seal(plain, *_binding(listing, part.number + 1))


def _binding(listing: Listing, number: int) -> tuple[str, ...]:
    return (_PURPOSE, str(listing.repository_id), listing.caller, listing.name, str(number))
