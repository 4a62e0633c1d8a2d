"""List, show and restore deleted objects, or remove them for good.

Source: docs/interface.md, ours 18.
"""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.clock import timestamp
from muniment.ground.refusals import Malformed
from muniment.repository.api import uploads
from muniment.repository.api.context import RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.objects.objects import complete, writing_view
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody, Thing
from muniment.repository.api.wire import spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects import wastebasket as discards
from muniment.repository.store.objects.decisions import restoring
from muniment.repository.store.objects.wastebasket import Discard
from muniment.repository.store.permissions.principals import Principals


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """List the deleted objects that can be restored.

    Of objects that were deleted together, one is the root, such as the folder in which the others lay. If the caller
    deleted them and may see the root, the feed has only the root. An administrator sees every root, and nothing else.
    Unless the request sorts the list, the last deletion comes first.
    """
    return await collections.answer_list(request, context, "wastebasket", "Wastebasket", _page)


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show a deleted object."""
    caller, media_type = await enter_for_thing(request, context)
    object_id, names = representations.identifier(request), context.names
    discard = await caller.read(
        lambda cx, principals: discards.find(cx, caller.repository, principals, object_id, context.clock())
    )
    document = _document(caller.here, discard, names)
    return spelling.reply(media_type, "deleted-object", document, names)


@events.tells()
async def restore(request: Request, context: RepositoryContext) -> Response:
    """Restore a deleted object to its folders, or to a named one."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    metadata = await object_body.read_body(request, context)
    if metadata.properties or metadata.type:
        raise Malformed("An object is restored as it was: the body may only have 'href', the address of a folder.")
    folder_id = object_body.referenced_id(metadata, repository.name) if metadata.href else ""

    def decide(cx: Connection, principals: Principals) -> ObjectBody:
        view = writing_view(context, cx, repository, principals)
        return complete(cx, restoring.restore(cx, view, object_id, folder_id, context.clock()), view)

    whole, position = await caller.change(decide, lambda whole: whole.stored.position)
    return representations.object_answer(request, caller, media_type, whole, 201, position=position)


@events.tells()
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove a deleted object for good."""
    caller = await enter(request, context)
    repository, object_id = caller.repository, representations.identifier(request)

    def decide(cx: Connection, principals: Principals) -> tuple[str, ...]:
        return restoring.remove(cx, writing_view(context, cx, repository, principals), object_id, context.clock())

    freed = await caller.write(decide)
    return Response(status_code=204, background=uploads.after_commit(context, (), (), freed))


def _page(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
    repository, selection, now = feed.repository, feed.page.selection, feed.context.clock()
    return feed.listed(
        cx,
        principals,
        "wastebasket",
        lambda stretch: discards.deleted_page(cx, repository, principals, now, stretch, selection),
        lambda members: [_entry(feed, each.discard) for each in members],
        lambda: discards.count_deleted(cx, repository, principals, now, selection),
    )


def _entry(feed: FeedRequest, discard: Discard) -> FeedEntry:
    stored = discard.stored
    return feed.entry(
        f"{feed.own}/{stored.id}",
        stored.name,
        stored.owner,
        f"{spelling.write_type(stored.type, feed.names)} {stored.id}",
        discard.deleted,
        lambda: Thing("deleted-object", _document(feed.here, discard, feed.names)),
        published=stored.created,
    )


def _document(here: str, discard: Discard, names: RepositoryNames) -> dict[str, Written]:
    stored, own = discard.stored, f"{here}/wastebasket/{discard.stored.id}"
    properties: dict[str, Written] = {
        "object_name": stored.name,
        spelling.write_property("r_object_id", names): stored.id,
        spelling.write_property("r_object_type", names): spelling.write_type(stored.type, names),
        "owner_name": stored.owner,
        "i_folder_id": [*stored.folder_ids],
        spelling.write_property("r_full_content_size", names): stored.content.size if stored.content else 0,
    }
    return {
        "name": "deleted-object",
        "properties": properties,
        "deleter": discard.deleter,
        "deleted": timestamp(discard.deleted, utc="+00:00"),
        "expires": timestamp(discard.expires, utc="+00:00"),
        "links": [
            {"rel": "self", "href": own},
            {"rel": f"{names.linkrel_base}/delete", "href": own},
            {"rel": f"{names.own_linkrel_base}/restore", "href": f"{own}/restore"},
        ],
    }
