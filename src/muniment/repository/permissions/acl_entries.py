"""Who is named by an ACL, and with how much? The entries of ACLs."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import repository_tables
from muniment.naming import fold_name
from muniment.repository.permissions import bearers
from muniment.repository.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.refusals import UnknownAccessor, WrongValue

acl_entries = sa.Table(
    "acl_entries",
    repository_tables,
    sa.Column("acl_id", sa.ForeignKey("acls.id"), primary_key=True),
    sa.Column("accessor", sa.String(400), primary_key=True),
    sa.Column("permission", sa.SmallInteger, nullable=False),
    sa.Index("ix_acl_entries_accessor", "accessor", "permission", "acl_id"),
)

MAX_ENTRIES = 1000
"""Most entries of one ACL."""


def check(
    cx: Connection, entries: Mapping[str, Permission], present: Collection[str], principals: Principals, now: Instant
) -> dict[str, Permission]:
    """Put the key of each accessor in place of its name, in order; one that is present keeps its bearer.

    Raises WrongValue, UnknownAccessor.
    """
    folded = _folded(entries)
    keys = bearers.keys_in_list(cx, folded.keys() - {OWNER, WORLD}, present, principals.identify, now)
    found = {keys.get(name, name): level for name, level in folded.items()}
    if len(found) < len(folded):
        raise WrongValue("The ACL names one user or group twice.")
    return dict(sorted(found.items()))


def by_name(cx: Connection, entries: Mapping[int, Mapping[str, Permission]]) -> dict[int, dict[str, Permission]]:
    """Put the name of each accessor in place of its key, in the entries of several ACLs."""
    names = bearers.names_of_keys(cx, {accessor for one in entries.values() for accessor in one})
    return {
        acl_id: {names.get(accessor, accessor): level for accessor, level in one.items()}
        for acl_id, one in entries.items()
    }


def _folded(entries: Mapping[str, Permission]) -> dict[str, Permission]:
    if len(entries) > MAX_ENTRIES:
        raise WrongValue(f"An ACL has at most {MAX_ENTRIES} entries.")
    spelled: dict[str, Permission] = {}
    for accessor, level in entries.items():
        key = fold_name(accessor)
        name, _, partition = key.rpartition("@")
        if key not in (OWNER, WORLD) and not (name and partition):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: write name@partition, owner or world.")
        if len(key) > 400 or any(unicodedata.category(each)[0] == "C" for each in accessor):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: too long, or not printable.")
        if key in spelled:
            raise WrongValue(f"The ACL names {accessor[:100]!r} twice.")
        spelled[key] = level
    return spelled


def keep(cx: Connection, acl_id: int, entries: Mapping[str, Permission]) -> None:
    """Keep the entries of a new ACL, or of one without any."""
    if entries:
        cx.execute(
            acl_entries.insert(),
            [{"acl_id": acl_id, "accessor": accessor, "permission": int(p)} for accessor, p in entries.items()],
        )


def of(cx: Connection, acl_ids: Iterable[int]) -> dict[int, dict[str, Permission]]:
    """Read the entries of these ACLs, each's by accessor: a statement for 500 ACLs."""
    found: dict[int, dict[str, Permission]] = {}
    wanted = sorted(set(acl_ids))
    for begin in range(0, len(wanted), 500):
        rows = cx.execute(
            sa.select(acl_entries)
            .where(acl_entries.c.acl_id.in_(wanted[begin : begin + 500]))
            .order_by(acl_entries.c.acl_id, acl_entries.c.accessor)
        )
        for row in rows:
            found.setdefault(row.acl_id, {})[row.accessor] = Permission(row.permission)
    return found


def drop(cx: Connection, acl_id: int) -> None:
    """Remove the entries of an ACL."""
    cx.execute(acl_entries.delete().where(acl_entries.c.acl_id == acl_id))


def drop_accessor(cx: Connection, accessor: str) -> list[int]:
    """Remove every entry for this accessor; says of which ACLs."""
    gone = acl_entries.delete().where(acl_entries.c.accessor == accessor).returning(acl_entries.c.acl_id)
    return list(cx.execute(gone).scalars())


def count(cx: Connection, acl_ids: Collection[int], accessors: Collection[str]) -> dict[int, int]:
    """Count the entries of these ACLs for these accessors: one statement, a row for each ACL that has some."""
    counted = (
        sa.select(acl_entries.c.acl_id, sa.func.count())
        .where(acl_entries.c.acl_id.in_(acl_ids), acl_entries.c.accessor.in_(accessors))
        .group_by(acl_entries.c.acl_id)
    )
    return dict(cx.execute(counted).all()) if acl_ids else {}


def permits(acl_id: sa.ColumnElement[int], accessors: Collection[str]) -> sa.ColumnElement[bool]:
    """Ask whether the ACL of a row permits one of the accessors anything."""
    return sa.exists().where(
        acl_entries.c.acl_id == acl_id,
        acl_entries.c.accessor.in_(accessors),
        acl_entries.c.permission > int(Permission.NONE),
    )


def granting(accessors: Collection[str] | sa.BindParameter[Any], least: int | sa.BindParameter[Any]) -> sa.Subquery:
    """Ask for ``acl_id`` and ``permission`` of the entries that give one of the accessors this much."""
    return (
        sa.select(acl_entries.c.acl_id, acl_entries.c.permission)
        .where(acl_entries.c.accessor.in_(accessors), acl_entries.c.permission >= least)
        .subquery("granting")
    )


def highest(acl_id: sa.ColumnElement[int], owner_key: sa.ColumnElement[str]) -> sa.ScalarSelect[Any]:
    """Ask how much the caller may do with the object of a row by its ACL; null where no entry speaks of them.

    Who the caller is, ``speaking_of`` says. That an owner can always read is not in it.
    """
    owned = sa.or_(acl_entries.c.accessor != OWNER, owner_key == sa.bindparam("caller_key"))
    speaking = acl_entries.c.accessor.in_(sa.bindparam("caller_accessors", expanding=True))
    most = sa.select(sa.func.max(acl_entries.c.permission)).where(acl_entries.c.acl_id == acl_id, speaking, owned)
    return most.scalar_subquery()


def speaking_of(principals: Principals) -> dict[str, Any]:
    """Give the parameters of ``highest``."""
    return {"caller_key": principals.key, "caller_accessors": [*sorted(principals.accessors()), OWNER]}


def level(highest: int | None, *, owns: bool) -> Permission:
    """Say how much that is; an owner can always read."""
    return max(Permission(highest or Permission.NONE), Permission.READ if owns else Permission.NONE)


def permission(cx: Connection, acl_id: int, owner_key: str, principals: Principals) -> Permission:
    """Say how much the caller may do with an object of this ACL and owner."""
    return permissions(cx, [(acl_id, owner_key)], principals)[(acl_id, owner_key)]


def permissions(
    cx: Connection, carried: Collection[tuple[int, str]], principals: Principals
) -> dict[tuple[int, str], Permission]:
    """Say how much the caller may do, for each pair of ACL id and owner's key: a statement for 500 ACLs."""
    if principals.administrator:
        return dict.fromkeys(carried, Permission.DELETE)
    entries = of(cx, {acl_id for acl_id, _ in carried})
    keys = principals.accessors()
    return {
        (acl_id, owner_key): _permission(entries.get(acl_id, {}), keys, owns=principals.is_(owner_key))
        for acl_id, owner_key in carried
    }


def _permission(entries: Mapping[str, Permission], keys: frozenset[str], *, owns: bool) -> Permission:
    granted = [permission for accessor, permission in entries.items() if accessor in keys]
    if owns:
        granted += [entries.get(OWNER, Permission.NONE), Permission.READ]
    return max(granted, default=Permission.NONE)
