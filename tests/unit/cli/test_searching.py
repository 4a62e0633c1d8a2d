"""`muniment search` on the data folder itself: keywords, search documents, and what it says when nothing indexes."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.ground import clock
from muniment.ground.clock import SECOND
from muniment.installation import backends
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Failure
from muniment.repository.search.agent import agent
from muniment.repository.store import repositories
from tests.unit.cli.test_commands import QUICK, Muniment


@pytest.mark.slow
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
        agent.rebuild(database, repository, backends.engine(data_folder.installation), clock.now)

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


@pytest.mark.slow
def test_a_search_document_and_an_empty_text_are_questions_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    muniment = Muniment(tmp_path / "data", capsys)
    for name, text in (("first.txt", "pump station"), ("second.txt", "pump house")):
        (papers / name).write_text(text)
    muniment("init")
    muniment("import", str(papers), "--no-wait")
    data_folder = DataFolder(muniment.data, None, [])
    with data_folder.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, "main")
        agent.rebuild(database, repository, backends.engine(data_folder.installation), clock.now)

    everything = json.loads(muniment("search", "", "--json"))
    assert (everything["total"], len(everything["hits"])) == (3, 3)
    assert muniment("search", "", "--limit", "2").startswith("3 found\n")
    typed = muniment("search", "which pump stands in the house", "--json")
    assert [hit["title"] for hit in json.loads(typed)["hits"]] == ["second.txt", "first.txt"]
    assert muniment("search", "pump house").startswith("2 found: what has all words first")
    assert muniment("search", "pump house", "--all-words").startswith("1 found\n")
    assert muniment("search", "pump AND house").startswith("1 found\n")
    file = tmp_path / "query.xml"
    file.write_text(
        '<search xmlns="urn:muniment:vocab"><types><type>document</type></types><expression-set><expressions>'
        "<fulltext>station</fulltext></expressions></expression-set></search>"
    )
    (hit,) = json.loads(muniment("search", "--aql", str(file), "--json"))["hits"]
    assert hit["title"] == "first.txt"
    assert hit["score"] > 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert muniment("search", "--aql", "-").startswith("1 found\n")
    in_json = tmp_path / "query.json"
    words = [{"expression-type": "fulltext", "value": "station"}]
    in_json.write_text(json.dumps({"types": ["document"], "expression-set": {"expressions": words}}))
    assert json.loads(muniment("search", "--aql", str(in_json), "--json"))["hits"] == [hit]

    for usage in ([], ["pump", "--aql", str(file)]):
        muniment("search", *usage, code=2)
    file.write_text("<search/>")
    muniment("search", "--aql", str(file), code=3)
    muniment("search", "--aql", str(tmp_path / "none.xml"), code=1)
    muniment("--set", "repository.max_metadata_bytes=1024", "search", "pump", "--aql", "", code=0)
    file.write_text("x" * 1025)
    muniment("--set", "repository.max_metadata_bytes=1024", "search", "--aql", str(file), code=3)
    assert "repository.max_metadata_bytes" in muniment.err


@pytest.mark.slow
def test_an_explanation_is_a_tree_and_its_exit_code_says_whether_the_object_is_a_hit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "first.txt").write_text("pump station")
    muniment = Muniment(tmp_path / "data", capsys)
    muniment("init")
    muniment("import", str(papers), "--no-wait")
    muniment("partition", "add", "staff")
    muniment("user", "add", "jon@staff", "--random")
    data_folder = DataFolder(muniment.data, None, [])
    with data_folder.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, "main")
        agent.rebuild(database, repository, backends.engine(data_folder.installation), clock.now)
    found = json.loads(muniment("search", "first OR nothing", "--json"))["hits"][0]

    printed = muniment("search", "first OR nothing", "--explain", found["id"])
    assert printed.startswith(f"first.txt ({found['id']}) is a hit, score {found['score']:.4f}, for admin@")
    assert "'first' in the metadata (object_name)\n" in printed
    assert "\n  any OR: met\n    word 'first': met in the metadata\n    word 'nothing': not met\n" in printed
    document = tmp_path / "query.xml"
    document.write_text(
        '<search xmlns="urn:muniment:vocab"><expression-set><expressions><fulltext>first</fulltext>'
        '<property name="title" operator="EQUAL">x</property></expressions></expression-set></search>'
    )
    printed = muniment("search", "--aql", str(document), "--explain", found["id"], code=1)
    assert "is no hit for admin@" in printed
    assert "  The property of 'title' with EQUAL is not met. (line 1, column 91)\n" in printed
    told = json.loads(muniment("search", "nothing", "--explain", found["id"], "--json", code=1))
    assert (told["hit"], told["reasons"][0]["part"]) == (False, "condition")

    muniment("search", "first", "--explain", found["id"], "--for", "jon@staff", code=3)
    assert "jon@staff" in muniment.err
    muniment("resource", "add-member", "Documents of main", "jon@staff")
    printed = muniment("search", "first", "--explain", found["id"], "--for", "jon@staff", code=1)
    assert "  The user may not browse the object: its ACL gives them None.\n" in printed
    muniment("search", "first", "--explain", "0900000100ffffff", code=3)
    for usage in (["--for", "jon@staff"], ["--explain", found["id"], "--user", "jon@staff"]):
        muniment("search", "first", *usage, code=2)


@pytest.mark.slow
def test_the_running_server_is_found_by_its_lock(tmp_path: Path) -> None:
    data_folder = DataFolder(tmp_path, None, ["web.port=1"])
    assert data_folder.server_address == "https://127.0.0.1:1"
    with data_folder.lock():
        assert data_folder.server_address == "https://127.0.0.1:1", "a command holds the lock, no server"
        data_folder.announce("https://127.0.0.1:2")
        assert data_folder.server_address == "https://127.0.0.1:2"
        with pytest.raises(Failure, match=rf"process {os.getpid()}:"), DataFolder(tmp_path, None, []).lock():
            pass
    assert data_folder.server_address == "https://127.0.0.1:1", "the server is gone, its words are not"
