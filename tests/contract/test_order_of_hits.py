"""Without keywords what was modified last comes first; what is equal comes in the order in which it was made."""

import itertools

import pytest

from muniment.ground.clock import SECOND
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.results import search
from muniment.repository.search.aql.tree import Expression, PropertyList, Query
from muniment.repository.store.permissions.principals import Principals
from tests.shelf import BORIS, MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")

EVERYTHING = None
NAMED_PUMP = PropertyList("object_name", "IN", ("pump",))


def page(
    shelf: Shelf, asked: Expression | None = EVERYTHING, items: int = 100, number: int = 1, who: Principals = MARTA
) -> list[str]:
    question = SearchQuestion(Query((), asked), number, items, include_total=True)
    snapshot = shelf.index.snapshot()
    with shelf.database.read() as cx:
        found = search(shelf.inquiry(cx, who, question, snapshot))
    return [each.object_id for each in found.hits]


def paged(shelf: Shelf, items: int, asked: Expression | None = EVERYTHING, who: Principals = MARTA) -> list[str]:
    pages = (page(shelf, asked, items, number, who) for number in itertools.count(1))
    return list(itertools.chain.from_iterable(itertools.takewhile(bool, pages)))


def test_the_last_modified_comes_first(shelf: Shelf) -> None:
    made = []
    for _ in range(6):
        made.append(shelf.add("pump"))
        shelf.now += 1  # a microsecond, which no date on the wire shows
    shelf.catch_up()
    assert page(shelf) == made[::-1]
    assert page(shelf, NAMED_PUMP) == made[::-1]


def test_a_changed_object_moves_to_the_front(shelf: Shelf) -> None:
    made = [shelf.add("pump", acl="public") for _ in range(5)]
    shelf.catch_up()
    assert page(shelf) == made
    shelf.now += SECOND
    shelf.change(made[3], {"title": "a title"})
    shelf.catch_up()
    assert page(shelf) == [made[3], *made[:3], made[4]]
    shelf.now += SECOND
    shelf.change(made[1], {"acl_name": "private"})
    shelf.catch_up()
    assert page(shelf) == [made[1], made[3], made[0], made[2], made[4]]
    assert page(shelf, who=BORIS) == [made[3], made[0], made[2], made[4]]


def test_text_that_was_read_moves_nothing(shelf: Shelf) -> None:
    first = shelf.add("pump")
    shelf.now += SECOND
    second = shelf.add("pump")
    shelf.now += SECOND
    shelf.replace(first, "words")
    shelf.catch_up()
    assert page(shelf) == [first, second]
    shelf.now += SECOND
    shelf.extract("words")
    third = shelf.add("pump")
    shelf.catch_up()
    assert page(shelf) == [third, first, second]


@pytest.mark.parametrize("items", [1, 2, 3, 7])
@pytest.mark.parametrize("asked", [EVERYTHING, NAMED_PUMP])
def test_pages_joined_are_the_whole_while_objects_are_equal(shelf: Shelf, items: int, asked: Expression | None) -> None:
    """In every group of equals the pages have their edges somewhere else."""
    groups = []
    for size in (4, 1, 3, 5, 1, 1, 2):
        groups.append([shelf.add("pump", acl="public") for _ in range(size)])
        shelf.now += SECOND
        shelf.catch_up()  # several commits, so that the engine has several segments
    for object_id in (groups[3][1], groups[0][2], groups[3][0]):
        shelf.change(object_id, {"title": "modified at one time, in another order than made"})
    shelf.catch_up()
    changed = [groups[0].pop(2), groups[3].pop(0), groups[3].pop(0)]
    wanted = [*changed, *itertools.chain.from_iterable(reversed(groups))]
    assert page(shelf, asked) == wanted
    assert paged(shelf, items, asked) == wanted
    hidden = wanted[::4]
    for object_id in hidden:
        shelf.change(object_id, {"acl_name": "private"})
    assert paged(shelf, items, asked, BORIS) == [each for each in wanted if each not in hidden]


def test_equal_scores_come_in_the_order_in_which_objects_were_made(shelf: Shelf) -> None:
    made = [shelf.add("pump", "valve") for _ in range(12)]
    shelf.now += SECOND
    shelf.change(made[2], {"subject": ""})
    shelf.catch_up()
    for word in ("pump", "valve"):
        assert [each.object_id for each in shelf.page(MARTA, word).hits] == made
        joined = [each.object_id for n in (1, 2, 3) for each in shelf.page(MARTA, word, items=5, number=n).hits]
        assert joined == made
