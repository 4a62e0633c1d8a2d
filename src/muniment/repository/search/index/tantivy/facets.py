"""How does one snapshot count the hits of a search by the values of their properties?

The engine counts a hit once in a bucket. A terms aggregation counts wrongly over several segments unless each reports
every term: a facet with more values is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from tantivy import Query

from muniment.database.connections import portions
from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.conditions import Condition
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.spelling import periods
from muniment.repository.search.aql.spelling.facets import BoundFacet, CountedGroup
from muniment.repository.search.aql.tree import Value
from muniment.repository.search.index.contract import MOST_FACET_QUESTIONS, FacetCounts, FacetValue
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.compiling.combining import all_of
from muniment.repository.search.index.tantivy.compiling.order import Metric, index_kind
from muniment.repository.search.index.tantivy.searching import WatchedSearcher

MOST_VALUES = 65_000

_RANGES = 2000

Compile: TypeAlias = Callable[[Condition], Query]


class FacetCounter:
    """Counts the hits of queries for one search."""

    def __init__(self, searcher: WatchedSearcher, compile_condition: Compile) -> None:
        self._searcher = searcher
        self._compile = compile_condition
        self._questions = 0

    def count(self, query: Query, several: Sequence[BoundFacet]) -> tuple[FacetCounts, ...]:
        """Raises BadQuery for too many values, or too much time. One question counts all facets without buckets and
        periods.
        """
        by_value = {str(at): _terms(facet) for at, facet in enumerate(several) if _by_each_value(facet)}
        answers = self._ask(query, by_value) if by_value else {}
        return tuple(self._count(query, facet, answers.get(str(at))) for at, facet in enumerate(several))

    def _count(self, query: Query, facet: BoundFacet, answer: object) -> FacetCounts:
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
        (counts,) = self.count(all_of([query, self._compile(facet.meaning(value.constraint))]), [facet.nested])
        return counts

    def _candidates(self, query: Query, facet: BoundFacet, answer: object) -> list[CountedGroup]:
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
            candidates = self._by_value(facet, msgspec.convert(answer, _Terms, strict=False))
        if facet.with_null and (count := self._hits(query, facet.of_none())):
            place = facet.place(narrowing.NO_VALUE)
            candidates.append(CountedGroup(place, "NULL", narrowing.NO_VALUE, count))
        return candidates

    def _by_value(self, facet: BoundFacet, answer: "_Terms") -> list[CountedGroup]:
        kind = index_kind(facet.kind, folded=facet.folded)
        if answer.sum_other_doc_count or answer.doc_count_error_upper_bound:
            raise BadQuery(f"The facet {facet.id[:100]!r} has too many values to be counted: narrow the search.")
        candidates = []
        for bucket in answer.buckets:
            value = _value(kind, bucket.key)
            name = facet.name_of(value)
            constraint = narrowing.write(name)
            place = facet.place_of_value(value)
            candidates.append(CountedGroup(place, name, constraint, bucket.doc_count))
        return candidates

    def _by_period(self, query: Query, facet: BoundFacet, unit: periods.Unit) -> list[CountedGroup]:
        path, zone = fields.path("i", facet.name), facet.zone
        answer = self._ask(query, {"low": {"min": {"field": path}}, "high": {"max": {"field": path}}})
        low, high = (msgspec.convert(answer[end], Metric).value for end in ("low", "high"))
        if low is None or high is None:
            return []
        # The engine returns both ends as doubles, which are not exact for times far from ours.
        years = list(periods.years(int(low) - periods.DAY, int(high) + periods.DAY, zone))
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
        counts: dict[int, int] = {}
        for some in portions(of, _RANGES):
            ranges = [{"from": period.low, "to": period.high} for period in some]
            request = {"periods": {"range": {"field": fields.path("i", facet.name), "ranges": ranges}}}
            answer = msgspec.convert(self._ask(query, request)["periods"], _Ranges, strict=False)
            counts |= {
                int(each.from_): each.doc_count
                for each in answer.buckets
                if each.from_ is not None and each.to is not None
            }
        return [(period, counts.get(period.low, 0)) for period in of]

    def _hits(self, query: Query, condition: Condition) -> int:
        self._note()
        return self._searcher.count(all_of([query, self._compile(condition)]))

    def _ask(self, query: Query, request: Mapping[str, object]) -> Mapping[str, object]:
        self._note()
        answer: Mapping[str, object] = self._searcher.aggregate(query, dict(request))
        return answer

    def _note(self) -> None:
        self._questions += 1
        if self._questions > MOST_FACET_QUESTIONS:
            raise BadQuery("The facets of this search take too long: ask for fewer values, or fewer nested ones.")


class _Term(msgspec.Struct):
    key: str | int | float
    doc_count: int


class _Terms(msgspec.Struct):
    buckets: list[_Term]
    sum_other_doc_count: int = 0
    doc_count_error_upper_bound: int | None = 0


class _Range(msgspec.Struct, rename={"from_": "from"}):
    doc_count: int
    from_: float | None = None
    to: float | None = None


class _Ranges(msgspec.Struct):
    buckets: list[_Range]


def _by_each_value(facet: BoundFacet) -> bool:
    return facet.limit > 0 and not facet.buckets and facet.unit is None


def _terms(facet: BoundFacet) -> dict[str, object]:
    path = fields.path(index_kind(facet.kind, folded=facet.folded), facet.name)
    return {"terms": {"field": path, "size": MOST_VALUES, "segment_size": MOST_VALUES}}


def _value(kind: str, key: str | float) -> Value:
    if kind in ("s", "v"):
        return str(key).removeprefix(fields.MARKER)
    number = int(key)
    if kind == "b":
        return bool(number)
    return fields.double(number) if kind == "f" else number
