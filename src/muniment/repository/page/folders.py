"""What lies directly in a folder, by name, as the caller may see it."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed
from muniment.repository.options import RepositoryOptions
from muniment.repository.page.asking import choices
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.listing.object_ids import holds_objects
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject

_LISTED = 50


class ListedMember(msgspec.Struct, frozen=True):
    """``title`` is empty unless it says more than the name; ``kind`` is format or type."""

    id: str
    name: str
    title: str
    kind: str
    owner: str
    modified: Instant
    size: int | None


class FolderList(msgspec.Struct, frozen=True):
    """``part`` counts from 1."""

    members: list[ListedMember]
    part: int
    has_more: bool


def contents(cx: Connection, view: RepositoryView, folder_id: str, part: int, options: RepositoryOptions) -> FolderList:
    """Part 0 means the first. Raises Malformed if it lies deeper than any list goes."""
    part = part or 1
    if (part - 1) * _LISTED > options.max_page_offset:
        raise Malformed(f"The list of a folder has {options.max_page_offset // _LISTED + 1} parts at most.")
    stretch = Stretch(None, (part - 1) * _LISTED, _LISTED + 1)
    found = lists.object_page(cx, Folder(view, folder_id, "sysobject"), stretch)
    members = [_listed(each.stored) for each in found[:_LISTED]]
    return FolderList(members, part, len(found) > _LISTED)


def _listed(stored: StoredObject) -> ListedMember:
    title = stored.title.strip()
    has_format = stored.content is not None and not holds_objects(stored.id)
    return ListedMember(
        id=stored.id,
        name=stored.name,
        title=title if title != stored.name else "",
        kind=choices.format_label(stored.media_type) if has_format else stored.type,
        owner=stored.owner,
        modified=stored.modified,
        size=stored.content.size if stored.content else None,
    )
