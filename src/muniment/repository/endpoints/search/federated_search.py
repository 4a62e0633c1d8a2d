"""One search of several repositories: each is asked with the caller's rights there, and one feed has the hits of all.

Source: docs/aql.md, "Several repositories"; docs/interface.md, ours 6; docs/decisions/0063.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.clock import SECOND, Instant
from muniment.repository import repositories
from muniment.repository.aql.facets import BoundFacet, FacetBinder, FacetLimits
from muniment.repository.aql.tree import Query
from muniment.repository.aql.values import Kind
from muniment.repository.cursors import Place
from muniment.repository.endpoints import collections, parameters, representations, spelling
from muniment.repository.endpoints.context import Caller, RepositoryContext, address, base_address, enter_all
from muniment.repository.endpoints.representations import View
from muniment.repository.endpoints.search import facets, search, search_requests
from muniment.repository.endpoints.search.facets import AskedFacets
from muniment.repository.endpoints.search.search import EntryForm
from muniment.repository.index.contract import FacetCounts, Snapshot
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions.principals import Principals
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
from muniment.repository.search import atom, facet_sums, federation, kept_searches, results, sorting
from muniment.repository.search.federation import SortedHits
from muniment.repository.search.kept_searches import SearchQuota
from muniment.repository.search.results import HitPage, SearchQuestion, WordsNeeded
from muniment.web.refusals import Malformed, Refusal

_NO_ANSWER = (BadQuery, IndexBehind, IndexUnavailable, UnknownProperty, UnknownType, WrongValue)
"""If a repository refuses the question for one of these reasons, the feed has the hits of the other repositories.

For example, the repository has no index now, or does not know a name of the query.
"""

_QUERY = ("q", "object-type", "sort", "locations", "facet", "timezone", "facet-value-constraints")
_LISTED = re.compile(r"(?:\\.|[^\\,])+", re.DOTALL)


class _PageRequest(msgspec.Struct, frozen=True):
    """What a request asks: which hits of each repository, and how the feed shows them. ``repeated`` are the parameters
    that the feed's links repeat. ``typed`` and ``fields`` are as in ``AskedSearch``."""

    start: int
    limit: int
    include_total: bool
    inline: bool
    form: EntryForm
    repeated: dict[str, str]
    words: WordsNeeded
    meaning: bool | None
    marks: bool
    facets: AskedFacets
    now: Instant
    typed: bool
    fields: str = ""


class _CallerPage(msgspec.Struct, frozen=True):
    """What one repository answered. ``here`` is its address; ``inlined`` has, by object id, the objects to inline.

    ``facets`` are the facets to show, bound to the repository's types. ``sort_kinds`` are the kinds of the sort
    properties. ``places`` has each hit's place in the order of the query's sorts, by the id of the hit.
    """

    caller: Caller
    here: str
    page: HitPage
    facets: tuple[BoundFacet, ...] = ()
    sort_kinds: tuple[Kind, ...] = ()
    places: Mapping[str, Place] = {}
    inlined: Mapping[str, object] = {}


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """Search several repositories by keywords, or turn a page of a posted search.

    Without either, hits need no words: only the other parameters narrow the search.
    """
    names = _names(request)
    open_repositories = await enter_all(request, context, names)
    page_request = _read_request(request, context)
    callers = await open_repositories.callers(names)
    link = page_request.repeated.get("link")
    if link is None:
        values = page_request.repeated
        words = search_requests.words_needed(values, search_requests.default_words(context.options))
        typed = search_requests.typed_wanted(values, words)
        query = await search_requests.query_of_words(context, values, typed=typed)
        fields = search_requests.fields_of(values, typed=typed)
        page_request = msgspec.structs.replace(page_request, words=words, typed=typed, fields=fields)
    else:
        query = await _follow_link(context, callers, link)
        if query.repositories and not names:
            names = query.repositories
            callers = await open_repositories.callers(names)
    return await _answer(request, context, callers, page_request, query, names)


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """Search several repositories by a query document.

    The document or the parameter `repositories` can name the repositories to search.
    """
    names = _names(request)
    open_repositories = await enter_all(request, context, names)
    page_request = _read_request(request, context)
    query = await search_requests.query_of_body(request, context)
    if names and query.repositories:
        raise Malformed("Repositories are named in the query document or in the parameter 'repositories', not in both.")
    names = tuple(dict.fromkeys(names or query.repositories))
    query = msgspec.structs.replace(query, repositories=names)
    return await _answer(
        request, context, await open_repositories.callers(names), page_request, query, names, posted=True
    )


async def _answer(
    request: Request,
    context: RepositoryContext,
    callers: Sequence[Caller],
    page_request: _PageRequest,
    query: Query,
    names: Collection[str],
    *,
    posted: bool = False,
) -> Response:
    if query.columns and page_request.form.view == View():
        form = msgspec.structs.replace(page_request.form, view=View(properties=frozenset(query.columns)))
        page_request = msgspec.structs.replace(page_request, form=form)
    share = max(1, context.options.max_items_per_page // max(1, len(callers)))
    page_request = msgspec.structs.replace(page_request, limit=min(page_request.limit, share))
    every = msgspec.structs.replace(page_request, words="all") if page_request.words == "auto" else page_request
    caller_pages, silent, closed_refusals = await _ask_all(request, context, callers, every, query)
    may_widen = results.may_widen(query, page_request.meaning, context.memory)
    if page_request.words == "auto" and not page_request.start and may_widen:
        hits = sum(len(each.page.hits) for each in caller_pages)
        if hits < page_request.limit and not any(each.page.has_more for each in caller_pages):
            form = msgspec.structs.replace(page_request.form, room=collections.PageRoom(context.options))
            any_word = msgspec.structs.replace(page_request, words="any", form=form)
            caller_pages, silent, closed_refusals = await _ask_all(request, context, callers, any_word, query)
    if closed_refusals and names:
        raise (
            repositories.unknown(min(closed_refusals))
            if caller_pages or silent
            else closed_refusals[min(closed_refusals)]
        )
    if not caller_pages and (silent or closed_refusals or not callers):
        raise next(iter((*silent.values(), *closed_refusals.values())), NotSignedIn("No repository is open any more."))
    by_name = {each.caller.repository.name: each for each in caller_pages}
    federation.check_kinds(query.sorts, {name: each.sort_kinds for name, each in by_name.items()})
    facet_sums.check_kinds({name: each.facets for name, each in by_name.items()})
    room = _room(context, callers)
    counts = await context.transactions.off_loop(lambda: _add_up(caller_pages, room))
    reach = context.options.max_page_offset - page_request.limit
    further = page_request.start + page_request.limit <= reach and any(each.page.has_more for each in caller_pages)
    relaxed = _is_relaxed(caller_pages)
    left_out = max((each.page.left_out for each in caller_pages), default=0)
    repeated = page_request.repeated | ({"words": "any"} if relaxed else {})
    if posted and caller_pages and (further or page_request.start or any(facet.values for facet in counts)):
        repeated = {"link": await _keep(context, caller_pages[0].caller, query), **repeated}
        if names:
            repeated["repositories"] = _join(names)
    base = f"{base_address(request, context)}/search"

    def write_feed() -> bytes:
        feed = _feed(context, caller_pages, page_request, query, base, repeated, further=further, partial=bool(silent))
        size = parameters.LIMIT.name, page_request.limit
        facet_hits = federation.fed([each.page for each in caller_pages])
        written_facets = facets.in_feed(
            counts, facet_hits, page_request.facets, repeated, size, base, context.options.names
        )
        feed = msgspec.structs.replace(feed, facets=written_facets)
        return spelling.feed(page_request.form.media_type, feed, context.options.names)

    headers = {"Content-Type": page_request.form.media_type, **search.words_header(relaxed=relaxed, left_out=left_out)}
    if silent:
        headers[parameters.PARTIAL.name] = ", ".join(quote(name, safe="") for name in silent)
    return Response(await context.transactions.off_loop(write_feed), headers=headers)


async def _ask_all(
    request: Request, context: RepositoryContext, callers: Sequence[Caller], page_request: _PageRequest, query: Query
) -> tuple[list[_CallerPage], dict[str, Refusal], dict[str, Refusal]]:
    """Ask one repository after the other. Each of these searches waits for its turn among the searches of the process.

    Return the pages that were found. Also return, by repository name, the refusals of repositories that did not answer,
    and those of repositories that are no longer open to the caller.
    """
    caller_pages: list[_CallerPage] = []
    silent, closed_refusals = dict[str, Refusal](), dict[str, Refusal]()
    for caller in callers:
        repository, here = caller.repository, address(request, context, caller.repository)
        question = federation.of_repository(query, repository.name)
        if question is None:
            continue
        try:
            search_one = _question(context, caller, page_request, question, here, _room(context, callers))
            caller_pages.append(await caller.search(context.indexes(repository), search_one))
        except (NotSignedIn, UnknownRepository) as refusal:
            closed_refusals[repository.name] = refusal
        except _NO_ANSWER as refusal:
            silent[repository.name] = refusal
    if page_request.fields and not caller_pages and any(isinstance(why, WrongValue) for why in silent.values()):
        # What looks like a field can be read in no repository: it is words.
        as_words = msgspec.structs.replace(page_request, fields="")
        return await _ask_all(request, context, callers, as_words, query)
    return caller_pages, silent, closed_refusals


def _question(
    context: RepositoryContext, caller: Caller, page_request: _PageRequest, query: Query, here: str, room: int
) -> Callable[[Connection, Snapshot, Principals], _CallerPage]:
    options, repository = context.options, caller.repository
    names = options.names

    def search_one(cx: Connection, snapshot: Snapshot, principals: Principals) -> _CallerPage:
        catalogue = context.memory.catalogue(cx, repository.id)
        definitions = page_request.facets.definitions(catalogue, names) or query.facets
        shown = msgspec.structs.replace(query, facets=definitions)
        if page_request.fields:
            view = RepositoryView.read(cx, repository, principals)
            # A type or folder that this repository does not have leaves it out, as in a query document.
            shown = search_requests.with_fields(cx, view, options, shown, page_request.fields, sure=True)
        limits = FacetLimits.of(options)
        shown_facets = FacetBinder(catalogue, page_request.now, limits).bind(definitions)
        told = facet_sums.questions(definitions, shown_facets, room)
        question = SearchQuestion(
            msgspec.structs.replace(shown, facets=told),
            1,
            page_request.limit,
            page_request.include_total or (bool(told) and query.facet_hits is not None),
            page_request.facets.narrowings(shown, names),
            msgspec.structs.replace(limits, values=sys.maxsize),
            start=page_request.start,
            words=page_request.words,
            meaning=page_request.meaning,
            marks=page_request.marks,
            locale=search_requests.locale(page_request.repeated),
            typed=page_request.typed,
        )
        page = results.search(
            *(cx, snapshot, repository, principals, question, page_request.now),
            options.max_page_offset,
            options.max_pending_changes,
            context.memory,
            options.max_sorted_hits,
            names.type_prefix,
        )
        caller_page = _CallerPage(caller, here, page, shown_facets)
        if query.sorts:
            view, hit_ids = RepositoryView.read(cx, repository, principals), [hit.object_id for hit in page.hits]
            caller_page = msgspec.structs.replace(
                caller_page,
                sort_kinds=tuple(catalogue.property(sort.name).kind for sort in query.sorts),
                places=sorting.places(cx, view, query.sorts, hit_ids, names.type_prefix),
            )
        if not page_request.inline:
            return caller_page
        inlined_objects = search.inlined_hits(cx, context, repository, principals, page.hits, here, page_request.form)
        return msgspec.structs.replace(caller_page, inlined=inlined_objects)

    return search_one


def _room(context: RepositoryContext, callers: Sequence[Caller]) -> int:
    return facet_sums.room(context.options.max_facet_values, len(callers))


def _add_up(caller_pages: Sequence[_CallerPage], room: int) -> tuple[FacetCounts, ...]:
    if not caller_pages:
        return ()
    return facet_sums.add_up(caller_pages[0].facets, room, [each.page.facets for each in caller_pages])


async def _keep(context: RepositoryContext, caller: Caller, query: Query) -> str:
    """Keep a posted query in this caller's repository, so that links of the feed can name the query. Return the link
    that stands for the query."""
    document, options = kept_searches.encode(query), context.options
    repository_id, now = caller.repository.id, context.clock()
    half_way = now + options.link_seconds * SECOND // 2

    def is_kept(cx: Connection, principals: Principals) -> tuple[str, bool]:
        link = kept_searches.name(repository_id, principals.key, document)
        return link, kept_searches.kept_until(cx, link, document) >= half_way

    def keep(cx: Connection, principals: Principals) -> str:
        quota = SearchQuota(options.kept_queries, options.kept_query_bytes)
        return kept_searches.keep(cx, repository_id, principals.key, document, options.link_seconds, quota, now)

    link, holds_long_enough = await caller.read(is_kept)
    return link if holds_long_enough else await caller.write(keep)


async def _follow_link(context: RepositoryContext, callers: Sequence[Caller], link: str) -> Query:
    """Find the query of a link, whichever of the repositories keeps it. Raises UnknownLink."""
    refusal = UnknownLink("The search behind this link is gone; send it again.")
    for caller in callers:

        def follow(cx: Connection, principals: Principals, repository_id: int = caller.repository.id) -> bytes:
            return kept_searches.follow(cx, repository_id, link, principals.key, context.clock())

        try:
            return kept_searches.decode(await caller.read(follow))
        except UnknownLink as unknown:
            refusal = unknown
    raise refusal


def _feed(
    context: RepositoryContext,
    caller_pages: Sequence[_CallerPage],
    page_request: _PageRequest,
    query: Query,
    base: str,
    repeated: Mapping[str, str],
    *,
    further: bool,
    partial: bool,
) -> atom.Feed:
    def link(rel: str, start: int) -> atom.Link:
        stretch = {**repeated, "start": str(start), "limit": str(page_request.limit)}
        return atom.Link(rel, f"{base}?{urlencode(stretch)}")

    links = [link("self", page_request.start)]
    if _is_relaxed(caller_pages) and ("q" in repeated or "link" in repeated):
        links.append(search.all_words_link(context, base, repeated, {"start": 0, "limit": page_request.limit}))
    if further:
        links.append(link("next", page_request.start + page_request.limit))
    if page_request.start:
        links.append(link("previous", max(0, page_request.start - page_request.limit)))
    if further or page_request.start:
        links.append(link("first", 0))
    return atom.Feed(
        id=base,
        title="Search results",
        author="Muniment",
        updated=context.clock(),
        page=page_request.start // page_request.limit + 1,
        items_per_page=page_request.limit,
        links=tuple(links),
        total=sum(each.page.total or 0 for each in caller_pages) if page_request.include_total else None,
        entries=tuple(
            search.entry(hit, caller_pages[number].here, caller_pages[number].inlined.get(hit.object_id))
            for number, hit in federation.merge(
                query, [SortedHits(each.page.hits, each.places) for each in caller_pages]
            )
        ),
        entry_links=page_request.form.links,
        facets=(),
        partial=partial,
    )


def _is_relaxed(caller_pages: Sequence[_CallerPage]) -> bool:
    return any(each.page.relaxed for each in caller_pages)


def _names(request: Request) -> tuple[str, ...]:
    """Read the repositories that the request names, from a list with commas. The order stays; no name comes twice."""
    texts = _LISTED.findall(parameters.read(request).get("repositories", ""))
    names = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).strip() for text in texts)
    return tuple(dict.fromkeys(name for name in names if name))


def _join(names: Collection[str]) -> str:
    return ",".join(re.sub(r"([\\,])", r"\\\1", name) for name in names)


def _read_request(request: Request, context: RepositoryContext) -> _PageRequest:
    options = context.options
    values = {name: text for name, text in parameters.read(request).items() if text}
    query_names = [name for name in _QUERY if name in values]
    if "link" in values and query_names:
        raise Malformed(f"The parameter 'link' stands for a whole query: {query_names[0]!r} cannot go with it.")
    start, limit = collections.read_stretch(values, options)
    words = search_requests.words_needed(values, "all")
    return _PageRequest(
        start=start,
        limit=limit,
        include_total=parameters.truth(values, "include-total", default=False),
        inline=parameters.truth(values, "inline", default=False),
        form=EntryForm(
            search_requests.feed_type(request, options),
            representations.read_view(values, options.names),
            parameters.truth(values, "links", default=True),
            collections.PageRoom(options),
        ),
        repeated={name: text for name, text in values.items() if name not in ("start", "limit")},
        words=words,
        typed=search_requests.typed_wanted(values, words),
        meaning=search_requests.meaning_wanted(values, context.options),
        marks=parameters.truth(values, "marks", default=False),
        facets=facets.read_request(values, options),
        now=context.clock(),
    )
