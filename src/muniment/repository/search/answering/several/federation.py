"""One search of several repositories: the question for each, and the order of their hits.

Source: docs/aql.md, "Several repositories"; docs/decisions/0063.
"""

import functools
import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from muniment.repository.refusals import BadSort
from muniment.repository.search.answering.results import Hit, HitPage
from muniment.repository.search.aql.tree import Query, SortCriterion
from muniment.repository.search.aql.values import Kind
from muniment.repository.store.filters.cursors import Place


class SortedHits(NamedTuple):
    """Hits of one repository in its order; if the query has sorts, ``places`` go by object id."""

    hits: Sequence[Hit]
    places: Mapping[str, Place] = {}


class HitOfSeveral(NamedTuple):
    """A hit, and the number of its repository."""

    repository: int
    hit: Hit


def of_repository(query: Query, name: str) -> Query | None:
    """Return None if all locations of the query lie elsewhere."""
    inside = tuple(location for location in query.locations if location.repository in ("", name))
    if query.locations and not inside:
        return None
    return msgspec.structs.replace(query, locations=inside, repositories=())


def check_kinds(sorts: Sequence[SortCriterion], kinds_of_each: Mapping[str, Sequence[Kind]]) -> None:
    """``kinds_of_each`` has the kinds of the sorts' values by repository."""
    for at, sort in enumerate(sorts):
        first_repository = ""
        for repository, kinds in kinds_of_each.items():
            first_repository = first_repository or repository
            if kinds[at] != kinds_of_each[first_repository][at]:
                raise BadSort(
                    f"The property {sort.name!r} is of kind {kinds_of_each[first_repository][at]} in "
                    f"{first_repository!r} and of kind {kinds[at]} in {repository!r}, so the hits of both have no one "
                    f"order: name the repositories to search ({sort.place})."
                )


def merge(query: Query, hits_of_each: Iterable[SortedHits]) -> list[HitOfSeveral]:
    """Merge by the sorts, then by when objects were made; without sorts by score, then by modification, the last first.
    The hits of one repository keep their order.
    """
    runs = list(hits_of_each)

    def by_score(each: HitOfSeveral) -> tuple[float, int]:
        return -each.hit.score, -each.hit.updated

    directions = (*(not sort.ascending for sort in query.sorts), False)

    def before(one: HitOfSeveral, other: HitOfSeveral) -> int:
        mine, theirs = (runs[each.repository].places[each.hit.object_id] for each in (one, other))
        return _compare(mine, theirs, directions)

    numbered = [[HitOfSeveral(number, hit) for hit in run.hits] for number, run in enumerate(runs)]
    if query.sorts:
        return list(heapq.merge(*numbered, key=functools.cmp_to_key(before)))
    return list(heapq.merge(*numbered, key=by_score))


def fed(pages: Sequence[HitPage]) -> int | None:
    """Return how many hits all facets count, or None for all.

    If the facets of only some pages count all hits, those pages must have a ``total``.
    """
    if all(page.facet_hits is None for page in pages):
        return None
    return sum((page.total or 0) if page.facet_hits is None else page.facet_hits for page in pages)


def _compare(one: Place, other: Place, descending: Sequence[bool]) -> int:
    """A place without a value comes last in both directions."""
    for mine, theirs, is_descending in zip(one, other, descending, strict=True):
        if mine == theirs:
            continue
        if mine is None or theirs is None:
            return 1 if mine is None else -1
        is_greater: bool = mine > theirs  # type: ignore[operator]
        return 1 if is_greater != is_descending else -1
    return 0
