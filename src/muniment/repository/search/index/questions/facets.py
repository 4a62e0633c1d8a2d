"""How does one snapshot count the hits of a search by the values of their properties?

The engine counts a hit once in a bucket.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.conditions import Condition
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.spelling import periods
from muniment.repository.search.aql.spelling.facets import BoundFacet, CountedGroup
from muniment.repository.search.index.contract import MOST_FACET_QUESTIONS, FacetCounts, FacetValue
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Queries, Query, Searcher, ValueCounts

Compile: TypeAlias = Callable[[Condition], Query]


class FacetCounter:
    """Counts the hits of queries for one search."""

    def __init__(self, searcher: Searcher, queries: Queries, compile_condition: Compile) -> None:
        self._searcher, self._queries = searcher, queries
        self._compile = compile_condition
        self._questions = 0

    def count(self, query: Query, several: Sequence[BoundFacet]) -> tuple[FacetCounts, ...]:
        """Raises BadQuery for too many values, or too much time. One question counts all facets without buckets and
        periods.
        """
        by_value = {str(at): (_kind(facet), facet.name) for at, facet in enumerate(several) if _by_each_value(facet)}
        self._note(len(by_value) > 0)
        answers = self._searcher.values(query, by_value) if by_value else {}
        return tuple(self._count(query, facet, answers.get(str(at))) for at, facet in enumerate(several))

    def _count(self, query: Query, facet: BoundFacet, answer: ValueCounts | None) -> FacetCounts:
        candidates = facet.in_order(self._candidates(query, facet, answer))
        first_candidates = candidates[: facet.limit]
        return FacetCounts(
            facet.id,
            facet.name,
            tuple(
                FacetValue(each.name, each.constraint, each.hits, self._nested_counts(query, facet, each))
                for each in first_candidates
            ),
            partial=facet.capped and len(candidates) > len(first_candidates),
        )

    def _nested_counts(self, query: Query, facet: BoundFacet, value: CountedGroup) -> FacetCounts | None:
        if facet.nested is None:
            return None
        if not value.hits:
            return FacetCounts(facet.nested.id, facet.nested.name, ())
        (counts,) = self.count(
            self._queries.all_of([query, self._compile(facet.meaning(value.constraint))]), [facet.nested]
        )
        return counts

    def _candidates(self, query: Query, facet: BoundFacet, answer: ValueCounts | None) -> list[CountedGroup]:
        if facet.limit < 1:
            return []
        if facet.buckets:
            candidates = [
                CountedGroup((at, 0, ""), bucket.name, narrowing.write(bucket.name), count)
                for at, bucket in enumerate(facet.buckets)
                if (count := self._hits(query, bucket.condition))
            ]
        elif (unit := facet.unit) is not None:
            candidates = self._by_period(query, facet, unit)
        else:
            candidates = self._by_value(facet, answer or ValueCounts(()))
        if facet.with_null and (count := self._hits(query, facet.of_none())):
            place = facet.place(narrowing.NO_VALUE)
            candidates.append(CountedGroup(place, "NULL", narrowing.NO_VALUE, count))
        return candidates

    def _by_value(self, facet: BoundFacet, answer: ValueCounts) -> list[CountedGroup]:
        if not answer.complete:
            raise BadQuery(f"The facet {facet.id[:100]!r} has too many values to be counted: narrow the search.")
        candidates = []
        for held, count in answer.values:
            value = layout.as_value(_kind(facet), held)
            name = facet.name_of(value)
            constraint = narrowing.write(name)
            place = facet.place_of_value(value)
            candidates.append(CountedGroup(place, name, constraint, count))
        return candidates

    def _by_period(self, query: Query, facet: BoundFacet, unit: periods.Unit) -> list[CountedGroup]:
        zone = facet.zone
        self._note()
        extent = self._searcher.extent(query, facet.name)
        if extent is None:
            return []
        # An engine may return both ends as doubles, which are not exact for times far from ours.
        years = list(periods.years(extent[0] - periods.DAY, extent[1] + periods.DAY, zone))
        counts = self._in_periods(query, facet, years)
        if unit != "year":
            parts: dict[int, periods.Period] = {}
            for year, count in counts:
                if count or facet.all_periods:
                    parts |= {part.low: part for part in periods.within(unit, int(year.name), zone)}
                if len(parts) > periods.MOST:
                    raise BadQuery(f"The dates of {facet.id[:100]!r} are too far apart to count each {unit}.")
            counts = self._in_periods(query, facet, [parts[first] for first in sorted(parts)])
        nonzero = [at for at, (_, count) in enumerate(counts) if count]
        periods_shown = counts[nonzero[0] : nonzero[-1] + 1] if nonzero else []
        return [
            CountedGroup(
                (0, period.low, ""),
                facet.name_of_period(period),
                narrowing.write(period.name),
                count,
            )
            for period, count in periods_shown
            if count or facet.all_periods
        ]

    def _in_periods(
        self, query: Query, facet: BoundFacet, of: Sequence[periods.Period]
    ) -> list[tuple[periods.Period, int]]:
        self._note()
        counts = self._searcher.in_ranges(query, facet.name, [(period.low, period.high) for period in of])
        return [(period, counts.get(period.low, 0)) for period in of]

    def _hits(self, query: Query, condition: Condition) -> int:
        self._note()
        return self._searcher.count(self._queries.all_of([query, self._compile(condition)]))

    def _note(self, number: int = 1) -> None:
        self._questions += number
        if self._questions > MOST_FACET_QUESTIONS:
            raise BadQuery("The facets of this search take too long: ask for fewer values, or fewer nested ones.")


def _by_each_value(facet: BoundFacet) -> bool:
    return facet.limit > 0 and not facet.buckets and facet.unit is None


def _kind(facet: BoundFacet) -> str:
    return layout.index_kind(facet.kind, folded=facet.folded)
