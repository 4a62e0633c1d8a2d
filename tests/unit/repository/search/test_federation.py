"""What several repositories are asked in one search, and in which order their hits stand together."""

import pytest

from muniment.repository.aql.tree import FacetDefinition, Location, Query, SortCriterion
from muniment.repository.refusals import BadSort, NotOfferedYet
from muniment.repository.search import federation
from muniment.repository.search.results import Hit


def hit(name: str, score: float = 0.0, updated: int = 0) -> Hit:
    return Hit(name, name, "marta@staff", "", updated, score, ())


def merged(query: Query, *found: list[Hit]) -> list[tuple[int, str]]:
    return [(number, one.object_id) for number, one in federation.merge(query, found)]


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
    federation.check(query)
    own = [hit("a", 9.0, 1), hit("b", 1.0, 9)]
    found = merged(query, own if ascending else own[::-1], [hit("c", 5.0, 5)])
    assert [name for _, name in found] == order


def test_other_sorts_and_facets_are_refused() -> None:
    with pytest.raises(BadSort):
        federation.check(Query(sorts=(SortCriterion("title"),)))
    with pytest.raises(BadSort):
        federation.check(Query(sorts=(SortCriterion("r_modify_date"), SortCriterion("title"))))
    with pytest.raises(NotOfferedYet):
        federation.check(Query(facets=(FacetDefinition("title", ("title",)),)))


def test_a_location_is_asked_of_the_repository_that_it_names() -> None:
    anywhere, there = Location("/x"), Location("/y", repository="there")
    query = Query(locations=(anywhere, there), repositories=("here", "there"))
    assert federation.of_repository(query, "here") == Query(locations=(anywhere,))
    assert federation.of_repository(query, "there") == Query(locations=(anywhere, there))
    assert federation.of_repository(Query(locations=(there,)), "here") is None
    assert federation.of_repository(Query(), "here") == Query()
