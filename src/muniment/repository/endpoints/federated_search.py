"""One search of several repositories: each is asked with the caller's rights there, and one feed has the hits of all.

Source: docs/aql.md, "Several repositories"; docs/interface.md, ours 6; docs/decisions/0046.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.clock import SECOND
from muniment.repository import repositories
from muniment.repository.aql.tree import Query
from muniment.repository.endpoints import collections, parameters, representations, search, search_requests, spelling
from muniment.repository.endpoints.context import Caller, RepositoryContext, address, base_address, enter_all
from muniment.repository.endpoints.representations import View
from muniment.repository.endpoints.search import EntryForm
from muniment.repository.index.contract import Snapshot
from muniment.repository.options import RepositoryOptions
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
from muniment.repository.search import atom, federation, kept_searches, results
from muniment.repository.search.kept_searches import SearchQuota
from muniment.repository.search.results import HitPage, SearchQuestion, WordsNeeded
from muniment.web.refusals import Malformed, Refusal

_NO_ANSWER = (BadQuery, IndexBehind, IndexUnavailable, UnknownProperty, UnknownType, WrongValue)
"""Why a repository may not answer a question that others answer: it has no index now, or does not know a name."""

_QUERY = ("q", "object-type", "sort", "locations")
_LISTED = re.compile(r"(?:\\.|[^\\,])+", re.DOTALL)


class _PageRequest(msgspec.Struct, frozen=True):
    """A request, read: which hits of each repository, and how the feed shows them; ``repeated`` are for its links."""

    start: int
    limit: int
    include_total: bool
    inline: bool
    form: EntryForm
    repeated: dict[str, str]
    words: WordsNeeded
    marks: bool


class _CallerPage(msgspec.Struct, frozen=True):
    """What one repository answered; ``here`` is its address, ``inlined`` its objects by id."""

    caller: Caller
    here: str
    page: HitPage
    inlined: Mapping[str, object] = {}


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """GET: keywords in `q` (none: everything the caller may see), or the `link` of a POST feed."""
    names = _names(request)
    opened = await enter_all(request, context, names)
    page_request = _read_request(request, context.options)
    callers = await opened.callers(names)
    link = page_request.repeated.get("link")
    if link is None:
        query = await search_requests.query_of_words(context, page_request.repeated)
        words = search_requests.words_needed(page_request.repeated, search_requests.default_words(context.options))
        page_request = msgspec.structs.replace(page_request, words=words)
    else:
        query = await _linked(context, callers, link)
        if query.repositories and not names:
            names = query.repositories
            callers = await opened.callers(names)
    return await _answer(request, context, callers, page_request, query, names)


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """POST: a query document, whose `repositories` choose which are searched."""
    names = _names(request)
    opened = await enter_all(request, context, names)
    page_request = _read_request(request, context.options)
    query = await search_requests.query_of_body(request, context)
    if names and query.repositories:
        raise Malformed("Repositories are named in the query document or in the parameter 'repositories', not in both.")
    names = tuple(dict.fromkeys(names or query.repositories))
    query = msgspec.structs.replace(query, repositories=names)
    return await _answer(request, context, await opened.callers(names), page_request, query, names, posted=True)


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
    federation.check(query)
    if query.columns and page_request.form.view == View():
        form = msgspec.structs.replace(page_request.form, view=View(properties=frozenset(query.columns)))
        page_request = msgspec.structs.replace(page_request, form=form)
    share = max(1, context.options.max_items_per_page // max(1, len(callers)))
    page_request = msgspec.structs.replace(page_request, limit=min(page_request.limit, share))
    every = msgspec.structs.replace(page_request, words="all") if page_request.words == "auto" else page_request
    caller_pages, silent, closed = await _ask_all(request, context, callers, every, query)
    if page_request.words == "auto" and not page_request.start and results.may_relax(query):
        hits = sum(len(each.page.hits) for each in caller_pages)
        if hits < page_request.limit and not any(each.page.has_more for each in caller_pages):
            any_word = msgspec.structs.replace(page_request, words="any")
            caller_pages, silent, closed = await _ask_all(request, context, callers, any_word, query)
    if closed and names:
        raise repositories.unknown(min(closed)) if caller_pages or silent else closed[min(closed)]
    if not caller_pages and (silent or closed or not callers):
        raise next(iter((*silent.values(), *closed.values())), NotSignedIn("No repository is open any more."))
    reach = context.options.max_page_offset - page_request.limit
    further = page_request.start + page_request.limit <= reach and any(each.page.has_more for each in caller_pages)
    relaxed = _is_relaxed(caller_pages)
    repeated = page_request.repeated | ({"words": "any"} if relaxed else {})
    if posted and caller_pages and (further or page_request.start):
        repeated = {"link": await _keep(context, caller_pages[0].caller, query), **repeated}
        if names:
            repeated["repositories"] = _joined(names)
    base = f"{base_address(request, context)}/search"

    def written() -> bytes:
        feed = _feed(context, caller_pages, page_request, query, base, repeated, further=further, partial=bool(silent))
        return spelling.feed(page_request.form.media_type, feed, context.options.names)

    headers = {"Content-Type": page_request.form.media_type, **search.words_header(relaxed=relaxed)}
    if silent:
        headers[parameters.PARTIAL.name] = ", ".join(quote(name, safe="") for name in silent)
    return Response(await context.transactions.off_loop(written), headers=headers)


async def _ask_all(
    request: Request, context: RepositoryContext, callers: Sequence[Caller], page_request: _PageRequest, query: Query
) -> tuple[list[_CallerPage], dict[str, Refusal], dict[str, Refusal]]:
    """Ask one repository after the other, each in a turn of its own among the searches.

    Return what was found, and by name why others did not answer, and why others are not open any more.
    """
    caller_pages: list[_CallerPage] = []
    silent, closed = dict[str, Refusal](), dict[str, Refusal]()
    for caller in callers:
        repository, here = caller.repository, address(request, context, caller.repository)
        question = federation.of_repository(query, repository.name)
        if question is None:
            continue
        try:
            page, inlined = await caller.search(
                context.indexes(repository), _question(context, caller, page_request, question, here)
            )
            caller_pages.append(_CallerPage(caller, here, page, inlined))
        except (NotSignedIn, UnknownRepository) as refusal:
            closed[repository.name] = refusal
        except _NO_ANSWER as refusal:
            silent[repository.name] = refusal
    return caller_pages, silent, closed


def _question(
    context: RepositoryContext, caller: Caller, page_request: _PageRequest, query: Query, here: str
) -> Callable[[Connection, Snapshot, Principals], tuple[HitPage, Mapping[str, object]]]:
    options, repository = context.options, caller.repository
    question = SearchQuestion(
        query,
        1,
        page_request.limit,
        page_request.include_total,
        start=page_request.start,
        words=page_request.words,
        marks=page_request.marks,
    )

    def answered(cx: Connection, snapshot: Snapshot, principals: Principals) -> tuple[HitPage, Mapping[str, object]]:
        page = results.search(
            *(cx, snapshot, repository, principals, question, context.clock()),
            options.max_page_offset,
            options.max_pending_changes,
            context.memory,
            options.max_sorted_hits,
            options.names.type_prefix,
        )
        if not page_request.inline:
            return page, {}
        return page, search.inlined_hits(cx, context, repository, principals, page.hits, here, page_request.form)

    return answered


async def _keep(context: RepositoryContext, caller: Caller, query: Query) -> str:
    """Keep a posted query for the links of its feed, with the first repository that answered; return its link."""
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


async def _linked(context: RepositoryContext, callers: Sequence[Caller], link: str) -> Query:
    """Find the query of a link, with whichever repository it was kept. Raises UnknownLink."""
    gone = UnknownLink("The search behind this link is gone; send it again.")
    for caller in callers:

        def follow(cx: Connection, principals: Principals, repository_id: int = caller.repository.id) -> bytes:
            return kept_searches.follow(cx, repository_id, link, principals.key, context.clock())

        try:
            return kept_searches.decode(await caller.read(follow))
        except UnknownLink as unknown:
            gone = unknown
    raise gone


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
            for number, hit in federation.merge(query, [each.page.hits for each in caller_pages])
        ),
        entry_links=page_request.form.links,
        facets=(),
        partial=partial,
    )


def _is_relaxed(caller_pages: Sequence[_CallerPage]) -> bool:
    return any(each.page.relaxed for each in caller_pages)


def _names(request: Request) -> tuple[str, ...]:
    """Read the names of repositories with commas between, in the order in which they come, each once."""
    texts = _LISTED.findall(parameters.read(request).get("repositories", ""))
    names = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL).strip() for text in texts)
    return tuple(dict.fromkeys(name for name in names if name))


def _joined(names: Collection[str]) -> str:
    return ",".join(re.sub(r"([\\,])", r"\\\1", name) for name in names)


def _read_request(request: Request, options: RepositoryOptions) -> _PageRequest:
    values = {name: text for name, text in parameters.read(request).items() if text}
    beside = [name for name in _QUERY if name in values]
    if "link" in values and beside:
        raise Malformed(f"The parameter 'link' stands for a whole query: {beside[0]!r} cannot go with it.")
    start, limit = collections.read_stretch(values, options)
    return _PageRequest(
        start=start,
        limit=limit,
        include_total=parameters.truth(values, "include-total", default=False),
        inline=parameters.truth(values, "inline", default=False),
        form=EntryForm(
            search_requests.feed_type(request, options),
            representations.read_view(values, options.names),
            parameters.truth(values, "links", default=True),
        ),
        repeated={name: text for name, text in values.items() if name not in ("start", "limit")},
        words=search_requests.words_needed(values, "all"),
        marks=parameters.truth(values, "marks", default=False),
    )
