"""Which object does a path name?

Source: docs/interface.md, ours 2 (paths).
"""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.refusals import Malformed
from muniment.repository.api.context import RepositoryContext, enter
from muniment.repository.api.endpoints.objects.objects import complete
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody
from muniment.repository.api.wire import parameters
from muniment.repository.refusals import UnknownObject
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.folders import paths
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show the object that a path names, or list the objects if there are several."""
    caller = await enter(request, context)
    values, names = parameters.read(request), context.names
    collections.feed_type(request, names)
    path = values.get("path", "")
    if not path.startswith("/"):
        raise Malformed("The parameter 'path' begins with a slash, as in /Cabinet/Folder/name.")
    part = collections.read_page(values, context.options)

    def only_one(cx: Connection, principals: Principals) -> ObjectBody | None:
        view = RepositoryView.read(cx, caller.repository, principals)
        first = paths.path_page(cx, view, path, Stretch(None, 0, 2), part.selection, type_prefix=names.type_prefix)
        if not first:
            raise UnknownObject(f"There is no object {path[:200]!r}.")
        return complete(cx, first[0].stored, view) if len(first) == 1 else None

    whole = await caller.read_long(only_one)
    if whole is not None:
        media_type = context.thing_type(request)
        return representations.object_answer(request, caller, media_type, whole, view=part.view, links=part.links)
    feed = collections.feed_request(request, context, caller, "object-by-path", "Objects of one path")
    return await collections.answer_with_list(feed, lambda cx, principals, feed: _page(cx, principals, path, feed))


def _page(cx: Connection, principals: Principals, path: str, feed: FeedRequest) -> ListPage:
    view, selection = RepositoryView.read(cx, feed.repository, principals), feed.page.selection
    prefix = feed.names.type_prefix
    return feed.listed(
        cx,
        principals,
        f"path {path}",
        lambda stretch: paths.path_page(cx, view, path, stretch, selection, type_prefix=prefix),
        lambda members: feed.with_objects(cx, view, members, collections.object_entry),
        lambda: paths.count_path(cx, view, path, selection, type_prefix=prefix),
    )
