"""Hits in the order of a query's sorts: by the index if it knows that order exactly, otherwise by the database.

The index knows the order if it holds the sorts' values as the database does, and has missed no change of them.

Source: docs/aql.md, "Order"; docs/decisions/0053.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.refusals import BadQuery, BadSort, NotSearchable, UnknownProperty
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.aql.tree import SortCriterion
from muniment.repository.search.index.contract import Answer, Search, SortedBy
from muniment.repository.store.filters.cursors import Place
from muniment.repository.store.filters.pages import Order
from muniment.repository.store.filters.reader import MAX_SORT_KEYS
from muniment.repository.store.filters.tree import SortKey
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.types.object_types import Catalogue

_MODIFICATION = "r_modify_date"

_SORTABLE = frozenset(
    {"r_object_id", "r_object_type", "r_creator_name", _MODIFICATION, "r_modifier", "r_full_content_size"}
)
"""Only the repository writes these, and the index can order by them."""


def sorted_answer(inquiry: Inquiry, search: Search) -> Answer | None:
    """Answer from the index alone; None if ``counters`` must be used. The order is the database's, because ``search``
    leaves out objects whose change the index has missed.

    Raises NotSearchable, and BadQuery for more than ``max_sorted_hits``.
    """
    sorts, catalogue, most = inquiry.question.query.sorts, inquiry.view().catalogue, inquiry.options.max_sorted_hits
    check(sorts, catalogue)
    sorted_by = [_sorted_by(sort, catalogue, inquiry.options.names.type_prefix) for sort in sorts]
    index_sorts = [sort for sort in sorted_by if sort is not None]
    if search.visible.decided or len(index_sorts) < len(sorts) or len({sort.name for sort in index_sorts}) < len(sorts):
        return None
    if len(sorts) > MAX_SORT_KEYS or [sort.name for sort in index_sorts] == [_MODIFICATION]:
        return None
    index_answer = inquiry.snapshot.search_sorted(search, index_sorts)
    if index_answer is not None and (index_answer.total or 0) > most:
        raise _too_many(most)
    return index_answer if index_answer is None or search.total else msgspec.structs.replace(index_answer, total=None)


def check(sorts: Sequence[SortCriterion], catalogue: Catalogue) -> None:
    for sort in sorts:
        try:
            catalogue.searchable(sort.name)
        except NotSearchable as refusal:
            raise NotSearchable(f"{refusal.sentence.rstrip('.')} ({sort.place}).") from refusal
        except UnknownProperty:
            pass  # ``lists`` refuses an unknown property, and names its place


def _sorted_by(sort: SortCriterion, catalogue: Catalogue, type_prefix: str) -> SortedBy | None:
    try:
        definition = catalogue.property(sort.name)
    except UnknownProperty:
        return None
    if definition.repeating or sort.name == "acl_name" or (sort.name == "r_object_type" and type_prefix):
        return None
    if sort.name.startswith("r_") and sort.name not in _SORTABLE:
        return None
    return SortedBy(sort.name, definition.kind, descending=not sort.ascending, folded=not sort.ascii)


def _too_many(most: int) -> BadQuery:
    return BadQuery(f"A search with more than {most} hits cannot be sorted by properties: narrow the query.")


def counters(inquiry: Inquiry, search: Search) -> Sequence[int]:
    """Return the part of the order that ``search`` wants; equal hits by counter.

    More than ``max_sorted_hits`` can be sorted only by ``r_modify_date`` alone.

    Raises what ``order_of`` raises, BadQuery, IndexUnavailable.
    """
    sorts, most = inquiry.question.query.sorts, inquiry.options.max_sorted_hits
    if [sort.name for sort in sorts] == [_MODIFICATION]:
        return inquiry.snapshot.counters(search, "oldest" if sorts[0].ascending else "newest")
    view = inquiry.view()
    order = order_of(inquiry.cx, view, sorts, inquiry.options.names.type_prefix)
    hits = inquiry.snapshot.counters(msgspec.structs.replace(search, offset=0, limit=most + 1), "made")
    if len(hits) > most:
        raise _too_many(most)
    return lists.sort(inquiry.cx, view, hits, order, search.offset, search.limit)


def order_of(cx: Connection, view: RepositoryView, sorts: Sequence[SortCriterion], type_prefix: str = "") -> Order:
    """Raises NotSearchable, UnknownProperty, BadSort."""
    sort_keys = _sort_keys(sorts)
    check(sorts, view.catalogue)
    return lists.order_of(cx, view, sort_keys, type_prefix=type_prefix)


def places(inquiry: Inquiry, object_ids: Sequence[str]) -> dict[str, Place]:
    """Return the values of the sorts, then the counter, for at most one page.

    Raises UnknownProperty, BadSort.
    """
    sort_keys, type_prefix = _sort_keys(inquiry.question.query.sorts), inquiry.options.names.type_prefix
    return lists.places(inquiry.cx, inquiry.view(), object_ids, sort_keys, type_prefix=type_prefix)


def _sort_keys(sorts: Sequence[SortCriterion]) -> list[SortKey]:
    names = [sort.name for sort in sorts]
    for at, sort in enumerate(sorts):
        if sort.name in names[:at]:
            raise BadSort(f"The sorts name {sort.name[:64]!r} twice ({sort.place}).")
        if at >= MAX_SORT_KEYS:
            raise BadSort(f"The sorts name more than {MAX_SORT_KEYS} properties ({sort.place}).")
    return [SortKey(sort.name, not sort.ascending, not sort.ascii, sort.place) for sort in sorts]
