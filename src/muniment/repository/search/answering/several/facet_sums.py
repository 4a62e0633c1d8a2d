"""The facets of several repositories: which values each repository has to return, and how these are added up.

By value, what is shown is among the first values of every repository that has it: each returns as many as are shown. By
frequency, a value rare in each may be frequent in all: each returns as many as there is room for.

Source: docs/aql.md, "Several repositories"; docs/decisions/0063.
"""

import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from muniment.repository.refusals import BadQuery, WrongValue
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.spelling import periods
from muniment.repository.search.aql.spelling.facets import BoundFacet, CountedGroup
from muniment.repository.search.aql.tree import FacetDefinition
from muniment.repository.search.index.contract import MOST_FACET_QUESTIONS, FacetCounts, FacetValue

_TIMES = 10
_QUESTIONS_OF_PERIODS = 16


def room(most_values: int, repositories: int) -> int:
    """Up to ten repositories return at most ten times ``most_values`` together; of more, each returns at most
    ``most_values``.
    """
    return max(most_values, _TIMES * most_values // max(repositories, 1))


def questions(
    definitions: Sequence[FacetDefinition], facets: Sequence[BoundFacet], room: int
) -> tuple[FacetDefinition, ...]:
    """``facets`` are the definitions bound by ``FacetBinder.bind``. Periods without a hit are left out: ``add_up`` adds
    these.
    """
    widths = _widths(facets, room)
    return tuple(map(_question, definitions, facets, widths))


def check_kinds(facets_of_each: Mapping[str, Sequence[BoundFacet]]) -> None:
    first_kinds: dict[str, tuple[str, str]] = {}
    for repository, facets in facets_of_each.items():
        for level in (level for facet in facets for level in facet.levels()):
            of_repository, kind = first_kinds.setdefault(level.id, (repository, level.kind))
            if kind != level.kind:
                raise WrongValue(
                    f"The property {level.name!r} is of kind {kind} in {of_repository!r} and of kind {level.kind} "
                    f"in {repository!r}, so no facet counts both: name the repositories to search."
                )


def add_up(
    facets: Sequence[BoundFacet], room: int, counts_of_each: Sequence[Sequence[FacetCounts]]
) -> tuple[FacetCounts, ...]:
    """Add up the results of all repositories.

    By frequency, a facet is ``partial`` if several have values and one had no room for all: sums may be too low.

    Raises BadQuery if periods without a hit are to be shown and there are too many periods.
    """
    return tuple(
        _sum(facet, width, told, lacking=False)
        for facet, width, *told in zip(facets, _widths(facets, room), *counts_of_each, strict=True)
    )


def _widths(facets: Sequence[BoundFacet], room: int) -> list[int]:
    """Return the room of each facet for values, at levels ordered by frequency.

    A level that shows more has room for these. A repository returns one value more, which tells that there are more;
    with no room for that, the width is 0.
    """
    values, asked = room // max(len(facets), 1), MOST_FACET_QUESTIONS // max(len(facets), 1)
    return [
        bisect.bisect_left(range(1, room + 1), True, key=lambda width: not _fits(facet, width, values, asked))
        for facet in facets
    ]


def _fits(facet: BoundFacet, width: int, values: int, asked: int) -> bool:
    return _values(facet, width) <= values and _asked(facet, width) <= asked


def _values(facet: BoundFacet, width: int) -> int:
    return _wanted(facet, width) * (1 + (_values(facet.nested, width) if facet.nested else 0))


def _asked(facet: BoundFacet, width: int) -> int:
    own = len(facet.buckets) or (1 if facet.unit is None else _QUESTIONS_OF_PERIODS)
    return own + facet.with_null + (_wanted(facet, width) * _asked(facet.nested, width) if facet.nested else 0)


def _told(facet: BoundFacet, width: int) -> int:
    return max(facet.limit, width) if facet.limit > 0 and facet.sort == "FREQUENCY" else facet.limit


def _wanted(facet: BoundFacet, width: int) -> int:
    """Return one more than needed, to show that there are more, unless the width is 0."""
    most = _told(facet, width) + (width > 0 < facet.limit)
    return min(most, len(facet.buckets) + facet.with_null) if facet.buckets else most


def _may_have_more(facet: BoundFacet, width: int, counts: FacetCounts) -> bool:
    return len(counts.values) >= _told(facet, width) + (width > 0)


def _question(definition: FacetDefinition, facet: BoundFacet, width: int) -> FacetDefinition:
    nested = definition.nested
    return msgspec.structs.replace(
        definition,
        sort=facet.sort,
        max_values=_wanted(facet, width),
        properties=tuple((name, text) for name, text in definition.properties if name.lower() != "skipemptyvalues"),
        nested=None if nested is None or facet.nested is None else _question(nested, facet.nested, width),
    )


def _sum(facet: BoundFacet, width: int, several: Sequence[FacetCounts], *, lacking: bool) -> FacetCounts:
    """Add up one facet; if ``lacking``, a repository that may have hits returned no counts, so sums may be too low."""
    values_of_each: dict[str, dict[int, FacetValue]] = defaultdict(dict)
    for number, counts in enumerate(several):
        for value in counts.values:
            values_of_each[value.constraint][number] = value
    cut_short: set[int] = set()
    if facet.sort == "FREQUENCY" and sum(bool(counts.values) for counts in several) > 1:
        cut_short = {number for number, counts in enumerate(several) if _may_have_more(facet, width, counts)}
    groups = {
        constraint: CountedGroup(
            facet.place(constraint),
            next(iter(values.values())).name,
            constraint,
            sum(value.count for value in values.values()),
        )
        for constraint, values in values_of_each.items()
    }
    if facet.all_periods and groups:
        groups = _without_gaps(facet, groups)
    ordered = facet.in_order(groups.values())
    shown_values = []
    for group in ordered[: max(facet.limit, 0)]:
        values, nested = values_of_each.get(group.constraint, {}), None
        if facet.nested is not None:
            nested_counts = [value.nested for value in values.values() if value.nested is not None]
            lacks = lacking or bool(cut_short - values.keys())
            nested = _sum(facet.nested, width, nested_counts, lacking=lacks)
        shown_values.append(FacetValue(group.name, group.constraint, group.hits, nested))
    more = len(ordered) > len(shown_values) or any(_may_have_more(facet, width, counts) for counts in several)
    return FacetCounts(facet.id, facet.name, tuple(shown_values), lacking or bool(cut_short) or (facet.capped and more))


def _without_gaps(facet: BoundFacet, groups: Mapping[str, CountedGroup]) -> dict[str, CountedGroup]:
    unit, with_hits = facet.unit, [each for each in groups if each != narrowing.NO_VALUE]
    if unit is None or not with_hits:
        return dict(groups)
    first, last = (narrowing.read(end(with_hits, key=facet.place)) or "" for end in (min, max))
    by_beginning = dict[int, periods.Period]()
    for period in periods.between(unit, first, last, facet.zone):
        by_beginning[period.low] = period
        if len(by_beginning) > periods.MOST:
            raise BadQuery(f"The dates of {facet.id[:100]!r} are too far apart to count each {unit}.")
    every = dict(groups)
    for period in by_beginning.values():
        constraint = narrowing.write(period.name)
        every.setdefault(constraint, CountedGroup((0, period.low, ""), facet.name_of_period(period), constraint, 0))
    return every
