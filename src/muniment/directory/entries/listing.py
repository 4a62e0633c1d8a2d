"""Which entries come on this page of a list? Every page costs the same, however many entries there are.

A list is read in the order of an index, from the place where the last page ended. With a filter, it is several such
lists, one after the other: those whose name begins so, then those whose display name does, their mail address, their
surname; no entry comes twice. What no index answers is looked for in at most ``SCANNED`` rows a page: such a page may
hold less than it could, or nothing, and still say where to go on.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.directory.entries import attributes, entries, memberships, patterns
from muniment.directory.entries.patterns import NamePattern
from muniment.directory.entries.table import (
    ADMINISTRATORS,
    ENTRY_FIELDS,
    Entry,
    Kind,
    rows,
    select_entries,
    to_entry,
)
from muniment.directory.options import DirectoryNames
from muniment.ground.naming import fold_name

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
    """``limit`` entries at most; with 0, only say whether any follow."""
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
        portion = _read(cx, partial(_shaped, shape), start, limit - len(found), values)
        found += portion.entries
        if portion.next is not None:
            return EntryPage(found, portion.next)
        if len(found) == limit and part + 1 < parts:
            return EntryPage(found, ListPlace(part + 1, "", 0))
    return EntryPage(found, None)


def page_by_shown_names(
    cx: Connection, names: DirectoryNames, which: Which, after: ListPlace | None, limit: int
) -> EntryPage:
    """As ``page``, but the group of the administrators comes first if a filter meets its name on the wire, and not the
    neutral one, by which the index finds it.
    """
    group = _administrators_by_shown_name(cx, names, which)
    if group is None:
        return page(cx, which, after, limit)
    put_first = [group] if after is None else []
    found = page(cx, which, after, limit - len(put_first))
    return EntryPage(put_first + [each for each in found.entries if each.id != group.id], found.next)


def _administrators_by_shown_name(cx: Connection, names: DirectoryNames, which: Which) -> Entry | None:
    pattern = patterns.read(which.pattern)
    if which.kind != "group" or pattern is None or which.disabled or pattern.fits(ADMINISTRATORS):
        return None
    if not pattern.fits(fold_name(names.administrators_group)):
        return None
    group = entries.administrators(cx)
    is_inside = which.partition is None or which.partition.id == group.partition_id
    return group if is_inside and (which.unit is None or which.unit.id == group.parent_id) else None


def members_of(cx: Connection, group: Entry, kinds: Sequence[Kind], after: ListPlace | None, limit: int) -> EntryPage:
    """Direct members, in no order that means something."""
    return _by_id(cx, "members", group, kinds, after, limit)


def containers_of(cx: Connection, entry: Entry, kind: Kind, after: ListPlace | None, limit: int) -> EntryPage:
    """The groups or roles of which an entry is a direct member, in no order that means something."""
    return _by_id(cx, "containers", entry, [kind], after, limit)


def _kind_of(pattern: NamePattern | None) -> tuple[Literal["", "begins", "also like", "like"], int]:
    """And how many lists it takes."""
    if pattern is None:
        return "", 1
    if not pattern.begins:
        return "like", 1
    return "also like" if pattern.pieces else "begins", 1 + len(_SEARCHED)


def _shaped(shape: _Shape, goes_on: bool) -> _Statements:
    return _statements(shape._replace(goes_on=goes_on))


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
        answered = [*answered, patterns.in_range(key, begun=shape.goes_on)]
        left = [*left, matches(key)] if shape.pattern == "also like" else left
    if left:
        candidates = sa.select(key.label("key"), number.label("id")).where(*answered)
        return _bounded(candidates, lambda _: left, goes_on=shape.goes_on)
    query = select_entries(key, number).where(*answered, *_passed(key, number, goes_on=shape.goes_on))
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

    candidates = values.where(patterns.in_range(key, cut=True, begun=shape.goes_on))
    return _bounded(candidates, residual, goes_on=shape.goes_on)


def _where(shape: _Shape) -> tuple[list[sa.ColumnElement[bool]], list[sa.ColumnElement[bool]]]:
    """What an index of entries answers, in the order of names, and what it does not."""
    kind = rows.c.kind == sa.bindparam("kind", type_=sa.String)
    inside = [rows.c[shape.inside] == sa.bindparam("container", type_=sa.BigInteger)] if shape.inside else []
    if shape.disabled is None:
        return [kind, *inside], []
    if shape.disabled:
        return [kind, rows.c.disabled], inside
    return [kind, *inside], [sa.not_(rows.c.disabled)]


@cache
def _direct(which: Literal["members", "containers"], goes_on: bool) -> _Statements:
    container = sa.bindparam("container", type_=sa.BigInteger)
    ids = memberships.direct_members(container) if which == "members" else memberships.direct_containers(container)
    number = ids.selected_columns["id"]
    candidates = ids.where(number > _PLACE) if goes_on else ids
    kinds: sa.BindParameter[str] = sa.bindparam("kinds", expanding=True, type_=sa.String)
    return _first(candidates.order_by(number), [], lambda _: [rows.c.kind.in_(kinds)])


def _bounded(
    candidates: sa.Select[Any], residual: Callable[[sa.FromClause], Sequence[sa.ColumnElement[bool]]], *, goes_on: bool
) -> _Statements:
    """``residual`` makes what the index of the candidates, rows of ``key`` and ``id``, does not answer."""
    key, number = candidates.selected_columns["key"], candidates.selected_columns["id"]
    return _first(candidates.where(*_passed(key, number, goes_on=goes_on)).order_by(key, number), ["key"], residual)


def _first(
    candidates: sa.Select[Any],
    keys: Sequence[str],
    residual: Callable[[sa.FromClause], Sequence[sa.ColumnElement[bool]]],
) -> _Statements:
    """Of the first ``scanned`` of the candidates, which are in the order of the ``keys`` and ``id``."""
    found = candidates.limit(sa.bindparam("scanned", type_=sa.Integer)).subquery("found")
    order = [*(found.c[name] for name in keys), found.c.id]
    query = select_entries(*order).where(found.c.id == rows.c.id, *residual(found)).order_by(*order).limit(_MOST)
    end = candidates.limit(1).offset(sa.bindparam("passed_over", type_=sa.Integer))
    return _Statements(PreparedStatement(query), PreparedStatement(end))


def _passed(
    key: sa.ColumnElement[str], number: sa.ColumnElement[int], *, goes_on: bool
) -> list[sa.ColumnElement[bool]]:
    place = sa.bindparam("key", type_=sa.String), _PLACE
    return [sa.tuple_(key, number) > sa.tuple_(*place)] if goes_on else []


def _read(
    cx: Connection, statements_of: Callable[[bool], _Statements], after: ListPlace, limit: int, values: dict[str, Any]
) -> EntryPage:
    """A bound is reached in a few steps, because most often the first rows suffice."""
    found: list[Entry] = []
    left, step = SCANNED, limit + 1
    while True:
        statements = statements_of(bool(after.id))
        place = {"key": after.key, "id": after.id} if after.id else {}
        most, scanned = limit - len(found), min(step, left)
        bounds = {"most": most + 1} | ({"scanned": scanned} if statements.end else {})
        several = statements.rows.all(cx, **values, **place, **bounds)
        found += [to_entry(row) for row in several[:most]]
        if len(several) > most:
            return EntryPage(found, _place_of(after.part, several[most - 1][_WIDTH:]) if most else after)
        end = statements.end.first(cx, **values, **place, passed_over=scanned - 1) if statements.end else None
        if end is None:
            return EntryPage(found, None)
        after, left, step = _place_of(after.part, end), left - scanned, step * 4
        if not left:
            return EntryPage(found, after)


def _place_of(part: int, place: Sequence[Any]) -> ListPlace:
    """``place`` begins with a key, if the list has one, and the entry."""
    key, number = place[:2] if isinstance(place[0], str) else ("", place[0])
    return ListPlace(part, key, number)


def _by_id(
    cx: Connection,
    which: Literal["members", "containers"],
    of: Entry,
    kinds: Sequence[Kind],
    after: ListPlace | None,
    limit: int,
) -> EntryPage:
    values = {"container": of.id, "kinds": list(kinds)}
    return _read(cx, partial(_direct, which), after or ListPlace(0, "", 0), limit, values)


_MOST = sa.bindparam("most", type_=sa.Integer)
_PLACE = sa.bindparam("id", type_=sa.BigInteger)
_WIDTH = len(ENTRY_FIELDS)
