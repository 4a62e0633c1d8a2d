"""How SQLite looks up what a search and the index agent ask for: by a key, however many rows there are."""

import re
from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from muniment.repository.refusals import UnknownObject
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.tree import Selection, SortKey
from muniment.repository.store.objects import inventory, wastebasket
from muniment.repository.store.objects.contents import stored_contents
from muniment.repository.store.objects.folders import folders, paths, unique_names
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Extent, Folder
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.people import Person
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import relations
from muniment.repository.store.relations.relations import RelationFilter
from tests.plans import steps
from tests.shelf import ADMIN, Shelf

IDS = [f"09000001{number:08x}" for number in range(25)]
CALLER = Principals("boris@staff", frozenset(f"group-{number}@staff" for number in range(25)))

QUESTIONS: dict[str, Callable[[Connection], object]] = {
    "objects": lambda cx: inventory.rows(cx, 1, IDS),
    "texts": lambda cx: queue.text_of(cx, IDS),
    "ACLs": lambda cx: acls.permissions_by_acl(cx, 1, CALLER, Permission.READ),
    "changes": lambda cx: changes.hiding(cx, 1, changes.START, 100),
}
NARROWEST = {"objects": "(id=?)", "texts": "(object_id=?)", "ACLs": "(accessor=?", "changes": "sequence>?)"}


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("what", QUESTIONS)
def test_each_is_looked_up_by_its_key(shelf: Shelf, what: str) -> None:
    plans = [" ".join(looked_up) for _, looked_up in steps(shelf.database, QUESTIONS[what])]
    assert len(plans) == 1
    assert NARROWEST[what] in plans[0], plans[0]
    assert "SCAN" not in plans[0]


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_the_contents_of_many_hits_are_looked_up_by_their_counters(shelf: Shelf) -> None:
    ((_, looked_up),) = steps(shelf.database, lambda cx: lists.content_digests(cx, 1, range(1000)))
    assert "SEARCH objects USING INTEGER PRIMARY KEY (rowid=?)" in looked_up, looked_up


NAME = "Ca\u0301f\u00e9"
"""In two spellings."""

PART, FURTHER = Stretch(None, 0, 10), Stretch(("m", 5), 0, 10)
BY_DATE = Selection(sort=(SortKey("r_creation_date", descending=False, folded=False, place=""),))
JSON_IDS = '["0900000100000001", "0900000100000002"]'

LISTS: dict[str, Callable[[Connection, RepositoryView], object]] = {
    "folders in one": lambda cx, view: folders.find(cx, view, inside=IDS[:1]),
    "folders in many": lambda cx, view: folders.find(cx, view, inside=IDS),
    "folders of a name": lambda cx, view: folders.find(cx, view, inside=IDS, name=NAME),
    "cabinets of a name": lambda cx, view: folders.find(cx, view, name=NAME),
    "folders below": lambda cx, view: folders.descendants(cx, view, IDS, 100),
    "a name among cabinets": lambda cx, view: unique_names.claim(cx, _with_unique_names(view), None, [NAME]),
    "a cabinet by its path": lambda cx, view: paths.path_page(cx, view, "/a", PART),
    "a home": lambda cx, view: _home(cx, view),
    "a folder": lambda cx, view: lists.object_page(cx, Folder(view, IDS[0], "document"), PART),
    "a folder, further": lambda cx, view: lists.object_page(cx, Folder(view, IDS[0], "document"), FURTHER),
    "a folder, sorted": lambda cx, view: lists.object_page(cx, Folder(view, IDS[0], "document"), PART, BY_DATE),
    "how many lie in a folder": lambda cx, view: lists.count_objects(cx, Folder(view, IDS[0], "document")),
    "cabinets": lambda cx, view: lists.object_page(cx, Folder(view, None, "cabinet"), PART),
    "cabinets, further": lambda cx, view: lists.object_page(cx, Folder(view, None, "cabinet"), FURTHER),
    "cabinets, sorted": lambda cx, view: lists.object_page(cx, Folder(view, None, "cabinet"), PART, BY_DATE),
    "every cabinet": lambda cx, view: folders.find(cx, view, most=10),
    "how many cabinets": lambda cx, view: lists.count_objects(cx, Folder(view, None, "cabinet")),
    "places of hits": lambda cx, view: lists.places(cx, view, IDS, BY_DATE.sort),
    "DQL among hits": lambda cx, view: lists.page_of_extent(cx, Extent(view, "document", range(1000)), PART),
    "how many of the hits": lambda cx, view: lists.count_of_extent(cx, Extent(view, "document", range(1000))),
    "a sort of hits": lambda cx, view: lists.sort(
        *(cx, view, range(1000), lists.order_of(cx, view, BY_DATE.sort), 0, 10)
    ),
    "stored results": lambda cx, view: lists.page_among(cx, view, JSON_IDS, PART),
    "how many stored results": lambda cx, view: lists.count_among(cx, view, JSON_IDS),
    "relations of a parent": lambda cx, view: _relations(cx, view, RelationFilter(IDS[0], "parent")),
    "relations of either end": lambda cx, view: _relations(cx, view, RelationFilter(IDS[0])),
    "relations of an object and a type": lambda cx, view: _relations(cx, view, RelationFilter(IDS[0], name="replaces")),
    "texts of new owners": lambda cx, _view: queue.change_owner(cx, [*IDS, *map(str, range(400))], "o"),
    "files that Tika reads": lambda cx, _view: queue.wake(cx, [*IDS, *map(str, range(400))], 0),
    "files that wait for Tika": lambda cx, _view: queue.waiting_for_tika(cx),
    "equal contents": lambda cx, _view: stored_contents._OFFERED.all(cx, digests=[b"1", b"2"]),
}

OWN_LISTS: dict[str, Callable[[Connection, RepositoryView], object]] = {
    "own deleted objects": lambda cx, view: wastebasket.deleted_page(cx, view.repository, view.principals, 0, PART),
    "own deleted objects, further": lambda cx, view: wastebasket.deleted_page(
        *(cx, view.repository, view.principals, 0, Stretch((5, 5), 0, 10))
    ),
    "how many deleted": lambda cx, view: wastebasket.count_deleted(cx, view.repository, view.principals, 0),
}
"""Administrators see what others have deleted, too."""

REST = re.compile(
    r"SCAN (objects|folder_links|relations|acls|acl_entries|wastebasket|texts|stored_contents)\b"
    r"(?! USING INDEX ix_texts_of_tika)"
    r"|ix_(objects_repository|relations_repository|relations_name|wastebasket_repository|acls_name|texts_queue|texts_states)"
    r"\b"
)
"""What else the repository has, or other repositories have."""


def _with_unique_names(view: RepositoryView) -> RepositoryView:
    return RepositoryView(view.repository, view.catalogue, view.principals, unique_names=True)


def _relations(cx: Connection, view: RepositoryView, which: RelationFilter) -> None:
    for part in (PART, Stretch((5,), 0, 10)):
        relations.relation_page(cx, view.repository, view.principals, which, part)
    relations.count_relations(cx, view.repository, view.principals, which)


def _home(cx: Connection, view: RepositoryView) -> None:
    with pytest.raises(UnknownObject):
        folders.home(cx, view, Person("user", "ana@demo", "ana", "ana", "", 0))


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("caller", [CALLER, ADMIN], ids=["user", "administrator"])
@pytest.mark.parametrize("what", LISTS)
def test_a_list_is_found_without_the_rest_of_the_repository(shelf: Shelf, what: str, caller: Principals) -> None:
    _assert_narrow(shelf, caller, LISTS[what])


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("what", OWN_LISTS)
def test_what_a_user_has_deleted_is_found_without_what_others_have(shelf: Shelf, what: str) -> None:
    _assert_narrow(shelf, CALLER, OWN_LISTS[what])


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_cabinets_are_found_without_other_objects_that_lie_in_no_folder(shelf: Shelf) -> None:
    for what in ("cabinets", "cabinets, further", "cabinets, sorted", "every cabinet", "how many cabinets"):
        found = _assert_narrow(shelf, CALLER, LISTS[what])
        assert any("ix_objects_cabinets" in step for step in found), found


def _assert_narrow(
    shelf: Shelf, caller: Principals, question: Callable[[Connection, RepositoryView], object]
) -> list[str]:
    view = shelf.view(caller)
    plans = steps(shelf.database, lambda cx: question(cx, view), writes=True)
    assert plans
    for statement, looked_up in plans:
        assert not [step for step in looked_up if REST.search(step)], (statement, looked_up)
    return [step for _, looked_up in plans for step in looked_up]
