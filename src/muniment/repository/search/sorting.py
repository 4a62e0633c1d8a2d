"""Hits in the order of a query's sorts: the index says which objects are hits, the database orders them.

The index cannot order by the values of properties exactly. So all hits' counters are taken from it, and one statement
of the database orders them as lists are ordered. The index has one order of its own: the last modification.
Source: docs/aql.md, "Order".
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.aql.tree import SortCriterion
from muniment.repository.filters.reader import MAX_SORT_KEYS
from muniment.repository.filters.tree import SortKey
from muniment.repository.index.contract import Search, Snapshot
from muniment.repository.objects import lists
from muniment.repository.objects.view import RepositoryView
from muniment.repository.refusals import BadQuery, BadSort

MOST_SORTED = 100_000
"""How many hits a search may have that is sorted by properties."""

_MODIFICATION = "r_modify_date"


def counters(
    cx: Connection,
    view: RepositoryView,
    snapshot: Snapshot,
    search: Search,
    sorts: Sequence[SortCriterion],
    most: int = MOST_SORTED,
    type_prefix: str = "",
) -> Sequence[int]:
    """Return the counters of the hits of a search in the order of these sorts; equal hits by counter.

    ``search`` says which part of the order is wanted. With ``most`` hits or fewer, any sort is possible.
    ``type_prefix`` spells the names of the built-in types. Raises UnknownProperty, BadSort, BadQuery,
    IndexUnavailable.
    """
    sort_keys = _sort_keys(sorts)
    if [key.name for key in sort_keys] == [_MODIFICATION]:
        return snapshot.counters(search, "newest" if sort_keys[0].descending else "oldest")
    order = lists.order_of(cx, view, sort_keys, type_prefix=type_prefix)
    hits = snapshot.counters(msgspec.structs.replace(search, offset=0, limit=most + 1), "made")
    if len(hits) > most:
        raise BadQuery(f"A search with more than {most} hits cannot be sorted by properties: narrow the query.")
    return lists.sort(cx, view, hits, order, search.offset, search.limit)


def _sort_keys(sorts: Sequence[SortCriterion]) -> list[SortKey]:
    names = [sort.name for sort in sorts]
    for at, sort in enumerate(sorts):
        if sort.name in names[:at]:
            raise BadSort(f"The sorts name {sort.name[:64]!r} twice ({sort.place}).")
        if at >= MAX_SORT_KEYS:
            raise BadSort(f"The sorts name more than {MAX_SORT_KEYS} properties ({sort.place}).")
    return [SortKey(sort.name, not sort.ascending, not sort.ascii, sort.place) for sort in sorts]
