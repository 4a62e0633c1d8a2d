"""What several repositories are asked in one search, and in which order their hits stand together."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.refusals import BadSort
from muniment.repository.search.answering.results import Hit, HitPage
from muniment.repository.search.answering.several import federation
from muniment.repository.search.answering.several.federation import SortedHits
from muniment.repository.search.aql.tree import Location, Query, SortCriterion
from muniment.repository.store.change_log.changes import Position


def hit(name: str, score: float = 0.0, updated: int = 0) -> Hit:
    return Hit(name, name, "marta@staff", "", updated, score, ())


def merged(query: Query, *found: list[Hit]) -> list[tuple[int, str]]:
    return [(number, one.object_id) for number, one in federation.merge(query, map(SortedHits, found))]


def test_the_higher_score_stands_first_whichever_repository_has_it() -> None:
    assert merged(Query(), [hit("a", 3.0), hit("b", 1.0)], [], [hit("c", 2.0), hit("d", 0.5)]) == [
        (0, "a"),
        (2, "c"),
        (0, "b"),
        (2, "d"),
    ]


def test_without_scores_the_newest_stands_first() -> None:
    assert merged(Query(), [hit("a", updated=5), hit("b", updated=1)], [hit("c", updated=9)]) == [
        (1, "c"),
        (0, "a"),
        (0, "b"),
    ]


def test_hits_of_one_repository_keep_their_order() -> None:
    """Equal scores of a repository come in the order of its index, whatever their age."""
    assert merged(Query(), [hit("a", 1.0, 1), hit("b", 1.0, 9)], [hit("c", 1.0, 5)]) == [(1, "c"), (0, "a"), (0, "b")]


@pytest.mark.parametrize(("ascending", "order"), [(True, ["a", "c", "b"]), (False, ["b", "c", "a"])])
def test_the_last_modification_sorts_without_regard_to_scores(ascending: bool, order: list[str]) -> None:
    query = Query(sorts=(SortCriterion("r_modify_date", ascending=ascending),))
    own = [hit("a", 9.0, 1), hit("b", 1.0, 9)]
    runs = [
        SortedHits(own if ascending else own[::-1], {"a": (1, 1), "b": (9, 2)}),
        SortedHits([hit("c", 5.0, 5)], {"c": (5, 3)}),
    ]
    assert [each.object_id for _, each in federation.merge(query, runs)] == order


PLACES = st.tuples(
    st.one_of(st.none(), st.sampled_from(["", "a", "B", "\uffff", "\U0001f600"])),
    st.one_of(st.none(), st.sampled_from([-1, 0, 2**62])),
)


@pytest.mark.slow
@given(
    st.lists(st.lists(PLACES, max_size=4), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_sorted_hits_of_several_stand_as_those_of_one_repository(
    places_of_each: list[list[tuple[str | None, int | None]]], first_up: bool, second_up: bool, chance: random.Random
) -> None:
    """By the first property, then by the second, then as they were made; whatever has no value comes last."""
    query = Query(sorts=(SortCriterion("title", ascending=first_up), SortCriterion("size", ascending=second_up)))
    counters = list(range(sum(map(len, places_of_each))))
    chance.shuffle(counters)
    numbered = [[(*place, counters.pop()) for place in places] for places in places_of_each]

    def in_order(places: list[tuple[str | None, int | None, int]]) -> list[tuple[str | None, int | None, int]]:
        ordered = sorted(places, key=lambda place: place[2])
        for at, up in ((1, second_up), (0, first_up)):
            with_value = [place for place in ordered if place[at] is not None]
            with_value.sort(key=lambda place: place[at], reverse=not up)  # type: ignore[arg-type,return-value]
            ordered = with_value + [place for place in ordered if place[at] is None]
        return ordered

    runs = [
        SortedHits([hit(str(place[2])) for place in in_order(places)], {str(place[2]): place for place in places})
        for places in numbered
    ]
    expected = in_order([place for places in numbered for place in places])
    assert [int(each.object_id) for _, each in federation.merge(query, runs)] == [place[2] for place in expected]


def test_kinds_of_sorted_properties_agree() -> None:
    sorts = (SortCriterion("title", place="sorts[0]"), SortCriterion("size", place="sorts[1]"))
    federation.check_kinds(sorts, {"main": ("string", "integer"), "archive": ("string", "integer")})
    federation.check_kinds(sorts, {})
    with pytest.raises(BadSort, match=r"'size' is of kind integer in 'main' and of kind string in 'archive'.*sorts"):
        federation.check_kinds(sorts, {"main": ("string", "integer"), "archive": ("string", "string")})


def test_hits_that_fed_the_facets_are_added_up_where_not_all_did() -> None:
    def page(total: int | None, facet_hits: int | None) -> HitPage:
        return HitPage((), 1, 10, total, False, Position(0, 0), facet_hits=facet_hits)

    assert federation.fed([]) is None
    assert federation.fed([page(7, None), page(None, None)]) is None
    assert federation.fed([page(7, None), page(20, 10)]) == 17


def test_a_location_is_asked_of_the_repository_that_it_names() -> None:
    anywhere, there = Location("/x"), Location("/y", repository="there")
    query = Query(locations=(anywhere, there), repositories=("here", "there"))
    assert federation.of_repository(query, "here") == Query(locations=(anywhere,))
    assert federation.of_repository(query, "there") == Query(locations=(anywhere, there))
    assert federation.of_repository(Query(locations=(there,)), "here") is None
    assert federation.of_repository(Query(), "here") == Query()
