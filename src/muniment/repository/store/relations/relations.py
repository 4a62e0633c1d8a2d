"""Relations between two objects: keep, find, remove, list. When either object is deleted, the database removes the
relation.

Source: docs/interface.md, ours 20.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.connections import BigId, repository_column, repository_tables, required
from muniment.database.statements import count_where, without_index
from muniment.ground.clock import Instant
from muniment.repository.refusals import InUse, UnknownRelation, VersionConflict
from muniment.repository.store.filters import cursors, listed, pages, tree
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.listing import reach
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import quota, relation_types
from muniment.repository.store.repositories import Repository

relations = sa.Table(
    "relations",
    repository_tables,
    sa.Column("seq", BigId, primary_key=True),
    required("id", sa.String(16), unique=True),
    repository_column(),
    required("name", sa.String(64)),
    required("parent_id", sa.ForeignKey("objects.id", ondelete="CASCADE")),
    required("child_id", sa.ForeignKey("objects.id", ondelete="CASCADE")),
    required("maker", sa.String(400)),
    required("maker_key", sa.String(400), index=True),
    required("created", sa.BigInteger),
    sa.Index("ix_relations_repository", "repository_id", "seq"),
    sa.Index("ix_relations_name", "repository_id", "name", "seq"),
    sa.Index("ix_relations_parent", "parent_id", "seq"),
    sa.Index("ix_relations_child", "child_id", "seq"),
    sqlite_autoincrement=True,
)

_DIGITS = "37"

Role = Literal["parent", "child", "any"]


class RelationDraft(msgspec.Struct, frozen=True):
    """``name`` is the type's neutral one."""

    name: str
    parent_id: str
    child_id: str


class Relation(RelationDraft, frozen=True):
    """A stored relation, and who made it."""

    id: str
    maker: str
    created: Instant


class RelationFilter(msgspec.Struct, frozen=True):
    """Which relations a list shows; None means any."""

    object_id: str | None = None
    role: Role = "any"
    name: str | None = None


class ListedRelation(NamedTuple):
    """A relation of a list."""

    relation: Relation
    place: cursors.Place


def add(
    cx: Connection, repository: Repository, draft: RelationDraft, principals: Principals, now: Instant, most: int
) -> Relation:
    """``most`` limits the relations that one user has made.

    Raises UnknownRelationType, UnknownObject, NotPermitted, QuotaExceeded, VersionConflict (an end is gone).
    """
    relation_types.find(cx, repository.id, draft.name, lock=True)
    ends = _ends(cx, repository, draft, principals)
    quota.check(cx, relations.c.maker_key, principals, most, "relations")
    new = Relation(draft.name, *ends, _DIGITS + secrets.token_hex(7), principals.id, now)
    row = {**msgspec.structs.asdict(new), "repository_id": repository.id, "maker_key": principals.key}
    try:
        cx.execute(relations.insert().values(row))
    except IntegrityError as error:
        raise VersionConflict("One of the two objects was deleted meanwhile.") from error
    return new


def find(cx: Connection, repository: Repository, relation_id: str, principals: Principals) -> Relation:
    """Return a relation if the caller may browse both ends.

    Raises UnknownRelation.
    """
    query = _members(repository, principals).where(relations.c.id == relation_id)
    row = cx.execute(query).first()
    if row is None:
        raise UnknownRelation(f"There is no relation {relation_id[:40]!r}.")
    return _read(row)


def remove(cx: Connection, repository: Repository, relation_id: str, principals: Principals) -> None:
    """Raises UnknownRelation, NotPermitted, UnknownObject (an end is gone)."""
    relation = find(cx, repository, relation_id, principals)
    _ends(cx, repository, relation, principals)
    cx.execute(relations.delete().where(relations.c.id == relation.id))


def remove_type(cx: Connection, repository: Repository, name: str, principals: Principals) -> None:
    """Remove a type that no relation has.

    Raises NotPermitted, UnknownRelationType, InUse.
    """
    relation_types.remove(cx, repository.id, name, principals)
    of_type = sa.select(sa.literal(1)).where(relations.c.repository_id == repository.id, relations.c.name == name)
    if cx.execute(of_type.limit(1)).first() is not None:
        raise InUse(f"There are relations of the type {name!r}: remove them first.")


def relation_page(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    which: RelationFilter,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
) -> list[ListedRelation]:
    """List the relations of ``which`` that the caller may see, the oldest first unless the selection sorts them.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    members = _list_query(repository, principals, which)
    rows = pages.fetch(cx, members, _PROPERTIES, _OLDEST_FIRST, stretch, selection)
    return [ListedRelation(_read(row), place) for row, place in rows]


def count_relations(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    which: RelationFilter,
    selection: tree.Selection = tree.EVERYTHING,
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _list_query(repository, principals, which), _PROPERTIES, selection)


def count_by_maker(cx: Connection, maker_key: str) -> int:
    return count_where(cx, relations.c.maker_key == maker_key)


def _ends(
    cx: Connection, repository: Repository, draft: RelationDraft | Relation, principals: Principals
) -> tuple[str, str]:
    """Lock both ends, and return the parent's first.

    Raises UnknownObject, NotPermitted (if the caller lacks the permission Relate on an end).
    """
    ids = {}
    for object_id in sorted({draft.parent_id, draft.child_id}):
        stored, permission = objects.read(cx, repository, object_id, principals, lock=True)
        objects.require(permission, Permission.RELATE, f"relate the object {stored.id!r} to another")
        ids[object_id] = stored.id
    return ids[draft.parent_id], ids[draft.child_id]


def _members(
    repository: Repository, principals: Principals, column: sa.ColumnElement[int] = relations.c.repository_id
) -> sa.Select[Any]:
    ends = relations.c.parent_id, relations.c.child_id
    visible = [reach.permits(end, principals, Permission.BROWSE) for end in ends]
    return sa.select(*_COLUMNS).where(column == repository.id, *visible)


def next_relations(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[tuple[int, Relation, str]]:
    """Return relations with counters above ``after_seq``, and makers' keys. No rights are checked."""
    query = sa.select(relations.c.seq, relations.c.maker_key, *_COLUMNS)
    rows = query.where(relations.c.repository_id == repository_id, relations.c.seq > after_seq)
    return [(row.seq, _read(row), row.maker_key) for row in cx.execute(rows.order_by(relations.c.seq).limit(limit))]


def put_back(cx: Connection, repository_id: int, some: Sequence[tuple[Relation, str]]) -> None:
    """Store relations with makers' keys, which the caller has checked.

    Raises IntegrityError if an id is taken.
    """
    rows = [{**msgspec.structs.asdict(each), "repository_id": repository_id, "maker_key": key} for each, key in some]
    if rows:
        cx.execute(relations.insert(), rows)


def _list_query(repository: Repository, principals: Principals, which: RelationFilter) -> sa.Select[Any]:
    column = relations.c.repository_id if which.object_id is None else without_index(relations.c.repository_id)
    query = _members(repository, principals, column)
    if which.name is not None:
        query = query.where(relations.c.name == which.name)
    if which.object_id is None:
        return query
    parent, child = relations.c.parent_id == which.object_id, relations.c.child_id == which.object_id
    return query.where({"parent": parent, "child": child, "any": sa.or_(parent, child)}[which.role])


def _read(row: Any) -> Relation:
    return Relation(**{name: getattr(row, name) for name in Relation.__struct_fields__})


_COLUMNS = tuple(relations.c[name] for name in Relation.__struct_fields__)
_OLDEST_FIRST = pages.Order((pages.OrderKey(relations.c.seq, kind="integer"),))
_PROPERTIES = listed.among(
    {
        "r_object_id": listed.single("id", relations.c.id),
        "relation_name": listed.exact(relations.c.name),
        "parent_id": listed.single("id", relations.c.parent_id),
        "child_id": listed.single("id", relations.c.child_id),
        "r_creator_name": listed.exact(relations.c.maker),
        "r_creation_date": listed.single("date", relations.c.created),
    }
)
