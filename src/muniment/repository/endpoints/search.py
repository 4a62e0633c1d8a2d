"""The search service: keywords by GET, a query document by POST, a feed as the answer.

Source: given 2.8-2.10, 4.6; docs/interface.md, ours 6.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.clock import SECOND
from muniment.repository.aql import as_xml, keywords
from muniment.repository.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.change_log.changes import Position
from muniment.repository.endpoints import positions, spelling
from muniment.repository.endpoints.context import Caller, RepositoryContext, address, enter
from muniment.repository.index.contract import Index
from muniment.repository.options import RepositoryOptions
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import IndexBehind, NotOfferedYet
from muniment.repository.repositories import Repository
from muniment.repository.search import atom, kept_searches, results
from muniment.repository.search.results import HitPage, SearchQuestion
from muniment.web import bodies
from muniment.web.refusals import Malformed, UnsupportedMediaType

_NOT_YET = (
    "collections",
    "facet",
    "facet-id-constraints",
    "facet-value-constraints",
    "inline",
    "locations",
    "query-locale",
    "sort",
    "timezone",
    "view",
)
_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.02


class _Asked(msgspec.Struct, frozen=True):
    """A request, read: the query or the link that leads to one, the page, and what its own links must repeat."""

    page: int
    items_per_page: int
    include_total: bool
    wait_for: str | None
    media_type: str
    repeated: dict[str, str]
    document: bytes | None = None


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """GET: keywords in `q` (none: everything the caller may see), or the `link` of a POST feed."""
    caller = await enter(request, context)
    asked = _asked(request, context.options, ("q", "object-type", "link"))
    return await _answer(request, context, caller, asked)


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """POST: a query document in XML (given 2.8)."""
    caller = await enter(request, context)
    asked = _asked(request, context.options, ())
    names = context.options.names
    if bodies.media_type(request) not in ("application/xml", "text/xml", f"{names.media_type}+xml"):
        raise UnsupportedMediaType("The query document must be application/xml.")
    bodies.check_encoding(request)
    document = await bodies.raw(request, context.options.max_metadata_bytes)
    return await _answer(request, context, caller, msgspec.structs.replace(asked, document=document))


async def _answer(request: Request, context: RepositoryContext, caller: Caller, asked: _Asked) -> Response:
    repository = caller.repository
    index = context.indexes(repository)
    if asked.wait_for:
        await _reached(context, index, await caller.position(asked.wait_for))
    here = address(request, context, repository)

    def answered(principals: Principals) -> tuple[bytes, str]:
        body, position = _page(context, index, repository, principals, asked, here)
        return body, caller.spell(principals, position)

    body, position = await caller.search(answered)
    return Response(body, headers={"Content-Type": asked.media_type, positions.HEADER: position})


def _page(
    context: RepositoryContext, index: Index, repository: Repository, principals: Principals, asked: _Asked, here: str
) -> tuple[bytes, Position]:
    """Answer one page, from the query's reading to the feed's bytes; runs off the loop as one piece of work."""
    query, kept = _query(context, repository, principals, asked)
    page = results.search(
        context.transactions.database,
        index.snapshot(),
        repository,
        principals,
        SearchQuestion(query, asked.page, asked.items_per_page, asked.include_total),
        context.options.max_page_offset,
        context.options.max_pending_changes,
    )
    repeated, others = asked.repeated, page.has_more or page.page > 1
    if kept is not None:
        # A page that was asked for and does not exist is no reason to keep anything.
        others = page.has_more or (page.page > 1 and bool(page.hits))
        repeated = {"link": _keep(context, repository, principals, kept), **repeated} if others else repeated
    written = _feed(page, repeated, here, context, others=others)
    names = context.options.names
    if asked.media_type.endswith("json"):
        return atom.as_json(written, f"{names.media_type}+json"), page.position
    return atom.as_xml(written, names.vocab_namespace, names.relevance_namespace), page.position


def _query(
    context: RepositoryContext, repository: Repository, principals: Principals, asked: _Asked
) -> tuple[Query, bytes | None]:
    """Read the query, and say what of it is kept for `next`: a query that came as a document."""
    limits = QueryLimits(context.options.max_query_depth, context.options.max_query_clauses)
    names = context.options.names
    if asked.document is not None:
        query = as_xml.read(asked.document, names, limits)
        return query, kept_searches.encode(query)
    link = asked.repeated.get("link")
    if link is not None:
        caller = principals.key
        with context.transactions.database.read() as cx:
            document = kept_searches.follow(cx, repository.id, link, caller, context.clock())
        return kept_searches.decode(document), None
    text = asked.repeated.get("q", "")
    named = asked.repeated.get("object-type")
    return Query(
        types=(spelling.read_type(named, names),) if named else (),
        condition=Fulltext(keywords.read(text, limits)) if text.strip() else None,
    ), None


def _keep(context: RepositoryContext, repository: Repository, principals: Principals, document: bytes) -> str:
    caller, now, seconds = principals.key, context.clock(), context.options.link_seconds
    link = kept_searches.name(repository.id, caller, document)
    with context.transactions.database.read() as cx:
        kept = kept_searches.kept_until(cx, link, document)
    if kept < now + seconds * SECOND // 2:
        quota = kept_searches.SearchQuota(context.options.kept_queries, context.options.kept_query_bytes)
        with context.transactions.database.begin() as cx:
            kept_searches.keep(cx, repository.id, caller, document, seconds, quota, now)
    return link


def _feed(
    page: HitPage, repeated: Mapping[str, str], here: str, context: RepositoryContext, *, others: bool
) -> atom.Feed:
    service = f"{here}/search"

    def link(rel: str, number: int) -> atom.Link:
        parameters = {**repeated, "page": str(number), "items-per-page": str(page.items_per_page)}
        return atom.Link(rel, f"{service}?{urlencode(parameters)}")

    shown = [link("self", page.page)]
    if page.has_more:
        shown.append(link("next", page.page + 1))
    if others and page.page > 1:
        shown.append(link("previous", page.page - 1))
    if others:
        shown.append(link("first", 1))
        if page.total is not None:
            shown.append(link("last", max(1, -(-page.total // page.items_per_page))))
    return atom.Feed(
        id=service,
        title="Search results",
        author="Muniment",
        updated=context.clock(),
        page=page.page,
        items_per_page=page.items_per_page,
        links=tuple(shown),
        total=page.total,
        entries=tuple(
            atom.FeedEntry(
                id=found.object_id,
                title=found.title,
                author=found.owner,
                summary=found.summary,
                updated=found.updated,
                address=f"{here}/objects/{found.object_id}",
                score=found.score,
                terms=found.terms,
            )
            for found in page.hits
        ),
    )


def _asked(request: Request, options: RepositoryOptions, own: tuple[str, ...]) -> _Asked:
    parameters = bodies.query(request)
    for name in _NOT_YET:
        if parameters.get(name):
            raise NotOfferedYet(f"The parameter {name!r} is not offered yet.")
    for name in ("q", "object-type", "link"):
        if name in parameters and name not in own:
            raise Malformed(f"The parameter {name!r} belongs to a GET; a POST says it in the query document.")
    if "link" in parameters and ("q" in parameters or "object-type" in parameters):
        raise Malformed("The parameter 'link' stands for a whole query: 'q' and 'object-type' cannot go with it.")
    repeated = {name: parameters[name] for name in (*own, "include-total") if name in parameters}
    return _Asked(
        page=_number(parameters, "page", 1, None),
        items_per_page=_number(parameters, "items-per-page", options.items_per_page, options.max_items_per_page),
        include_total=_true(parameters, "include-total"),
        wait_for=parameters.get("wait-for"),
        media_type=_feed_type(request, options),
        repeated=repeated,
    )


def _feed_type(request: Request, options: RepositoryOptions) -> str:
    vendor = options.names.media_type
    offered = ("application/atom+xml", "application/xml", f"{vendor}+xml", f"{vendor}+json", "application/json")
    return spelling.negotiate(request, offered)


def _number(parameters: Mapping[str, str], name: str, default: int, most: int | None) -> int:
    written = parameters.get(name)
    if not written:
        return default
    wanted = f"from 1 to {most}" if most is not None else "from 1 on"
    if not (written.isascii() and written.isdecimal() and len(written) <= 18) or int(written) < 1:
        raise Malformed(f"The parameter {name!r} must be a whole number {wanted}, not {written[:40]!r}.")
    if most is not None and int(written) > most:
        raise Malformed(f"The parameter {name!r} must be a whole number {wanted}, not {written[:40]!r}.")
    return int(written)


def _true(parameters: Mapping[str, str], name: str) -> bool:
    written = parameters.get(name) or "false"
    if written not in ("true", "false"):
        raise Malformed(f"The parameter {name!r} must be true or false, not {written[:40]!r}.")
    return written == "true"


async def _reached(context: RepositoryContext, index: Index, wanted: Position) -> None:
    """Wait until the index is true to the position. Raises IndexBehind after 5 seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WAIT_SECONDS
    while True:
        if await context.transactions.off_loop(lambda: index.snapshot().position) >= wanted:
            return
        if loop.time() > deadline:
            raise IndexBehind("The index has not reached the position yet: try again in a moment.")
        await asyncio.sleep(_POLL_SECONDS)
