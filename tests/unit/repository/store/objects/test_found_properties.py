"""What a file says about itself becomes properties of its object, and never replaces what somebody gave it."""

from collections.abc import Mapping, Sequence

import pytest

from muniment.ground.clock import SECOND, read_timestamp, timestamp
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import Job
from muniment.repository.store.objects import found_properties, objects
from tests.shelf import ADMIN, MARTA, Shelf

FOUND = {"title": ["Annual report"], "authors": ["Ada", "Łukasz"], "keywords": ["pumps"]}
DATED = {"a_content_date": ["2001-02-03T04:05:06+01:00"]}
OF_FILE = read_timestamp("2001-02-03T03:05:06Z")


def taken(shelf: Shelf) -> Job:
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
    assert job is not None
    return job


def keep(shelf: Shelf, job: Job, found: Mapping[str, Sequence[str]]) -> None:
    with shelf.database.begin() as cx:
        found_properties.keep_found_properties(cx, job, found, shelf.now + 1)


def test_an_object_gets_what_it_lacks_and_is_found_by_it(shelf: Shelf) -> None:
    given = shelf.create({"object_name": "a", "title": "Mine"}, content=shelf.content("words"))
    shelf.catch_up()
    keep(shelf, taken(shelf), FOUND)
    stored, _ = shelf.read(given.id)
    assert stored.properties["title"] == ["Mine"]
    assert stored.properties["authors"] == ["Ada", "Łukasz"]
    assert (stored.revision, stored.modified, stored.modifier) == (given.revision, given.modified, given.modifier)
    shelf.catch_up()
    assert shelf.find(MARTA, "pumps") == [given.id]
    assert shelf.find(MARTA, "lukasz") == [given.id]
    assert shelf.find(MARTA, "annual") == []


def test_nothing_is_kept_of_a_content_that_was_replaced(shelf: Shelf) -> None:
    made = shelf.create({"object_name": "a"}, content=shelf.content("words"))
    job = taken(shelf)
    shelf.replace(made.id, "other words")
    keep(shelf, job, FOUND)
    assert "title" not in shelf.read(made.id)[0].properties


def test_the_date_in_a_file_takes_the_place_of_the_moment_of_its_upload(shelf: Shelf) -> None:
    made = shelf.create({"object_name": "a"}, content=shelf.content("words"))
    shelf.now += SECOND
    shelf.change(made.id, {"title": "Mine"})
    shelf.catch_up()
    keep(shelf, taken(shelf), DATED)
    stored, _ = shelf.read(made.id)
    assert stored.content_date == OF_FILE
    assert stored.revision == 2
    shelf.catch_up()
    assert shelf.report().sound


def test_the_date_in_a_new_content_is_taken_whatever_changes_meanwhile(shelf: Shelf) -> None:
    made = shelf.create({"object_name": "a", "a_content_date": "1999-01-01"}, content=shelf.content("words"))
    keep(shelf, taken(shelf), {})
    shelf.now += SECOND
    shelf.replace(made.id, "other words")
    shelf.change(made.id, {"title": "Mine"})
    keep(shelf, taken(shelf), DATED)
    assert shelf.read(made.id)[0].content_date == OF_FILE


def test_a_date_that_somebody_gave_stays(shelf: Shelf) -> None:
    given = shelf.create({"object_name": "a", "a_content_date": "1999-01-01"}, content=shelf.content("words"))
    keep(shelf, taken(shelf), DATED)
    later = shelf.create({"object_name": "b"}, content=shelf.content("other words"))
    job = taken(shelf)
    shelf.change(later.id, {"a_content_date": "1998-01-01"})
    keep(shelf, job, DATED)
    imported = shelf.create({"object_name": "c"}, content=shelf.content("first words"))
    keep(shelf, taken(shelf), {})
    with shelf.database.begin() as cx:
        content, date = shelf.content("changed words"), read_timestamp("1997-01-01")
        objects.replace_content(
            cx, shelf.repository, ADMIN, imported.id, content, "text/plain", shelf.now, content_date=date
        )
    keep(shelf, taken(shelf), DATED)
    dates = [shelf.read(each.id)[0].content_date for each in (given, later, imported)]
    assert dates == [read_timestamp(f"{year}-01-01") for year in (1999, 1998, 1997)]


@pytest.mark.parametrize("date", ["1899-12-31T23:59:59Z", "2001-13-01", "yesterday", "after now"])
def test_a_date_that_nobody_believes_makes_way_for_the_next(shelf: Shelf, date: str) -> None:
    made = shelf.create({"object_name": "a"}, content=shelf.content("words"))
    first = timestamp(shelf.now + SECOND) if date == "after now" else date
    keep(shelf, job := taken(shelf), {"a_content_date": [first]})
    assert shelf.read(made.id)[0].content_date == made.content_date
    keep(shelf, job, {"a_content_date": [first, *DATED["a_content_date"]]})
    assert shelf.read(made.id)[0].content_date == OF_FILE
