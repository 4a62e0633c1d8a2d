"""Deleted objects are listed, restored and removed for good by commands, as the data folder's administrator."""

import json
import shutil
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.cli.repository import wastebasket
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.objects.decisions import contents as object_contents
from muniment.repository.store.objects.decisions.contents import WantedContent
from tests.contents import contents, lose, spoil
from tests.unit.cli.test_commands import QUICK, Muniment

KEPT = ("--set", "repository.wastebasket_days=30")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wastebasket")
    data, papers = folder / "data", folder / "papers"
    (papers / "deep").mkdir(parents=True)
    for name in ("one", "two"):
        (papers / "deep" / name).write_text(name)
    (papers / "three").write_text("three")
    for command in (["init"], ["import", str(papers), "--no-wait"]):
        assert commands.run(["--data", str(data), *QUICK, *command]) == 0
    return data


@pytest.fixture
def muniment(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    shutil.copytree(made, tmp_path / "data")
    return Muniment(tmp_path / "data", capsys)


def members(muniment: Muniment, *folder: str) -> dict[str, str]:
    """The ids of what lies in a folder, by name."""
    return {each["name"]: each["object"] for each in json.loads(muniment("object", "list", *folder, "--json"))}


def discards(muniment: Muniment) -> dict[str, str]:
    return {each["name"]: each["object"] for each in json.loads(muniment("wastebasket", "list", "--json"))}


@pytest.mark.slow
def test_what_was_deleted_is_listed_and_restored(muniment: Muniment) -> None:
    cabinet = members(muniment)["papers"]
    first = members(muniment, cabinet)
    assert muniment("wastebasket", "list") == ""
    for name in ("deep", "three"):
        muniment(*KEPT, "object", "rm", "--recursive", first[name])
    listed = json.loads(muniment("wastebasket", "list", "--json"))
    assert [each["name"] for each in listed] == ["three", "deep"], "the last deletion comes first"
    assert (listed[0]["object"], listed[0]["type"], listed[0]["bytes"]) == (first["three"], "document", 5)
    assert listed[0]["deleter"].startswith("admin@")
    assert listed[0]["deleted"] < listed[0]["expires"]
    muniment("wastebasket", "restore", first["deep"], "0900000000000000", code=3)
    assert members(muniment, cabinet) == {}, "all or none"
    assert "Restored: 2 objects, with all" in muniment("wastebasket", "restore", first["deep"], first["three"])
    assert members(muniment, cabinet) == first
    assert list(members(muniment, first["deep"])) == ["one", "two"]
    muniment("wastebasket", "restore", first["deep"], code=3)


@pytest.mark.slow
def test_an_object_whose_folder_is_gone_is_restored_into_another(muniment: Muniment) -> None:
    cabinet = members(muniment)["papers"]
    deep = members(muniment, cabinet)["deep"]
    one = members(muniment, deep)["one"]
    muniment(*KEPT, "object", "rm", one)
    muniment("object", "rm", "--recursive", deep)
    muniment("wastebasket", "restore", one, code=3)
    assert "folders are gone" in muniment.err
    muniment("wastebasket", "restore", one, "--in", one, code=3)
    assert "Restored: 1 object, with all" in muniment("wastebasket", "restore", one, "--in", cabinet)
    assert members(muniment, cabinet)["one"] == one


@pytest.mark.slow
def test_what_is_purged_is_gone_with_its_content(muniment: Muniment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wastebasket, "_AT_A_TIME", 1)
    cabinet = members(muniment)["papers"]
    first = members(muniment, cabinet)
    for name in ("three", "deep"):
        muniment(*KEPT, "object", "rm", "--recursive", first[name])
    for wrong in ([], ["--all", "--days", "3"], [first["deep"], "--all"], ["--days", "0"]):
        muniment("wastebasket", "purge", *wrong, code=2)
    muniment("wastebasket", "purge", first["three"], "0900000000000000", code=3)
    assert "Removed for good: 0 objects." in muniment("wastebasket", "purge", "--days", "1")
    assert list(discards(muniment)) == ["deep", "three"]
    assert "Removed for good: 1 object." in muniment("wastebasket", "purge", first["three"])
    assert sorted(contents(muniment.data / "content")) == [b"one", b"two"]
    assert "Removed for good: 3 objects." in muniment("wastebasket", "purge", "--all")
    assert contents(muniment.data / "content") == []
    assert "Removed for good: 0 objects." in muniment("wastebasket", "purge", "--all")
    muniment("wastebasket", "restore", first["deep"], code=3)
    assert members(muniment)["papers"] == cabinet


def give_page(muniment: Muniment, object_id: str, page: bytes) -> None:
    """Give an object a further page, as its addresses do."""
    data = DataFolder(muniment.data, None, [])
    place = object_contents.place_of(WantedContent(page=1))
    uploaded = backends.content(data.installation).put([page])
    administrator = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        repository = repositories.find(cx, initialise.REPOSITORY)
        object_contents.put(cx, repository, administrator, object_id, place, uploaded, "text/plain", data.now)


@pytest.mark.slow
def test_the_check_reads_what_deleted_objects_have(muniment: Muniment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_references, "_AT_A_TIME", 1)
    cabinet = members(muniment)["papers"]
    first = members(muniment, cabinet)
    deep = members(muniment, first["deep"])
    for name, page in (("one", b"page of one"), ("two", b"page of two")):
        give_page(muniment, deep[name], page)
    for deleted in (first["three"], first["deep"]):
        muniment(*KEPT, "object", "rm", "--recursive", deleted)
    muniment("repository", "add", "other")
    assert muniment("content", "check").splitlines() == [
        "main: sound: 5 whole, 0 missing or altered",
        "other: sound: 0 whole, 0 missing or altered",
    ]
    spoil(muniment.data / "content", b"three")
    lose(muniment.data / "content", b"page of two")
    said = muniment("content", "check", code=1).splitlines()
    assert said[0] == "main: NOT SOUND: 3 whole, 2 missing or altered"
    assert {line.partition(":")[0].strip() for line in said[1:3]} == {first["three"], deep["two"]}
    assert all("restore it from the wastebasket and replace its content" in line for line in said[1:3])
    muniment("wastebasket", "restore", first["three"])
    said = muniment("content", "check", "-r", "main", code=1).splitlines()
    assert said[1].startswith(f"  {first['three']}: replace its content, or")


@pytest.mark.slow
def test_the_check_passes_over_what_is_purged_meanwhile(muniment: Muniment, monkeypatch: pytest.MonkeyPatch) -> None:
    cabinet = members(muniment)["papers"]
    muniment(*KEPT, "object", "rm", "--recursive", cabinet)
    verify, purged = FileStore.verify, list[str]()

    def verify_after_a_purge(self: FileStore, key: str, sha256: bytes) -> bool:
        if not purged:
            purged.append(muniment("wastebasket", "purge", "--all"))
        return verify(self, key, sha256)

    monkeypatch.setattr(FileStore, "verify", verify_after_a_purge)
    assert "sound: 0 whole, 0 missing" in muniment("content", "check")
    assert purged
