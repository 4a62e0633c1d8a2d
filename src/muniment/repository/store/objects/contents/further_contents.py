"""Which contents does an object have beside its main one? Further pages of its primary content, and renditions.

The main content, page 0 of the primary content, stands in the object's own row. A *rendition* is the same content in
another format; its place is format, page and modifier, that of a primary page only its number.

Source: docs/interface.md, ours 3.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, portions, repository_tables, required
from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects.table import further_columns

TABLE = "further_contents"

further_contents = sa.Table(
    "further_contents",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    required("object_id", sa.ForeignKey("objects.id")),
    *further_columns(),
    sa.Index("ix_further_contents_place", "object_id", "is_primary", "page", "format", "modifier", unique=True),
    sqlite_autoincrement=True,
)


class ContentPlace(NamedTuple):
    """For a page of the primary content, ``format`` and ``modifier`` are empty."""

    is_primary: bool
    page: int = 0
    format: str = ""
    modifier: str = ""

    @property
    def is_main(self) -> bool:
        return self.is_primary and self.page == 0


MAIN = ContentPlace(True)


class ObjectContent(msgspec.Struct, frozen=True):
    """The main content has the ``id`` 0 and the object's modification date."""

    id: int
    object_id: str
    place: ContentPlace
    media_type: str
    added: Instant
    content: StoredContent


def rendition(media_type: str, page: int, modifier: str) -> ContentPlace:
    """Parameters of the media type are left out."""
    return ContentPlace(False, page, media_type.partition(";")[0].strip().lower()[:255], modifier)


def find(cx: Connection, object_id: str, place: ContentPlace) -> ObjectContent | None:
    row = cx.execute(sa.select(further_contents).where(_at(object_id, place))).first()
    return None if row is None else read_row(row)


def further_contents_of(cx: Connection, object_id: str) -> list[ObjectContent]:
    """Return pages of the primary content, then renditions, both by page."""
    query = sa.select(further_contents).where(further_contents.c.object_id == object_id)
    order = (further_contents.c.is_primary.desc(), further_contents.c.page, further_contents.c.id)
    return [read_row(row) for row in cx.execute(query.order_by(*order))]


def count_further_contents(cx: Connection, object_id: str) -> int:
    return count_where(cx, further_contents.c.object_id == object_id)


def of_all(cx: Connection, object_ids: Collection[str]) -> Iterator[ObjectContent]:
    """Yield them in no order."""
    for ids in portions(sorted(object_ids)):
        query = sa.select(further_contents).where(further_contents.c.object_id.in_(ids))
        yield from map(read_row, cx.execute(query))


def by_object(cx: Connection, object_ids: Collection[str]) -> dict[str, list[ObjectContent]]:
    """Objects without any are left out."""
    several: dict[str, list[ObjectContent]] = {}
    for each in of_all(cx, object_ids):
        several.setdefault(each.object_id, []).append(each)
    return several


def sizes(cx: Connection, object_ids: Collection[str]) -> dict[str, int]:
    by_id: dict[str, int] = {}
    for each in of_all(cx, object_ids):
        by_id[each.object_id] = by_id.get(each.object_id, 0) + each.content.size
    return by_id


def page_counts(cx: Connection, object_ids: Collection[str]) -> dict[str, int]:
    """Count the pages of these objects beside the first one. An object without such a page is left out."""
    counts: dict[str, int] = {}
    for some in portions(sorted(object_ids)):
        counts.update((object_id, count) for object_id, count in _PAGE_COUNTS.all(cx, object_ids=some))
    return counts


def page_count(object_id: sa.ColumnElement[str]) -> sa.ScalarSelect[int]:
    """Make a subquery for the number of pages of an object beside the first one."""
    pages = further_contents.c.object_id == object_id, further_contents.c.is_primary
    return sa.select(sa.func.count(sa.distinct(further_contents.c.page))).where(*pages).scalar_subquery()


def sums() -> sa.Subquery:
    """Make a subquery with the columns ``object_id`` and ``bytes``."""
    columns = (further_contents.c.object_id, sa.func.sum(further_contents.c.content_size).label("bytes"))
    return sa.select(*columns).group_by(further_contents.c.object_id).subquery("further")


def add(
    cx: Connection, object_id: str, contents: Sequence[tuple[ContentPlace, str, StoredContent]], now: Instant
) -> None:
    """The places are free; each content has its media type. The caller has counted their uses."""
    rows = [_row(object_id, *each, now) for each in contents]
    if rows:
        cx.execute(further_contents.insert(), rows)


def put(cx: Connection, present: ObjectContent, media_type: str, content: StoredContent, now: Instant) -> None:
    """The caller counts the uses."""
    values = _row(present.object_id, present.place, media_type, content, now)
    cx.execute(further_contents.update().where(further_contents.c.id == present.id).values(**values))


def take_out(cx: Connection, present: ObjectContent) -> None:
    cx.execute(further_contents.delete().where(further_contents.c.id == present.id))


def remove(cx: Connection, object_ids: Sequence[str]) -> list[ObjectContent]:
    """Remove the further contents of at most a few hundred objects."""
    gone = further_contents.delete().where(further_contents.c.object_id.in_(object_ids))
    return [read_row(row) for row in cx.execute(gone.returning(further_contents))]


def with_main(main: StoredContent | None, contents: Sequence[ObjectContent]) -> list[StoredContent]:
    return [*([main] if main else []), *(each.content for each in contents)]


def _at(object_id: str, place: ContentPlace) -> sa.ColumnElement[bool]:
    columns = further_contents.c
    return sa.and_(
        columns.object_id == object_id,
        columns.is_primary == sa.literal(place.is_primary),
        columns.page == place.page,
        columns.format == place.format,
        columns.modifier == place.modifier,
    )


def row_of(present: ObjectContent) -> dict[str, object]:
    return _row(present.object_id, present.place, present.media_type, present.content, present.added)


def put_back(cx: Connection, contents: Sequence[ObjectContent]) -> None:
    """Their uses are counted already."""
    if contents:
        cx.execute(further_contents.insert(), [row_of(each) for each in contents])


def _row(
    object_id: str, place: ContentPlace, media_type: str, content: StoredContent, now: Instant
) -> dict[str, object]:
    return {
        "object_id": object_id,
        **place._asdict(),
        "media_type": media_type,
        "added": now,
        "content_key": content.key,
        "content_size": content.size,
        "content_sha256": content.sha256,
    }


def read_row(row: Sequence[Any]) -> ObjectContent:
    """``row`` has all columns of the table in their order."""
    counter, object_id, is_primary, page, media_type, essence, modifier, added, key, size, sha256 = row
    place = ContentPlace(bool(is_primary), page, essence, modifier)
    return ObjectContent(counter, object_id, place, media_type, added, StoredContent(key, size, bytes(sha256)))


_PAGE_COUNTS = PreparedStatement(
    sa.select(further_contents.c.object_id, sa.func.count(sa.distinct(further_contents.c.page)))
    .where(further_contents.c.object_id.in_(sa.bindparam("object_ids", expanding=True)), further_contents.c.is_primary)
    .group_by(further_contents.c.object_id)
)
