"""Objects, folders and cabinets: made, read, changed, deleted, listed.

Sources: repository.md 8.1-8.3; issue 3, step 2. A create answers 201 with the address, an update is a POST.
"""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.db import Busy
from muniment.repository import acls, creation, cursors, object_types, objects, text, usage
from muniment.repository.creation import New
from muniment.repository.cursors import Listing
from muniment.repository.endpoints import descriptions, representations, spelling, uploads
from muniment.repository.endpoints.descriptions import Metadata
from muniment.repository.endpoints.half import (
    BELOW,
    ENTERING,
    Address,
    Answering,
    Caller,
    RepositoryHalf,
    address,
    entered,
)
from muniment.repository.endpoints.representations import ListPage, Page, Shown
from muniment.repository.endpoints.uploads import Upload
from muniment.repository.objects import StoredObject
from muniment.repository.options import RepositoryNames
from muniment.repository.principals import Principals
from muniment.repository.properties import Given
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
from muniment.repository.usage import Amount, StorageQuota
from muniment.web import bodies
from muniment.web.answers import Said, Table
from muniment.web.refusals import Refusal, UnsupportedMediaType

TABLE: Table = {
    **ENTERING,
    UnknownObject: Said(404, "E_UNKNOWN_OBJECT"),
    NotPermitted: Said(403, "E_NOT_PERMITTED"),
    UnknownType: Said(400, "E_UNKNOWN_TYPE"),
    UnknownProperty: Said(400, "E_INVALID_ATTR_NAME"),
    UnknownAcl: Said(400, "E_UNKNOWN_ACL"),
    WrongValue: Said(400, "E_INVALID_ATTR_VALUE"),
    NotWritable: Said(400, "E_NOT_WRITABLE"),
    InUse: Said(409, "E_IN_USE"),
    VersionConflict: Said(412, "E_VERSION_CONFLICT"),
    QuotaExceeded: Said(403, "E_QUOTA_EXCEEDED"),
}

_RIGHTS = {"acl_name", "owner_name"}
"""Properties that say who may do what with an object."""

_CREATE_PARAMETERS = ("object-name", "object-type", "format", "content-count", "all-primary")
_DELETE_PARAMETERS = ("del-non-empty", "del-all-links", "del-version", "del-vd-all", "check-subscription")


def creating(root: str, *, filed: bool) -> Answering:
    """Make the POST that creates an object of this type or below it, in the folder the address names when filed.

    A body that names no type makes a document where any type may be made, else the address's own type.
    """

    @events.tells()
    async def create(request: Request, half: RepositoryHalf) -> Response:
        caller = await entered(request, half)
        repository = caller.repository
        answered = spelling.chosen(request, spelling.both(half.options.names))
        given = representations.parameters(request, _CREATE_PARAMETERS)
        folder_id = representations.identifier(request) if filed else None
        named = given.get("object-type")
        type_name = spelling.type_read(named, half.options.names) if named else ""
        # Whoever may not put anything here is told so before they send gigabytes.
        quota = uploads.upload_quota(half)
        room = await caller.read(
            lambda cx, principals: _may_create(cx, repository, principals, type_name or root, root, folder_id, quota)
        )
        upload = await _received(request, half, caller, given.get("object-name"), room)
        said = _spoken(upload, type_name or ("document" if root == "sysobject" else root))
        content, found = None, None
        if upload.content is not None:
            content = upload.content.stored
            name, media_type = (str(said.properties.get(one, "")) for one in ("object_name", "a_content_type"))
            found = await uploads.found_in(upload.content, name, media_type, half)
        new = New(said.type, said.properties, folder_id, content, found)
        try:
            shown, place = await caller.change(
                lambda cx, principals: _created(cx, repository, principals, new, root, half.clock(), quota),
                lambda shown: shown.stored.position,
            )
        except (Refusal, Busy):
            if content is not None:
                await half.desk.off_loop(half.store.remove, content.key)
            raise
        here = address(request, half, repository)
        answer = representations.object_answer(request, half, answered, here, shown, 201)
        answer.headers.update(place)
        return answer

    return create


def reading(kind: str) -> Answering:
    """Make the GET of an object of this kind."""

    async def read(request: Request, half: RepositoryHalf) -> Response:
        caller = await entered(request, half)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.chosen(request, spelling.both(half.options.names))
        representations.parameters(request, (), later=("view", "links", "inline"))
        shown = await caller.read(lambda cx, principals: _read(cx, repository, principals, object_id, kind))
        return representations.object_answer(request, half, media_type, address(request, half, repository), shown)

    return read


def changing(kind: str) -> Answering:
    """Make the POST that changes the properties given."""

    @events.tells("object rights")
    async def change(request: Request, half: RepositoryHalf) -> Response:
        caller = await entered(request, half)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.chosen(request, spelling.both(half.options.names))
        expected = representations.expected_version(request)
        said = await descriptions.received(request, half)
        given: dict[str, Given] = dict(said.properties)
        rights = sorted(_RIGHTS & given.keys())
        event = events.begin(request.scope, "object rights", how=" and ".join(rights)) if rights else None
        if event is not None:
            caller.tell(event)
        if said.type:
            given.setdefault("r_object_type", said.type)
        shown, place = await caller.change(
            lambda cx, principals: _changed(cx, repository, principals, object_id, given, half.clock(), expected, kind),
            lambda shown: shown.stored.position,
        )
        if event is not None:
            event.on = shown.stored.id
        here = address(request, half, repository)
        answer = representations.object_answer(request, half, media_type, here, shown)
        answer.headers.update(place)
        return answer

    return change


def deleting(kind: str) -> Answering:
    """Make the DELETE."""

    @events.tells()
    async def delete(request: Request, half: RepositoryHalf) -> Response:
        caller = await entered(request, half)
        object_id, expected = representations.identifier(request), representations.expected_version(request)
        given = representations.parameters(request, _DELETE_PARAMETERS)
        if given.get("del-non-empty", "false").lower() != "false":
            raise NotOfferedYet("Deleting a folder with what is in it is not offered yet.")
        gone, place = await caller.change(
            lambda cx, principals: objects.delete(
                cx, caller.repository, principals, object_id, half.clock(), expected=expected, kind=kind
            ),
            lambda gone: gone.position,
        )
        if gone.content is not None:
            await half.desk.off_loop(half.store.remove, gone.content.key)
        return Response(status_code=204, headers=place)

    return delete


def listing(root: str, name: str, title: str, *, filed: bool) -> Answering:
    """Make the GET that lists objects of this type and below it, in the folder the address names when filed."""

    async def list_objects(request: Request, half: RepositoryHalf) -> Response:
        caller = await entered(request, half)
        repository = caller.repository
        representations.feed_type(request, half.options.names)
        wanted = representations.page(request, half.options, typed=True)
        folder_id = representations.identifier(request) if filed else None
        here = address(request, half, repository)
        names = half.options.names
        listed = await caller.read_long(
            lambda cx, principals: _listed(cx, repository, principals, folder_id, root, wanted, here, names)
        )
        own = f"{here}/folders/{folder_id}/{name}" if filed else f"{here}/{name}"
        shown_title = f"{title} {folder_id}" if filed else title
        return representations.feed_answer(request, half, shown_title, own, wanted, listed)

    return list_objects


async def _received(
    request: Request, half: RepositoryHalf, caller: Caller, object_name: str | None, room: int | None
) -> Upload:
    """Take the body: metadata, both in parts, or (with a name in the address) content alone."""
    stated = request.headers.get("content-type", "")
    if bodies.media_type(request) in uploads.MULTIPART:
        with caller.uploading():
            return await uploads.multipart(request, half, room)
    if object_name is None:
        if not descriptions.is_one(bodies.media_type(request)):
            raise UnsupportedMediaType(
                "Metadata must be application/json or application/xml; content alone needs a name in the address: "
                "?object-name=..."
            )
        return Upload(await descriptions.received(request, half), None, "")
    with caller.uploading():
        return Upload(Metadata({"object_name": object_name}), await uploads.raw_content(request, half, room), stated)


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
    new: New,
    root: str,
    now: int,
    quota: StorageQuota,
) -> Shown:
    catalogue = object_types.catalogue(cx, repository.id)
    _check_root(catalogue, new.type, root)
    if new.content is not None and catalogue.is_a(new.type, "folder"):
        raise WrongValue("A folder holds objects, not content.")
    stored = creation.create_all(cx, repository, catalogue, principals, [new], now, quota)[0]
    return _shown(cx, stored, catalogue, principals)


def _read(cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str) -> Shown:
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
) -> Shown:
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


def _shown(cx: Connection, stored: StoredObject, catalogue: object_types.Catalogue, principals: Principals) -> Shown:
    acl_name = acls.shown_name(cx, stored.acl_id, principals)
    return Shown(stored, catalogue, acl_name, text.status(cx, stored.id).state)


def _single(kind: str) -> Address:
    methods = {"GET": reading(kind), "POST": changing(kind), "DELETE": deleting(kind)}
    return Address(f"{BELOW}/{kind}s/{{id}}", methods, TABLE)


def _collection(root: str, name: str) -> Address:
    title = f"{name.capitalize()} under folder"
    methods = {"GET": listing(root, name, title, filed=True), "POST": creating(root, filed=True)}
    return Address(f"{BELOW}/folders/{{id}}/{name}", methods, TABLE)


ADDRESSES: tuple[Address, ...] = (
    Address(
        f"{BELOW}/cabinets",
        {"GET": listing("cabinet", "cabinets", "Cabinets", filed=False), "POST": creating("cabinet", filed=False)},
        TABLE,
    ),
    Address(f"{BELOW}/objects", {"POST": creating("sysobject", filed=False)}, TABLE),
    *(_single(kind) for kind in ("object", "document", "folder", "cabinet")),
    _collection("folder", "folders"),
    _collection("document", "documents"),
    _collection("sysobject", "objects"),
)
"""The object surface: every address below a repository that this module answers."""
