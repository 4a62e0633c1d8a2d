"""Add, replace and remove the contents of an object.

Source: docs/interface.md, ours 3.
"""

from collections.abc import Mapping

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api import uploads
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.endpoints.contents import content_requests
from muniment.repository.api.shapes import representations
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.refusals import NotPermitted
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents import further_contents, usage
from muniment.repository.store.objects.contents.further_contents import ContentPlace, ObjectContent
from muniment.repository.store.objects.contents.usage import Amount, StorageQuota
from muniment.repository.store.objects.decisions import contents
from muniment.repository.store.objects.decisions.contents import WantedContent
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository


@events.tells()
async def add(request: Request, context: RepositoryContext) -> Response:
    """Give an object a content: the main one, a further page, or a rendition."""
    caller = await enter(request, context)
    names, values = context.names, parameters.read(request)
    wanted = content_requests.read_wanted(values, names)
    media_type = wanted.media_type or uploads.media_type_of(request.headers.get("content-type", ""), "")
    media_type = content_requests.with_charset(media_type, values)
    place = contents.place_of(WantedContent(media_type, wanted.page, wanted.modifier, wanted.primary is not False))
    if not wanted.media_type and place.is_primary:
        media_type = content_requests.with_charset(request.headers.get("content-type", ""), values)
    return await _put(request, context, caller, values, place, media_type)


@events.tells()
async def change(request: Request, context: RepositoryContext) -> Response:
    """Replace the bytes of a content of an object."""
    caller = await enter(request, context)
    names, values = context.names, parameters.read(request)
    wanted, object_id = content_requests.read_wanted(values, names), representations.identifier(request)

    def find(cx: Connection, principals: Principals) -> ObjectContent:
        return contents.find(cx, _changeable(cx, caller.repository, principals, object_id), wanted)

    present = await caller.read(find)
    sent = request.headers.get("content-type", "")
    media_type = present.media_type
    # The format of a rendition is part of its place, so it stays. A page gets the body's media type, unless the address
    # names a format.
    if present.place.is_primary and not wanted.media_type and sent.partition(";")[0].strip().lower() not in _UNSAID:
        media_type = sent
    media_type = content_requests.with_charset(media_type, values)
    return await _put(request, context, caller, values, present.place, media_type, wanted)


@events.tells()
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove a content of an object."""
    caller = await enter(request, context)
    wanted = content_requests.read_wanted(parameters.read(request), context.names)
    object_id, expected = representations.identifier(request), representations.expected_version(request)
    stored, position = await caller.change(
        lambda cx, principals: contents.remove(
            cx, caller.repository, principals, object_id, wanted, context.clock(), expected=expected
        ),
        lambda stored: stored.position,
    )
    return Response(status_code=204, headers=position, background=uploads.after_commit(context, (), (), stored.freed))


_UNSAID = ("", "application/octet-stream", "application/x-www-form-urlencoded")
"""Clients send bytes of any kind with these media types."""


async def _put(
    request: Request,
    context: RepositoryContext,
    caller: Caller,
    values: Mapping[str, str],
    place: ContentPlace,
    media_type: str,
    changed: WantedContent | None = None,
) -> Response:
    """``changed`` is None for a request that adds; what the body replaces must still be there when it has arrived."""
    repository, names = caller.repository, context.names
    answer_type = context.thing_type(request)
    overwrite = changed is not None or parameters.truth(values, "overwrite", default=True)
    expected, object_id = representations.expected_version(request), representations.identifier(request)
    quota = uploads.upload_quota(context)
    name, room = await caller.read(lambda cx, principals: _room(cx, repository, principals, object_id, place, quota))
    with caller.uploading():
        body = await uploads.raw_content(request, context, room)
    async with uploads.removal_on_failure(context, body.stored):
        content_requests.check_length(values, body.stored.size)
        media_type = uploads.media_type_of(media_type, name if place.is_primary else "")
        text = await uploads.read_plain_text(body, name, media_type, context) if place.is_main else None

        def decide(cx: Connection, principals: Principals) -> contents.ContentChange:
            if changed is not None:
                contents.find(cx, _changeable(cx, repository, principals, object_id), changed)
            return contents.put(
                cx,
                repository,
                principals,
                object_id,
                place,
                body.stored,
                media_type,
                context.clock(),
                overwrite=overwrite,
                expected=expected,
                text=text,
                quota=quota,
            )

        outcome, position = await caller.change(decide, lambda outcome: outcome.stored.position)
    stored, content = outcome.stored, outcome.content
    here = caller.here
    document = representations.content_document(here, stored, content, names)
    own = f"{here}/objects/{stored.id}/contents/content{representations.content_query(content, names)}"
    written = spelling.reply(answer_type, "content", document, names, 201 if changed is None else 200, own)
    written.headers.update(position)
    written.background = uploads.after_commit(context, [body.stored], [content.content], stored.freed)
    return written


def _changeable(cx: Connection, repository: Repository, principals: Principals, object_id: str) -> StoredObject:
    stored, permission = objects.read(cx, repository, object_id, principals)
    if permission < Permission.WRITE:
        raise NotPermitted("You may not change this object: it takes the permission Write.")
    objects.check_may_have_content(stored, principals)
    return stored


def _room(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    place: ContentPlace,
    quota: StorageQuota,
) -> tuple[str, int | None]:
    """Return the object's name, and the bytes that the content may have, None for an administrator."""
    stored = _changeable(cx, repository, principals, object_id)
    if principals.administrator:
        return stored.name, None
    present = contents.main(stored) if place.is_main else further_contents.find(cx, stored.id, place)
    size = present.content.size if present else 0
    # A content that is no larger than the present one is always accepted, also from an owner who is over their quota.
    return stored.name, max(size, usage.room(cx, stored.owner_key, quota, Amount(0, -size)))
