"""Hits in the order of sorts: by GET and in a query document, as lists are ordered, on both databases."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.db import Database
from muniment.repository.filters.tree import SortKey
from muniment.repository.folding import fold
from muniment.repository.objects import lists
from muniment.repository.options import RepositoryOptions
from tests import plans
from tests.shelf import MARTA
from tests.walkers import Walkers, ids, made

TITLES = ["b", "A", "a", "B", "Éa", "ea", "", "z" * 300, "z" * 300 + "a", "\u65e5\u672c", "10", "9"]


@pytest.fixture
def walkers(repository_db: Database, now: Instant) -> Iterator[Walkers]:
    """Objects with titles in a random order, of which some have the same subject, or none."""
    with made(repository_db, now, [], RepositoryOptions(max_sorted_hits=20)) as walkers:
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
        "r_object_type,a_content_type,i_folder_id,r_creation_date desc",
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
