"""Where does a client begin?

Each repository's own address needs credentials; the other addresses here need none. Source: given 2.10;
docs/interface.md, ours 1; JSON home documents (draft-nottingham-json-home-02).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import metadata
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import RepositoryContext, address, base_address, enter
from muniment.repository.api.shapes import collections
from muniment.repository.api.shapes.collections import ListPage, OpenFeedRequest
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownRepository
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import CursorBinding
from muniment.repository.store.repositories import ListedRepository, Repository

SEARCH_TEMPLATE = (
    "search{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,timezone,view}"
)
"""The search link ends so, character for character (given 2.10)."""

_STRANGERS = ""
"""Where nobody signs in, turns and cursors have this name."""

_FIELD_RELATIONS = frozenset(
    (
        *("acls", "archived-contents", "aspect-types", "batch-capabilities", "batches", "cabinets"),
        *("checked-out-objects", "current-user", "current-user-preferences", "distributed-upload", "formats", "groups"),
        *("lifecycles", "network-locations", "relation-types", "relations", "repositories", "saved-searches", "search"),
        *("search-templates", "subscriptions", "supported-facets", "types", "users"),
    )
)
"""The system in the field has these relations, offered here or not."""

_RELATIONS: Mapping[str, str] = {"currentuser": "current-user"}
"""These differ from the last part of the path, which is the key."""

_WHOLE_RELATIONS: Mapping[str, str] = {"product-info": "about"}
"""These have no base; the last part of the path is the key."""


class LinkTarget(msgspec.Struct, frozen=True):
    """``name`` is the last part of the path; GET answers in ``media_types``."""

    name: str
    methods: Sequence[str]
    media_types: Sequence[str]


async def home(request: Request, context: RepositoryContext, targets: Sequence[LinkTarget]) -> Response:
    """Show where a client begins."""
    names = context.names
    media_type = spelling.negotiate(request, spelling.home_types(names))
    write = _home_json if media_type.endswith("json") else _home_xml
    body = write(targets, base_address(request, context), names)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-cache", "Vary": "Accept"})


async def product_info(request: Request, context: RepositoryContext) -> Response:
    """Show the name and the release of the product."""
    names = context.names
    media_type = context.thing_type(request)
    release = _release()
    document: dict[str, Written] = {
        "name": names.product,
        "properties": {
            "product": names.product,
            "product_version": release,
            "major": names.major,
            "minor": "0000",
            "build_number": release,
            "revision_number": "0000",
        },
        "links": [{"rel": "self", "href": f"{base_address(request, context)}/product-info"}],
    }
    body = spelling.document_answer(media_type, "product-info", document, names)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-cache", "Vary": "Accept"})


async def list_repositories(request: Request, context: RepositoryContext, targets: Sequence[LinkTarget]) -> Response:
    """List the repositories."""
    own = f"{base_address(request, context)}/repositories"
    feed = collections.open_request(request, context, own, "Repositories")

    def entries(members: Sequence[ListedRepository]) -> list[FeedEntry]:
        return [_entry(feed, each, address(request, context, each), targets) for each, _ in members]

    body = await context.transactions.read_long(_STRANGERS, lambda cx: feed.write(_repository_page(cx, feed, entries)))
    return feed.answer(body)


async def show(request: Request, context: RepositoryContext, targets: Sequence[LinkTarget]) -> Response:
    """Show a repository, with links to these targets (given 2.10)."""
    caller = await enter(request, context)
    names = context.names
    has_links = parameters.truth(parameters.read(request), parameters.LINKS.name, default=True)
    media_type = context.thing_type(request)
    repository = await caller.read(lambda cx, _: repositories.find(cx, caller.repository.name))
    here = address(request, context, repository)
    host = urlsplit(here).hostname or ""
    server = {"name": repository.name, "host": host, "version": _release(), "docbroker": host}
    document: dict[str, Written] = {
        "id": repository.id,
        "name": repository.name,
        "description": repository.description,
        "servers": [server],
    }
    if has_links:
        document["links"] = [{"rel": "self", "href": here}, *_links(targets, here, names)]
    return spelling.reply(media_type, "repository", document, names)


async def has_name(request: Request, context: RepositoryContext) -> bool:
    """Return whether the whole last part, suffix included, is a repository's name.

    Raises what ``enter`` raises, except UnknownRepository.
    """
    try:
        caller = await enter(request, context)
        await caller.check()
    except UnknownRepository:
        return False
    return True


@cache
def _release() -> str:
    return metadata.version("muniment")


def _links(targets: Sequence[LinkTarget], here: str, names: RepositoryNames) -> list[Written]:
    statement = {"rel": f"{names.linkrel_base}/dql", "hreftemplate": f"{here}{{?dql}}"}
    return [*(_link(target, here, names) for target in targets), statement]


def _link(target: LinkTarget, here: str, names: RepositoryNames) -> dict[str, Written]:
    relation = _relation(target.name, names)
    if target.name == "search":
        return {"rel": relation, "hreftemplate": f"{here}/{SEARCH_TEMPLATE}"}
    if target.name == "object-by-path":
        return {"rel": relation, "hreftemplate": f"{here}/{target.name}{{?path}}"}
    return {"rel": relation, "href": f"{here}/{target.name}"}


def _relation(name: str, names: RepositoryNames) -> str:
    if name in _WHOLE_RELATIONS:
        return _WHOLE_RELATIONS[name]
    relation = _RELATIONS.get(name, name)
    return f"{names.linkrel_base if relation in _FIELD_RELATIONS else names.own_linkrel_base}/{relation}"


def _home_json(targets: Sequence[LinkTarget], base: str, names: RepositoryNames) -> bytes:
    resources = {
        _relation(target.name, names): {
            "href": f"{base}/{target.name}",
            "hints": {"allow": target.methods, "representations": target.media_types},
        }
        for target in targets
    }
    return msgspec.json.encode({"resources": resources})


def _home_xml(targets: Sequence[LinkTarget], base: str, names: RepositoryNames) -> bytes:
    def items(name: str, texts: Sequence[str]) -> str:
        return f"<{name}>{''.join(f'<i>{escape(text)}</i>' for text in texts)}</{name}>"

    elements = [
        f"<resource rel={quoteattr(_relation(target.name, names))}><link href={quoteattr(f'{base}/{target.name}')}/>"
        f"<hints>{items('allow', target.methods)}{items('representations', target.media_types)}</hints></resource>"
        for target in targets
    ]
    root = f"<resources xmlns={quoteattr(names.vocab_namespace)}>{''.join(elements)}</resources>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}'.encode()


def _entry(feed: OpenFeedRequest, repository: Repository, here: str, targets: Sequence[LinkTarget]) -> FeedEntry:
    def describe() -> Thing:
        # Nobody has signed in, so the inlined repository shows no more than its name and links.
        links: list[Written] = [{"rel": "self", "href": here}, *_links(targets, here, feed.names)]
        return Thing("repository", {"name": repository.name, "links": links})

    return feed.entry(here, repository.name, "Muniment", repository.name, repository.created, describe)


def _repository_page(
    cx: Connection, feed: OpenFeedRequest, entries: Callable[[Sequence[ListedRepository]], list[FeedEntry]]
) -> ListPage:
    selection = feed.page.selection
    return collections.list_page(
        cx,
        CursorBinding(0, _STRANGERS, "repositories", selection.text),
        feed.page,
        lambda stretch: repositories.repository_page(cx, stretch, selection),
        entries,
        lambda: repositories.count_repositories(cx, selection),
    )
