"""kill -9 of a process that writes packs, and of one that compacts them: what was answered stays, and nothing by half.

A writer makes, replaces and deletes documents, many in one transaction, and says through a pipe what it begins and what
it has done; a content by its digest. Half of the contents are equal to others, which are kept once. Beside it another
process moves and drops the packs of earlier rounds. Both are killed at any moment.
"""

import contextlib
import hashlib
import itertools
import multiprocessing
import os
import pickle
import random
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.search.agent import agent
from muniment.repository.store import repositories
from muniment.repository.store.content import packs
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import compaction, content_references
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from tests.clock import NOON
from tests.conftest import Fresh
from tests.contents import contents, counted_rows, counted_uses

ROUNDS = int(os.environ.get("KILL_ROUNDS", "60"))
"""Of the campaign, on each database; each round kills two processes."""

DAY: Instant = 86_400 * SECOND
BORDER, FULL, ALIVE = 4096, 30_000, 120
PATIENCE = 120
ADMINISTRATOR = Principals("root@staff", administrator=True)


def write(url: str, folder: Path, now: Instant, seed: int, pipe: Connection) -> None:
    """Write without end. ``now`` stands still: it names the packs of this round."""
    packs._FULL_BYTES = FULL
    database, chance = Database(url, busy_seconds=PATIENCE), random.Random(seed)
    store = FileStore(folder, packing=Packing(BORDER, lambda: now))
    with database.read() as cx:
        repository = repositories.find(cx, "demo")
        view = RepositoryView.read(cx, repository, ADMINISTRATOR)
        alive = [each.id for each in inventory.next_objects(cx, repository.id, 0, 10_000)]
    for number in itertools.count():
        texts = [_text(chance, f"{seed} {number} {place}") for place in range(chance.randrange(1, 12))]
        if len(alive) < ALIVE and chance.random() < 0.5:
            pipe.send(("making", digests := [_digest(text) for text in texts]))
            new = [NewObject("document", {"object_name": "x"}, None, content, None) for content in store.put_all(texts)]
            with database.begin() as cx:
                documents = creation.create_all(cx, view, new, now)
            made = [each.id for each in documents]
            pipe.send(("made", dict(zip(made, digests, strict=True))))
            _drop_spares(database, store, [each.content for each in new], documents)
            alive += made
        elif alive and chance.random() < 0.6:
            object_id = alive.pop(chance.randrange(len(alive)))
            pipe.send(("deleting", object_id))
            with database.begin() as cx:
                gone = objects.delete(cx, repository, ADMINISTRATOR, object_id, now)
            pipe.send(("deleted", object_id))
            for key in gone.freed:
                store.remove(key)
        elif alive:
            object_id = chance.choice(alive)
            pipe.send(("replacing", (object_id, _digest(texts[0]))))
            content = store.put([texts[0]])
            with database.begin() as cx:
                stored = objects.replace_content(cx, repository, ADMINISTRATOR, object_id, content, "text/plain", now)
            pipe.send(("replaced", (object_id, _digest(texts[0]))))
            _drop_spares(database, store, [content], [stored])
            for key in stored.freed:
                store.remove(key)


def _drop_spares(
    database: Database, store: FileStore, uploaded: list[StoredContent | None], documents: list[StoredObject]
) -> None:
    named = [each.content for each in documents]
    content_references.drop_spares(database, store, [each for each in uploaded if each is not None], named)


def compact(url: str, folder: Path, now: Instant, pipe: Connection) -> None:
    """Compact the packs of earlier rounds without end."""
    compaction._AT_A_TIME = 3
    database = Database(url, busy_seconds=PATIENCE)
    store = FileStore(folder, packing=Packing(BORDER, lambda: now))
    while True:
        for moved in compaction.steps(database, store, now - DAY):
            if moved:
                pipe.send(("moved", moved))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _text(chance: random.Random, words: str) -> bytes:
    """Some are empty, some have files of their own."""
    size = chance.choice((0, 10, 500, 3000, BORDER + 1))
    words = chance.choice((words, words, "these words", "those words"))
    return (words.encode() * (size // len(words) + 1))[:size]


class House:
    """A repository, and what the writers were told is kept."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.told: dict[str, bytes] = {}
        self.moved = self.answered = self.kills = 0
        database = Database(url)
        with database.begin() as cx:
            self.repository = repositories.add(cx, "demo", "00000000-0000-4000-8000-000000000000", "", NOON)
            acls.initialise(cx, self.repository.id, NOON)
        database.close()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    def a_round(self, number: int, chance: random.Random) -> None:
        """Let both work, kill them, and hear what they have done."""
        now, pipes, processes = NOON + number * 3 * DAY, [], []
        for work, more in ((write, (chance.randrange(10**9),)), (compact, ())):
            here, there = self._context.Pipe(duplex=False)
            process = self._context.Process(target=work, args=(self.url, self.folder, now, *more, there), daemon=True)
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        assert pipes[0].poll(PATIENCE), "the writer does not begin"
        for process in chance.sample(processes, 2):
            time.sleep(chance.uniform(0, 0.7))
            process.kill()
            self.kills += 1
        for process in processes:
            process.join(PATIENCE)
            assert process.exitcode == -9, "it ended before it was killed"
        written, moves = ([*_received(pipe)] for pipe in pipes)
        self.moved += sum(moved for _, moved in moves)
        self._check(written)

    def _check(self, written: list[tuple[str, Any]]) -> None:
        for done, what in written:
            self.answered += done in ("made", "deleted", "replaced")
            match done:
                case "made":
                    self.told |= what
                case "deleted":
                    del self.told[what]
                case "replaced":
                    self.told[what[0]] = what[1]
        rows = self.rows()
        store = FileStore(self.folder)
        there = {each.id: _digest(b"".join(store.read(each.content))) for each in rows if each.content is not None}
        match written[-1:]:
            case [("making", what)]:
                new = {object_id: digest for object_id, digest in there.items() if object_id not in self.told}
                assert list(new.values()) in ([], what), "a transaction is there by half"
                self.told |= new
            case [("deleting", object_id)] if object_id not in there:
                del self.told[object_id]
            case [("replacing", (object_id, digest))] if there[object_id] == digest:
                self.told[object_id] = digest
        assert there == self.told

    def rows(self) -> list[StoredObject]:
        """Every object, in the order in which they were made."""
        database = Database(self.url)
        with database.read() as cx:
            found = inventory.next_objects(cx, self.repository.id, 0, 10_000)
            assert counted_uses(cx) == counted_rows(cx), "uses are counted wrongly"
        database.close()
        return found

    def tidy(self, number: int) -> None:
        """Compact to the end; the rest of the folder is no more than what is needed."""
        database, now = Database(self.url), NOON + number * 3 * DAY
        store = FileStore(self.folder, packing=Packing(BORDER, lambda: now))
        for _ in range(2):
            self.moved += sum(compaction.steps(database, store, now))
        sum(agent._sweep(database, store, 2**52))
        database.close()
        self._check([])
        assert set(self.told.values()) <= {_digest(text) for text in contents(self.folder)}
        size = sum(place.stat().st_size for place in (self.folder / "packs").iterdir())
        kept = [each.content for each in self.rows() if each.content is not None]
        alive = sum(content.size + 40 for content in set(kept) if packs.is_key(content.key))
        assert size <= 2 * alive + FULL, "room does not come back"


def _received(pipe: Connection) -> Iterator[tuple[str, Any]]:
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            yield pipe.recv()


def survive(house: House, rounds: int) -> None:
    """Go through so many rounds; the seed is told when one goes wrong."""
    seed = os.environ.get("KILL_SEED") or str(random.SystemRandom().randrange(10**9))
    number = 0
    try:
        for number in range(1, rounds + 1):
            house.a_round(number, random.Random(f"{seed} {number}"))
        house.tidy(rounds + 1)
    except BaseException as error:
        error.add_note(f"Seed {seed}, round {number}. Again: KILL_SEED={seed}")
        raise
    print(f"seed {seed}: {house.kills} kills, {house.answered} answers, {house.moved} contents moved")


@pytest.fixture
def house(fresh: Fresh, tmp_path: Path) -> House:
    return House(fresh("repository"), tmp_path / "content")


@pytest.mark.timeout(600)
def test_packs_survive_kills(house: House) -> None:
    survive(house, 3)


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_packs_survive_kills_for_long(house: House) -> None:
    survive(house, ROUNDS)
    assert house.moved, "nothing was compacted"
