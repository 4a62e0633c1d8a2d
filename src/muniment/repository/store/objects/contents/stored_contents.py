"""Which contents does the store keep, and how many rows name each of them? Equal bytes are kept once (decision 0073).

The transaction that adds or removes a *use*, a row that names a content, changes the count, so it is right even after a
kill. The sweep, the compaction and backups read only this table.

A key is never given to another content: without a use, its bytes may be removed at any time after the commit, whatever
other processes upload. Of equal contents, new uploads use the one that is ``offered``.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, portions, repository_tables, required
from muniment.database.statements import upsert
from muniment.repository.refusals import VersionConflict
from muniment.repository.store.content.contract import Pack, StoredContent
from muniment.repository.store.objects.contents.usage import Amount

stored_contents = sa.Table(
    "stored_contents",
    repository_tables,
    sa.Column("key", sa.String(32), primary_key=True),
    required("size", sa.BigInteger),
    required("sha256", sa.LargeBinary),
    required("uses", sa.BigInteger),
    required("offered", sa.Boolean),
)
_IS_OFFERED = sa.text("offered")
"""A query must repeat this text to use the index: for SQLite, SQLAlchemy would write ``offered = 1``."""

sa.Index(
    "ix_stored_contents_offered",
    stored_contents.c.sha256,
    unique=True,
    sqlite_where=_IS_OFFERED,
    postgresql_where=_IS_OFFERED,
)

_AT_A_TIME = 500
_ROW = (stored_contents.c.key, stored_contents.c.size, stored_contents.c.sha256)


def keep_contents(cx: Connection, contents: Sequence[StoredContent]) -> list[StoredContent]:
    """Count a use of each; return the contents that the rows have to name.

    For equal bytes that is the kept content, and the caller removes the new one after the commit
    (``content_references.drop_spares``).

    Locks are taken in the order of digests, so that no two transactions wait for each other.
    """
    counts = Counter(content.sha256 for content in contents)
    firsts = {content.sha256: content for content in reversed(contents)}
    rows = [
        {"key": firsts[digest].key, "size": firsts[digest].size, "sha256": digest, "uses": counts[digest]}
        for digest in sorted(counts)
    ]
    keys: dict[bytes, str] = {}
    if len(rows) == 1:
        keys[contents[0].sha256] = _KEEP_ONE.all(cx, **rows[0])[0][0]
    else:
        _KEEP.run_for_each(cx, rows)
        for digests in portions(row["sha256"] for row in rows):
            keys.update((bytes(sha256), key) for key, sha256 in _OFFERED.all(cx, digests=digests))
    return [StoredContent(keys[each.sha256], each.size, each.sha256) for each in contents]


def share(cx: Connection, contents: Sequence[StoredContent]) -> None:
    """Count one more use of each.

    Raises VersionConflict if one of them is gone.

    For each content, the caller has read and locked a row that names it.
    """
    counts = Counter(content.key for content in contents)
    for content in sorted({content.key: content for content in contents}.values(), key=_in_order):
        more = stored_contents.c.uses + counts[content.key]
        one = stored_contents.update().where(stored_contents.c.key == content.key)
        if not cx.execute(one.values(uses=more)).rowcount:
            raise VersionConflict("The content was replaced meanwhile: try again.")


def keep_or_share(
    cx: Connection, contents: Sequence[StoredContent | None], shared: Collection[str]
) -> list[StoredContent | None]:
    """``share`` those with a key in ``shared``, and ``keep_contents`` for the others: return, in order, what each row
    has to name.
    """
    share(cx, [content for content in contents if content is not None and content.key in shared])
    new = [content for content in contents if content is not None and content.key not in shared]
    kept = iter(keep_contents(cx, new) if new else ())
    return [content if content is None or content.key in shared else next(kept) for content in contents]


def take(keys: set[str], contents: Sequence[StoredContent]) -> tuple[str, ...]:
    own = tuple(dict.fromkeys(content.key for content in contents if content.key in keys))
    keys.difference_update(own)
    return own


def release(cx: Connection, contents: Sequence[StoredContent]) -> tuple[str, ...]:
    """Subtract one use of each; return the keys without any.

    The caller removes the bytes after the commit, or else the sweep.
    """
    counts = Counter(content.key for content in contents)
    some = sorted({content.key: content for content in contents}.values(), key=_in_order)
    if not some:
        return ()
    _RELEASE.run_for_each(cx, [{"of": content.key, "less": counts[content.key]} for content in some])
    gone: list[str] = []
    for keys in portions(content.key for content in some):
        unused = sa.and_(stored_contents.c.key.in_(keys), stored_contents.c.uses <= 0)
        gone += cx.scalars(stored_contents.delete().where(unused).returning(stored_contents.c.key))
    return tuple(gone)


def exchange(
    cx: Connection, new: Sequence[StoredContent], former: Sequence[StoredContent]
) -> tuple[list[StoredContent], tuple[str, ...]]:
    """Return the results of ``keep_contents`` and of ``release``."""
    if former and cx.dialect.name == "postgresql":
        # Two transactions that exchange the same contents in opposite directions must not wait for each other.
        digests = {content.sha256 for content in (*new, *former)}
        is_offered = sa.and_(stored_contents.c.sha256.in_(digests), _IS_OFFERED)
        cx.execute(
            sa.select(stored_contents.c.key)
            .where(sa.or_(is_offered, stored_contents.c.key.in_({content.key for content in former})))
            .order_by(stored_contents.c.sha256, stored_contents.c.key)
            .with_for_update()
        )
    kept = keep_contents(cx, new)
    return kept, release(cx, former)


def used_keys(cx: Connection, keys: Collection[str]) -> set[str]:
    """Take at most a few hundred keys."""
    return set(cx.scalars(sa.select(stored_contents.c.key).where(stored_contents.c.key.in_(keys))))


def is_used(cx: Connection, key: str) -> bool:
    """Wait for transactions that change the count of its uses."""
    query = sa.select(stored_contents.c.uses).where(stored_contents.c.key == key).with_for_update()
    return cx.execute(query).first() is not None


def amount(cx: Connection) -> Amount:
    """Count and sum in one statement."""
    count, size = cx.execute(sa.select(sa.func.count(), sa.func.sum(stored_contents.c.size))).one()
    return Amount(count, int(size or 0))


def amount_in(cx: Connection, pack: Pack) -> Amount:
    query = sa.select(sa.func.count(), sa.func.sum(stored_contents.c.size)).where(_in(pack))
    count, size = cx.execute(query).one()
    return Amount(count, int(size or 0))


def portion_of(cx: Connection, pack: Pack, after_key: str, limit: int) -> list[StoredContent]:
    """Return the next contents in the order of keys."""
    return _portion(cx, limit, sa.and_(_in(pack), stored_contents.c.key > after_key))


def all_stored_contents(cx: Connection) -> Iterator[StoredContent]:
    """Yield them in the order of keys; a statement reads at most 500."""
    last_key: str | None = ""
    while last_key is not None:
        portion = stored_content_page(cx, last_key, _AT_A_TIME)
        yield from portion
        last_key = portion[-1].key if portion else None


def stored_content_page(cx: Connection, after_key: str, limit: int) -> list[StoredContent]:
    """Return the next contents in the order of keys."""
    return _portion(cx, limit, stored_contents.c.key > after_key)


def move_uses(cx: Connection, original: StoredContent, copy: StoredContent, count: int) -> None:
    """Move ``count`` uses: as many rows have just been made to name ``copy``. It takes the original's place for new
    uploads of equal bytes; the row of an original without a use is removed.
    """
    offered = cx.execute(
        sa.select(stored_contents.c.offered).where(stored_contents.c.key == original.key).with_for_update()
    ).scalar_one_or_none()
    less = {"uses": stored_contents.c.uses - count, "offered": False}
    cx.execute(stored_contents.update().where(stored_contents.c.key == original.key).values(**less))
    more = {"uses": stored_contents.c.uses + count}
    if not cx.execute(stored_contents.update().where(stored_contents.c.key == copy.key).values(**more)).rowcount:
        values = {"key": copy.key, "size": copy.size, "sha256": copy.sha256, "uses": count, "offered": bool(offered)}
        cx.execute(stored_contents.insert().values(**values))
    cx.execute(stored_contents.delete().where(stored_contents.c.key == original.key, stored_contents.c.uses <= 0))


def _in_order(content: StoredContent) -> tuple[bytes, str]:
    return content.sha256, content.key


def _portion(cx: Connection, limit: int, where: sa.ColumnElement[bool]) -> list[StoredContent]:
    rows = cx.execute(sa.select(*_ROW).where(where).order_by(stored_contents.c.key).limit(limit))
    return [StoredContent(key, size, bytes(sha256)) for key, size, sha256 in rows]


def _in(pack: Pack) -> sa.ColumnElement[bool]:
    return stored_contents.c.key.between(pack.first, pack.last)


_NEW = upsert(stored_contents).values(
    offered=sa.true(), **{name: sa.bindparam(name) for name in ("key", "size", "sha256", "uses")}
)
_ONE_MORE = _NEW.on_conflict_do_update(
    index_elements=[stored_contents.c.sha256],
    index_where=_IS_OFFERED,
    set_={"uses": stored_contents.c.uses + _NEW.excluded.uses},
)
_KEEP, _KEEP_ONE = PreparedStatement(_ONE_MORE), PreparedStatement(_ONE_MORE.returning(stored_contents.c.key))
_OFFERED = PreparedStatement(
    sa.select(stored_contents.c.key, stored_contents.c.sha256).where(
        stored_contents.c.sha256.in_(sa.bindparam("digests", expanding=True)), _IS_OFFERED
    )
)
_RELEASE = PreparedStatement(
    stored_contents.update()
    .where(stored_contents.c.key == sa.bindparam("of"))
    .values(uses=stored_contents.c.uses - sa.bindparam("less"))
)
