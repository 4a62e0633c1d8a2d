"""Which repositories are there, and where does each keep what: the addresses a client begins with.

Source: given 2.10; repository.md 7.2. The list is open without credentials, as in the field, and says names only.
"""

from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import atom, repositories
from muniment.repository.endpoints import spelling
from muniment.repository.endpoints.half import RepositoryHalf, address, base_address, entered
from muniment.repository.endpoints.spelling import Written
from muniment.repository.repositories import Repository

SEARCH_TEMPLATE = (
    "search{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,timezone,view}"
)
"""What the search link's template ends in, character for character (given 2.10)."""

_RELATIONS = ("cabinets", "types", "acls")


async def listing(request: Request, half: RepositoryHalf) -> Response:
    """GET: every repository's name and address, as a feed."""
    vendor = half.options.names.media_type
    media_type = spelling.chosen(
        request,
        (f"{vendor}+json", "application/json", "application/atom+xml", "application/xml", f"{vendor}+xml"),
    )
    here = f"{base_address(request, half)}/repositories"
    kept = await half.desk.read(repositories.every)
    feed = atom.Feed(
        id=here,
        title="Repositories",
        author="Muniment",
        updated=half.clock(),
        page=1,
        items_per_page=max(len(kept), half.options.items_per_page),
        links=(atom.Link("self", here),),
        entries=tuple(_entry(repository, address(request, half, repository)) for repository in kept),
    )
    if media_type.endswith("json"):
        return Response(atom.as_json(feed, f"{vendor}+json"), headers={"Content-Type": media_type})
    names = half.options.names
    body = atom.as_xml(feed, names.vocab_namespace, names.relevance_namespace)
    return Response(body, headers={"Content-Type": media_type})


async def repository_resource(request: Request, half: RepositoryHalf) -> Response:
    """GET: one repository and where its services are (given 2.10)."""
    repository, _ = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    here, base = address(request, half, repository), half.options.names.linkrel_base
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
    body = spelling.answer(media_type, "repository", said, half.options.names)
    return Response(body, headers={"Content-Type": media_type})


def _entry(repository: Repository, here: str) -> atom.Entry:
    return atom.Entry(here, repository.name, "Muniment", repository.name, repository.created, here)
