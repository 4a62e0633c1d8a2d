"""The change log is cut off, and nobody who has still to read what goes takes the rest for all there was."""

import random
import shutil
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from muniment.front import health
from muniment.front.halves import Halves
from muniment.ground.clock import SECOND
from muniment.installation.layout import Installation
from muniment.installation.settings import Settings
from muniment.repository.refusals import IndexBehind
from muniment.repository.search.agent import agent, checking
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.scope import visibility
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.index.contract import Index
from muniment.repository.search.index.tantivy import generations
from muniment.repository.search.index.tantivy.engine import TantivyIndex
from muniment.repository.search.index.tantivy.generations import FolderEngine, FollowingIndex
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.change_log.changes import START, LinesGone, Position
from muniment.repository.store.change_log.followers import Retention
from muniment.repository.store.repositories import Repository
from tests.clock import Clock
from tests.plans import sent_to
from tests.shelf import BORIS, Shelf
from tests.unit.repository.search.answering.test_results import Given
from tests.waiting import until

HOUR = 3600 * SECOND
DAY = Retention(86_400, 10_000)


class Node:
    """An index agent with a folder of its own, as one of several nodes; it runs only when told to."""

    def __init__(self, shelf: Shelf, folder: Path) -> None:
        self.shelf, self.folder = shelf, folder
        folder.mkdir()
        self.start()

    @property
    def own(self) -> Path:
        """The folder of the repository's index."""
        return self.folder / str(self.shelf.repository.id)

    def start(self) -> None:
        """Begin to follow, as a new process does."""
        self.followed = agent._Feeder(self.shelf.repository, FolderEngine(self.folder))

    def advance(self) -> bool:
        """Take one batch."""
        return self.followed.advance(self.shelf.database, lambda: self.shelf.now)

    def catch_up(self) -> None:
        """Take all there is."""
        while self.advance():
            pass

    def chores(self, retention: Retention = DAY) -> None:
        """Note how far it is, and cut the log."""
        self.followed.cut_log(self.shelf.database, retention, self.shelf.now)

    def copy_to(self, backup: Path) -> None:
        """Copy the index while nobody writes it."""
        self.followed.close()
        shutil.copytree(self.folder, backup, dirs_exist_ok=True)

    def restore(self, backup: Path) -> None:
        """Bring an earlier index back."""
        self.followed.close()
        shutil.rmtree(self.folder)
        shutil.copytree(backup, self.folder)
        self.start()

    def report(self) -> checking.Report:
        """Compare its index with the repository."""
        reader = FollowingIndex(self.own, TantivyIndex)
        try:
            return checking.check(self.shelf.database, self.shelf.repository, reader, Clock())
        finally:
            reader.close()


def lines(shelf: Shelf) -> int:
    with shelf.database.read() as cx:
        wanted = sa.text("SELECT count(*) FROM changes WHERE repository_id = :one")
        return int(cx.execute(wanted, {"one": shelf.repository.id}).scalar_one())


def cut(shelf: Shelf, retention: Retention = DAY) -> int:
    with shelf.database.begin() as cx:
        return followers.cut(cx, shelf.repository.id, retention, shelf.now)


def follow(shelf: Shelf, name: str, position: Position) -> None:
    with shelf.database.begin() as cx:
        followers.note(cx, shelf.repository.id, name, position, shelf.now)


def positions(shelf: Shelf) -> list[Position]:
    with shelf.database.read() as cx:
        return [line.position for line in changes.after(cx, shelf.repository.id, cut_to(shelf), 100_000)]


def cut_to(shelf: Shelf) -> Position:
    with shelf.database.read() as cx:
        return changes.cut_to(cx, shelf.repository.id)


def test_lines_are_counted_only_where_there_may_be_too_many(shelf: Shelf) -> None:
    for number in range(6):
        shelf.add(f"pump {number}")
    follow(shelf, "a", positions(shelf)[-1])
    with sent_to(shelf.database) as sent:
        assert cut(shelf, Retention(86_400, 5000)) == 0
    assert "5000" not in str([values for _, values in sent]), "no line was counted back from the newest"
    assert cut(shelf, Retention(86_400, 3)) > 0


def test_old_lines_go_once_everybody_has_read_them(shelf: Shelf) -> None:
    for number in range(6):
        shelf.add(f"pump {number}")
    old = positions(shelf)
    shelf.now += 25 * HOUR
    shelf.add("a young one")
    assert cut(shelf) == 0, "nobody is known to follow the log: nothing goes"
    follow(shelf, "a", positions(shelf)[-1])
    follow(shelf, "b", old[3])
    assert cut(shelf) == 4
    assert cut_to(shelf) == old[3]
    follow(shelf, "b", positions(shelf)[-1])
    assert cut(shelf) == len(old) - 4
    assert lines(shelf) == len(positions(shelf)) == 2, "what is young stays: the object, and its text"


def test_health_says_that_an_index_is_late_whose_next_lines_are_gone(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        shelf.add(f"pump {number}")
    shelf.now += 25 * HOUR
    follow(shelf, "a", positions(shelf)[-1])
    assert cut(shelf) == 6
    halves = Halves(Installation(Path(), Settings()), lambda: shelf.now, _no_reader)
    monkeypatch.setattr(halves, "index", lambda _repository: _AtTheStart())
    with shelf.database.read() as cx:
        assert health.indexes(cx, halves, shelf.now) == {shelf.repository.name: {"seconds_behind": None, "late": True}}


class _AtTheStart:
    """An index that has read nothing."""

    position = START

    def snapshot(self) -> "_AtTheStart":
        return self


def _no_reader(_installation: Installation, _repository: Repository) -> Index:
    raise AssertionError("no index is opened here")


def test_more_lines_than_are_kept_go_however_young(shelf: Shelf) -> None:
    for number in range(6):
        shelf.add(f"pump {number}")
    follow(shelf, "a", positions(shelf)[-1])
    before = lines(shelf)
    assert cut(shelf, Retention(86_400, 5)) == before - 5
    assert lines(shelf) == 5


def test_a_follower_that_is_gone_for_longer_holds_up_nothing_and_is_told_when_it_comes_back(shelf: Shelf) -> None:
    shelf.add("pump", "the main valve")
    first = positions(shelf)[0]
    follow(shelf, "gone", first)
    shelf.now += 20 * HOUR
    follow(shelf, "a", positions(shelf)[-1])
    assert cut(shelf) == 0
    shelf.now += 5 * HOUR
    follow(shelf, "a", positions(shelf)[-1])
    assert cut(shelf) == 2
    with shelf.database.read() as cx:
        with pytest.raises(LinesGone):
            changes.after(cx, shelf.repository.id, first, 10)
        with pytest.raises(LinesGone):
            changes.after(cx, shelf.repository.id, START, 10)
        assert changes.after(cx, shelf.repository.id, cut_to(shelf), 10) == []


@pytest.mark.slow
def test_the_cut_goes_in_short_transactions(shelf: Shelf, tmp_path: Path) -> None:
    node = Node(shelf, tmp_path / "node")
    with shelf.database.begin() as cx:
        for _ in range(5):
            changes.note_all(cx, shelf.repository.id, [f"{n:016x}" for n in range(1000)], "text", shelf.now)
    node.catch_up()
    shelf.now += 25 * HOUR
    taken: list[int] = []

    def note(_cx: object, cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith("DELETE FROM changes"):
            taken.append(getattr(cursor, "rowcount", 0))

    sa.event.listen(shelf.database.engine, "after_cursor_execute", note)
    node.chores()
    sa.event.remove(shelf.database.engine, "after_cursor_execute", note)
    assert taken == [1000] * 5
    assert lines(shelf) == 0


def test_a_running_agent_cuts_the_log(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "_CHORES_SECONDS", 0.0)
    for number in range(5):
        shelf.add(f"pump {number}", "the main valve")
    later, stop = shelf.now + 25 * HOUR, threading.Event()
    arguments = (shelf.database, FolderEngine(tmp_path / "indexes"), stop, lambda: later, None, DAY)
    running = threading.Thread(target=agent.run, args=arguments)
    running.start()
    try:
        until(lambda: not lines(shelf), "the log is not cut")
    finally:
        stop.set()
        running.join(60)
    assert lines(shelf) == 0
    assert cut_to(shelf) > START


def test_an_index_that_has_read_all_goes_on_when_every_line_is_gone(shelf: Shelf, tmp_path: Path) -> None:
    node = Node(shelf, tmp_path / "node")
    shelf.add("pump", "the main valve", acl="public")
    node.catch_up()
    shelf.now += 25 * HOUR
    node.chores()
    assert lines(shelf) == 0
    before = generations.current(node.own)
    with shelf.database.read() as cx:
        assert (
            changes.latest(cx, shelf.repository.id)
            == changes.settled_position(cx, shelf.repository.id)
            == cut_to(shelf)
        )
    node.followed.close()
    node.start()
    shelf.add("tap", "the main valve", acl="public")
    node.catch_up()
    assert generations.current(node.own) == before, "it was not made anew"
    assert node.report().sound
    assert node.report().waiting == 0


@pytest.mark.slow
@pytest.mark.parametrize("state", ["restored", "absent", "under way"])
def test_an_index_whose_next_lines_are_gone_is_made_anew_by_itself(shelf: Shelf, tmp_path: Path, state: str) -> None:
    node, other = Node(shelf, tmp_path / "node"), Node(shelf, tmp_path / "other")
    first = shelf.add("pump", "the main valve", acl="public")
    other.catch_up()
    other.copy_to(tmp_path / "backup")
    shelf.delete(first)
    second = shelf.add("tap", "the main valve", acl="public")
    node.catch_up()
    shelf.now += 25 * HOUR
    node.chores()
    assert lines(shelf) == 0
    if state == "restored":
        other.restore(tmp_path / "backup")
    elif state == "absent":
        other.followed.close()
        shutil.rmtree(other.own)
        other.start()
    elif other.advance():
        pass
    other.catch_up()
    report = other.report()
    assert report.sound, report
    assert (report.documents, report.waiting) == (1, 0)
    assert [kept.key for kept in FollowingIndex(other.own, TantivyIndex).snapshot().documents()] == [second]


def test_a_search_of_a_snapshot_older_than_the_cut_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    """What happened since the snapshot can no longer be told: it might show what was taken away."""
    closed = shelf.add("pump", "the main valve", acl="public")
    shelf.catch_up()
    shelf.change(closed, {"acl_name": "private"})
    assert shelf.find(BORIS, "valve") == []
    node = Node(shelf, tmp_path / "node")
    node.catch_up()
    shelf.now += 25 * HOUR
    node.chores()
    with pytest.raises(IndexBehind):
        shelf.page(BORIS, "valve")
    with pytest.raises(IndexBehind):
        shelf.report()
    with shelf.database.read() as cx:
        visibility.visible(shelf.inquiry(cx, BORIS, SearchQuestion(), Given(cut_to(shelf))), BoundQuery())


@pytest.mark.only("postgresql", "On SQLite a position holds no transaction.")
def test_the_cut_of_a_cluster_that_was_restored_from_holds_nothing_up(shelf: Shelf) -> None:
    """A database restored into another cluster of PostgreSQL begins with lower transaction numbers."""
    with shelf.database.begin() as cx:
        cx.exec_driver_sql(f"INSERT INTO cuts VALUES ({shelf.repository.id}, 1000000000000, 5)")
    found = shelf.add("pump", "the main valve", acl="public")
    assert cut_to(shelf) == START
    last = positions(shelf)[-1]
    with shelf.database.read() as cx:
        assert changes.latest(cx, shelf.repository.id) == last
        assert changes.hiding(cx, shelf.repository.id, START, 10) == {}
    shelf.catch_up()
    assert shelf.find(BORIS, "valve") == [found]
    follow(shelf, "a", last)
    shelf.now += 25 * HOUR
    follow(shelf, "a", last)
    assert cut(shelf) == 2
    assert cut_to(shelf) == last


@pytest.mark.slow
def test_a_rebuild_keeps_what_it_has_still_to_read(shelf: Shelf, tmp_path: Path) -> None:
    node = Node(shelf, tmp_path / "node")
    for number in range(3):
        shelf.add(f"pump {number}", "the main valve")
    node.catch_up()
    folder = tmp_path / "rebuilt"
    noted: list[str] = []

    def meanwhile(_indexed: int) -> None:
        if not noted:
            noted.append(shelf.add("a late one", "the main valve"))
            node.catch_up()
            shelf.now += HOUR
            node.chores(Retention(86_400, 1))

    agent.rebuild(shelf.database, shelf.repository, FolderEngine(folder), lambda: shelf.now, meanwhile)
    index = FollowingIndex(folder / str(shelf.repository.id), TantivyIndex)
    assert checking.check(shelf.database, shelf.repository, index, Clock()).sound
    assert noted[0] in {kept.key for kept in index.snapshot().documents()}
    with shelf.database.read() as cx:
        names = cx.execute(sa.text("SELECT count(*) FROM followers")).scalar_one()
    assert names == 1, "the rebuild is over and holds up nothing"


STEPS = ("add", "add", "acl", "title", "delete", "go on", "go on", "cut", "time", "copy", "back")


def write(shelf: Shelf, made: list[str], step: str, chance: random.Random) -> None:
    """Make an object, or change or delete one."""
    if step == "add":
        made.append(shelf.add(f"pump {len(made)}", "the main valve", acl="public"))
    elif step == "acl":
        shelf.change(chance.choice(made), {"acl_name": chance.choice(["public", "private"])})
    elif step == "title":
        shelf.change(chance.choice(made), {"title": f"title {chance.random()}"})
    else:
        shelf.delete(made.pop(chance.randrange(len(made))))


def run(node: Node, step: str, backup: Path, chance: random.Random) -> None:
    """Let a node do something, or let time pass."""
    if step == "go on":
        node.advance()
    elif step == "cut":
        node.chores(Retention(86_400, chance.choice([1, 3, 10_000])))
    elif step == "time":
        node.shelf.now += chance.choice([1, 13, 30]) * HOUR
    elif step == "copy":
        node.copy_to(backup)
    elif backup.exists():
        node.restore(backup)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_any_history_of_cuts_restores_and_rebuilds_ends_in_the_repositorys_index(
    shelf: Shelf, tmp_path: Path, seed: int
) -> None:
    """The oracle is the repository itself: at the end each node's index holds exactly what it does."""
    chance = random.Random(seed)
    nodes = [Node(shelf, tmp_path / f"node{number}") for number in range(2)]
    made: list[str] = []
    for step in chance.choices(STEPS, k=60):
        node = chance.choice(nodes)
        if step in ("add", "acl", "title", "delete"):
            write(shelf, made, step if made else "add", chance)
        else:
            run(node, step, tmp_path / f"copy of {node.folder.name}", chance)
    for node in nodes:
        node.catch_up()
        report = node.report()
        assert report.sound, report
        assert (report.documents, report.waiting) == (len(made), 0)
        node.followed.close()
