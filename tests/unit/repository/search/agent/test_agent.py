"""The index agent: batches, poison, several repositories, rebuilding, checking."""

import json
import operator
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.bulk import removal
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import IndexUnavailable, InUse
from muniment.repository.search.agent import agent, checking, indexing
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering.scrolls import Holder
from muniment.repository.search.aql.conditions import BoundQuery, Like
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.tree import Fulltext, Term
from muniment.repository.search.index.contract import IndexWriter, Search, Visible
from muniment.repository.search.index.document import Document, document
from muniment.repository.search.index.tantivy import fields, generations
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.search.index.tantivy.generations import FolderEngine, FollowingIndex
from muniment.repository.store import leases, repositories
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.change_log.changes import START, Position
from muniment.repository.store.content.files import FileStore, Packing
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types, types_file
from muniment.repository.store.repositories import Repository
from tests.clock import Clock
from tests.faults import fail_each_step
from tests.shelf import BORIS, MARTA, Shelf
from tests.waiting import until


@contextmanager
def running(
    database: Database, folder: Path, opening: Callable[[Path, str], TantivyWriter] = TantivyWriter
) -> Iterator[None]:
    """Run an agent beside the test."""
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(database, FolderEngine(folder, opening), stop, Clock()))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def reader(folder: Path, shelf: Shelf) -> FollowingIndex:
    """Follow the index that an agent or a rebuild makes of the shelf's repository."""
    return FollowingIndex(folder / str(shelf.repository.id), TantivyIndex)


def reached(index: FollowingIndex, shelf: Shelf) -> bool:
    """Whether the index is true to the end of the log."""
    try:
        position = index.snapshot().position
    except IndexUnavailable:
        return False
    with shelf.database.read() as cx:
        return position == changes.latest(cx, shelf.repository.id)


def keys(index: FollowingIndex) -> list[str]:
    """Name the documents in an index, in the order in which their objects were made."""
    return [kept.key for kept in sorted(index.snapshot().documents(), key=lambda kept: kept.seq)]


@pytest.mark.slow
def test_a_batch_covers_so_many_changes_and_moves_the_position_past_them(shelf: Shelf) -> None:
    made = [shelf.add(f"pump {number}") for number in range(3)]
    with shelf.database.read() as cx:
        log = changes.after(cx, shelf.repository.id, START, 100)
    assert agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now, limit=1) == 1
    assert shelf.writer.position == log[0].position == shelf.index.snapshot().position
    assert [kept.key for kept in shelf.index.snapshot().documents()] == [made[0]]
    shelf.catch_up()
    assert shelf.writer.position == log[-1].position
    assert agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now) == 0
    assert shelf.writer.position == log[-1].position


@pytest.mark.slow
def test_a_batch_of_much_text_closes_early_without_losing_a_change(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "CHARACTERS", 50)
    monkeypatch.setattr(indexing, "_TEXTS_AT_A_TIME", 1)
    monkeypatch.setattr(indexing, "_SMALL_TEXTS", 0)
    made = [shelf.add("pump", "valve " * 10) for _ in range(4)]
    agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now)
    assert len(list(shelf.index.snapshot().documents())) == 1
    with shelf.database.read() as cx:
        assert shelf.writer.position < changes.latest(cx, shelf.repository.id)
    shelf.catch_up()
    assert shelf.find(MARTA, "valve") == made
    assert shelf.report().sound


def test_large_texts_are_read_a_few_at_a_time_and_small_ones_many(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    text_of = queue.text_of

    def counted(cx: Connection, object_ids: Sequence[str]) -> dict[str, str]:
        read.append(len(object_ids))
        return text_of(cx, object_ids)

    monkeypatch.setattr(queue, "text_of", counted)
    monkeypatch.setattr(indexing, "_TEXTS_AT_A_TIME", 2)
    monkeypatch.setattr(indexing, "_SMALL_TEXTS", 100)
    for words in [*["valve"] * 6, *["valve " * 10] * 5]:
        shelf.add("pump", words)
    shelf.catch_up()
    assert sorted(read) == [2, 2, 7]
    assert shelf.report().sound


@pytest.mark.slow
def test_a_repeated_batch_changes_nothing(shelf: Shelf) -> None:
    made = [shelf.add("pump", "valve") for _ in range(3)]
    shelf.catch_up()
    shelf.writer.apply((), (), START)
    shelf.catch_up()
    assert shelf.find(MARTA, "valve") == made
    assert shelf.report().sound


def test_a_writer_that_commits_late_is_not_skipped(shelf: Shelf) -> None:
    """On SQLite the second writer waits for the first; on PostgreSQL it overtakes it."""
    late, seen = threading.Event(), threading.Event()

    def first_writer() -> None:
        with shelf.database.begin() as cx:
            creation.create(cx, shelf.view(MARTA), "document", {"object_name": "late"}, None, None, shelf.now)
            late.set()
            seen.wait(2 if shelf.database.dialect == "sqlite" else 30)

    thread = threading.Thread(target=first_writer)
    thread.start()
    late.wait(30)
    second = shelf.add("early", owner=BORIS) if shelf.database.dialect == "postgresql" else ""
    shelf.catch_up()
    assert len(list(shelf.index.snapshot().documents())) <= bool(second)
    seen.set()
    thread.join(30)
    shelf.catch_up()
    assert len(shelf.find(MARTA, "late")) == 1
    assert shelf.report().sound


@pytest.mark.slow
def test_an_object_that_makes_no_document_is_left_out_with_its_reason(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = shelf.add("pump bad"), shelf.add("pump good")

    def poisoned(stored: StoredObject, values: object, said: str, ids: AbstractSet[str], embedding: int) -> Document:
        if stored.id == bad:
            raise ValueError("poison")
        return document(stored, values, said, ids, embedding)  # type: ignore[arg-type]

    monkeypatch.setattr(indexing, "document", poisoned)
    shelf.catch_up()
    assert shelf.find(MARTA, "pump") == [good]
    with shelf.database.read() as cx:
        assert indexing.reason(cx, bad) == "ValueError: poison"
        assert indexing.reason(cx, good) is None
    report = shelf.report()
    assert report.sound
    assert report.unindexed == 1
    monkeypatch.undo()
    shelf.change(bad, {"title": "cured"})
    shelf.catch_up()
    assert shelf.find(MARTA, "pump") == [bad, good]
    with shelf.database.read() as cx:
        assert indexing.reason(cx, bad) is None


class Choosy(TantivyWriter):
    """A writer that refuses documents named `poison`; with ``fatal`` it is of no more use afterwards."""

    fatal = False

    def __init__(self, folder: Path, language: str = "English") -> None:
        super().__init__(folder, language)
        self.dead = False

    def apply(self, documents: Iterable[Document], gone: Collection[str], position: Position) -> None:
        """Refuse, or write."""
        given = list(documents)
        if self.dead or any("poison" in each.values["object_name"] for each in given):
            self.dead = self.fatal
            raise IndexUnavailable("the engine fails")
        super().apply(given, gone, position)


class Fragile(Choosy):
    fatal = True


def test_an_object_that_the_engine_refuses_is_left_out(shelf: Shelf, tmp_path: Path) -> None:
    made = [shelf.add("pump"), shelf.add("poison"), shelf.add("pump")]
    writer = Choosy(tmp_path / "choosy")
    with shelf.database.read() as cx:
        end = changes.latest(cx, shelf.repository.id)
    agent.catch_up(shelf.database, shelf.repository, writer, shelf.now)
    assert writer.position == end
    kept = [each.key for each in TantivyIndex(tmp_path / "choosy").snapshot().documents()]
    assert kept == [made[0], made[2]]
    with shelf.database.read() as cx:
        assert "engine fails" in (indexing.reason(cx, made[1]) or "")
    writer.close()


@pytest.mark.slow
def test_an_object_that_kills_every_writer_is_passed_over(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_AFTER_AN_ERROR_SECONDS", 0.01)
    made = [shelf.add("pump"), shelf.add("poison"), shelf.add("pump")]
    index = reader(tmp_path / "indexes", shelf)
    with running(shelf.database, tmp_path / "indexes", Fragile):
        until(lambda: reached(index, shelf))
    assert keys(index) == [made[0], made[2]]
    with shelf.database.read() as cx:
        assert cx.scalars(sa.select(indexing.unindexed.c.object_id)).all() == [made[1]]


def test_the_name_of_a_folders_agent_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    engine, file = FolderEngine(folder), folder / "follower"
    name = engine.follower()
    assert len(name) == 32
    assert engine.follower() == name == file.read_text()

    def begin_again() -> None:
        with suppress(OSError):
            file.unlink(missing_ok=True)
            engine.follower()

    def check(_outcome: None, _step: str) -> None:
        assert not file.exists() or len(file.read_text()) == 32

    fail_each_step(folder, begin_again, check, {"create", "write", "fsync"})


@pytest.mark.slow
def test_the_agent_follows_repositories_made_meanwhile_and_runs_once(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_LOOK_SECONDS", 0.05)
    first = shelf.add("pump")
    index = reader(tmp_path / "indexes", shelf)
    with pytest.raises(IndexUnavailable):
        index.snapshot()
    with running(shelf.database, tmp_path / "indexes"):
        until(lambda: reached(index, shelf))
        assert keys(index) == [first]
        with shelf.database.begin() as cx:
            other = repositories.add(cx, "other", shelf.repository.resource_id, "", shelf.now)
        until(lambda: generations.current(tmp_path / "indexes" / str(other.id)) is not None)
        ready = threading.Event()
        with pytest.raises(InUse):
            agent.run(shelf.database, FolderEngine(tmp_path / "indexes"), threading.Event(), Clock(), ready=ready.set)
        assert not ready.is_set()
        second = shelf.add("pump")
        until(lambda: reached(index, shelf))
        assert keys(index) == [first, second]


@pytest.mark.slow
def test_a_rebuild_beside_a_running_agent_takes_over_and_the_old_index_is_cleared_away(
    shelf: Shelf, tmp_path: Path
) -> None:
    folder = tmp_path / "indexes"
    index = reader(folder, shelf)
    own = folder / str(shelf.repository.id)
    heard: list[int] = []
    first = shelf.add("pump")
    with running(shelf.database, folder):
        until(lambda: reached(index, shelf))
        before = index.snapshot()
        agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock(), heard.append)
        assert generations.current(own) == own / "2"
        assert keys(index) == [first]
        assert [kept.key for kept in before.documents()] == [first]
        second = shelf.add("pump")
        until(lambda: reached(index, shelf))
        assert keys(index) == [first, second]
        assert checking.check(shelf.database, shelf.repository, index, Clock()).sound
    assert heard[-1] == 1
    assert generations.sweep(own, time.time()) == 0
    assert generations.sweep(own, time.time() + 3600) == 1
    assert sorted(each.name for each in own.iterdir() if each.is_dir()) == ["2"]
    with generations.rebuilding(own), pytest.raises(InUse):
        agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock())


@pytest.mark.slow
def test_no_search_fails_or_misses_while_the_index_is_rebuilt(shelf: Shelf, tmp_path: Path) -> None:
    """failures B16"""
    folder, done = tmp_path / "indexes", threading.Event()
    index = reader(folder, shelf)
    kept = [shelf.add("pump") for _ in range(20)]

    def search() -> int:
        rounds = 0
        while not done.is_set() or not rounds:
            assert keys(index) == kept
            rounds += 1
        return rounds

    with running(shelf.database, folder), ThreadPoolExecutor(2) as pool:
        until(lambda: reached(index, shelf))
        searching = [pool.submit(search) for _ in range(2)]
        try:
            for _ in range(5):
                agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock())
        finally:
            done.set()
        assert min(one.result() for one in searching) > 1
    assert generations.current(folder / str(shelf.repository.id)) == folder / str(shelf.repository.id) / "6"


@pytest.mark.slow
def test_searches_answer_right_while_writers_write_and_the_index_is_rebuilt_and_switched(
    shelf: Shelf, tmp_path: Path
) -> None:
    """Each search finds exactly what was there before it, whichever generation answers."""
    folder, done = tmp_path / "indexes", threading.Event()
    index, own = reader(folder, shelf), folder / str(shelf.repository.id)
    kept = [shelf.add("pump", "the main valve") for _ in range(30)]
    vars(shelf)["index"] = index
    used, answered = set[Path | None](), [0, 0]

    def search(number: int) -> None:
        while not done.is_set():
            before = generations.current(own)
            assert shelf.find(MARTA, "valve") == kept
            assert shelf.find(BORIS, "valve") == []
            if before == generations.current(own):
                used.add(before)
            answered[number] += 1

    def passed(goal: list[int]) -> bool:
        return all(map(operator.ge, answered, goal))

    def write() -> None:
        while not done.is_set():
            shelf.change(kept[0], {"title": "new"})
            shelf.delete(shelf.add("a short one", "gasket"))

    with running(shelf.database, folder):
        until(lambda: reached(index, shelf))
        old = index.snapshot()
        with ThreadPoolExecutor(3) as pool:
            work = [pool.submit(search, 0), pool.submit(search, 1), pool.submit(write)]
            try:
                for _ in range(4):
                    agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock())
                    goal = [count + 1 for count in answered]
                    until(partial(passed, goal))
            finally:
                done.set()
            for each in work:
                each.result()
    assert {path.name for path in used if path} >= {"5"}
    assert generations.sweep(own, time.time() + 3600) == 4
    assert {each.key for each in old.documents()} >= set(kept), "whoever reads a former generation reads on"


@pytest.mark.slow
def test_writers_never_keep_a_rebuild_from_its_end_and_it_is_as_far_as_the_former_index(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are written before each of its commits, so it never reaches the end of the log."""
    monkeypatch.setattr(agent, "_COMMITS_TO_THE_END", 2)
    engine, made = FolderEngine(tmp_path / "indexes"), shelf.add("pump")
    catch_up, written = agent.catch_up, list[Position]()
    agent.rebuild(shelf.database, shelf.repository, engine, Clock())
    former = engine.index(shelf.repository).writer("1")

    def write(lines: int) -> Position:
        with shelf.database.begin() as cx:
            return changes.note_all(cx, shelf.repository.id, [made] * lines, "properties", shelf.now)[-1]

    def meanwhile(_indexed: int) -> None:
        if not written:
            written.append(write(4 * agent.BATCH_CHANGES - 100))
            while former.position != written[0]:
                catch_up(shelf.database, shelf.repository, former, shelf.now)

    def after_others(database: Database, repository: Repository, writer: IndexWriter, now: Instant) -> int:
        write(50)
        return catch_up(database, repository, writer, now)

    monkeypatch.setattr(agent, "catch_up", after_others)
    position = agent.rebuild(shelf.database, shelf.repository, engine, Clock(), meanwhile)
    former.close()
    index = engine.index(shelf.repository)
    assert index.current() == "2"
    assert index.reader().snapshot().position == position >= written[0]
    assert len(written) == 1


def test_an_index_ahead_of_its_database_is_made_again(shelf: Shelf, tmp_path: Path) -> None:
    folder, kept = tmp_path / "indexes", shelf.add("pump")
    own = folder / str(shelf.repository.id)
    made = FolderEngine(folder).index(shelf.repository)
    generation = made.begin()
    writer = TantivyWriter(own / generation)
    writer.apply((), (), Position(2**62, 2**62))
    writer.close()
    made.switch(generation)
    index = reader(folder, shelf)
    with running(shelf.database, folder):
        until(lambda: generations.current(own) == own / "2" and reached(index, shelf))
    assert keys(index) == [kept]


@pytest.mark.slow
def test_the_chores_clear_away_expired_links_old_generations_and_content_nobody_names(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_CHORES_SECONDS", 0.0)
    folder, store = tmp_path / "indexes", FileStore(tmp_path / "content")
    own = folder / str(shelf.repository.id)
    left, holder = store.put([b"left by a crash"]), Holder(shelf.repository.id, MARTA.id)
    with shelf.database.begin() as cx:
        kept_searches.keep_search(cx, holder, b"{}", RepositoryOptions(link_seconds=60), shelf.now)
    agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock())
    agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), Clock())
    later = int((time.time() + 2 * 86_400) * SECOND)
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(shelf.database, FolderEngine(folder), stop, lambda: later, store))
    thread.start()
    try:
        until(lambda: not store.verify(left.key, left.sha256) and not (own / "1").exists())
    finally:
        stop.set()
        thread.join(30)
    assert (own / "2").exists()
    with shelf.database.read() as cx:
        assert not kept_searches.kept_until(cx, kept_searches.name(holder, b"{}"), b"{}")


@pytest.mark.slow
def test_the_agent_compacts_packs_between_its_other_work(
    shelf: Shelf, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_CHORES_SECONDS", 0.0)
    monkeypatch.setattr(agent, "_CHORES_BETWEEN_COMPACTIONS", 1)
    store = FileStore(tmp_path / "content", packing=Packing(1000, clock))
    named, *_ = store.put_all([b"named", *(b"left by a crash" for _ in range(3))])
    given: dict[str, Given] = {"object_name": "x", "a_content_type": "text/plain"}
    with shelf.database.begin() as cx:
        made = creation.create(cx, shelf.view(MARTA), "document", given, None, named, shelf.now)
    (pack,) = (tmp_path / "content" / "packs").iterdir()
    clock.advance(3 * 86_400)
    store.put([b"in another pack"])
    stop = threading.Event()
    engine = FolderEngine(tmp_path / "indexes")
    thread = threading.Thread(target=agent.run, args=(shelf.database, engine, stop, clock, store))
    thread.start()
    try:
        until(lambda: not pack.exists())
    finally:
        stop.set()
        thread.join(30)
    with shelf.database.read() as cx:
        content = inventory.rows(cx, shelf.repository.id, [made.id])[made.id].content
        assert content is not None
        assert not cx.execute(sa.select(leases.leases)).all(), "its leases are given back"
    assert content.key != named.key
    assert b"".join(store.read(content)) == b"named"


@pytest.mark.slow
def test_any_number_of_objects_can_be_indexed_again_after_a_rebuild(shelf: Shelf) -> None:
    kept, readmitted = f"{1:016x}", {f"{number:016x}" for number in range(2, 70_000)}
    with shelf.database.begin() as cx:
        rows = [{"object_id": each, "reason": "x"} for each in (kept, *readmitted)]
        cx.execute(indexing.unindexed.insert().values(repository_id=shelf.repository.id, noted=shelf.now), rows)
    indexing.readmit(shelf.database, readmitted)
    with shelf.database.read() as cx:
        assert cx.scalars(sa.select(indexing.unindexed.c.object_id)).all() == [kept]


@pytest.mark.slow
def test_an_agent_goes_on_with_its_chores_when_a_repository_was_removed(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run without a server, or on another machine than the command."""
    monkeypatch.setattr(agent, "_CHORES_SECONDS", 0.0)
    monkeypatch.setattr(agent, "_CHORES_BETWEEN_COMPACTIONS", 1)
    folder, store = tmp_path / "indexes", FileStore(tmp_path / "content")
    with shelf.database.begin() as cx:
        other = repositories.add(cx, "other", shelf.repository.resource_id, "", shelf.now)
    later = int((time.time() + 2 * 86_400) * SECOND)
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(shelf.database, FolderEngine(folder), stop, lambda: later, store))
    thread.start()
    try:
        until(lambda: _follows(shelf.database, other))
        with shelf.database.begin() as cx:
            removal.finish(cx, other)
        left = store.put([b"left by a crash"])
        until(lambda: not store.verify(left.key, left.sha256))
    finally:
        stop.set()
        thread.join(30)


def _follows(database: Database, repository: Repository) -> bool:
    with database.read() as cx:
        return bool(cx.scalars(sa.select(followers.followers.c.name).filter_by(repository_id=repository.id)).all())


def test_keywords_do_not_look_into_properties_of_kind_id(shelf: Shelf) -> None:
    """The structured comparison does."""
    types = (
        b'[types.part]\nparent = "document"\nproperties = { drawing = "id", also = { kind = "id", repeating = true } }'
    )
    with shelf.database.begin() as cx:
        types_file.load(cx, shelf.repository.id, types, shelf.now)
    with shelf.database.begin() as cx:
        known = object_types.catalogue(cx, shelf.repository.id)
        given: dict[str, Given] = {"object_name": "bolt", "drawing": "0900000100abcdef", "also": ["09000001000000aa"]}
        creation.create(cx, RepositoryView(shelf.repository, known, MARTA), "part", given, None, None, shelf.now)
    shelf.catch_up()
    (held,) = shelf.index.snapshot().documents()
    assert held.ids == ("also", "drawing")
    assert shelf.find(MARTA, "bolt") == [held.key]
    for q in ("0900000100abcdef", "09000001*", '"09000001000000aa"', held.key, f"{held.key[:10]}*"):
        assert shelf.find(MARTA, q) == [], q
    wanted = BoundQuery((), Like("drawing", (Pattern(("0900000100ab", Gap.RUN)),)))
    answer = shelf.index.snapshot().search(Search(wanted, Visible(everything=True), 0, 10))
    assert [hit.object_id for hit in answer.hits] == [held.key]
    assert shelf.report().sound


@pytest.mark.slow
def test_a_repository_gets_another_language_while_searches_go_on(shelf: Shelf, tmp_path: Path) -> None:
    made, index = shelf.add("die H\u00e4user"), reader(tmp_path / "index", shelf)

    def finds(word: str) -> bool:
        search = Search(BoundQuery((), Fulltext(Term(word))), Visible(everything=True), 0, 10)
        return [hit.object_id for hit in index.snapshot().search(search).hits] == [made]

    with running(shelf.database, tmp_path / "index"):
        until(lambda: reached(index, shelf))
        assert finds("H\u00e4user")
        assert not finds("Haus"), "its stem in English is another"
        with shelf.database.begin() as cx:
            repositories.set_language(cx, shelf.repository, "German")
        until(lambda: finds("Haus"))
        assert finds("H\u00e4user")
        with shelf.database.begin() as cx:
            repositories.set_language(cx, shelf.repository, "")
        until(lambda: not finds("Haus"))
        assert finds("H\u00e4user")


@pytest.mark.slow
@pytest.mark.parametrize("other", [fields.FORMAT - 1, 99])
def test_an_index_of_another_format_is_rebuilt_by_itself(shelf: Shelf, tmp_path: Path, other: int) -> None:
    made = shelf.add("pump")
    folder, index = tmp_path / "index", reader(tmp_path / "index", shelf)
    with running(shelf.database, folder):
        until(lambda: reached(index, shelf))
    own = folder / str(shelf.repository.id)
    about = (generations.current(own) or own) / "muniment.json"
    about.write_text(about.read_text().replace(f'"format":{fields.FORMAT}', f'"format":{other}'))
    again = reader(folder, shelf)
    with pytest.raises(IndexUnavailable, match="makes a new one"):
        again.snapshot()
    with running(shelf.database, folder):
        until(lambda: reached(again, shelf))
    assert keys(again) == [made]
    about = (generations.current(own) or own) / "muniment.json"
    assert json.loads(about.read_text())["format"] == fields.FORMAT


@pytest.mark.parametrize(
    ("limit", "covered", "seconds", "next_limit"),
    [
        (400, 400, 0.1, 800),
        (1500, 1500, 0.2, 2000),
        (400, 30, 0.2, 400),
        (2000, 1600, 0.8, 600),
        (400, 300, 3.0, 200),
        (800, 800, 0.25, 960),
    ],
    ids=["double", "most", "few lines wait", "too long", "fewest", "what is within the time already hardly grows"],
)
def test_a_commit_is_as_large_as_the_time_allows(limit: int, covered: int, seconds: float, next_limit: int) -> None:
    assert agent.next_limit(limit, covered, seconds) == next_limit
