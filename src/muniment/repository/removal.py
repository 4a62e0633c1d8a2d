"""What goes with a repository, and what keeps an ACL from going?

A repository closes first; then its objects go, some at a time; at last all that is left. Whoever is killed in the
middle leaves a repository that nobody enters, and begins again.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import repository_tables
from muniment.repository import repositories
from muniment.repository.objects import objects, usage
from muniment.repository.permissions import acls
from muniment.repository.permissions.acls import Acl
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import InUse
from muniment.repository.repositories import Repository

_SAYS = {"objects": "objects", "acls": "ACLs", "object_types": "types", "links": "kept searches", "changes": "changes"}
_NAMED = 10
"""So many objects that carry an ACL are named."""


class RowCount(NamedTuple):
    """How many rows of one kind a repository has."""

    kind: str
    number: int


def count_rows(cx: Connection, repository: Repository) -> list[RowCount]:
    """Say what a repository holds, kind by kind, without what there is none of."""
    counts = [(kind, _count(cx, repository_tables.tables[table], repository)) for table, kind in _SAYS.items()]
    return [RowCount(kind, count) for kind, count in counts if count]


def close(cx: Connection, repository: Repository, *, with_everything: bool) -> list[RowCount]:
    """Begin the removal: from now on nobody enters. Gives what will go with it.

    Raises InUse, which names it all, where objects would go and nobody said that they may.
    """
    found = count_rows(cx, repository)
    if not with_everything and any(one.kind == _SAYS["objects"] for one in found):
        raise InUse(
            f"The repository {repository.name!r} is not empty: it holds {describe(found)}. "
            "With --with-everything all of it goes."
        )
    repositories.guard(cx, repository, "")
    return found


def finish(cx: Connection, repository: Repository) -> None:
    """Remove all that is left once no object is, and the repository itself."""
    for table in reversed(repository_tables.sorted_tables):
        if "repository_id" in table.c:
            cx.execute(table.delete().where(table.c.repository_id == repository.id))
            continue
        for key in table.foreign_keys:
            owner = key.column.table
            if "repository_id" in owner.c:
                theirs = sa.select(key.column).where(owner.c.repository_id == repository.id)
                cx.execute(table.delete().where(key.parent.in_(theirs)))
    repositories.remove(cx, repository)


def describe(found: list[RowCount]) -> str:
    """Write what a repository holds in words."""
    return ", ".join(f"{one.number} {one.kind}" for one in found) or "nothing"


def remove_objects(cx: Connection, repository: Repository, limit: int) -> list[str | None]:
    """Remove at most ``limit`` objects: for each the key of its content, or None. None are left when none is given.

    The files are left to whoever commits this; those of a process that is killed are swept later.
    """
    table, doomed = repository_tables.tables["objects"], objects.every(cx, repository.id, 0, limit)
    ids = [one.id for one in doomed]
    cx.execute(table.update().where(table.c.folder_id.in_(ids)).values(folder_id=None))
    cx.execute(table.delete().where(table.c.id.in_(ids)))
    usage.release(cx, objects.amounts(doomed))
    return [None if one.content is None else one.content.key for one in doomed]


def remove_acl(cx: Connection, acl: Acl, principals: Principals) -> None:
    """Delete an ACL that no object carries. Raises NotPermitted, and InUse.

    The refusal tells an administrator how many objects carry the ACL, and which; its owner may see none of them.
    """
    try:
        with cx.begin_nested():
            acls.remove(cx, acl, principals)
    except InUse as refusal:
        if not principals.administrator:
            raise
        count, first = objects.carrying(cx, acl.id, _NAMED)
        if not count:  # they went meanwhile
            raise
        names = [f"{one.id} {one.name[:60]!r}" for one in first]
        more = [f"{count - len(first)} more"] if count > len(first) else []
        raise InUse(f"The ACL {acl.name!r} is still on {_objects(count)}: {', '.join(names + more)}.") from refusal


def _objects(count: int) -> str:
    return f"{count} object" if count == 1 else f"{count} objects"


def _count(cx: Connection, table: sa.Table, repository: Repository) -> int:
    wanted = sa.select(sa.func.count()).select_from(table).where(table.c.repository_id == repository.id)
    return int(cx.execute(wanted).scalar_one())
