"""Types and properties go when nothing uses them, whoever writes meanwhile."""

import threading

import pytest

from muniment.repository.bulk import removal
from muniment.repository.refusals import InUse, NameTaken, UnknownProperty, UnknownType, VersionConflict, WrongValue
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from tests.shelf import ADMIN, Shelf

PATIENCE = 30


@pytest.fixture
def typed(shelf: Shelf) -> Shelf:
    """A repository with the type letter, which has pages, and memo below it."""
    letter = ObjectType(
        "letter", "document", (PropertyDefinition("pages", "integer"), PropertyDefinition("to_", "string"))
    )
    with shelf.database.begin() as cx:
        type_editing.add_type(cx, shelf.repository.id, letter, shelf.now)
        type_editing.add_type(cx, shelf.repository.id, ObjectType("memo", "letter"), shelf.now)
    return shelf


def remove_type(shelf: Shelf, name: str) -> None:
    with shelf.database.begin() as cx:
        removal.remove_type(cx, shelf.repository, name)


def remove_property(shelf: Shelf, type_name: str, name: str) -> None:
    with shelf.database.begin() as cx:
        removal.remove_property(cx, shelf.repository, type_name, name)


def test_a_type_goes_when_no_object_and_no_other_type_is_left_of_it(typed: Shelf) -> None:
    with pytest.raises(InUse, match="memo"):
        remove_type(typed, "letter")
    kept = [typed.create({"object_name": f"memo {number}"}, type_name="memo") for number in range(2)]
    with pytest.raises(InUse, match="'memo' is still that of 2 objects"):
        remove_type(typed, "memo")
    for one in kept:
        typed.delete(one.id)
    remove_type(typed, "memo")
    remove_type(typed, "letter")
    assert "letter" not in typed.catalogue()
    with pytest.raises(UnknownType):
        remove_type(typed, "letter")
    with pytest.raises(WrongValue, match="built in"):
        remove_type(typed, "document")
    with typed.database.begin() as cx:
        type_editing.add_type(cx, typed.repository.id, ObjectType("letter", "folder"), typed.now)
    assert typed.catalogue().properties_of("letter").keys() == typed.catalogue().properties_of("folder").keys()


def test_a_property_goes_when_no_object_has_a_value_for_it(typed: Shelf) -> None:
    text = 'so he said "pages": [1]'
    typed.create({"object_name": "no pages", "to_": text, "title": text}, type_name="letter")
    memo = typed.create({"object_name": "one", "pages": 3}, type_name="memo")
    with pytest.raises(InUse, match="a value in 1 object"):
        remove_property(typed, "letter", "pages")
    with pytest.raises(WrongValue, match="'letter' adds"):
        remove_property(typed, "memo", "pages")
    with pytest.raises(UnknownProperty):
        remove_property(typed, "letter", "colour")
    with pytest.raises(WrongValue):
        remove_property(typed, "letter", "title")
    with pytest.raises(WrongValue, match="built in"):
        remove_property(typed, "document", "title")
    typed.change(memo.id, {"pages": None})
    remove_property(typed, "letter", "pages")
    assert "pages" not in typed.catalogue().properties_of("memo")
    assert "to_" in typed.catalogue().properties_of("memo")
    with typed.database.begin() as cx:
        type_editing.add_properties(
            cx, typed.repository.id, "letter", [PropertyDefinition("pages", "string")], typed.now
        )
    with pytest.raises(NameTaken), typed.database.begin() as cx:
        type_editing.add_properties(cx, typed.repository.id, "memo", [PropertyDefinition("pages", "string")], typed.now)


@pytest.mark.parametrize("what", ["type", "property"])
def test_whoever_read_the_types_before_keeps_nothing_of_what_is_gone(typed: Shelf, what: str) -> None:
    before = typed.view(ADMIN)
    if what == "type":
        remove_type(typed, "memo")
    else:
        remove_property(typed, "letter", "pages")
    late = NewObject("memo", {"object_name": "late"})
    with pytest.raises(VersionConflict), typed.database.begin() as cx:
        creation.create_all(cx, before, [late], typed.now)
    with typed.database.begin() as cx:
        creation.create_all(cx, before, [NewObject("document", {"object_name": "other"})], typed.now)


def test_a_type_stays_when_an_object_of_it_is_being_kept(typed: Shelf) -> None:
    refusals: list[InUse] = []

    def remove() -> None:
        try:
            remove_type(typed, "memo")
        except InUse as refusal:
            refusals.append(refusal)

    other = threading.Thread(target=remove)
    with typed.database.begin() as cx:
        new = NewObject("memo", {"object_name": "first"})
        creation.create_all(cx, RepositoryView.read(cx, typed.repository, ADMIN), [new], 1)
        other.start()
    other.join(PATIENCE)
    assert len(refusals) == 1
    assert "memo" in typed.catalogue()
