"""A page of a search: hits of the index that the database confirms.

First a snapshot of the index is taken. Then one read of the database says what the caller may see, which changes the
snapshot has missed, and which properties the hits have now. So a page obeys every change that was committed before the
read began, however far the index agent is behind. Source: given 2.9; docs/decisions/0004.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
import structlog
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.aql import bind, facets, relaxation
from muniment.repository.aql.conditions import BoundQuery, Condition, ConditionSet
from muniment.repository.aql.facets import BoundFacet, FacetBinder, FacetLimits
from muniment.repository.aql.narrowing import Narrowing
from muniment.repository.aql.tree import Query
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import Answer, FacetCounts, IndexHit, Near, Search, Snapshot, Visible
from muniment.repository.objects import inventory
from muniment.repository.objects.table import ObjectSummary
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import BadQuery, WrongValue
from muniment.repository.repositories import Repository
from muniment.repository.search import locations, sorting, visibility
from muniment.repository.search.memory import SearchMemory

log = structlog.get_logger("muniment.repository.search.results")

WordsNeeded: TypeAlias = Literal["all", "any", "auto"]
"""How many of the question's words an object needs: all of them, or any one.

``auto`` means ``any`` if the objects that have all words do not fill a page. In a search with sorts, ``auto`` means
``all``.
"""


class SearchQuestion(msgspec.Struct, frozen=True):
    """A caller's question: a query as they wrote it, and the page of hits that they want.

    ``narrowings`` are the values of the query's facets that hits must have. With ``bare``, hits have neither excerpts
    nor terms. With ``marks``, hits say where their excerpts match. The first page begins after the first ``start``
    hits. With ``collapse``, ``paging`` leaves out copies of hits (``copies``); ``search`` does not. ``meaning`` says
    whether objects near in meaning are found, too. With None, such objects are found only if ``words`` is ``any``. A
    search with sorts never finds them. ``locale`` names the language of the keywords, if it is known. With ``typed``,
    hits that hold the words as they follow each other in the question come first.
    """

    query: Query
    page: int
    items_per_page: int
    include_total: bool = False
    narrowings: tuple[Narrowing, ...] = ()
    facet_limits: FacetLimits = FacetLimits()
    bare: bool = False
    start: int = 0
    words: WordsNeeded = "all"
    marks: bool = False
    collapse: bool = False
    meaning: bool | None = None
    locale: str = ""
    typed: bool = False


class Hit(msgspec.Struct, frozen=True):
    """One hit, with the object's properties as the database has them now.

    ``marks`` are the matches in the summary, each with the index of its first character and the index after its last.
    They are None unless the caller asks for them. ``copies`` is how many hits with the same content were left out;
    None unless the caller asks for it.
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
    """One page of hits, as of ``position`` in the change log. ``has_more`` says whether another page follows.

    ``total`` is None unless the caller asks for it. ``facet_hits`` is how many hits the facets count; None if they
    count all. ``counters`` are the hits' counters; it is empty on a page of a walk. ``relaxed`` says that hits need not
    have all of the words. ``left_out`` is how many words of the question a relaxed search did not look for, because
    they were too many.
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


def search(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    max_offset: int,
    max_pending: int = visibility.MAX_PENDING,
    memory: SearchMemory | None = None,
    max_sorted: int = sorting.MOST_SORTED,
    type_prefix: str = "",
) -> HitPage:
    """Return one page of hits. ``cx`` must be a read that began after the snapshot of the index was taken.

    Relative dates count from ``now``. ``max_offset`` is the deepest hit that a page may include. If the snapshot
    has missed more than ``max_pending`` changes that a search must not overlook, the search is refused. ``memory`` is
    that of the process. ``max_sorted`` and ``type_prefix`` are ``most`` and ``type_prefix`` of ``sorting.counters``.
    Raises BadQuery, BadSort, UnknownType, UnknownProperty, WrongValue, IndexBehind, IndexUnavailable.
    """
    offset = question.start + (question.page - 1) * question.items_per_page
    if offset + question.items_per_page > max_offset:
        raise BadQuery(f"Page {question.page} lies past hit {max_offset}, the deepest that paging reaches.")
    memory = memory or SearchMemory()
    if question.words == "auto":
        return relaxed_if_few(
            lambda asked: search(
                *(cx, snapshot, repository, principals, asked, now, max_offset, max_pending),
                *(memory, max_sorted, type_prefix),
            ),
            question,
            memory,
        )
    index_search = prepare(cx, snapshot, repository, principals, question, now, max_pending, memory)
    index_search = msgspec.structs.replace(index_search, offset=offset, limit=question.items_per_page)
    answer: Answer | None = None
    if sorts := question.query.sorts:
        answer = sorting.answer(
            snapshot, index_search, sorts, memory.catalogue(cx, repository.id), max_sorted, type_prefix
        )
    if sorts and answer is None:
        view = RepositoryView.read(cx, repository, principals)
        one_more = msgspec.structs.replace(index_search, limit=question.items_per_page + 1)
        counters = sorting.counters(cx, view, snapshot, one_more, sorts, max_sorted, type_prefix)
        on_page = tuple(counters[: question.items_per_page])
        page = show(cx, snapshot, repository, principals, question, index_search, on_page, index_search)
        return msgspec.structs.replace(page, has_more=len(counters) > len(on_page), counters=on_page)
    answer, visible_objects = answer or snapshot.search(index_search), index_search.visible
    summaries = inventory.summaries(cx, repository.id, [hit.object_id for hit in answer.hits])
    hits = [
        _to_hit(hit, summary)
        for hit in answer.hits
        if (summary := summaries.get(hit.object_id)) is not None and _may_browse(summary, principals, visible_objects)
    ]
    total, refused_count = answer.total, len(answer.hits) - len(hits)
    if refused_count:
        log.error("hits without permission", repository=repository.name, hits=refused_count)
        total = None if total is None else total - refused_count
    return HitPage(
        hits=tuple(hits),
        page=question.page,
        items_per_page=question.items_per_page,
        total=total,
        has_more=answer.more,
        position=snapshot.position,
        facets=answer.facets,
        facet_hits=answer.facet_hits,
        counters=tuple([summaries[hit.object_id].seq for hit in hits]),
        relaxed=_is_relaxed(question, index_search),
        left_out=relaxation.left_out(question.query) if question.words == "any" else 0,
    )


def relaxed_if_few(
    answer: Callable[[SearchQuestion], HitPage], question: SearchQuestion, memory: SearchMemory
) -> HitPage:
    """Answer with the hits that have all words. If these hits do not fill a page, answer with the hits for any word.

    The hits for any word come only if ``may_widen`` allows it. ``answer`` gets the question with ``all`` in place of
    its ``words``, and then, if needed, with ``any``.
    """
    strict = msgspec.structs.replace(question, words="all")
    page = answer(strict)
    if page.has_more or not may_widen(question.query, question.meaning, memory):
        return page
    first = page if question.page == 1 else answer(msgspec.structs.replace(strict, page=1))
    if first.has_more or len(first.hits) >= question.items_per_page:
        return page
    return answer(msgspec.structs.replace(question, words="any"))


def may_widen(query: Query, meaning: bool | None, memory: SearchMemory) -> bool:
    """Return whether a search that finds too little can find more: by any of its words, or by its meaning.

    A search with sorts cannot. ``meaning`` says whether objects near in meaning are wanted; None counts as
    yes.
    """
    if query.sorts:
        return False
    by_meaning = memory.meaning is not None and meaning is not False
    return relaxation.relax(query) is not None or (by_meaning and relaxation.question(query) is not None)


def _is_relaxed(question: SearchQuestion, search: Search) -> bool:
    """Return whether a search also finds objects that lack words: those with any of its words, or near in meaning."""
    return question.words == "any" and (_relaxed_query(question) is not None or search.near.added > 0)


def _relaxed_query(question: SearchQuestion) -> Query | None:
    """Return the question's query, relaxed; None if all words are needed, or if the query cannot be relaxed."""
    return relaxation.relax(question.query) if question.words == "any" else None


def standing(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    limit: int,
    max_pending: int = visibility.MAX_PENDING,
    memory: SearchMemory | None = None,
    max_sorted: int = sorting.MOST_SORTED,
    type_prefix: str = "",
) -> Sequence[int]:
    """Return the counters of the first ``limit`` hits, in their order, whatever page the question asks for.

    For the other arguments and for what it raises, see ``search``.
    """
    memory = memory or SearchMemory()
    index_search = prepare(cx, snapshot, repository, principals, question, now, max_pending, memory)
    index_search = msgspec.structs.replace(index_search, limit=limit)
    return in_order(cx, snapshot, repository, principals, question, index_search, max_sorted, type_prefix)


def in_order(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    index_search: Search,
    max_sorted: int,
    type_prefix: str,
) -> Sequence[int]:
    """Return the counters of the hits of ``index_search``, in the order that the question asks for.

    ``index_search`` is what ``prepare`` made of the question, with its limit set.
    """
    if not question.query.sorts:
        return snapshot.counters(index_search, "relevance")
    view = RepositoryView.read(cx, repository, principals)
    return sorting.counters(cx, view, snapshot, index_search, question.query.sorts, max_sorted, type_prefix)


def page_of_counters(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    counters: Sequence[int],
    max_pending: int = visibility.MAX_PENDING,
    memory: SearchMemory | None = None,
) -> HitPage:
    """Return a page of the objects with these counters, in this order, without those that are no hits any more.

    Total and facets are those of the whole query at present. Whether the objects lie in the query's locations is not
    checked again, because the search that found them has checked it. If a location does not exist any more, total and
    facets are left out. Raises what ``search`` raises.
    """
    searches = searches_of_counters(
        *(cx, snapshot, repository, principals, question, now, max_pending, memory or SearchMemory())
    )
    return show(cx, snapshot, repository, principals, question, searches[0], counters, searches[1])


def searches_of_counters(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    max_pending: int,
    memory: SearchMemory,
) -> tuple[Search, Search]:
    """Prepare the two searches that show objects which the question has found before.

    The first one checks and shows these objects. It has no locations, because these were checked when the objects were
    found. The second one gives the total and the facets of the whole query.
    """
    anywhere = msgspec.structs.replace(
        question, query=msgspec.structs.replace(question.query, locations=()), include_total=False
    )
    index_search = prepare(cx, snapshot, repository, principals, anywhere, now, max_pending, memory)
    try:
        count_search = prepare(cx, snapshot, repository, principals, question, now, max_pending, memory)
    except WrongValue:
        if not question.query.locations:
            raise
        count_search = msgspec.structs.replace(index_search, facets=())
    return index_search, count_search


def show(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    index_search: Search,
    counters: Sequence[int],
    count_search: Search,
) -> HitPage:
    """Return a page of the hits of ``index_search`` that have these counters, in this order.

    ``count_search`` gives the total and the facets.
    """
    summaries = inventory.summaries_by_counter(cx, repository.id, counters) if counters else {}
    browsable = [
        summary
        for counter in counters
        if (summary := summaries.get(counter)) is not None and _may_browse(summary, principals, index_search.visible)
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
    return HitPage(
        hits=tuple(_to_hit(index_hits[summary.id], summary) for summary in browsable if summary.id in index_hits),
        page=question.page,
        items_per_page=question.items_per_page,
        total=answer.total,
        has_more=False,
        position=snapshot.position,
        facets=answer.facets,
        facet_hits=answer.facet_hits,
        relaxed=_is_relaxed(question, index_search),
        left_out=relaxation.left_out(question.query) if question.words == "any" else 0,
    )


def prepare(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    max_pending: int,
    memory: SearchMemory,
) -> Search:
    """Make the search of a question, for what the caller may see of the snapshot.

    The search's limit is 0: replace it before you run the search. Raises BadQuery, UnknownType, UnknownProperty,
    WrongValue, IndexBehind, IndexUnavailable.
    """
    if question.typed and not question.query.sorts:
        question = msgspec.structs.replace(question, query=relaxation.with_sequence(question.query))
    query_to_bind = _relaxed_query(question) or question.query
    bound_query = bind_query(cx, repository, principals, memory, query_to_bind, now)
    query = msgspec.structs.replace(bound_query, locale=question.locale)
    bound_facets, query = _with_facets(cx, repository, memory, question, query, now)
    names = facets.property_names(bound_facets)
    search = Search(
        query,
        visibility.visible(cx, repository, principals, query, snapshot.position, max_pending, memory, names),
        offset=0,
        limit=0,
        total=question.include_total,
        facets=bound_facets,
        facet_hits=question.query.facet_hits,
        bare=question.bare,
        marks=question.marks,
    )
    near = _near(cx, snapshot, repository, principals, question, search, now, memory)
    return search if near is None else msgspec.structs.replace(search, near=near)


def _near(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    search: Search,
    now: Instant,
    memory: SearchMemory,
) -> Near | None:
    """Return the objects that are near a question in meaning.

    Return None if such objects are not wanted, if nothing is embedded, or if the question has sorts or no words to
    compare.
    """
    wanted = question.meaning or (question.meaning is None and question.words == "any")
    if memory.meaning is None or not wanted or question.query.sorts:
        return None
    asked = relaxation.question(question.query)
    if asked is None:
        return None
    query = bind_query(cx, repository, principals, memory, asked.anything, now)
    _, query = _with_facets(cx, repository, memory, question, query, now)
    readable = msgspec.structs.replace(search.visible, browse_acls=search.visible.read_acls, browse=search.visible.read)
    anything = Search(query, readable, offset=0, limit=0)
    return memory.meaning.near(cx, snapshot, search, anything, asked.text)


def _with_facets(
    cx: Connection,
    repository: Repository,
    memory: SearchMemory,
    question: SearchQuestion,
    query: BoundQuery,
    now: Instant,
) -> tuple[tuple[BoundFacet, ...], BoundQuery]:
    """Return the facets of a question, checked, and the query narrowed to the values that the question asks for."""
    if not question.query.facets and not question.narrowings:
        return (), query
    binder = FacetBinder(memory.catalogue(cx, repository.id), now, question.facet_limits)
    bound_facets = binder.bind(question.query.facets)
    narrowing_condition = facets.narrowing_condition(bound_facets, question.narrowings)
    return bound_facets, query if narrowing_condition is None else _both(query, narrowing_condition)


def check_offered(query: Query, repository: Repository) -> None:
    """Raise BadQuery for a query that names another repository."""
    if strangers := set(query.repositories) - {repository.name}:
        raise BadQuery(f"This address searches {repository.name!r} alone, not the repository {min(strangers)[:100]!r}.")


def bind_query(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    memory: SearchMemory,
    query: Query,
    now: Instant,
) -> BoundQuery:
    """Check a query against the repository's types, and return what an object must meet, locations included.

    Raises BadQuery, UnknownType, UnknownProperty, WrongValue.
    """
    texts = bind.acl_texts(query.condition)
    acl_ids = acls.look_up(cx, repository.id, texts, principals) if texts else {}
    bound_query = memory.bind(cx, repository.id, query, acl_ids, now)
    if not query.locations:
        return bound_query
    location_condition = locations.condition(cx, RepositoryView.read(cx, repository, principals), query.locations)
    return bound_query if location_condition is None else _both(bound_query, location_condition)


def _both(query: BoundQuery, condition: Condition) -> BoundQuery:
    """Return a query for the objects of ``query`` that also meet ``condition``."""
    both = condition if query.condition is None else ConditionSet("AND", (query.condition, condition))
    return msgspec.structs.replace(query, condition=both)


def _may_browse(summary: ObjectSummary, principals: Principals, visible_objects: Visible) -> bool:
    if summary.former and not visible_objects.all_versions:
        return False
    may_browse = principals.administrator or summary.acl_id in visible_objects.browse_acls
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
