"""A walk: the hits of a search that are still to be shown.

The cursor after this page holds the counters of the page's hits. If the page is large, these counters are kept in the
database instead. When this cursor is followed, the counters of the hits still to be shown are kept, up to a limit, in
the order that they have then. Source: docs/aql.md, "Paging"; docs/decisions/0045.
"""

import secrets
import struct
from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, repository_tables, required
from muniment.ground.clock import SECOND, Instant
from muniment.repository import keys
from muniment.repository.refusals import UnknownLink
from muniment.repository.search.answering.inquiry import SearchQuestion

FORMAT = 1
"""The format of the walks and cursors that this release writes and reads."""

SHOWN_AT_MOST = 200
"""The most counters that a cursor holds. The counters of a larger page are kept as a walk of their own."""

WHOLE = 1_000_000
"""A limit larger than any walk, to fetch a whole walk."""

_walks = sa.Table(
    "walks",
    repository_tables,
    sa.Column("name", sa.LargeBinary(16), primary_key=True),
    required("repository_id", sa.ForeignKey("repositories.id")),
    required("caller", sa.String(320)),
    required("edition", sa.LargeBinary(8)),
    required("counters", sa.LargeBinary),
    required("width", sa.Integer),
    required("hits", sa.Integer),
    required("cut", sa.Boolean),
    required("format", sa.Integer),
    required("size", sa.Integer),
    required("kept", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
    sa.Index("ix_walks_caller", "caller", "kept"),
)

_PURPOSE = "walk"
_WIDTHS = {2: "H", 4: "I", 8: "Q"}
_ROW_BYTES = 200
"""How many bytes the quota counts for a row in addition to its counters."""


class Holder(NamedTuple):
    """For whom a search or a walk is kept: a caller, by key, of a repository."""

    repository_id: int
    caller: str


class Scroll(msgspec.Struct, frozen=True):
    """A walk as it is kept: the counters of its hits in their order. ``began`` is when its first page was made.

    In a walk that ``search.copies`` makes, each counter is followed by a last bit, which says that the hit is a copy.
    ``edition`` tells a walk from an earlier walk of the same name that was dropped. ``cut`` says that the search has
    more hits than a walk may have.
    """

    name: bytes
    began: Instant
    counters: Sequence[int]
    cut: bool = False
    edition: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(8))

    def part(self, offset: int, limit: int) -> "Slice":
        return Slice(self.counters[offset : offset + limit], self.edition, len(self.counters), self.cut)


class Slice(NamedTuple):
    """Some hits of a walk. ``in_all`` is how many hits the walk has; ``edition`` and ``cut`` are as in ``Scroll``."""

    counters: Sequence[int]
    edition: bytes
    in_all: int
    cut: bool


class QuotaShare(NamedTuple):
    """A kept search or walk that counts against its caller's quota."""

    kept: Instant
    size: int
    name: bytes


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk goes on. ``began`` is when the walk's first page was made.

    In the cursor after the first page, ``edition`` is empty, and ``shown`` holds the packed counters of that page's
    hits. If ``shown`` is empty, too, these counters are kept under ``shown_name``. In the cursor after a later page,
    ``offset`` says where in the walk the next page begins.
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
        """Return the cursor to the page after this slice; None if the walk ends with it."""
        offset = self.offset + size
        return type(self)(self.name, self.began, offset, part.edition) if offset < part.in_all else None


class Binding(msgspec.Struct, frozen=True):
    """What a cursor is bound to: the caller, the search, and the page to which it leads, with the page size.

    ``selection`` stands for the search: its parameters as the caller wrote them, or the link of a kept search.
    """

    repository_id: int
    caller: str
    selection: str
    page: int
    items_per_page: int

    def texts(self) -> tuple[str, ...]:
        numbers = (FORMAT, self.repository_id, self.page, self.items_per_page)
        return (_PURPOSE, *map(str, numbers), self.caller, self.selection)


def begin(counters: Sequence[int], now: Instant) -> tuple[Cursor, Scroll | None]:
    """The hits of a large page do not fit into the cursor.

    They are also returned, as a walk that must be kept.
    """
    cursor = Cursor(secrets.token_bytes(16), now)
    if len(counters) > SHOWN_AT_MOST:
        return cursor, Scroll(cursor.shown_name, now, counters)
    return msgspec.structs.replace(cursor, shown=_pack_shown(counters)), None


def write(cx: Connection, cursor: Cursor, binding: Binding) -> str:
    return keys.seal(cx).seal(msgspec.msgpack.encode(cursor), *binding.texts())


def read(cx: Connection, text: str, binding: Binding, seconds: int, now: Instant) -> Cursor:
    """Raises UnknownLink if it does not lead to this page, or the walk has expired.

    A walk lasts so many ``seconds`` from its first page on.
    """
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
    """Keep a walk for so many ``seconds`` since it began; return False if a walk of its name is kept already."""
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
    """Return a ``part`` of a kept walk (an offset and a limit); None if the walk is not kept or has expired."""
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
    """``after`` are the hits that the page showed: they are left out.

    The ``question`` asks for the page after the first one. ``standing`` are the search's hits in their present order,
    or the first ``most + 1`` of them. If they are more than ``most``, the walk is cut. A walk that is cut and is longer
    than a page ends with a whole page. If ``first_page`` is not page 1, the hits before that page are left out, too.
    Their present number is estimated. Each hit of the page that is still in ``standing`` gives one estimate: its
    present place in the search minus its place on the page. The median of the estimates is used, so that single hits
    that have moved do not matter. Without any estimate, each page before counts as full.
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
    """All numbers take the same number of bytes, so that a slice of the numbers is a slice of the bytes."""
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
