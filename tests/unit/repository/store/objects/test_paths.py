"""A path leads to an object, however the accents of its names are composed."""

import unicodedata
from collections.abc import Callable

import msgspec
import pytest

from muniment.repository.refusals import NameTaken
from muniment.repository.search.answering.scope import locations
from muniment.repository.search.aql.tree import Location
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.tree import EVERYTHING
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.folders import paths
from tests.shelf import MARTA, Shelf

NAMES = "Re\u0301pertoire", "Ordner \u1e9b\u0323", "Releve\u0301.txt"


def composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def decomposed(name: str) -> str:
    return unicodedata.normalize("NFD", name)


@pytest.mark.slow
@pytest.mark.parametrize("written", [composed, decomposed, str])
def test_a_path_is_found_in_either_composition(shelf: Shelf, written: Callable[[str], str]) -> None:
    cabinet = shelf.create({"object_name": written(NAMES[0])}, type_name="cabinet")
    folder = shelf.create({"object_name": written(NAMES[1])}, MARTA, "folder", cabinet.id)
    made = shelf.create({"object_name": written(NAMES[2])}, MARTA, "document", folder.id)
    view = shelf.view(MARTA)
    with shelf.database.read() as cx:
        for asked in (composed, decomposed):
            path = "".join(f"/{asked(name)}" for name in NAMES)
            assert [each.stored.id for each in paths.path_page(cx, view, path, Stretch(None, 0, 9))] == [made.id]
            assert paths.count_path(cx, view, path, EVERYTHING) == 1
            above = Location(path.rpartition("/")[0], "", False, "")
            assert locations.folder_ids(cx, view, above) == {folder.id}


def test_names_that_differ_only_in_composition_are_one_name_where_names_are_unique(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    view = msgspec.structs.replace(shelf.view(MARTA), unique_names=True)
    forms = [{"object_name": composed(NAMES[2])}, {"object_name": decomposed(NAMES[2])}]
    both = [creation.NewObject("document", given, cabinet.id) for given in forms]
    with pytest.raises(NameTaken), shelf.database.begin() as cx:
        creation.create_all(cx, view, both, shelf.now)
    with shelf.database.begin() as cx:
        creation.create_all(cx, view, both[:1], shelf.now)
    with pytest.raises(NameTaken), shelf.database.begin() as cx:
        creation.create_all(cx, view, both[1:], shelf.now)
