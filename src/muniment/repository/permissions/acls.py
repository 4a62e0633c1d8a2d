"""Access control lists: who may do how much with the objects that carry one.

An entry names an accessor: a user or a group (``name@partition``), the object's owner, or the world. Of all
entries that speak of a caller the highest counts; the owner can always read, an administrator can do everything.

A name is one owner's: two owners may use the same. A bare name means the caller's own ACL, else one for everybody: a
built-in one, or one that an administrator made. An ACL that the caller may not see answers like one that is not there.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.clock import Instant
from muniment.db import BigId, repository_tables
from muniment.naming import fold_name
from muniment.repository import keys
from muniment.repository.permissions import acl_entries, acl_names
from muniment.repository.permissions.acl_names import AclName, AclQuota
from muniment.repository.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.refusals import (
    InUse,
    NameTaken,
    NotPermitted,
    QuotaExceeded,
    UnknownAcl,
)

_WHERE_COMMON: dict[str, Any] = {"sqlite_where": sa.text("common = 1"), "postgresql_where": sa.text("common")}

# ``owner_name`` is the owner's folded, which a namesake shares; ``owner_key`` is theirs alone (``bearers``).
# ``common`` marks what a bare name means for everybody; it is open in a migrated folder until ``settle`` says it.
# No key comes back: what the index still has under a deleted ACL must not fall to a new one.
acls = sa.Table(
    "acls",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("shown_id", sa.String(16), nullable=False),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("owner", sa.String(400), nullable=False),
    sa.Column("owner_name", sa.String(400), nullable=False),
    sa.Column("owner_key", sa.String(400), nullable=False),
    sa.Column("common", sa.Boolean, nullable=True),
    sa.Column("entry_count", sa.Integer, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.Index("ix_acls_shown_id", "shown_id", unique=True),
    sa.Index("ix_acls_owner", "repository_id", "owner_key", "name", unique=True),
    sa.Index("ix_acls_owner_name", "repository_id", "owner_name", "name"),
    sa.Index("ix_acls_common", "repository_id", "name", unique=True, **_WHERE_COMMON),
    sa.Index("ix_acls_name", "repository_id", "name", "shown_id"),
    sqlite_autoincrement=True,
)

PRIVATE = "private"
PUBLIC = "public"


class Acl(msgspec.Struct, frozen=True):
    """One ACL: ``id`` is its key within the house, ``shown_id`` the one of the world; no owner if it is built in."""

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
    """An ACL in a list. ``common``: its bare name means it to everybody. ``entries`` counts those the caller sees."""

    id: int
    shown_id: str
    name: str
    owner: str
    common: bool
    entries: int
    modified: Instant


_Row: TypeAlias = sa.Row[*tuple[Any, ...]]
_AT_A_TIME = 200

_BUILT_IN: Mapping[str, Mapping[str, Permission]] = {
    PRIVATE: {OWNER: Permission.DELETE},
    PUBLIC: {OWNER: Permission.DELETE, WORLD: Permission.READ},
}


def initialise(cx: Connection, repository_id: int, now: Instant) -> None:
    """Make the ACLs that every repository has, ``private`` and ``public``; those that exist stay as they are."""
    for name, entries in _BUILT_IN.items():
        made = _keep(cx, repository_id, name, ("", ""), entries, now, common=True)
        if made is not None:
            acl_entries.keep(cx, made.id, entries)


def built_in(cx: Connection, repository_id: int, name: str, now: Instant) -> int:
    """Say the id of ``private`` or ``public``, making them for a repository that has none yet."""
    wanted = sa.select(acls.c.id).where(
        acls.c.repository_id == repository_id, acls.c.owner_key == "", acls.c.name == name
    )
    found = cx.execute(wanted).scalar_one_or_none()
    if found is None:
        initialise(cx, repository_id, now)
        found = cx.execute(wanted).scalar_one()
    return int(found)


def add(
    cx: Connection,
    repository_id: int,
    name: str,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: Instant,
    quota: AclQuota = AclQuota(),  # noqa: B008 - it does not change
) -> Acl:
    """Make an ACL owned by the caller; one that an administrator makes is for everybody to name.

    A clash tells of no ACL but the caller's own, the built-in ones, and to administrators those of each other.
    Raises NameTaken, UnknownAccessor, WrongValue, QuotaExceeded.
    """
    acl_names.check(name)
    checked = acl_entries.check(cx, entries, (), principals, now)
    if not principals.administrator:
        _check_quota(cx, repository_id, principals.key, None, len(checked), quota)
    row = None
    if name not in _BUILT_IN:
        row = _keep(
            cx, repository_id, name, (principals.id, principals.key), checked, now, common=principals.administrator
        )
    if row is None:
        raise NameTaken(f"There is an ACL {name!r} already.")
    acl_entries.keep(cx, row.id, checked)
    return _acl(row, checked)


def change(
    cx: Connection,
    acl: Acl,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: Instant,
    quota: AclQuota = AclQuota(),  # noqa: B008 - it does not change
) -> Acl:
    """Replace an ACL's entries; the very next request obeys.

    Raises NotPermitted, UnknownAccessor, WrongValue, UnknownAcl, QuotaExceeded (only where there are more than before).
    """
    _check_owned(acl, principals)
    checked = acl_entries.check(cx, entries, acl.entries, principals, now)
    if not principals.administrator:
        _check_quota(cx, acl.repository_id, acl.owner_key, acl.id, len(checked), quota)
    written = acls.update().where(acls.c.id == acl.id).values(modified=now, entry_count=len(checked))
    if not cx.execute(written).rowcount:
        raise UnknownAcl(f"There is no ACL {acl.name!r}.")
    acl_entries.drop(cx, acl.id)
    acl_entries.keep(cx, acl.id, checked)
    return msgspec.structs.replace(acl, modified=now, entries=checked)


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
    """Find the ACL that the caller calls so, if he may see it, with its entries. Raises UnknownAcl."""
    row = _called(cx, repository_id, [text], principals).get(text)
    if row is None:
        raise _unknown(text)
    return _acl(row, acl_entries.of(cx, [row.id]).get(row.id, {}))


def find_assignable(cx: Connection, repository_id: int, text: str, principals: Principals) -> int:
    """Say the key of the ACL that the caller calls so, to be put on an object. Raises UnknownAcl."""
    found = look_up(cx, repository_id, [text], principals)
    if text not in found:
        raise _unknown(text)
    return found[text]


def look_up(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, int]:
    """Say the keys of the ACLs that the caller calls so; what he may not see is left out: a statement for 200 texts."""
    return {text: row.id for text, row in _called(cx, repository_id, texts, principals).items()}


def shown_name(cx: Connection, acl_id: int, principals: Principals) -> str:
    """Call the ACL of an object so that the caller, who sends it back, means the same: one statement.

    That is its bare name, else its owner with its name, else its id; the id also where he may not see the ACL itself.
    """
    own = principals.key
    rows = cx.execute(_namesakes(acl_id, own, principals)).all()
    found = next((row for row in rows if row.id == acl_id), None)
    for text in (found.name, acl_names.write(found.owner, found.name)) if found else ():
        name = acl_names.read(text)
        if name is not None and _meant(rows, name, own) is found:
            return str(text)
    return str(rows[0].carried)


def page(
    cx: Connection,
    repository_id: int,
    principals: Principals,
    limit: int,
    *,
    offset: int = 0,
    after: tuple[str, str] = ("", ""),
) -> list[AclSummary]:
    """List by name, then by id, the ACLs the caller may see: his own, the built-in ones, those that speak of him.

    ``after`` is the name and the id of the last one before. Two statements, whose rows are no more than the limit each.
    """
    wanted = (
        sa.select(acls)
        .where(acls.c.repository_id == repository_id, _seen_by(principals))
        .order_by(acls.c.name, acls.c.shown_id)
        .offset(offset)
        .limit(limit)
    )
    if after != ("", ""):
        wanted = wanted.where(sa.tuple_(acls.c.name, acls.c.shown_id) > sa.tuple_(*map(sa.literal, after)))
    rows = cx.execute(wanted).all()
    others = [row.id for row in rows if not _owns(row.owner_key, principals)]
    counts = acl_entries.count(cx, others, principals.accessors() | {OWNER})
    return [
        _listed(row, row.entry_count if _owns(row.owner_key, principals) else counts.get(row.id, 0)) for row in rows
    ]


def count(cx: Connection, repository_id: int, principals: Principals) -> int:
    """Count what ``listed`` lists in all."""
    wanted = sa.select(sa.func.count()).where(acls.c.repository_id == repository_id, _seen_by(principals))
    return int(cx.execute(wanted.select_from(acls)).scalar_one())


def unsettled(cx: Connection) -> bool:
    """Say whether ``settle`` has still to be done."""
    return cx.execute(sa.select(acls.c.id).where(acls.c.common.is_(None)).limit(1)).first() is not None


def settle(cx: Connection, repository_id: int, administrators: Collection[str]) -> list[AclSummary]:
    """Say of the ACLs of a migrated folder which were made by administrators: their names go on for everybody.

    Returns the others, by name: those whose bare name means them to their owners alone from now on. Done once.
    """
    theirs = {fold_name(administrator) for administrator in administrators}
    still_open = sa.select(acls).where(acls.c.repository_id == repository_id, acls.c.common.is_(None))
    rows = cx.execute(still_open.order_by(acls.c.name, acls.c.shown_id)).all()
    for common in (True, False):
        ids = [row.id for row in rows if (fold_name(row.owner) in theirs) is common]
        for begin in range(0, len(ids), _AT_A_TIME):
            some = acls.c.id.in_(ids[begin : begin + _AT_A_TIME])
            cx.execute(acls.update().where(some).values(common=common))
    return [
        _listed(row, row.entry_count)
        for row in rows
        if fold_name(row.owner) not in theirs or not acl_names.is_name(row.name)
    ]


def by_id(cx: Connection, acl_id: int) -> Acl:
    """Read the ACL that an object carries."""
    row = cx.execute(sa.select(acls).where(acls.c.id == acl_id)).one()
    return _acl(row, acl_entries.of(cx, [acl_id]).get(acl_id, {}))


def names(cx: Connection, acl_ids: Collection[int]) -> dict[int, str]:
    """Name these ACLs, of which there are as few as a page or a batch has objects: one statement."""
    return dict(cx.execute(sa.select(acls.c.id, acls.c.name).where(acls.c.id.in_(set(acl_ids)))).all())


def count_by_owner(cx: Connection, owner_keys: Collection[str]) -> dict[int, int]:
    """Count the ACLs under these owners' keys, by the number of the repository."""
    rows = sa.select(acls.c.repository_id, sa.func.count()).where(acls.c.owner_key.in_(owner_keys))
    return dict(cx.execute(rows.group_by(acls.c.repository_id)).all())


def give(cx: Connection, repository_id: int, key: str, owner: str, owner_key: str, now: Instant) -> int:
    """Make one owner's ACLs another's; where they have one of that name, its id goes with the name. Says how many."""
    used = sa.select(_others.c.name).where(_others.c.repository_id == repository_id, _others.c.owner_key == owner_key)
    apart = sa.func.substr(acls.c.name, 1, 100) + " " + acls.c.shown_id
    name = sa.case((acls.c.name.in_(used), apart), else_=acls.c.name)
    columns = {"owner": owner, "owner_name": fold_name(owner), "owner_key": owner_key, "name": name}
    theirs = sa.and_(acls.c.repository_id == repository_id, acls.c.owner_key == key)
    return cx.execute(acls.update().where(theirs).values(modified=now, **columns)).rowcount


def forget(cx: Connection, key: str) -> int:
    """Take a removed user or group out of every ACL; says out of how many."""
    of = acl_entries.drop_accessor(cx, key)
    cx.execute(acls.update().where(acls.c.id.in_(of)).values(entry_count=acls.c.entry_count - 1))
    return len(of)


def granted(cx: Connection, repository_id: int, principals: Principals, at_least: Permission) -> dict[int, Permission]:
    """Say how much each ACL lets the caller do with objects he does not own, if it is this much: one statement."""
    wanted = {"accessors": sorted(principals.accessors()), "least": int(at_least)}
    found = cx.execute(_GRANTED, wanted).all()
    return {acl_id: _PERMISSIONS[most] for acl_id, most, within in found if within == repository_id}


def acls_with(repository_id: int, principals: Principals, at_least: Permission) -> sa.Select[int]:
    """Ask for the ACLs that let the caller do this much with objects he does not own, to stand inside a query."""
    giving = acl_entries.granting(sorted(principals.accessors()), int(at_least))
    joined = sa.select(giving.c.acl_id).join_from(giving, acls, giving.c.acl_id == acls.c.id)
    return joined.where(acls.c.repository_id == repository_id).distinct()


def shown_entries(cx: Connection, acl: Acl, principals: Principals, *, whole: bool = False) -> dict[str, Permission]:
    """List by name the entries the caller may see: all for its owner and administrators, else those that speak of them.

    ``whole`` shows them all: to the owner of an object that carries the ACL.
    """
    view: Collection[str] = acl.entries
    if not (whole or _owns(acl.owner_key, principals)):
        view = acl.entries.keys() & (principals.accessors() | {OWNER})
    shown = {accessor: level for accessor, level in acl.entries.items() if accessor in view}
    return acl_entries.by_name(cx, {acl.id: shown})[acl.id]


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
    # One writer at a time, and what is inserted moves the sequence on.
    last = cx.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'acls'")).scalar()
    return int(last or 0) + 1


def _check_quota(
    cx: Connection, repository_id: int, owner_key: str, changed: int | None, size: int, quota: AclQuota
) -> None:
    """Raise QuotaExceeded where the owner would have more than they may; until the commit nobody else adds to theirs.

    ``changed`` is the ACL that is to have ``size`` entries, None for a new one. What is there already stays.
    """
    if cx.dialect.name == "postgresql":
        digest = hashlib.sha256(f"acls {repository_id} {owner_key}".encode()).digest()
        cx.execute(sa.select(sa.func.pg_advisory_xact_lock(int.from_bytes(digest[:8], "big", signed=True))))
    present = sa.case((acls.c.id == changed, acls.c.entry_count), else_=0)
    count, entries, before = cx.execute(
        sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(acls.c.entry_count), 0),
            sa.func.coalesce(sa.func.sum(present), 0),
        ).where(acls.c.repository_id == repository_id, acls.c.owner_key == owner_key)
    ).one()
    if changed is None and count >= quota.acls:
        raise QuotaExceeded(f"You own {count} ACLs; one user may own {quota.acls}.")
    if size > before and entries - before + size > quota.entries:
        raise QuotaExceeded(f"Your ACLs have {entries} entries together; those of one user may have {quota.entries}.")


def _called(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, _Row]:
    own = principals.key
    found: dict[str, _Row] = {}
    read = [(text, name) for text in dict.fromkeys(texts) if (name := acl_names.read(text)) is not None]
    for begin in range(0, len(read), _AT_A_TIME):
        some = read[begin : begin + _AT_A_TIME]
        rows = cx.execute(_candidates(repository_id, [name for _, name in some], own, principals)).all()
        found.update((text, row) for text, name in some if (row := _meant(rows, name, own)) is not None)
    return found


def _meant(rows: Sequence[_Row], name: AclName, own: str) -> _Row | None:
    """Choose what the name means to the caller of this key, of the ACLs that he may see."""
    if name.shown_id:
        return next((row for row in rows if row.shown_id == name.shown_id), None)
    find = [row for row in rows if row.name == name.name]
    if name.owner:
        theirs = [row for row in find if row.owner_name == fold_name(name.owner)]
        return theirs[0] if len(theirs) == 1 else None
    owned = next((row for row in find if row.owner_key == own), None)
    return owned or next((row for row in find if row.common), None)


def _candidates(repository_id: int, names: Collection[AclName], own: str, principals: Principals) -> sa.Select[Any]:
    ids = [name.shown_id for name in names if name.shown_id]
    bare = [name.name for name in names if name.name and not name.owner]
    within = acls.c.repository_id == repository_id
    # Each way is looked up by an index of its own: so each says the repository for itself.
    ways = [sa.and_(within, acls.c.shown_id.in_(ids))] if ids else []
    if bare:
        ways.append(sa.and_(within, acls.c.owner_key == own, acls.c.name.in_(bare)))
        ways.append(sa.and_(within, acls.c.common, acls.c.name.in_(bare)))
    owned = [(fold_name(name.owner), name.name) for name in names if name.owner]
    ways += [sa.and_(within, acls.c.owner_name == owner, acls.c.name == name) for owner, name in owned]
    return sa.select(acls).where(sa.or_(*ways), _seen_by(principals))


def _namesakes(acl_id: int, own: str, principals: Principals) -> sa.Select[Any]:
    """Ask for the ACLs that a name of this one could mean to the caller, as far as he may see them; never for nothing.

    Each row says the id of the one in question as ``carried``.
    """
    carried = acls.alias("carried")
    same = sa.and_(acls.c.repository_id == carried.c.repository_id, acls.c.name == carried.c.name)
    # As in ``_candidates``, each way is looked up by an index of its own.
    ways = [acls.c.owner_key == own, acls.c.owner_name == carried.c.owner_name, acls.c.common]
    namesake = sa.and_(sa.or_(*(sa.and_(same, way) for way in ways)), _seen_by(principals))
    return (
        sa.select(acls, carried.c.shown_id.label("carried"))
        .select_from(carried.outerjoin(acls, namesake))
        .where(carried.c.id == acl_id)
    )


def _seen_by(principals: Principals) -> sa.ColumnElement[bool]:
    """Ask whether the caller may see an ACL: his own, a built-in one, or one that permits him something."""
    if principals.administrator:
        return sa.true()
    speaks = acl_entries.permits(acls.c.id, sorted(principals.accessors()))
    return sa.or_(acls.c.owner_key.in_(["", principals.key]), speaks)


def _owns(owner_key: str, principals: Principals) -> bool:
    """Say whether the caller sees all entries of this owner's ACL, and may change it."""
    return principals.administrator or principals.is_(owner_key)


def _acl(row: _Row, entries: Mapping[str, Permission]) -> Acl:
    about = row.id, row.repository_id, row.shown_id, row.name, row.owner, row.owner_key, row.created, row.modified
    return Acl(*about, entries)


def _listed(row: _Row, entries: int) -> AclSummary:
    return AclSummary(row.id, row.shown_id, row.name, row.owner, bool(row.common), entries, row.modified)


def _unknown(text: str) -> UnknownAcl:
    return UnknownAcl(f"There is no ACL {text[:100]!r}.")


def _check_owned(acl: Acl, principals: Principals) -> None:
    if not _owns(acl.owner_key, principals):
        raise NotPermitted(f"Only its owner or an administrator may change the ACL {acl.name!r}.")


_others = acls.alias()
_PERMISSIONS = {int(permission): permission for permission in Permission}

# The repository is told apart afterwards: asked for it, SQLite looks at each ACL instead of the caller's entries.
_GIVING = acl_entries.granting(sa.bindparam("accessors", expanding=True), sa.bindparam("least"))
_GRANTED = (
    sa.select(_GIVING.c.acl_id, sa.func.max(_GIVING.c.permission), acls.c.repository_id)
    .join_from(_GIVING, acls, _GIVING.c.acl_id == acls.c.id)
    .group_by(_GIVING.c.acl_id, acls.c.repository_id)
)
