"""List the documents that are like an object, as a feed of one page (docs/interface.md, ours 6)."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import RepositoryContext, enter
from muniment.repository.api.endpoints.search import search
from muniment.repository.api.endpoints.search.search_requests import AskedSearch
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import PageRoom
from muniment.repository.api.wire import parameters, positions, spelling
from muniment.repository.search.answering import atom
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.related import similar

_DEFAULT = 10


async def list_similar(request: Request, context: RepositoryContext) -> Response:
    """List the documents that are most like an object."""
    caller = await enter(request, context)
    query, options = parameters.read(request), context.options
    limit = min(collections.whole_number(query, "items-per-page", _DEFAULT, 1), options.max_items_per_page)
    asked = AskedSearch(
        items_per_page=limit,
        media_type=collections.feed_type(request, options.names),
        include_total=parameters.truth(query, "include-total"),
        inline=parameters.truth(query, "inline"),
        links=parameters.truth(query, "links", default=True),
        view=representations.read_view(query, options.names),
    )
    object_id, here = representations.identifier(request), caller.here
    await search.wait_for_position(context, caller, query.get("wait-for"))

    def write_feed(inquiry: Inquiry) -> tuple[bytes, str]:
        page = similar.find(inquiry.changed(items_per_page=limit, include_total=asked.include_total), object_id)
        things = search.inlined_hits(inquiry, asked, page.hits, here, PageRoom(options))
        own = f"{here}/objects/{object_id}/similar"
        names = [each.name for each in parameters.SIMILAR if each is not parameters.WAIT_FOR]
        repeated = urlencode({name: query[name] for name in names if name in query})
        feed = atom.Feed(
            id=own,
            title="Similar documents",
            author="Muniment",
            updated=inquiry.now,
            page=1,
            items_per_page=limit,
            links=(
                atom.Link("self", f"{own}?{repeated}" if repeated else own),
                atom.Link("related", f"{here}/objects/{object_id}"),
            ),
            entries=tuple(search.entry(hit, here, things.get(hit.object_id)) for hit in page.hits),
            total=page.total,
            entry_links=asked.links,
        )
        return spelling.feed(asked.media_type, feed, options), caller.spell(inquiry.principals, page.position)

    body, position = await caller.search(write_feed)
    return Response(body, headers={"Content-Type": asked.media_type, positions.HEADER: position, **spelling.PRIVATE})
