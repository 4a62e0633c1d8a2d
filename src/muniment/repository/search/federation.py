"""One search of several repositories: what each of them is asked, and in which order their hits stand together.

Source: docs/aql.md, "Several repositories"; docs/decisions/0046.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from muniment.repository.aql.tree import Query
from muniment.repository.refusals import BadSort, NotOfferedYet
from muniment.repository.search.results import Hit

_MODIFICATION = "r_modify_date"


class HitOfSeveral(NamedTuple):
    """A hit, and which of the repositories it is of, by its number."""

    repository: int
    hit: Hit


def check(query: Query) -> None:
    """Check that several repositories can be asked at one time. Raises BadSort, NotOfferedYet."""
    if query.facets:
        raise NotOfferedYet("Facets of several repositories are not offered yet: ask each one at its own address.")
    if query.sorts and [sort.name for sort in query.sorts] != [_MODIFICATION]:
        raise BadSort("The hits of several repositories can be sorted by the last modification alone.")


def of_repository(query: Query, name: str) -> Query | None:
    """Return what the repository of this name is asked: None where the locations of the query all lie elsewhere."""
    inside = tuple(location for location in query.locations if location.repository in ("", name))
    if query.locations and not inside:
        return None
    return msgspec.structs.replace(query, locations=inside, repositories=())


def merge(query: Query, hits_of_each: Iterable[Sequence[Hit]]) -> list[HitOfSeveral]:
    """Put the hits of several repositories in one order: by the query's sort, else by score, and then the newest first.

    The hits of one repository keep the order in which they come.
    """
    oldest_first = bool(query.sorts) and query.sorts[0].ascending

    def place(each: HitOfSeveral) -> tuple[float, int]:
        if query.sorts:
            return 0.0, each.hit.updated if oldest_first else -each.hit.updated
        return -each.hit.score, -each.hit.updated

    runs = [[HitOfSeveral(number, hit) for hit in hits] for number, hits in enumerate(hits_of_each)]
    return list(heapq.merge(*runs, key=place))
