"""Who is in which groups, however deep (given 2.7, 5.2)?

Groups can contain groups, even in loops. The location of a group gives its members nothing, only membership does.
"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import directory_tables
from muniment.directory.entries import entries
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import BadName

_memberships = sa.Table(
    "memberships",
    directory_tables,
    sa.Column("group_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("member_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True, index=True),
)


def add_member(cx: Connection, group: Entry, member: Entry) -> None:
    """Add a user or a group to a group; a member stays one. Raises BadName for other kinds of entry."""
    if group.kind != "group" or member.kind not in ("user", "group"):
        raise BadName("Users and groups can be members of groups, nothing else.")
    cx.execute(
        sa.text("INSERT INTO memberships (group_id, member_id) VALUES (:group_id, :member_id) ON CONFLICT DO NOTHING"),
        {"group_id": group.id, "member_id": member.id},
    )


def remove_member(cx: Connection, group: Entry, member: Entry) -> None:
    """Remove a member from a group, if it is one."""
    pair = sa.and_(_memberships.c.group_id == group.id, _memberships.c.member_id == member.id)
    cx.execute(_memberships.delete().where(pair))


def members(cx: Connection, group: Entry) -> list[Entry]:
    """List a group's direct members, by kind and name."""
    return entries.read(cx, _MEMBERS, {"group": group.id})


def acting_in(cx: Connection, group_ids: Collection[int]) -> bool:
    """Say whether a user who may act and has a password is in one of these groups, however deep.

    It stops at the first such user. Without one, it runs a query for each group once, and reads no rows of users.
    """
    waiting, known_ids = list(group_ids), set(group_ids)
    while waiting:
        in_group = _memberships.c.group_id == waiting.pop()
        if cx.execute(_ANY_MEMBER.where(in_group, entries.acting(_memberships.c.member_id))).first():
            return True
        # An entry that has members is a group.
        inner = sa.exists().where(_inner.c.group_id == _memberships.c.member_id)
        within = set(cx.scalars(sa.select(_memberships.c.member_id).where(in_group, inner))) - known_ids
        known_ids |= within
        waiting += within
    return False


def groups_of(cx: Connection, entry_id: int) -> list[Entry]:
    """List the groups of an entry, direct and through other groups, by name, in one statement."""
    return entries.read(cx, _GROUPS_OF, {"entry": entry_id})


def containers(entry: sa.BindParameter[int]) -> sa.CompoundSelect[tuple[int]]:
    """Make a subquery for a user, all their groups however deep, the units around them and their partition."""
    groups = _upwards(entry)
    return sa.union_all(sa.select(groups.c.id), entries.units_above(entry))


def _upwards(entry: sa.BindParameter[int]) -> sa.CTE:
    groups = sa.select(sa.cast(entry, sa.BigInteger).label("id")).cte("groups", recursive=True)
    # UNION, not UNION ALL: a group that was met before adds nothing, so a loop ends.
    return groups.union(sa.select(_memberships.c.group_id).where(_memberships.c.member_id == groups.c.id))


_inner = _memberships.alias("inner_memberships")
_ANY_MEMBER = sa.select(sa.literal(1)).select_from(_memberships).limit(1)
_ABOVE = _upwards(sa.bindparam("entry", type_=sa.BigInteger))
_GROUPS_OF = entries.select_by_ids(
    sa.select(_memberships.c.group_id).where(_memberships.c.member_id.in_(sa.select(_ABOVE.c.id)))
)
_MEMBERS = entries.select_by_ids(
    sa.select(_memberships.c.member_id).where(_memberships.c.group_id == sa.bindparam("group"))
)
