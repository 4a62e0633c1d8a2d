"""The table of entries: partitions, organizational units, groups and users (given 2.1, 2.7); those of access roles.

A user's or group's name is unique in its partition, in any case.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.connections import (
    BigId,
    PreparedStatement,
    directory_tables,
    required,
    required_columns,
)
from muniment.database.statements import folded_text
from muniment.directory.audit import CLIENT_NAME, Target
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import NameTaken, UnknownPartition
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

Kind = Literal["partition", "unit", "group", "role", "user"]

ADMINISTRATION = "administration"
CLIENTS = "clients"
ADMINISTRATORS = "administrators"
ROOT = "root"

FLAGS = ("disabled", "locked", "password_never_expires", "must_change_password", "cannot_change_password")

entry_table = sa.Table(
    "entries",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    required("uuid", sa.String(36), unique=True),
    required("kind", sa.String(10)),
    sa.Column("partition_id", sa.ForeignKey("entries.id")),
    sa.Column("parent_id", sa.ForeignKey("entries.id")),
    sa.Column("built_in", sa.String(20)),
    required("space", sa.String(30)),
    required("name", CLIENT_NAME),
    required("name_key", folded_text(400)),
    *required_columns(sa.Text, "units", "description"),
    sa.Column("password_hash", sa.String(255)),
    *(required(flag, sa.Boolean) for flag in FLAGS),
    *required_columns(sa.Text, "tries", "places"),
    *required_columns(sa.BigInteger, "attempted", "created", "modified"),
    sa.Column("external_id", sa.String(255)),
    required("revision", sa.Integer),
    *(sa.Column(name, sa.BigInteger) for name in ("password_changed", "signed_in")),
    sa.UniqueConstraint("space", "name_key"),
    sa.Index("ix_entries_listing", "partition_id", "kind", "name_key"),
    sa.Index("ix_entries_inside", "parent_id", "kind", "name_key"),
    sa.Index("ix_entries_names", "kind", "name_key", "id"),
    sa.Index(
        "ix_entries_disabled",
        "kind",
        "name_key",
        "id",
        sqlite_where=sa.text("disabled = 1"),
        postgresql_where=sa.text("disabled"),
    ),
    sa.Index("ix_entries_external_id", "partition_id", "external_id", unique=True),
    # A deleted user's id is never used again, so that no new user gets the old user's grants.
    sqlite_autoincrement=True,
)


role_table = sa.Table(
    "access_roles",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    required("resource_id", sa.ForeignKey("resources.id", ondelete="CASCADE"), unique=True),
    required("created", sa.BigInteger),
    *required_columns(sa.Text, "description", "attributes"),
)

role_member_table = sa.Table(
    "access_role_members",
    directory_tables,
    sa.Column("role_id", sa.ForeignKey("access_roles.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True, index=True),
)


class Entry(msgspec.Struct, frozen=True):
    """``name`` is the stored name, ``entries.shown_name`` that on the wire.

    ``units`` names the units around it, without the root unit, the innermost first. ``partition`` and
    ``partition_built_in`` are its partition's ``name`` and ``built_in``, or its own. ``revision`` counts the changes of
    the entry, its attributes and its custom attributes.
    """

    id: int
    uuid: str
    kind: Kind
    partition_id: int | None
    parent_id: int | None
    built_in: str | None
    name: str
    units: tuple[str, ...]
    description: str
    has_password: bool
    disabled: bool
    locked: bool
    password_never_expires: bool
    must_change_password: bool
    cannot_change_password: bool
    created: Instant
    modified: Instant
    external_id: str | None
    revision: int
    password_changed: Instant | None
    signed_in: Instant | None
    partition: str
    partition_built_in: str | None

    @property
    def live(self) -> bool:
        return not (self.disabled or self.locked)

    @property
    def target(self) -> Target:
        """For the audit: by its neutral name, in which a built-in partition is ``@administration`` or ``@clients``."""
        name = "/".join((*reversed(self.units), self.name)) if self.kind == "unit" else self.name
        kind = "client" if self.kind == "user" and self.partition_built_in == CLIENTS else self.kind
        return Target(kind, name if self.kind == "partition" else f"{name}@{self.partition}", self.uuid)


class Impersonation(msgspec.Struct, frozen=True):
    """Whether a client or a resource lets a caller act for others, and for whom alone: folded; empty means anybody."""

    allowed: bool = False
    only: frozenset[str] = frozenset()


class HasId(Protocol):
    """Whatever stands for an entry by its number."""

    @property
    def id(self) -> int: ...


def partition_key(names: DirectoryNames, name: str) -> str:
    """``name_key`` by the name on the wire. That of a built-in partition never changes."""
    built_in = {names.clients_partition: CLIENTS, names.administration_partition: ADMINISTRATION}
    keys = {fold_name(name_on_the_wire): f"@{key}" for name_on_the_wire, key in built_in.items()}
    # The key of a built-in partition has an '@'. No other partition's name has one.
    return keys.get(fold_name(name), fold_name(name.replace("@", "\ufffd")))


def member_key(names: DirectoryNames, partition: str, name: str) -> str:
    """``name_key`` of a user, group or role by its name on the wire; ``partition`` is a ``partition_key``."""
    return ADMINISTRATORS if means_administrators(names, partition, name) else fold_name(name)


def means_administrators(names: DirectoryNames, partition: str, name: str) -> bool:
    return partition == f"@{ADMINISTRATION}" and fold_name(name) == fold_name(names.administrators_group)


def select_entries(*further: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """``to_entry`` reads the rows."""
    computed_columns: dict[str, sa.ColumnElement[Any]] = {
        "has_password": rows.c.password_hash.is_not(None),
        "partition": sa.func.coalesce(PARTITION.c.name, rows.c.name),
        "partition_built_in": sa.case((rows.c.kind == "partition", rows.c.built_in), else_=PARTITION.c.built_in),
    }
    columns = (computed_columns[name] if name in computed_columns else rows.c[name] for name in ENTRY_FIELDS)
    return sa.select(*columns, *further).select_from(rows.outerjoin(PARTITION, PARTITION.c.id == rows.c.partition_id))


def shown_partition_columns(names: DirectoryNames) -> tuple[sa.ColumnElement[str], sa.ColumnElement[str]]:
    """The name on the wire, and folded, for ``select_entries``."""
    built_in = {CLIENTS: names.clients_partition, ADMINISTRATION: names.administration_partition}
    name_column = sa.case(
        *((PARTITION.c.built_in == key, sa.literal(name)) for key, name in built_in.items()), else_=PARTITION.c.name
    )
    folded_column = sa.case(
        *((PARTITION.c.built_in == key, sa.literal(fold_name(name))) for key, name in built_in.items()),
        else_=PARTITION.c.name_key,
    )
    return name_column, folded_column


def shown_name_columns(names: DirectoryNames) -> tuple[sa.ColumnElement[str], sa.ColumnElement[str]]:
    """The name of a group on the wire, and folded, for ``select_entries``."""
    shown = names.administrators_group
    if shown == ADMINISTRATORS:
        return rows.c.name, rows.c.name_key
    built_in = rows.c.built_in == ADMINISTRATORS
    name = sa.case((built_in, sa.literal(shown)), else_=rows.c.name)
    return name, sa.case((built_in, sa.literal(fold_name(shown))), else_=rows.c.name_key)


def to_entry(row: Sequence[Any]) -> Entry:
    values = list(row[: len(ENTRY_FIELDS)])
    values[_UNITS] = tuple(msgspec.json.decode(values[_UNITS]))
    return Entry(*values)


def find_first(cx: Connection, query: sa.Select[Any]) -> Entry | None:
    row = cx.execute(query).first()
    return None if row is None else to_entry(row)


@contextmanager
def once_named(cx: Connection, what: str) -> Iterator[None]:
    """If another row has the block's name, raises NameTaken and undoes the block's writes."""
    try:
        with cx.begin_nested():
            yield
    except IntegrityError as error:
        raise NameTaken(f"There is {what} already.") from error


def name_space(what: Literal["members", "units"], of: HasId) -> str:
    """Of a partition's users and groups (``members``), or of the units in a unit or partition: no two of a space have
    the same name.
    """
    return f"{what} {of.id}"


def select_named(space: str, name: str) -> sa.Select[Any]:
    """Names that differ only in case are equal."""
    return select_entries().where(rows.c.space == space, rows.c.name_key == fold_name(name))


def find_built_in(cx: Connection, built_in: str) -> Entry:
    """Raises UnknownPartition before initialisation."""
    partition = find_first(cx, select_named("", f"@{built_in}"))
    if partition is None:
        raise UnknownPartition("The directory has not been initialised.")
    return partition


def root_unit(cx: Connection, partition: Entry) -> Entry:
    unit = find_root_unit(cx, partition)
    assert unit is not None  # noqa: S101 - it comes and goes with its partition
    return unit


def find_root_unit(cx: Connection, partition: Entry) -> Entry | None:
    """None if the partition was removed meanwhile."""
    row = _ROOT_UNIT.first(cx, entry=partition.id)
    return None if row is None else to_entry(row)


def find_by_id(cx: Connection, entry_id: int) -> Entry | None:
    row = _BY_ID.first(cx, entry=entry_id)
    return None if row is None else to_entry(row)


rows = entry_table.alias("e")
PARTITION = entry_table.alias("p")
ENTRY_FIELDS = Entry.__struct_fields__
_UNITS = ENTRY_FIELDS.index("units")
ENTRY_ID = sa.bindparam("entry", type_=sa.BigInteger)
IN_NAMED_PARTITION = sa.and_(PARTITION.c.space == "", PARTITION.c.name_key == sa.bindparam("partition"))
NAMED_IN_PARTITION = sa.and_(IN_NAMED_PARTITION, rows.c.name_key == sa.bindparam("name"))
_BY_ID = PreparedStatement(select_entries().where(rows.c.id == ENTRY_ID))
_ROOT_UNIT = PreparedStatement(
    select_entries().where(rows.c.parent_id == ENTRY_ID, rows.c.kind == "unit", rows.c.built_in == ROOT)
)
