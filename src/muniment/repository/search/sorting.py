"""Hits in the order of a query's sorts: by the index if it knows that order exactly, otherwise by the database.

The index knows the order if it holds the values of the sorts as the database does, and has missed no change of them.
For any other order, and for pages far down, the counters of all hits are taken from the index, and one statement of the
database orders them as it orders lists of objects. A search that is sorted by ``r_modify_date`` alone always has the
order of the index. Source: docs/aql.md, "Order"; docs/decisions/0053.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.aql.tree import SortCriterion
from muniment.repository.cursors import Place
from muniment.repository.filters.pages import Order
from muniment.repository.filters.reader import MAX_SORT_KEYS
from muniment.repository.filters.tree import SortKey
from muniment.repository.index.contract import Answer, Search, Snapshot, SortedBy
from muniment.repository.objects import lists
from muniment.repository.objects.types.object_types import Catalogue
from muniment.repository.objects.view import RepositoryView
from muniment.repository.refusals import BadQuery, BadSort, NotSearchable, UnknownProperty

MOST_SORTED = 100_000
"""The most hits of a search that is sorted by properties, unless ``r_modify_date`` is its only sort."""

_MODIFICATION = "r_modify_date"

_SORTABLE = frozenset(
    {"r_object_id", "r_object_type", "r_creator_name", _MODIFICATION, "r_modifier", "r_full_content_size"}
)
"""The properties that only the repository writes, and by which the index can order."""


def answer(
    snapshot: Snapshot,
    search: Search,
    sorts: Sequence[SortCriterion],
    catalogue: Catalogue,
    most: int = MOST_SORTED,
    type_prefix: str = "",
) -> Answer | None:
    """Answer a search from the index alone, in the order of these sorts; None if ``counters`` must be used instead.

    The order is the same as the database's, because ``search`` leaves out the objects whose change the index has
    missed. Raises NotSearchable, and BadQuery for more than ``most`` hits.
    """
    check(sorts, catalogue)
    sorted_by = [_sorted_by(sort, catalogue, type_prefix) for sort in sorts]
    index_sorts = [sort for sort in sorted_by if sort is not None]
    if search.visible.decided or len(index_sorts) < len(sorts) or len({sort.name for sort in index_sorts}) < len(sorts):
        return None
    if len(sorts) > MAX_SORT_KEYS or [sort.name for sort in index_sorts] == [_MODIFICATION]:
        return None
    index_answer = snapshot.search_sorted(search, index_sorts)
    if index_answer is not None and (index_answer.total or 0) > most:
        raise _too_many(most)
    return index_answer if index_answer is None or search.total else msgspec.structs.replace(index_answer, total=None)


def check(sorts: Sequence[SortCriterion], catalogue: Catalogue) -> None:
    """Raise NotSearchable for a sort by a property that is not searchable."""
    for sort in sorts:
        try:
            catalogue.searchable(sort.name)
        except NotSearchable as refusal:
            raise NotSearchable(f"{refusal.sentence.rstrip('.')} ({sort.place}).") from refusal
        except UnknownProperty:
            pass  # ``lists`` refuses an unknown property, and names its place


def _sorted_by(sort: SortCriterion, catalogue: Catalogue, type_prefix: str) -> SortedBy | None:
    """Turn a sort into an order of the index. Return None if the index lacks the values by which the database sorts."""
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


def counters(
    cx: Connection,
    view: RepositoryView,
    snapshot: Snapshot,
    search: Search,
    sorts: Sequence[SortCriterion],
    most: int = MOST_SORTED,
    type_prefix: str = "",
) -> Sequence[int]:
    """Return a search's hits in the order of these sorts, each as its object's counter.

    Equal hits are in the order of counters. The offset and the limit of ``search`` say which part of the order is
    wanted. More than ``most`` hits can be sorted only by ``r_modify_date`` alone; another sort raises BadQuery. The
    shown names of the built-in types begin with ``type_prefix``. Raises what ``order_of`` raises, BadQuery,
    IndexUnavailable.
    """
    if [sort.name for sort in sorts] == [_MODIFICATION]:
        return snapshot.counters(search, "oldest" if sorts[0].ascending else "newest")
    order = order_of(cx, view, sorts, type_prefix)
    hits = snapshot.counters(msgspec.structs.replace(search, offset=0, limit=most + 1), "made")
    if len(hits) > most:
        raise _too_many(most)
    return lists.sort(cx, view, hits, order, search.offset, search.limit)


def order_of(cx: Connection, view: RepositoryView, sorts: Sequence[SortCriterion], type_prefix: str = "") -> Order:
    """Return the order of objects by these sorts, and then by counter. ``type_prefix`` is as in ``counters``.

    Raises NotSearchable, UnknownProperty, BadSort.
    """
    sort_keys = _sort_keys(sorts)
    check(sorts, view.catalogue)
    return lists.order_of(cx, view, sort_keys, type_prefix=type_prefix)


def places(
    cx: Connection, view: RepositoryView, sorts: Sequence[SortCriterion], object_ids: Sequence[str], type_prefix: str
) -> dict[str, Place]:
    """Return the places of some objects in the order of these sorts, by object id.

    A place holds the object's value for each sort, and then the object's counter. ``object_ids`` are at
    most one page of ids. Raises UnknownProperty, BadSort.
    """
    return lists.places(cx, view, object_ids, _sort_keys(sorts), type_prefix=type_prefix)


def _sort_keys(sorts: Sequence[SortCriterion]) -> list[SortKey]:
    names = [sort.name for sort in sorts]
    for at, sort in enumerate(sorts):
        if sort.name in names[:at]:
            raise BadSort(f"The sorts name {sort.name[:64]!r} twice ({sort.place}).")
        if at >= MAX_SORT_KEYS:
            raise BadSort(f"The sorts name more than {MAX_SORT_KEYS} properties ({sort.place}).")
    return [SortKey(sort.name, not sort.ascending, not sort.ascii, sort.place) for sort in sorts]
