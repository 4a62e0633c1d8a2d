"""Who is in which groups and roles, however deep (given 2.2, 2.7)?

Groups can contain groups, even in loops; roles contain users, groups and roles. The location of a group or role means
nothing for its members.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.audit import select_rights
from muniment.database.connections import PreparedStatement, directory_tables, portions, required
from muniment.database.statements import one_of_few, upsert, without_index
from muniment.directory import audit
from muniment.directory.entries import entries
from muniment.directory.entries.table import ADMINISTRATORS, Entry, entry_table, to_entry
from muniment.directory.refusals import BadName

_memberships = sa.Table(
    "memberships",
    directory_tables,
    sa.Column("group_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("member_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Index("ix_memberships_around", "member_id", "group_id"),
)

# Triggers write it: removed entries take their memberships with them.
_counts = sa.Table(
    "member_counts",
    directory_tables,
    sa.Column("group_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    required("members", sa.BigInteger),
)


def add_member(cx: Connection, group: Entry, member: Entry) -> None:
    """To a group or role. Nothing happens to a member. Raises BadName for a kind that cannot be one."""
    add_members(cx, group, [member])


def add_members(cx: Connection, group: Entry, added: Sequence[Entry]) -> None:
    """As ``add_member``."""
    kinds = _MEMBER_KINDS.get(group.kind, ())
    if any(member.kind not in kinds for member in added):
        raise BadName("Users and groups can be members of groups, and these and roles of roles, nothing else.")
    new: set[int] = set()
    if len(added) == 1:
        new.update(row[0] for row in _ADD.all(cx, group_id=group.id, member_id=added[0].id))
    else:
        for portion in portions(added):
            pairs = [{"group_id": group.id, "member_id": member.id} for member in portion]
            new.update(cx.scalars(_INSERT.values(pairs)))
    _record(cx, "member added", group, [member for member in added if member.id in new], "", "member")


def closes_loop(cx: Connection, group: Entry, member: Entry) -> bool:
    """Whether this member makes two groups or roles contain each other, or one itself: then they have the same members.

    The answer is the same before and after it is added.
    """
    return member.id == group.id or member.id in ids_above(cx, group)


def ids_above(cx: Connection, entry: Entry) -> set[int]:
    """The entry's own, and those of all groups and roles that contain it, however deep."""
    return set(cx.scalars(sa.select(_ABOVE.c.id), {"entry": entry.id}))


def remove_members(cx: Connection, group: Entry, removed: Sequence[Entry]) -> int:
    """Return how many were members."""
    gone: set[int] = set()
    for portion in portions([one.id for one in removed]):
        pairs = _memberships.c.group_id == group.id, _memberships.c.member_id.in_(portion)
        gone.update(cx.scalars(_memberships.delete().where(*pairs).returning(_memberships.c.member_id)))
    _record(cx, "member removed", group, [member for member in removed if member.id in gone], "member", "")
    return len(gone)


def rights_of(entry: Entry) -> sa.Select[Any]:
    """Make a query for the memberships, of the entry and in it, that end when it is removed."""
    group, member = entry_table.alias("group_entry"), entry_table.alias("member_entry")
    rights = select_rights("membership", member.c.uuid, group.c.uuid, "member", "").select_from(
        _memberships.join(group, group.c.id == _memberships.c.group_id).join(
            member, member.c.id == _memberships.c.member_id
        )
    )
    return rights.where(sa.or_(_memberships.c.group_id == entry.id, _memberships.c.member_id == entry.id))


def direct_members(group_id: sa.BindParameter[int] | int) -> sa.Select[tuple[int]]:
    return sa.select(_memberships.c.member_id.label("id")).where(_memberships.c.group_id == group_id)


def direct_containers(member_id: sa.BindParameter[int]) -> sa.Select[tuple[int]]:
    return sa.select(_memberships.c.group_id.label("id")).where(_memberships.c.member_id == member_id)


def count_members(cx: Connection, group_ids: Collection[int]) -> dict[int, int]:
    """Direct ones. A group without members is left out."""
    counts: dict[int, int] = {}
    for portion in portions(sorted(group_ids)):
        counts |= {row[0]: row[1] for row in _COUNTS.all(cx, groups=portion)}
    return counts


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
        # Only groups and roles have members.
        has_members = sa.exists().where(_inner.c.group_id == _memberships.c.member_id)
        inner_groups = set(cx.scalars(sa.select(_memberships.c.member_id).where(in_group, has_members))) - known_ids
        known_ids |= inner_groups
        queue += inner_groups
    return False


def groups_of(cx: Connection, entry_id: int) -> list[Entry]:
    """All that contain an entry, however deep, by name, in one statement. Roles on the way count."""
    return [to_entry(row) for row in _GROUPS_OF.all(cx, entry=entry_id)]


def administers(cx: Connection, user_id: int) -> bool:
    """Whether a user is in the administrators' group, however deep."""
    return _ADMINISTERS.first(cx, entry=user_id) is not None


def groups_of_each(cx: Connection, entry_ids: Collection[int]) -> dict[int, list[Entry]]:
    """As ``groups_of``, for the entries of a page."""
    groups: dict[int, list[Entry]] = {entry_id: [] for entry_id in entry_ids}
    for portion in portions(sorted(groups)):
        for row in _GROUPS_OF_EACH.all(cx, members=portion):
            groups[row[-1]].append(to_entry(row))
    return groups


def groups_around(entry_id: int, *, recursive: bool) -> sa.Select[tuple[int]]:
    """Select the ids of the groups that have an entry as a direct member, or if ``recursive``, at any depth."""
    groups = sa.select(_memberships.c.group_id)
    if not recursive:
        return groups.where(_memberships.c.member_id == entry_id)
    around = _upwards(sa.bindparam(None, entry_id, type_=sa.BigInteger))
    return groups.where(_memberships.c.member_id.in_(sa.select(around.c.id)))


def containers(entry: sa.BindParameter[int]) -> sa.CompoundSelect[tuple[int]]:
    """A subquery for a user's id, and those of the groups and roles around them, however deep, of their units, and
    their partition.
    """
    groups = _upwards(entry)
    return sa.union_all(sa.select(groups.c.id), entries.units_above(entry))


def containers_of_group(group: sa.BindParameter[int]) -> sa.CompoundSelect[tuple[int]]:
    """As ``containers``, for a group: where it lies, its partition alone counts."""
    groups = _upwards(group)
    partition = sa.select(entry_table.c.partition_id).where(entry_table.c.id == group)
    return sa.union_all(sa.select(groups.c.id), partition)


def with_groups_inside(containers: sa.Select[tuple[int]]) -> sa.Select[tuple[int]]:
    inside = sa.select(sa.cast(containers.subquery().c[0], sa.BigInteger).label("id")).cte(
        "groups_inside", recursive=True
    )
    # UNION, not UNION ALL, so that a loop ends.
    inside = inside.union(
        sa.select(_memberships.c.member_id).where(
            _memberships.c.group_id == inside.c.id, entries.has_members(_memberships.c.member_id)
        )
    )
    return sa.select(inside.c.id)


def is_member(entry_id: sa.ColumnElement[int], groups: sa.Select[tuple[int]]) -> sa.Exists:
    return sa.exists().where(_memberships.c.member_id == entry_id, _memberships.c.group_id.in_(groups))


def has_member(cx: Connection, group: Entry, member: Entry) -> bool:
    """Whether it is a direct one."""
    pair = _memberships.c.group_id == group.id, _memberships.c.member_id == member.id
    return cx.execute(sa.select(sa.literal(1)).where(*pair)).first() is not None


def _record(cx: Connection, action: str, group: Entry, some: Sequence[Entry], before: str, after: str) -> None:
    if not some:
        return
    names = [each.target.name for each in some]
    rights = [audit.Right("membership", each.uuid, group.uuid, before, after) for each in some]
    former, new = (dict.fromkeys(names, text) if text else {} for text in (before, after))
    audit.record(cx, action, group.target, former, new, rights=rights)


def _upwards(entry: sa.BindParameter[int]) -> sa.CTE:
    groups = sa.select(sa.cast(entry, sa.BigInteger).label("id")).cte(recursive=True)
    # UNION (not UNION ALL) adds no group twice, so a loop ends.
    return groups.union(sa.select(_memberships.c.group_id).where(_memberships.c.member_id == groups.c.id))


_MEMBER_KINDS: Mapping[str, Collection[str]] = {"group": ("user", "group"), "role": ("user", "group", "role")}
_INSERT = upsert(_memberships).on_conflict_do_nothing().returning(_memberships.c.member_id)
_ADD = PreparedStatement(
    _INSERT.values({column.name: sa.bindparam(column.name, type_=sa.BigInteger) for column in _memberships.c})
)


def _groups_of_each() -> sa.Select[Any]:
    members: sa.BindParameter[int] = sa.bindparam("members", expanding=True)
    start = sa.select(_memberships.c.member_id.label("member"), _memberships.c.group_id.label("id"))
    around = start.where(_memberships.c.member_id.in_(members)).cte("around", recursive=True)
    around = around.union(sa.select(around.c.member, _inner.c.group_id).where(_inner.c.member_id == around.c.id))
    return entries.select_with(around.c.member, around.c.id, around, "group")


_inner = _memberships.alias("inner_memberships")
_GROUPS_OF_EACH = PreparedStatement(_groups_of_each())
_COUNTS = PreparedStatement(
    sa.select(_counts.c.group_id, _counts.c.members).where(
        _counts.c.group_id.in_(sa.bindparam("groups", expanding=True)), _counts.c.members > 0
    )
)
_ANY_MEMBER = sa.select(sa.literal(1)).select_from(_memberships).limit(1)
_ABOVE = _upwards(sa.bindparam("entry", type_=sa.BigInteger))
_GROUPS_OF = PreparedStatement(
    entries.select_by_ids(
        sa.select(_memberships.c.group_id).where(_memberships.c.member_id.in_(sa.select(_ABOVE.c.id))), "group"
    )
)
_ADMINISTERS = PreparedStatement(
    sa.select(sa.literal(1))
    .select_from(entry_table)
    .where(one_of_few(entry_table.c.id, sa.select(_ABOVE.c.id).scalar_subquery()))
    .where(entry_table.c.built_in == ADMINISTRATORS, without_index(entry_table.c.kind) == "group")
    .limit(1)
)
_MEMBERS = entries.select_by_ids(
    sa.select(_memberships.c.member_id).where(_memberships.c.group_id == sa.bindparam("group"))
)
