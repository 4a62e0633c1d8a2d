"""Whom does the access role of a resource let in? Users and groups.

A user is let in as a member of the role, through a group however deep, through a unit around them, or through their
partition (given 2.2). A group is listed if it, a group around it or its partition is a member.
"""

from typing import Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry

Kind: TypeAlias = Literal["user", "group"]


def choose(names: DirectoryNames, resource_id: str, kind: Kind, group: Entry | None = None) -> entries.ChosenEntries:
    """Direct members of ``group`` only, if given. Locked and disabled users are listed too."""
    return entries.choose(names, kind, _condition(resource_id, kind, group))


def find(
    cx: Connection, names: DirectoryNames, resource_id: str, kind: Kind, entry_id: str, group: Entry | None = None
) -> Entry:
    """Raises UnknownEntry, also for whom the resource does not let in, or who is no direct member of ``group``."""
    entry = entries.find(cx, names, entry_id, kind)
    if not entries.is_chosen(cx, entry, _condition(resource_id, kind, group)):
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return entry


def _condition(resource_id: str, kind: Kind, group: Entry | None) -> sa.ColumnElement[bool]:
    role = resources.in_role(resource_id)
    groups = memberships.with_groups_inside(role)
    reasons: list[sa.ColumnElement[bool]] = [entries.CHOSEN.id.in_(groups), entries.CHOSEN.partition_id.in_(role)]
    if kind == "user":
        units = entries.with_units_inside(role)
        reasons += [memberships.is_member(entries.CHOSEN.id, groups), entries.CHOSEN.parent_id.in_(units)]
    condition = sa.or_(*reasons)
    if group is None:
        return condition
    return sa.and_(condition, memberships.is_member(entries.CHOSEN.id, entries.only(group)))
