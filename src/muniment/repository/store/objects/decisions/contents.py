"""Which contents does an object have? Source: docs/interface.md, ours 3."""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import ContentExists, NoContent, WrongValue
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents import further_contents, stored_contents, usage
from muniment.repository.store.objects.contents.further_contents import MAIN, ContentPlace, ObjectContent
from muniment.repository.store.objects.table import StoredObject, content_columns
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

MOST = 400


class WantedContent(msgspec.Struct, frozen=True):
    """Which content of an object a request means.

    ``primary`` is True for a page of the primary content, False for a rendition, None for either. A rendition must have
    this media type (without parameters) and this modifier, or none if that is empty; a primary page any media type if
    ``media_type`` is empty.
    """

    media_type: str = ""
    page: int = 0
    modifier: str = ""
    primary: bool | None = None


PRIMARY = WantedContent()


class ContentChange(msgspec.Struct, frozen=True):
    """An object, and the content of it that has changed."""

    stored: StoredObject
    content: ObjectContent


def main(stored: StoredObject) -> ObjectContent | None:
    if stored.content is None:
        return None
    return ObjectContent(0, stored.id, MAIN, stored.media_type, stored.modified, stored.content)


def all_contents(cx: Connection, stored: StoredObject) -> list[ObjectContent]:
    """Return pages of the primary content, then renditions by page."""
    first = main(stored)
    return [*([first] if first else []), *further_contents.further_contents_of(cx, stored.id)]


def find(cx: Connection, stored: StoredObject, wanted: WantedContent) -> ObjectContent:
    """Prefer a page of the primary content to a rendition. The main content takes no statement.

    Raises NoContent.
    """
    if not wanted.modifier and wanted.primary is not False:
        place = ContentPlace(True, wanted.page)
        primary = main(stored) if place.is_main else further_contents.find(cx, stored.id, place)
        if primary and (not wanted.media_type or _are_same(primary.media_type, wanted.media_type)):
            return primary
    if wanted.media_type and wanted.primary is not True:
        place = further_contents.rendition(wanted.media_type, wanted.page, wanted.modifier)
        if rendition := further_contents.find(cx, stored.id, place):
            return rendition
    raise NoContent(f"The object {stored.id!r} has no such content.")


def place_of(wanted: WantedContent) -> ContentPlace:
    """Choose a rendition if ``primary`` is False, else a primary page.

    Raises WrongValue for a page of the primary content with a modifier.
    """
    if wanted.primary is False:
        return further_contents.rendition(wanted.media_type, wanted.page, wanted.modifier)
    if wanted.modifier:
        raise WrongValue("A page of the primary content has no modifier: only renditions have one (primary=false).")
    return ContentPlace(True, wanted.page)


def put(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    place: ContentPlace,
    content: StoredContent,
    media_type: str,
    now: Instant,
    *,
    overwrite: bool = True,
    expected: int | None = None,
    text: queue.ExtractedText | None = None,
    quota: usage.StorageQuota = usage.StorageQuota(),  # noqa: B008 - it does not change
) -> ContentChange:
    """``text`` and ``quota`` are as in ``objects.replace_content``, and so is what the caller removes after the commit.

    Raises what that function raises, ContentExists, and WrongValue for too many contents.
    """
    stored = objects.lock_to_change(cx, repository, principals, object_id, expected)
    objects.check_may_have_content(stored, principals)
    present = main(stored) if place.is_main else further_contents.find(cx, stored.id, place)
    if present is not None and not overwrite:
        raise ContentExists("The object has this content already, and 'overwrite' is false.")
    if place.is_main:
        new = objects.replace_content(
            cx, repository, principals, object_id, content, media_type, now, text=text, quota=quota
        )
        first = main(new)
        assert first is not None  # noqa: S101 - it has just got it
        return ContentChange(new, first)
    _check_number(further_contents.count_further_contents(cx, stored.id) + (present is None))
    (kept,), freed = stored_contents.exchange(cx, [content], [present.content] if present else [])
    if present is None:
        further_contents.add(cx, stored.id, [(place, media_type, kept)], now)
    else:
        further_contents.put(cx, present, media_type, kept, now)
    growth = usage.Amount(0, content.size - (present.content.size if present else 0))
    usage.add_usage(cx, {stored.owner_key: growth}, None if principals.administrator else quota)
    new = objects.update(cx, stored, principals, ["properties"], now)
    added = ObjectContent(present.id if present else 0, stored.id, place, media_type, now, kept)
    return ContentChange(msgspec.structs.replace(new, freed=freed), added)


def remove(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    wanted: WantedContent,
    now: Instant,
    *,
    expected: int | None = None,
) -> StoredObject:
    """The caller removes the ``freed`` contents after the commit.

    Raises UnknownObject, NotPermitted, VersionConflict, CheckedOut, NoContent, Superseded.
    """
    stored = objects.lock_to_change(cx, repository, principals, object_id, expected)
    present = find(cx, stored, wanted)
    objects.check_may_have_content(stored, principals)
    if present.place.is_main:
        columns = {**content_columns(None), "media_type": "", "content_date": None}
        new = objects.update(cx, stored, principals, ["content"], now, **columns)
        queue.drop(cx, [stored.id])
    else:
        further_contents.take_out(cx, present)
        new = objects.update(cx, stored, principals, ["properties"], now)
    freed = stored_contents.release(cx, [present.content])
    usage.add_usage(cx, {stored.owner_key: usage.Amount(0, -present.content.size)}, None)
    return msgspec.structs.replace(new, freed=freed)


def add_to_new(
    cx: Connection,
    stored: StoredObject,
    some: Sequence[tuple[ContentPlace, str, StoredContent]],
    now: Instant,
    quota: usage.StorageQuota | None,
    *,
    shared: bool = False,
    present: int = 0,
) -> list[StoredContent]:
    """Give a new object further contents, each with its place and media type; it has ``present`` others already.

    Returns the stored contents that the object's rows name now, in the same order. With ``shared``, another object has
    these contents already, and the caller has locked that object's row. Raises WrongValue (a folder, too many contents,
    two at one place), VersionConflict, QuotaExceeded.
    """
    if not some:
        return []
    objects.check_holds_content(stored.id)
    _check_number(present + len(some))
    if len({place for place, _, _ in some}) < len(some):
        raise WrongValue("Two contents have the same place: renditions differ in format, page or modifier.")
    contents = [content for _, _, content in some]
    if shared:
        stored_contents.share(cx, contents)
    else:
        contents = stored_contents.keep_contents(cx, contents)
    rows = [(place, media_type, kept) for (place, media_type, _), kept in zip(some, contents, strict=True)]
    further_contents.add(cx, stored.id, rows, now)
    usage.add_usage(cx, {stored.owner_key: usage.Amount(0, sum(content.size for content in contents))}, quota)
    return contents


def _check_number(number: int) -> None:
    if number > MOST:
        raise WrongValue(f"An object has at most {MOST} contents beside its main one.")


def _are_same(left: str, right: str) -> bool:
    return left.partition(";")[0].strip().lower() == right.partition(";")[0].strip().lower()
