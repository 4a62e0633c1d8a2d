"""Which ACL does a caller mean by a text, and by which text is an ACL shown to that caller?

An ACL that the caller may not see is refused like one that does not exist.

Source: docs/interface.md, ours 4.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, portions
from muniment.ground.caches import Cache
from muniment.ground.naming import fold_name
from muniment.repository import version_stamps
from muniment.repository.store.permissions import acl_entries, acl_names
from muniment.repository.store.permissions.principals import WORLD, Permission, Principals
from muniment.repository.store.permissions.table import acls

UNNAMED = "="
"""The owner's key of unnamed ACLs (``unnamed_acls``); no user has it."""

AT_A_TIME = 200

Row: TypeAlias = sa.Row[*tuple[Any, ...]]

_NAMED = acls.c.owner_key != UNNAMED


class _Namesake(NamedTuple):
    """An object's ACL (``carried``), with one of its name that the caller sees, perhaps the same. The others are NULL
    if the caller can mean no ACL by this name, alone or with the owner.
    """

    carried_id: int
    carried: str
    carried_key: str
    id: int
    shown_id: str
    name: str
    owner: str
    owner_name: str
    owner_key: str
    common: bool


class ShownAcl(NamedTuple):
    """The text that names an ACL for a caller, and its owner if the caller may see it.

    ``world`` is what it permits everybody, ``permitted`` what it permits the caller who owns nothing.
    """

    text: str
    owner: str
    world: Permission
    permitted: Permission


_R = TypeVar("_R", Row, _Namesake)


def shown_name(cx: Connection, acl_id: int, principals: Principals) -> str:
    """Return the text for an ACL: empty for an unnamed one, the id for another that the caller may not see. Else it is
    the first that means this ACL when sent back: the bare name, the owner with the name, the id.
    """
    return shown_acls(cx, [acl_id], principals)[acl_id].text


_Question: TypeAlias = tuple[int, bool, str, frozenset[str]]
"""A shown name depends on the mark of all ACLs, too."""

_REMEMBERED = 50_000
_shown: Cache[_Question, ShownAcl] = Cache(_REMEMBERED)


def shown_acls(cx: Connection, acl_ids: Collection[int], principals: Principals) -> dict[int, ShownAcl]:
    """Return for each of these ACLs what ``shown_name`` returns, and the owner, with one statement for each 200 ACLs.

    The process may remember the names for each caller until the mark of all ACLs changes (``version_stamps``).
    """
    mark, who = version_stamps.read(cx).acls, (principals.administrator, principals.key, principals.accessors)
    names = {acl_id: name for acl_id in acl_ids if (name := _shown.recall((acl_id, *who), mark)) is not None}
    missing = sorted(set(acl_ids) - names.keys())
    if not missing:
        return names
    found = _read_shown(cx, missing, principals)
    # A transaction that is no snapshot may have read the mark before a commit, and the rows after it.
    if version_stamps.read(cx).acls == mark:
        for acl_id, name in found.items():
            _shown.keep((acl_id, *who), name, 1 + len(principals.accessors), mark)
    return names | found


def _read_shown(cx: Connection, ids: Sequence[int], principals: Principals) -> dict[int, ShownAcl]:
    rows_of: dict[int, list[_Namesake]] = {}
    seeing: dict[str, Any] = {"own_key": principals.key}
    if not principals.administrator:
        seeing["accessors"] = sorted(principals.accessors)
    for portion in portions(ids, AT_A_TIME):
        for row in _NAMESAKES[principals.administrator].all(cx, carried=portion, **seeing):
            namesake = _Namesake(*row)
            rows_of.setdefault(namesake.carried_id, []).append(namesake)
    entries = acl_entries.entries_of(cx, rows_of, sorted(principals.accessors))
    return {acl_id: _shown_acl(acl_id, rows, principals, entries.get(acl_id, {})) for acl_id, rows in rows_of.items()}


def _shown_acl(
    acl_id: int, rows: Sequence[_Namesake], principals: Principals, entries: Mapping[str, Permission]
) -> ShownAcl:
    """Show an ACL with those of its name, and its ``entries`` for the caller."""
    highest = Permission.DELETE if principals.administrator else max(entries.values(), default=Permission.NONE)
    text, owner = _named(acl_id, rows, principals.key)
    return ShownAcl(text, owner, entries.get(WORLD, Permission.NONE), highest)


def _named(acl_id: int, rows: Sequence[_Namesake], own_key: str) -> tuple[str, str]:
    if rows[0].carried_key == UNNAMED:
        return "", ""
    row_of_acl = next((row for row in rows if row.id == acl_id), None)
    if row_of_acl is None:
        return str(rows[0].carried), ""
    for text in (row_of_acl.name, acl_names.write(row_of_acl.owner, row_of_acl.name)):
        name = acl_names.read(text)
        if name is not None and _choose(rows, name, own_key) is row_of_acl:
            return str(text), row_of_acl.owner
    return str(rows[0].carried), row_of_acl.owner


def rows_named(cx: Connection, repository_id: int, texts: Collection[str], principals: Principals) -> dict[str, Row]:
    """Find the ACL that each text means if this caller sends it."""
    own_key = principals.key
    row_by_text: dict[str, Row] = {}
    names_read = [(text, name) for text in dict.fromkeys(texts) if (name := acl_names.read(text)) is not None]
    for portion in portions(names_read, AT_A_TIME):
        rows = cx.execute(_candidates(repository_id, [name for _, name in portion], own_key, principals)).all()
        row_by_text.update((text, row) for text, name in portion if (row := _choose(rows, name, own_key)) is not None)
    return row_by_text


def _choose(rows: Sequence[_R], name: acl_names.AclName, own_key: str) -> _R | None:
    if name.shown_id:
        return next((row for row in rows if row.shown_id == name.shown_id), None)
    same_name = [row for row in rows if row.name == name.name]
    if name.owner:
        of_owner = [row for row in same_name if row.owner_name == fold_name(name.owner)]
        return of_owner[0] if len(of_owner) == 1 else None
    own_row = next((row for row in same_name if row.owner_key == own_key), None)
    return own_row or next((row for row in same_name if row.common), None)


def _candidates(
    repository_id: int, names: Collection[acl_names.AclName], own_key: str, principals: Principals
) -> sa.Select[Any]:
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
    """Find, for the ACLs ``carried`` by objects, those of the same name that a caller with ``own_key`` could mean; NULL
    without one.
    """
    carried = acls.alias("carried")
    same = sa.and_(acls.c.repository_id == carried.c.repository_id, acls.c.name == carried.c.name)
    # As in ``_candidates``, each way uses a database index of its own.
    ways = [acls.c.owner_key == sa.bindparam("own_key"), acls.c.owner_name == carried.c.owner_name, acls.c.common]
    columns = (getattr(acls.c, name) for name in _Namesake._fields[3:])
    return PreparedStatement(
        sa.select(carried.c.id, carried.c.shown_id, carried.c.owner_key, *columns)
        .select_from(carried.outerjoin(acls, sa.and_(sa.or_(*(sa.and_(same, way) for way in ways)), visible)))
        .where(carried.c.id.in_(sa.bindparam("carried", expanding=True)))
    )


def visible_to(principals: Principals) -> sa.ColumnElement[bool]:
    """Make the condition that the caller sees an ACL: theirs, built in, or giving them a permission; for
    administrators, any with a name. Nobody sees an unnamed ACL: objects of several owners may carry it.
    """
    if principals.administrator:
        return _NAMED
    return _visible(principals.key, sorted(principals.accessors))


def _visible(
    own_key: str | sa.BindParameter[str], accessors: Collection[str] | sa.BindParameter[Any]
) -> sa.ColumnElement[bool]:
    own = sa.or_(acls.c.owner_key == "", acls.c.owner_key == own_key)
    return sa.and_(_NAMED, sa.or_(own, acl_entries.permits(acls.c.id, accessors)))


_NAMESAKES = {
    True: _namesakes(_NAMED),
    False: _namesakes(_visible(sa.bindparam("own_key"), sa.bindparam("accessors", expanding=True))),
}
