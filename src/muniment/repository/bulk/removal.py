"""How is a whole repository removed, and how is an ACL, a type or a property removed that no object uses?

The repository is closed, then its objects are removed, some at a time, then all else. A killed removal leaves a
repository that nobody can enter, which the next run finishes.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_tables
from muniment.database.statements import count_where
from muniment.repository.refusals import InUse, UnknownProperty, WrongValue
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory, wastebasket
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.types import object_types, type_editing
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.acls import Acl
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

_KINDS = {
    "objects": "objects",
    "wastebasket": "deleted objects",
    "acls": "ACLs",
    "object_types": "types",
    "links": "kept searches",
    "walks": "walks",
    "saved_searches": "saved searches",
    "relations": "relations",
    "comments": "comments",
    "changes": "changes",
}
_MOST_NAMED = 10


class RowCount(NamedTuple):
    """How many rows of one kind a repository has."""

    kind: str
    number: int


def count_rows(cx: Connection, repository: Repository) -> list[RowCount]:
    """Leave out kinds without rows."""
    tables = repository_tables.tables
    counts = [
        RowCount(kind, count_where(cx, tables[table].c.repository_id == repository.id))
        for table, kind in _KINDS.items()
    ]
    return [each for each in counts if each.number]


def close(cx: Connection, repository: Repository, *, with_everything: bool) -> list[RowCount]:
    """Begin the removal: from now on nobody can enter.

    Without ``with_everything``, raises InUse if the repository or its wastebasket holds objects.
    """
    counts = count_rows(cx, repository)
    if not with_everything and any(count.kind in (_KINDS["objects"], _KINDS["wastebasket"]) for count in counts):
        raise InUse(
            f"The repository {repository.name!r} is not empty: it holds {describe(counts)}. "
            "With --with-everything all of it is removed."
        )
    repositories.guard(cx, repository, "")
    return counts


def finish(cx: Connection, repository: Repository) -> None:
    """Remove all but the objects, which are gone already."""
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
    """Write words such as ``3 objects, 2 ACLs``."""
    return ", ".join(f"{count.number} {count.kind}" for count in counts) or "nothing"


class RemovedObjects(NamedTuple):
    """``freed`` are keys of contents that no row names any more."""

    number: int
    freed: tuple[str, ...]


def remove_objects(cx: Connection, repository: Repository, limit: int) -> RemovedObjects:
    """Remove at most ``limit``, the wastebasket last; 0 means that none is left.

    After the commit, the caller, or else the sweep, removes the ``freed`` contents.
    """
    table, portion = repository_tables.tables["objects"], inventory.next_objects(cx, repository.id, 0, limit)
    if not portion:
        return RemovedObjects(*wastebasket.remove_of_repository(cx, repository.id, limit))
    ids = [stored.id for stored in portion]
    links = repository_tables.tables["folder_links"]
    cx.execute(links.delete().where(sa.or_(links.c.object_id.in_(ids), links.c.folder_id.in_(ids))))
    cx.execute(table.update().where(table.c.folder_id.in_(ids)).values(folder_id=None))
    sizes = further_contents.sizes(cx, ids)
    contents = [stored.content for stored in portion if stored.content is not None]
    contents += [further.content for further in further_contents.remove(cx, ids)]
    cx.execute(table.delete().where(table.c.id.in_(ids)))
    freed = stored_contents.release(cx, contents)
    usage.release(cx, usage.amounts(portion, sizes))
    return RemovedObjects(len(portion), freed)


def remove_acl(cx: Connection, acl: Acl, principals: Principals) -> None:
    """Delete an unused ACL.

    Raises NotPermitted, InUse.

    Only an administrator learns how many objects carry it, how many folders have it as their default, and some names:
    others may not see all these.
    """
    try:
        with cx.begin_nested():
            acls.remove(cx, acl, principals)
    except InUse as refusal:
        if not principals.administrator:
            raise
        uses: list[str] = []
        for words, noun, as_default in (("on", "object", False), ("the default of", "folder", True)):
            count, carriers = inventory.carrying(cx, acl.id, _MOST_NAMED, as_default=as_default)
            names = [f"{carrier.id} {carrier.name[:60]!r}" for carrier in carriers]
            remainder = [f"{count - len(carriers)} more"] if count > len(carriers) else []
            if count:
                uses.append(f"{words} {_number_of(count, noun)}: {', '.join(names + remainder)}")
        if not uses:  # the objects have been removed meanwhile
            raise
        raise InUse(f"The ACL {acl.name!r} is still {'; and '.join(uses)}.") from refusal


def remove_type(cx: Connection, repository: Repository, name: str) -> None:
    """Raises UnknownType, WrongValue (built in), InUse."""
    catalogue = object_types.lock(cx, repository.id, name)
    if subtypes := sorted(catalogue.with_subtypes([name]) - {name}):
        raise InUse(f"The object type {name!r} has types below it: {', '.join(subtypes[:_MOST_NAMED])}.")
    if count := _count_objects(cx, repository, [name]):
        raise InUse(f"The object type {name!r} is still that of {_number_of(count, 'object')}.")
    type_editing.remove_type(cx, repository.id, name)


def remove_property(cx: Connection, repository: Repository, type_name: str, name: str) -> None:
    """Raises UnknownType, UnknownProperty, WrongValue (built in, or another type adds it), InUse."""
    catalogue = object_types.lock(cx, repository.id, type_name)
    if name not in {definition.name for definition in catalogue.get(type_name).properties}:
        adding = [kind.name for kind in catalogue.lineage(type_name) if name in {each.name for each in kind.properties}]
        if adding:
            raise WrongValue(f"The object type {adding[0]!r} adds the property {name!r}: remove it there.")
        raise UnknownProperty(f"The object type {type_name!r} has no property {name[:100]!r}.")
    subtypes = sorted(catalogue.with_subtypes([type_name]))
    for subtype in subtypes:
        for each in catalogue.ruled(subtype):
            if each.assistance.depends_on == name:
                raise InUse(f"The values of the property {each.name!r} depend on the property {name!r}.")
    if count := _count_objects(cx, repository, subtypes, with_value=name):
        raise InUse(f"The property {name!r} still has a value in {_number_of(count, 'object')}.")
    type_editing.remove_property(cx, repository.id, type_name, name)


def _count_objects(cx: Connection, repository: Repository, types: list[str], *, with_value: str = "") -> int:
    table = repository_tables.tables["objects"]
    # In JSON a quotation mark within a text is escaped, so this is found as the name of a property only.
    has_value = [table.c.properties.contains(f'"{with_value}":', autoescape=True)] if with_value else []
    return count_where(cx, table.c.repository_id == repository.id, table.c.type.in_(types), *has_value)


def _number_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
