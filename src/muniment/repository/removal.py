"""Remove a repository with all that it holds, and remove an ACL that no object carries.

First the repository is closed. Then its objects are removed, some at a time, and at last everything else. A removal
that was killed leaves a repository that nobody can enter; run it again.
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

_KINDS = {"objects": "objects", "acls": "ACLs", "object_types": "types", "links": "kept searches", "changes": "changes"}
_MOST_NAMED = 10
"""How many of the objects that carry an ACL a refusal names."""


class RowCount(NamedTuple):
    """How many rows of one kind a repository has."""

    kind: str
    number: int


def count_rows(cx: Connection, repository: Repository) -> list[RowCount]:
    """Count what a repository holds, kind by kind; kinds without rows are left out."""
    counts = [(kind, _count(cx, repository_tables.tables[table], repository)) for table, kind in _KINDS.items()]
    return [RowCount(kind, count) for kind, count in counts if count]


def close(cx: Connection, repository: Repository, *, with_everything: bool) -> list[RowCount]:
    """Begin the removal: from now on nobody can enter. Returns what will be removed.

    Without ``with_everything``, raises InUse if the repository holds objects; it names all that the repository holds.
    """
    counts = count_rows(cx, repository)
    if not with_everything and any(count.kind == _KINDS["objects"] for count in counts):
        raise InUse(
            f"The repository {repository.name!r} is not empty: it holds {describe(counts)}. "
            "With --with-everything all of it is removed."
        )
    repositories.guard(cx, repository, "")
    return counts


def finish(cx: Connection, repository: Repository) -> None:
    """Remove everything else after the objects, and the repository itself."""
    for table in reversed(repository_tables.sorted_tables):
        if "repository_id" in table.c:
            cx.execute(table.delete().where(table.c.repository_id == repository.id))
            continue
        for key in table.foreign_keys:
            owner = key.column.table
            if "repository_id" in owner.c:
                owner_keys = sa.select(key.column).where(owner.c.repository_id == repository.id)
                cx.execute(table.delete().where(key.parent.in_(owner_keys)))
    repositories.remove(cx, repository)


def describe(counts: list[RowCount]) -> str:
    """Write what a repository holds in words."""
    return ", ".join(f"{count.number} {count.kind}" for count in counts) or "nothing"


def remove_objects(cx: Connection, repository: Repository, limit: int) -> list[str | None]:
    """Remove at most ``limit`` objects; return for each its content's key or None. An empty list: no object is left.

    The caller removes the files after the commit. If it is killed before, the sweep removes them later.
    """
    table, doomed = repository_tables.tables["objects"], objects.every(cx, repository.id, 0, limit)
    ids = [stored.id for stored in doomed]
    cx.execute(table.update().where(table.c.folder_id.in_(ids)).values(folder_id=None))
    cx.execute(table.delete().where(table.c.id.in_(ids)))
    usage.release(cx, objects.amounts(doomed))
    return [None if stored.content is None else stored.content.key for stored in doomed]


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
        count, carriers = objects.carrying(cx, acl.id, _MOST_NAMED)
        if not count:  # meanwhile they have been removed
            raise
        names = [f"{carrier.id} {carrier.name[:60]!r}" for carrier in carriers]
        remainder = [f"{count - len(carriers)} more"] if count > len(carriers) else []
        raise InUse(f"The ACL {acl.name!r} is still on {_objects(count)}: {', '.join(names + remainder)}.") from refusal


def _objects(count: int) -> str:
    return f"{count} object" if count == 1 else f"{count} objects"


def _count(cx: Connection, table: sa.Table, repository: Repository) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(table.c.repository_id == repository.id)
    return int(cx.execute(query).scalar_one())
