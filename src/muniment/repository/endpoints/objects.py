"""Objects, folders and cabinets: made, read, changed, deleted, listed.

Sources: repository.md 8.1-8.3; issue 3, step 2. A create answers 201 with the address, an update is a POST.
"""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.db import Busy
from muniment.repository import acls, creation, object_types, objects, text
from muniment.repository.acls import Principals
from muniment.repository.creation import New
from muniment.repository.endpoints import descriptions, representations, spelling, uploads
from muniment.repository.endpoints.descriptions import Metadata
from muniment.repository.endpoints.half import (
    BELOW,
    ENTERING,
    POSITION,
    Address,
    Answering,
    RepositoryHalf,
    address,
    entered,
)
from muniment.repository.endpoints.representations import Shown
from muniment.repository.endpoints.uploads import Upload
from muniment.repository.objects import StoredObject
from muniment.repository.properties import Given
from muniment.repository.refusals import (
    InUse,
    NotOfferedYet,
    NotPermitted,
    NotWritable,
    UnknownAcl,
    UnknownObject,
    UnknownProperty,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository
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
}

_CREATE_PARAMETERS = ("object-name", "object-type", "format", "content-count", "all-primary")
_DELETE_PARAMETERS = ("del-non-empty", "del-all-links", "del-version", "del-vd-all", "check-subscription")


def creating(root: str, *, filed: bool) -> Answering:
    """Make the POST that creates an object of this type or below it, in the folder the address names when filed.

    A body that names no type makes a document where any type may be made, else the address's own type.
    """

    async def create(request: Request, half: RepositoryHalf) -> Response:
        repository, principals = await entered(request, half)
        answered = spelling.chosen(request, spelling.both(half.options.names))
        given = representations.parameters(request, _CREATE_PARAMETERS)
        folder_id = representations.identifier(request) if filed else None
        named = given.get("object-type")
        type_name = spelling.type_read(named, half.options.names) if named else ""
        # Whoever may not put anything here is told so before he sends gigabytes.
        await half.desk.read(_may_create, repository, principals, type_name or root, root, folder_id)
        upload = await _received(request, half, given.get("object-name"))
        said = _spoken(upload, type_name or ("document" if root == "sysobject" else root))
        content, found = None, None
        if upload.content is not None:
            content = upload.content.stored
            name, media_type = (str(said.properties.get(one, "")) for one in ("object_name", "a_content_type"))
            found = await uploads.found_in(upload.content, name, media_type, half)
        new = New(said.type, said.properties, folder_id, content, found)
        try:
            shown = await half.desk.write(_created, repository, principals, new, root, half.clock())
        except (Refusal, Busy):
            if content is not None:
                await half.desk.off_loop(half.store.remove, content.key)
            raise
        return representations.object_answer(request, half, answered, address(request, half, repository), shown, 201)

    return create


def reading(kind: str) -> Answering:
    """Make the GET of an object of this kind."""

    async def read(request: Request, half: RepositoryHalf) -> Response:
        repository, principals = await entered(request, half)
        media_type = spelling.chosen(request, spelling.both(half.options.names))
        representations.parameters(request, (), later=("view", "links", "inline"))
        shown = await half.desk.read(_read, repository, principals, representations.identifier(request), kind)
        return representations.object_answer(request, half, media_type, address(request, half, repository), shown)

    return read


def changing(kind: str) -> Answering:
    """Make the POST that changes the properties given."""

    async def change(request: Request, half: RepositoryHalf) -> Response:
        repository, principals = await entered(request, half)
        media_type = spelling.chosen(request, spelling.both(half.options.names))
        expected = representations.expected_version(request)
        said = await descriptions.received(request, half)
        given: dict[str, Given] = dict(said.properties)
        if said.type:
            given.setdefault("r_object_type", said.type)
        shown = await half.desk.write(
            _changed, repository, principals, representations.identifier(request), given, half.clock(), expected, kind
        )
        return representations.object_answer(request, half, media_type, address(request, half, repository), shown)

    return change


def deleting(kind: str) -> Answering:
    """Make the DELETE."""

    async def delete(request: Request, half: RepositoryHalf) -> Response:
        repository, principals = await entered(request, half)
        given = representations.parameters(request, _DELETE_PARAMETERS)
        if given.get("del-non-empty", "false").lower() != "false":
            raise NotOfferedYet("Deleting a folder with what is in it is not offered yet.")
        gone = await half.desk.write(
            objects.delete,
            repository,
            principals,
            representations.identifier(request),
            half.clock(),
            expected=representations.expected_version(request),
            kind=kind,
        )
        if gone.content is not None:
            await half.desk.off_loop(half.store.remove, gone.content.key)
        return Response(status_code=204, headers={POSITION: str(gone.position)})

    return delete


def listing(root: str, name: str, title: str, *, filed: bool) -> Answering:
    """Make the GET that lists objects of this type and below it, in the folder the address names when filed."""

    async def list_objects(request: Request, half: RepositoryHalf) -> Response:
        repository, principals = await entered(request, half)
        representations.feed_type(request, half.options.names)
        wanted = representations.page(request, half.options, typed=True)
        folder_id = representations.identifier(request) if filed else None
        found, total = await half.desk.read(_listed, repository, principals, folder_id, root, wanted)
        here = address(request, half, repository)
        names = half.options.names
        own = f"{here}/folders/{folder_id}/{name}" if filed else f"{here}/{name}"
        entries = [representations.object_entry(here, stored, names) for stored in found[: wanted.size]]
        shown_title = f"{title} {folder_id}" if filed else title
        return representations.feed_answer(
            request, half, shown_title, own, wanted, entries, len(found) > wanted.size, total
        )

    return list_objects


async def _received(request: Request, half: RepositoryHalf, object_name: str | None) -> Upload:
    """Take the body: metadata, both in parts, or (with a name in the address) content alone."""
    stated = request.headers.get("content-type", "")
    if bodies.media_type(request) in uploads.MULTIPART:
        return await uploads.multipart(request, half)
    if object_name is None:
        if not descriptions.is_one(bodies.media_type(request)):
            raise UnsupportedMediaType(
                "Metadata must be application/json or application/xml; content alone needs a name in the address: "
                "?object-name=..."
            )
        return Upload(await descriptions.received(request, half), None, "")
    return Upload(Metadata({"object_name": object_name}), await uploads.raw_content(request, half), stated)


def _spoken(upload: Upload, type_name: str) -> Metadata:
    said: dict[str, Given] = dict(upload.metadata.properties)
    said["r_object_type"] = upload.metadata.type or type_name
    if upload.content is not None and not said.get("a_content_type"):
        said["a_content_type"] = uploads.media_type_of(upload.media_type, str(said.get("object_name", "")))
    return Metadata(said, str(said["r_object_type"]))


def _may_create(
    cx: Connection, repository: Repository, principals: Principals, type_name: str, root: str, folder_id: str | None
) -> None:
    catalogue = object_types.catalogue(cx, repository.id)
    _check_root(catalogue, type_name, root)
    creation.may_create(cx, repository, catalogue, principals, type_name, folder_id)


def _created(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    new: New,
    root: str,
    now: int,
) -> Shown:
    catalogue = object_types.catalogue(cx, repository.id)
    _check_root(catalogue, new.type, root)
    if new.content is not None and catalogue.is_a(new.type, "folder"):
        raise WrongValue("A folder holds objects, not content.")
    stored = creation.create_all(cx, repository, catalogue, principals, [new], now)[0]
    return _shown(cx, stored, catalogue)


def _read(cx: Connection, repository: Repository, principals: Principals, object_id: str, kind: str) -> Shown:
    stored, _ = objects.read(cx, repository, object_id, principals, kind)
    return _shown(cx, stored, object_types.catalogue(cx, repository.id))


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
    return _shown(cx, stored, catalogue)


def _listed(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    folder_id: str | None,
    root: str,
    wanted: representations.Page,
) -> tuple[list[StoredObject], int | None]:
    catalogue = object_types.catalogue(cx, repository.id)
    type_name = wanted.object_type or root
    _check_root(catalogue, type_name, root)
    if folder_id is not None:
        objects.read(cx, repository, folder_id, principals, "folder")
    found = objects.children(
        cx, repository, catalogue, principals, folder_id, type_name, wanted.offset, wanted.size + 1
    )
    if not wanted.include_total:
        return found, None
    return found, objects.count_children(cx, repository, catalogue, principals, folder_id, type_name)


def _check_root(catalogue: object_types.Catalogue, type_name: str, root: str) -> None:
    if not catalogue.is_a(type_name, root):
        raise WrongValue(f"This address is for the object type {root!r} and those below it, not {type_name!r}.")


def _shown(cx: Connection, stored: StoredObject, catalogue: object_types.Catalogue) -> Shown:
    acl_name = acls.names(cx, [stored.acl_id])[stored.acl_id]
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
