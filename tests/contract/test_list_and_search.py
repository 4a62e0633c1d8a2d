"""What a folder lists for a caller is what a search finds for him: one permission, asked in two ways."""

import itertools

import pytest

from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.results import search
from muniment.repository.search.aql.tree import Query
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.shelf import ADMIN, BORIS, CALLERS, EDITH, MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")

NONE, BROWSE, READ = Permission.NONE, Permission.BROWSE, Permission.READ


def listed(shelf: Shelf, caller: Principals) -> list[str]:
    with shelf.database.read() as cx:
        unfiled = Folder(shelf.view(caller), None, "sysobject")
        found = lists.object_page(cx, unfiled, Stretch(None, 0, 1000))
        assert lists.count_objects(cx, unfiled) == len(found)
    return sorted(each.stored.id for each in found)


def everything_found(shelf: Shelf, caller: Principals) -> list[str]:
    question = SearchQuestion(Query(), 1, 1000, include_total=True)
    snapshot = shelf.index.snapshot()
    with shelf.database.read() as cx:
        page = search(shelf.inquiry(cx, caller, question, snapshot))
    assert page.total == len(page.hits)
    return sorted(found.object_id for found in page.hits)


def test_a_search_for_everything_is_the_list_of_what_may_be_browsed(shelf: Shelf) -> None:
    """failures B4, failures B5."""
    kept = []
    levels = itertools.product((None, NONE, BROWSE, READ), repeat=4)
    for number, (owner, user, group, world) in enumerate(levels):
        entries = {"owner": owner, "boris@demo": user, "staff@demo": group, "world": world}
        shelf.permit(f"acl {number}", {accessor: level for accessor, level in entries.items() if level is not None})
        if number % 5 == 0:
            kept.append(shelf.add("pump", owner=MARTA if number % 2 else EDITH))
            shelf.change(kept[-1], {"acl_name": f"marta@demo/acl {number}"}, ADMIN)
    shelf.catch_up()
    callers = [*CALLERS, Principals("Boris@DEMO"), Principals("nobody@demo", frozenset({"staff@editors"}))]
    for caller in callers:
        assert everything_found(shelf, caller) == listed(shelf, caller)
    for number, each in enumerate(kept[::3]):
        shelf.change(each, {"acl_name": f"marta@demo/acl {number * 7}"}, ADMIN)
    for caller in callers:
        assert everything_found(shelf, caller) == listed(shelf, caller)
    assert listed(shelf, CALLERS[-1]) == sorted(kept)
    assert 0 < len(listed(shelf, BORIS)) < len(kept)
