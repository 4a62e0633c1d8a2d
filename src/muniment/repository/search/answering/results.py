"""A page of a search: hits of the index that the database confirms.

It obeys every change that was committed before the read began, however far the agent is behind.

Source: given 2.9; docs/decisions/0004.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import msgspec
import structlog
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import BadQuery, WrongValue
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.ordering import sorting
from muniment.repository.search.answering.scope import locations, visibility
from muniment.repository.search.aql import bind, conditions
from muniment.repository.search.aql.conditions import BoundQuery, Condition, ConditionSet
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.spelling import facets
from muniment.repository.search.aql.spelling.facets import BoundFacet, FacetBinder
from muniment.repository.search.aql.tree import Fulltext, Keywords, Query
from muniment.repository.search.index.contract import Answer, FacetCounts, IndexHit, Near, Search
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import ObjectSummary
from muniment.repository.store.permissions import acls
from muniment.repository.store.repositories import Repository

log = structlog.get_logger("muniment.repository.search.results")


class Hit(msgspec.Struct, frozen=True):
    """A hit with properties as the database has them now.

    If asked for, ``marks`` have the index of the first character and the one after the last, and ``copies`` counts hits
    with the same content that were left out.
    """

    object_id: str
    title: str
    owner: str
    summary: str
    updated: Instant
    score: float
    terms: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] | None = None
    copies: int | None = None


class HitPage(msgspec.Struct, frozen=True):
    """A page as of ``position`` in the change log.

    The facets count ``facet_hits``, or all. ``counters`` is empty on a page of a walk. ``left_out`` words were too many
    for a relaxed search.
    """

    hits: tuple[Hit, ...]
    page: int
    items_per_page: int
    total: int | None
    has_more: bool
    position: Position
    facets: tuple[FacetCounts, ...] = ()
    facet_hits: int | None = None
    counters: tuple[int, ...] = ()
    relaxed: bool = False
    left_out: int = 0


def search(inquiry: Inquiry) -> HitPage:
    """Refuse a snapshot that has missed more than ``max_pending_changes`` that a search must not overlook.

    Raises BadQuery, BadSort, UnknownType, UnknownProperty, WrongValue, IndexBehind, IndexUnavailable.
    """
    question, snapshot, deepest = inquiry.question, inquiry.snapshot, inquiry.options.max_page_offset
    offset = question.start + (question.page - 1) * question.items_per_page
    if offset + question.items_per_page > deepest:
        raise BadQuery(f"Page {question.page} lies past hit {deepest}, the deepest that paging reaches.")
    if question.words == "auto":
        return relaxed_if_few(inquiry, search)
    index_search = msgspec.structs.replace(
        prepare(inquiry), offset=offset, limit=question.items_per_page, few_bare=question.full_or_none
    )
    answer = sorting.sorted_answer(inquiry, index_search) if question.query.sorts else snapshot.search(index_search)
    if answer is None:
        one_more = msgspec.structs.replace(index_search, limit=question.items_per_page + 1)
        counters = sorting.counters(inquiry, one_more)
        on_page = tuple(counters[: question.items_per_page])
        page = show(inquiry, on_page, index_search, index_search)
        return msgspec.structs.replace(page, has_more=len(counters) > len(on_page), counters=on_page)
    ids = [hit.object_id for hit in answer.hits]
    summaries = inventory.summaries(inquiry.cx, inquiry.repository.id, ids) if ids else {}
    hits = [
        (hit, summary)
        for hit in answer.hits
        if (summary := summaries.get(hit.object_id)) is not None and _may_browse(inquiry, index_search, summary)
    ]
    refused_count = len(answer.hits) - len(hits)
    if refused_count:
        log.error("hits without permission", repository=inquiry.repository.name, hits=refused_count)
        total = None if answer.total is None else answer.total - refused_count
        answer = msgspec.structs.replace(answer, total=total)
    page = _page(inquiry, index_search, hits, answer)
    counters = tuple([summaries[hit.object_id].seq for hit in page.hits])
    return msgspec.structs.replace(page, has_more=answer.more, counters=counters)


def _page(
    inquiry: Inquiry, index_search: Search, hits: Iterable[tuple[IndexHit, ObjectSummary]], answer: Answer
) -> HitPage:
    question = inquiry.question
    any_word = question.words == "any"
    return HitPage(
        hits=tuple([_to_hit(hit, summary) for hit, summary in hits]),
        page=question.page,
        items_per_page=question.items_per_page,
        total=answer.total,
        has_more=False,
        position=inquiry.snapshot.position,
        facets=answer.facets,
        facet_hits=answer.facet_hits,
        # Objects that lack words are found by any of the words, or because they are near in meaning.
        relaxed=any_word and (_is_relaxed(index_search) or index_search.near.added > 0),
        left_out=relaxation.left_out(question.query) if any_word else 0,
    )


def _is_relaxed(search: Search) -> bool:
    each = conditions.singles(search.query.condition)
    return any(isinstance(one, Fulltext) and relaxation.is_relaxed(one.keywords) for one in each)


def relaxed_if_few(inquiry: Inquiry, answer: Callable[[Inquiry], HitPage]) -> HitPage:
    """Answer with the hits for all words, or, if they do not fill a page and ``may_widen`` allows it, for any.

    ``answer`` gets ``all`` for ``words``, then ``any``.
    """
    question, is_first = inquiry.question, inquiry.question.page == 1
    # Then any word finds more, too, if nothing has all of them.
    widens = may_widen(question, inquiry.memory, words_held=True)
    strict = inquiry.changed(words="all", full_or_none=widens and is_first)
    page = answer(strict)
    if page.has_more or not (widens or may_widen(question, inquiry.memory)):
        return page
    first = page if is_first else answer(strict.changed(page=1, bare=True))
    if first.has_more or len(first.hits) >= question.items_per_page:
        return page
    words_held = bool(first.hits) and question.meaning is not True and relaxation.proves_each_word(question.query)
    if words_held and not widens:
        return page
    return answer(inquiry.changed(words="any", words_held=words_held))


def may_widen(question: SearchQuestion, memory: SearchCache, *, words_held: bool = False) -> bool:
    """Return whether any word, or the meaning, can find more; with sorts, nothing can."""
    if question.query.sorts:
        return False
    by_meaning = memory.meaning is not None and question.meaning is not False
    return relaxation.relax(question.query, lambda _keywords: words_held) is not None or (
        by_meaning and relaxation.question(question.query) is not None
    )


def standing(inquiry: Inquiry) -> tuple[Search, Sequence[int]]:
    """Return the search, and the first counters, whatever the page: as many as a walk may have (``walk_hits``), and one
    more.

    Raises what ``search`` raises.
    """
    search = prepare(inquiry)
    index_search = msgspec.structs.replace(search, limit=inquiry.options.walk_hits + 1)
    if inquiry.question.query.sorts:
        return search, sorting.counters(inquiry, index_search)
    return search, inquiry.snapshot.counters(index_search, "relevance")


def page_of_counters(inquiry: Inquiry, counters: Sequence[int]) -> HitPage:
    """Return a page of these objects in this order, without what is no hit any more.

    Total and facets are the query's at present, and left out if a location is gone. Locations are not checked again.

    Raises what ``search`` raises.
    """
    return show(inquiry, counters, *searches_of_counters(inquiry))


def searches_of_counters(inquiry: Inquiry) -> tuple[Search, Search]:
    """Prepare two searches for hits found before: one without locations, already checked, for the objects, one for
    total and facets.
    """
    query = inquiry.question.query
    anywhere = msgspec.structs.replace(query, locations=())
    index_search = prepare(inquiry.changed(query=anywhere, include_total=False))
    try:
        return index_search, prepare(inquiry)
    except WrongValue:
        if not query.locations:
            raise
        return index_search, msgspec.structs.replace(index_search, facets=())


def show(inquiry: Inquiry, counters: Sequence[int], index_search: Search, count_search: Search) -> HitPage:
    """``count_search`` gives the total and the facets."""
    snapshot = inquiry.snapshot
    summaries = inventory.summaries_by_counter(inquiry.cx, inquiry.repository.id, counters) if counters else {}
    browsable = [
        summary
        for counter in counters
        if (summary := summaries.get(counter)) is not None and _may_browse(inquiry, index_search, summary)
    ]
    among = frozenset(summary.id for summary in browsable)
    # These objects have been hits. What has come nearer to the question since then does not change that.
    near = msgspec.structs.replace(index_search.near, added=len(index_search.near.embeddings))
    search_among = msgspec.structs.replace(
        index_search, offset=0, limit=len(among), total=False, facets=(), facet_hits=None, among=among, near=near
    )
    index_hits = {hit.object_id: hit for hit in snapshot.search(search_among).hits} if among else {}
    answer = Answer(())
    if count_search.total or count_search.facets:
        answer = snapshot.search(msgspec.structs.replace(count_search, offset=0, limit=0))
    hits = [(index_hits[summary.id], summary) for summary in browsable if summary.id in index_hits]
    return _page(inquiry, index_search, hits, answer)


def prepare(inquiry: Inquiry) -> Search:
    """Prepare a search whose limit, 0, is to be replaced.

    Raises BadQuery, UnknownType, UnknownProperty, WrongValue, IndexBehind, IndexUnavailable.
    """
    question = inquiry.question
    if question.typed and not question.query.sorts:
        inquiry = inquiry.changed(query=relaxation.with_sequence(question.query))
        question = inquiry.question
    holds = cache(lambda keywords: question.words_held or _is_held(inquiry, keywords))
    relaxed_query = relaxation.relax(question.query, holds) if question.words == "any" else None
    bound_facets, query = _with_facets(inquiry, _bound(inquiry, relaxed_query or question.query))
    query = msgspec.structs.replace(query, locale=question.locale)
    names = facets.property_names(bound_facets)
    search = Search(
        query,
        visibility.visible(inquiry, query, names),
        offset=0,
        limit=0,
        total=question.include_total,
        facets=bound_facets,
        facet_hits=question.query.facet_hits,
        bare=question.bare,
        marks=question.marks,
    )
    near = _near(inquiry, search, holds)
    return search if near is None else msgspec.structs.replace(search, near=near)


def _is_held(inquiry: Inquiry, keywords: Keywords) -> bool:
    asked = Query(condition=Fulltext(keywords), all_versions=inquiry.question.query.all_versions)
    query = msgspec.structs.replace(_bound(inquiry, asked), locale=inquiry.question.locale)
    search = Search(query, visibility.visible(inquiry, query), offset=0, limit=0)
    return inquiry.snapshot.search(search).more


def _near(inquiry: Inquiry, search: Search, holds: relaxation.Holds) -> Near | None:
    question, meaning = inquiry.question, inquiry.memory.meaning
    wanted = question.meaning or (question.meaning is None and question.words == "any")
    if meaning is None or not wanted or question.query.sorts:
        return None
    asked = relaxation.question(question.query, holds)
    if asked is None:
        return None
    _, query = _with_facets(inquiry, _bound(inquiry, asked.anything))
    readable = msgspec.structs.replace(search.visible, browse_acls=search.visible.read_acls, browse=search.visible.read)
    return meaning.near(inquiry.cx, inquiry.snapshot, search, Search(query, readable, offset=0, limit=0), asked.text)


def _with_facets(inquiry: Inquiry, query: BoundQuery) -> tuple[tuple[BoundFacet, ...], BoundQuery]:
    bound_facets, condition = narrowing(inquiry)
    return bound_facets, query if condition is None else _both(query, condition)


def narrowing(inquiry: Inquiry) -> tuple[tuple[BoundFacet, ...], Condition | None]:
    question = inquiry.question
    if not question.query.facets and not question.narrowings:
        return (), None
    binder = FacetBinder(inquiry.view().catalogue, inquiry.now, question.facet_limits)
    bound_facets = binder.bind(question.query.facets)
    return bound_facets, facets.narrowing_condition(bound_facets, question.narrowings)


def check_offered(query: Query, repository: Repository) -> None:
    if strangers := set(query.repositories) - {repository.name}:
        raise BadQuery(f"This address searches {repository.name!r} alone, not the repository {min(strangers)[:100]!r}.")


def _bound(inquiry: Inquiry, query: Query) -> BoundQuery:
    return bind_query(inquiry.cx, inquiry.view(), query, inquiry.now, inquiry.memory)


def bind_query(cx: Connection, view: RepositoryView, query: Query, now: Instant, memory: SearchCache) -> BoundQuery:
    """Raises BadQuery, UnknownType, UnknownProperty, WrongValue."""
    texts = bind.acl_texts(query.condition)
    acl_ids = acls.look_up(cx, view.repository.id, texts, view.principals) if texts else {}
    bound_query = memory.bind(cx, view.repository.id, query, acl_ids, now)
    location_condition = locations.condition(cx, view, query.locations) if query.locations else None
    return bound_query if location_condition is None else _both(bound_query, location_condition)


def _both(query: BoundQuery, condition: Condition) -> BoundQuery:
    both = condition if query.condition is None else ConditionSet("AND", (query.condition, condition))
    return msgspec.structs.replace(query, condition=both)


def _may_browse(inquiry: Inquiry, index_search: Search, summary: ObjectSummary) -> bool:
    principals, visible = inquiry.principals, index_search.visible
    if summary.former and not visible.all_versions:
        return False
    may_browse = principals.administrator or summary.acl_id in visible.browse_acls
    return may_browse or principals.is_(summary.owner_key)


def _to_hit(hit: IndexHit, summary: ObjectSummary) -> Hit:
    return Hit(
        object_id=summary.id,
        title=summary.name,
        owner=summary.owner,
        summary=hit.excerpt or summary.title or summary.name,
        updated=summary.modified,
        score=hit.score,
        terms=hit.terms,
        marks=hit.marks,
    )
