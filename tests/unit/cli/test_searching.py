"""`muniment search` on the data folder itself: what it says when nothing indexes."""

from pathlib import Path

import pytest

from muniment import app, clock
from muniment.cli import commands
from muniment.clock import SECOND
from muniment.data_folder import DataFolder
from muniment.repository import repositories
from muniment.repository.index_agent import agent
from tests.unit.cli.test_commands import QUICK


def test_a_search_while_the_agent_stands_says_that_changes_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, papers = tmp_path / "data", tmp_path / "papers"
    papers.mkdir()
    given = ["--data", str(data), *QUICK]
    (papers / "first.txt").write_text("pump station")
    assert commands.run([*given, "init"]) == 0
    assert commands.run([*given, "import", str(papers), "--no-wait"]) == 0
    data_folder = DataFolder(data, None, [])
    with data_folder.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, "main")
        agent.rebuild(database, repository, app.engine(data_folder.installation), clock.now)

    def search() -> tuple[str, str]:
        capsys.readouterr()
        assert commands.run([*given, "search", "pump"]) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err

    told, warned = search()
    assert told.startswith("1 found")
    assert not warned
    moment = clock.now()
    monkeypatch.setattr(clock, "now", lambda: moment)
    (papers / "second.txt").write_text("pump house")
    assert commands.run([*given, "import", str(papers), "--no-wait"]) == 0
    assert not search()[1], "a change of just now is no reason to worry"
    monkeypatch.setattr(clock, "now", lambda: moment + 6 * SECOND)
    told, warned = search()
    assert told.startswith("1 found")
    assert "'muniment index status'" in warned
