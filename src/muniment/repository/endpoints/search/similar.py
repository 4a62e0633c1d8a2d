"""List the documents that are like an object, as a feed of one page (docs/interface.md, ours 6)."""

from urllib.parse import urlencode

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.endpoints import collections, parameters, positions, representations, spelling
from muniment.repository.endpoints.context import RepositoryContext, address, enter
from muniment.repository.endpoints.search import search
from muniment.repository.endpoints.search.search import EntryForm
from muniment.repository.index.contract import Snapshot
from muniment.repository.permissions.principals import Principals
from muniment.repository.search import atom, similar

_DEFAULT = 10


async def list_similar(request: Request, context: RepositoryContext) -> Response:
    """List the documents that are most like an object."""
    caller = await enter(request, context)
    query, options, repository = parameters.read(request), context.options, caller.repository
    media_type = collections.feed_type(request, options.names)
    limit = min(collections.whole_number(query, "items-per-page", _DEFAULT, 1), options.max_items_per_page)
    include_total = parameters.truth(query, "include-total", default=False)
    inline = parameters.truth(query, "inline", default=False)
    links = parameters.truth(query, "links", default=True)
    room = collections.PageRoom(options)
    form = EntryForm(media_type, representations.read_view(query, options.names), links, room)
    object_id, here = representations.identifier(request), address(request, context, repository)
    index = context.indexes(repository)
    if wait_for := query.get("wait-for"):
        await search.wait_for_position(context, index, await caller.position(wait_for))

    def write_feed(cx: Connection, snapshot: Snapshot, principals: Principals) -> tuple[bytes, str]:
        now = context.clock()
        page = similar.find(
            *(cx, snapshot, repository, principals, object_id, limit, now, options, context.memory),
            include_total=include_total,
        )
        things = search.inlined_hits(cx, context, repository, principals, page.hits, here, form) if inline else {}
        own = f"{here}/objects/{object_id}/similar"
        names = [each.name for each in parameters.SIMILAR if each is not parameters.WAIT_FOR]
        repeated = urlencode({name: query[name] for name in names if name in query})
        feed = atom.Feed(
            id=own,
            title="Similar documents",
            author="Muniment",
            updated=now,
            page=1,
            items_per_page=limit,
            links=(
                atom.Link("self", f"{own}?{repeated}" if repeated else own),
                atom.Link("related", f"{here}/objects/{object_id}"),
            ),
            entries=tuple(search.entry(hit, here, things.get(hit.object_id)) for hit in page.hits),
            total=page.total,
            entry_links=links,
        )
        return spelling.feed(media_type, feed, options.names), caller.spell(principals, page.position)

    body, position = await caller.search(index, write_feed)
    return Response(body, headers={"Content-Type": media_type, positions.HEADER: position, **spelling.PRIVATE})
