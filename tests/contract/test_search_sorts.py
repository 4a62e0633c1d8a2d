"""Hits in the order of sorts: by GET and in a query document, as lists are ordered, on both databases."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.folding import fold
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import NotSearchable
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.ordering import sorting
from muniment.repository.search.aql.tree import Query, SortCriterion
from muniment.repository.store.filters.tree import SortKey
from muniment.repository.store.objects import inventory, table
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions.principals import Principals
from tests import plans
from tests.shelf import ADMIN, BORIS, MARTA, Shelf
from tests.walkers import Walkers, ids, open_walkers

pytestmark = pytest.mark.campaign_on("postgresql")

TITLES = ["b", "A", "a", "B", "Éa", "ea", "", "z" * 300, "z" * 300 + "a", "\u65e5\u672c", "10", "9"]


@pytest.fixture
def walkers(repository_db: Database, now: Instant) -> Iterator[Walkers]:
    """Objects with titles in a random order, of which some have the same subject, or none."""
    with open_walkers(repository_db, now, [], RepositoryOptions(max_sorted_hits=20)) as walkers:
        shelf = walkers.shelf
        titles = random.Random(7).sample(TITLES, len(TITLES))
        for number, title in enumerate(titles):
            shelf.now += SECOND * (number % 3)
            made_id = shelf.add(f"pump {number}", "valve", "public")
            walkers.change(made_id, title=title, **({"subject": str(number % 2)} if number % 3 else {}))
            walkers.objects[made_id] = title
        shelf.catch_up()
        yield walkers


def found(walkers: Walkers, parameters: str) -> list[str]:
    """Name the hits of a GET."""
    return ids(walkers.get("marta", f"/rest/repositories/{walkers.shelf.repository.name}/search?{parameters}"))


def posted(walkers: Walkers, sorts: str) -> list[str]:
    """Name the hits of a query document with these sorts."""
    document = f'<search xmlns="urn:muniment:vocab"><sorts>{sorts}</sorts></search>'
    headers = {"Authorization": "Bearer marta", "Accept": "application/json", "Content-Type": "application/xml"}
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
    answer = walkers.clients[0].post(here, content=document, headers=headers)
    assert answer.status_code == 200, answer.text
    return ids(answer.json())


def by_title(walkers: Walkers, key: Any, *, descending: bool = False) -> list[str]:
    """Order the objects by their titles, those without a title last, equal ones as they were made."""
    with_title = [each for each, title in walkers.objects.items() if title]
    without = [each for each, title in walkers.objects.items() if not title]
    return sorted(with_title, key=lambda each: key(walkers.objects[each])[:255], reverse=descending) + without


def test_texts_are_ordered_by_code_point_or_without_case(walkers: Walkers) -> None:
    for word in ("", "q=valve&"):
        assert found(walkers, f"{word}sort=title")[:9] == by_title(walkers, str)[:9]
        assert found(walkers, f"{word}sort=title%20asc%20no-case")[:2] == by_title(walkers, fold)[:2]
    folded = [fold(walkers.objects[each])[:255] for each in found(walkers, "sort=title%20no-case")]
    assert folded == [*sorted(text for text in folded if text), ""]
    downwards = [fold(walkers.objects[each])[:255] for each in found(walkers, "sort=title%20DESC%20no-case")]
    assert downwards == [*sorted((text for text in folded if text), reverse=True), ""]


def test_a_query_document_says_its_sorts(walkers: Walkers) -> None:
    assert posted(walkers, '<sort ascii="true">title</sort>') == found(walkers, "sort=title")
    assert posted(walkers, '<sort ascending="false" ascii="true" lang="en">title</sort>') == found(
        walkers, "sort=title%20desc"
    )
    assert posted(walkers, '<sort lang="en">title</sort>') == found(walkers, "sort=title%20no-case")
    both = '<sort ascending="false">subject</sort><sort ascending="true">object_name</sort>'
    assert posted(walkers, both) == found(walkers, "sort=subject%20desc%20no-case,object_name%20no-case")


def test_a_list_and_a_search_have_one_order(walkers: Walkers) -> None:
    here = f"/rest/repositories/{walkers.shelf.repository.name}"
    for sort in (
        "title",
        "title desc no-case",
        "subject,title desc",
        "subject desc,r_modify_date",
        "r_modify_date desc,object_name",
        "r_full_content_size,owner_name,r_object_id desc",
        "r_object_type,a_content_type,r_creation_date desc",
    ):
        listed = walkers.get("marta", f"{here}/search?sort={sort}")
        assert len(ids(listed)) == len(TITLES)
        values = [entry["id"] for entry in listed["entries"]]
        pages = [found(walkers, f"sort={sort}&items-per-page=5&page={page}") for page in (1, 2, 3)]
        assert list(itertools.chain.from_iterable(pages)) == values


def test_the_last_modification_is_ordered_both_ways_by_the_index(walkers: Walkers) -> None:
    by_index = found(walkers, "sort=r_modify_date%20desc")
    assert by_index == found(walkers, "")
    assert found(walkers, "sort=r_modify_date") == found(walkers, "sort=r_modify_date,r_full_content_size%20desc")
    for items in (1, 2, 5):
        pages = [found(walkers, f"sort=r_modify_date&items-per-page={items}&page={page}") for page in range(1, 13)]
        assert list(itertools.chain.from_iterable(pages)) == found(walkers, "sort=r_modify_date")


def test_hits_that_are_sorted_have_their_scores_and_excerpts(walkers: Walkers) -> None:
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search?q=valve&include-total=true"
    plain, sorted_page = (walkers.get("marta", here + sort) for sort in ("", "&sort=title"))
    told = [
        {entry["id"]: (entry["score"], entry["summary"], entry["terms"]) for entry in page["entries"]}
        for page in (plain, sorted_page)
    ]
    assert told[0] == told[1]
    assert plain["total"] == sorted_page["total"] == len(TITLES)


REFUSED = (
    ("sort=unheard_of", "E_INVALID_ATTR_NAME", "character 1"),
    ("sort=title,keywords", "E_BAD_SORT", "several values"),
    ("sort=acl_name", "E_BAD_SORT", "cannot be sorted by"),
    ("sort=title%20upwards", "E_BAD_SORT", "character 1"),
    ("sort=title,title", "E_BAD_SORT", "twice"),
    ("sort=title,", "E_BAD_SORT", "character 7"),
    ("sort=a,b,c,d,e,f", "E_BAD_SORT", "more than 5"),
    ("q=nothing&sort=unheard_of", "E_INVALID_ATTR_NAME", "unheard_of"),
    ("link=x&sort=title", "E_MALFORMED_REQUEST", "whole query"),
)


@pytest.mark.parametrize(("parameters", "code", "said"), REFUSED)
def test_a_sort_that_cannot_be_obeyed_is_refused(walkers: Walkers, parameters: str, code: str, said: str) -> None:
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search?{parameters}"
    answer = walkers.clients[0].get(here, headers={"Authorization": "Bearer marta", "Accept": "application/json"})
    assert answer.status_code == 400
    assert (answer.json()["code"], said in answer.json()["message"]) == (code, True), answer.text


def test_a_document_with_a_wrong_sort_is_refused_with_its_place(walkers: Walkers) -> None:
    headers = {"Authorization": "Bearer marta", "Accept": "application/json", "Content-Type": "application/xml"}
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
    for name, code in (("unheard_of", "E_INVALID_ATTR_NAME"), ("keywords", "E_BAD_SORT")):
        document = f'<search xmlns="urn:muniment:vocab">\n<sorts><sort>{name}</sort></sorts></search>'
        answer = walkers.clients[0].post(here, content=document, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert "line 2" in answer.json()["message"]


def test_too_many_hits_to_sort_are_refused_but_not_by_modification(walkers: Walkers) -> None:
    for number in range(9):
        walkers.shelf.add(f"more {number}", "gasket", "public")
    walkers.shelf.catch_up()
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
    answer = walkers.clients[0].get(f"{here}?sort=title", headers={"Authorization": "Bearer marta"})
    assert (answer.status_code, "more than 20 hits" in answer.text) == (400, True)
    assert len(found(walkers, "q=valve&sort=title")) == len(TITLES)
    assert len(found(walkers, "sort=r_modify_date")) == len(TITLES) + 9


def test_a_sort_looks_objects_up_by_their_counters(walkers: Walkers) -> None:
    """One statement orders all hits, and no index of all objects is read for it."""
    view = walkers.shelf.view(MARTA)

    def sort(cx: Connection) -> None:
        lists.sort(cx, view, [1, 2, 3], lists.order_of(cx, view, [SortKey("title", False, True, "")]), 0, 10)

    ((_, steps),) = plans.steps(walkers.shelf.database, sort)
    if walkers.shelf.database.dialect == "sqlite":
        assert any("SEARCH objects USING INTEGER PRIMARY KEY" in step for step in steps), steps


FORM = ObjectType(
    "form",
    "document",
    (
        PropertyDefinition("whole", "integer"),
        PropertyDefinition("part", "double"),
        PropertyDefinition("true", "boolean"),
        PropertyDefinition("day", "date"),
        PropertyDefinition("other", "id"),
    ),
)
VALUES: dict[str, list[Any]] = {
    "title": ["", "b", "A", "a", "B", "Éa", "ea", "\u65e5\u672c", "10", "9", "\U0001f600", "\uffee", "a b"],
    "subject": ["", "x", "X", "y", "12:30", "2024-01-01T00:00:00Z"],
    "whole": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, -1, 0, 7],
    "part": [-1.5, 0.0, -0.0, 1e300, -1e300, 0.1, 3, 2**53],
    "true": [True, False],
    "day": ["1999-12-31", "2024-03-30T23:30:00.001Z", "2024-03-30T23:30:00.002Z", "0900-01-01"],
    "other": [f"09000000000000{number:02x}" for number in range(4)],
}
KEYS = [*VALUES, "object_name", "owner_name", "r_object_type", "r_object_id", "r_modify_date", "r_full_content_size"]
KEYS += ["a_content_type", "r_modifier", "r_creator_name"]


@pytest.fixture
def filled(repository_db: Database, now: Instant, tmp_path: Path) -> Iterator[Shelf]:
    """Objects with values of every kind or without, written to the index in several commits."""
    shelf, chance = Shelf(repository_db, tmp_path, now), random.Random(53)
    with repository_db.begin() as cx:
        type_editing.add_type(cx, shelf.repository.id, FORM, now)
    cabinet = shelf.create({"object_name": "c"}, MARTA, "cabinet").id
    for number in range(60):
        given = {name: chance.choice(values) for name, values in VALUES.items() if chance.random() < 0.7}
        kind = "form" if number % 4 else "document"
        given = {name: value for name, value in given.items() if kind == "form" or name in ("title", "subject")}
        given |= {"object_name": f"n{number % 7}", "acl_name": "public"}
        owner = MARTA if number % 5 == 0 else BORIS
        content = shelf.content("pump " * (number % 5)) if number % 3 else None
        shelf.create(given, owner, kind, None if number % 5 else cabinet, content)
        shelf.now += number % 2
        if number % 13 == 0:
            shelf.catch_up()
    shelf.catch_up()
    yield shelf
    shelf.close()


def both_ways(shelf: Shelf, caller: Principals, sorts: list[SortCriterion]) -> tuple[list[str] | None, list[str]]:
    """Name the hits in the order of these sorts by the index alone, if it knows it, and by the database."""
    question = SearchQuestion(Query(sorts=tuple(sorts)), 1, 100)
    snapshot = shelf.index.snapshot()
    with shelf.database.read() as cx:
        inquiry = shelf.inquiry(cx, caller, question, snapshot)
        search = results.prepare(inquiry)
        ids = {summary.seq: key for key, summary in inventory.summaries(cx, shelf.repository.id, every_id(cx)).items()}
        by_database: list[str] = []
        by_index: list[str] | None = []
        for offset in (0, 1, 9, 40):
            part = msgspec.structs.replace(search, offset=offset, limit=17)
            by_database += [ids[counter] for counter in sorting.counters(inquiry, part)]
            answer = sorting.sorted_answer(inquiry, part)
            by_index = None if answer is None or by_index is None else by_index + [hit.object_id for hit in answer.hits]
    return by_index, by_database


def every_id(cx: Connection) -> list[str]:
    """List the ids of all objects."""
    return list(cx.scalars(sa.select(table.objects.c.id)))


@pytest.mark.parametrize("seed", range(4))
def test_the_index_and_the_database_know_one_order(filled: Shelf, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        names = chance.sample(KEYS, chance.choice((1, 1, 2, 3, 5)))
        sorts = [SortCriterion(name, chance.random() < 0.5, ascii=chance.random() < 0.5) for name in names]
        if names == ["r_modify_date"]:
            continue
        by_index, by_database = both_ways(filled, MARTA, sorts)
        assert by_index == by_database, sorts


def test_the_database_orders_what_the_index_does_not_hold_as_lists_compare_it(filled: Shelf) -> None:
    for name in ("r_creation_date", "r_index_status", "acl_name", "keywords", "i_folder_id", "unheard_of"):
        snapshot = filled.index.snapshot()
        with filled.database.read() as cx:
            inquiry = filled.inquiry(cx, MARTA, SearchQuestion(), snapshot)
            search = msgspec.structs.replace(results.prepare(inquiry), limit=5)
            assert sorting.sorted_answer(inquiry.changed(query=Query(sorts=(SortCriterion(name),))), search) is None
            with pytest.raises(NotSearchable):
                sorting.sorted_answer(inquiry.changed(query=Query(sorts=(SortCriterion("r_folder_path"),))), search)


def test_a_long_text_is_ordered_by_the_database_by_its_first_255_characters(filled: Shelf) -> None:
    sorts = [SortCriterion("title", ascii=True), SortCriterion("whole", ascending=False)]
    for ending, whole in (("b", 1), ("a", 2), ("", 3)):
        given: dict[str, Given] = {
            "object_name": "long",
            "title": "0" * 255 + ending,
            "whole": whole,
            "acl_name": "public",
        }
        filled.create(given, MARTA, "form")
    filled.catch_up()
    by_index, by_database = both_ways(filled, MARTA, sorts)
    assert by_index is None
    with filled.database.read() as cx:
        by_id = [inventory.rows(cx, filled.repository.id, [each])[each] for each in by_database[:3]]
    assert [each.properties["whole"] for each in by_id] == [[3], [2], [1]]


@pytest.mark.parametrize("caller", [MARTA, ADMIN])
def test_a_value_that_the_index_has_missed_counts_at_once(filled: Shelf, caller: Principals) -> None:
    sorts = [SortCriterion("title", ascii=True)]
    first = both_ways(filled, caller, sorts)[1][0]
    mine = filled.create({"object_name": "mine", "title": "zz", "acl_name": "public"}).id
    filled.catch_up()
    filled.change(mine, {"title": "!"})
    question = SearchQuestion(Query(sorts=tuple(sorts)), 1, 2)
    with filled.database.read() as cx:
        page = results.search(filled.inquiry(cx, caller, question))
    assert [hit.object_id for hit in page.hits] == [mine, first]
