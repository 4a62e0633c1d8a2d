"""Access control lists (ACLs): who may do how much with the objects that carry one?

An entry gives a permission to an accessor: a user or a group (``name@partition``), the object's owner, or the world. Of
all entries that apply to a caller, the highest permission counts. The owner can always read, and an administrator can
do everything.

The name of an ACL is unique for its owner; two owners may use the same name. A bare name means the caller's own ACL, or
else a common one: a built-in ACL, or one that an administrator made. An ACL that the caller may not see is answered
like one that does not exist.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.clock import Instant
from muniment.db import PreparedStatement
from muniment.naming import fold_name
from muniment.repository import keys
from muniment.repository.permissions import acl_entries, acl_names
from muniment.repository.permissions.acl_names import AclName, AclQuota
from muniment.repository.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.permissions.table import acls
from muniment.repository.refusals import InUse, NameTaken, NotPermitted, QuotaExceeded, UnknownAcl

PRIVATE = "private"
PUBLIC = "public"


class Acl(msgspec.Struct, frozen=True):
    """One ACL. ``id`` is its internal key, ``shown_id`` its public id. A built-in ACL has no owner."""

    id: int
    repository_id: int
    shown_id: str
    name: str
    owner: str
    owner_key: str
    created: Instant
    modified: Instant
    entries: Mapping[str, Permission]


class AclSummary(msgspec.Struct, frozen=True):
    """An ACL in a list.

    If it is ``common``, its name without an owner means this ACL to everybody. ``entries`` is how many of its entries
    the caller sees.
    """

    id: int
    shown_id: str
    name: str
    owner: str
    common: bool
    entries: int
    modified: Instant


_Row: TypeAlias = sa.Row[*tuple[Any, ...]]
_AT_A_TIME = 200


class _Namesake(NamedTuple):
    """An ACL that the name of a carried ACL could mean. ``carried_id`` and ``carried`` are the id and the public id of
    the carried ACL."""

    carried_id: int
    carried: str
    id: int
    shown_id: str
    name: str
    owner: str
    owner_name: str
    owner_key: str
    common: bool | None


_R = TypeVar("_R", _Row, _Namesake)

_BUILT_IN: Mapping[str, Mapping[str, Permission]] = {
    PRIVATE: {OWNER: Permission.DELETE},
    PUBLIC: {OWNER: Permission.DELETE, WORLD: Permission.READ},
}


def initialise(cx: Connection, repository_id: int, now: Instant) -> None:
    """Make the built-in ACLs of a repository, ``private`` and ``public``; existing ones stay as they are."""
    for name, entries in _BUILT_IN.items():
        row = _keep(cx, repository_id, name, ("", ""), entries, now, common=True)
        if row is not None:
            acl_entries.keep(cx, row.id, entries)


def built_in(cx: Connection, repository_id: int, name: str, now: Instant) -> int:
    """Return the id of ``private`` or ``public``; make both if the repository has none yet."""
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
) -> Acl:
    """Make an ACL owned by the caller. An ACL that an administrator makes is common.

    NameTaken reveals only the caller's own ACLs and the built-in ones; to an administrator, also those of other
    administrators. Raises NameTaken, UnknownAccessor, WrongValue, QuotaExceeded.
    """
    acl_names.check(name)
    checked_entries = acl_entries.check(cx, entries, (), principals, now)
    if not principals.administrator:
        _check_quota(cx, repository_id, principals.key, None, len(checked_entries), quota)
    row = None
    if name not in _BUILT_IN:
        row = _keep(
            cx,
            repository_id,
            name,
            (principals.id, principals.key),
            checked_entries,
            now,
            common=principals.administrator,
        )
    if row is None:
        raise NameTaken(f"There is an ACL {name!r} already.")
    acl_entries.keep(cx, row.id, checked_entries)
    return _acl(row, checked_entries)


def change(
    cx: Connection,
    acl: Acl,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: Instant,
    quota: AclQuota = AclQuota(),  # noqa: B008 - it does not change
) -> Acl:
    """Replace an ACL's entries; they hold from the next request on.

    Raises NotPermitted, UnknownAccessor, WrongValue, UnknownAcl, QuotaExceeded (only if entries are added).
    """
    _check_owned(acl, principals)
    checked_entries = acl_entries.check(cx, entries, acl.entries, principals, now)
    if not principals.administrator:
        _check_quota(cx, acl.repository_id, acl.owner_key, acl.id, len(checked_entries), quota)
    update = acls.update().where(acls.c.id == acl.id).values(modified=now, entry_count=len(checked_entries))
    if not cx.execute(update).rowcount:
        raise UnknownAcl(f"There is no ACL {acl.name!r}.")
    acl_entries.drop(cx, acl.id)
    acl_entries.keep(cx, acl.id, checked_entries)
    return msgspec.structs.replace(acl, modified=now, entries=checked_entries)


def remove(cx: Connection, acl: Acl, principals: Principals) -> None:
    """Delete an ACL that no object carries. Raises NotPermitted, InUse."""
    if not acl.owner:
        raise NotPermitted(f"The ACL {acl.name!r} belongs to the repository and stays.")
    _check_owned(acl, principals)
    acl_entries.drop(cx, acl.id)
    try:
        cx.execute(acls.delete().where(acls.c.id == acl.id))
    except IntegrityError as error:
        raise InUse(f"The ACL {acl.name!r} is still on objects.") from error


def find(cx: Connection, repository_id: int, text: str, principals: Principals) -> Acl:
    """Find the ACL that a text names for the caller, with its entries, if they may see it. Raises UnknownAcl."""
    row = _look_up(cx, repository_id, [text], principals).get(text)
    if row is None:
        raise _unknown(text)
    return _acl(row, acl_entries.of(cx, [row.id]).get(row.id, {}))


def find_assignable(cx: Connection, repository_id: int, text: str, principals: Principals) -> int:
    """Return the id of the ACL that a text names for the caller, to put it on an object. Raises UnknownAcl."""
    ids = look_up(cx, repository_id, [text], principals)
    if text not in ids:
        raise _unknown(text)
    return ids[text]


def look_up(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, int]:
    """Return the ids of the ACLs that texts name for the caller, by text: one statement for each 200 texts."""
    return {text: row.id for text, row in _look_up(cx, repository_id, texts, principals).items()}


def shown_name(cx: Connection, acl_id: int, principals: Principals) -> str:
    """Return a text that names an object's ACL for the caller, and that means the same ACL when they send it back.

    This is the bare name, else the owner with the name, else the id. If they may not see the ACL, it is the id.
    """
    return shown_names(cx, [acl_id], principals)[acl_id]


def shown_names(cx: Connection, acl_ids: Collection[int], principals: Principals) -> dict[int, str]:
    """Return for each of these ACLs what ``shown_name`` returns, with one statement for each 200 ACLs."""
    rows_of: dict[int, list[_Namesake]] = {}
    ids = sorted(acl_ids)
    seeing: dict[str, Any] = {"own_key": principals.key}
    if not principals.administrator:
        seeing["accessors"] = sorted(principals.accessors)
    for begin in range(0, len(ids), _AT_A_TIME):
        portion = ids[begin : begin + _AT_A_TIME]
        for row in _NAMESAKES[principals.administrator].all(cx, carried=portion, **seeing):
            namesake = _Namesake(*row)
            rows_of.setdefault(namesake.carried_id, []).append(namesake)
    return {acl_id: _shown_name(acl_id, rows, principals.key) for acl_id, rows in rows_of.items()}


def _shown_name(acl_id: int, rows: Sequence[_Namesake], own_key: str) -> str:
    row_of_acl = next((row for row in rows if row.id == acl_id), None)
    for text in (row_of_acl.name, acl_names.write(row_of_acl.owner, row_of_acl.name)) if row_of_acl else ():
        name = acl_names.read(text)
        if name is not None and _choose(rows, name, own_key) is row_of_acl:
            return str(text)
    return str(rows[0].carried)


def needs_settling(cx: Connection) -> bool:
    """Say whether ``settle`` must still run."""
    return cx.execute(sa.select(acls.c.id).where(acls.c.common.is_(None)).limit(1)).first() is not None


def settle(cx: Connection, repository_id: int, administrators: Collection[str]) -> list[AclSummary]:
    """Decide, once after a migration, which ACLs are common: those whose owners are administrators.

    Returns the others by name: from now on, only their owners can use the bare name.
    """
    administrator_names = {fold_name(administrator) for administrator in administrators}
    still_open = sa.select(acls).where(acls.c.repository_id == repository_id, acls.c.common.is_(None))
    rows = cx.execute(still_open.order_by(acls.c.name, acls.c.shown_id)).all()
    for common in (True, False):
        ids = [row.id for row in rows if (fold_name(row.owner) in administrator_names) is common]
        for begin in range(0, len(ids), _AT_A_TIME):
            portion = acls.c.id.in_(ids[begin : begin + _AT_A_TIME])
            cx.execute(acls.update().where(portion).values(common=common))
    return [
        summary(row, row.entry_count)
        for row in rows
        if fold_name(row.owner) not in administrator_names or not acl_names.is_name(row.name)
    ]


def by_id(cx: Connection, acl_id: int) -> Acl:
    """Read the ACL that an object carries."""
    row = cx.execute(sa.select(acls).where(acls.c.id == acl_id)).one()
    return _acl(row, acl_entries.of(cx, [acl_id]).get(acl_id, {}))


def names(cx: Connection, acl_ids: Collection[int]) -> dict[int, str]:
    """Return the names of these ACLs by id, in one statement. Give it at most the ACLs of one page or batch."""
    return dict(cx.execute(sa.select(acls.c.id, acls.c.name).where(acls.c.id.in_(set(acl_ids)))).all())


def count_by_owner(cx: Connection, owner_keys: Collection[str]) -> dict[int, int]:
    """Count the ACLs that the owners with these keys have in each repository, by its id."""
    rows = sa.select(acls.c.repository_id, sa.func.count()).where(acls.c.owner_key.in_(owner_keys))
    return dict(cx.execute(rows.group_by(acls.c.repository_id)).all())


def give(cx: Connection, repository_id: int, key: str, owner: str, owner_key: str, now: Instant) -> int:
    """Give the ACLs of one key to another owner, and return how many. A name in use gets the ACL's id added."""
    used_names = sa.select(_other_acls.c.name).where(
        _other_acls.c.repository_id == repository_id, _other_acls.c.owner_key == owner_key
    )
    distinct_name = sa.func.substr(acls.c.name, 1, 100) + " " + acls.c.shown_id
    name = sa.case((acls.c.name.in_(used_names), distinct_name), else_=acls.c.name)
    columns = {"owner": owner, "owner_name": fold_name(owner), "owner_key": owner_key, "name": name}
    of_owner = sa.and_(acls.c.repository_id == repository_id, acls.c.owner_key == key)
    return cx.execute(acls.update().where(of_owner).values(modified=now, **columns)).rowcount


def forget(cx: Connection, key: str) -> int:
    """Remove the entries of a removed user or group from every ACL, and return how many ACLs had one."""
    acl_ids = acl_entries.drop_accessor(cx, key)
    cx.execute(acls.update().where(acls.c.id.in_(acl_ids)).values(entry_count=acls.c.entry_count - 1))
    return len(acl_ids)


def permissions_by_acl(
    cx: Connection, repository_id: int, principals: Principals, at_least: Permission
) -> dict[int, Permission]:
    """Return, by ACL, the caller's permission on objects of other owners if it is at least ``at_least``, in one
    statement."""
    rows = _GRANTED.all(cx, accessors=sorted(principals.accessors), least=int(at_least))
    return {acl_id: _PERMISSIONS[level] for acl_id, level, of_repository in rows if of_repository == repository_id}


def acls_with(repository_id: int, principals: Principals, at_least: Permission) -> sa.Select[int]:
    """Make a subquery for the ACLs that give the caller at least this permission on objects of others."""
    giving = acl_entries.granting(sorted(principals.accessors), int(at_least))
    query = sa.select(giving.c.acl_id).join_from(giving, acls, giving.c.acl_id == acls.c.id)
    return query.where(acls.c.repository_id == repository_id).distinct()


def shown_entries(cx: Connection, acl: Acl, principals: Principals, *, every: bool = False) -> dict[str, Permission]:
    """Return, by name, the entries of the ACL that the caller may see.

    Its owner and administrators see all entries, other callers only those that apply to them. With ``every``, it
    returns all entries to any caller: the owner of an object may see all entries of its ACL.
    """
    accessors: Collection[str] = acl.entries
    if not (every or owns(acl.owner_key, principals)):
        accessors = acl.entries.keys() & (principals.accessors | {OWNER})
    visible = {accessor: level for accessor, level in acl.entries.items() if accessor in accessors}
    return acl_entries.by_name(cx, {acl.id: visible})[acl.id]


def _keep(
    cx: Connection,
    repository_id: int,
    name: str,
    owner: tuple[str, str],
    entries: Mapping[str, Permission],
    now: Instant,
    *,
    common: bool,
) -> _Row | None:
    key = _next_key(cx)
    insert = postgresql.insert(acls) if cx.dialect.name == "postgresql" else sqlite.insert(acls)
    return cx.execute(
        insert.values(
            id=key,
            repository_id=repository_id,
            shown_id=f"45{keys.scramble(cx, keys.ACLS, key)}",
            name=name,
            owner=owner[0],
            owner_name=fold_name(owner[0]),
            owner_key=owner[1],
            common=common,
            entry_count=len(entries),
            created=now,
            modified=now,
        )
        .on_conflict_do_nothing()
        .returning(acls)
    ).first()


def _next_key(cx: Connection) -> int:
    if cx.dialect.name == "postgresql":
        return int(cx.execute(sa.text("SELECT nextval(pg_get_serial_sequence('acls', 'id'))")).scalar_one())
    # SQLite has one writer at a time, and the insert moves the sequence on.
    last_key = cx.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'acls'")).scalar()
    return int(last_key or 0) + 1


def _check_quota(
    cx: Connection, repository_id: int, owner_key: str, acl_id: int | None, size: int, quota: AclQuota
) -> None:
    """Raise QuotaExceeded if the owner would have too many ACLs or entries.

    ``acl_id`` is that of the ACL that gets ``size`` entries, or None for a new ACL. Entries that exist already may
    exceed the quota. Until the commit, no other transaction can add ACLs or entries of this owner.
    """
    if cx.dialect.name == "postgresql":
        digest = hashlib.sha256(f"acls {repository_id} {owner_key}".encode()).digest()
        cx.execute(sa.select(sa.func.pg_advisory_xact_lock(int.from_bytes(digest[:8], "big", signed=True))))
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


def _look_up(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, _Row]:
    own_key = principals.key
    row_by_text: dict[str, _Row] = {}
    names_read = [(text, name) for text in dict.fromkeys(texts) if (name := acl_names.read(text)) is not None]
    for begin in range(0, len(names_read), _AT_A_TIME):
        portion = names_read[begin : begin + _AT_A_TIME]
        rows = cx.execute(_candidates(repository_id, [name for _, name in portion], own_key, principals)).all()
        row_by_text.update((text, row) for text, name in portion if (row := _choose(rows, name, own_key)) is not None)
    return row_by_text


def _choose(rows: Sequence[_R], name: AclName, own_key: str) -> _R | None:
    """Choose the ACL that the name means for the caller with this key, among those that they may see."""
    if name.shown_id:
        return next((row for row in rows if row.shown_id == name.shown_id), None)
    same_name = [row for row in rows if row.name == name.name]
    if name.owner:
        of_owner = [row for row in same_name if row.owner_name == fold_name(name.owner)]
        return of_owner[0] if len(of_owner) == 1 else None
    own_row = next((row for row in same_name if row.owner_key == own_key), None)
    return own_row or next((row for row in same_name if row.common), None)


def _candidates(repository_id: int, names: Collection[AclName], own_key: str, principals: Principals) -> sa.Select[Any]:
    ids = [name.shown_id for name in names if name.shown_id]
    bare = [name.name for name in names if name.name and not name.owner]
    in_repository = acls.c.repository_id == repository_id
    # Each way uses a database index of its own, so each names the repository.
    ways = [sa.and_(in_repository, acls.c.shown_id.in_(ids))] if ids else []
    if bare:
        ways.append(sa.and_(in_repository, acls.c.owner_key == own_key, acls.c.name.in_(bare)))
        ways.append(sa.and_(in_repository, acls.c.common, acls.c.name.in_(bare)))
    with_owner = [(fold_name(name.owner), name.name) for name in names if name.owner]
    ways += [sa.and_(in_repository, acls.c.owner_name == owner, acls.c.name == name) for owner, name in with_owner]
    return sa.select(acls).where(sa.or_(*ways), visible_to(principals))


def _namesakes(visible: sa.ColumnElement[bool]) -> PreparedStatement:
    """Make a statement for the visible ACLs that a name of one of ``carried`` could mean for the caller ``own_key``.

    The statement returns at least one row for each ACL of ``carried``.
    """
    carried = acls.alias("carried")
    same = sa.and_(acls.c.repository_id == carried.c.repository_id, acls.c.name == carried.c.name)
    # As in ``_candidates``, each way uses a database index of its own.
    ways = [acls.c.owner_key == sa.bindparam("own_key"), acls.c.owner_name == carried.c.owner_name, acls.c.common]
    columns = (getattr(acls.c, name) for name in _Namesake._fields[2:])
    return PreparedStatement(
        sa.select(carried.c.id, carried.c.shown_id, *columns)
        .select_from(carried.outerjoin(acls, sa.and_(sa.or_(*(sa.and_(same, way) for way in ways)), visible)))
        .where(carried.c.id.in_(sa.bindparam("carried", expanding=True)))
    )


def visible_to(principals: Principals) -> sa.ColumnElement[bool]:
    """Make the condition that the caller may see an ACL: it is theirs, built in, or permits them something."""
    if principals.administrator:
        return sa.true()
    return _visible(principals.key, sorted(principals.accessors))


def _visible(
    own_key: str | sa.BindParameter[str], accessors: Collection[str] | sa.BindParameter[Any]
) -> sa.ColumnElement[bool]:
    own = sa.or_(acls.c.owner_key == "", acls.c.owner_key == own_key)
    return sa.or_(own, acl_entries.permits(acls.c.id, accessors))


def owns(owner_key: str, principals: Principals) -> bool:
    """Say whether the caller sees all entries of this owner's ACL, and may change it."""
    return principals.administrator or principals.is_(owner_key)


def _acl(row: _Row, entries: Mapping[str, Permission]) -> Acl:
    about = row.id, row.repository_id, row.shown_id, row.name, row.owner, row.owner_key, row.created, row.modified
    return Acl(*about, entries)


def summary(row: _Row, entries: int) -> AclSummary:
    """Turn a row with all columns into the ACL that a list shows."""
    return AclSummary(row.id, row.shown_id, row.name, row.owner, bool(row.common), entries, row.modified)


def _unknown(text: str) -> UnknownAcl:
    return UnknownAcl(f"There is no ACL {text[:100]!r}.")


def _check_owned(acl: Acl, principals: Principals) -> None:
    if not owns(acl.owner_key, principals):
        raise NotPermitted(f"Only its owner or an administrator may change the ACL {acl.name!r}.")


_NAMESAKES = {
    True: _namesakes(sa.true()),
    False: _namesakes(_visible(sa.bindparam("own_key"), sa.bindparam("accessors", expanding=True))),
}
"""By whether the caller is an administrator, who sees every ACL."""

_BUILT_IN_ID = PreparedStatement(
    sa.select(acls.c.id).where(
        acls.c.repository_id == sa.bindparam("repository"), acls.c.owner_key == "", acls.c.name == sa.bindparam("name")
    )
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
