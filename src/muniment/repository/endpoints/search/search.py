"""The search service: keywords by GET, a query document by POST, a feed as the answer.

Source: given 2.8-2.10, 4.6; docs/interface.md, ours 6.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.clock import SECOND, Instant
from muniment.repository.aql.facets import FacetLimits
from muniment.repository.aql.tree import Query
from muniment.repository.change_log.changes import Position
from muniment.repository.endpoints import collections, parameters, positions, representations, spelling
from muniment.repository.endpoints.collections import PageRoom
from muniment.repository.endpoints.context import Caller, RepositoryContext, address, enter
from muniment.repository.endpoints.representations import View
from muniment.repository.endpoints.search import facets, search_requests
from muniment.repository.endpoints.search.search_requests import AskedSearch, QuerySource
from muniment.repository.index.contract import Index, Snapshot
from muniment.repository.objects import inventory
from muniment.repository.objects.object_ids import kind_of
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import IndexBehind
from muniment.repository.repositories import Repository
from muniment.repository.search import atom, kept_searches, paging, results, walks
from muniment.repository.search.results import Hit, HitPage, SearchQuestion
from muniment.repository.search.walks import Binding, Walk

_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.02


_TRIES = 3
"""How often a page is read at most. It is read again if another request has kept the same walk at the same time."""


class EntryForm(msgspec.Struct, frozen=True):
    """How the objects of hits are written into their entries, and how much room a page has for them."""

    media_type: str
    view: View
    links: bool
    room: PageRoom


class _WrittenPage(msgspec.Struct, frozen=True):
    """A written page: its bytes, its position, and what must be kept for `next`, namely the query's document and the
    walk."""

    body: bytes
    position: Position
    unkept: bytes | None
    walk: Walk | None
    walk_expires: Instant
    etag: str = ""
    relaxed: bool = False
    left_out: int = 0


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """Search by keywords, or turn a page of a posted search.

    Without either, hits need no words: only the other parameters narrow the search.
    """
    caller = await enter(request, context)
    return await _answer(request, context, caller, await search_requests.read_keywords(request, context))


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """Search by a query document."""
    caller = await enter(request, context)
    return await _answer(request, context, caller, await search_requests.read_document(request, context))


async def execute(request: Request, context: RepositoryContext, caller: Caller, source: QuerySource) -> Response:
    """Execute a query that was saved, and answer with a page of its hits as a search does.

    If a GET executes the query, the feed has an ETag of its content. A caller who already has this feed gets 304.
    """
    asked = search_requests.read_parameters(request, context.options, ())
    asked = msgspec.structs.replace(asked, kept=source, posted=not source.path)
    return await _answer(request, context, caller, asked)


async def all_ids(
    request: Request, context: RepositoryContext, caller: Caller, source: QuerySource, most: int
) -> list[str]:
    """Execute a query that was saved, and return the ids of its first ``most`` hits.

    A request with ``wait-for`` waits for the index first, as in a search.
    """
    repository, index = caller.repository, context.indexes(caller.repository)
    if wait_for := parameters.read(request).get("wait-for"):
        await wait_for_position(context, index, await caller.position(wait_for))

    def find_ids(cx: Connection, snapshot: Snapshot, principals: Principals) -> list[str]:
        query = msgspec.structs.replace(source.find(cx, principals).query, facets=())
        results.check_offered(query, repository)
        question = SearchQuestion(query, 1, most, bare=True)
        page = results.search(
            *(cx, snapshot, repository, principals, question, context.clock()),
            max(most, context.options.max_page_offset),
            context.options.max_pending_changes,
            context.memory,
            context.options.max_sorted_hits,
            context.options.names.type_prefix,
        )
        return [hit.object_id for hit in page.hits]

    return await caller.search(index, find_ids)


async def _answer(request: Request, context: RepositoryContext, caller: Caller, asked: AskedSearch) -> Response:
    repository = caller.repository
    index = context.indexes(repository)
    if asked.wait_for:
        await wait_for_position(context, index, await caller.position(asked.wait_for))
    here = address(request, context, repository)

    def write_page(cx: Connection, snapshot: Snapshot, principals: Principals) -> tuple[_WrittenPage, str]:
        feed = _page(cx, context, snapshot, repository, principals, asked, here)
        return feed, caller.spell(principals, feed.position)

    for _ in range(_TRIES):
        feed, position = await caller.search(index, write_page)
        headers = {positions.HEADER: position, **words_header(relaxed=feed.relaxed, left_out=feed.left_out)}
        if feed.etag:
            headers |= {"ETag": feed.etag, **spelling.PRIVATE}
            if representations.matches(request, "if-none-match", feed.etag.removeprefix("W/")):
                return Response(status_code=304, headers=headers)
        if (feed.unkept is None and feed.walk is None) or await _keep(context, caller, feed):
            return Response(feed.body, headers={"Content-Type": asked.media_type, **headers})
    raise walks.unknown_link()


async def _keep(context: RepositoryContext, caller: Caller, feed: _WrittenPage) -> bool:
    """Keep what the page's `next` needs. Return False if another request has kept the same walk in the meantime."""
    options, repository = context.options, caller.repository
    quota = kept_searches.SearchQuota(options.kept_queries, options.kept_query_bytes)

    def keep(cx: Connection, principals: Principals) -> bool:
        now = context.clock()
        if feed.unkept is not None:
            kept_searches.keep(cx, repository.id, principals.key, feed.unkept, options.link_seconds, quota, now)
        if feed.walk is None:
            return True
        return kept_searches.keep_walk(cx, repository.id, principals.key, feed.walk, feed.walk_expires, quota, now)

    return await caller.write(keep)


def _page(
    cx: Connection,
    context: RepositoryContext,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    asked: AskedSearch,
    here: str,
) -> _WrittenPage:
    """Find one page, and write its feed as bytes. This runs outside the event loop."""
    named_query = None if asked.kept is None else asked.kept.find(cx, principals)
    question = question_of(
        cx, context, repository, principals, asked, None if named_query is None else named_query.query
    )
    query = question.query
    document = kept_searches.encode(query) if asked.posted else None
    if query.columns and asked.view == View():
        asked = msgspec.structs.replace(asked, view=View(properties=frozenset(query.columns)))
    now, options, memory = context.clock(), context.options, context.memory
    saved_query = query if asked.kept is not None and asked.kept.path else None
    repeated, unkept = asked.repeated, None
    if asked.cursor is not None:
        turned_page = paging.follow(
            *(cx, snapshot, repository, principals, question, asked.cursor, _selection(repeated, saved_query)),
            now,
            options,
            memory,
        )
    else:
        page = paging.by_number(cx, snapshot, repository, principals, question, now, options, memory)
        # For a page that lies past the last hit, nothing is kept.
        if document is not None and (_has_others(page) or any(facet.values for facet in page.facets)):
            link = kept_searches.name(repository.id, principals.key, document)
            repeated = {"link": link, **repeated}
            half_way = now + options.link_seconds * SECOND // 2
            unkept = document if kept_searches.kept_until(cx, link, document) < half_way else None
        if page.relaxed:
            repeated = {**repeated, "words": "any"}
        following = Binding(
            repository.id, principals.key, _selection(repeated, saved_query), page.page + 1, page.items_per_page
        )
        turned_page = paging.begin(cx, page, following, now, options)
    page, others = turned_page.page, _has_others(turned_page.page) or (document is None and asked.page > 1)
    form = EntryForm(asked.media_type, asked.view, asked.links, PageRoom(options))
    inlined = inlined_hits(cx, context, repository, principals, page.hits, here, form) if asked.inline else {}
    service = f"{here}/{(asked.kept and asked.kept.path) or 'search'}"
    cursors = asked.cursor, turned_page.following
    feed = _feed(
        *(page, repeated, service, cursors, here, context, inlined),
        others=others,
        entry_links=asked.links,
        collapsed=asked.collapse,
    )
    if query.facets:
        size = parameters.ITEMS_PER_PAGE.name, page.items_per_page
        counts = facets.in_feed(page.facets, page.facet_hits, asked.facets, repeated, size, service, options.names)
        feed = msgspec.structs.replace(feed, facets=counts)
    etag = ""
    if named_query is not None:
        newest = max((hit.updated for hit in page.hits), default=named_query.modified)
        feed = msgspec.structs.replace(feed, title=named_query.title, updated=max(newest, named_query.modified))
        etag = "" if asked.posted else _etag(feed, asked.media_type)
    body = spelling.feed(asked.media_type, feed, options.names)
    walk, expires = turned_page.unkept, turned_page.expires
    return _WrittenPage(body, page.position, unkept, walk, expires, etag, page.relaxed, page.left_out)


def question_of(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    asked: AskedSearch,
    source_query: Query | None = None,
) -> SearchQuestion:
    """Return what a caller asks of a repository.

    The query is ``source_query``. If that is None, it is the request's own query, or else the posted query that the
    request's ``link`` names. Raises UnknownLink, UnknownProperty, BadQuery.
    """
    options = context.options
    query = source_query or asked.query or _follow_link(cx, context, repository, principals, asked.repeated["link"])
    if asked.fields:
        view = RepositoryView.read(cx, repository, principals)
        query = search_requests.with_fields(cx, view, options, query, asked.fields)
    if definitions := asked.facets.definitions(context.memory.catalogue(cx, repository.id), options.names):
        query = msgspec.structs.replace(query, facets=definitions)
    results.check_offered(query, repository)
    return SearchQuestion(
        *(query, asked.page, asked.items_per_page, asked.include_total),
        asked.facets.narrowings(query, options.names),
        FacetLimits.of(options),
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
    """Return the text to which the cursors of a search are bound.

    For a saved search, the text also depends on the query, because the owner of the search may change the query.
    """
    parameters = {name: text for name, text in repeated.items() if name not in search_requests.SHOWING}
    selecting = urlencode(sorted(parameters.items()))
    return (
        selecting
        if saved_query is None
        else f"{selecting} {hashlib.sha256(kept_searches.encode(saved_query)).hexdigest()}"
    )


def _etag(feed: atom.Feed, media_type: str) -> str:
    """Return the ETag of a feed's content.

    Scores and the addresses of pages are left out: scores change with every document of the repository, and each
    answer has cursors of its own.
    """
    entries = tuple(msgspec.structs.replace(entry, score=None) for entry in feed.entries)
    pages = tuple(msgspec.structs.replace(link, href="") for link in feed.links)
    content = msgspec.json.encode((media_type, msgspec.structs.replace(feed, entries=entries, links=pages)))
    return f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'


def inlined_hits(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    hits: Sequence[Hit],
    here: str,
    form: EntryForm,
) -> dict[str, object]:
    """Return, by object id, the object of each hit in the form in which the hit's entry inlines the object.

    ``cx`` must be the transaction in which the hits were checked, so that the objects agree with the hits. At most
    ``collections.PORTION`` objects are read at one time. Raises UnknownProperty, and Malformed if the page has no
    room for the objects.
    """
    view, names = RepositoryView.read(cx, repository, principals), context.options.names
    for name in form.view.properties or ():
        view.catalogue.property(name)
    inlined: dict[str, object] = {}
    ids = [hit.object_id for hit in hits]
    for begin in range(0, len(ids), collections.PORTION):
        some_ids = ids[begin : begin + collections.PORTION]
        objects_by_id = inventory.rows(cx, repository.id, some_ids)
        for body in collections.object_bodies(cx, view, [objects_by_id[object_id] for object_id in some_ids]):
            kind = kind_of(body.stored.id)
            thing = representations.object_thing(here, body, names, form.media_type, kind, form.view)
            inlined[body.stored.id] = collections.inline(thing, form.media_type, names, form.room, links=form.links)
    return inlined


def entry(hit: Hit, here: str, inlined: object) -> atom.FeedEntry:
    """Make the entry of a hit in the repository whose address is ``here`` (given 2.9)."""
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


def _follow_link(
    cx: Connection, context: RepositoryContext, repository: Repository, principals: Principals, link: str
) -> Query:
    return kept_searches.decode(kept_searches.follow(cx, repository.id, link, principals.key, context.clock()))


def _feed(
    page: HitPage,
    repeated: Mapping[str, str],
    service: str,
    cursors: tuple[str | None, str | None],
    here: str,
    context: RepositoryContext,
    inlined: Mapping[str, object],
    *,
    others: bool,
    entry_links: bool,
    collapsed: bool,
) -> atom.Feed:
    prefix = f"{service}?{urlencode(repeated)}&" if repeated else f"{service}?"

    def link(rel: str, number: int, cursor: str | None = None) -> atom.Link:
        address = f"{prefix}page={number}&items-per-page={page.items_per_page}"
        return atom.Link(rel, f"{address}&cursor={cursor}" if cursor else address)

    own, following = cursors
    links = [link("self", page.page, own)]
    if page.relaxed and ("q" in repeated or "link" in repeated or service != f"{here}/search"):
        place = {"page": 1, "items-per-page": page.items_per_page}
        links.append(all_words_link(context, service, repeated, place))
    if page.has_more:
        links.append(link("next", page.page + 1, following))
    if others:
        total = None if collapsed else page.total
        numbers = collections.other_pages(page.page, page.items_per_page, total, context.options)
        links += [link(rel, number) for rel, number in numbers]
    return atom.Feed(
        id=service,
        title="Search results",
        author="Muniment",
        updated=context.clock(),
        page=page.page,
        items_per_page=page.items_per_page,
        links=tuple(links),
        total=page.total,
        entries=tuple(entry(hit, here, inlined.get(hit.object_id)) for hit in page.hits),
        entry_links=entry_links,
        facets=(),
    )


def all_words_link(
    context: RepositoryContext, service: str, repeated: Mapping[str, str], place: Mapping[str, int]
) -> atom.Link:
    """Return the link from a relaxed search to the same search in which a hit needs all words. ``place`` has the
    parameters of that search's first page."""
    typed = {"typed": "true"} if "q" in repeated else {}
    parameters = urlencode({**repeated, "words": "all", **typed, **place})
    return atom.Link(f"{context.options.names.own_linkrel_base}/all-words", f"{service}?{parameters}")


def words_header(*, relaxed: bool, left_out: int) -> dict[str, str]:
    """Return the headers that say that a search was relaxed, and how many words it left out; none if it was not."""
    if not relaxed:
        return {}
    return {parameters.WORDS_NEEDED.name: "any"} | ({parameters.WORDS_LEFT_OUT.name: str(left_out)} if left_out else {})


async def wait_for_position(context: RepositoryContext, index: Index, target: Position) -> None:
    """Wait until the index has reached the position. Raises IndexBehind after 5 seconds, and IndexUnavailable."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WAIT_SECONDS
    while True:
        if await context.transactions.off_loop(lambda: index.snapshot().position) >= target:
            return
        if loop.time() > deadline:
            raise IndexBehind("The index has not reached the position yet: try again in a moment.")
        await asyncio.sleep(_POLL_SECONDS)
