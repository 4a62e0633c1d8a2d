"""Partitions, organizational units, groups and users: who is there, and where (given 2.1, 2.7).

Every entry is one row. A user's or group's name is unique in its partition, in any case.
"""

import uuid
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.db import BigId, Instant, Prepared, directory_tables
from muniment.directory import names as spelling
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, BadName, NameTaken, UnknownEntry, UnknownPartition
from muniment.naming import fold_name

Kind = Literal["partition", "unit", "group", "user"]

ADMINISTRATION = "administration"
CLIENTS = "clients"
ADMINISTRATORS = "administrators"
_ROOT = "root"
_FLAGS = ("disabled", "locked", "password_never_expires", "must_change_password", "cannot_change_password")

_entries = sa.Table(
    "entries",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("partition_id", sa.ForeignKey("entries.id")),
    sa.Column("parent_id", sa.ForeignKey("entries.id"), index=True),
    sa.Column("built_in", sa.String(20)),
    sa.Column("space", sa.String(30), nullable=False),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("name_key", sa.String(400), nullable=False),
    sa.Column("units", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("password_hash", sa.String(255)),
    *(sa.Column(flag, sa.Boolean, nullable=False) for flag in _FLAGS),
    sa.Column("tries", sa.Text, nullable=False),
    sa.Column("places", sa.Text, nullable=False),
    sa.Column("attempted", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("space", "name_key"),
    sa.Index("ix_entries_listing", "partition_id", "kind", "name_key"),
    # A deleted user's number is never given again: the grants that name it stay dead.
    sqlite_autoincrement=True,
)


class Entry(msgspec.Struct, frozen=True):
    """A partition, unit, group or user.

    ``name`` is as stored: use ``shown_name``. ``units`` are the names of the units it lies in, below the root unit,
    innermost first. ``partition`` and ``partition_built_in`` name its partition (a partition names itself).
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
    partition: str
    partition_built_in: str | None

    @property
    def live(self) -> bool:
        """Whether this user may act: neither disabled nor locked."""
        return not (self.disabled or self.locked)


class Credentials(msgspec.Struct, frozen=True):
    """A user with what a sign-in is decided by; ``tries`` and ``places`` are as ``sign_ins`` writes them."""

    user: Entry
    stored: str | None
    tries: str
    places: str


def initialise(cx: Connection, now: Instant) -> None:
    """Make the built-in partitions with their root units, and the group of administrators. Once is enough."""
    if cx.execute(sa.select(_e.c.id).limit(1)).first():
        return
    held = _add_partition(cx, f"@{ADMINISTRATION}", "The administrators of this directory.", now, ADMINISTRATION)
    _add_partition(cx, f"@{CLIENTS}", "OAuth clients: users of this partition at its root location.", now, CLIENTS)
    description = "They administer the directory."
    _add(cx, "group", held, ADMINISTRATORS, now, built_in=ADMINISTRATORS, description=description)


def shown_name(names: DirectoryNames, entry: Entry) -> str:
    """Name an entry as the wire does."""
    if entry.kind == "partition":
        return _shown_partition(names, entry.name, entry.built_in)
    return names.root_unit if entry.built_in == _ROOT else entry.name


def shown_partition(names: DirectoryNames, entry: Entry) -> str:
    """Name an entry's partition as the wire does."""
    return _shown_partition(names, entry.partition, entry.partition_built_in)


def shown_id(names: DirectoryNames, entry: Entry) -> str:
    """Write a user's or group's id, ``<name>@<partition>`` (given 2.7)."""
    return spelling.user_id(entry.name, shown_partition(names, entry))


def location(names: DirectoryNames, entry: Entry) -> str:
    """Write an entry's distinguished name (given 2.7)."""
    partition = shown_partition(names, entry)
    if entry.kind in ("user", "group"):
        return spelling.location(names, partition, entry.units, name=entry.name)
    units = (entry.name, *entry.units) if entry.kind == "unit" and entry.built_in != _ROOT else ()
    return spelling.location(names, partition, units, root=entry.kind == "unit")


def add_partition(cx: Connection, names: DirectoryNames, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make a user partition with its root unit. Raises BadName, NameTaken."""
    name = spelling.check(name, partition=True)
    if fold_name(name) in map(fold_name, (names.administration_partition, names.clients_partition)):
        raise NameTaken(f"There is a partition {name!r} already.")
    return _add_partition(cx, name, description, now, None)


def add_unit(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make an organizational unit in a unit, or at a partition's root. Raises BadName, NameTaken."""
    return _add(cx, "unit", parent, spelling.check(name), now, description=description)


def add_group(cx: Connection, parent: Entry, name: str, now: Instant, *, description: str = "") -> Entry:
    """Make a group in a unit, or at a partition's root. Raises BadName, NameTaken."""
    return _add(cx, "group", parent, spelling.check(name), now, description=description)


def add_user(
    cx: Connection, parent: Entry, name: str, now: Instant, *, password_hash: str | None = None, description: str = ""
) -> Entry:
    """Make a user in a unit, or at a partition's root. Raises BadName, NameTaken."""
    values = {"description": description, "password_hash": password_hash}
    return _add(cx, "user", parent, spelling.check(name), now, **values)


def add_client(
    cx: Connection, name: str, now: Instant, *, password_hash: str | None = None, description: str = ""
) -> Entry:
    """Make an OAuth client (given 2.1), confidential with a password, else public. Raises BadName, NameTaken."""
    return add_user(cx, clients(cx), name, now, password_hash=password_hash, description=description)


def partition_key(names: DirectoryNames, name: str) -> str:
    """Spell a partition's name as it is compared, whatever the built-in ones are called."""
    built_in = {names.clients_partition: CLIENTS, names.administration_partition: ADMINISTRATION}
    keys = {fold_name(shown): f"@{stored}" for shown, stored in built_in.items()}
    # A stored name of a built-in partition holds an '@', which no partition's name on the wire does.
    return keys.get(fold_name(name), fold_name(name.replace("@", "\ufffd")))


def find_partition(cx: Connection, names: DirectoryNames, name: str) -> Entry:
    """Find a partition by its name. Raises UnknownPartition."""
    found = _first(cx, _select().where(_e.c.space == "", _e.c.name_key == partition_key(names, name)))
    if found is None:
        raise UnknownPartition(f"There is no partition {name[:100]!r}.")
    return found


def clients(cx: Connection) -> Entry:
    """Give the partition of OAuth clients. Raises UnknownPartition before initialisation."""
    return _built_in(cx, CLIENTS)


def administration(cx: Connection) -> Entry:
    """Give the partition of administrators. Raises UnknownPartition before initialisation."""
    return _built_in(cx, ADMINISTRATION)


def administrators(cx: Connection) -> Entry:
    """Give the group of administrators. Raises UnknownPartition before initialisation."""
    return _entry(cx.execute(_named(_space("members", administration(cx)), ADMINISTRATORS)).one())


def find_user(cx: Connection, names: DirectoryNames, user_id: str) -> Entry:
    """Find a user by ``<name>@<partition>``. Raises UnknownEntry."""
    return _found(cx, names, user_id, "user")


def find_group(cx: Connection, names: DirectoryNames, group_id: str) -> Entry:
    """Find a group by ``<name>@<partition>``. Raises UnknownEntry."""
    return _found(cx, names, group_id, "group")


def find_client(cx: Connection, name: str) -> Entry:
    """Find an OAuth client by its name. Raises UnknownEntry."""
    if found := client_credentials(cx, name):
        return found.user
    raise UnknownEntry(f"There is no client {name[:100]!r}.")


def find_unit(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find a unit by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    if (found := find_location(cx, names, location)).kind == "unit":
        return found
    raise UnknownEntry(f"There is no unit {location[:200]!r}.")


def find_location(cx: Connection, names: DirectoryNames, location: str) -> Entry:
    """Find any entry by its location. Raises UnknownEntry, UnknownPartition, BadName."""
    name, units, partition_name = spelling.split_location(names, location)
    partition = find_partition(cx, names, partition_name)
    if units is None:
        return partition
    entry = unit_at(cx, partition, units[::-1])
    if name is None:
        return entry
    found = _first(cx, _named(_space("members", partition), name))
    if found is None or found.parent_id != entry.id:
        raise UnknownEntry(f"There is no entry {location[:200]!r}.")
    return found


def unit_at(cx: Connection, partition: Entry, path: Sequence[str]) -> Entry:
    """Find a unit by its names, from the outermost below the root inwards (none: the root). Raises UnknownEntry."""
    unit = _root(cx, partition)
    for name in path:
        found = _first(cx, _named(_space("units", unit), name))
        if found is None:
            raise UnknownEntry(f"There is no unit {name[:100]!r} in {unit.name[:100]!r}.")
        unit = found
    return unit


def by_id(cx: Connection, entry_id: int) -> Entry | None:
    """Give an entry by its number, or None when it was deleted."""
    return _first(cx, _BY_ID, {"entry": entry_id})


def credentials(cx: Connection, names: DirectoryNames, user_id: str) -> Credentials | None:
    """Look up a user for a sign-in: one statement, whether there is such a user or not."""
    name, at, partition = user_id.rpartition("@")
    partition = partition_key(names, partition) if at else ""
    return _credentials(cx.execute(_CREDENTIALS_BY_NAME, {"name": fold_name(name), "partition": partition}).first())


def client_credentials(cx: Connection, name: str) -> Credentials | None:
    """Look up an OAuth client by its name: one statement."""
    return _credentials(_CLIENT.first(cx, name=fold_name(name), partition=f"@{CLIENTS}"))


def lock_credentials(cx: Connection, user_id: int | None, *, shared: bool = False) -> Credentials | None:
    """Look up a user to decide a sign-in, keeping other decisions about them waiting until this one is committed.

    It reads one row whoever tries. ``shared`` lets those wait only that would change it: for a client, with which many
    sign in at one time.
    """
    found = _credentials(cx.execute(_CREDENTIALS.with_for_update(of=_e, read=shared), {"entry": user_id}).first())
    return None if user_id is None else found


def note_sign_in(cx: Connection, user_id: int | None, tries: str, places: str, now: Instant) -> None:
    """Keep how sign-ins of a user went, as ``sign_ins`` writes it: one row is written whoever tried.

    For a user that does not exist it is that of the first entry, where it means nothing: time tells nobody who exists.
    """
    cx.execute(_NOTE_SIGN_IN, {"entry": user_id, "new_tries": tries, "new_places": places, "now": now})


def set_password_hash(cx: Connection, user: Entry, password_hash: str | None, now: Instant) -> None:
    """Give a user a password, or none; a pause of his sign-in ends."""
    _change(cx, user, now, password_hash=password_hash, tries=_NO_TRIES, must_change_password=False)


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> None:
    """Disable a user, or enable them again."""
    _change(cx, user, now, disabled=disabled)


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> None:
    """Lock a user out, or let them in again (which also ends the pauses of their sign-in)."""
    _change(cx, user, now, locked=locked, tries=_NO_TRIES)


def end_pauses(cx: Connection, user: Entry) -> None:
    """Let a user sign in again from wherever wrong passwords have paused it."""
    cx.execute(_entries.update().where(_entries.c.id == user.id).values(tries=_NO_TRIES))


def set_flags(cx: Connection, user: Entry, now: Instant, **flags: bool) -> None:
    """Set flags about a user's password: password_never_expires, must_change_password, cannot_change_password."""
    if not flags.keys() <= set(_FLAGS[2:]):
        raise BadAttribute(f"The flags are {', '.join(_FLAGS[2:])}.")
    _change(cx, user, now, **flags)


def set_description(cx: Connection, entry: Entry, description: str, now: Instant) -> None:
    """Describe an entry in free text."""
    _change(cx, entry, now, description=description)


def delete(cx: Connection, entry: Entry) -> None:
    """Delete a user, a group, an empty unit or an empty partition. Raises BadName for built-in or filled ones."""
    if entry.built_in is not None:
        raise BadName("A built-in entry cannot be deleted.")
    doomed = [_root(cx, entry).id, entry.id] if entry.kind == "partition" else [entry.id]
    inside = sa.select(_e.c.kind, sa.func.count()).where(_e.c.parent_id.in_(doomed), _e.c.id.not_in(doomed))
    if counts := cx.execute(inside.group_by(_e.c.kind).order_by(_e.c.kind)).all():
        held = ", ".join(f"{count} {kind}s" for kind, count in counts)
        raise BadName(f"Only an empty unit or partition can be deleted: this one holds {held}.")
    for entry_id in doomed:
        cx.execute(_entries.delete().where(_entries.c.id == entry_id))


def partitions(cx: Connection) -> list[Entry]:
    """List the partitions, in the order they were made; by their space, for SQLite reads all entries for their kind."""
    return [_entry(row) for row in cx.execute(_select().where(_e.c.space == "").order_by(_e.c.id))]


def listing(cx: Connection, partition: Entry, kind: Kind, *, after: str = "", limit: int | None = 1000) -> list[Entry]:
    """List a partition's units, groups or users by name, those after ``after``; ``limit`` at most, None: all."""
    wanted = _select().where(_e.c.kind == kind, _e.c.partition_id == partition.id, _e.c.name_key > fold_name(after))
    return [_entry(row) for row in cx.execute(wanted.order_by(_e.c.name_key, _e.c.id).limit(limit))]


def units_in(cx: Connection, container: Entry) -> list[Entry]:
    """List the units that lie in a unit itself, or a partition's root unit; by their space, where no users are."""
    return [_entry(row) for row in cx.execute(_select().where(_e.c.space == _space("units", container)))]


def acting(at: sa.ColumnElement[int] | int, where: Literal["id", "parent_id"] = "id") -> sa.Exists:
    """Ask whether this entry is a user who may act and has a password, or one lies in it (``parent_id``)."""
    live = sa.and_(_e.c.disabled.is_(False), _e.c.locked.is_(False), _e.c.password_hash.is_not(None))
    return sa.exists().where(_e.c[where] == at, _e.c.kind == "user", live)


def those(wanted: sa.Select[tuple[int]], *kinds: Kind) -> sa.Select[Any]:
    """A query for the entries (of these kinds) whose numbers another noun's query gives; ``read`` reads its rows."""
    of_kind = [_e.c.kind.in_(kinds)] if kinds else []
    return _select().where(_e.c.id.in_(wanted), *of_kind).order_by(_e.c.kind, _e.c.name_key, _e.c.id)


def read(cx: Connection, wanted: sa.Select[Any], parameters: dict[str, Any]) -> list[Entry]:
    """Run what ``those`` made; the parameters are the other noun's own."""
    return [_entry(row) for row in cx.execute(wanted, parameters)]


def units_above(entry: sa.BindParameter[int]) -> sa.Select[tuple[int]]:
    """A query for the units an entry lies in, outwards, and its partition; for use in another noun's statement."""
    units = sa.select(_entries.c.parent_id.label("id")).where(_entries.c.id == entry).cte("units", recursive=True)
    outer = _entries.alias("outer_unit")
    units = units.union(sa.select(outer.c.parent_id).where(outer.c.id == units.c.id))
    return sa.select(units.c.id)


def _select(*more: sa.ColumnElement[Any]) -> sa.Select[Any]:
    computed: dict[str, sa.ColumnElement[Any]] = {
        "has_password": _e.c.password_hash.is_not(None),
        "partition": sa.func.coalesce(_p.c.name, _e.c.name),
        "partition_built_in": sa.case((_e.c.kind == "partition", _e.c.built_in), else_=_p.c.built_in),
    }
    columns = (computed[name] if name in computed else _e.c[name] for name in _FIELDS)
    return sa.select(*columns, *more).select_from(_e.outerjoin(_p, _p.c.id == _e.c.partition_id))


def _entry(row: Sequence[Any]) -> Entry:
    values = list(row[: len(_FIELDS)])
    values[_UNITS] = tuple(msgspec.json.decode(values[_UNITS]))
    return Entry(*values)


def _first(cx: Connection, wanted: sa.Select[Any], parameters: dict[str, Any] | None = None) -> Entry | None:
    row = cx.execute(wanted, parameters).first()
    return None if row is None else _entry(row)


def _credentials(row: Sequence[Any] | None) -> Credentials | None:
    return None if row is None else Credentials(_entry(row), *row[len(_FIELDS) :])


def _found(cx: Connection, names: DirectoryNames, entry_id: str, kind: Kind) -> Entry:
    name, at, partition = entry_id.rpartition("@")
    parameters = {"name": fold_name(name), "partition": partition_key(names, partition), "kind": kind}
    found = _first(cx, _BY_NAME, parameters) if at else None
    if found is None:
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return found


def _space(what: Literal["members", "units"], of: Entry) -> str:
    """Where names are unique: those of a partition's users and groups, its members, and those of a unit's units."""
    return f"{what} {of.id}"


def _named(space: str, name: str) -> sa.Select[Any]:
    return _select().where(_e.c.space == space, _e.c.name_key == fold_name(name))


def _built_in(cx: Connection, built_in: str) -> Entry:
    found = _first(cx, _named("", f"@{built_in}"))
    if found is None:
        raise UnknownPartition("The directory has not been initialised.")
    return found


def _root(cx: Connection, partition: Entry) -> Entry:
    wanted = _select().where(_e.c.parent_id == partition.id, _e.c.built_in == _ROOT)
    return _entry(cx.execute(wanted).one())


def _partition_of(cx: Connection, entry: Entry) -> Entry:
    return entry if entry.partition_id is None else _entry(cx.execute(_BY_ID, {"entry": entry.partition_id}).one())


def _unit_of(cx: Connection, parent: Entry) -> Entry:
    if parent.kind == "partition":
        return _root(cx, parent)
    if parent.kind != "unit":
        raise BadName("Entries lie in units and partitions, nowhere else.")
    return parent


def _shown_partition(names: DirectoryNames, name: str, built_in: str | None) -> str:
    shown = {CLIENTS: names.clients_partition, ADMINISTRATION: names.administration_partition}
    return shown[built_in] if built_in is not None else name


def _add_partition(cx: Connection, name: str, description: str, now: Instant, built_in: str | None) -> Entry:
    partition = _insert(cx, now, kind="partition", space="", name=name, description=description, built_in=built_in)
    inside = {"partition_id": partition.id, "parent_id": partition.id}
    _insert(cx, now, kind="unit", space=_space("units", partition), name="Root", built_in=_ROOT, **inside)
    return partition


def _add(cx: Connection, kind: Kind, parent: Entry, name: str, now: Instant, **values: str | None) -> Entry:
    partition, unit = _partition_of(cx, parent), _unit_of(cx, parent)
    if partition.built_in == CLIENTS and (kind == "unit" or unit.built_in != _ROOT):
        raise BadName("The clients' partition has its root location only: clients lie there (given 2.1).")
    space = _space("units", unit) if kind == "unit" else _space("members", partition)
    units = (unit.name, *unit.units) if unit.built_in != _ROOT else ()
    inside = {"partition_id": partition.id, "parent_id": unit.id, "units": msgspec.json.encode(units).decode()}
    return _insert(cx, now, kind=kind, space=space, name=name, **inside, **values)


def _insert(cx: Connection, now: Instant, *, name: str, **values: Any) -> Entry:
    row = _NEW | values | {"uuid": str(uuid.uuid4()), "name": name, "name_key": fold_name(name)}
    try:
        with cx.begin_nested():
            entry_id = cx.scalar(_entries.insert().returning(_entries.c.id), row | {"created": now, "modified": now})
    except IntegrityError as error:
        raise NameTaken(f"There is an entry {name!r} there already.") from error
    return _entry(cx.execute(_BY_ID, {"entry": entry_id}).one())


def _change(cx: Connection, entry: Entry, now: Instant, **values: Any) -> None:
    cx.execute(_entries.update().where(_entries.c.id == entry.id).values(modified=now, **values))


_e = _entries.alias("e")
_p = _entries.alias("p")
_FIELDS = Entry.__struct_fields__
_UNITS = _FIELDS.index("units")
_NO_TRIES = "{}"
_NEW: dict[str, Any] = {
    **dict.fromkeys(("partition_id", "parent_id", "built_in", "password_hash")),
    **dict.fromkeys(_FLAGS, False),
    "tries": _NO_TRIES,
    "places": "{}",
    "attempted": 0,
    "units": "[]",
    "description": "",
}
_ENTRY = sa.bindparam("entry", type_=sa.BigInteger)
_SIGN_IN = (_e.c.password_hash, _e.c.tries, _e.c.places)
_PARTITION = sa.and_(_p.c.space == "", _p.c.name_key == sa.bindparam("partition"))
_IN_PARTITION = sa.and_(_PARTITION, _e.c.name_key == sa.bindparam("name"))
_NAMES: sa.BindParameter[str] = sa.bindparam("names", expanding=True)
BEARING = _select().where(_PARTITION, _e.c.kind.in_(("group", "user")), _e.c.name_key.in_(_NAMES))
_BY_ID = _select().where(_e.c.id == _ENTRY)
_BY_NAME = _select().where(_IN_PARTITION, _e.c.kind == sa.bindparam("kind"))
_CREDENTIALS_BY_NAME = _select(*_SIGN_IN).where(_IN_PARTITION, _e.c.kind == "user")
_CLIENT = Prepared(_CREDENTIALS_BY_NAME)
_ENTRY_OR_FIRST = sa.func.coalesce(_ENTRY, sa.select(sa.func.min(_entries.alias().c.id)).scalar_subquery())
_CREDENTIALS = _select(*_SIGN_IN).where(_e.c.id == _ENTRY_OR_FIRST)
_NOW = sa.bindparam("now", type_=sa.BigInteger)
_NOTED = {"tries": sa.bindparam("new_tries"), "places": sa.bindparam("new_places"), "attempted": _NOW}
_NOTE_SIGN_IN = _entries.update().where(_entries.c.id == _ENTRY_OR_FIRST).values(_NOTED)
