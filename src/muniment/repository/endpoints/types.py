"""The object types of a repository, with their properties. Source: docs/interface.md, ours 1."""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import cursors
from muniment.repository.cursors import Listing
from muniment.repository.endpoints import representations, spelling
from muniment.repository.endpoints.context import ENTERING, RepositoryContext, address, enter
from muniment.repository.endpoints.representations import ListPage, Page
from muniment.repository.objects import object_types
from muniment.repository.options import RepositoryNames
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import UnknownType
from muniment.repository.repositories import Repository
from muniment.web.responses import ErrorCode, Table

TABLE: Table = {**ENTERING, UnknownType: ErrorCode(404, "E_UNKNOWN_TYPE")}


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """GET types: a feed of all of them."""
    caller = await enter(request, context)
    repository = caller.repository
    names = context.options.names
    representations.feed_type(request, names)
    wanted = representations.page(request, context.options, typed=True)
    own = f"{address(request, context, repository)}/types"
    list_all = await caller.read_long(lambda cx, principals: _listed(cx, repository, principals, wanted, own, names))
    return representations.feed_answer(request, context, "Types", own, wanted, list_all)


async def read(request: Request, context: RepositoryContext) -> Response:
    """GET types/{name}."""
    caller = await enter(request, context)
    repository = caller.repository
    names = context.options.names
    media_type = spelling.negotiate(request, spelling.both(names))
    catalogue = await caller.read(lambda cx, _: object_types.catalogue(cx, repository.id))
    kind = catalogue.get(spelling.read_type(request.path_params["name"], names))
    document = representations.type_document(address(request, context, repository), kind, catalogue, names)
    headers = {"Content-Type": media_type, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    return Response(spelling.answer(media_type, "type", document, names), headers=headers)


def _listed(
    cx: Connection, repository: Repository, principals: Principals, wanted: Page, own: str, names: RepositoryNames
) -> ListPage:
    root = wanted.object_type
    listing = Listing(repository.id, principals.key, f"types {root or ''}")
    found = object_types.page(cx, repository.id, root, cursors.stretch(cx, listing, wanted.part))
    following = cursors.next_cursor(cx, listing, wanted.part, [object_types.place(kind) for kind in found])
    entries = []
    for kind in found[: wanted.part.size]:
        name = spelling.write_type(kind.name, names)
        parent = spelling.write_type(kind.parent, names) if kind.parent else ""
        entries.append(representations.plain_entry(f"{own}/{name}", name, "Muniment", parent, repository.created))
    total = object_types.count(cx, repository.id, root) if wanted.include_total else None
    return ListPage(entries, following, total)
