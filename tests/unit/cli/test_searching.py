"""`muniment search` on the data folder itself: what it says when nothing indexes."""

from pathlib import Path

import pytest

from muniment import app
from muniment.cli import commands
from muniment.cli.opened import Opened
from muniment.db import SECOND
from muniment.repository import agent, repositories
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
    opened = Opened(data, None, [])
    with opened.database("repository") as database:
        with database.read() as cx:
            repository = repositories.named(cx, "main")
        agent.rebuild(database, repository, opened.installation.indexes, app.writer(opened.settings), app.now)

    def search() -> tuple[str, str]:
        capsys.readouterr()
        assert commands.run([*given, "search", "pump"]) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err

    told, warned = search()
    assert told.startswith("1 found")
    assert not warned
    (papers / "second.txt").write_text("pump house")
    assert commands.run([*given, "import", str(papers), "--no-wait"]) == 0
    assert not search()[1], "a change of just now is no reason to worry"
    later = app.now() + 6 * SECOND
    monkeypatch.setattr(app, "now", lambda: later)
    told, warned = search()
    assert told.startswith("1 found")
    assert "'muniment index status'" in warned
