"""Who is in which groups, however deep (given 2.2, 2.7)?

Groups can contain groups, even in loops. A group's location means nothing for its members.
"""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables
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
    """Nothing happens to a member. Raises BadName for other kinds than users and groups."""
    if group.kind != "group" or member.kind not in ("user", "group"):
        raise BadName("Users and groups can be members of groups, nothing else.")
    cx.execute(
        sa.text("INSERT INTO memberships (group_id, member_id) VALUES (:group_id, :member_id) ON CONFLICT DO NOTHING"),
        {"group_id": group.id, "member_id": member.id},
    )


def closes_loop(cx: Connection, group: Entry, member: Entry) -> bool:
    """Whether this member makes two groups contain each other, or a group itself: then they have the same members.

    The answer is the same before and after it is added.
    """
    return member.id == group.id or member.id in {above.id for above in groups_of(cx, group.id)}


def remove_member(cx: Connection, group: Entry, member: Entry) -> bool:
    pair = sa.and_(_memberships.c.group_id == group.id, _memberships.c.member_id == member.id)
    return cx.execute(_memberships.delete().where(pair)).rowcount > 0


def members(cx: Connection, group: Entry) -> list[Entry]:
    """Direct ones, by kind and name."""
    return entries.read(cx, _MEMBERS, {"group": group.id})


def acting_in(cx: Connection, group_ids: Collection[int]) -> bool:
    """Whether a user who may act and has a password is in one of these groups, however deep.

    It stops at the first one, after at most two queries for each group, and never reads all users of a group.
    """
    queue, known_ids = list(group_ids), set(group_ids)
    while queue:
        in_group = _memberships.c.group_id == queue.pop()
        if cx.execute(_ANY_MEMBER.where(in_group, entries.acting(_memberships.c.member_id))).first():
            return True
        # Only groups have members.
        has_members = sa.exists().where(_inner.c.group_id == _memberships.c.member_id)
        inner_groups = set(cx.scalars(sa.select(_memberships.c.member_id).where(in_group, has_members))) - known_ids
        known_ids |= inner_groups
        queue += inner_groups
    return False


def groups_of(cx: Connection, entry_id: int) -> list[Entry]:
    """All that contain an entry, however deep, by name, in one statement."""
    return entries.read(cx, _GROUPS_OF, {"entry": entry_id})


def groups_around(entry_id: int, *, recursive: bool) -> sa.Select[tuple[int]]:
    """Select the ids of the groups that have an entry as a direct member, or if ``recursive``, at any depth."""
    groups = sa.select(_memberships.c.group_id)
    if not recursive:
        return groups.where(_memberships.c.member_id == entry_id)
    around = _upwards(sa.bindparam(None, entry_id, type_=sa.BigInteger))
    return groups.where(_memberships.c.member_id.in_(sa.select(around.c.id)))


def containers(entry: sa.BindParameter[int]) -> sa.CompoundSelect[tuple[int]]:
    """A subquery for a user's id, and those of the groups around them, however deep, of their units, and their
    partition.
    """
    groups = _upwards(entry)
    return sa.union_all(sa.select(groups.c.id), entries.units_above(entry))


def with_groups_inside(containers: sa.Select[tuple[int]]) -> sa.Select[tuple[int]]:
    inside = sa.select(sa.cast(containers.subquery().c[0], sa.BigInteger).label("id")).cte(
        "groups_inside", recursive=True
    )
    # UNION, not UNION ALL, so that a loop ends.
    inside = inside.union(
        sa.select(_memberships.c.member_id).where(
            _memberships.c.group_id == inside.c.id, entries.is_group(_memberships.c.member_id)
        )
    )
    return sa.select(inside.c.id)


def is_member(entry_id: sa.ColumnElement[int], groups: sa.Select[tuple[int]]) -> sa.Exists:
    return sa.exists().where(_memberships.c.member_id == entry_id, _memberships.c.group_id.in_(groups))


def _upwards(entry: sa.BindParameter[int]) -> sa.CTE:
    groups = sa.select(sa.cast(entry, sa.BigInteger).label("id")).cte(recursive=True)
    # UNION (not UNION ALL) adds no group twice, so a loop ends.
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
