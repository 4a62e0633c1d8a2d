"""Which accessor has which permission?"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.audit import select_rights
from muniment.database.connections import PreparedStatement, portions, repository_tables, required
from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository import audit
from muniment.repository.refusals import UnknownAccessor, WrongValue
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.store.permissions.table import acls

acl_entries = sa.Table(
    "acl_entries",
    repository_tables,
    sa.Column("acl_id", sa.ForeignKey("acls.id"), primary_key=True),
    sa.Column("accessor", sa.String(400), primary_key=True),
    required("permission", sa.SmallInteger),
    sa.Index("ix_acl_entries_accessor", "accessor", "permission", "acl_id"),
)

MAX_ENTRIES = 1000

_LEVELS = {int(permission): permission.name.lower() for permission in Permission}


def check(
    cx: Connection, entries: Mapping[str, Permission], present: Collection[str], principals: Principals, now: Instant
) -> dict[str, Permission]:
    """Return the entries by the accessors' keys, ordered. A name in ``present``, the keys that the ACL has, keeps its
    key.

    Raises WrongValue, UnknownAccessor.
    """
    levels_by_name = _fold_names(entries)
    keys = name_keys.keys_in_list(cx, levels_by_name.keys() - {OWNER, WORLD}, present, principals.identify, now)
    levels_by_key = {keys.get(name, name): level for name, level in levels_by_name.items()}
    if len(levels_by_key) < len(levels_by_name):
        raise WrongValue("The ACL names one user or group twice.")
    return dict(sorted(levels_by_key.items()))


def by_name(cx: Connection, entries: Mapping[int, Mapping[str, Permission]]) -> dict[int, dict[str, Permission]]:
    names = name_keys.names_of_keys(
        cx, {accessor for entries_of_acl in entries.values() for accessor in entries_of_acl}
    )
    return {
        acl_id: {names.get(accessor, accessor): level for accessor, level in entries_of_acl.items()}
        for acl_id, entries_of_acl in entries.items()
    }


def _fold_names(entries: Mapping[str, Permission]) -> dict[str, Permission]:
    if len(entries) > MAX_ENTRIES:
        raise WrongValue(f"An ACL has at most {MAX_ENTRIES} entries.")
    levels_by_name: dict[str, Permission] = {}
    for accessor, level in entries.items():
        key = fold_name(accessor)
        name, _, partition = key.rpartition("@")
        if key not in (OWNER, WORLD) and not (name and partition):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: write name@partition, owner or world.")
        if len(key) > 400 or any(unicodedata.category(each)[0] == "C" for each in accessor):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: too long, or not printable.")
        if key in levels_by_name:
            raise WrongValue(f"The ACL names {accessor[:100]!r} twice.")
        levels_by_name[key] = level
    return levels_by_name


def keep_entries(cx: Connection, acl_id: int, entries: Mapping[str, Permission]) -> None:
    """Store all entries in one statement: each renews the mark of ACLs."""
    rows = [{"acl_id": acl_id, "accessor": accessor, "permission": int(p)} for accessor, p in entries.items()]
    if rows:
        cx.execute(acl_entries.insert().values(rows))


def entries_of(
    cx: Connection, acl_ids: Iterable[int], accessors: Collection[str] | None = None
) -> dict[int, dict[str, Permission]]:
    """Read with one statement for each 500 ACLs."""
    by_acl: dict[int, dict[str, Permission]] = {}
    for ids in portions(sorted(set(acl_ids))):
        if accessors is None:
            rows = _ENTRIES.all(cx, acl_ids=ids)
        else:
            rows = _ENTRIES_OF_ACCESSORS.all(cx, acl_ids=ids, accessors=accessors)
        for acl_id, accessor, permission in rows:
            by_acl.setdefault(acl_id, {})[accessor] = Permission(permission)
    return by_acl


def drop(cx: Connection, acl_ids: Collection[int]) -> None:
    cx.execute(acl_entries.delete().where(acl_entries.c.acl_id.in_(acl_ids)))


def drop_accessor(cx: Connection, accessor: str) -> list[int]:
    deletion = acl_entries.delete().where(acl_entries.c.accessor == accessor).returning(acl_entries.c.acl_id)
    return list(cx.scalars(deletion))


def levels(entries: Mapping[str, Permission]) -> dict[str, str]:
    """Spell them for the audit."""
    return {accessor: _LEVELS[int(permission)] for accessor, permission in entries.items()}


def changed_rights(shown_id: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[audit.Right]:
    """Return what changes if an ACL gets other ``levels``."""
    return [
        audit.Right("acl entry", accessor, shown_id, before.get(accessor, ""), after.get(accessor, ""))
        for accessor in sorted(before.keys() | after.keys())
        if before.get(accessor) != after.get(accessor)
    ]


def rights_in(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Make a query for the rights that end with the entries of these ACLs."""
    level = sa.case(*((acl_entries.c.permission == number, name) for number, name in _LEVELS.items()))
    rights = select_rights("acl entry", acl_entries.c.accessor, acls.c.shown_id, level, "")
    return rights.join_from(acl_entries, acls, acl_entries.c.acl_id == acls.c.id).where(condition)


def rights_of(accessor: str) -> sa.Select[Any]:
    """Make a query for the rights that end with ``drop_accessor``."""
    return rights_in(acl_entries.c.accessor == accessor)


def count_acls(cx: Connection, accessor: str) -> int:
    return count_where(cx, acl_entries.c.accessor == accessor)


def count_entries(cx: Connection, acl_ids: Collection[int], accessors: Collection[str]) -> dict[int, int]:
    """Count in one statement."""
    query = (
        sa.select(acl_entries.c.acl_id, sa.func.count())
        .where(acl_entries.c.acl_id.in_(acl_ids), acl_entries.c.accessor.in_(accessors))
        .group_by(acl_entries.c.acl_id)
    )
    return dict(cx.execute(query).all()) if acl_ids else {}


def world_permit(acl_id: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Make an expression for what everybody may do with the objects of an ACL."""
    of_world = acl_entries.c.acl_id == acl_id, acl_entries.c.accessor == sa.literal(WORLD)
    level = sa.select(acl_entries.c.permission).where(*of_world).scalar_subquery()
    return sa.func.coalesce(level, sa.literal(int(Permission.NONE), sa.SmallInteger()))


def permits(
    acl_id: sa.ColumnElement[int], accessors: Collection[str] | sa.BindParameter[Any]
) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        acl_entries.c.acl_id == acl_id,
        acl_entries.c.accessor.in_(accessors),
        acl_entries.c.permission > int(Permission.NONE),
    )


def granting(accessors: Collection[str] | sa.BindParameter[Any], at_least: int | sa.BindParameter[Any]) -> sa.Subquery:
    return (
        sa.select(acl_entries.c.acl_id, acl_entries.c.permission)
        .where(acl_entries.c.accessor.in_(accessors), acl_entries.c.permission >= at_least)
        .subquery("granting")
    )


def acls_with(principals: Principals, at_least: Permission) -> sa.Select[int]:
    """Make a query for the ids of the ACLs, of every repository, that give the caller this permission."""
    # The repository is that of the object. If it were asked for, SQLite would look each accessor up in each ACL there.
    return sa.select(granting(sorted(principals.accessors), int(at_least)).c.acl_id)


def highest(
    acl_id: sa.ColumnElement[int], owner_key: sa.ColumnElement[str], principals: Principals | None = None
) -> sa.ScalarSelect[Any]:
    """Make a subquery for the caller's highest permission, null if no entry applies.

    Without ``principals``, it has parameters (``caller_parameters``). That an owner can always read is not in it: see
    ``level``.
    """
    key: sa.ColumnElement[str] = sa.bindparam("caller_key")
    accessors: Any = sa.bindparam("caller_accessors", expanding=True)
    if principals is not None:
        values = caller_parameters(principals)
        key, accessors = sa.literal(values["caller_key"]), values["caller_accessors"]
    as_owner = sa.or_(acl_entries.c.accessor != OWNER, owner_key == key)
    for_caller = acl_entries.c.accessor.in_(accessors)
    query = sa.select(sa.func.max(acl_entries.c.permission)).where(acl_entries.c.acl_id == acl_id, for_caller, as_owner)
    return query.scalar_subquery()


def caller_parameters(principals: Principals) -> dict[str, Any]:
    return {"caller_key": principals.key, "caller_accessors": [*sorted(principals.accessors), OWNER]}


def level(highest: int | None, *, owns: bool) -> Permission:
    """An owner can always read."""
    return max(Permission(highest or Permission.NONE), Permission.READ if owns else Permission.NONE)


def permission(cx: Connection, acl_id: int, owner_key: str, principals: Principals) -> Permission:
    return permissions(cx, [(acl_id, owner_key)], principals)[(acl_id, owner_key)]


def permissions(
    cx: Connection, pairs: Collection[tuple[int, str]], principals: Principals
) -> dict[tuple[int, str], Permission]:
    """Ask with one statement for each 500 ACLs."""
    if principals.administrator:
        return dict.fromkeys(pairs, Permission.DELETE)
    entries = entries_of(cx, {acl_id for acl_id, _ in pairs})
    keys = principals.accessors
    return {
        (acl_id, owner_key): _permission(entries.get(acl_id, {}), keys, owns=principals.is_(owner_key))
        for acl_id, owner_key in pairs
    }


def _permission(entries: Mapping[str, Permission], keys: frozenset[str], *, owns: bool) -> Permission:
    levels = [permission for accessor, permission in entries.items() if accessor in keys]
    if owns:
        levels += [entries.get(OWNER, Permission.NONE), Permission.READ]
    return max(levels, default=Permission.NONE)


_ENTRIES_STATEMENT = (
    sa.select(*(acl_entries.c[name] for name in ("acl_id", "accessor", "permission")))
    .where(acl_entries.c.acl_id.in_(sa.bindparam("acl_ids", expanding=True)))
    .order_by(acl_entries.c.acl_id, acl_entries.c.accessor)
)
_ENTRIES = PreparedStatement(_ENTRIES_STATEMENT)
_ENTRIES_OF_ACCESSORS = PreparedStatement(
    _ENTRIES_STATEMENT.where(acl_entries.c.accessor.in_(sa.bindparam("accessors", expanding=True)))
)
