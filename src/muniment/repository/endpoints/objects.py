"""Objects, folders and cabinets: made, read, changed, deleted, listed.

Source: docs/interface.md, ours 2. A create answers 201 with the address, an update is a POST.
"""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.db import Busy
from muniment.repository import cursors
from muniment.repository.cursors import Listing
from muniment.repository.endpoints import object_body, parameters, representations, spelling, uploads
from muniment.repository.endpoints.context import (
    ENTERING,
    Answering,
    Caller,
    RepositoryContext,
    address,
    enter,
)
from muniment.repository.endpoints.object_body import Metadata
from muniment.repository.endpoints.representations import ListPage, ObjectBody, Page
from muniment.repository.endpoints.uploads import Upload
from muniment.repository.extraction import queue
from muniment.repository.objects import creation, object_types, objects, usage
from muniment.repository.objects.creation import NewObject
from muniment.repository.objects.objects import StoredObject
from muniment.repository.objects.properties import Given
from muniment.repository.objects.usage import Amount, StorageQuota
from muniment.repository.options import RepositoryNames
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import (
    InUse,
    NotOfferedYet,
    NotPermitted,
    NotWritable,
    QuotaExceeded,
    UnknownAcl,
    UnknownObject,
    UnknownProperty,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository
from muniment.web import bodies
from muniment.web.refusals import Refusal, UnsupportedMediaType
from muniment.web.responses import ErrorCode, Table

TABLE: Table = {
    **ENTERING,
    UnknownObject: ErrorCode(404, "E_UNKNOWN_OBJECT"),
    NotPermitted: ErrorCode(403, "E_NOT_PERMITTED"),
    UnknownType: ErrorCode(400, "E_UNKNOWN_TYPE"),
    UnknownProperty: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    UnknownAcl: ErrorCode(400, "E_UNKNOWN_ACL"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
    NotWritable: ErrorCode(400, "E_NOT_WRITABLE"),
    InUse: ErrorCode(409, "E_IN_USE"),
    VersionConflict: ErrorCode(412, "E_VERSION_CONFLICT"),
    QuotaExceeded: ErrorCode(403, "E_QUOTA_EXCEEDED"),
}

_RIGHTS = {"acl_name", "owner_name"}
"""Properties that say who may do what with an object."""


def creating(root: str, *, filed: bool) -> Answering:
    """Make the POST that creates an object of this type or below it, in the folder the address names when filed.

    A body that names no type makes a document where any type may be made, else the address's own type.
    """

    @events.tells()
    async def create(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository = caller.repository
        answered = spelling.negotiate(request, spelling.both(context.options.names))
        given = representations.parameters(request, parameters.CREATE)
        folder_id = representations.identifier(request) if filed else None
        named = given.get("object-type")
        type_name = spelling.read_type(named, context.options.names) if named else ""
        # Whoever may not put anything here is told so before they send gigabytes.
        quota = uploads.upload_quota(context)
        room = await caller.read(
            lambda cx, principals: _may_create(cx, repository, principals, type_name or root, root, folder_id, quota)
        )
        upload = await _received(request, context, caller, given.get("object-name"), room)
        said = _spoken(upload, type_name or ("document" if root == "sysobject" else root))
        content, found = None, None
        if upload.content is not None:
            content = upload.content.stored
            name, media_type = (str(said.properties.get(one, "")) for one in ("object_name", "a_content_type"))
            found = await uploads.read_plain_text(upload.content, name, media_type, context)
        new = NewObject(said.type, said.properties, folder_id, content, found)
        try:
            shown, place = await caller.change(
                lambda cx, principals: _created(cx, repository, principals, new, root, context.clock(), quota),
                lambda shown: shown.stored.position,
            )
        except (Refusal, Busy):
            if content is not None:
                await context.transactions.off_loop(context.store.remove, content.key)
            raise
        here = address(request, context, repository)
        answer = representations.object_answer(request, context, answered, here, shown, 201)
        answer.headers.update(place)
        return answer

    return create


def reading(kind: str) -> Answering:
    """Make the GET of an object of this kind."""

    async def read(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.negotiate(request, spelling.both(context.options.names))
        representations.parameters(request, (), later=("view", "links", "inline"))
        shown = await caller.read(lambda cx, principals: _read(cx, repository, principals, object_id, kind))
        return representations.object_answer(request, context, media_type, address(request, context, repository), shown)

    return read


def changing(kind: str) -> Answering:
    """Make the POST that changes the properties given."""

    @events.tells("object rights")
    async def change(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.negotiate(request, spelling.both(context.options.names))
        expected = representations.expected_version(request)
        said = await object_body.received(request, context)
        given: dict[str, Given] = dict(said.properties)
        rights = sorted(_RIGHTS & given.keys())
        event = events.begin(request.scope, "object rights", how=" and ".join(rights)) if rights else None
        if event is not None:
            caller.tell(event)
        if said.type:
            given.setdefault("r_object_type", said.type)
        shown, place = await caller.change(
            lambda cx, principals: _changed(
                cx, repository, principals, object_id, given, context.clock(), expected, kind
            ),
            lambda shown: shown.stored.position,
        )
        if event is not None:
            event.on = shown.stored.id
        here = address(request, context, repository)
        answer = representations.object_answer(request, context, media_type, here, shown)
        answer.headers.update(place)
        return answer

    return change


def deleting(kind: str) -> Answering:
    """Make the DELETE."""

    @events.tells()
    async def delete(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        object_id, expected = representations.identifier(request), representations.expected_version(request)
        given = representations.parameters(request, parameters.DELETE)
        if given.get("del-non-empty", "false").lower() != "false":
            raise NotOfferedYet("Deleting a folder with what is in it is not offered yet.")
        gone, place = await caller.change(
            lambda cx, principals: objects.delete(
                cx, caller.repository, principals, object_id, context.clock(), expected=expected, kind=kind
            ),
            lambda gone: gone.position,
        )
        if gone.content is not None:
            await context.transactions.off_loop(context.store.remove, gone.content.key)
        return Response(status_code=204, headers=place)

    return delete


def listing(root: str, name: str, title: str, *, filed: bool) -> Answering:
    """Make the GET that lists objects of this type and below it, in the folder the address names when filed."""

    async def list_objects(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository = caller.repository
        representations.feed_type(request, context.options.names)
        wanted = representations.page(request, context.options, typed=True)
        folder_id = representations.identifier(request) if filed else None
        here = address(request, context, repository)
        names = context.options.names
        listed = await caller.read_long(
            lambda cx, principals: _listed(cx, repository, principals, folder_id, root, wanted, here, names)
        )
        own = f"{here}/folders/{folder_id}/{name}" if filed else f"{here}/{name}"
        shown_title = f"{title} {folder_id}" if filed else title
        return representations.feed_answer(request, context, shown_title, own, wanted, listed)

    return list_objects


async def _received(
    request: Request, context: RepositoryContext, caller: Caller, object_name: str | None, room: int | None
) -> Upload:
    """Take the body: metadata, both in parts, or (with a name in the address) content alone."""
    stated = request.headers.get("content-type", "")
    if bodies.media_type(request) in uploads.MULTIPART:
        with caller.uploading():
            return await uploads.multipart(request, context, room)
    if object_name is None:
        if not object_body.is_one(bodies.media_type(request)):
            raise UnsupportedMediaType(
                "Metadata must be application/json or application/xml; content alone needs a name in the address: "
                "?object-name=..."
            )
        return Upload(await object_body.received(request, context), None, "")
    with caller.uploading():
        return Upload(Metadata({"object_name": object_name}), await uploads.raw_content(request, context, room), stated)


def _spoken(upload: Upload, type_name: str) -> Metadata:
    said: dict[str, Given] = dict(upload.metadata.properties)
    said["r_object_type"] = upload.metadata.type or type_name
    if upload.content is not None and not said.get("a_content_type"):
        said["a_content_type"] = uploads.media_type_of(upload.media_type, str(said.get("object_name", "")))
    return Metadata(said, str(said["r_object_type"]))


def _may_create(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    type_name: str,
    root: str,
    folder_id: str | None,
    quota: StorageQuota,
) -> int | None:
    """Say how many bytes the content of a new object may have; None where no quota counts."""
    catalogue = object_types.catalogue(cx, repository.id)
    _check_root(catalogue, type_name, root)
    creation.may_create(cx, repository, catalogue, principals, type_name, folder_id)
    return None if principals.administrator else usage.room(cx, principals.key, quota, Amount(1, 0))


def _created(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    new: NewObject,
    root: str,
    now: int,
    quota: StorageQuota,
) -> ObjectBody:
    catalogue = object_types.catalogue(cx, repository.id)
    _check_root(catalogue, new.type, root)
    if new.content is not None and catalogue.is_a(new.type, "folder"):
        raise WrongValue("A folder holds objects, not content.")
    stored = creation.create_all(cx, repository, catalogue, principals, [new], now, quota)[0]
    return _shown(cx, stored, catalogue, principals)


def _read(cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str) -> ObjectBody:
    stored, _ = objects.read(cx, repository, object_id, principals, kind)
    return _shown(cx, stored, object_types.catalogue(cx, repository.id), principals)


def _changed(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    given: dict[str, Given],
    now: int,
    expected: int | None,
    kind: str,
) -> ObjectBody:
    catalogue = object_types.catalogue(cx, repository.id)
    stored = objects.change(cx, repository, catalogue, principals, object_id, given, now, expected=expected, kind=kind)
    return _shown(cx, stored, catalogue, principals)


def _listed(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    folder_id: str | None,
    root: str,
    wanted: Page,
    here: str,
    names: RepositoryNames,
) -> ListPage:
    catalogue = object_types.catalogue(cx, repository.id)
    type_name = wanted.object_type or root
    _check_root(catalogue, type_name, root)
    if folder_id is not None:
        objects.read(cx, repository, folder_id, principals, "folder")
    listing = Listing(repository.id, principals.key, f"{folder_id or ''} {type_name}")
    found = objects.children(
        cx, repository, catalogue, principals, folder_id, type_name, cursors.stretch(cx, listing, wanted.part)
    )
    following = cursors.next_cursor(cx, listing, wanted.part, [(stored.name, stored.seq) for stored in found])
    shown = [representations.object_entry(here, stored, names) for stored in found[: wanted.part.size]]
    if not wanted.include_total:
        return ListPage(shown, following)
    total = objects.count_children(cx, repository, catalogue, principals, folder_id, type_name)
    return ListPage(shown, following, total)


def _check_root(catalogue: object_types.Catalogue, type_name: str, root: str) -> None:
    if not catalogue.is_a(type_name, root):
        raise WrongValue(f"This address is for the object type {root!r} and those below it, not {type_name!r}.")


def _shown(
    cx: Connection, stored: StoredObject, catalogue: object_types.Catalogue, principals: Principals
) -> ObjectBody:
    acl_name = acls.shown_name(cx, stored.acl_id, principals)
    return ObjectBody(stored, catalogue, acl_name, queue.status(cx, stored.id).state)
