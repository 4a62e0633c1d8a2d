"""A property becomes searchable, or no longer is: what is indexed again, and what do searches say meanwhile?"""

from collections.abc import Iterator, Sequence

import pytest

from muniment.repository.refusals import InUse, NotSearchable
from muniment.repository.search.agent import agent, reindexer
from muniment.repository.search.agent.reindexer import Reindexer
from muniment.repository.search.answering.ordering import sorting
from muniment.repository.search.aql.tree import Expression, Property, SortCriterion
from muniment.repository.search.index.document import Document
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.objects.types import reindexing, type_editing, types_file
from muniment.repository.store.objects.types.type_forms import PropertyForm, TypeForm
from tests.shelf import MARTA, Shelf

WELLS = b"""
[types.well]
[types.well.properties]
depth = "integer"
nickname = { kind = "string", searchable = false }
[types.oil_well]
parent = "well"
"""

NICKNAME = Property("nickname", "EQUAL", "gusher")


@pytest.fixture
def wells(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """Three wells with a nickname, one without, and a document; one bite notes two of them."""
    monkeypatch.setattr(reindexing, "NOTED", 2)
    monkeypatch.setattr(reindexer, "_LOOK_SECONDS", 0.0)
    with shelf.database.begin() as cx:
        types_file.load(cx, shelf.repository.id, WELLS, shelf.now)
    for number, kind in enumerate(("well", "oil_well", "well")):
        shelf.create({"object_name": f"w{number}", "nickname": "gusher"}, type_name=kind)
    shelf.create({"object_name": "dry"}, type_name="well")
    shelf.create({"object_name": "the word gusher in a document", "title": '"nickname":'})
    shelf.catch_up()
    yield shelf
    shelf.close()


def written(shelf: Shelf) -> int:
    """Let the agent do all there is to do, and count the documents that it writes."""
    apply, count = shelf.writer.apply, 0

    def counting(documents: Sequence[Document], keys: Sequence[str], position: Position) -> None:
        nonlocal count
        count += len(documents)
        apply(documents, keys, position)

    shelf.writer.apply = counting  # type: ignore[method-assign, assignment]
    noting = Reindexer(shelf.database, lambda _id: shelf.writer.position)
    agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now)
    while noting.advance(shelf.now):
        agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now)
    shelf.writer.apply = apply  # type: ignore[method-assign]
    with shelf.database.read() as cx:
        assert not reindexing.under_way(cx)
    shelf.writer.apply((), (), shelf.writer.position)
    assert shelf.report().sound
    return count


def set_searchable(shelf: Shelf, name: str, searchable: bool) -> None:
    form = TypeForm("well", properties=[PropertyForm(name, searchable=searchable)])
    with shelf.database.begin() as cx:
        type_editing.change_type(cx, shelf.repository.id, form, shelf.now)


def test_what_is_not_searchable_is_in_no_document_and_no_query_uses_it(wells: Shelf) -> None:
    assert [wells.read(each)[0].name for each in wells.find(MARTA, "gusher")] == ["the word gusher in a document"]
    with pytest.raises(NotSearchable, match="not searchable"):
        wells.find(MARTA, NICKNAME)
    with pytest.raises(NotSearchable, match="not searchable"):
        sorting.check([SortCriterion("nickname")], wells.catalogue())
    assert wells.report().sound


def test_a_new_property_indexes_nothing_again(wells: Shelf) -> None:
    form = TypeForm("well", properties=[PropertyForm("owner_since", "date", default="2024-01-01")])
    with wells.database.begin() as cx:
        type_editing.change_type(cx, wells.repository.id, form, wells.now)
    assert written(wells) == 0
    assert wells.find(MARTA, Property("owner_since", "IS_NOT_NULL", "")) == []


def test_a_newly_searchable_property_indexes_only_the_objects_that_have_a_value(wells: Shelf) -> None:
    before = {each: wells.read(each)[0].revision for each in wells.find(MARTA, "w*")}
    set_searchable(wells, "nickname", True)
    with pytest.raises(NotSearchable, match="just now"):
        wells.find(MARTA, NICKNAME)
    assert written(wells) == 3
    assert len(wells.find(MARTA, NICKNAME)) == 3
    assert len(wells.find(MARTA, "gusher")) == 4
    assert before == {each: wells.read(each)[0].revision for each in before}


def test_a_property_that_was_removed_while_it_was_reindexed_is_indexed_if_it_is_added_again(wells: Shelf) -> None:
    set_searchable(wells, "depth", False)
    with wells.database.begin() as cx:
        type_editing.remove_property(cx, wells.repository.id, "well", "depth")
        form = TypeForm("well", properties=[PropertyForm("depth", "integer")])
        type_editing.change_type(cx, wells.repository.id, form, wells.now)
    set_searchable(wells, "nickname", True)
    wells.create({"object_name": "deep", "depth": 4000}, type_name="well")
    wells.catch_up()
    assert [wells.read(each)[0].name for each in wells.find(MARTA, Property("depth", "EQUAL", "4000"))] == ["deep"]


def test_a_property_without_a_value_indexes_nothing(wells: Shelf) -> None:
    set_searchable(wells, "depth", False)
    assert written(wells) == 0


@pytest.mark.slow
def test_a_property_that_is_searchable_no_more_leaves_the_index(wells: Shelf) -> None:
    set_searchable(wells, "nickname", True)
    assert written(wells) == 3
    set_searchable(wells, "nickname", False)
    with pytest.raises(NotSearchable):
        wells.find(MARTA, NICKNAME)
    assert written(wells) == 3
    assert len(wells.find(MARTA, "gusher")) == 1


@pytest.mark.slow
def test_searches_are_right_after_each_bite_and_a_kill_loses_none(wells: Shelf) -> None:
    """The steps come one by one, each in an agent of its own; the index equals the database after each of them."""
    found = wells.find(MARTA, "w*")
    set_searchable(wells, "nickname", True)
    with pytest.raises(InUse):
        set_searchable(wells, "nickname", False)
    seen: list[int] = []
    while True:
        with wells.database.read() as cx:
            under_way = reindexing.under_way(cx)
        if not under_way:
            break
        moved = Reindexer(wells.database, lambda _id: wells.writer.position).advance(wells.now)
        assert wells.find(MARTA, "w*") == found  # nothing is hidden meanwhile
        late = wells.create({"object_name": "late", "nickname": "gusher"}, type_name="well") if not seen else None
        wells.catch_up()
        assert wells.report().sound
        seen.append(len(wells.find(MARTA, "gusher")))
        assert moved
        assert late is None or late.id not in wells.find(MARTA, "gusher")
    assert seen == [3, 5, 5, 5]
    assert len(wells.find(MARTA, NICKNAME)) == 4


def test_queries_wait_until_the_index_has_followed(wells: Shelf) -> None:
    set_searchable(wells, "nickname", True)
    behind = wells.writer.position
    noting = Reindexer(wells.database, lambda _id: behind)
    for _ in range(6):
        noting.advance(wells.now)
    with pytest.raises(NotSearchable):
        wells.find(MARTA, NICKNAME)
    assert written(wells) == 3
    assert len(wells.find(MARTA, NICKNAME)) == 3


def test_a_change_of_this_kind_hides_nothing(wells: Shelf) -> None:
    expression: Expression = Property("object_name", "BEGINS_WITH", "w")
    found = wells.find(MARTA, expression)
    with wells.database.begin() as cx:
        changes.note_all(cx, wells.repository.id, found, "type", wells.now)
    assert wells.find(MARTA, expression) == found
