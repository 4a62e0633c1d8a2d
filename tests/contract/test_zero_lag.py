"""What was answered is obeyed by the very next search, however far the index agent is behind (design.md 1.2, 1.3)."""

import itertools
from collections.abc import Sequence
from contextlib import suppress

import pytest

from muniment.database.connections import Database
from muniment.repository import version_stamps
from muniment.repository.refusals import UnknownProperty
from muniment.repository.search.answering import results
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.aql.tree import Expression, Property, PropertyList, PropertyRange, Query
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.shelf import ADMIN, BORIS, CALLERS, EDITH, MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")


def seen_by(shelf: Shelf, asked: str | Expression) -> list[Sequence[str]]:
    """Say who finds what."""
    return [shelf.find(caller, asked) for caller in CALLERS]


def test_a_deleted_object_is_not_found(shelf: Shelf) -> None:
    gone, kept = shelf.add("pump", acl="public"), shelf.add("pump", acl="public")
    shelf.catch_up()
    assert seen_by(shelf, "pump") == [[gone, kept]] * 4
    shelf.delete(gone, ADMIN)
    assert seen_by(shelf, "pump") == [[kept]] * 4
    shelf.catch_up()
    assert seen_by(shelf, "pump") == [[kept]] * 4


def test_an_acl_that_is_taken_from_an_object_hides_it_and_one_that_is_given_shows_it(shelf: Shelf) -> None:
    shown, hidden = shelf.add("pump", acl="public"), shelf.add("pump", acl="private")
    shelf.catch_up()
    shelf.change(shown, {"acl_name": "private"}, ADMIN)
    shelf.change(hidden, {"acl_name": "public"}, ADMIN)
    for _ in range(2):
        assert seen_by(shelf, "pump") == [[shown, hidden], [hidden], [hidden], [shown, hidden]]
        shelf.catch_up()


def test_a_changed_entry_of_an_acl_counts_at_once(shelf: Shelf) -> None:
    """failures B6"""
    shelf.permit("circle", {"staff@demo": Permission.READ})
    kept = shelf.add("pump", "the valve", acl="circle")
    shelf.catch_up()
    assert seen_by(shelf, "valve") == [[kept], [], [kept], [kept]]
    shelf.permit("circle", {"boris@demo": Permission.READ})
    assert seen_by(shelf, "valve") == [[kept], [kept], [], [kept]]
    shelf.permit("circle", {"boris@demo": Permission.BROWSE})
    assert seen_by(shelf, "valve") == [[kept], [], [], [kept]]
    assert seen_by(shelf, "pump") == [[kept], [kept], [], [kept]]
    shelf.permit("circle", {})
    assert seen_by(shelf, "pump") == [[kept], [], [], [kept]]


def test_what_another_process_commits_counts_in_the_search_that_begins_afterwards(shelf: Shelf) -> None:
    """Each process remembers by itself, and no process tells another: the marks are read in each search's snapshot."""
    shelf.permit("circle", {"staff@demo": Permission.READ})
    kept = shelf.add("pump", "the valve", acl="circle")
    shelf.catch_up()
    other = Database(shelf.database.engine.url.render_as_string(hide_password=False))
    try:
        with other.read() as cx:
            circle = acls.find(cx, shelf.repository.id, "circle", MARTA)
        for accessor, level, boris, editor in (
            ("boris@demo", Permission.READ, [kept], []),
            ("staff@demo", Permission.READ, [], [kept]),
            ("boris@demo", Permission.BROWSE, [], []),
        ):
            assert seen_by(shelf, "valve") == seen_by(shelf, "valve")
            with other.begin() as cx:
                acls.change(cx, circle, MARTA, {accessor: level}, shelf.now)
            assert seen_by(shelf, "valve") == [[kept], boris, editor, [kept]]
    finally:
        other.close()


def test_a_snapshot_that_is_older_than_a_commit_leaves_nothing_for_later_searches(shelf: Shelf) -> None:
    """A slow search that reads rights after they have changed, in a snapshot from before, must not pass them on."""
    shelf.permit("circle", {"boris@demo": Permission.READ})
    kept = shelf.add("pump", acl="circle")
    shelf.catch_up()
    shelf.memory = SearchCache()
    snapshot, question = shelf.index.snapshot(), SearchQuestion(Query(), 1, 10)
    with shelf.database.read() as cx:
        version_stamps.read(cx)
        shelf.permit("circle", {})
        page = results.search(shelf.inquiry(cx, BORIS, question, snapshot))
        assert [hit.object_id for hit in page.hits] == [kept], "as of its own snapshot"
    assert seen_by(shelf, "pump") == [[kept], [], [], [kept]]


def test_what_is_rolled_back_is_not_remembered(shelf: Shelf) -> None:
    shelf.permit("circle", {"staff@demo": Permission.READ})
    kept = shelf.add("pump", acl="circle")
    shelf.catch_up()
    assert shelf.find(BORIS, "pump") == []
    with suppress(ZeroDivisionError), shelf.database.begin() as cx:
        circle = acls.find(cx, shelf.repository.id, "circle", MARTA)
        acls.change(cx, circle, MARTA, {"boris@demo": Permission.READ}, shelf.now)
        raise ZeroDivisionError
    assert seen_by(shelf, "pump") == [[kept], [], [kept], [kept]]


def test_a_new_property_counts_at_once(shelf: Shelf) -> None:
    """A query that was refused is not refused for good, and one that was bound is bound anew."""
    asked = PropertyRange("depth", "BETWEEN", "1", "5")
    with pytest.raises(UnknownProperty):
        shelf.find(MARTA, asked)
    with shelf.database.begin() as cx:
        kind = ObjectType("well", "document", (PropertyDefinition("depth", "integer"),))
        type_editing.add_type(cx, shelf.repository.id, kind, shelf.now)
    assert shelf.find(MARTA, asked) == []


def test_a_changed_group_counts_at_once(shelf: Shelf) -> None:
    """failures B6"""
    shelf.permit("circle", {"staff@demo": Permission.READ})
    kept = shelf.add("pump", acl="circle")
    shelf.catch_up()
    assert shelf.find(EDITH, "pump") == [kept]
    assert shelf.find(Principals(EDITH.id), "pump") == []
    assert shelf.find(Principals(BORIS.id, frozenset({"Staff@Demo"})), "pump") == [kept]


def test_a_former_owner_finds_nothing_and_a_new_one_finds_it_once_it_is_indexed(shelf: Shelf) -> None:
    kept = shelf.add("pump", "the valve")
    shelf.catch_up()
    shelf.change(kept, {"owner_name": BORIS.id}, ADMIN)
    assert seen_by(shelf, "valve") == [[], [], [], []]
    shelf.catch_up()
    assert seen_by(shelf, "valve") == [[], [kept], [], [kept]]


def test_replaced_content_is_not_found_by_its_former_text_nor_shown(shelf: Shelf) -> None:
    kept = shelf.add("pump", "the secret merger", acl="public")
    shelf.catch_up()
    assert seen_by(shelf, "merger") == [[kept]] * 4
    shelf.replace(kept, "the harmless memo")
    for asked in ("merger", "memo"):
        assert seen_by(shelf, asked) == [[]] * 4
    shelf.catch_up()
    assert seen_by(shelf, "merger") == [[]] * 4
    assert seen_by(shelf, "pump") == [[kept]] * 4
    assert all("merger" not in found.summary for found in shelf.page(MARTA, "pump").hits)
    shelf.extract("the harmless memo")
    assert seen_by(shelf, "pump") == [[kept]] * 4
    shelf.catch_up()
    assert seen_by(shelf, "memo") == [[kept]] * 4


def test_a_former_title_is_never_shown_to_somebody_who_came_later(shelf: Shelf) -> None:
    shelf.permit("circle", {})
    kept = shelf.add("pump", acl="circle")
    shelf.change(kept, {"title": "secret merger"}, ADMIN)
    shelf.catch_up()
    shelf.change(kept, {"title": "memo"}, ADMIN)
    shelf.permit("circle", {"boris@demo": Permission.READ})
    assert shelf.find(BORIS, "merger") == []
    assert shelf.find(BORIS, Property("title", "BEGINS_WITH", "secret")) == []
    assert shelf.find(MARTA, "merger") == [kept]
    shelf.catch_up()
    assert seen_by(shelf, "merger") == [[]] * 4
    assert seen_by(shelf, "memo") == [[kept], [kept], [], [kept]]


def test_no_order_of_two_changes_shows_what_was_never_visible_together(shelf: Shelf) -> None:
    """Each document was private with a secret title and text; a step makes it public, another replaces something."""
    steps = ("acl", "title", "content", "owner")
    pairs = list(itertools.product(steps, repeat=2))
    kept = [shelf.add("pump", "secret text") for _ in pairs]
    for object_id in kept:
        shelf.change(object_id, {"title": "secret title"}, ADMIN)
    shelf.catch_up()
    for object_id, pair in zip(kept, pairs, strict=True):
        for step in pair:
            if step == "acl":
                shelf.change(object_id, {"acl_name": "public"}, ADMIN)
            elif step == "title":
                shelf.change(object_id, {"title": "memo"}, ADMIN)
            elif step == "content":
                shelf.replace(object_id, "memo")
            else:
                shelf.change(object_id, {"owner_name": BORIS.id}, ADMIN)
    allowed = {object_id for object_id, pair in zip(kept, pairs, strict=True) if set(pair) == {"acl"}}
    for caller in (BORIS, EDITH):
        assert set(shelf.find(caller, "secret")) <= allowed


def test_a_former_acl_name_is_not_found_by_it(shelf: Shelf) -> None:
    shelf.permit("merger", {})
    kept = shelf.add("pump", acl="merger")
    shelf.catch_up()
    shelf.change(kept, {"acl_name": "public"}, ADMIN)
    assert shelf.find(BORIS, "pump") == [kept]
    assert shelf.find(BORIS, PropertyList("acl_name", "IN", ("merger",))) == []


def test_excerpts_and_terms_of_a_browser_come_from_the_metadata(shelf: Shelf) -> None:
    shelf.permit("circle", {"boris@demo": Permission.BROWSE})
    kept = shelf.add("pump", "the pump and its secret valve", acl="circle")
    shelf.catch_up()
    (browsed,) = shelf.page(BORIS, "pump OR valve").hits
    assert browsed.object_id == kept
    assert browsed.terms == ("pump",)
    assert "secret" not in browsed.summary
    (read,) = shelf.page(MARTA, "pump OR valve").hits
    assert "secret" in read.summary


def test_an_owner_whose_name_only_looks_alike_is_somebody_else(shelf: Shelf) -> None:
    """`①n` and `1n` are two users, though text compares them as equal."""
    kept = shelf.add("pump", owner=Principals("①n@demo"))
    shelf.catch_up()
    assert shelf.find(Principals("①n@demo"), "pump") == [kept]
    assert shelf.find(Principals("1n@demo"), "pump") == []


def test_pages_joined_are_the_whole_while_changes_wait(shelf: Shelf) -> None:
    """failures B13."""
    kept = [shelf.add(f"pump {number}", acl="public") for number in range(12)]
    shelf.catch_up()
    for object_id in kept[::3]:
        shelf.delete(object_id, ADMIN)
    for object_id in kept[1::3]:
        shelf.change(object_id, {"acl_name": "private"}, ADMIN)
    wanted = kept[2::3]
    pages = [shelf.page(BORIS, "pump", items=3, number=number) for number in (1, 2, 3)]
    assert [page.total for page in pages] == [4, 4, 4]
    assert [page.has_more for page in pages] == [True, False, False]
    assert shelf.as_made(found.object_id for page in pages for found in page.hits) == wanted
