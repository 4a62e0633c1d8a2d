"""Which repositories are there, and where does each keep what: the addresses a client begins with.

Source: given 2.10; docs/interface.md, ours 1. The list is open without credentials, as in the field, and shows
names only.
"""

from collections.abc import Callable

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import cursors, repositories
from muniment.repository.cursors import Listing
from muniment.repository.endpoints import representations, spelling
from muniment.repository.endpoints.context import RepositoryContext, address, base_address, enter
from muniment.repository.endpoints.representations import ListPage, Page
from muniment.repository.endpoints.spelling import Written
from muniment.repository.repositories import Repository

SEARCH_TEMPLATE = (
    "search{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,timezone,view}"
)
"""What the search link's template ends in, character for character (given 2.10)."""

_STRANGERS = ""
"""Whose turn it is where nobody signs in, and whose a cursor is."""

_RELATIONS = ("cabinets", "types", "acls")


async def listing(request: Request, context: RepositoryContext) -> Response:
    """GET: every repository's name and address, as a feed, a page of them at a time."""
    representations.feed_type(request, context.options.names)
    wanted = representations.page(request, context.options)
    here = f"{base_address(request, context)}/repositories"
    listed = await context.transactions.read_long(
        _STRANGERS, _listed, wanted, lambda one: address(request, context, one)
    )
    return representations.feed_answer(request, context, "Repositories", here, wanted, listed)


async def repository_resource(request: Request, context: RepositoryContext) -> Response:
    """GET: one repository and where its services are (given 2.10)."""
    caller = await enter(request, context)
    repository = await caller.read(lambda cx, _: repositories.find(cx, caller.repository.name))
    media_type = spelling.negotiate(request, spelling.both(context.options.names))
    here, base = address(request, context, repository), context.options.names.linkrel_base
    links: list[Written] = [
        {"rel": "self", "href": here},
        *({"rel": f"{base}/{relation}", "href": f"{here}/{relation}"} for relation in _RELATIONS),
        {"rel": f"{base}/search", "hreftemplate": f"{here}/{SEARCH_TEMPLATE}"},
    ]
    said: dict[str, Written] = {
        "id": repository.id,
        "name": repository.name,
        "description": repository.description,
        "links": links,
    }
    body = spelling.answer(media_type, "repository", said, context.options.names)
    return Response(body, headers={"Content-Type": media_type})


def _listed(cx: Connection, wanted: Page, address_of: Callable[[Repository], str]) -> ListPage:
    listing = Listing(0, _STRANGERS, "repositories")
    found = repositories.page(cx, cursors.stretch(cx, listing, wanted.part))
    following = cursors.next_cursor(cx, listing, wanted.part, [(one.name,) for one in found])
    entries = [
        representations.plain_entry(address_of(one), one.name, "Muniment", one.name, one.created)
        for one in found[: wanted.part.size]
    ]
    return ListPage(entries, following, repositories.count(cx) if wanted.include_total else None)
