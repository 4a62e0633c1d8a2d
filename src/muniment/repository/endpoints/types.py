"""The object types of a repository, with their properties. Source: docs/interface.md, ours 1."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.cursors import CursorBinding
from muniment.repository.endpoints import collections, representations, spelling
from muniment.repository.endpoints.collections import FeedRequest, ListPage
from muniment.repository.endpoints.context import ENTERING, RepositoryContext, address, enter
from muniment.repository.objects import object_types
from muniment.repository.objects.object_types import ListedType
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import UnknownType
from muniment.repository.repositories import Repository
from muniment.repository.search.atom import FeedEntry
from muniment.web.responses import ErrorCode, Table

TABLE: Table = {**ENTERING, **collections.SELECTING, UnknownType: ErrorCode(404, "E_UNKNOWN_TYPE")}


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """GET types: a feed of all of them."""
    caller = await enter(request, context)
    repository, here = caller.repository, address(request, context, caller.repository)
    feed = collections.feed_request(request, context, f"{here}/types", "Types")
    body = await caller.read_long(lambda cx, principals: feed.write(_type_page(cx, repository, principals, feed, here)))
    return feed.answer(body)


async def read(request: Request, context: RepositoryContext) -> Response:
    """GET types/{name}."""
    caller = await enter(request, context)
    repository = caller.repository
    names = context.options.names
    media_type = spelling.negotiate(request, spelling.both(names))
    catalogue = await caller.read(lambda cx, _: object_types.catalogue(cx, repository.id))
    kind = catalogue.get(spelling.read_type(request.path_params["name"], names))
    thing = representations.type_thing(address(request, context, repository), kind, catalogue, names, media_type)
    headers = {"Content-Type": media_type, **spelling.PRIVATE}
    return Response(thing.written(media_type, names), headers=headers)


def _type_page(
    cx: Connection, repository: Repository, principals: Principals, feed: FeedRequest, here: str
) -> ListPage:
    names, root, selection = feed.names, feed.page.object_type, feed.page.selection
    binding = CursorBinding(repository.id, principals.key, f"types {root or ''}", selection.text)

    def entries(members: Sequence[ListedType]) -> list[FeedEntry]:
        catalogue = object_types.catalogue(cx, repository.id) if feed.page.inline else None
        feed_entries = []
        for kind in members:
            name = spelling.write_type(kind.name, names)
            parent = spelling.write_type(kind.parent, names) if kind.parent else ""
            entry = collections.plain_entry(f"{feed.own}/{name}", name, "Muniment", parent, repository.created)
            if catalogue is not None:
                thing = representations.type_thing(here, catalogue.get(kind.name), catalogue, names, feed.media_type)
                entry = feed.with_thing(entry, thing)
            feed_entries.append(entry)
        return feed_entries

    return collections.page(
        cx,
        binding,
        feed.page,
        lambda stretch: object_types.page(cx, repository.id, root, stretch, selection, type_prefix=names.type_prefix),
        entries,
        lambda: object_types.count(cx, repository.id, root, selection, type_prefix=names.type_prefix),
    )
