"""Whom does the access role of a resource let in? Users and groups.

A user is let in as a member of the role, through a group however deep, through a unit around them, or through their
partition (given 2.2). A group is listed if it is a member of the role, if it is in a group that is a member, however
deep, or if its partition is a member.
"""

from typing import Literal, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry

Kind: TypeAlias = Literal["user", "group"]


class PeopleList(NamedTuple):
    """A list of the users or groups that a resource lets in; with ``group``, only direct members of that group."""

    resource_id: str
    kind: Kind
    group: Entry | None = None


def choose(names: DirectoryNames, people: PeopleList) -> entries.ChosenEntries:
    """Make a query for the users or groups of a list. Locked and disabled users are listed too."""
    return entries.choose(names, people.kind, _condition(people))


def find(
    cx: Connection, names: DirectoryNames, resource_id: str, kind: Kind, entry_id: str, group: Entry | None = None
) -> Entry:
    """Find a user or group that the resource lets in, by its id ``<name>@<partition>``.

    With ``group``, it must be a direct member of that group. Raises UnknownEntry if there is no such user or group, or
    if the resource does not let it in.
    """
    entry = (entries.find_user if kind == "user" else entries.find_group)(cx, names, entry_id)
    if not entries.is_chosen(cx, entry, _condition(PeopleList(resource_id, kind, group))):
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return entry


def _condition(people: PeopleList) -> entries.Condition:
    role = resources.in_role(people.resource_id)
    groups = memberships.with_groups_inside(role)
    units = entries.with_units_inside(role)

    def let_in(columns: entries.Columns) -> sa.ColumnElement[bool]:
        reasons: list[sa.ColumnElement[bool]] = [columns.id.in_(groups), columns.partition_id.in_(role)]
        if people.kind == "user":
            reasons += [memberships.is_member(columns.id, groups), columns.parent_id.in_(units)]
        condition = sa.or_(*reasons)
        if people.group is None:
            return condition
        return sa.and_(condition, memberships.is_member(columns.id, entries.only(people.group)))

    return let_in
