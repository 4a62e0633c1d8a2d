"""Fill a directory with a crowd: the rows that the decisions would write, copied many at a time."""

import itertools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from bench.checkout import as_it_was
from bench.ours import PARTITION, Data
from muniment.database import connections
from muniment.database.audit import SYSTEM, acting
from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, entries
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.ground import clock

EVERYBODY, UNIT = "everybody", "Crowd"
"""A group in which every user of the crowd is, and the unit in which they lie."""

INNER = 10
"""Of so many groups, one contains the others, and is itself in the group of everybody."""

_MANY, _CACHE_KIB = 5_000, 1_000_000
_TABLES = ("entries", "attribute_values", "entry_changes", "audit_events", "rights_history", "memberships")
_KEYS = {"entry_changes": "sequence", "audit_events": "id", "rights_history": "id"}
"""Keys that the database assigns, which nothing refers to."""

_COUNT = (
    "INSERT INTO member_counts (group_id, members) SELECT group_id, count(*) FROM memberships WHERE true "
    "GROUP BY group_id ON CONFLICT (group_id) DO UPDATE SET members = excluded.members"
)
_NUMBERS = ("id", "entry_id", "group_id", "member_id")

Row = dict[str, Any]
Written = dict[str, list[Row]]
New = dict[Any, Any]
"""What stands in a copy, by what stands in the pattern."""


def user_name(number: int) -> str:
    """The number is in the name in a mixed order, so that neighbours in the list were not made one after the other."""
    return f"u{number * 7919 % 10_000_019:08}"


@as_it_was
@acting(SYSTEM, clock.now)
def fill(data: Data, users: int, groups: int) -> None:
    """As ``add``."""
    opened = data.opened()
    with opened.database("directory") as database:
        add(database, opened.settings.directory.names, PARTITION, users, groups, opened.now)


def add(database: Database, names: DirectoryNames, partition: str, users: int, groups: int, now: clock.Instant) -> None:
    """Add users with an address, a name and a surname, and groups one inside another; a user is in two of them."""
    with database.begin() as cx:
        people = entries.find_partition(cx, names, partition)
        place, everybody = editing.add_unit(cx, people, UNIT, now), editing.add_group(cx, people, EVERYBODY, now)
        before = _all(cx)
        group = editing.add_group(cx, place, "g-pattern", now)
        decisions.add_members(cx, everybody, [group], now)
        group_rows, before = _written(cx, before), _all(cx)
        user = decisions.add_user(
            *(cx, names, f"u-pattern@{partition}", place, now),
            password_hash=None,
            values={"mail": ["mail"], "displayName": ["Shown"], "sn": ["Last"]},
        )
        decisions.add_members(cx, everybody, [user], now)
        decisions.add_members(cx, group, [user], now)
        user_rows = _written(cx, before)
    copied = _Copied(everybody, group, user, groups)
    with _loading(database) as cx:
        _copy(cx, group_rows, map(copied.group, range(groups)))
        _copy(cx, user_rows, map(copied.user, range(users)))


class _Copied:
    """Copies of a group and of a user: what is said of them in all tables, with other names, numbers and identities."""

    def __init__(self, everybody: Entry, group: Entry, user: Entry, groups: int) -> None:
        self._everybody, self._group, self._user, self.groups = everybody, group, user, groups
        self._first = user.id + 1
        self._uuids = [str(uuid.uuid4()) for _ in range(groups)]

    def group(self, number: int) -> New:
        """The first of each ten is in the group of everybody, and contains the other nine."""
        outer, name = number - number % INNER, f"g{number:06}"
        around = (self._everybody.id, self._everybody.uuid) if number == outer else self._identity(outer)
        return {
            **dict(zip((self._everybody.id, self._everybody.uuid), around, strict=True)),
            **dict(zip((self._group.id, self._group.uuid), self._identity(number), strict=True)),
            self._group.name: name,
            self._group.target.name: f"{name}@{self._group.partition}",
        }

    def user(self, number: int) -> New:
        """A user is in the group of everybody, and in one other."""
        name, group = user_name(number), self._identity(number % self.groups)
        texts = {"mail": f"{name}@example.org", "Shown": f"Person {name[::-1]}", "Last": f"Last {name[::-2]}"}
        return {
            **texts,
            **{key.lower(): text.lower() for key, text in texts.items()},
            **dict(zip((self._group.id, self._group.uuid), group, strict=True)),
            self._user.id: self._first + self.groups + number,
            self._user.uuid: str(uuid.uuid4()),
            self._user.name: name,
            self._user.target.name: f"{name}@{self._group.partition}",
        }

    def _identity(self, group: int) -> tuple[int, str]:
        return self._first + group, self._uuids[group]


def _all(cx: Connection) -> Written:
    tables = {name: connections.directory_tables.tables[name] for name in _TABLES}
    return {name: [dict(row) for row in cx.execute(sa.select(table)).mappings()] for name, table in tables.items()}


def _written(cx: Connection, before: Written) -> Written:
    """The rows that have been written since, without the keys that the database assigns."""
    written = {name: [row for row in rows if row not in before[name]] for name, rows in _all(cx).items()}
    for name, key in _KEYS.items():
        written[name] = [{column: value for column, value in row.items() if column != key} for row in written[name]]
    return {name: rows for name, rows in written.items() if rows}


@contextmanager
def _loading(database: Database) -> Iterator[Connection]:
    """Without the triggers, of which each row would renew a mark. Afterwards the database knows what it holds."""
    if database.dialect == "postgresql":
        with database.begin() as cx:
            cx.exec_driver_sql("SET LOCAL session_replication_role = replica")
            yield cx
            cx.exec_driver_sql(_COUNT)
            cx.exec_driver_sql("SELECT setval(pg_get_serial_sequence('entries', 'id'), (SELECT max(id) FROM entries))")
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as alone:
            alone.exec_driver_sql("VACUUM ANALYZE")
        return
    with database.begin() as cx:
        cx.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KIB}")
        triggers = cx.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
        for name, _ in triggers:
            cx.exec_driver_sql(f"DROP TRIGGER {name}")
        yield cx
        cx.exec_driver_sql(_COUNT)
        for _, text in triggers:
            cx.exec_driver_sql(text)


def _copy(cx: Connection, patterns: Written, copies: Iterator[New]) -> None:
    some = next(copies, None)
    plans = {} if some is None else {table: [_plan(row, some) for row in rows] for table, rows in patterns.items()}
    copies = itertools.chain([] if some is None else [some], copies)
    while portion := list(itertools.islice(copies, _MANY)):
        for table, rows in plans.items():
            values = [_filled(*plan, new) for new in portion for plan in rows]
            _insert(cx, table, list(patterns[table][0]), values)


def _plan(row: Row, new: New) -> tuple[list[Any], list[tuple[int, Any]]]:
    """The values of a row, and which are to be replaced: numbers of entries, and texts but attributes' names."""
    return list(row.values()), [
        (place, value)
        for place, (column, value) in enumerate(row.items())
        if value in new
        and (isinstance(value, str) or column in _NUMBERS)
        and not (column == "name" and "folded" in row)
    ]


def _filled(values: list[Any], replaced: list[tuple[int, Any]], new: New) -> list[Any]:
    copied = values[:]
    for place, value in replaced:
        copied[place] = new[value]
    return copied


def _insert(cx: Connection, table: str, columns: Sequence[str], values: list[list[Any]]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    if cx.dialect.name == "postgresql":
        driver = connections.driver_of(cx)
        with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)
        return
    marks = ", ".join("?" * len(columns))
    cx.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", [tuple(row) for row in values])
