"""Facets of several repositories count what one with all of their objects counts, or say that they do not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unittest.mock import ANY

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.repository.search.answering.several import facet_sums
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.spelling.facets import BoundFacet, CountedGroup, FacetBinder, FacetLimits
from muniment.repository.search.aql.tree import FacetDefinition
from muniment.repository.search.index.contract import FacetCounts, FacetValue, Search, Visible
from tests.properties import shelves
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row
from tests.properties.test_facets import CATALOGUE, NOW, dated_rows, definitions, nested

AMPLE = 20_000
ALL = 1 << 40


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("facet-sums") / "index")
    yield made
    made.close()


@st.composite
def asked_definitions(draw: st.DrawFn) -> list[FacetDefinition]:
    """Two definitions, of which periods may be shown without a hit, too."""
    asked = []
    for at, one in enumerate((draw(st.one_of(definitions(), nested())), draw(nested()))):
        properties = one.properties
        if one.attributes == ("day",) and one.group_by in ("month", "quarter", "year"):
            properties = (*properties, ("skipEmptyValues", draw(st.sampled_from(["true", "false"]))))
        inner = one.nested and msgspec.structs.replace(one.nested, id=f"inner {at}")
        asked.append(msgspec.structs.replace(one, id=f"outer {at}", properties=properties, nested=inner))
    return asked


def bind(asked: Sequence[FacetDefinition], values: int = 2000) -> tuple[BoundFacet, ...]:
    return FacetBinder(CATALOGUE, NOW, FacetLimits(values=values)).bind(asked)


def count(
    shelf: IndexFolder, rows: Sequence[Row], bound: Sequence[BoundFacet], query: BoundQuery, visible: Visible
) -> tuple[FacetCounts, ...]:
    snapshot = shelf.holding([row.document() for row in rows])
    return snapshot.search(Search(query, visible, 0, 1, facets=tuple(bound))).facets


def count_in_each(
    shelf: IndexFolder,
    rows_of_each: Sequence[Sequence[Row]],
    asked: Sequence[FacetDefinition],
    rooms: Sequence[int],
    query: BoundQuery,
    visible: Visible,
) -> list[tuple[FacetCounts, ...]]:
    """The sums with as much room as each of these."""
    bound = bind(asked)
    questions = [facet for room in rooms for facet in bind(facet_sums.questions(asked, bound, room), ALL)]
    told = [count(shelf, rows, questions, query, visible) for rows in rows_of_each]
    sums, number = [], len(asked)
    for at, room in enumerate(rooms):
        of_room = [counts[at * number : (at + 1) * number] for counts in told]
        assert all(size(counts) <= room + 2 * 11 * 11 for counts in of_room)
        sums.append(facet_sums.add_up(bound, room, of_room))
    return sums


def size(several: Sequence[FacetCounts]) -> int:
    return sum(1 + (size([value.nested]) if value.nested else 0) for counts in several for value in counts.values)


def split(rows: Sequence[Row], numbers: Sequence[int]) -> list[list[Row]]:
    return [[row for row, number in zip(rows, numbers, strict=False) if number == one] for one in range(3)]


@given(
    dated_rows(),
    st.lists(st.integers(0, 2), min_size=7, max_size=7),
    asked_definitions(),
    shelves.queries(),
    shelves.callers(),
    st.sampled_from([4, 8, 16, 40]),
)
@settings(SLOW, max_examples=examples(8, 800))
def test_the_sums_are_the_counts_of_one_repository_with_all_objects(
    shelf: IndexFolder,
    rows: list[Row],
    numbers: list[int],
    asked: list[FacetDefinition],
    query: BoundQuery,
    visible: Visible,
    little: int,
) -> None:
    all_of_them = bind([_all_values(one) for one in asked], ALL)
    counted = count(shelf, rows, (*bind(asked), *all_of_them), query, visible)
    together, every = counted[: len(asked)], counted[len(asked) :]
    of_each = split(rows, numbers)
    with_room, without_room = count_in_each(shelf, of_each, asked, [AMPLE, little], query, visible)
    assert with_room == together
    for of_sums, of_one, all_values in zip(without_room, together, every, strict=True):
        check_honest(of_sums, of_one, all_values)
    # Nothing that the caller may not browse moves a sum, and what has room tells them nothing either.
    seen = [[row for row in some if shelves.may(visible, row)[0]] for some in of_each]
    assert count_in_each(shelf, seen, asked, [AMPLE, little], query, visible) == [with_room, without_room]


def check_honest(of_sums: FacetCounts, of_one: FacetCounts, all_values: FacetCounts) -> None:
    """Sums are those of one repository, or they say that they lack something, and are never too high."""
    if not of_sums.partial:
        assert without_nested(of_sums) == without_nested(of_one)
    most = {value.constraint: value for value in all_values.values}
    exact = {value.constraint: value for value in of_one.values}
    for value in of_sums.values:
        assert value.count <= most[value.constraint].count
        if value.nested is not None:
            inner = most[value.constraint].nested
            assert inner is not None
            if (one := exact.get(value.constraint)) and one.nested:
                check_honest(value.nested, one.nested, inner)


def without_nested(counts: FacetCounts) -> FacetCounts:
    values = tuple(msgspec.structs.replace(value, nested=ANY) for value in counts.values)
    return msgspec.structs.replace(counts, values=values)


def _all_values(definition: FacetDefinition) -> FacetDefinition:
    inner = definition.nested and _all_values(definition.nested)
    return msgspec.structs.replace(definition, max_values=10_000, nested=inner)


class Thing(NamedTuple):
    """An object of a repository that is made up, with the values of two properties."""

    colour: str
    day: int

    def group(self, facet: BoundFacet) -> str:
        return self.colour if facet.name == "colour" else f"2024-{self.day:02}"


def tell(facet: BoundFacet, things: Sequence[Thing]) -> FacetCounts:
    """Count as an engine does, in plain Python."""
    hits = Counter(thing.group(facet) for thing in things)
    if facet.all_periods and hits:
        first, last = (int(end(hits)[-2:]) for end in (min, max))
        hits.update({f"2024-{month:02}": 0 for month in range(first, last + 1)})
    ordered = facet.in_order(CountedGroup(facet.place(name), name, name, number) for name, number in hits.items())
    values = []
    for _, name, _, number in ordered[: facet.limit]:
        within = [thing for thing in things if thing.group(facet) == name]
        nested = None if facet.nested is None else tell(facet.nested, within)
        values.append(FacetValue(name, name, number, nested))
    return FacetCounts(facet.id, facet.name, tuple(values), facet.capped and len(ordered) > len(values))


def made_up_facets() -> st.SearchStrategy[FacetDefinition]:
    sorts = st.sampled_from([None, "FREQUENCY", "VALUE_ASCENDING", "VALUE_DESCENDING"])
    gaps = st.sampled_from([(), (("skipEmptyValues", "false"),)])

    def made(facet_id: str, limits: list[int], nested: FacetDefinition | None) -> st.SearchStrategy[FacetDefinition]:
        some, within = st.sampled_from(limits), st.just(nested)
        by_value = st.builds(
            FacetDefinition,
            st.just(facet_id),
            st.just(("colour",)),
            st.just("string"),
            sorts,
            st.just(()),
            some,
            within,
        )
        by_month = st.builds(
            FacetDefinition, st.just(facet_id), st.just(("day",)), st.just("month"), sorts, gaps, some, within
        )
        return st.one_of(by_value, by_month)

    with_nested = made("i", [1, 2, 10, -1], None).flatmap(lambda inner: made("o", [1, 2, 5], inner))
    return st.one_of(made("o", [1, 2, 5, -1], None), with_nested)


THINGS = st.lists(st.builds(Thing, st.sampled_from("abcdefgh"), st.integers(1, 12)), max_size=25)


ROOM_FOR_ALL = 100_000
"""Room for one more value than there are, with as many values within each as a search may show."""


@given(
    st.lists(THINGS, min_size=1, max_size=4),
    made_up_facets(),
    st.sampled_from([1, 2, 4, 8, 16, 40, 2000, ROOM_FOR_ALL]),
)
@settings(max_examples=examples(100, 20_000), deadline=None)
def test_sums_are_exact_or_say_that_they_are_not(
    things_of_each: list[list[Thing]], asked: FacetDefinition, room: int
) -> None:
    bound = bind([asked])
    questions = bind(facet_sums.questions([asked], bound, room), ALL)
    told = [[tell(one, things) for one in questions] for things in things_of_each]
    (of_sums,) = facet_sums.add_up(bound, room, told)
    every_thing = [thing for things in things_of_each for thing in things]
    of_one = tell(bound[0], every_thing)
    if room == ROOM_FOR_ALL:
        assert of_sums == of_one
    check_honest(of_sums, of_one, tell(bind([_all_values(asked)], ALL)[0], every_thing))


def colours(**counts: int) -> FacetCounts:
    return FacetCounts("c", "colour", tuple(FacetValue(name, name, hits) for name, hits in counts.items()))


COLOUR = FacetDefinition("c", ("colour",), max_values=1)


def test_a_value_that_is_rare_in_each_repository_may_be_the_most_frequent_of_all() -> None:
    bound = bind([COLOUR])
    (asked,) = facet_sums.questions([COLOUR], bound, 2000)
    assert asked.max_values == 2000
    told = [[colours(red=5, blue=4)], [colours(green=5, blue=4)]]
    assert facet_sums.add_up(bound, 2000, told) == (colours(blue=8),)


def test_a_repository_without_room_for_all_values_makes_the_sums_partial() -> None:
    bound = bind([COLOUR])
    cut_short, whole = [colours(red=5, blue=4, pink=3)], [colours(green=5)]
    assert facet_sums.add_up(bound, 4, [cut_short, whole])[0].partial is False
    (asked,) = facet_sums.questions([COLOUR], bound, 3)
    assert asked.max_values == 3
    assert facet_sums.add_up(bound, 3, [cut_short, whole])[0].partial is True
    # Where no other repository has a value, its own counts are all there are.
    assert facet_sums.add_up(bound, 3, [cut_short, [colours()]]) == (colours(red=5),)
    in_order = bind([msgspec.structs.replace(COLOUR, sort="VALUE_ASCENDING")])
    assert facet_sums.add_up(in_order, 3, [[colours(blue=4, pink=3)], whole]) == (colours(blue=4),)


def test_room_is_shared_by_repositories_and_by_definitions() -> None:
    assert [facet_sums.room(2000, number) for number in (0, 1, 2, 10, 20)] == [20_000, 20_000, 10_000, 2000, 2000]
    several = [msgspec.structs.replace(COLOUR, id=str(number)) for number in range(4)]
    assert {one.max_values for one in facet_sums.questions(several, bind(several), 2000)} == {500}
    # Each value that is counted within asks the engine once.
    outer = FacetDefinition("o", ("colour",), nested=FacetDefinition("i", ("size",)))
    (asked,) = facet_sums.questions([outer], bind([outer]), 1_000_000_000)
    assert asked.nested is not None
    assert asked.max_values <= 1000
    ranges = FacetDefinition("r", ("size",), "range", properties=(("range", ":0,0:5,5:"),), nested=COLOUR)
    (asked,) = facet_sums.questions([ranges], bind([ranges]), 2000)
    assert asked.max_values == 3
