"""Which entries come on this page of a list? Every page costs the same, however many entries there are.

A list is read in the order of an index, from the place where the last page ended. With a filter, it is several such
lists, one after the other: those whose name begins so, then those whose display name does, their mail address, their
surname; no entry comes twice. What no index answers is looked for in at most ``SCANNED`` rows a page: such a page may
hold less than it could, or nothing, and still say where to go on.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.directory.entries import attributes, memberships, patterns
from muniment.directory.entries.patterns import NamePattern
from muniment.directory.entries.table import Entry, Kind, rows, select_entries, to_entry

SCANNED = 5000
_SEARCHED = ("displayName", "mail", "sn")


class Which(msgspec.Struct, frozen=True):
    """Entries of one kind: of all partitions, of one, or directly in one unit.

    ``pattern`` is what a name, display name, mail address or surname begins with, in any case; ``*`` stands for any
    text, also at the beginning.
    """

    kind: Kind
    partition: Entry | None = None
    unit: Entry | None = None
    disabled: bool | None = None
    pattern: str = ""


class ListPlace(NamedTuple):
    """Where a page ended: in which of the lists, at which key, at which entry."""

    part: int
    key: str
    id: int


class EntryPage(NamedTuple):
    """``next`` is None at the end."""

    entries: list[Entry]
    next: ListPlace | None


class _Shape(NamedTuple):
    """What a statement depends on. ``pattern``: an index answers it by what it ``begins`` with, alone or with a further
    condition (``also like``), or not at all (``like``). ``part`` is that of ``ListPlace``.
    """

    part: int
    pattern: Literal["", "begins", "also like", "like"]
    inside: Literal["", "partition_id", "parent_id"]
    disabled: bool | None
    goes_on: bool


class _Statements(NamedTuple):
    """``end`` reads where the bound is, if ``rows`` needs one."""

    rows: PreparedStatement
    end: PreparedStatement | None


def page(cx: Connection, which: Which, after: ListPlace | None, limit: int) -> EntryPage:
    """``limit`` entries at most, at least one."""
    place = after or ListPlace(0, "", 0)
    pattern = patterns.read(which.pattern)
    kind, parts = _kind_of(pattern)
    container = which.unit or which.partition
    values = {
        "kind": which.kind,
        **({} if pattern is None else pattern.parameters(attributes.FOLDED)),
        **({} if container is None else {"container": container.id}),
    }
    inside: Literal["", "partition_id", "parent_id"] = "parent_id" if which.unit else "partition_id"
    found: list[Entry] = []
    for part in range(place.part, parts):
        start = place if part == place.part else ListPlace(part, "", 0)
        shape = _Shape(part, kind, inside if container else "", which.disabled, goes_on=False)
        portion = _read(cx, shape, start, limit - len(found), values)
        found += portion.entries
        if portion.next is not None:
            return EntryPage(found, portion.next)
        if len(found) == limit and part + 1 < parts:
            return EntryPage(found, ListPlace(part + 1, "", 0))
    return EntryPage(found, None)


def members_of(cx: Connection, group: Entry, kinds: Sequence[Kind], after: ListPlace | None, limit: int) -> EntryPage:
    """Direct members, in no order that means something."""
    return _by_id(cx, memberships.direct_members(group.id), kinds, after, limit)


def containers_of(cx: Connection, entry: Entry, kind: Kind, after: ListPlace | None, limit: int) -> EntryPage:
    """The groups or roles of which an entry is a direct member, in no order that means something."""
    return _by_id(cx, memberships.direct_containers(entry.id), [kind], after, limit)


def _kind_of(pattern: NamePattern | None) -> tuple[Literal["", "begins", "also like", "like"], int]:
    """And how many lists it takes."""
    if pattern is None:
        return "", 1
    if not pattern.begins:
        return "like", 1
    return "also like" if pattern.pieces else "begins", 1 + len(_SEARCHED)


@cache
def _statements(shape: _Shape) -> _Statements:
    answered, left = _where(shape)
    matches = patterns.in_range if shape.pattern == "begins" else patterns.is_like
    if shape.part:
        return _by_attribute(shape, matches, [*answered, *left])
    key, number = rows.c.name_key, rows.c.id
    if shape.pattern == "like":
        left = [*left, sa.or_(matches(key), attributes.has_value(number, _SEARCHED, matches))]
    elif shape.pattern:
        answered = [*answered, patterns.in_range(key)]
        left = [*left, matches(key)] if shape.pattern == "also like" else left
    if left:
        candidates = sa.select(key.label("key"), number.label("id")).where(*answered)
        return _bounded(shape, candidates, lambda _: left)
    query = select_entries(key, number).where(*answered, *_passed(shape, key, number))
    return _Statements(PreparedStatement(query.order_by(key, number).limit(_MOST)), None)


def _by_attribute(
    shape: _Shape,
    matches: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]],
    of_entry: Sequence[sa.ColumnElement[bool]],
) -> _Statements:
    """Without the entries that an earlier list has, or this one at an earlier value."""
    *earlier, name = _SEARCHED[: shape.part]
    values = attributes.folded_values(name)
    key = values.selected_columns["key"]

    def residual(found: sa.FromClause) -> list[sa.ColumnElement[bool]]:
        return [
            *of_entry,
            *([matches(found.c.key)] if shape.pattern == "also like" else []),
            sa.not_(matches(rows.c.name_key)),
            sa.not_(attributes.has_value(found.c.id, earlier, matches)),
            sa.not_(attributes.has_value(found.c.id, [name], matches, before=found)),
        ]

    return _bounded(shape, values.where(patterns.in_range(key, cut=True)), residual)


def _where(shape: _Shape) -> tuple[list[sa.ColumnElement[bool]], list[sa.ColumnElement[bool]]]:
    """What an index of entries answers, in the order of names, and what it does not."""
    kind = rows.c.kind == sa.bindparam("kind", type_=sa.String)
    inside = [rows.c[shape.inside] == sa.bindparam("container", type_=sa.BigInteger)] if shape.inside else []
    if shape.disabled is None:
        return [kind, *inside], []
    if shape.disabled:
        return [kind, rows.c.disabled], inside
    return [kind, *inside], [sa.not_(rows.c.disabled)]


def _bounded(
    shape: _Shape,
    candidates: sa.Select[Any],
    residual: Callable[[sa.FromClause], Sequence[sa.ColumnElement[bool]]],
) -> _Statements:
    """``residual`` makes what the index of the candidates, rows of ``key`` and ``id``, does not answer."""
    key, number = candidates.selected_columns["key"], candidates.selected_columns["id"]
    candidates = candidates.where(*_passed(shape, key, number)).order_by(key, number)
    found = candidates.limit(sa.bindparam("scanned", type_=sa.Integer)).subquery("found")
    query = select_entries(found.c.key, found.c.id).where(found.c.id == rows.c.id, *residual(found))
    end = candidates.limit(1).offset(sa.bindparam("passed_over", type_=sa.Integer))
    query = query.order_by(found.c.key, found.c.id).limit(_MOST)
    return _Statements(PreparedStatement(query), PreparedStatement(end))


def _passed(shape: _Shape, key: sa.ColumnElement[str], number: sa.ColumnElement[int]) -> list[sa.ColumnElement[bool]]:
    place = sa.bindparam("key", type_=sa.String), sa.bindparam("id", type_=sa.BigInteger)
    return [sa.tuple_(key, number) > sa.tuple_(*place)] if shape.goes_on else []


def _read(cx: Connection, shape: _Shape, after: ListPlace, limit: int, values: dict[str, Any]) -> EntryPage:
    """A bound is reached in a few steps, because most often the first rows suffice."""
    found: list[Entry] = []
    left, step = SCANNED, limit + 1
    while True:
        statements = _statements(shape._replace(goes_on=bool(after.id)))
        place = {"key": after.key, "id": after.id} if after.id else {}
        most, scanned = limit - len(found), min(step, left)
        bounds = {"most": most + 1} | ({"scanned": scanned} if statements.end else {})
        several = statements.rows.all(cx, **values, **place, **bounds)
        found += [to_entry(row) for row in several[:most]]
        if len(several) > most:
            return EntryPage(found, ListPlace(shape.part, *several[most - 1][-2:]) if most else after)
        end = statements.end.first(cx, **values, **place, passed_over=scanned - 1) if statements.end else None
        if end is None:
            return EntryPage(found, None)
        after, left, step = ListPlace(shape.part, *end[:2]), left - scanned, step * 4
        if not left:
            return EntryPage(found, after)


def _by_id(
    cx: Connection, ids: sa.Select[tuple[int]], kinds: Sequence[Kind], after: ListPlace | None, limit: int
) -> EntryPage:
    number = ids.selected_columns["id"]
    candidates = ids.where(number > (after.id if after else 0)).order_by(number)
    found = candidates.limit(SCANNED).subquery("found")
    query = select_entries().where(found.c.id == rows.c.id, rows.c.kind.in_(kinds))
    several = [to_entry(row) for row in cx.execute(query.order_by(found.c.id).limit(limit + 1))]
    if len(several) > limit:
        return EntryPage(several[:limit], ListPlace(0, "", several[limit - 1].id))
    end = cx.execute(candidates.offset(SCANNED - 1).limit(1)).first()
    return EntryPage(several, None if end is None else ListPlace(0, "", end.id))


_MOST = sa.bindparam("most", type_=sa.Integer)
