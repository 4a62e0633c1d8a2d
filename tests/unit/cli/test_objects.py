"""Single objects are put, shown, fetched, moved and removed by commands, as the data folder's administrator."""

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.installation import initialise
from muniment.installation.data_folder import DataFolder
from muniment.repository.store import repositories
from muniment.repository.store.objects.decisions import moving
from muniment.repository.store.objects.listing.view import RepositoryView
from tests.contents import contents, spoil
from tests.unit.cli.test_commands import QUICK, Muniment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("objects") / "data"
    for command in (["init"], ["type", "add", "letter"], ["type", "property", "letter", "pages", "integer"]):
        assert commands.run(["--data", str(folder), *QUICK, *command]) == 0
    return folder


@pytest.fixture
def muniment(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    shutil.copytree(made, tmp_path / "data")
    return Muniment(tmp_path / "data", capsys)


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader")
    return file


def put(muniment: Muniment, *arguments: str) -> str:
    return muniment("object", "put", *arguments).strip()


@pytest.mark.slow
def test_an_object_is_put_shown_and_fetched(muniment: Muniment, letter: Path, tmp_path: Path) -> None:
    given = ["-p", "pages=3", "-p", "keywords=one", "-p", "keywords=two", "-p", "title=A letter"]
    object_id = put(muniment, str(letter), "--type", "letter", "--acl", "public", "--owner", "ada@staff", *given)
    assert re.fullmatch("[0-9a-f]{16}", object_id)
    assert "Warning: the directory knows no user 'ada@staff'" in muniment.err
    put(muniment, str(letter), "--owner", "ADMIN@directory.admin")
    assert muniment.err == ""
    shown = json.loads(muniment("object", "show", object_id.upper(), "--json"))
    assert shown["object_name"] == "letter.txt"
    assert (shown["pages"], shown["keywords"], shown["title"]) == (3, ["one", "two"], "A letter")
    assert (shown["owner_name"], shown["acl_name"], shown["r_object_type"]) == ("ada@staff", "public", "letter")
    assert (shown["a_content_type"], shown["r_full_content_size"]) == ("text/plain", 11)
    assert re.fullmatch(r"20..-..-..T.*Z", shown["r_modify_date"])
    assert "keywords\tone\nkeywords\ttwo\n" in muniment("object", "show", object_id)
    copy = tmp_path / "copy"
    muniment("object", "get", object_id, "-o", str(copy))
    assert copy.read_text() == "Dear reader"
    assert muniment("object", "get", object_id) == "Dear reader"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_content_comes_from_standard_input_and_replaces_what_was_there(
    muniment: Muniment, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    object_id = put(muniment, str(letter))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Second thoughts")))
    assert put(muniment, "-", "--replace", object_id, "-p", "title=Again", "-p", "keywords=") == object_id
    assert muniment("object", "get", object_id) == "Second thoughts"
    shown = json.loads(muniment("object", "show", object_id, "--json"))
    assert (shown["title"], shown["a_content_type"], shown["object_name"]) == ("Again", "text/plain", "letter.txt")
    assert contents(muniment.data / "content") == [b"Second thoughts"], "the former content is removed"
    muniment("object", "put", "-", code=2)
    muniment("object", "put", str(letter), "--replace", object_id, "--in", object_id, code=2)


@pytest.mark.slow
def test_what_is_refused_leaves_no_content(muniment: Muniment, letter: Path) -> None:
    for wrong, code in (
        (["-p", "pages=3"], 3),
        (["-p", "pages"], 2),
        (["--type", "none"], 3),
        (["--in", "0900000000000000"], 3),
        (["--replace", "0900000000000000"], 3),
        (["--acl", "none"], 3),
    ):
        muniment("object", "put", str(letter), *wrong, code=code)
    muniment("--set", "repository.max_content_bytes=10", "object", "put", str(letter), code=3)
    assert "repository.max_content_bytes" in muniment.err
    muniment("object", "put", str(letter.with_name("none")), code=1)
    assert contents(muniment.data / "content") == []


@pytest.mark.slow
def test_damaged_content_is_not_written_as_if_it_were_whole(muniment: Muniment, letter: Path, tmp_path: Path) -> None:
    object_id = put(muniment, str(letter))
    spoil(muniment.data / "content", letter.read_bytes())
    copy = tmp_path / "copy"
    muniment("object", "get", object_id, "-o", str(copy), code=3)
    assert not copy.exists()
    assert not list(tmp_path.glob(".copy*"))


@pytest.mark.slow
def test_objects_move_between_folders_and_go(muniment: Muniment, letter: Path, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    (papers / "deep").mkdir(parents=True)
    (papers / "deep" / "one.txt").write_text("one")
    muniment("import", str(papers), "--no-wait")
    (cabinet,) = json.loads(muniment("object", "list", "--json"))
    assert (cabinet["type"], cabinet["name"], cabinet["bytes"]) == ("cabinet", "papers", None)
    (deep,) = json.loads(muniment("object", "list", cabinet["object"], "--json"))
    (one,) = json.loads(muniment("object", "list", deep["object"], "--json"))
    assert (one["name"], one["bytes"]) == ("one.txt", 3)

    object_id = put(muniment, str(letter), "--in", deep["object"])
    muniment("object", "move", object_id, cabinet["object"], "--name", "moved.txt")
    listed = muniment("object", "list", cabinet["object"])
    assert f"{object_id}\tdocument\tmoved.txt\t" in listed
    muniment("object", "move", object_id)
    assert "moved.txt" in muniment("object", "list")
    muniment("object", "move", deep["object"], deep["object"], code=3)
    muniment("object", "move", object_id, "0b00000000000000", code=3)

    muniment("object", "rm", deep["object"], code=3)
    assert "not empty" in muniment.err
    muniment("object", "rm", object_id, "0900000000000000", code=3)
    assert "Deleted: 1 object." in muniment("object", "rm", object_id)
    muniment("--set", "repository.max_deleted_objects=1", "object", "rm", "--recursive", cabinet["object"], code=3)
    assert "Deleted: 2 objects." in muniment("object", "rm", one["object"], deep["object"])
    put(muniment, str(letter), "--in", cabinet["object"])
    assert "Deleted: 2 objects." in muniment("object", "rm", "--recursive", cabinet["object"])
    assert muniment("object", "list") == ""
    assert contents(muniment.data / "content") == []
    muniment("object", "show", object_id, code=3)
    muniment("object", "get", object_id, code=3)


@pytest.mark.slow
def test_types_and_properties_go_when_nothing_uses_them(muniment: Muniment, letter: Path) -> None:
    object_id = put(muniment, str(letter), "--type", "letter", "-p", "pages=3")
    muniment("type", "remove", "letter", code=3)
    assert "1 object." in muniment.err
    muniment("type", "remove-property", "letter", "pages", code=3)
    assert "1 object." in muniment.err
    muniment("type", "remove", "document", code=3)
    muniment("object", "put", str(letter), "--replace", object_id, "-p", "pages=")
    muniment("type", "remove-property", "letter", "pages")
    assert "pages" not in muniment("type", "list")
    muniment("object", "rm", object_id)
    muniment("type", "remove", "letter")
    assert "letter" not in muniment("type", "list")


@pytest.mark.slow
def test_without_a_folder_an_object_leaves_all_its_folders(muniment: Muniment, letter: Path, tmp_path: Path) -> None:
    for papers in ("one", "two"):
        (tmp_path / papers).mkdir()
        muniment("import", str(tmp_path / papers), "--no-wait")
    first, second = (cabinet["object"] for cabinet in json.loads(muniment("object", "list", "--json")))
    object_id = put(muniment, str(letter), "--in", first)
    data = DataFolder(muniment.data, None, [])
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        repository = repositories.find(cx, initialise.REPOSITORY)
        view = RepositoryView.read(cx, repository, principals)
        moving.link(cx, view, object_id, second, data.now)
    assert object_id in muniment("object", "list", second)
    muniment("object", "move", object_id)
    assert object_id not in muniment("object", "list", first) + muniment("object", "list", second)
    assert object_id in muniment("object", "list")
