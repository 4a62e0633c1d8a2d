"""A walk: the hits of a search that are still to be shown.

The cursor after the first page holds the counters of its hits; those of a large page are kept in the database. When it
is followed, the counters still to be shown are kept, up to a limit, in their order by then.

Source: docs/aql.md, "Paging"; docs/decisions/0045.
"""

import secrets
import struct
from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    PreparedStatement,
    repository_column,
    repository_tables,
    required,
    required_columns,
)
from muniment.ground.clock import SECOND, Instant
from muniment.repository import keys
from muniment.repository.refusals import UnknownLink
from muniment.repository.search.answering.inquiry import SearchQuestion

FORMAT = 1

SHOWN_AT_MOST = 200
"""A cursor holds so many counters; those of a larger page are kept as a walk."""

WHOLE = 1_000_000

_walks = sa.Table(
    "walks",
    repository_tables,
    sa.Column("name", sa.LargeBinary(16), primary_key=True),
    repository_column(),
    required("caller", sa.String(320)),
    required("edition", sa.LargeBinary(8)),
    required("counters", sa.LargeBinary),
    *required_columns(sa.Integer, "width", "hits"),
    required("cut", sa.Boolean),
    *required_columns(sa.Integer, "format", "size"),
    required("kept", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
    sa.Index("ix_walks_caller", "caller", "kept"),
)

_PURPOSE = "walk"
_WIDTHS = {2: "H", 4: "I", 8: "Q"}
_ROW_BYTES = 200


class Holder(NamedTuple):
    """A caller, by key, of a repository."""

    repository_id: int
    caller: str


class Scroll(msgspec.Struct, frozen=True):
    """A kept walk: the counters of its hits in order, begun with its first page.

    In a walk of ``search.copies``, a last bit says that the hit is a copy. ``edition`` tells it from an earlier one of
    the same name; ``cut`` says that the search has more hits than a walk may have.
    """

    name: bytes
    began: Instant
    counters: Sequence[int]
    cut: bool = False
    edition: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(8))

    def part(self, offset: int, limit: int) -> "Slice":
        return Slice(self.counters[offset : offset + limit], self.edition, len(self.counters), self.cut)


class Slice(NamedTuple):
    """Some hits of a walk, which has ``in_all``."""

    counters: Sequence[int]
    edition: bytes
    in_all: int
    cut: bool


class QuotaShare(NamedTuple):
    """What counts against a caller's quota."""

    kept: Instant
    size: int
    name: bytes


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk goes on.

    After the first page, ``edition`` is empty, and ``shown`` holds the page's packed counters, or they are kept under
    ``shown_name``. Later, ``offset`` is where the next page begins.
    """

    name: bytes
    began: Instant
    offset: int = 0
    edition: bytes = b""
    shown: bytes = b""

    @property
    def shown_name(self) -> bytes:
        return bytes(byte ^ 0xFF for byte in self.name)

    def after(self, part: Slice, size: int) -> Self | None:
        """Return None if the walk ends with the slice."""
        offset = self.offset + size
        return type(self)(self.name, self.began, offset, part.edition) if offset < part.in_all else None


class Binding(msgspec.Struct, frozen=True):
    """A cursor is bound to this; ``selection`` is the parameters as the caller wrote them, or a kept search's link."""

    repository_id: int
    caller: str
    selection: str
    page: int
    items_per_page: int

    def texts(self) -> tuple[str, ...]:
        numbers = (FORMAT, self.repository_id, self.page, self.items_per_page)
        return (_PURPOSE, *map(str, numbers), self.caller, self.selection)


def begin(counters: Sequence[int], now: Instant) -> tuple[Cursor, Scroll | None]:
    """Return the hits of a large page as a walk that must be kept, too."""
    cursor = Cursor(secrets.token_bytes(16), now)
    if len(counters) > SHOWN_AT_MOST:
        return cursor, Scroll(cursor.shown_name, now, counters)
    return msgspec.structs.replace(cursor, shown=_pack_shown(counters)), None


def write(cx: Connection, cursor: Cursor, binding: Binding) -> str:
    return keys.seal(cx).seal(msgspec.msgpack.encode(cursor), *binding.texts())


def read(cx: Connection, text: str, binding: Binding, seconds: int, now: Instant) -> Cursor:
    """Raises UnknownLink if it does not lead to this page, or after so many ``seconds`` from the first page on."""
    try:
        cursor = msgspec.msgpack.decode(keys.seal(cx).open(text, *binding.texts()), type=Cursor)
    except (keys.BadSeal, msgspec.DecodeError) as error:
        raise unknown_link() from error
    if cursor.began + seconds * SECOND <= now:
        raise unknown_link()
    return cursor


def counters_shown(cx: Connection, cursor: Cursor, holder: Holder, now: Instant) -> Sequence[int]:
    """Raises UnknownLink if they are no longer kept."""
    if cursor.shown:
        return _unpack_shown(cursor.shown)
    part = fetch(cx, cursor.shown_name, holder, now, (0, WHOLE))
    if part is None:
        raise unknown_link()
    return part.counters


def keep_scroll(cx: Connection, holder: Holder, walk: Scroll, seconds: int, now: Instant) -> bool:
    """Return False if a walk of its name is kept already."""
    width, packed_counters = _pack(walk.counters)
    row = {
        "name": walk.name,
        **holder._asdict(),
        "edition": walk.edition,
        "counters": packed_counters,
        "width": width,
        "hits": len(walk.counters),
        "cut": walk.cut,
        "format": FORMAT,
        "size": len(packed_counters) + _ROW_BYTES,
        "kept": now,
        "expires": walk.began + seconds * SECOND,
    }
    return cx.execute(_KEEP, row).rowcount > 0


def fetch(cx: Connection, name: bytes, holder: Holder, now: Instant, part: tuple[int, int]) -> Slice | None:
    """Return an offset-and-limit ``part``, or None if the walk is not kept or has expired."""
    offset, limit = part
    whose = {"repository": holder.repository_id, "caller": holder.caller}
    row = _SLICE.first(cx, name=name, **whose, now=now, format=FORMAT, offset=offset, limit=limit)
    if row is None:
        return None
    packed_counters, width, edition, hits, cut = row
    return Slice(_unpack(bytes(packed_counters), int(width)), bytes(edition), int(hits), bool(cut))


def shares(cx: Connection, caller: str) -> list[QuotaShare]:
    rows = cx.execute(sa.select(_walks.c.kept, _walks.c.size, _walks.c.name).where(_walks.c.caller == caller))
    return [QuotaShare(row[0], row[1], bytes(row[2])) for row in rows]


def drop(cx: Connection, names: Collection[bytes]) -> None:
    cx.execute(_walks.delete().where(_walks.c.name.in_(names)))


def purge(cx: Connection, now: Instant, limit: int) -> int:
    expired_names = sa.select(_walks.c.name).where(_walks.c.expires <= now).limit(limit)
    return cx.execute(_walks.delete().where(_walks.c.name.in_(expired_names))).rowcount


def make(cursor: Cursor, standing: Sequence[int], after: Sequence[int], question: SearchQuestion, most: int) -> Scroll:
    """Leave out the hits ``after`` that the page showed; the ``question`` asks for the page after the first one.

    ``standing`` are the first ``most + 1`` hits at present; if more than ``most``, the walk is cut, at a whole page if
    it is longer than one.

    If ``first_page`` is not 1, hits before it are left out, too: their number is the median of estimates, of how far
    each hit of the page that still stands is now from its place there, so that single hits that have moved do not
    matter. Without any, each page before counts as full.
    """
    passed_count, cut = count_passed(standing, after, question), len(standing) > most
    items_per_page = question.items_per_page
    left_out = frozenset(after)
    counters = [counter for counter in standing[passed_count:most] if counter not in left_out]
    if cut and len(counters) > items_per_page:
        del counters[len(counters) // items_per_page * items_per_page :]
    return Scroll(cursor.name, cursor.began, counters, cut)


def count_passed(standing: Sequence[int], after: Sequence[int], question: SearchQuestion) -> int:
    """``make`` explains the count and the arguments."""
    passed_pages = question.page - 2
    if not passed_pages:
        return 0
    places = {counter: at for at, counter in enumerate(standing)}
    shifts = sorted(places[counter] - at for at, counter in enumerate(after) if counter in places)
    return max(0, shifts[len(shifts) // 2]) if shifts else passed_pages * question.items_per_page


def unknown_link() -> UnknownLink:
    return UnknownLink(
        "This walk through a search is over, or the cursor belongs to another one: send the search again."
    )


def _pack(counters: Sequence[int]) -> tuple[int, bytes]:
    """Give all numbers the same number of bytes, so that slices correspond."""
    width = next(width for width in _WIDTHS if max(counters, default=0) < 1 << 8 * width)
    return width, struct.pack(f"<{len(counters)}{_WIDTHS[width]}", *counters)


def _unpack(packed_counters: bytes, width: int) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed_counters) // width}{_WIDTHS[width]}", packed_counters)


def _pack_shown(counters: Sequence[int]) -> bytes:
    least = min(counters, default=0)
    width, packed_counters = _pack([counter - least for counter in counters])
    return bytes([width]) + least.to_bytes(8, "little") + packed_counters


def _unpack_shown(packed_counters: bytes) -> list[int]:
    least = int.from_bytes(packed_counters[1:9], "little")
    return [least + counter for counter in _unpack(packed_counters[9:], packed_counters[0])]


_KEEP = sa.text(
    "INSERT INTO walks (name, repository_id, caller, edition, counters, width, hits, cut, format, size, kept, expires) "
    "VALUES (:name, :repository_id, :caller, :edition, :counters, :width, :hits, :cut, :format, :size, :kept, :expires)"
    " ON CONFLICT DO NOTHING"
)

_offset = sa.bindparam("offset", type_=sa.Integer) * _walks.c.width + 1
_SLICE = PreparedStatement(
    sa.select(
        sa.func.substr(_walks.c.counters, _offset, sa.bindparam("limit", type_=sa.Integer) * _walks.c.width),
        _walks.c.width,
        _walks.c.edition,
        _walks.c.hits,
        _walks.c.cut,
    ).where(
        _walks.c.name == sa.bindparam("name", type_=sa.LargeBinary),
        _walks.c.repository_id == sa.bindparam("repository"),
        _walks.c.caller == sa.bindparam("caller"),
        _walks.c.format == sa.bindparam("format"),
        _walks.c.expires > sa.bindparam("now"),
    )
)
