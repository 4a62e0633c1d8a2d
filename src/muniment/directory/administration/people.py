"""Whom does the access role of a resource let in? Users and groups.

A user is let in as a member of the role, through a group however deep, through a unit around them, or through their
partition (given 2.2). A group is listed if it, a group around it or its partition is a member.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry

Kind: TypeAlias = Literal["user", "group"]


def choose(
    names: DirectoryNames,
    resource_id: str,
    kind: Kind,
    group: Entry | None = None,
    members: Sequence[tuple[Entry, bool]] = (),
) -> entries.ChosenEntries:
    """Make a query for the users or groups that a resource lets in; with ``group``, only direct members of that group.

    With ``members``, only groups that have all of these users and groups as members: directly, or also further down if
    True stands beside the member. Locked and disabled users are listed too.
    """
    around = [
        entries.CHOSEN.id.in_(memberships.groups_around(member.id, recursive=recursive))
        for member, recursive in members
    ]
    if group is not None:
        around.append(entries.CHOSEN.id.in_(memberships.direct_members(group.id)))
    return entries.choose(names, kind, sa.and_(_let_in(resource_id, kind), *around), few=bool(around))


def find(
    cx: Connection,
    names: DirectoryNames,
    resource_id: str | None,
    kind: Kind,
    entry_id: str,
    group: Entry | None = None,
) -> Entry:
    """With ``group``, it must be a direct member of that group. Raises UnknownEntry if there is no such user or group,
    or if the resource does not let it in. Without a resource, it may be any user or group.
    """
    entry = entries.find(cx, names, entry_id, kind)
    is_let_in = resource_id is None or _is_let_in(cx, resource_id, entry)
    if not is_let_in or (group is not None and not memberships.has_member(cx, group, entry)):
        raise UnknownEntry(f"There is no {kind} {entry_id[:200]!r}.")
    return entry


def _is_let_in(cx: Connection, resource_id: str, entry: Entry) -> bool:
    """As ``_let_in``, but asked of one entry and upwards: a group may have any number of members."""
    containers = memberships.containers_of_group if entry.kind == "group" else memberships.containers
    role = resources.in_role(resource_id)
    around = containers(sa.bindparam(None, entry.id, type_=sa.BigInteger))
    return cx.execute(role.where(role.selected_columns.entry_id.in_(around)).limit(1)).first() is not None


def _let_in(resource_id: str, kind: Kind) -> sa.ColumnElement[bool]:
    role = resources.in_role(resource_id)
    groups = memberships.with_groups_inside(role)
    reasons: list[sa.ColumnElement[bool]] = [entries.CHOSEN.id.in_(groups), entries.CHOSEN.partition_id.in_(role)]
    if kind == "user":
        units = entries.with_units_inside(role)
        reasons += [memberships.is_member(entries.CHOSEN.id, groups), entries.CHOSEN.parent_id.in_(units)]
    return sa.or_(*reasons)
