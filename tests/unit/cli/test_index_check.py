"""The commands that check an index: what they print, their exit codes, and a repair that the agent makes."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from muniment.ground import clock
from muniment.installation import backends
from muniment.installation.data_folder import DataFolder
from muniment.repository.search.agent import agent, reports
from muniment.repository.search.agent.checking import Course, Difference, Report
from muniment.repository.search.agent.reports import KeptReport
from muniment.repository.store import repositories
from tests.unit.cli.test_commands import Muniment


class Papers:
    """A data folder with three documents and their index."""

    def __init__(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.muniment = Muniment(place / "data", capsys)
        self.muniment("init")
        folder = place / "Papers"
        folder.mkdir()
        for number in range(3):
            (folder / f"{number}.txt").write_text("pump station")
        self.muniment("import", "--no-wait", str(folder))
        self.data = DataFolder(place / "data", None, [])
        with self.data.database("repository") as database:
            with database.read() as cx:
                self.repository = repositories.find(cx, "main")
            agent.rebuild(database, self.repository, backends.engine(self.data.installation), clock.now)

    def damage(self) -> str:
        """Delete one document behind the agent's back, and name its object."""
        index = backends.engine(self.data.installation).index(self.repository)
        reader = index.reader()
        key = next(reader.snapshot().documents()).key
        reader.close()
        writer = index.writer(str(index.current()))
        writer.apply((), [key], writer.position)
        writer.close()
        return key

    @contextmanager
    def follow(self) -> Iterator[None]:
        """Run an agent."""
        stop = threading.Event()
        with self.data.database("repository") as database, ThreadPoolExecutor(1) as pool:
            work = pool.submit(agent.run, database, backends.engine(self.data.installation), stop, clock.now)
            try:
                yield
            finally:
                stop.set()
            work.result()

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command, and read what it prints."""
        return json.loads(self.muniment(*arguments, "--json", code=code))


@pytest.fixture
def papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Papers:
    return Papers(tmp_path, capsys)


@pytest.mark.slow
def test_a_difference_is_named_and_a_repair_is_left_to_the_agent(papers: Papers) -> None:
    assert "main: sound at position" in papers.muniment("index", "check")
    lost = papers.damage()
    printed = papers.muniment("index", "check", code=1)
    assert "NOT SOUND" in printed
    assert "1 missing" in printed
    assert f"  missing: {lost}\n" in printed
    assert "index check --repair -r main" in printed
    printed = papers.muniment("index", "check", "--repair", "--wait", "0", code=1)
    assert "1 noted to be indexed again, 0 repaired" in printed
    assert "is it running?" in printed
    with papers.follow():
        assert "main: sound" in papers.muniment("index", "check", "--repair", "--wait", "20")
    (report,) = papers.json("index", "check")
    assert (report["repository"], report["sound"], report["missing"], report["objects"]) == ("main", True, 0, 4)


@pytest.mark.slow
def test_a_repair_is_confirmed_while_an_agent_runs(papers: Papers) -> None:
    lost = papers.damage()
    with papers.follow():
        printed = papers.muniment("index", "check", "--repair", "--wait", "20")
        assert f"  missing: {lost}, repaired\n" in printed
        assert "1 noted to be indexed again, 1 repaired" in printed


@pytest.mark.slow
def test_the_report_of_the_agent_is_shown(papers: Papers) -> None:
    assert "no index agent has checked" in papers.muniment("index", "report")
    (told,) = papers.json("index", "report")
    assert (told["agent"], told["report"], told["under_way"]) == (None, None, None)
    found = Report(1, 2, objects=3, missing=1, differences=(Difference("0" * 16, "missing"),))
    with papers.data.database("repository") as database, database.begin() as cx:
        reports.keep_report(cx, papers.repository.id, "a", KeptReport(found, Course(Report(3))))
    printed = papers.muniment("index", "report", "-r", "main", code=1)
    assert "NOT SOUND" in printed
    assert "  missing: 0000000000000000" in printed
    assert "main: under way since" in printed
    (told,) = papers.json("index", "report", code=1)
    assert (told["agent"], told["report"]["missing"], told["under_way"]["objects"]) == ("a", 1, 0)
    with papers.data.database("repository") as database, database.begin() as cx:
        reports.keep_report(cx, papers.repository.id, "a", KeptReport(Report(1, 2)))
    assert "main: sound" in papers.muniment("index", "report")
