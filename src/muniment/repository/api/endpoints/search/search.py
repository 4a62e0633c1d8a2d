"""The search service: keywords by GET, a query document by POST, a feed as the answer.

Source: given 2.8-2.10, 4.6; docs/interface.md, ours 6.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.endpoints.search import search_requests
from muniment.repository.api.endpoints.search.facets import FacetWriter
from muniment.repository.api.endpoints.search.search_requests import AskedSearch, QuerySource
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import PageRoom
from muniment.repository.api.shapes.representations import View
from muniment.repository.api.wire import parameters, positions, spelling
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import IndexBehind
from muniment.repository.search.answering import atom, paging, results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering import scrolls
from muniment.repository.search.answering.ordering.scrolls import Holder, Scroll
from muniment.repository.search.answering.paging import TurnedPage
from muniment.repository.search.answering.results import Hit, HitPage
from muniment.repository.search.aql.spelling.facets import FacetLimits
from muniment.repository.search.aql.tree import Query
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.listing.object_ids import kind_of
from muniment.repository.store.permissions.principals import Principals

_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.02


_TRIES = 3
"""A page is read again if another request has kept the same walk."""


class _WrittenPage(msgspec.Struct, frozen=True):
    """A page, and what must be kept for `next`: the query's document and the walk."""

    body: bytes
    position: Position
    unkept: bytes | None
    walk: Scroll | None
    etag: str = ""
    relaxed: bool = False
    left_out: int = 0


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """Search by keywords, or turn a page of a posted search."""
    caller = await enter(request, context)
    return await _answer(request, context, caller, await search_requests.read_keywords(request, context))


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """Search by a query document."""
    caller = await enter(request, context)
    return await _answer(request, context, caller, await search_requests.read_document(request, context))


async def execute(request: Request, context: RepositoryContext, caller: Caller, source: QuerySource) -> Response:
    """Answer a saved query as a search does. A GET gets an ETag of the content, or 304."""
    asked = search_requests.read_parameters(request, parameters.read(request), context.options, ())
    asked = replace(asked, kept=source, posted=not source.path)
    return await _answer(request, context, caller, asked)


async def all_ids(
    request: Request, context: RepositoryContext, caller: Caller, source: QuerySource, most: int
) -> list[str]:
    """Wait for the index first if ``wait-for`` says so."""
    await wait_for_position(context, caller, parameters.read(request).get("wait-for"))

    def find_ids(inquiry: Inquiry) -> list[str]:
        query = replace(source.find(inquiry.cx, inquiry.principals).query, facets=())
        results.check_offered(query, inquiry.repository)
        reach = max(most, inquiry.options.max_page_offset)
        options = replace(inquiry.options, max_page_offset=reach)
        question = SearchQuestion(query, 1, most, bare=True)
        page = results.search(replace(inquiry, options=options, question=question))
        return [hit.object_id for hit in page.hits]

    return await caller.search(find_ids)


async def _answer(request: Request, context: RepositoryContext, caller: Caller, asked: AskedSearch) -> Response:
    await wait_for_position(context, caller, asked.wait_for)
    here = caller.here

    def write_page(inquiry: Inquiry) -> tuple[_WrittenPage, str]:
        feed = _page(inquiry, asked, here)
        return feed, caller.spell(inquiry.principals, feed.position)

    for _ in range(_TRIES):
        feed, position = await caller.search(write_page)
        headers = {positions.HEADER: position, **words_header(relaxed=feed.relaxed, left_out=feed.left_out)}
        if feed.etag:
            headers |= {"ETag": feed.etag, **spelling.PRIVATE}
            if representations.matches(request, "if-none-match", feed.etag.removeprefix("W/")):
                return Response(status_code=304, headers=headers)
        if (feed.unkept is None and feed.walk is None) or await _keep(context, caller, feed):
            return Response(feed.body, headers={"Content-Type": asked.media_type, **headers})
    raise scrolls.unknown_link()


async def _keep(context: RepositoryContext, caller: Caller, feed: _WrittenPage) -> bool:
    """Return False if another request has kept the walk."""
    options = context.options

    def keep(cx: Connection, principals: Principals) -> bool:
        now, holder = context.clock(), Holder(caller.repository.id, principals.key)
        if feed.unkept is not None:
            kept_searches.keep_search(cx, holder, feed.unkept, options, now)
        return feed.walk is None or kept_searches.keep_walk(cx, holder, feed.walk, options, now)

    return await caller.write(keep)


def _page(inquiry: Inquiry, asked: AskedSearch, here: str) -> _WrittenPage:
    """Run outside the event loop."""
    cx, principals, options = inquiry.cx, inquiry.principals, inquiry.options
    named_query = None if asked.kept is None else asked.kept.find(cx, principals)
    inquiry = inquiry.asking(question_of(inquiry, asked, None if named_query is None else named_query.query))
    query = inquiry.question.query
    if query.columns and asked.view == View():
        asked = replace(asked, view=View(properties=frozenset(query.columns)))
    saved_query = query if asked.kept is not None and asked.kept.path else None
    unkept = None
    if asked.cursor is not None:
        turned_page = paging.follow(inquiry, asked.cursor, _selection(asked.repeated, saved_query))
    else:
        page, repeated = paging.by_number(inquiry), asked.repeated
        # For a page that lies past the last hit, nothing is kept.
        if asked.posted and (_has_others(page) or any(facet.values for facet in page.facets)):
            document = kept_searches.encode(query)
            link = kept_searches.name(Holder(inquiry.repository.id, principals.key), document)
            repeated = {"link": link, **repeated}
            unkept = None if kept_searches.is_lasting(cx, link, document, options, inquiry.now) else document
        if page.relaxed:
            repeated = {**repeated, "words": "any"}
        asked = replace(asked, repeated=repeated)
        turned_page = paging.begin(inquiry, page, _selection(repeated, saved_query))
    page = turned_page.page
    service = f"{here}/{(asked.kept and asked.kept.path) or 'search'}"
    feed = _feed(inquiry, asked, turned_page, here, service)
    if query.facets:
        size = parameters.ITEMS_PER_PAGE.name, page.items_per_page
        writer = FacetWriter(page.facet_hits, asked.facets, asked.repeated, size, service, options.names)
        feed = replace(feed, facets=writer.facets(page.facets))
    etag = ""
    if named_query is not None:
        newest = max((hit.updated for hit in page.hits), default=named_query.modified)
        feed = replace(feed, title=named_query.title, updated=max(newest, named_query.modified))
        etag = "" if asked.posted else _etag(feed, asked.media_type)
    body = spelling.feed(asked.media_type, feed, options)
    return _WrittenPage(body, page.position, unkept, turned_page.unkept, etag, page.relaxed, page.left_out)


def question_of(
    inquiry: Inquiry, asked: AskedSearch, source_query: Query | None = None, *, sure: bool = False
) -> SearchQuestion:
    """Ask ``source_query``, or the request's own, or else the posted one of its ``link``. With ``sure``, a typed field
    that cannot be read is refused.

    Raises UnknownLink, UnknownProperty, BadQuery, WrongValue.
    """
    options, view = inquiry.options, inquiry.view()
    query = source_query or asked.query or _follow_link(inquiry, asked.repeated["link"])
    if asked.fields:
        query = search_requests.with_fields(inquiry.cx, view, options, query, asked.fields, sure=sure)
    if definitions := asked.facets.definitions(view.catalogue, options.names):
        query = replace(query, facets=definitions)
    results.check_offered(query, inquiry.repository)
    return SearchQuestion(
        *(query, asked.page, asked.items_per_page, asked.include_total),
        asked.facets.narrowings(query, options.names),
        FacetLimits.of(options),
        start=asked.start,
        words=asked.words,
        marks=asked.marks,
        collapse=asked.collapse,
        meaning=asked.meaning,
        locale=search_requests.locale(asked.repeated),
        typed=asked.typed,
    )


def _has_others(page: HitPage) -> bool:
    return page.has_more or (page.page > 1 and bool(page.hits))


def _selection(repeated: Mapping[str, str], saved_query: Query | None) -> str:
    """For a saved search, include the query, which its owner may change."""
    parameters = {name: text for name, text in repeated.items() if name not in search_requests.SHOWING}
    selecting = urlencode(sorted(parameters.items()))
    return (
        selecting
        if saved_query is None
        else f"{selecting} {hashlib.sha256(kept_searches.encode(saved_query)).hexdigest()}"
    )


def _etag(feed: atom.Feed, media_type: str) -> str:
    """Leave out scores, which change with every document, and addresses of pages, which have cursors of their own."""
    entries = tuple(replace(entry, score=None) for entry in feed.entries)
    pages = tuple(replace(link, href="") for link in feed.links)
    content = msgspec.json.encode((media_type, replace(feed, entries=entries, links=pages)))
    return f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'


def inlined_hits(
    inquiry: Inquiry, asked: AskedSearch, hits: Sequence[Hit], here: str, room: PageRoom
) -> dict[str, object]:
    """Return what entries inline, by object id. The inquiry's read has checked the hits.

    Raises UnknownProperty, and Malformed if the room is too small.
    """
    inlined: dict[str, object] = {}
    if not asked.inline:
        return inlined
    view, names = inquiry.view(), inquiry.options.names
    for name in asked.view.properties or ():
        view.catalogue.property(name)
    ids = [hit.object_id for hit in hits]
    for begin in range(0, len(ids), collections.PORTION):
        some_ids = ids[begin : begin + collections.PORTION]
        objects_by_id = inventory.rows(inquiry.cx, inquiry.repository.id, some_ids)
        rows = [objects_by_id[object_id] for object_id in some_ids]
        for body in collections.object_bodies(inquiry.cx, view, rows):
            kind = kind_of(body.stored.id)
            thing = representations.object_thing(here, body, names, asked.media_type, kind, asked.view)
            inlined[body.stored.id] = collections.inline(thing, asked.media_type, names, room, links=asked.links)
    return inlined


def entry(hit: Hit, here: str, inlined: object) -> atom.FeedEntry:
    """Make an entry (given 2.9); ``here`` is the repository's address."""
    return atom.FeedEntry(
        id=hit.object_id,
        title=hit.title,
        author=hit.owner,
        summary=hit.summary,
        updated=hit.updated,
        address=f"{here}/objects/{hit.object_id}",
        score=hit.score,
        terms=hit.terms,
        marks=hit.marks,
        copies=hit.copies,
        inlined=inlined,
        author_address=representations.user_address(here, hit.owner),
    )


def _follow_link(inquiry: Inquiry, link: str) -> Query:
    holder = Holder(inquiry.repository.id, inquiry.principals.key)
    return kept_searches.decode(kept_searches.follow(inquiry.cx, holder, link, inquiry.now))


def _feed(inquiry: Inquiry, asked: AskedSearch, turned_page: TurnedPage, here: str, service: str) -> atom.Feed:
    page, repeated, options = turned_page.page, asked.repeated, inquiry.options
    prefix = f"{service}?{urlencode(repeated)}&" if repeated else f"{service}?"

    def link(rel: str, number: int, cursor: str | None = None) -> atom.Link:
        address = f"{prefix}page={number}&items-per-page={page.items_per_page}"
        return atom.Link(rel, f"{address}&cursor={cursor}" if cursor else address)

    links = [link("self", page.page, asked.cursor)]
    if page.relaxed and ("q" in repeated or "link" in repeated or service != f"{here}/search"):
        place = {"page": 1, "items-per-page": page.items_per_page}
        links.append(all_words_link(options, service, repeated, place))
    if page.has_more:
        links.append(link("next", page.page + 1, turned_page.following))
    if _has_others(page) or (not asked.posted and asked.page > 1):
        total = None if asked.collapse else page.total
        numbers = collections.other_pages(page.page, page.items_per_page, total, options)
        links += [link(rel, number) for rel, number in numbers]
    inlined = inlined_hits(inquiry, asked, page.hits, here, PageRoom(options))
    return atom.Feed(
        id=service,
        title="Search results",
        author="Muniment",
        updated=inquiry.now,
        page=page.page,
        items_per_page=page.items_per_page,
        links=tuple(links),
        total=page.total,
        entries=tuple([entry(hit, here, inlined.get(hit.object_id)) for hit in page.hits]),
        entry_links=asked.links,
        facets=(),
    )


def all_words_link(
    options: RepositoryOptions, service: str, repeated: Mapping[str, str], place: Mapping[str, int]
) -> atom.Link:
    """``place`` has the parameters of its first page."""
    typed = {"typed": "true"} if "q" in repeated else {}
    parameters = urlencode({**repeated, "words": "all", **typed, **place})
    return atom.Link(f"{options.names.own_linkrel_base}/all-words", f"{service}?{parameters}")


def words_header(*, relaxed: bool, left_out: int) -> dict[str, str]:
    if not relaxed:
        return {}
    return {parameters.WORDS_NEEDED.name: "any"} | ({parameters.WORDS_LEFT_OUT.name: str(left_out)} if left_out else {})


async def wait_for_position(context: RepositoryContext, caller: Caller, text: str | None) -> None:
    """Raises IndexBehind after 5 seconds, IndexUnavailable, Malformed, NotPermitted."""
    if not text:
        return
    index, loop = context.indexes(caller.repository), asyncio.get_running_loop()
    target = await caller.position(text)
    deadline = loop.time() + _WAIT_SECONDS
    while True:
        if await context.transactions.off_loop(lambda: index.snapshot().position) >= target:
            return
        if loop.time() > deadline:
            raise IndexBehind("The index has not reached the position yet: try again in a moment.")
        await asyncio.sleep(_POLL_SECONDS)
