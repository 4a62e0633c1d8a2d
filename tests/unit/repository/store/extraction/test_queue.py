"""The queue of files to read, and the text kept of them."""

import threading
from collections import Counter

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import queue

ONE, TWO = "0900000100000001", "0900000100000002"


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "archive", "00000000-0000-4000-8000-000000000001", "", now).id


def enqueue(
    database: Database, repository_id: int, object_id: str, key: str, now: Instant, owner: str = "marta@staff"
) -> None:
    with database.begin() as cx:
        queue.enqueue(
            cx, repository_id, queue.File(object_id, int(object_id, 16), owner, key, "text/plain", "a.txt"), now
        )


def take(database: Database, now: Instant) -> queue.Job:
    with database.begin() as cx:
        job = queue.take(cx, now)
    assert job is not None
    return job


def nothing_to_take(database: Database, now: Instant) -> bool:
    with database.begin() as cx:
        return queue.take(cx, now) is None and not queue.waits(cx, now)


def status(database: Database, object_id: str = ONE) -> queue.IndexStatus:
    with database.read() as cx:
        return queue.status(cx, object_id)


def kinds(database: Database, repository_id: int) -> list[str]:
    with database.read() as cx:
        return [change.kind for change in changes.after(cx, repository_id, changes.START, 100)]


def test_a_finished_text_is_kept_and_notes_a_change(repository_db: Database, repository_id: int, now: Instant) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    assert status(repository_db) == queue.IndexStatus("waiting", "", 0)
    job = take(repository_db, now)
    assert (job.object_id, job.repository_id, job.content_key, job.file_name) == (ONE, repository_id, "key-1", "a.txt")
    with repository_db.begin() as cx:
        assert queue.finish(cx, job, "Grüße \0 漢字 \ud800", now + 1)
    with repository_db.read() as cx:
        assert queue.text_of(cx, [ONE, TWO]) == {ONE: "Grüße  漢字 ?"}
    assert status(repository_db) == queue.IndexStatus("done", "", 0)
    assert kinds(repository_db, repository_id) == ["text"]
    assert nothing_to_take(repository_db, now + 10**12)


def test_a_file_without_text_says_so_with_its_reason_and_notes_a_change(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    job = take(repository_db, now)
    with repository_db.begin() as cx:
        assert queue.finish(cx, job, " \n", now, "The pages hold pictures only, no text.")
        assert queue.text_of(cx, [ONE]) == {}
    assert status(repository_db) == queue.IndexStatus("no-text", "The pages hold pictures only, no text.", 0)
    assert kinds(repository_db, repository_id) == ["text"]


def test_an_object_without_content_is_empty(repository_db: Database) -> None:
    assert status(repository_db).state == "empty"


def test_replacing_the_content_drops_the_old_text_at_once(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    job = take(repository_db, now)
    with repository_db.begin() as cx:
        queue.finish(cx, job, "old words", now)
    enqueue(repository_db, repository_id, ONE, "key-2", now)
    with repository_db.read() as cx:
        assert queue.text_of(cx, [ONE]) == {}
    assert take(repository_db, now).content_key == "key-2"


def test_files_that_are_due_at_one_time_go_by_the_counter_not_by_the_id(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    order = {"09ffffffffffff01": 1, ONE: 3, "09cccccccccccc02": 2, TWO: 4}
    files = [queue.File(object_id, seq, "marta@staff", object_id, "", "a.txt") for object_id, seq in order.items()]
    with repository_db.begin() as cx:
        queue.enqueue_new(cx, repository_id, files, now)
    jobs = [take(repository_db, now) for _ in files]
    assert [order[job.object_id] for job in jobs] == [1, 2, 3, 4]
    with repository_db.begin() as cx:
        for job in reversed(jobs):
            queue.fail(cx, job, "No.", now, "failed")
        first = queue.unread(cx, repository_id, -1, 3)
        assert [order[file.object_id] for file in first] == [1, 2, 3]
        assert [file.object_id for file in queue.unread(cx, repository_id, first[-1].seq, 3)] == [TWO]
        assert queue.unread(cx, repository_id + 1, -1, 3) == []


@pytest.mark.parametrize("replaced_with", ["key-2", "key-1"])
def test_what_was_read_of_a_replaced_content_is_thrown_away(
    repository_db: Database, repository_id: int, now: Instant, replaced_with: str
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    job = take(repository_db, now)
    enqueue(repository_db, repository_id, ONE, replaced_with, now)
    with repository_db.begin() as cx:
        assert not queue.renew(cx, job, now)
        assert not queue.finish(cx, job, "old words", now)
        assert not queue.fail(cx, job, "old failure", now, "failed")
    assert status(repository_db) == queue.IndexStatus("waiting", "", 0)
    assert kinds(repository_db, repository_id) == []


def test_a_dropped_object_leaves_nothing(repository_db: Database, repository_id: int, now: Instant) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    job = take(repository_db, now)
    with repository_db.begin() as cx:
        queue.drop(cx, [ONE])
        assert not queue.finish(cx, job, "words", now)
        assert queue.counts(cx, repository_id)["done"] == 0


def test_a_poison_file_is_tried_three_times_then_parked(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    for attempt in (1, 2, 3):
        now += 60 * SECOND
        job = take(repository_db, now)
        with repository_db.begin() as cx:
            assert queue.fail(cx, job, "It crashed.", now, "retry")
        assert status(repository_db).attempts == attempt
        assert nothing_to_take(repository_db, now), "a file that just failed waits a little"
    parked = status(repository_db)
    assert parked.state == "failed"
    assert parked.reason.startswith("It crashed.")
    assert nothing_to_take(repository_db, now + 10**12)
    assert kinds(repository_db, repository_id) == ["text"], "the attempts before the last one change no state"
    with repository_db.read() as cx:
        assert queue.unread(cx, repository_id, -1, 10) == [queue.UnreadFile(ONE, int(ONE, 16), parked)]


def test_a_lost_extractor_leaves_a_lease_that_runs_out(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    lost = take(repository_db, now)
    assert nothing_to_take(repository_db, now + queue.LEASE - 1)
    again = take(repository_db, now + queue.LEASE)
    with repository_db.begin() as cx:
        assert not queue.finish(cx, lost, "too late", now)
        assert queue.finish(cx, again, "in time", now)
        assert queue.text_of(cx, [ONE]) == {ONE: "in time"}
    assert status(repository_db).attempts == 0, "that the extractor was killed is not the file's fault"


def test_a_file_whose_extractor_is_always_lost_is_parked(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    for _ in range(queue.LOSSES):
        take(repository_db, now)
        now += queue.LEASE
    with repository_db.begin() as cx:
        assert queue.take(cx, now) is None
    assert status(repository_db).state == "failed"


def test_a_renewed_lease_holds_and_a_released_job_is_free_at_once(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    job = take(repository_db, now)
    with repository_db.begin() as cx:
        assert queue.renew(cx, job, now + queue.LEASE - 1)
    assert nothing_to_take(repository_db, now + queue.LEASE + 1)
    with repository_db.begin() as cx:
        queue.release(cx, job, now + queue.LEASE + 1)
    assert take(repository_db, now + queue.LEASE + 1).attempts == 0


def test_parallel_extractors_never_get_the_same_job(repository_db: Database, repository_id: int, now: Instant) -> None:
    many = 40
    for number in range(many):
        enqueue(repository_db, repository_id, f"09000001{number:08x}", f"key-{number}", now)
    taken: Counter[str] = Counter()

    def work() -> None:
        while True:
            with repository_db.begin() as cx:
                job = queue.take(cx, now)
            if job is None:
                return
            taken[job.object_id] += 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == many
    assert set(taken.values()) == {1}


@pytest.mark.only("postgresql", "On SQLite a second writer waits.")
def test_a_taker_passes_over_a_job_another_is_just_taking(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    enqueue(repository_db, repository_id, TWO, "key-2", now + 1, owner="boris@staff")
    with repository_db.begin() as first, repository_db.begin() as second:
        one, two = queue.take(first, now + 1), queue.take(second, now + 1)
    assert one
    assert two
    assert {one.object_id, two.object_id} == {ONE, TWO}


def test_counts_name_every_state(repository_db: Database, repository_id: int, now: Instant) -> None:
    enqueue(repository_db, repository_id, ONE, "key-1", now)
    enqueue(repository_db, repository_id, TWO, "key-2", now + 1)
    job = take(repository_db, now)
    with repository_db.begin() as cx:
        queue.fail(cx, job, "A picture.", now, "unsupported")
        assert queue.counts(cx, repository_id) == {
            "waiting": 1,
            "done": 0,
            "failed": 0,
            "unsupported": 1,
            "no-text": 0,
        }
        assert queue.counts(cx, repository_id + 1)["waiting"] == 0


def test_reasons_are_counted_by_state_and_what_was_read_whole_is_not_among_them(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    ends = {"A picture.": "unsupported", "Its attachment was not read.": "done", "": "done"}
    for number, (reason, state) in enumerate([*ends.items(), ("A picture.", "unsupported")]):
        enqueue(repository_db, repository_id, f"{number + 1:016x}", "key", now)
        job = take(repository_db, now)
        with repository_db.begin() as cx:
            if state == "done":
                queue.finish(cx, job, "words", now, reason)
            else:
                queue.fail(cx, job, reason, now, "unsupported")
    enqueue(repository_db, repository_id, ONE, "key", now)
    with repository_db.read() as cx:
        assert queue.reasons(cx, repository_id) == [
            ("unsupported", "A picture.", 2),
            ("done", "Its attachment was not read.", 1),
            ("waiting", "", 1),
        ]
