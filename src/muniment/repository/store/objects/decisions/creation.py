"""May a caller make new objects in a folder, and which properties do these objects get?"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import WrongValue
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.extraction.queue import ExtractedText
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ContentPlace
from muniment.repository.store.objects.contents.usage import StorageQuota
from muniment.repository.store.objects.decisions import contents
from muniment.repository.store.objects.folders import unique_names
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties import stored_values
from muniment.repository.store.objects.properties.properties import Given, Value, milliseconds
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import writable
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission


class NewObject(msgspec.Struct, frozen=True):
    """Without ``text``, the extractor reads the content later.

    With ``shared``, the content is another object's, whose row the caller has locked. Values that ``original``, the
    copied object's properties, has too are not checked against closed lists.
    """

    type: str
    properties: Mapping[str, Given]
    folder_id: str | None = None
    content: StoredContent | None = None
    text: ExtractedText | None = None
    shared: bool = False
    further: Sequence[tuple[ContentPlace, str, StoredContent]] = ()
    original: Mapping[str, list[Value]] = {}


def create(
    cx: Connection,
    view: RepositoryView,
    type_name: str,
    properties: Mapping[str, Given],
    folder_id: str | None,
    content: StoredContent | None,
    now: Instant,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> StoredObject:
    """Make an object that the caller owns, unless ``properties`` name another owner.

    Without an ACL in ``properties``, it gets the default ACL of the folder, or the folder's own; in no folder,
    ``private``. A content without an ``a_content_date`` is dated ``now``. ``quota`` limits the owner, unless the caller
    is an administrator.

    Raises UnknownObject (the folder), NotPermitted, UnknownType, UnknownProperty, UnknownAcl, WrongValue, NotWritable,
    NameTaken, VersionConflict, QuotaExceeded.
    """
    return create_all(cx, view, [NewObject(type_name, properties, folder_id, content)], now, quota)[0]


def create_all(
    cx: Connection,
    view: RepositoryView,
    new_objects: Sequence[NewObject],
    now: Instant,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> list[StoredObject]:
    """Send most statements once for all objects. If this raises, the caller rolls back."""
    repository, principals = view.repository, view.principals
    folders: dict[tuple[str, str | None], StoredObject | None] = {}
    acl_ids: dict[str | None, int] = {}
    owner_keys: dict[str, str] = {}
    drafts: list[StoredObject] = []
    for new in new_objects:
        place = new.type, new.folder_id
        if place not in folders:
            folders[place] = may_create(cx, view, *place)
        folder, creator = folders[place], principals.id
        current: dict[str, list[Value]] = {
            **new.original,
            "r_object_type": [new.type],
            "i_folder_id": [folder.id] if folder else [],
            "owner_name": [creator],
        }
        values = writable.read(view.catalogue, new.type, new.properties, current, principals, owns=True, new=True)
        acl_name = writable.text_of(values, "acl_name") if "acl_name" in values else None
        if acl_name not in acl_ids and acl_name is not None:
            acl_ids[acl_name] = object_acls.find_assignable(cx, repository.id, acl_name, principals)
        elif acl_name not in acl_ids and folder is None:
            acl_ids[None] = acls.built_in(cx, repository.id, acls.PRIVATE, now)
        owner = writable.text_of(values, "owner_name") or creator
        if owner not in owner_keys:
            owner_keys[owner] = principals.key_for(cx, owner, now)
        dated = writable.content_date(values)
        if dated is None and new.content is not None:
            dated = milliseconds(now)
        drafts.append(
            StoredObject(
                seq=0,
                id="",
                repository_id=repository.id,
                type=new.type,
                name=writable.object_name(values),
                owner=owner,
                owner_key=owner_keys[owner],
                acl_id=(folder.default_acl_id or folder.acl_id) if folder and acl_name is None else acl_ids[acl_name],
                folder_id=folder.id if folder else None,
                created=now,
                creator=creator,
                modified=now,
                modifier=creator,
                revision=1,
                properties=stored_values.decode(stored_values.encode(values)),
                media_type=writable.text_of(values, "a_content_type"),
                content=new.content,
                default_acl_id=folder.default_acl_id if folder and view.catalogue.is_a(new.type, "folder") else None,
                content_date=dated,
            )
        )
    for folder_id in sorted({draft.folder_id or "" for draft in drafts}) if view.unique_names else ():
        names = [draft.name for draft in drafts if (draft.folder_id or "") == folder_id and _is_listed(draft, view)]
        unique_names.claim(cx, view, folder_id or None, names)
    owner_quota = None if principals.administrator else quota
    shared = {new.content.key for new in new_objects if new.content is not None and new.shared}
    texts = [new.text for new in new_objects]
    created = objects.keep_new(cx, view, drafts, texts, now, owner_quota, shared=shared)
    for stored, new in zip(created, new_objects, strict=True):
        if new.further:
            contents.add_to_new(cx, stored, new.further, now, owner_quota, shared=new.shared)
    return created


def may_create(cx: Connection, view: RepositoryView, type_name: str, folder_id: str | None) -> StoredObject | None:
    """Check, perhaps before the content arrives, and return the folder.

    Raises UnknownType, UnknownObject, NotPermitted, WrongValue.
    """
    view.catalogue.get(type_name)
    is_cabinet = view.catalogue.is_a(type_name, "cabinet")
    if folder_id is None:
        if view.catalogue.is_a(type_name, "folder") and not is_cabinet:
            raise WrongValue("A folder is made in a cabinet or in another folder.")
        return None
    folder, permission = objects.read(cx, view.repository, folder_id, view.principals, "folder")
    if is_cabinet:
        raise WrongValue("A cabinet is made in the repository, not in a folder.")
    objects.require(permission, Permission.WRITE, "put objects into this folder")
    return folder


def _is_listed(draft: StoredObject, view: RepositoryView) -> bool:
    return draft.folder_id is not None or view.catalogue.is_a(draft.type, "cabinet")
