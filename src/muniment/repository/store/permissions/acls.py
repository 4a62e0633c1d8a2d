"""Access control lists (ACLs): who may do how much with the objects that carry one?

The owner can always read, and an administrator can do everything.

A bare name means the caller's own ACL, or else a common one: built in, or made by an administrator. An ACL that the
caller may not see is answered like one that does not exist.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.audit import select_rights
from muniment.database.connections import PreparedStatement, portions
from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository import audit
from muniment.repository.refusals import InUse, NameTaken, NotPermitted, QuotaExceeded, UnknownAcl
from muniment.repository.store import named_locks
from muniment.repository.store.filters import sql
from muniment.repository.store.permissions import acl_entries, acl_look_up, acl_names, acl_rows, unnamed_acls
from muniment.repository.store.permissions.acl_names import AclQuota
from muniment.repository.store.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.store.permissions.table import acls

PRIVATE = "private"
PUBLIC = "public"


class Acl(msgspec.Struct, frozen=True):
    """``id`` is internal, ``shown_id`` public; a built-in ACL has no owner."""

    id: int
    repository_id: int
    shown_id: str
    name: str
    owner: str
    owner_key: str
    created: Instant
    modified: Instant
    entries: Mapping[str, Permission]
    description: str = ""


class AclSummary(msgspec.Struct, frozen=True):
    """A ``common`` ACL is meant by its bare name, except by who owns one of that name. ``entries`` is how many the
    caller sees.
    """

    id: int
    shown_id: str
    name: str
    owner: str
    common: bool
    entries: int
    created: Instant
    modified: Instant
    description: str = ""


BUILT_IN: Mapping[str, Mapping[str, Permission]] = {
    PRIVATE: {OWNER: Permission.DELETE},
    PUBLIC: {OWNER: Permission.DELETE, WORLD: Permission.READ},
}
"""The entries of the ACLs that every repository has, by their names."""


def initialise(cx: Connection, repository_id: int, now: Instant) -> None:
    for name, entries in BUILT_IN.items():
        acl_rows.insert(cx, repository_id, name, ("", ""), entries, now, common=True)


def built_in(cx: Connection, repository_id: int, name: str, now: Instant) -> int:
    """Return ``private`` or ``public``, made if missing."""
    row = _BUILT_IN_ID.first(cx, repository=repository_id, name=name)
    if row is None:
        initialise(cx, repository_id, now)
        (row,) = _BUILT_IN_ID.all(cx, repository=repository_id, name=name)
    return int(row[0])


def add(
    cx: Connection,
    repository_id: int,
    name: str,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: Instant,
    quota: AclQuota = AclQuota(),  # noqa: B008 - it does not change
    *,
    description: str = "",
) -> Acl:
    """Make an ACL of the caller; an administrator's is common.

    NameTaken reveals only the caller's own and built-in ACLs; to an administrator, also those of other administrators.

    Raises NameTaken, UnknownAccessor, WrongValue, QuotaExceeded.
    """
    acl_names.check(name)
    acl_names.check_description(description)
    checked_entries = acl_entries.check(cx, entries, (), principals, now)
    if not principals.administrator:
        _check_quota(cx, repository_id, principals.key, None, len(checked_entries), quota)
    row = None
    if name not in BUILT_IN:
        row = acl_rows.insert(
            cx,
            repository_id,
            name,
            (principals.id, principals.key),
            checked_entries,
            now,
            common=principals.administrator,
            description=description,
        )
    if row is None:
        raise NameTaken(f"There is an ACL {name!r} already.")
    return _acl(row, checked_entries)


def change(
    cx: Connection,
    acl: Acl,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: Instant,
    quota: AclQuota = AclQuota(),  # noqa: B008 - it does not change
) -> Acl:
    """Replace the entries from the next request on.

    Raises NotPermitted, UnknownAccessor, WrongValue, UnknownAcl, QuotaExceeded (only if entries are added).
    """
    _check_owned(acl, principals)
    checked_entries = acl_entries.check(cx, entries, acl.entries, principals, now)
    if not principals.administrator:
        _check_quota(cx, acl.repository_id, acl.owner_key, acl.id, len(checked_entries), quota)
    update = acls.update().where(acls.c.id == acl.id).values(modified=now, entry_count=len(checked_entries))
    if not cx.execute(update).rowcount:
        raise UnknownAcl(f"There is no ACL {acl.name!r}.")
    former_entries = acl_entries.entries_of(cx, [acl.id]).get(acl.id, {})
    acl_entries.drop(cx, [acl.id])
    acl_entries.keep_entries(cx, acl.id, checked_entries)
    before, after = acl_entries.levels(former_entries), acl_entries.levels(checked_entries)
    if rights := acl_entries.changed_rights(acl.shown_id, before, after):
        changed = {right.subject for right in rights}
        audit.record(
            cx,
            "acl changed",
            acl_rows.target_of(acl),
            {accessor: level for accessor, level in before.items() if accessor in changed},
            {accessor: level for accessor, level in after.items() if accessor in changed},
            rights=rights,
        )
    return msgspec.structs.replace(acl, modified=now, entries=checked_entries)


def describe(cx: Connection, acl: Acl, principals: Principals, description: str, now: Instant) -> Acl:
    """Give an ACL another description. Raises NotPermitted, WrongValue."""
    _check_owned(acl, principals)
    acl_names.check_description(description)
    cx.execute(acls.update().where(acls.c.id == acl.id).values(modified=now, description=description or None))
    if description != acl.description:
        former, new = {"description": acl.description}, {"description": description}
        audit.record(cx, "acl described", acl_rows.target_of(acl), former, new)
    return msgspec.structs.replace(acl, modified=now, description=description)


def remove(cx: Connection, acl: Acl, principals: Principals) -> None:
    """Remove an ACL that no object carries, and no folder has as its default.

    Raises NotPermitted, InUse.
    """
    if not acl.owner:
        raise NotPermitted(f"The ACL {acl.name!r} belongs to the repository and stays.")
    _check_owned(acl, principals)
    try:
        acl_rows.remove(cx, [acl.id])
    except IntegrityError as error:
        raise InUse(f"The ACL {acl.name!r} is still on objects, or the default of folders.") from error


def find(cx: Connection, repository_id: int, text: str, principals: Principals) -> Acl:
    """Raises UnknownAcl, also if the caller may not see the ACL."""
    row = acl_look_up.rows_named(cx, repository_id, [text], principals).get(text)
    if row is None:
        raise _unknown(text)
    return _acl(row, acl_entries.entries_of(cx, [row.id]).get(row.id, {}))


def find_assignable(cx: Connection, repository_id: int, text: str, principals: Principals) -> int:
    """Raises UnknownAcl."""
    ids = look_up(cx, repository_id, [text], principals)
    if text not in ids:
        raise _unknown(text)
    return ids[text]


def look_up(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, int]:
    """Send one statement for each 200 texts."""
    return {text: row.id for text, row in acl_look_up.rows_named(cx, repository_id, texts, principals).items()}


def by_id(cx: Connection, acl_id: int) -> Acl:
    """No rights are checked."""
    row = cx.execute(sa.select(acls).where(acls.c.id == acl_id)).one()
    return _acl(row, acl_entries.entries_of(cx, [acl_id]).get(acl_id, {}))


def names(cx: Connection, acl_ids: Collection[int]) -> dict[int, str]:
    """Name the ACLs of one page or batch, with one statement for each 500; an unnamed ACL has an empty name."""
    rows = [row for some in portions(set(acl_ids)) for row in _NAMES.all(cx, acl_ids=some)]
    return {acl_id: "" if owner_key == acl_look_up.UNNAMED else name for acl_id, name, owner_key in rows}


def count_by_owner(cx: Connection, owner_keys: Collection[str]) -> dict[int, int]:
    """Count the ACLs of all these owners together, by the repository's id."""
    rows = sa.select(acls.c.repository_id, sa.func.count()).where(acls.c.owner_key.in_(owner_keys))
    return dict(cx.execute(rows.group_by(acls.c.repository_id)).all())


def give(cx: Connection, repository_id: int, key: str, owner: str, owner_key: str, now: Instant) -> int:
    """Return how many were given; if the new owner has the name already, the id extends it."""
    used_names = sa.select(_other_acls.c.name).where(
        _other_acls.c.repository_id == repository_id, _other_acls.c.owner_key == owner_key
    )
    distinct_name = sa.func.substr(acls.c.name, 1, 100) + " " + acls.c.shown_id
    name = sa.case((acls.c.name.in_(used_names), distinct_name), else_=acls.c.name)
    columns = {"owner": owner, "owner_name": fold_name(owner), "owner_key": owner_key, "name": name}
    of_owner = sa.and_(acls.c.repository_id == repository_id, acls.c.owner_key == key)
    if count_where(cx, of_owner):
        given = select_rights("acl owner", owner_key, acls.c.shown_id, acls.c.owner_key, owner_key).where(of_owner)
        audit.record(cx, "acls given", audit.Target("user", owner), {"from": key}, {"to": owner_key}, rights=[given])
    return cx.execute(acls.update().where(of_owner).values(modified=now, **columns)).rowcount


def forget(cx: Connection, key: str) -> int:
    """Remove a removed user or group from all ACLs; return how many had an entry."""
    if count := acl_entries.count_acls(cx, key):
        ended = [acl_entries.rights_of(key)]
        audit.record(cx, "removed from acls", audit.Target("person", key), {"acls": count}, rights=ended)
    acl_ids = acl_entries.drop_accessor(cx, key)
    cx.execute(acls.update().where(acls.c.id.in_(acl_ids)).values(entry_count=acls.c.entry_count - 1))
    unnamed_acls.keep_apart(cx, acl_ids)
    return len(acl_ids)


def permissions_by_acl(
    cx: Connection, repository_id: int, principals: Principals, at_least: Permission
) -> dict[int, Permission]:
    """Return permissions on objects of other owners, in one statement."""
    rows = _GRANTED.all(cx, accessors=sorted(principals.accessors), least=int(at_least))
    return {acl_id: _PERMISSIONS[level] for acl_id, level, of_repository in rows if of_repository == repository_id}


def acls_with_names(
    repository_id: int, principals: Principals, test: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]]
) -> sa.Select[int]:
    """Make a query for the ids of those ACLs that the caller may see, and whose folded name meets a test, with the
    owner before it or without.
    """
    whole = acls.c.owner_name + "/" + acls.c.name
    named = sa.or_(test(sql.plain_folded(acls.c.name)), test(sql.plain_folded(whole)))
    return sa.select(acls.c.id).where(acls.c.repository_id == repository_id, acl_look_up.visible_to(principals), named)


def acls_with_owner(
    repository_id: int, principals: Principals, test: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]]
) -> sa.Select[int]:
    """Make a query for the ids of those ACLs that the caller may see, and whose owner's folded name meets a test."""
    return sa.select(acls.c.id).where(
        acls.c.repository_id == repository_id, acl_look_up.visible_to(principals), test(acls.c.owner_name)
    )


def shown_entries(cx: Connection, acl: Acl, principals: Principals, *, every: bool = False) -> dict[str, Permission]:
    """Its owner and administrators see all entries, others only those that can apply to them. With ``every``, all: the
    owner of an object may see all entries of its ACL.
    """
    accessors: Collection[str] = acl.entries
    if not (every or owns(acl.owner_key, principals)):
        accessors = acl.entries.keys() & (principals.accessors | {OWNER})
    visible = {accessor: level for accessor, level in acl.entries.items() if accessor in accessors}
    return acl_entries.by_name(cx, {acl.id: visible})[acl.id]


def _check_quota(
    cx: Connection, repository_id: int, owner_key: str, acl_id: int | None, size: int, quota: AclQuota
) -> None:
    """Let ``acl_id``, or a new ACL, get ``size`` entries.

    One that gets no more than it has is never refused.

    Until the commit, no other transaction that calls this can add ACLs or entries of this owner.
    """
    named_locks.take(cx, f"acls {repository_id} {owner_key}")
    present = sa.case((acls.c.id == acl_id, acls.c.entry_count), else_=0)
    count, entries, former_size = cx.execute(
        sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(acls.c.entry_count), 0),
            sa.func.coalesce(sa.func.sum(present), 0),
        ).where(acls.c.repository_id == repository_id, acls.c.owner_key == owner_key)
    ).one()
    if acl_id is None and count >= quota.acls:
        raise QuotaExceeded(f"You own {count} ACLs; one user may own {quota.acls}.")
    if size > former_size and entries - former_size + size > quota.entries:
        raise QuotaExceeded(f"Your ACLs have {entries} entries together; those of one user may have {quota.entries}.")


def owns(owner_key: str, principals: Principals) -> bool:
    return principals.administrator or principals.is_(owner_key)


def _acl(row: acl_look_up.Row, entries: Mapping[str, Permission]) -> Acl:
    about = row.id, row.repository_id, row.shown_id, row.name, row.owner, row.owner_key, row.created, row.modified
    return Acl(*about, entries, row.description or "")


def summary(row: acl_look_up.Row, entries: int) -> AclSummary:
    return AclSummary(
        row.id,
        row.shown_id,
        row.name,
        row.owner,
        row.common,
        entries,
        row.created,
        row.modified,
        row.description or "",
    )


def _unknown(text: str) -> UnknownAcl:
    return UnknownAcl(f"There is no ACL {text[:100]!r}.")


def _check_owned(acl: Acl, principals: Principals) -> None:
    if not owns(acl.owner_key, principals):
        raise NotPermitted(f"Only its owner or an administrator may change the ACL {acl.name!r}.")


_BUILT_IN_ID = PreparedStatement(
    sa.select(acls.c.id).where(
        acls.c.repository_id == sa.bindparam("repository"), acls.c.owner_key == "", acls.c.name == sa.bindparam("name")
    )
)
_NAMES = PreparedStatement(
    sa.select(acls.c.id, acls.c.name, acls.c.owner_key).where(acls.c.id.in_(sa.bindparam("acl_ids", expanding=True)))
)
_other_acls = acls.alias()
_PERMISSIONS = {int(permission): permission for permission in Permission}

# The repository is compared afterwards: in the query, SQLite would read every ACL instead of the caller's entries.
_GIVING = acl_entries.granting(sa.bindparam("accessors", expanding=True), sa.bindparam("least"))
_GRANTED = PreparedStatement(
    sa.select(_GIVING.c.acl_id, sa.func.max(_GIVING.c.permission), acls.c.repository_id)
    .join_from(_GIVING, acls, _GIVING.c.acl_id == acls.c.id)
    .group_by(_GIVING.c.acl_id, acls.c.repository_id)
)
