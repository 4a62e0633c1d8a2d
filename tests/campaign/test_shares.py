"""What one caller may take from the others, measured: the numbers beside their bounds."""

import statistics
import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from muniment.ground.clock import SECOND
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import IndexBehind
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering.scrolls import Holder
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.change_log.followers import Retention
from muniment.repository.store.extraction import queue
from tests.shelf import BORIS, Shelf
from tests.unit.repository.search.answering.test_far_behind import MOST, note_many

pytestmark = pytest.mark.campaign

WAITING = 1_000_000
LINES = 200_000
_FILES = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count) "
    "INSERT INTO texts (object_id, repository_id, owner_key, content_key, media_type, file_name, state, reason, "
    "attempts, losses, lease, due, text, seq) SELECT printf('%016x', i), :repository, 'marta@demo', 'k' || i, '', '', "
    "'waiting', '', 0, 0, NULL, i, '', i FROM n",
    "postgresql": "INSERT INTO texts (object_id, repository_id, owner_key, content_key, media_type, file_name, state, "
    "reason, attempts, losses, lease, due, text, seq) SELECT lpad(to_hex(i), 16, '0'), :repository, 'marta@demo', "
    "'k' || i, '', '', 'waiting', '', 0, 0, NULL, i, '', i FROM generate_series(1, :count) AS n(i)",
}


def median(work: Callable[[], object], times: int = 30) -> float:
    """Say how many milliseconds it takes, mostly."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def test_a_search_costs_the_same_however_many_new_objects_the_index_has_not_seen(shelf: Shelf) -> None:
    for number in range(200):
        shelf.add(f"pump {number}", "the main valve", acl="public")
    shelf.catch_up()

    def search() -> None:
        assert len(shelf.page(BORIS, "valve", items=20).hits) == 20

    took = {"none": median(search)}
    note_many(shelf, 100_000, "created")
    took["100,000 new objects"] = median(search)
    note_many(shelf, 611, "acl")
    took["and 611 changes"] = median(search)
    note_many(shelf, MOST - 611, "properties")
    took[f"and {MOST} changes, the bound"] = median(search)
    print(f"{shelf.database.dialect}: a search, changes not in the index: ", end="")
    print(", ".join(f"{what} {milliseconds:.1f} ms" for what, milliseconds in took.items()))
    note_many(shelf, 1, "acl")
    with pytest.raises(IndexBehind):
        search()


def test_one_file_is_leased_next_behind_a_million_of_another_owner(shelf: Shelf) -> None:
    """failures C7"""
    with shelf.database.begin() as cx:
        cx.execute(sa.text(_FILES[shelf.database.dialect]), {"count": WAITING, "repository": shelf.repository.id})
        cx.exec_driver_sql("INSERT INTO turns VALUES ('marta@demo', 1)")
        cx.exec_driver_sql("ANALYZE texts")
    leased: list[str] = []

    def take() -> None:
        with shelf.database.begin() as cx:
            job = queue.take(cx, shelf.now)
        assert job is not None
        leased.append(job.object_id)

    took = median(take)
    with shelf.database.begin() as cx:
        queue.enqueue(
            cx, shelf.repository.id, queue.File("f" * 16, WAITING + 1, BORIS.key, "k", "", "a.pdf"), shelf.now
        )
    before = len(leased)
    while leased[-1] != "f" * 16:
        take()
    waited = len(leased) - before - 1
    print(f"{shelf.database.dialect}: of {WAITING} waiting files one is leased in {took:.2f} ms; ", end="")
    print(f"another owner's file waited for {waited} of them (bound 1)")
    assert waited <= 1


def test_ten_thousand_searches_of_one_caller_leave_a_few(shelf: Shelf) -> None:
    """failures C6"""
    options, made = RepositoryOptions(), 10_000
    holder = Holder(shelf.repository.id, BORIS.key)
    for begin in range(0, made, 100):
        with shelf.database.begin() as cx:
            for number in range(begin, begin + 100):
                document = b"<q>%d</q>" % number * 400
                kept_searches.keep_search(cx, holder, document, options, shelf.now + number)
    with shelf.database.read() as cx:
        left, size = cx.execute(sa.text("SELECT count(*), sum(length(document)) FROM links")).one()
    print(f"{shelf.database.dialect}: {made} searches kept for one caller: {left} rows, {size} bytes are left", end=" ")
    print(f"(bounds {options.kept_queries} and {options.kept_query_bytes})")
    assert left <= options.kept_queries
    assert size <= options.kept_query_bytes


def test_a_log_is_cut_in_short_transactions(shelf: Shelf) -> None:
    note_many(shelf, LINES, "text")
    later = shelf.now + 2 * 86_400 * SECOND
    with shelf.database.begin() as cx:
        last = changes.latest(cx, shelf.repository.id)
        followers.note(cx, shelf.repository.id, "agent", Position(*last), later)
    took, cut = list[float](), 1
    while cut:
        began = time.perf_counter()
        with shelf.database.begin() as cx:
            cut = followers.cut(cx, shelf.repository.id, Retention(86_400, 1_000_000), later)
        took.append((time.perf_counter() - began) * 1000)
    with shelf.database.read() as cx:
        left = cx.execute(sa.text("SELECT count(*) FROM changes")).scalar_one()
    print(f"{shelf.database.dialect}: {LINES} lines cut off in {len(took)} transactions, ", end="")
    print(f"median {statistics.median(took):.1f} ms, longest {max(took):.1f} ms; {left} are left")
    assert left == 0
