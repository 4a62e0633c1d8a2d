"""kill -9 of whatever runs, while people write: what was answered holds, and the index comes to hold what is kept.

Sources: issue 3, "Tests that must exist"; design.md 1.1 and 1.4. A kill leaves the operating system running; that the
same holds when the power goes is a matter of what was brought to the disk, and in which order: the last tests.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from muniment.cli import commands
from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.installation import backends
from muniment.repository.search.agent import agent, indexing
from muniment.repository.search.index.tantivy.engine import TantivyWriter
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.extraction import queue
from tests.conftest import Fresh
from tests.e2e.ledger import REPOSITORY, WORD, Holder, Ledger, Writer
from tests.e2e.processes import ENVIRONMENT, QUICK, ServedHouse, Server, muniment
from tests.scenes import World
from tests.servers import free_port
from tests.shelf import MARTA, Shelf
from tests.waiting import until

PARTS: tuple[list[str], ...] = (
    ["worker", "agent", "extractor"],
    ["worker", "purge"],
    ["worker", "agent", "extractor"],
    ["agent", "extractor", "purge"],
    [],
)
"""What a round kills before everything."""

ROUNDS = int(os.environ.get("KILL_ROUNDS", "60"))
"""Of the campaign, on each database; with 167 each process is killed at least 200 times over both."""

WRITERS = 3
PATIENCE = 180
"""Seconds that anything may take on a slow machine."""


class House(ServedHouse):
    """A served house that is killed and started again, and the ledgers of those who use it."""

    def __init__(self, root: Path, directory_url: str, repository_url: str) -> None:
        super().__init__(root, directory_url, repository_url)
        self.database = Database(repository_url)
        with self.database.read() as cx:
            self.repository = repositories.find(cx, World.repository)
        self.port = free_port()
        self.holder = Holder(0, world=self.world)
        self.writers = [Writer(number) for number in range(1, WRITERS + 1)]
        self.parts: dict[str, int] = {}

    @property
    def ledgers(self) -> list[Ledger]:
        """Everybody's."""
        return [self.holder, *self.writers]

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self.server = self._begun()
        self.server.wait_ready(PATIENCE)
        worker, _, agent_, extractor, purge = self.server.children()
        self.parts = {"worker": worker, "agent": agent_, "extractor": extractor, "purge": purge}

    def kill_while_starting(self, chance: random.Random) -> None:
        """Start the server, and kill it before anybody could know how far it is."""
        server = self._begun()
        time.sleep(chance.uniform(0, 2))
        server.kill()
        self._nobody_left(server)

    def kill(self, what: str) -> None:
        """Kill one of the server's processes, or all."""
        assert self.server is not None
        process = self.server.process
        match what:
            case "all":
                os.killpg(process.pid, signal.SIGKILL)
            case "supervisor":
                process.kill()
            case _:
                if what == "extractor":
                    with suppress(AssertionError):  # chance may have given it nothing to read
                        until(self._reads_a_file, seconds=1, pause=0)
                os.kill(self.parts[what], signal.SIGKILL)
                return
        process.wait(PATIENCE)
        self._nobody_left(self.server)

    def _reads_a_file(self) -> bool:
        lease = queue.texts.c.lease
        with self.database.read() as cx:
            return cx.execute(sa.select(lease).where(lease.is_not(None))).first() is not None

    def _begun(self) -> Server:
        return Server(self.data, self.port, "--workers", "2")

    def _nobody_left(self, server: Server) -> None:
        until(lambda: not _session(server.process.pid), "a process of the server outlives it", PATIENCE)

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Talk to the server as the writer, by a new sign-in."""
        assert self.server is not None
        with self.server.client() as http:
            token = self.holder.sign_in(http)["access_token"]
            http.headers["Authorization"] = f"Bearer {token}"
            yield http

    @contextmanager
    def busy(self, chance: random.Random) -> Iterator[None]:
        """Have everybody at work for the length of the block, in which the server is killed."""
        assert self.server is not None
        stop, before = threading.Event(), [ledger.answered for ledger in self.ledgers]
        clients = [self.server.client() for _ in self.ledgers]
        with self.client() as signed_in:
            for http in clients:
                http.headers.update(signed_in.headers)
        threads = [
            threading.Thread(target=ledger.work, args=(http, random.Random(chance.random()), stop), daemon=True)
            for ledger, http in zip(self.ledgers, clients, strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            until(
                lambda: (
                    all(now.answered > then for now, then in zip(self.ledgers, before, strict=True))
                    or any(ledger.surprises for ledger in self.ledgers)
                ),
                "nobody is answered",
                PATIENCE,
            )
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(PATIENCE)
            for http in clients:
                http.close()
        assert not any(thread.is_alive() for thread in threads)

    def let_leases_run_out(self) -> None:
        """Let the time pass for which a dead extractor's files stay its own; nobody is there who could notice."""
        held = queue.texts.c.lease.is_not(None)
        with self.database.begin() as cx:
            cx.execute(queue.texts.update().where(held).values(due=queue.texts.c.due - queue.LEASE))

    def holds(self, *, all_of_them: bool = False) -> None:
        """Ask the server that runs for all that was answered, and check the index."""
        with self.client() as http:
            faults = [fault for writer in self.writers for fault in writer.faults(http)]
            faults += self.holder.faults(http, all_of_them=all_of_them)
            faults += [surprise for ledger in self.ledgers for surprise in ledger.surprises]
            assert not faults, "\n".join(faults)
            until(self._caught_up, "the agent or the extractor does not catch up", PATIENCE)
            self._check_index()
            self._search(http)

    def _caught_up(self) -> bool:
        reader = backends.reader(self.installation, self.repository)
        try:
            with self.database.read() as cx:
                waiting = queue.counts(cx, self.repository.id)["waiting"]
                return not waiting and reader.snapshot().position == changes.latest(cx, self.repository.id)
        finally:
            reader.close()

    def _check_index(self) -> None:
        assert commands.run(["--data", str(self.data), "index", "check"]) == 0
        assert commands.run(["--data", str(self.data), "repository", "usage"]) == 0, "what owners keep is miscounted"

    def _search(self, http: httpx.Client) -> None:
        """Every content is found by its word, once."""
        answer = http.get(
            f"{REPOSITORY}/search",
            params={"q": WORD, "include-total": "true", "items-per-page": "1000"},
            headers={"Accept": "application/json"},
        )
        assert answer.status_code == 200, answer.text
        found = sorted(entry["id"] for entry in answer.json()["entries"])
        papers = {name: paper for writer in self.writers for name, paper in writer.papers.items()}
        assert found == sorted(name for name, paper in papers.items() if paper.content is not None)
        assert answer.json()["total"] == len(found)

    def close(self) -> None:
        """End what still runs."""
        if self.server is not None:
            self.server.kill()
        self.database.close()


def _session(leader: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
            if int(session) == leader and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


@contextmanager
def rebuilding(data: Path) -> Iterator[None]:
    """Rebuild the index beside the block, and kill that when the block ends."""
    settings = [word for setting in QUICK for word in ("--set", setting)]
    process = subprocess.Popen(
        [sys.executable, "-m", "muniment", "--data", str(data), *settings, "index", "rebuild", "-r", World.repository],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(PATIENCE)


def a_round(house: House, number: int, chance: random.Random) -> list[str]:
    """Kill parts of the server, then all of it, while everybody writes; start it again; say what was killed.

    What is killed goes by the round's number, so that few rounds see everything; when it is killed goes by chance.
    """
    parts = PARTS[number % len(PARTS)]
    ends = [*chance.sample(parts, len(parts)), ("all", "supervisor")[number % 2]]
    with house.busy(chance):
        for what in ends:
            time.sleep(chance.uniform(0, 0.7))
            house.kill(what)
    house.let_leases_run_out()
    if number % 3 == 0:
        ends.append("all while starting")
        house.kill_while_starting(chance)
    house.start()
    return ends


def survive(house: House, rounds: int, *, asked_every: int = 1) -> None:
    """Go through so many rounds, and ask after every so many what holds; the seed is told when one goes wrong."""
    seed = os.environ.get("KILL_SEED") or str(random.SystemRandom().randrange(10**9))
    ends: list[str] = []
    killed: Counter[str] = Counter()
    number = 0
    try:
        house.start()
        with house.client() as http:
            for writer in house.writers:
                writer.begin(http)
        for number in range(1, rounds + 1):
            chance = random.Random(f"{seed} {number}")
            if number % 3 == 2:
                with rebuilding(house.data):
                    ends = a_round(house, number, chance)
            else:
                ends = a_round(house, number, chance)
            killed.update(ends)
            if number % asked_every == 0 or number == rounds:
                house.holds(all_of_them=number == rounds)
    except BaseException as error:
        error.add_note(f"Seed {seed}, round {number}, killed: {', '.join(ends)}. Again: KILL_SEED={seed}")
        if house.server is not None:
            lines = house.server.log.read_text().splitlines()
            error.add_note(
                "\n".join(line for line in lines if '"level":"info"' not in line.replace('": "', '":"'))[-5000:]
            )
        raise
    answered = sum(ledger.answered for ledger in house.ledgers)
    print(f"seed {seed}: {rounds} rounds, {answered} requests answered, killed: {dict(killed)}")


@pytest.fixture
def house(fresh: Fresh, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, fresh("directory"), fresh("repository"))
    yield made
    made.close()


@pytest.mark.timeout(1200)
def test_what_was_answered_survives_kills(house: House) -> None:
    """failures B14"""
    survive(house, 2)
    checked = muniment(house.data, "index", "check")
    assert checked.returncode == 0, checked.stdout
    assert " 0 missing, 0 extra, 0 stale, 0 doubled, 0 waiting, 0 not indexable" in checked.stdout


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_what_was_answered_survives_kills_for_long(house: House) -> None:
    survive(house, ROUNDS, asked_every=5)


class Deadly(TantivyWriter):
    """A writer that kills its process around the engine's commit."""

    def __init__(self, folder: Path, when: str) -> None:
        super().__init__(folder)
        self.__dict__["_writer"] = _DeadlyCommit(self._writer, when)


class _DeadlyCommit:
    def __init__(self, engine: Any, when: str) -> None:
        self._engine, self._when = engine, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self) -> int:
        if self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        stamp: int = self._engine.commit()
        os.kill(os.getpid(), signal.SIGKILL)
        return stamp


def _index_until_killed(url: str, folder: Path, name: str, when: str, now: Instant) -> None:
    database = Database(url)
    with database.read() as cx:
        repository = repositories.find(cx, name)
    agent.catch_up(database, repository, Deadly(folder, when), now)


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.campaign), "after"])
def test_an_agent_killed_around_its_commit_repeats_and_neither_skips_nor_doubles(
    fresh: Fresh, tmp_path: Path, now: Instant, when: str
) -> None:
    """failures B14"""
    url = fresh("repository")
    shelf = Shelf(Database(url), tmp_path, now)
    kept, gone, ill = (shelf.add(f"pump {number}", "valve", acl="public") for number in range(3))
    shelf.catch_up()
    shelf.restart()
    shelf.change(kept, {"title": "changed"})
    shelf.delete(gone)
    made = shelf.add("pump 3", "valve", acl="public")
    with shelf.database.begin() as cx:  # once the engine refused it; now it takes it
        cx.execute(
            indexing.unindexed.insert().values(
                object_id=ill, repository_id=shelf.repository.id, reason="ill", noted=now
            )
        )
    shelf.change(ill, {"title": "well again"})
    before = shelf.index.snapshot().position
    arguments = (url, tmp_path / "index", shelf.repository.name, when, now)
    child = multiprocessing.get_context("spawn").Process(target=_index_until_killed, args=arguments)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == -signal.SIGKILL
    with shelf.database.read() as cx:
        latest = changes.latest(cx, shelf.repository.id)
    assert shelf.index.snapshot().position == (latest if when == "after" else before)
    shelf.catch_up()
    report = shelf.report()
    assert report.sound, report
    assert (report.documents, report.waiting, report.unindexed) == (3, 0, 0)
    assert shelf.find(MARTA, "pump") == [kept, ill, made]
    shelf.close()
    shelf.database.close()


def test_sqlite_brings_every_commit_to_the_disk(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'one.db'}")
    for opening in (database.begin, database.read):
        with opening() as cx:
            assert cx.exec_driver_sql("PRAGMA synchronous").scalar() == 2, "FULL"
            assert cx.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


def test_content_is_on_the_disk_before_an_object_can_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes before its name, its name before the answer, and the folders on the way."""
    done: list[tuple[str, Path]] = []
    store = FileStore(tmp_path / "content")
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        done.append(("fsync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        real_fsync(descriptor)

    def rename(part: Path, place: Path) -> None:
        done.append(("rename", place))
        real_rename(part, place)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    kept = store.put([b"valve"])
    place = tmp_path / "content" / kept.key[:2] / kept.key[2:4] / kept.key
    part = tmp_path / "content" / "incoming" / kept.key
    folders = [place.parent.parent.parent, place.parent.parent]
    assert done == [
        ("fsync", part),
        *(("fsync", folder) for folder in folders),
        ("rename", place),
        ("fsync", place.parent),
    ]
