"""Who gives much away keeps pace with the index agent, so no search is refused; where none runs, it says so."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.cli import terminal
from muniment.database.connections import Database
from muniment.ground import clock
from muniment.installation import backends
from muniment.installation.data_folder import DataFolder
from muniment.repository.bulk import ownership
from muniment.repository.refusals import IndexBehind
from muniment.repository.search.agent import agent
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.aql.tree import Query
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.tantivy.engine import TantivyWriter
from muniment.repository.search.index.tantivy.generations import FolderEngine
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.permissions.principals import Principals
from tests.unit.cli.test_departures import StaffData
from tests.waiting import until

MANY = 5000
PATIENCE = 120
"""Seconds after which something hangs."""

ADMIN = Principals("admin@directory.admin", administrator=True)


class SlowWriter(TantivyWriter):
    """An index that takes a while for each commit, as one of large documents does."""

    def apply(self, documents: Iterable[Document], gone: Collection[str], position: Position) -> None:
        time.sleep(0.2)
        super().apply(documents, gone, position)


@pytest.fixture
def office(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> StaffData:
    return StaffData(tmp_path / "data", capsys)


@contextmanager
def following(data_folder: DataFolder) -> Iterator[None]:
    """Run an agent beside the test; it has seen all that was there when the block begins."""
    stop = threading.Event()
    folder = data_folder.installation.indexes
    with data_folder.database("repository") as database:
        work = (database, FolderEngine(folder, SlowWriter), stop, clock.now)
        thread = threading.Thread(target=agent.run, args=work)
        thread.start()
        try:
            wait_for_index(data_folder, database)
            yield
        finally:
            stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()


def wait_for_index(data_folder: DataFolder, database: Database) -> None:
    with database.read() as cx:
        one = repositories.find(cx, "main")
        latest = changes.latest(cx, one.id)
    index, current = (
        backends.reader(data_folder.installation, one),
        data_folder.installation.indexes / str(one.id) / "current",
    )
    until(lambda: current.exists() and index.snapshot().position >= latest, seconds=PATIENCE)
    index.close()


class Searcher(threading.Thread):
    """Somebody who searches without pause, and counts what is refused."""

    def __init__(self, data_folder: DataFolder) -> None:
        super().__init__()
        self._opened = data_folder
        self.over = threading.Event()
        self.answered = self.refused = 0

    def run(self) -> None:
        with self._opened.database("repository") as database:
            with database.read() as cx:
                one = repositories.find(cx, "main")
            index = backends.reader(self._opened.installation, one)
            while not self.over.is_set():
                try:
                    question = SearchQuestion(Query(), 1, 10, include_total=False)
                    snapshot = index.snapshot()
                    with database.read() as cx:
                        results.search(Inquiry(cx, snapshot, one, ADMIN, 0, question=question))
                    self.answered += 1
                except IndexBehind:
                    self.refused += 1
                self.over.wait(0.005)
            index.close()


@pytest.mark.campaign
def test_no_search_is_refused_while_five_thousand_objects_are_given_away(
    office: StaffData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red on a command that gives as fast as it can: the index is thousands of changes behind."""
    monkeypatch.setattr(terminal, "_LINE_SECONDS", 0.2)
    bob, eve = office.user("bob"), office.user("eve")
    office.keep(bob, *(f"plan {number}" for number in range(MANY)))
    with following(office.folder):
        searcher = Searcher(office.folder)
        searcher.start()
        try:
            printed = office.run("repository", "give", eve, "--all-of", bob)
        finally:
            searcher.over.set()
            searcher.join(PATIENCE)
    assert f"Given to eve@staff: main: {MANY} objects" in printed
    assert (searcher.refused, searcher.answered > 10) == (0, True)
    assert printed.count("Giving what is in main: ") > 3, "it says how far it is"
    assert "stands still" not in printed
    assert len(office.objects_given()) == MANY


@pytest.mark.slow
def test_without_an_agent_all_is_given_and_it_is_said_what_searches_do(
    office: StaffData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "_STANDING_SECONDS", 0.2)
    bob, eve = office.user("bob"), office.user("eve")
    ids = office.keep(bob, *(f"plan {number}" for number in range(300)))
    few = ("--set", "repository.max_pending_changes=100")
    for there in (False, True):
        printed = office.run(*few, "repository", "give", eve, "--all-of", bob)
        assert printed.count("The index of main stands still: start 'muniment serve' or 'muniment agent'.") == 1
        assert "503 (E_INDEX_BEHIND beyond 100 changes)" in printed
        assert "main: 300 objects" in printed
        assert {one.owner for one in office.rows().values()} == {eve}
        if not there:
            with following(office.folder):
                bob, eve = eve, bob
    assert len(office.objects_given()) == 2 * len(ids)


@pytest.mark.slow
def test_a_few_objects_are_given_without_an_agent_and_without_a_word(office: StaffData) -> None:
    bob, eve = office.user("bob"), office.user("eve")
    office.keep(bob, "plan", "draft")
    assert "stands still" not in office.run("repository", "give", eve, "--all-of", bob)


@pytest.mark.slow
def test_no_more_objects_are_named_than_go_in_one_commit(office: StaffData) -> None:
    eve = office.user("eve")
    named = [f"{number:016x}" for number in range(26)]
    few = ("--set", "repository.max_pending_changes=100")
    assert "at most 25 objects" in office.run(*few, "repository", "give", eve, *named, code=2)
    assert "There is no object" in office.run(*few, "repository", "give", eve, *named[:25], code=3)
