"""One search of several repositories: each is asked with the caller's rights there, and one feed has the hits of all.

Source: docs/aql.md, "Several repositories"; docs/interface.md, ours 6; docs/decisions/0063.
"""

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed, Refusal
from muniment.repository.api.context import Caller, RepositoryContext, base_address, enter_all
from muniment.repository.api.endpoints.search import search, search_requests
from muniment.repository.api.endpoints.search.facets import FacetWriter
from muniment.repository.api.endpoints.search.search_requests import AskedSearch
from muniment.repository.api.shapes import collections
from muniment.repository.api.shapes.collections import PageRoom
from muniment.repository.api.shapes.representations import View
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.refusals import (
    BadQuery,
    IndexBehind,
    IndexUnavailable,
    NotSignedIn,
    UnknownLink,
    UnknownProperty,
    UnknownRepository,
    UnknownType,
    WrongValue,
)
from muniment.repository.search.answering import atom, results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering import sorting
from muniment.repository.search.answering.ordering.scrolls import Holder
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.answering.several import facet_sums, federation
from muniment.repository.search.answering.several.federation import SortedHits
from muniment.repository.search.aql.spelling.facets import BoundFacet, FacetBinder
from muniment.repository.search.aql.tree import Query
from muniment.repository.search.aql.values import Kind
from muniment.repository.search.index.contract import FacetCounts
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Place
from muniment.repository.store.permissions.principals import Principals

_NO_ANSWER = (BadQuery, IndexBehind, IndexUnavailable, UnknownProperty, UnknownType, WrongValue)
"""For these reasons, the feed has the hits of the other repositories only."""

_LISTED = re.compile(r"(?:\\.|[^\\,])+", re.DOTALL)


class _CallerPage(msgspec.Struct, frozen=True):
    """What the repository at ``here`` answered.

    ``inlined`` and ``places``, in the order of the query's sorts, go by object id.
    """

    caller: Caller
    here: str
    page: HitPage
    facets: tuple[BoundFacet, ...]
    inlined: Mapping[str, object]
    sort_kinds: tuple[Kind, ...] = ()
    places: Mapping[str, Place] = {}


class _Answers(msgspec.Struct, frozen=True):
    """``silent`` repositories did not answer, ``closed`` ones are no longer open to the caller."""

    pages: list[_CallerPage] = []
    silent: dict[str, Refusal] = {}
    closed: dict[str, Refusal] = {}

    def relaxed(self) -> bool:
        return any(each.page.relaxed for each in self.pages)

    def has_more(self) -> bool:
        return any(each.page.has_more for each in self.pages)


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """Search several repositories by keywords, or turn a page of a posted search."""
    names = _names(request)
    open_repositories = await enter_all(request, context, names)
    asked = _read_request(request, context)
    callers = await open_repositories.callers(names)
    link = asked.repeated.get("link")
    if link is None:
        asked = await search_requests.with_words(context, asked)
        return await _answer(request, context, callers, _of(asked, asked.query or Query(), names))
    query = await _follow_link(context, callers, link)
    if query.repositories and not names:
        names = query.repositories
        callers = await open_repositories.callers(names)
    return await _answer(request, context, callers, _of(asked, query, names))


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """Search several repositories by a query document."""
    names = _names(request)
    open_repositories = await enter_all(request, context, names)
    asked = replace(_read_request(request, context), posted=True)
    query = await search_requests.query_of_body(request, context)
    if names and query.repositories:
        raise Malformed("Repositories are named in the query document or in the parameter 'repositories', not in both.")
    names = tuple(dict.fromkeys(names or query.repositories))
    return await _answer(request, context, await open_repositories.callers(names), _of(asked, query, names))


def _of(asked: AskedSearch, query: Query, names: tuple[str, ...]) -> AskedSearch:
    if query.columns and asked.view == View():
        asked = replace(asked, view=View(properties=frozenset(query.columns)))
    return replace(asked, query=replace(query, repositories=names))


async def _answer(
    request: Request, context: RepositoryContext, callers: Sequence[Caller], asked: AskedSearch
) -> Response:
    share = max(1, context.options.max_items_per_page // max(1, len(callers)))
    limit, query = min(asked.items_per_page, share), asked.query or Query()
    asked = replace(asked, items_per_page=limit)
    every = replace(asked, words="all") if asked.words == "auto" else asked
    answers = await _ask_all(request, context, callers, every)
    may_widen = results.may_widen(SearchQuestion(query, meaning=asked.meaning), context.memory)
    few = not answers.has_more() and sum(len(each.page.hits) for each in answers.pages) < limit
    if asked.words == "auto" and not asked.start and few and may_widen:
        answers = await _ask_all(request, context, callers, replace(asked, words="any"))
    pages, silent, closed = answers.pages, answers.silent, answers.closed
    if closed and query.repositories:
        raise repositories.unknown(min(closed)) if pages or silent else closed[min(closed)]
    if not pages and (silent or closed or not callers):
        raise next(iter((*silent.values(), *closed.values())), NotSignedIn("No repository is open any more."))
    federation.check_kinds(query.sorts, {each.caller.repository.name: each.sort_kinds for each in pages})
    facet_sums.check_kinds({each.caller.repository.name: each.facets for each in pages})
    room = _room(context, callers)
    counts = await context.transactions.off_loop(lambda: _add_up(pages, room))
    further = asked.start + 2 * limit <= context.options.max_page_offset and answers.has_more()
    relaxed, left_out = answers.relaxed(), max((each.page.left_out for each in pages), default=0)
    repeated = asked.repeated | ({"words": "any"} if relaxed else {})
    if asked.posted and pages and (further or asked.start or any(facet.values for facet in counts)):
        repeated = {"link": await _keep(context, pages[0].caller, query), **repeated}
        if query.repositories:
            repeated["repositories"] = _join(query.repositories)
    asked = replace(asked, repeated=repeated)
    base, names = f"{base_address(request, context)}/search", context.names

    def write_feed() -> bytes:
        feed = _feed(context, answers, asked, base, further=further)
        size, facet_hits = (parameters.LIMIT.name, limit), federation.fed([each.page for each in pages])
        writer = FacetWriter(facet_hits, asked.facets, repeated, size, base, names)
        return spelling.feed(asked.media_type, replace(feed, facets=writer.facets(counts)), context.options)

    headers = {"Content-Type": asked.media_type, **search.words_header(relaxed=relaxed, left_out=left_out)}
    if silent:
        headers[parameters.PARTIAL.name] = ", ".join(quote(name, safe="") for name in silent)
    return Response(await context.transactions.off_loop(write_feed), headers=headers)


async def _ask_all(
    request: Request, context: RepositoryContext, callers: Sequence[Caller], asked: AskedSearch
) -> _Answers:
    answers, query, now = _Answers(), asked.query or Query(), context.clock()
    rooms = PageRoom(context.options), _room(context, callers)
    for caller in callers:
        name, here = caller.repository.name, caller.here
        query_there = federation.of_repository(query, name)
        if query_there is None:
            continue
        question = replace(asked, query=query_there)

        def search_one(
            inquiry: Inquiry, caller: Caller = caller, here: str = here, asked: AskedSearch = question
        ) -> _CallerPage:
            return _search_one(replace(inquiry, now=now), caller, asked, here, rooms)

        try:
            answers.pages.append(await caller.search(search_one))
        except (NotSignedIn, UnknownRepository) as refusal:
            answers.closed[name] = refusal
        except _NO_ANSWER as refusal:
            answers.silent[name] = refusal
    if asked.fields and not answers.pages and any(isinstance(why, WrongValue) for why in answers.silent.values()):
        # What looks like a field can be read in no repository: it is words.
        return await _ask_all(request, context, callers, replace(asked, fields=""))
    return answers


def _search_one(
    inquiry: Inquiry, caller: Caller, asked: AskedSearch, here: str, rooms: tuple[PageRoom, int]
) -> _CallerPage:
    """Leave the repository out if it lacks a type or folder, as a query document does. ``rooms`` are for objects, and
    for values of facets.
    """
    objects_room, facets_room = rooms
    question, catalogue = search.question_of(inquiry, asked, sure=True), inquiry.view().catalogue
    definitions = question.query.facets
    shown_facets = FacetBinder(catalogue, inquiry.now, question.facet_limits).bind(definitions)
    told = facet_sums.questions(definitions, shown_facets, facets_room)
    inquiry = inquiry.asking(question).changed(
        query=replace(question.query, facets=told),
        include_total=asked.include_total or (bool(told) and question.query.facet_hits is not None),
        facet_limits=replace(question.facet_limits, values=sys.maxsize),
    )
    page = results.search(inquiry)
    inlined = search.inlined_hits(inquiry, asked, page.hits, here, objects_room)
    caller_page = _CallerPage(caller, here, page, shown_facets, inlined)
    if not question.query.sorts:
        return caller_page
    return replace(
        caller_page,
        sort_kinds=tuple(catalogue.property(sort.name).kind for sort in question.query.sorts),
        places=sorting.places(inquiry, [hit.object_id for hit in page.hits]),
    )


def _room(context: RepositoryContext, callers: Sequence[Caller]) -> int:
    return facet_sums.room(context.options.max_facet_values, len(callers))


def _add_up(caller_pages: Sequence[_CallerPage], room: int) -> tuple[FacetCounts, ...]:
    if not caller_pages:
        return ()
    return facet_sums.add_up(caller_pages[0].facets, room, [each.page.facets for each in caller_pages])


async def _keep(context: RepositoryContext, caller: Caller, query: Query) -> str:
    document, options, now = kept_searches.encode(query), context.options, context.clock()

    def is_kept(cx: Connection, principals: Principals) -> tuple[str, bool]:
        link = kept_searches.name(Holder(caller.repository.id, principals.key), document)
        return link, kept_searches.is_lasting(cx, link, document, options, now)

    def keep(cx: Connection, principals: Principals) -> str:
        return kept_searches.keep_search(cx, Holder(caller.repository.id, principals.key), document, options, now)

    link, holds_long_enough = await caller.read(is_kept)
    return link if holds_long_enough else await caller.write(keep)


async def _follow_link(context: RepositoryContext, callers: Sequence[Caller], link: str) -> Query:
    refusal = UnknownLink("The search behind this link is gone; send it again.")
    for caller in callers:

        def follow(cx: Connection, principals: Principals, repository_id: int = caller.repository.id) -> bytes:
            return kept_searches.follow(cx, Holder(repository_id, principals.key), link, context.clock())

        try:
            return kept_searches.decode(await caller.read(follow))
        except UnknownLink as unknown:
            refusal = unknown
    raise refusal


def _feed(context: RepositoryContext, answers: _Answers, asked: AskedSearch, base: str, *, further: bool) -> atom.Feed:
    start, limit, pages, repeated = asked.start, asked.items_per_page, answers.pages, asked.repeated

    def link(rel: str, start: int) -> atom.Link:
        stretch = {**repeated, "start": str(start), "limit": str(limit)}
        return atom.Link(rel, f"{base}?{urlencode(stretch)}")

    links = [link("self", start)]
    if answers.relaxed() and ("q" in repeated or "link" in repeated):
        links.append(search.all_words_link(context.options, base, repeated, {"start": 0, "limit": limit}))
    if further:
        links.append(link("next", start + limit))
    if start:
        links.append(link("previous", max(0, start - limit)))
    if further or start:
        links.append(link("first", 0))
    hits = federation.merge(asked.query or Query(), [SortedHits(each.page.hits, each.places) for each in pages])
    return atom.Feed(
        id=base,
        title="Search results",
        author="Muniment",
        updated=context.clock(),
        page=start // limit + 1,
        items_per_page=limit,
        links=tuple(links),
        total=sum(each.page.total or 0 for each in pages) if asked.include_total else None,
        entries=tuple(
            search.entry(hit, pages[number].here, pages[number].inlined.get(hit.object_id)) for number, hit in hits
        ),
        entry_links=asked.links,
        facets=(),
        partial=bool(answers.silent),
    )


def _names(request: Request) -> tuple[str, ...]:
    """Keep the order, each name once."""
    texts = _LISTED.findall(parameters.read(request).get("repositories", ""))
    names = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).strip() for text in texts)
    return tuple(dict.fromkeys(name for name in names if name))


def _join(names: Collection[str]) -> str:
    return ",".join(re.sub(r"([\\,])", r"\\\1", name) for name in names)


def _read_request(request: Request, context: RepositoryContext) -> AskedSearch:
    options = context.options
    values = {name: text for name, text in parameters.read(request).items() if text}
    asked = search_requests.read_parameters(request, values, options, search_requests.FINDING)
    start, limit = collections.read_stretch(values, options)
    repeated = {name: text for name, text in values.items() if name not in ("start", "limit")}
    return replace(asked, page=1, items_per_page=limit, start=start, repeated=repeated)
