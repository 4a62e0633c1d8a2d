"""Where in a list does the next page begin? A cursor says so to us alone, and is good for one caller and one list.

It holds the last member of the page before. So the database looks that up and goes on from there, however deep it is,
and a member that comes or goes meanwhile moves no other across the page's edge.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository import keys
from muniment.repository.keys import BadSeal
from muniment.web.refusals import Malformed

Place = tuple[str | int, ...]
"""What a list is ordered by, of one member."""

_PURPOSE = "cursor"


class Listing(msgspec.Struct, frozen=True):
    """One list as one caller sees it: what a cursor is bound to. ``caller`` is empty where nobody needs to sign in."""

    repository_id: int
    caller: str
    name: str


class Part(msgspec.Struct, frozen=True):
    """Which part of a list is wanted: page ``number`` of ``size`` members, found by the cursor where there is one."""

    number: int
    size: int
    cursor: str | None = None


class Stretch(msgspec.Struct, frozen=True):
    """What of a list the database is asked for: ``limit`` members after a place, or with none of that passed over."""

    after: Place | None
    offset: int
    limit: int


def stretch(cx: Connection, listing: Listing, part: Part) -> Stretch:
    """Say what to ask the database for: the page, and one member more. Raises Malformed for another list's cursor."""
    if part.cursor is None:
        return Stretch(None, (part.number - 1) * part.size, part.size + 1)
    try:
        plain = keys.seal(cx).open(part.cursor, *_bound(listing, part.number))
    except BadSeal as error:
        raise Malformed("The cursor is none of this page: follow 'next', or leave the cursor out.") from error
    return Stretch(tuple(msgspec.msgpack.decode(plain, type=list[Any])), 0, part.size + 1)


def next_cursor(cx: Connection, listing: Listing, part: Part, places: Sequence[Place]) -> str | None:
    """Make the cursor of the next page from what was found for ``stretch``; None when nothing follows."""
    if len(places) <= part.size:
        return None
    plain = msgspec.msgpack.encode(places[part.size - 1])
    return keys.seal(cx).seal(plain, *_bound(listing, part.number + 1))


def _bound(listing: Listing, number: int) -> tuple[str, ...]:
    return (_PURPOSE, str(listing.repository_id), listing.caller, listing.name, str(number))
