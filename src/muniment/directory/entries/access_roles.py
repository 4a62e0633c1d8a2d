"""What is said of access roles, beside whom they let in (``resources``)? Each is named for its resource (given 2.2)."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.statements import count_where
from muniment.directory import audit
from muniment.directory.entries import names as spelling
from muniment.directory.entries import resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry, role_member_table, role_table, rows, select_entries, to_entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownResource

BEGINNING = "Access to "
"""How the name of a role begins; its resource's follows."""


class AccessRole(msgspec.Struct, frozen=True):
    """``attributes`` is a JSON list that is kept and shown."""

    description: str
    attributes: str


def name(names: DirectoryNames, resource: Resource) -> str:
    return f"{BEGINNING}{resources.shown_name(names, resource)}"


def find_resource(cx: Connection, names: DirectoryNames, role: str) -> Resource:
    """The resource whose access role has this name. Raises UnknownResource."""
    if not role.startswith(BEGINNING):
        raise UnknownResource(f"There is no access role {role[:100]!r}.")
    return resources.find(cx, names, role.removeprefix(BEGINNING))


def read(cx: Connection, names: DirectoryNames, several: Sequence[Resource]) -> dict[str, AccessRole]:
    """By resource."""
    query = sa.select(*role_table.c["resource_id", "description", "attributes"])
    shown = {resource.id: resources.shown_name(names, resource) for resource in several}
    return {
        resource_id: AccessRole(description or f"Default access role for resource {shown[resource_id]}", attributes)
        for resource_id, description, attributes in cx.execute(query.where(role_table.c.resource_id.in_(list(shown))))
    }


def change(cx: Connection, resource: Resource, **values: str) -> None:
    """Set its ``description`` or its ``attributes``. Raises BadAttribute."""
    for text in values.values():
        spelling.check_description(text)
    of_resource = role_table.c.resource_id == resource.id
    former = dict(cx.execute(sa.select(*(role_table.c[each] for each in values)).where(of_resource)).one()._mapping)
    cx.execute(role_table.update().where(of_resource).values(**values))
    if former != values:
        audit.record(cx, "access role changed", resource.target, former, values)


def members(cx: Connection, several: Sequence[Resource]) -> dict[str, list[Entry]]:
    """The direct members, by kind and name, by resource."""
    found: dict[str, list[Entry]] = {resource.id: [] for resource in several}
    for row in cx.execute(_MEMBERS.where(role_table.c.resource_id.in_(list(found)))):
        found[row[-1]].append(to_entry(row))
    return found


def count_members(cx: Connection, resource: Resource) -> int:
    """Direct ones."""
    return count_where(cx, role_member_table.c.role_id == role_table.c.id, role_table.c.resource_id == resource.id)


_MEMBERS = (
    select_entries(role_table.c.resource_id)
    .join(role_member_table, role_member_table.c.entry_id == rows.c.id)
    .join(role_table)
    .order_by(rows.c.kind, rows.c.name_key, rows.c.id)
)
