"""Make new objects: may this caller make them there, and which properties do they get?

Many objects take as few statements as one: an import makes a hundred at a time.
"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.content.contract import StoredContent
from muniment.repository.extraction.queue import ExtractedText
from muniment.repository.objects import objects, writable
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.objects import StoredObject
from muniment.repository.objects.properties import Given, Value
from muniment.repository.objects.usage import StorageQuota
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import WrongValue
from muniment.repository.repositories import Repository


class NewObject(msgspec.Struct, frozen=True):
    """An object to be made. ``text`` is the text of its content, if known; otherwise it is extracted later."""

    type: str
    properties: Mapping[str, Given]
    folder_id: str | None = None
    content: StoredContent | None = None
    text: ExtractedText | None = None


def create(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    type_name: str,
    properties: Mapping[str, Given],
    folder_id: str | None,
    content: StoredContent | None,
    now: Instant,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> StoredObject:
    """Make an object, in a folder (whose ACL it gets) or unfiled (``private``), owned by the caller.

    The media type of the content is the property ``a_content_type``. ``quota`` limits what the owner may have, unless
    an administrator asks. Raises UnknownObject (the folder), NotPermitted, UnknownType, UnknownProperty, UnknownAcl,
    WrongValue, NotWritable, QuotaExceeded.
    """
    draft = NewObject(type_name, properties, folder_id, content)
    return create_all(cx, repository, catalogue, principals, [draft], now, quota)[0]


def create_all(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    new_objects: Sequence[NewObject],
    now: Instant,
    quota: StorageQuota = StorageQuota(),  # noqa: B008 - it does not change
) -> list[StoredObject]:
    """Make objects as ``create`` does, in as few statements as one takes; none when it raises."""
    folders: dict[tuple[str, str | None], StoredObject | None] = {}
    acl_ids: dict[str | None, int] = {}
    drafts: list[StoredObject] = []
    for new in new_objects:
        place = new.type, new.folder_id
        if place not in folders:
            folders[place] = may_create(cx, repository, catalogue, principals, *place)
        folder, owner = folders[place], principals.id
        fixed: dict[str, list[Value]] = {"r_object_type": [new.type], "i_folder_id": [folder.id] if folder else []}
        values = writable.read(
            catalogue, new.type, new.properties, {**fixed, "owner_name": [owner]}, principals, owns=True
        )
        acl_name = writable.text_of(values, "acl_name") if "acl_name" in values else None
        if acl_name not in acl_ids and acl_name is not None:
            acl_ids[acl_name] = acls.find_assignable(cx, repository.id, acl_name, principals)
        elif acl_name not in acl_ids and folder is None:
            acl_ids[None] = acls.built_in(cx, repository.id, acls.PRIVATE, now)
        shown_owner = writable.text_of(values, "owner_name") or owner
        drafts.append(
            StoredObject(
                seq=0,
                id="",
                repository_id=repository.id,
                type=new.type,
                name=writable.object_name(values),
                owner=shown_owner,
                owner_key=principals.key_for(cx, shown_owner, now),
                acl_id=folder.acl_id if folder and acl_name is None else acl_ids[acl_name],
                folder_id=folder.id if folder else None,
                created=now,
                creator=owner,
                modified=now,
                modifier=owner,
                revision=1,
                properties=writable.decode(writable.encode(values)),
                media_type=writable.text_of(values, "a_content_type"),
                content=new.content,
            )
        )
    owner_quota = None if principals.administrator else quota
    return objects.keep_new(cx, repository, catalogue, drafts, [new.text for new in new_objects], now, owner_quota)


def may_create(
    cx: Connection,
    repository: Repository,
    catalogue: Catalogue,
    principals: Principals,
    type_name: str,
    folder_id: str | None,
) -> StoredObject | None:
    """Find the folder for a new object of this type, before its content is read. Raises as ``create`` does."""
    catalogue.get(type_name)
    if folder_id is None:
        if catalogue.is_a(type_name, "folder") and not catalogue.is_a(type_name, "cabinet"):
            raise WrongValue("A folder is made in a cabinet or in another folder.")
        return None
    folder, permission = objects.read(cx, repository, folder_id, principals, "folder")
    if catalogue.is_a(type_name, "cabinet"):
        raise WrongValue("A cabinet is made in the repository, not in a folder.")
    objects.require(permission, Permission.WRITE, "put objects into this folder")
    return folder
