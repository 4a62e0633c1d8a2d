"""What a file says about itself becomes properties of its object, and never replaces what somebody gave it."""

from muniment.repository.extraction import queue
from muniment.repository.objects import found_properties
from tests.shelf import MARTA, Shelf

FOUND = {"title": ["Annual report"], "authors": ["Ada", "Łukasz"], "keywords": ["pumps"]}


def test_an_object_gets_what_it_lacks_and_is_found_by_it(shelf: Shelf) -> None:
    given = shelf.create({"object_name": "a", "title": "Mine"}, content=shelf.content("words"))
    shelf.catch_up()
    content = given.content
    assert content is not None
    with shelf.database.begin() as cx:
        found_properties.keep(cx, given.id, content.key, FOUND, shelf.now + 1)
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
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
    assert job is not None
    shelf.replace(made.id, "other words")
    with shelf.database.begin() as cx:
        found_properties.keep(cx, made.id, job.content_key, FOUND, shelf.now)
    assert "title" not in shelf.read(made.id)[0].properties
