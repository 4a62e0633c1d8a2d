"""Who is in which groups, however deep (given 2.7, 5.2)?

Groups nest, and loops of groups are tolerated. Where a group lies gives its members nothing: only membership does.
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
    """Put a user or a group into a group; once there it stays. Raises BadName for other kinds of entry."""
    if group.kind != "group" or member.kind not in ("user", "group"):
        raise BadName("Users and groups can be members of groups, nothing else.")
    cx.execute(
        sa.text("INSERT INTO memberships (group_id, member_id) VALUES (:group_id, :member_id) ON CONFLICT DO NOTHING"),
        {"group_id": group.id, "member_id": member.id},
    )


def remove_member(cx: Connection, group: Entry, member: Entry) -> None:
    """Take a member out of a group; one that is not there stays out."""
    pair = sa.and_(_memberships.c.group_id == group.id, _memberships.c.member_id == member.id)
    cx.execute(_memberships.delete().where(pair))


def members(cx: Connection, group: Entry) -> list[Entry]:
    """List a group's direct members, by kind and name."""
    return entries.read(cx, _MEMBERS, {"group": group.id})


def acting_in(cx: Connection, group_ids: Collection[int]) -> bool:
    """Say whether a user who may act and has a password is in one of these groups, however deep: the first one found.

    Where none is, each group is asked about once; of users no row is read.
    """
    waiting, seen = list(group_ids), set(group_ids)
    while waiting:
        here = _memberships.c.group_id == waiting.pop()
        if cx.execute(_ONE.where(here, entries.acting(_memberships.c.member_id))).first():
            return True
        # Whoever has members is a group.
        inner = sa.exists().where(_inner.c.group_id == _memberships.c.member_id)
        within = set(cx.scalars(sa.select(_memberships.c.member_id).where(here, inner))) - seen
        seen |= within
        waiting += within
    return False


def groups_of(cx: Connection, entry_id: int) -> list[Entry]:
    """List the groups an entry is in, directly and through other groups, by name: one statement."""
    return entries.read(cx, _GROUPS_OF, {"entry": entry_id})


def containers(entry: sa.BindParameter[int]) -> sa.CompoundSelect[tuple[int]]:
    """A query for all that a user counts as: himself, his groups however deep, his units outwards and his partition.

    For use within a statement of another noun.
    """
    groups = _upwards(entry)
    return sa.union_all(sa.select(groups.c.id), entries.units_above(entry))


def _upwards(entry: sa.BindParameter[int]) -> sa.CTE:
    groups = sa.select(sa.cast(entry, sa.BigInteger).label("id")).cte("groups", recursive=True)
    # UNION, not UNION ALL: a group met before adds nothing, so a loop ends.
    return groups.union(sa.select(_memberships.c.group_id).where(_memberships.c.member_id == groups.c.id))


_inner = _memberships.alias("inner_memberships")
_ONE = sa.select(sa.literal(1)).select_from(_memberships).limit(1)
_ABOVE = _upwards(sa.bindparam("entry", type_=sa.BigInteger))
_GROUPS_OF = entries.those(
    sa.select(_memberships.c.group_id).where(_memberships.c.member_id.in_(sa.select(_ABOVE.c.id)))
)
_MEMBERS = entries.those(sa.select(_memberships.c.member_id).where(_memberships.c.group_id == sa.bindparam("group")))
