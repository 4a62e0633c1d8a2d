"""The extractor: whatever one file does, the queue goes on, and what is not finished is not lost."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import extractor, queue
from muniment.repository.store.extraction.confined import process
from muniment.repository.store.objects import found_properties
from tests.unit.repository import sample_files as made
from tests.unit.repository.store.extraction import draining
from tests.unit.repository.store.extraction.confined.test_sandbox import PLANTED
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

OPTIONS = RepositoryOptions(extraction_seconds=1, extraction_memory_mib=512, extraction_processes=2)


class Folder:
    """A content store of plain files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def local(self, key: str) -> Iterator[BinaryIO]:
        if not (self.folder / key).exists():
            raise ContentDamaged("The content is missing from the store.")
        with open(self.folder / key, "rb", buffering=0) as file:
            yield file


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "archive", "00000000-0000-4000-8000-000000000001", "", now).id


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", PLANTED))


def keep(database: Database, store: Folder, repository_id: int, files: dict[str, bytes], now: Instant) -> list[str]:
    ids = []
    for number, (name, content) in enumerate(files.items()):
        (store.folder / name).write_bytes(content)
        ids.append(f"09000001{number:08x}")
        with database.begin() as cx:
            queue.enqueue(cx, repository_id, queue.File(ids[-1], number, "marta@staff", name, "", name), now + number)
    return ids


def states(database: Database, ids: list[str]) -> list[str]:
    with database.read() as cx:
        return [queue.status(cx, object_id).state for object_id in ids]


def drain(database: Database, store: Folder, now: Instant) -> int:
    return draining.drain(database, store, OPTIONS, found_properties.keep_found_properties, lambda: now + 100)


def test_every_file_is_read_and_its_text_or_reason_kept(
    repository_db: Database, store: Folder, repository_id: int, now: Instant
) -> None:
    files = {
        "a.docx": made.docx("Grüße"),
        "deep.txt.gz": made.compress(b"words", 5),
        "noise.txt": bytes(range(256)) * 9,
        "cut.odt": made.odt("words")[:200],
        "scan.pdf": made.pdf(picture=True),
        "z.txt": b"last words",
    }
    ids = keep(repository_db, store, repository_id, files, now)
    assert drain(repository_db, store, now) == len(files)
    assert states(repository_db, ids) == ["done", "failed", "unsupported", "failed", "no-text", "done"]
    with repository_db.read() as cx:
        assert queue.text_of(cx, ids) == {ids[0]: "Grüße", ids[5]: "last words"}
        noted = [change.object_id for change in changes.after(cx, repository_id, changes.START, 100)]
        assert noted == ids, "every end of a reading is noted"
        assert "deeper than is read" in queue.status(cx, ids[1]).reason


def test_what_a_file_says_about_itself_goes_to_its_object(
    repository_db: Database, store: Folder, repository_id: int, now: Instant
) -> None:
    mail = b"Subject: Annual report\nFrom: \nDate: Tue, 6 May 2003 10:11:12 +0200\n\nwords"
    (object_id,) = keep(repository_db, store, repository_id, {"a.eml": mail}, now)
    told: list[object] = []

    def note(_cx: Connection, job: queue.Job, *found: object) -> None:
        told.extend([job.object_id, job.content_key, job.due, *found])

    draining.drain(repository_db, store, OPTIONS, note, lambda: now + 100)
    said = {"subject": ["Annual report"], "a_content_date": ["2003-05-06T10:11:12+02:00"]}
    assert told == [object_id, "a.eml", now, said, now + 100]


def test_every_end_of_a_reading_is_noted(
    repository_db: Database, store: Folder, repository_id: int, now: Instant
) -> None:
    """The embedder passes over a file that is not read yet, and must come to its heading once it has been read."""
    files = {
        "noise.txt": bytes(range(256)) * 9,
        "scan.pdf": made.pdf(picture=True),
        "cut.odt": made.odt("words")[:200],
        "lost.txt": b"words",
    }
    ids = keep(repository_db, store, repository_id, files, now)
    with repository_db.begin() as cx:
        cx.execute(queue.texts.update().where(queue.texts.c.object_id == ids[-1]).values(losses=queue.LOSSES))
    assert draining.drain(repository_db, store, OPTIONS, found_properties.keep_found_properties, lambda: now + 100) == 3
    assert states(repository_db, ids) == ["unsupported", "no-text", "failed", "failed"]
    with repository_db.read() as cx:
        noted = [change.object_id for change in changes.after(cx, repository_id, changes.START, 100)]
    assert noted == ids


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("poison", [["crash"], pytest.param(["crash", "eat", "burn"], marks=pytest.mark.campaign)])
def test_poison_files_are_parked_after_three_tries_and_stop_nobody(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, poison: list[str]
) -> None:
    """failures B11"""
    files = {name: name.encode() for name in (*poison, "words")}
    ids = keep(repository_db, store, repository_id, files, now)
    assert drain(repository_db, store, now) == len(files)
    assert states(repository_db, ids) == ["waiting"] * len(poison) + ["done"]
    for _ in range(3):
        now += 60 * SECOND
        drain(repository_db, store, now)
    assert states(repository_db, ids) == ["failed"] * len(poison) + ["done"]
    with repository_db.read() as cx:
        parked = [queue.status(cx, object_id) for object_id in ids[:-1]]
    assert [status.attempts for status in parked] == [3] * len(poison)
    assert all("tried 3 times" in status.reason for status in parked)


def test_a_small_plain_text_needs_no_process(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", "raise SystemExit"))
    ids = keep(repository_db, store, repository_id, {"a.txt": b"words"}, now)
    assert drain(repository_db, store, now) == 1
    assert states(repository_db, ids) == ["done"]


def test_missing_content_is_a_reason(repository_db: Database, store: Folder, repository_id: int, now: Instant) -> None:
    ids = keep(repository_db, store, repository_id, {"gone": b"x", "z.txt": b"words"}, now)
    (store.folder / "gone").unlink()
    drain(repository_db, store, now)
    assert states(repository_db, ids) == ["waiting", "done"]
    with repository_db.read() as cx:
        assert "missing from the store" in queue.status(cx, ids[0]).reason


@pytest.mark.usefixtures("planted")
def test_content_replaced_while_it_is_read_keeps_nothing_of_the_old(
    repository_db: Database,
    store: Folder,
    repository_id: int,
    now: Instant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extractor, "_RENEW_AFTER", 0)
    monkeypatch.setattr(process, "_GRACE", 1000)  # longer than a test may take
    ids = keep(repository_db, store, repository_id, {"hang": b"hang"}, now)
    reading = threading.Thread(target=drain, args=(repository_db, store, now))
    reading.start()
    until(lambda: leased(repository_db, ids[0]), "nobody reads the file")
    (store.folder / "words").write_bytes(b"words")
    with repository_db.begin() as cx:
        queue.enqueue(cx, repository_id, queue.File(ids[0], 0, "marta@staff", "words", "", "words"), now)
    reading.join()
    with repository_db.read() as cx:
        assert queue.text_of(cx, ids) == {ids[0]: "words"}


@pytest.mark.usefixtures("planted")
def test_stopping_gives_the_file_back_and_several_read_at_once(
    repository_db: Database, store: Folder, repository_id: int
) -> None:
    now = time.time_ns() // 1000
    files = {f"words-{number}": b"words" for number in range(8)} | {"hang": b"hang"}
    ids = keep(repository_db, store, repository_id, files, now - 100)
    stop = threading.Event()
    slow = RepositoryOptions(extraction_seconds=600, extraction_memory_mib=512, extraction_processes=2)
    running = threading.Thread(
        target=extractor.run, args=(repository_db, store, slow, stop, found_properties.keep_found_properties)
    )
    running.start()
    try:
        until(lambda: states(repository_db, ids[:8]) == ["done"] * 8)
    finally:
        stop.set()
        running.join(PATIENCE)
    assert not running.is_alive()
    assert states(repository_db, ids) == ["done"] * 8 + ["waiting"]
    with repository_db.begin() as cx:
        job = queue.take(cx, time.time_ns() // 1000)
    assert job is not None, "it is free at once, no lease has to run out"
    assert (job.object_id, job.attempts) == (ids[8], 0)


def test_trouble_with_the_database_does_not_end_the_extractor(
    repository_db: Database,
    store: Folder,
    repository_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = keep(repository_db, store, repository_id, {"a.txt": b"words"}, time.time_ns() // 1000 - 100)
    whole, troubles = extractor._next_job, iter([OSError("no such luck")])

    def sometimes(*arguments: Any) -> Any:
        for trouble in troubles:
            raise trouble
        return whole(*arguments)

    monkeypatch.setattr(extractor, "_next_job", sometimes)
    monkeypatch.setattr(extractor, "_TROUBLE_SECONDS", 0.1)
    stop = threading.Event()
    running = threading.Thread(
        target=extractor.run, args=(repository_db, store, OPTIONS, stop, found_properties.keep_found_properties)
    )
    running.start()
    try:
        until(lambda: states(repository_db, ids) == ["done"])
    finally:
        stop.set()
        running.join()


def test_a_result_waits_for_a_busy_database(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = keep(repository_db, store, repository_id, {"a.txt": b"words", "b.pdf": b"%PDF-1.7 and nothing else"}, now)
    begin = repository_db.begin
    busy = [False, True, False, False, True]  # each take succeeds, the first try to write each result does not

    def sometimes_busy() -> AbstractContextManager[Connection]:
        if busy and busy.pop(0):
            raise Busy
        return begin()

    monkeypatch.setattr(repository_db, "begin", sometimes_busy)
    assert drain(repository_db, store, now) == 2
    assert states(repository_db, ids) == ["done", "failed"]


def test_a_worker_that_does_not_start_blames_no_file(
    repository_db: Database, store: Folder, repository_id: int, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = keep(repository_db, store, repository_id, {"a.csv": b"words"}, now)
    with monkeypatch.context() as broken:
        broken.setattr(process, "_PROGRAM", (sys.executable, "-I", "-c", "raise SystemExit"))
        for _ in range(5):
            with pytest.raises(process.Unstarted):
                drain(repository_db, store, now)
    assert drain(repository_db, store, now) == 1
    assert states(repository_db, ids) == ["done"]


def test_a_killed_extractor_leaves_a_lease_that_runs_out(
    repository_db: Database, store: Folder, repository_id: int
) -> None:
    now = time.time_ns() // 1000
    ids = keep(repository_db, store, repository_id, {"hang": b"hang"}, now - 100)
    url = repository_db.engine.url.render_as_string(hide_password=False)
    script = f"""
import sys, threading
from pathlib import Path
from muniment.database.connections import Busy, Database
from muniment.repository.store.extraction import extractor
from muniment.repository.store.extraction.confined import process
from tests.unit.repository.store.extraction.test_extractor import Folder
from muniment.repository.options import RepositoryOptions
process._PROGRAM = (sys.executable, "-I", "-c", {PLANTED!r})
options = RepositoryOptions(extraction_seconds=600)
extractor.run(Database({url!r}), Folder(Path({str(store.folder)!r})), options, threading.Event(), lambda *_: None)
"""
    extractor = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[5])
    try:
        until(lambda: not waiting(repository_db), "nobody reads the file")
    finally:
        extractor.send_signal(signal.SIGKILL)
        extractor.wait()
    assert not waiting(repository_db), "the lease still stands"
    with repository_db.begin() as cx:
        taken = queue.take(cx, time.time_ns() // 1000 + queue.LEASE)
    assert taken is not None
    assert (taken.object_id, taken.attempts) == (ids[0], 0)


def test_a_file_belongs_to_its_extractor_while_the_store_copies_it(
    repository_db: Database, store: Folder, repository_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store in the network may copy a large file for longer than a lease lasts."""
    monkeypatch.setattr(extractor, "_RENEW_AFTER", SECOND // 20)
    ids = keep(repository_db, store, repository_id, {"a.txt": b"words"}, time.time_ns() // 1000 - 100)

    class Slow(Folder):
        @contextmanager
        def local(self, key: str) -> Iterator[BinaryIO]:
            taken = due(repository_db, ids[0])
            until(lambda: due(repository_db, ids[0]) > taken, "the lease is not renewed", 20)
            with super().local(key) as file:
                yield file

    assert draining.drain(repository_db, Slow(store.folder), OPTIONS, found_properties.keep_found_properties) == 1
    assert states(repository_db, ids) == ["done"]


def due(database: Database, object_id: str) -> Instant:
    with database.read() as cx:
        return int(cx.execute(sa.select(queue.texts.c.due).where(queue.texts.c.object_id == object_id)).scalar_one())


def leased(database: Database, object_id: str) -> bool:
    with database.read() as cx:
        query = sa.select(queue.texts.c.lease).where(queue.texts.c.object_id == object_id)
        return cx.execute(query).scalar_one() is not None


def waiting(database: Database) -> bool:
    with database.read() as cx:
        return queue.waits(cx, time.time_ns() // 1000)
