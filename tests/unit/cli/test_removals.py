"""What is removed does not take a repository with it unsaid; a repository goes with all it holds, or not at all."""

import shutil
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.database.connections import Database
from muniment.directory.refusals import UnknownResource
from muniment.installation.data_folder import DataFolder
from muniment.integration import guards
from muniment.repository.bulk import removal
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from tests.contents import contents
from tests.unit.cli.test_commands import QUICK, Muniment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("removals") / "data"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    return folder


@pytest.fixture
def muniment(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    shutil.copytree(made, tmp_path / "data")
    return Muniment(tmp_path / "data", capsys)


def listed(muniment: Muniment) -> dict[str, str]:
    return dict(line.split("\t")[:2] for line in muniment("repository", "list").splitlines())


def fill(muniment: Muniment, files: Path, count: int) -> None:
    files.mkdir()
    for number in range(count):
        (files / f"{number}.txt").write_text(f"pump {number}")
    muniment("import", str(files), "--no-wait")


@pytest.mark.slow
def test_a_resource_that_guards_a_repository_is_not_removed(muniment: Muniment) -> None:
    """failures C10"""
    muniment("resource", "remove", "Documents of main", code=3)
    assert "guards 'main'" in muniment.err
    assert "muniment repository guard" in muniment.err
    muniment("resource", "remove", "Documents of main", "--force", code=3)
    other = muniment("repository", "guard", "main", "--resource", "Other").strip()
    assert listed(muniment) == {"main": other}
    assert "Its access role had 1 members" in muniment("resource", "remove", "Documents of main")
    muniment("resource", "remove", "Other", code=3)


@pytest.mark.slow
def test_a_directory_that_runs_apart_cannot_know(muniment: Muniment) -> None:
    apart = ["--set", "halves=directory"]
    muniment(*apart, "resource", "remove", "Documents of main", code=3)
    assert "cannot know" in muniment.err
    assert "--force" in muniment.err
    muniment(*apart, "resource", "remove", "Documents of main", "--force")


@pytest.mark.slow
def test_a_guard_has_to_exist(muniment: Muniment) -> None:
    before = listed(muniment)
    muniment("repository", "guard", "main", code=2)
    muniment("repository", "guard", "nowhere", "--resource", "Documents of main", code=3)
    for verb in ("guard", "add"):
        unknown = "00000000-0000-0000-0000-000000000000"
        muniment("repository", verb, "main" if verb == "guard" else "new", "--resource-id", unknown, code=3)
        assert "no resource with this identifier" in muniment.err
    data_folder = DataFolder(muniment.data, None, [])
    with (
        data_folder.database("directory") as directory,
        data_folder.database("repository") as repository,
        directory.begin() as dx,
        repository.begin() as cx,
        pytest.raises(UnknownResource),
    ):
        guards.guard(dx, cx, "main", "00000000-0000-0000-0000-000000000000")
    assert listed(muniment) == before


@pytest.mark.slow
def test_a_repository_that_holds_objects_stays_unless_everything_may_go(muniment: Muniment, tmp_path: Path) -> None:
    fill(muniment, tmp_path / "files", 7)
    assert len(contents(muniment.data / "content")) == 7
    muniment("repository", "remove", "main", code=3)
    assert "8 objects" in muniment.err, "seven files and their cabinet"
    assert "--with-everything" in muniment.err
    assert len(listed(muniment)) == 1
    assert "objects" in muniment("repository", "remove", "main", "--with-everything")
    assert listed(muniment) == {}
    assert contents(muniment.data / "content") == []
    assert list((muniment.data / "index").glob("*")) == []
    assert muniment("repository", "usage").strip() == ""
    muniment("repository", "add", "main")
    muniment("resource", "remove", "Documents of main", code=3)


@pytest.mark.slow
def test_a_removal_cut_off_anywhere_is_finished_by_the_next(muniment: Muniment, tmp_path: Path) -> None:
    fill(muniment, tmp_path / "files", 5)
    data_folder = DataFolder(muniment.data, None, [])
    with data_folder.database("repository") as database:
        with database.begin() as cx:
            one = repositories.find(cx, "main")
            removal.close(cx, one, with_everything=True)
        with database.begin() as cx:
            assert len(removal.remove_objects(cx, one, 2)) == 2
    assert listed(muniment) == {"main": ""}, "nobody enters it"
    muniment("repository", "remove", "main", "--with-everything")
    assert listed(muniment) == {}


def test_nothing_of_a_removed_repository_is_left_in_any_table_and_another_keeps_all(
    repository_db: Database, now: int
) -> None:
    with repository_db.begin() as cx:
        for name in ("going", "staying"):
            guards.add_repository(None, cx, name, "11111111-1111-1111-1111-111111111111", now)
    for name in ("going", "staying"):
        with repository_db.begin() as cx:
            one = repositories.find(cx, name)
            admin = Principals("admin@x", frozenset(), administrator=True)
            view = RepositoryView.read(cx, one, admin)
            news = [NewObject("document", {"object_name": f"n{number}"}, None, None, None) for number in range(3)]
            creation.create_all(cx, view, news, now)
    with repository_db.begin() as cx:
        one = repositories.find(cx, "going")
        removal.close(cx, one, with_everything=True)
        while removal.remove_objects(cx, one, 2).number:
            pass
        removal.finish(cx, one)
    with repository_db.read() as cx:
        (left,) = repositories.all_repositories(cx)
        assert left.name == "staying"
        assert len(inventory.next_objects(cx, left.id, 0, 10)) == 3
        assert {amount.objects for amount in inventory.amounts_by_owner(cx).values()} == {3}


@pytest.mark.slow
def test_an_acl_on_objects_is_not_removed_and_they_are_named(muniment: Muniment, tmp_path: Path) -> None:
    fill(muniment, tmp_path / "files", 2)
    muniment("acl", "add", "papers", "world=READ")
    with DataFolder(muniment.data, None, []).database("repository") as database, database.read() as cx:
        ids = [one.id for one in inventory.next_objects(cx, repositories.find(cx, "main").id, 0, 10)]
    muniment("acl", "assign", "papers", *ids[1:])
    muniment("acl", "remove", "papers", code=3)
    assert "'papers' is still on 2 objects" in muniment.err
    assert f"{ids[1]} '0.txt', {ids[2]} '1.txt'" in muniment.err
    assert ids[0] not in muniment.err
    muniment("acl", "assign", "private", *ids)
    muniment("acl", "remove", "papers")
