"""The cost of a search is bounded however far the index is behind, and what was changed is obeyed all the same."""

import pytest
from sqlalchemy.engine import Connection

from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import IndexBehind
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.scope import visibility
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Kind
from muniment.repository.store.permissions.principals import Permission
from tests import plans
from tests.shelf import BORIS, MARTA, Shelf

MANY = 100_000


MOST = RepositoryOptions().max_pending_changes


def note_many(shelf: Shelf, count: int, kind: Kind) -> None:
    """Note changes of as many objects, as other callers' writes would."""
    into = 'INSERT INTO changes ("transaction", repository_id, object_id, kind, noted)'
    about = f"'{kind}', {shelf.now}"
    if shelf.database.dialect == "sqlite":
        series = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        noted = f"{series} {into} SELECT 0, {shelf.repository.id}, printf('%016x', i), {about} FROM n"
    else:
        ids = f"lpad(to_hex(i), 16, '0'), {about} FROM generate_series(1, {count}) AS n(i)"
        noted = f"{into} SELECT 1000000000, {shelf.repository.id}, {ids}"
    with shelf.database.begin() as cx:
        cx.exec_driver_sql(noted)
        cx.exec_driver_sql("ANALYZE changes")


def seen(shelf: Shelf, most: int = MOST) -> int:
    """Count what the database does to say what a caller may see."""
    snapshot, options = shelf.index.snapshot(), RepositoryOptions(max_pending_changes=most)

    def ask(cx: Connection) -> None:
        visibility.visible(shelf.inquiry(cx, BORIS, SearchQuestion(), snapshot, options), BoundQuery())

    plans.work(shelf.database, ask)  # what was analysed is read once more
    return plans.work(shelf.database, ask)


@pytest.mark.slow
def test_a_big_import_that_the_index_has_not_seen_costs_a_search_nothing(shelf: Shelf) -> None:
    public = shelf.add("pump", "the main valve", acl="public")
    shelf.catch_up()
    before = seen(shelf)
    note_many(shelf, MANY, "created")
    assert seen(shelf) <= before + 20
    assert shelf.find(BORIS, "valve") == [public]


@pytest.mark.slow
def test_a_search_reads_one_change_more_than_it_may_be_behind_and_no_further(shelf: Shelf) -> None:
    """Red on a search that takes all pending changes: it reads 100,000 lines."""
    shelf.add("pump", "the main valve", acl="public")
    shelf.catch_up()
    note_many(shelf, MANY, "acl")
    position = shelf.index.snapshot().position

    def ask(cx: Connection) -> None:
        with pytest.raises(IndexBehind, match="more than 500 changes behind"):
            changes.hiding(cx, shelf.repository.id, position, 500)

    limit = 501 * (40 if shelf.database.dialect == "sqlite" else 4)
    assert 500 < plans.work(shelf.database, ask) < limit + 200
    with pytest.raises(IndexBehind):
        shelf.page(BORIS, "valve")
    with pytest.raises(IndexBehind):
        shelf.page(MARTA, "valve")


@pytest.mark.slow
def test_up_to_the_bound_every_change_is_obeyed(shelf: Shelf) -> None:
    shelf.permit("team", {"boris@demo": Permission.READ})
    kept, closed, opened, gone, other = (
        shelf.add(name, "the main valve", acl=acl)
        for name, acl in (("a", "public"), ("b", "public"), ("c", "private"), ("d", "public"), ("e", "public"))
    )
    shelf.catch_up()
    note_many(shelf, 50_000, "created")
    note_many(shelf, MOST - 6, "text")
    shelf.change(closed, {"acl_name": "private"})
    shelf.change(opened, {"acl_name": "team"})
    shelf.replace(other, "another text")
    shelf.delete(gone)
    assert shelf.find(BORIS, "valve") == [kept, opened]
    note_many(shelf, MOST - 4, "acl")
    assert shelf.find(BORIS, "valve") == [kept, opened]
    with shelf.database.begin() as cx:
        changes.note(cx, shelf.repository.id, "f" * 16, "owner", shelf.now)
    with pytest.raises(IndexBehind):
        shelf.page(BORIS, "valve")


@pytest.mark.slow
def test_the_changes_are_found_by_the_index_of_those_that_hide(shelf: Shelf) -> None:
    note_many(shelf, MANY, "created")
    plan = plans.steps(shelf.database, lambda cx: changes.hiding(cx, shelf.repository.id, changes.START, 100))
    assert len(plan) == 1
    assert any("ix_changes_hiding" in step for step in plan[0][1]), plan
