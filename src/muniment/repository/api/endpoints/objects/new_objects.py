"""Make objects from metadata, from metadata and content, from content alone, or as copies of other objects.

Source: docs/interface.md, ours 2.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed, UnsupportedMediaType
from muniment.repository.api import uploads
from muniment.repository.api.context import Caller, RepositoryContext, enter_for_thing
from muniment.repository.api.endpoints.contents import content_requests
from muniment.repository.api.endpoints.contents.content_requests import ArrangedContent
from muniment.repository.api.endpoints.objects.objects import check_root, complete, whole_rights, writing_view
from muniment.repository.api.shapes import object_body, representations
from muniment.repository.api.shapes.object_body import Metadata
from muniment.repository.api.shapes.representations import ObjectBody
from muniment.repository.api.uploads import Upload
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.refusals import WrongValue
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.contents.usage import Amount, StorageQuota
from muniment.repository.store.objects.decisions import contents, copying, creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.requests import bodies


@events.tells()
async def create(request: Request, context: RepositoryContext, root: str) -> Response:
    """Create an object of the type {root} or of a type below it, in a folder if the address names one.

    A copy has the type of its original. If the body of another new object names no type, the object gets the type that
    ``object-type`` in the query names, or else ``root``.
    """
    caller, media_type = await enter_for_thing(request, context)
    repository, names = caller.repository, context.names
    values = parameters.read(request)
    folder_id = representations.identifier(request) if "id" in request.path_params else None
    type_name = spelling.read_type(values["object-type"], names) if values.get("object-type") else ""
    # Whoever may not put anything here is told so before they send gigabytes.
    quota = uploads.upload_quota(context)
    room = await caller.read(
        lambda cx, principals: _may_create(cx, repository, principals, type_name or root, root, folder_id, quota)
    )
    upload = await _read_upload(request, context, caller, values.get("object-name"), room)
    async with uploads.removal_on_failure(context, *upload.stored):
        content_requests.check_length(values, sum(content.size for content in upload.stored))
        if upload.metadata.href:
            decide = _plan_copy(context, repository, upload, root, folder_id)
        else:
            decide = await _plan_new(context, repository, values, upload, type_name or root, root, folder_id)
        (new, named), position = await caller.change(
            lambda cx, principals: decide(cx, principals, context.clock(), quota),
            lambda made: made.body.stored.position,
        )
    answer = representations.object_answer(
        request, caller, media_type, new, 201, as_object=root == "sysobject", position=position
    )
    answer.background = uploads.after_commit(context, upload.stored, named)
    return answer


async def _read_upload(
    request: Request, context: RepositoryContext, caller: Caller, object_name: str | None, room: int | None
) -> Upload:
    """Receive metadata, parts, or content alone if there is an ``object_name``.

    ``room`` is as in ``uploads.raw_content``.
    """
    kind = bodies.media_type(request)
    if object_name is None and kind not in uploads.MULTIPART:
        if not object_body.is_one(kind):
            raise UnsupportedMediaType(
                "Metadata must be application/json or application/xml; content alone needs a name in the address: "
                "?object-name=..."
            )
        return Upload(await object_body.read_body(request, context), None, "")
    return await uploads.receive(request, context, caller, room, Metadata({"object_name": object_name}))


def _draft(upload: Upload, type_name: str, arranged: Sequence[ArrangedContent], values: Mapping[str, str]) -> Metadata:
    """With ``format`` in the query, or without ``a_content_type``, the first content's media type becomes that."""
    properties: dict[str, Given] = dict(upload.metadata.properties)
    properties["r_object_type"] = upload.metadata.type or type_name
    if arranged and (values.get("format") or not properties.get("a_content_type")):
        name = str(properties.get("object_name", ""))
        properties["a_content_type"] = uploads.media_type_of(arranged[0].media_type, name)
    return Metadata(properties, str(properties["r_object_type"]))


class _NewObject(NamedTuple):
    body: ObjectBody
    named: Sequence[StoredContent]


_Decision: TypeAlias = Callable[[Connection, Principals, Instant, StorageQuota], _NewObject]


async def _plan_new(
    context: RepositoryContext,
    repository: Repository,
    values: Mapping[str, str],
    upload: Upload,
    type_name: str,
    root: str,
    folder_id: str | None,
) -> _Decision:
    arranged = content_requests.arrange(upload, values, context.names)
    draft = _draft(upload, type_name, arranged, values)
    content = text = None
    if arranged:
        if not arranged[0].place.is_main:
            raise Malformed("A new object has a content as its page 0: it needs that before others.")
        content = arranged[0].body.stored
        name, media_type = (str(draft.properties.get(key, "")) for key in ("object_name", "a_content_type"))
        text = await uploads.read_plain_text(arranged[0].body, name, media_type, context)
    further = [(each.place, each.media_type, each.body.stored) for each in arranged[1:]]
    new = NewObject(draft.type, draft.properties, folder_id, content, text, further=further)

    def decide(cx: Connection, principals: Principals, now: Instant, quota: StorageQuota) -> _NewObject:
        whole = msgspec.structs.replace(new, properties=whole_rights(new.properties, principals, context.options))
        return _create(cx, writing_view(context, cx, repository, principals), whole, root, now, quota)

    return decide


def _plan_copy(
    context: RepositoryContext, repository: Repository, upload: Upload, root: str, folder_id: str | None
) -> _Decision:
    """A folder is copied with everything below it that the caller may browse, except former versions.

    The copy differs from its original in the properties that the body names.
    """
    if upload.content is not None:
        raise Malformed("A body with 'href' makes a copy: it has no content of its own.")
    object_id, deep = object_body.referenced_id(upload.metadata, repository.name), upload.metadata.deep_copy
    changes = {name: value for name, value in upload.metadata.properties.items() if name != "r_object_type"}

    def decide(cx: Connection, principals: Principals, now: Instant, quota: StorageQuota) -> _NewObject:
        view, most = writing_view(context, cx, repository, principals), context.options.max_copied_objects
        originals = copying.lock_originals(cx, view, object_id, most, deep=deep)
        check_root(view.catalogue, originals[0].type, root)
        if upload.metadata.type not in ("", originals[0].type):
            raise WrongValue("A copy has the type of its original.")
        made = copying.copy(cx, view, originals, folder_id, now, quota, changes)
        return _NewObject(complete(cx, made, view), ())

    return decide


def _may_create(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    type_name: str,
    root: str,
    folder_id: str | None,
    quota: StorageQuota,
) -> int | None:
    """The number is None for an administrator, whom no quota limits."""
    view = RepositoryView.read(cx, repository, principals)
    check_root(view.catalogue, type_name, root)
    creation.may_create(cx, view, type_name, folder_id)
    return None if principals.administrator else usage.room(cx, principals.key, quota, Amount(1, 0))


def _create(
    cx: Connection,
    view: RepositoryView,
    new: NewObject,
    root: str,
    now: int,
    quota: StorageQuota,
) -> _NewObject:
    check_root(view.catalogue, new.type, root)
    if new.content is not None and view.catalogue.is_a(new.type, "folder"):
        raise WrongValue("A folder holds objects, not content.")
    stored = creation.create_all(cx, view, [new], now, quota)[0]
    named = contents.all_contents(cx, stored) if new.further else ([first] if (first := contents.main(stored)) else [])
    return _NewObject(complete(cx, stored, view), [each.content for each in named])
