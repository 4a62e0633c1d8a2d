"""Access control lists: who may do how much with the objects that carry one.

An entry names an accessor: a user or a group (``name@partition``), the object's owner, or the world. Of all
entries that speak of a caller the highest counts; the owner can always read, an administrator can do everything.
"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.db import BigId, Instant, repository_tables
from muniment.repository.refusals import InUse, NameTaken, NotPermitted, UnknownAccessor, UnknownAcl, WrongValue

acls = sa.Table(
    "acls",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("owner", sa.String(400), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("repository_id", "name"),
)

acl_entries = sa.Table(
    "acl_entries",
    repository_tables,
    sa.Column("acl_id", sa.ForeignKey("acls.id"), primary_key=True),
    sa.Column("accessor", sa.String(400), primary_key=True),
    sa.Column("permission", sa.SmallInteger, nullable=False),
    sa.Index("ix_acl_entries_accessor", "accessor", "permission", "acl_id"),
)

OWNER = "owner"
WORLD = "world"

PRIVATE = "private"
PUBLIC = "public"

MAX_ENTRIES = 1000
"""Most entries of one ACL."""


class Permission(IntEnum):
    """How much an accessor may do; each includes those below it (repository.md 8.7)."""

    NONE = 1
    BROWSE = 2
    READ = 3
    RELATE = 4
    VERSION = 5
    WRITE = 6
    DELETE = 7


class Principals(msgspec.Struct, frozen=True):
    """A caller: his user id, the groups he is in however deep, and whether he administers the repository."""

    id: str
    groups: frozenset[str] = frozenset()
    administrator: bool = False

    def accessors(self) -> frozenset[str]:
        """Name every accessor that speaks of him: himself, his groups, the world."""
        named = (accessor_key(name) for name in (self.id, *self.groups) if "@" in name)
        return frozenset((*named, WORLD))

    def is_(self, owner: str) -> bool:
        """Say whether he is this owner."""
        return accessor_key(self.id) == accessor_key(owner)


class Acl(msgspec.Struct, frozen=True):
    """One ACL. ``owner`` is empty for those the repository was made with."""

    id: int
    repository_id: int
    name: str
    owner: str
    created: Instant
    modified: Instant
    entries: Mapping[str, Permission]


_BUILT_IN: Mapping[str, Mapping[str, Permission]] = {
    PRIVATE: {OWNER: Permission.DELETE},
    PUBLIC: {OWNER: Permission.DELETE, WORLD: Permission.READ},
}


def accessor_key(accessor: str) -> str:
    """Spell a user id, a group id, ``owner`` or ``world`` as it is stored and compared."""
    if accessor.isascii():
        return accessor.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", accessor).casefold())


def initialise(cx: Connection, repository_id: int, now: Instant) -> None:
    """Make the ACLs that every repository has, ``private`` and ``public``; those that exist stay as they are."""
    for name, entries in _BUILT_IN.items():
        made = cx.execute(
            _insert(cx)
            .values(repository_id=repository_id, name=name, owner="", created=now, modified=now)
            .on_conflict_do_nothing()
            .returning(acls.c.id)
        ).scalar_one_or_none()
        if made is not None:
            _write_entries(cx, made, entries)


def built_in(cx: Connection, repository_id: int, name: str, now: Instant) -> int:
    """Say the id of ``private`` or ``public``, making them for a repository that has none yet."""
    wanted = sa.select(acls.c.id).where(acls.c.repository_id == repository_id, acls.c.name == name)
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
) -> Acl:
    """Make an ACL owned by the caller. Raises NameTaken, UnknownAccessor, WrongValue."""
    _check_name(name)
    checked = _checked_entries(entries)
    row = cx.execute(
        _insert(cx)
        .values(repository_id=repository_id, name=name, owner=principals.id, created=now, modified=now)
        .on_conflict_do_nothing()
        .returning(acls)
    ).first()
    if row is None:
        raise NameTaken(f"There is an ACL {name!r} already.")
    _write_entries(cx, row.id, checked)
    return _acl(row, checked)


def change(cx: Connection, acl: Acl, principals: Principals, entries: Mapping[str, Permission], now: Instant) -> Acl:
    """Replace an ACL's entries; the very next request obeys. Raises NotPermitted, UnknownAccessor, WrongValue."""
    _check_owned(acl, principals)
    checked = _checked_entries(entries)
    locked = cx.execute(acls.update().where(acls.c.id == acl.id).values(modified=now)).rowcount
    if not locked:
        raise UnknownAcl(f"There is no ACL {acl.name!r}.")
    cx.execute(acl_entries.delete().where(acl_entries.c.acl_id == acl.id))
    _write_entries(cx, acl.id, checked)
    return msgspec.structs.replace(acl, modified=now, entries=checked)


def remove(cx: Connection, acl: Acl, principals: Principals) -> None:
    """Delete an ACL that no object carries. Raises NotPermitted, InUse."""
    if not acl.owner:
        raise NotPermitted(f"The ACL {acl.name!r} belongs to the repository and stays.")
    _check_owned(acl, principals)
    cx.execute(acl_entries.delete().where(acl_entries.c.acl_id == acl.id))
    try:
        cx.execute(acls.delete().where(acls.c.id == acl.id))
    except IntegrityError as error:
        raise InUse(f"The ACL {acl.name!r} is still on objects.") from error


def named(cx: Connection, repository_id: int, name: str, principals: Principals) -> Acl:
    """Find an ACL that the caller may see. Raises UnknownAcl."""
    wanted = sa.select(acls).where(acls.c.repository_id == repository_id, acls.c.name == name)
    row = cx.execute(wanted).first() if _is_name(name) else None
    if row is not None:
        acl = _acl(row, _entries(cx, [row.id]).get(row.id, {}))
        if _seen(acl, principals):
            return acl
    raise UnknownAcl(f"There is no ACL {name[:100]!r}.")


def every(cx: Connection, repository_id: int, principals: Principals) -> list[Acl]:
    """List by name the ACLs the caller may see: his own, the repository's, those that speak of him."""
    rows = cx.execute(sa.select(acls).where(acls.c.repository_id == repository_id).order_by(acls.c.name)).all()
    entries = _entries(cx, [row.id for row in rows])
    found = (_acl(row, entries.get(row.id, {})) for row in rows)
    return [acl for acl in found if _seen(acl, principals)]


def by_id(cx: Connection, acl_id: int) -> Acl:
    """Read the ACL that an object carries."""
    row = cx.execute(sa.select(acls).where(acls.c.id == acl_id)).one()
    return _acl(row, _entries(cx, [acl_id]).get(acl_id, {}))


def names(cx: Connection, acl_ids: Collection[int]) -> dict[int, str]:
    """Name these ACLs."""
    found: dict[int, str] = {}
    wanted = sorted(set(acl_ids))
    for begin in range(0, len(wanted), 500):
        rows = cx.execute(sa.select(acls.c.id, acls.c.name).where(acls.c.id.in_(wanted[begin : begin + 500])))
        found.update((row.id, row.name) for row in rows)
    return found


def permission(cx: Connection, acl_id: int, owner: str, principals: Principals) -> Permission:
    """Say how much the caller may do with an object of this ACL and owner."""
    return permissions(cx, [(acl_id, owner)], principals)[(acl_id, owner)]


def permissions(
    cx: Connection, carried: Collection[tuple[int, str]], principals: Principals
) -> dict[tuple[int, str], Permission]:
    """Say how much the caller may do, for each pair of ACL id and owner, in as few statements as there are 500 ACLs."""
    if principals.administrator:
        return dict.fromkeys(carried, Permission.DELETE)
    entries = _entries(cx, {acl_id for acl_id, _ in carried})
    keys = principals.accessors()
    return {
        (acl_id, owner): _permission(entries.get(acl_id, {}), keys, owns=principals.is_(owner))
        for acl_id, owner in carried
    }


def granted(cx: Connection, repository_id: int, principals: Principals, at_least: Permission) -> dict[int, Permission]:
    """Say how much each ACL lets the caller do with objects he does not own, if it is this much: one statement."""
    wanted = {"accessors": sorted(principals.accessors()), "least": int(at_least)}
    found = cx.execute(_GRANTED, wanted).all()
    return {acl_id: _PERMISSIONS[most] for acl_id, most, within in found if within == repository_id}


def acls_with(repository_id: int, principals: Principals, at_least: Permission) -> sa.Select[int]:
    """Ask for the ACLs that let the caller do this much with objects he does not own, to stand inside a query."""
    return (
        sa.select(acl_entries.c.acl_id)
        .join_from(acl_entries, acls)
        .where(
            acl_entries.c.accessor.in_(sorted(principals.accessors())),
            acl_entries.c.permission >= int(at_least),
            acls.c.repository_id == repository_id,
        )
        .distinct()
    )


def shown_entries(acl: Acl, principals: Principals) -> dict[str, Permission]:
    """List the entries the caller may see: all for its owner and administrators, else those that speak of him."""
    if principals.administrator or principals.is_(acl.owner):
        return dict(acl.entries)
    told = principals.accessors() | {OWNER}
    return {accessor: permission for accessor, permission in acl.entries.items() if accessor in told}


def _insert(cx: Connection) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(acls) if cx.dialect.name == "postgresql" else sqlite.insert(acls)


def _acl(row: sa.Row[*tuple[object, ...]], entries: Mapping[str, Permission]) -> Acl:
    return Acl(row.id, row.repository_id, row.name, row.owner, row.created, row.modified, entries)


def _permission(entries: Mapping[str, Permission], keys: frozenset[str], *, owns: bool) -> Permission:
    granted = [permission for accessor, permission in entries.items() if accessor in keys]
    if owns:
        granted += [entries.get(OWNER, Permission.NONE), Permission.READ]
    return max(granted, default=Permission.NONE)


def _seen(acl: Acl, principals: Principals) -> bool:
    if principals.administrator or not acl.owner or principals.is_(acl.owner):
        return True
    return any(
        accessor in principals.accessors() and level > Permission.NONE for accessor, level in acl.entries.items()
    )


def _check_owned(acl: Acl, principals: Principals) -> None:
    if not principals.administrator and not (acl.owner and principals.is_(acl.owner)):
        raise NotPermitted(f"Only its owner or an administrator may change the ACL {acl.name!r}.")


def _check_name(name: str) -> None:
    if not _is_name(name):
        raise WrongValue("An ACL's name has 1 to 120 printable characters, no '/' and no space at either end.")


def _is_name(name: str) -> bool:
    printable = all(unicodedata.category(character)[0] not in "CZ" or character == " " for character in name)
    return 0 < len(name) <= 120 and name == name.strip() and "/" not in name and printable


def _checked_entries(entries: Mapping[str, Permission]) -> dict[str, Permission]:
    if len(entries) > MAX_ENTRIES:
        raise WrongValue(f"An ACL has at most {MAX_ENTRIES} entries.")
    checked: dict[str, Permission] = {}
    for accessor, level in entries.items():
        key = accessor_key(accessor)
        name, _, partition = key.rpartition("@")
        if key not in (OWNER, WORLD) and not (name and partition):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: write name@partition, owner or world.")
        if len(key) > 400 or any(unicodedata.category(character)[0] == "C" for character in key):
            raise UnknownAccessor(f"{accessor[:100]!r} is no user or group: too long, or not printable.")
        if key in checked:
            raise WrongValue(f"The ACL names {accessor[:100]!r} twice.")
        checked[key] = level
    return dict(sorted(checked.items()))


def _write_entries(cx: Connection, acl_id: int, entries: Mapping[str, Permission]) -> None:
    if entries:
        cx.execute(
            acl_entries.insert(),
            [{"acl_id": acl_id, "accessor": accessor, "permission": int(p)} for accessor, p in entries.items()],
        )


def _entries(cx: Connection, acl_ids: Iterable[int]) -> dict[int, dict[str, Permission]]:
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


_PERMISSIONS = {int(permission): permission for permission in Permission}

# The repository is told apart afterwards: asked for it, SQLite looks at each ACL instead of the caller's entries.
_GRANTED = (
    sa.select(acl_entries.c.acl_id, sa.func.max(acl_entries.c.permission), acls.c.repository_id)
    .join_from(acl_entries, acls)
    .where(
        acl_entries.c.accessor.in_(sa.bindparam("accessors", expanding=True)),
        acl_entries.c.permission >= sa.bindparam("least"),
    )
    .group_by(acl_entries.c.acl_id, acls.c.repository_id)
)
