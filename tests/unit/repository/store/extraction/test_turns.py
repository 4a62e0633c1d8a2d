"""Owners take turns: a file waits for at most one file of each other owner, whoever has how many.

The order in which files are leased is what counts here, not the time.
"""

import random
from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.store import repositories
from muniment.repository.store.extraction import queue as extraction_queue
from tests import plans

OWNERS = ("marta@staff", "boris@staff", "edith@staff")


@pytest.fixture
def repository_ids(repository_db: Database, now: Instant) -> list[int]:
    with repository_db.begin() as cx:
        return [repositories.add(cx, name, "00000000-0000-4000-8000-000000000001", "", now).id for name in "ab"]


class Queue:
    """Files of several owners, and what was leased of them, as each file's owner and number."""

    def __init__(self, database: Database, repository_ids: list[int], now: Instant) -> None:
        self.database, self.repository_ids, self.now = database, repository_ids, now
        self.owner_of: dict[str, str] = {}

    def add(self, owner: str, count: int = 1, repository: int = 0) -> list[str]:
        """Let new files of an owner wait."""
        self.now += 1
        ids = [f"09{repository:06x}{len(self.owner_of) + number:08x}" for number in range(count)]
        files = [
            extraction_queue.File(object_id, int(object_id, 16), owner, f"key-{object_id}", "", "a.pdf")
            for object_id in ids
        ]
        with self.database.begin() as cx:
            extraction_queue.enqueue_new(cx, self.repository_ids[repository], files, self.now)
        self.owner_of.update(dict.fromkeys(ids, owner))
        return ids

    def take(self) -> extraction_queue.Job | None:
        """Lease the next file."""
        with self.database.begin() as cx:
            return extraction_queue.take(cx, self.now)

    def finish(self, job: extraction_queue.Job) -> None:
        """Keep its text."""
        with self.database.begin() as cx:
            assert extraction_queue.finish(cx, job, "words", self.now)

    def read(self) -> str | None:
        """Lease the next file, finish it, and name its owner."""
        job = self.take()
        if job is None:
            return None
        self.finish(job)
        return self.owner_of[job.object_id]


@pytest.fixture
def queue(repository_db: Database, repository_ids: list[int], now: Instant) -> Queue:
    return Queue(repository_db, repository_ids, now)


def test_a_file_waits_for_at_most_one_file_of_each_other_owner(queue: Queue) -> None:
    """failures C7"""
    marta, boris, edith = OWNERS
    queue.add(marta, 8)
    assert queue.read() == marta
    queue.add(boris, 8)
    queue.add(edith)
    assert [queue.read() for _ in range(3)] == [marta, boris, edith]
    queue.add(edith)
    order = [queue.read() for _ in range(14)]
    assert edith in order[:3]
    assert Counter(order) == {marta: 6, boris: 7, edith: 1}
    assert queue.read() is None


def test_turns_are_one_line_over_all_repositories(queue: Queue) -> None:
    marta, boris, _ = OWNERS
    queue.add(marta, 4, repository=0)
    queue.add(marta, 4, repository=1)
    queue.add(boris, 1, repository=1)
    assert [queue.read() for _ in range(3)] == [marta, boris, marta]


@pytest.mark.slow
def test_who_waits_for_nobody_keeps_no_place(queue: Queue, repository_db: Database) -> None:
    for number in range(120):
        queue.add(f"user{number}@staff")
    assert len({queue.read() for _ in range(120)}) == 120
    while _in_line(repository_db):
        assert queue.take() is None
    with repository_db.read() as cx:
        assert not extraction_queue.waits(cx, queue.now)


def test_one_who_comes_again_and_again_does_not_overtake(queue: Queue) -> None:
    """Who waits for their own file and then brings the next one stands behind the others each time."""
    marta, boris, _ = OWNERS
    queue.add(marta, 3)
    order = []
    for _ in range(6):
        queue.add(boris)
        order.append(queue.read())
    assert order[:6] == [marta, boris] * 3


def test_a_file_that_is_tried_again_does_not_jump(queue: Queue) -> None:
    marta, boris, _ = OWNERS
    first, second = queue.add(marta, 2)
    job = queue.take()
    assert job is not None
    assert job.object_id == first
    queue.add(boris, 2)
    with queue.database.begin() as cx:
        assert extraction_queue.fail(cx, job, "It crashed.", queue.now, "retry")
    queue.now += 60 * SECOND
    order = []
    while (job := queue.take()) is not None:
        queue.finish(job)
        order.append(job.object_id)
    assert [queue.owner_of[one] for one in order] == [marta, boris, marta, boris]
    assert (order[0], order[2]) == (second, first)


def test_a_file_that_is_under_way_holds_up_nobody(queue: Queue) -> None:
    marta, boris, _ = OWNERS
    queue.add(marta)
    assert queue.take() is not None
    queue.add(boris, 2)
    assert [queue.read(), queue.read(), queue.read()] == [boris, boris, None]


def test_a_file_given_to_another_waits_in_their_turn(queue: Queue) -> None:
    marta, boris, edith = OWNERS
    files = queue.add(marta, 6)
    queue.add(boris)
    with queue.database.begin() as cx:
        extraction_queue.change_owner(cx, files[1:3], edith)
    queue.owner_of |= dict.fromkeys(files[1:3], edith)
    assert [queue.read() for _ in range(4)] == [marta, boris, edith, marta]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_after_any_history_no_file_waits_for_two_of_another_owner(queue: Queue, seed: int) -> None:
    """The oracle: the first file of an owner is passed at most once by each other owner, but for those tried again."""
    chance = random.Random(seed)
    waiting: Counter[str] = Counter()
    passed: dict[str, Counter[str]] = {}
    for _ in range(150):
        if chance.random() < 0.5:
            owner = chance.choice(OWNERS)
            count = chance.randint(1, 4)
            queue.add(owner, count)
            passed.setdefault(owner, Counter())
            waiting[owner] += count
        elif (served := queue.read()) is not None:
            waiting[served] -= 1
            passed.pop(served)
            for owner, by in passed.items():
                by[served] += 1
                assert by[served] == 1, f"{owner} waits for {served} again"
            if waiting[served]:
                passed[served] = Counter()
        else:
            assert not +waiting


@pytest.mark.slow
def test_the_next_file_is_found_without_reading_the_queue(queue: Queue, repository_db: Database) -> None:
    """Every look-up of a taker searches an index and gives at most one row, however many files wait."""
    marta, boris, _ = OWNERS
    queue.add(marta, 20_000)
    queue.add(boris, 3)
    with repository_db.begin() as cx:
        cx.exec_driver_sql("ANALYZE texts")
    rows: list[int] = []

    def count(_cx: object, cursor: Any, *_rest: object) -> None:
        rows.append(cursor.rowcount)

    def ask(cx: Connection) -> None:
        assert extraction_queue.waits(cx, queue.now)
        assert extraction_queue.take(cx, queue.now) is not None

    sa.event.listen(repository_db.engine, "after_cursor_execute", count)
    try:
        plan = plans.steps(repository_db, ask, writes=True)
    finally:
        sa.event.remove(repository_db.engine, "after_cursor_execute", count)
    assert max(rows[: len(plan)]) <= 1
    assert len(plan) == 5, "whether one waits, whose turn it is, their first file, its lease, the line"
    for statement, steps in plan:
        assert not any("SCAN texts" in step or "Seq Scan on texts" in step for step in steps), (statement, steps)
        assert not any("ORDER BY" in step for step in steps if "texts" in statement), (statement, steps)


def test_owners_whose_files_are_postponed_are_passed_over_in_one_statement(
    queue: Queue, repository_db: Database
) -> None:
    for number in range(200):
        queue.add(f"user{number}@staff")
        job = queue.take()
        assert job is not None
        with repository_db.begin() as cx:
            extraction_queue.postpone(cx, job, queue.now)
    queue.add("late@staff")
    with plans.sent_to(repository_db) as sent:
        job = queue.take()
    assert job is not None
    assert queue.owner_of[job.object_id] == "late@staff"
    assert len(sent) <= 5


def _in_line(database: Database) -> int:
    with database.read() as cx:
        return int(cx.exec_driver_sql("SELECT count(*) FROM turns").scalar_one())
