"""Comments on objects, and replies to them: keep, find, change, remove, list.

Only the author and administrators may change or remove one. When an object is deleted, the database removes its
comments. Source: docs/interface.md, ours 20.
"""

import secrets
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.connections import BigId, repository_column, repository_tables, required, required_columns
from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, is_storable
from muniment.repository.refusals import NotPermitted, UnknownComment, VersionConflict, WrongValue
from muniment.repository.store.filters import cursors, listed, pages, tree
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.listing import reach
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import quota
from muniment.repository.store.repositories import Repository

comments = sa.Table(
    "comments",
    repository_tables,
    sa.Column("seq", BigId, primary_key=True),
    required("id", sa.String(16), unique=True),
    repository_column(),
    required("object_id", sa.ForeignKey("objects.id", ondelete="CASCADE")),
    sa.Column("replies_to", sa.ForeignKey("comments.id", ondelete="CASCADE")),
    required("depth", sa.SmallInteger),
    *required_columns(sa.String(400), "author", "author_name"),
    required("author_key", sa.String(400), index=True),
    *required_columns(sa.BigInteger, "created", "modified"),
    required("revision", sa.Integer),
    required("text", sa.Text),
    sa.Index("ix_comments_object", "object_id", "replies_to", "seq"),
    sa.Index("ix_comments_replies", "replies_to", "seq"),
    sa.Index("ix_comments_repository", "repository_id", "seq"),
    sqlite_autoincrement=True,
)

LONGEST_TEXT = 10_000

DEEPEST = 20
"""So many comments may be above a reply: a database removes replies level by level."""

_DIGITS = "43"


class Comment(msgspec.Struct, frozen=True):
    """A comment. ``replies_to`` is the id of the comment to which it replies, or None."""

    id: str
    object_id: str
    replies_to: str | None
    depth: int
    author: str
    author_key: str
    created: Instant
    modified: Instant
    revision: int
    text: str


class ListedComment(NamedTuple):
    """A comment of a list."""

    comment: Comment
    place: cursors.Place


def add(
    cx: Connection,
    repository: Repository,
    object_id: str,
    text: str,
    principals: Principals,
    now: Instant,
    most: int,
    above: Comment | None = None,
) -> Comment:
    """``most`` limits the comments that one user has written.

    Raises UnknownObject, NotPermitted, WrongValue, QuotaExceeded, VersionConflict (the object is gone).
    """
    stored, permission = objects.read(cx, repository, object_id, principals, lock=True)
    objects.require(permission, Permission.RELATE, "comment on this object")
    quota.check(cx, comments.c.author_key, principals, most, "comments")
    new = Comment(
        id=_DIGITS + secrets.token_hex(7),
        object_id=stored.id,
        replies_to=above.id if above else None,
        depth=above.depth + 1 if above else 0,
        author=principals.id,
        author_key=principals.key,
        created=now,
        modified=now,
        revision=1,
        text=_check_text(text),
    )
    row = {**msgspec.structs.asdict(new), "repository_id": repository.id, "author_name": fold_name(new.author)}
    try:
        cx.execute(comments.insert().values(row))
    except IntegrityError as error:
        raise VersionConflict("The object or the comment was deleted meanwhile.") from error
    return new


def reply(
    cx: Connection,
    repository: Repository,
    comment_id: str,
    text: str,
    principals: Principals,
    now: Instant,
    most: int,
) -> Comment:
    """Raises UnknownComment, and what ``add`` raises."""
    above = find(cx, repository, comment_id, principals)
    if above.depth >= DEEPEST:
        raise WrongValue(f"A reply has at most {DEEPEST} comments above it.")
    return add(cx, repository, above.object_id, text, principals, now, most, above)


def find(
    cx: Connection, repository: Repository, comment_id: str, principals: Principals, *, lock: bool = False
) -> Comment:
    """Return a comment on an object that the caller may read.

    Raises UnknownComment.
    """
    readable = reach.permits(comments.c.object_id, principals, Permission.READ)
    query = sa.select(*_COLUMNS).where(comments.c.id == comment_id, comments.c.repository_id == repository.id, readable)
    row = cx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise UnknownComment(f"There is no comment {comment_id[:40]!r}.")
    return _read(row)


def change(
    cx: Connection,
    repository: Repository,
    comment_id: str,
    text: str,
    principals: Principals,
    now: Instant,
    expected: int | None = None,
) -> Comment:
    """Give a comment another text. ``expected`` is the revision that the caller has seen.

    Raises UnknownComment, UnknownObject (the object is gone), NotPermitted, VersionConflict, WrongValue.
    """
    comment, permission = _lock_own(cx, repository, comment_id, principals, expected)
    objects.require(permission, Permission.RELATE, "comment on this object")
    columns = {"text": _check_text(text), "modified": now, "revision": comment.revision + 1}
    cx.execute(comments.update().where(comments.c.id == comment.id).values(columns))
    return msgspec.structs.replace(comment, **columns)


def remove(
    cx: Connection, repository: Repository, comment_id: str, principals: Principals, expected: int | None = None
) -> None:
    """Remove a comment with all replies.

    Raises what ``change`` raises, except WrongValue.
    """
    comment, _ = _lock_own(cx, repository, comment_id, principals, expected)
    cx.execute(comments.delete().where(comments.c.id == comment.id))


def may_change(comment: Comment, principals: Principals) -> bool:
    return principals.administrator or principals.is_(comment.author_key)


def comment_page(
    cx: Connection,
    object_id: str,
    replies_to: str | None,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
) -> list[ListedComment]:
    """List the replies, or without ``replies_to`` the others, the oldest first unless sorted. No rights are checked.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    rows = pages.fetch(cx, _members(object_id, replies_to), _property, _OLDEST_FIRST, stretch, selection)
    return [ListedComment(_read(row), place) for row, place in rows]


def count_comments(
    cx: Connection, object_id: str, replies_to: str | None, selection: tree.Selection = tree.EVERYTHING
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _members(object_id, replies_to), _property, selection)


def count_by_author(cx: Connection, author_key: str) -> int:
    return count_where(cx, comments.c.author_key == author_key)


def next_comments(cx: Connection, repository_id: int, after_seq: int, limit: int) -> list[tuple[int, Comment]]:
    """Return comments with counters above ``after_seq``. No rights are checked."""
    query = sa.select(comments.c.seq, *_COLUMNS)
    rows = query.where(comments.c.repository_id == repository_id, comments.c.seq > after_seq)
    return [(row.seq, _read(row)) for row in cx.execute(rows.order_by(comments.c.seq).limit(limit))]


def by_ids(cx: Connection, repository_id: int, ids: Collection[str]) -> dict[str, Comment]:
    """Take at most a few hundred."""
    query = sa.select(*_COLUMNS).where(comments.c.id.in_(sorted(ids)), comments.c.repository_id == repository_id)
    return {row.id: _read(row) for row in cx.execute(query)}


def put_back(cx: Connection, repository_id: int, some: Sequence[Comment]) -> None:
    """Store comments; the caller has checked what they refer to. Raises WrongValue for a forbidden text, IntegrityError
    if an id is taken.
    """
    rows = [
        {**msgspec.structs.asdict(each), "repository_id": repository_id, "author_name": fold_name(each.author)}
        for each in some
        if _check_text(each.text)
    ]
    if rows:
        cx.execute(comments.insert(), rows)


def _lock_own(
    cx: Connection, repository: Repository, comment_id: str, principals: Principals, expected: int | None
) -> tuple[Comment, Permission]:
    """Lock a comment; the permission on its object is looked up after the wait for the lock."""
    comment = find(cx, repository, comment_id, principals, lock=True)
    _, permission = objects.read(cx, repository, comment.object_id, principals)
    objects.require(permission, Permission.READ, "read the comments on this object")
    if not may_change(comment, principals):
        raise NotPermitted("Only its author or an administrator may change or remove a comment.")
    if expected is not None and expected != comment.revision:
        raise VersionConflict("The comment has changed since the revision that you named: read it again.")
    return comment, permission


def _check_text(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_TEXT or not is_storable(text):
        raise WrongValue(f"The text of a comment has 1 to {LONGEST_TEXT} characters of Unicode text.")
    return text


def _members(object_id: str, replies_to: str | None) -> sa.Select[Any]:
    query = sa.select(*_COLUMNS).where(comments.c.object_id == object_id)
    return query.where(comments.c.replies_to.is_(None) if replies_to is None else comments.c.replies_to == replies_to)


def _read(row: Any) -> Comment:
    return Comment(**{name: getattr(row, name) for name in Comment.__struct_fields__})


_COLUMNS = tuple(comments.c[name] for name in Comment.__struct_fields__)
_OLDEST_FIRST = pages.Order((pages.OrderKey(comments.c.seq, kind="integer"),))

_property = listed.among(
    {
        "r_object_id": listed.single("id", comments.c.id),
        "owner_name": listed.single("string", comments.c.author, compared=comments.c.author_name, fold=fold_name),
        "r_creation_date": listed.single("date", comments.c.created),
        "r_modify_date": listed.single("date", comments.c.modified),
    }
)
