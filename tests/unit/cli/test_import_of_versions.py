"""A folder is imported again after its documents were checked out, or checked in as further versions."""

import os

import pytest

from muniment.ground.clock import now
from muniment.repository.store import repositories
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.decisions import checkins, checkouts, version_removal
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.version import Policy
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from tests.contents import contents
from tests.unit.cli.test_importing import BOSS, Place
from tests.unit.cli.test_importing import place as place

ADA = Principals("ada@staff", administrator=True)


def check_out(place: Place, path: str, who: Principals = ADA) -> StoredObject:
    object_id = place.tree()[path].id
    with place.database.begin() as cx:
        return checkouts.check_out(cx, repositories.find(cx, "main"), who, object_id, now())


def check_in(
    place: Place, path: str, words: str, policy: Policy = "next-minor", *, make_current: bool = True
) -> StoredObject:
    stored = check_out(place, path)
    content = FileStore(place.data / "content").put([words.encode()])
    with place.database.begin() as cx:
        view = RepositoryView.read(cx, repositories.find(cx, "main"), ADA)
        what = CheckIn(policy, {}, content, media_type="text/plain", make_current=make_current)
        return checkins.check_in(cx, view, stored.id, what, now())


def versions(place: Place, chronicle_id: str) -> list[str]:
    """What the versions of a tree say, the current one first."""
    with place.database.read() as cx:
        tree = inventory.versions(cx, repositories.find(cx, "main").id, [chronicle_id]).get(chronicle_id, [])
    store = FileStore(place.data / "content")
    return [b"".join(store.read(each.content)).decode() for each in tree if each.content]


@pytest.mark.slow
def test_a_changed_file_replaces_the_content_of_the_current_version(place: Place) -> None:
    file = place.write("a.txt", "first")
    place.load()
    first = place.tree()["Papers/a.txt"]
    second = check_in(place, "Papers/a.txt", "second")
    assert "0 replaced, 1 unchanged" in place.load(), "the file is as it was"
    assert versions(place, first.id) == ["second", "first"]
    for words in ("third", "fourth"):
        place.write("a.txt", words)
        assert "1 replaced" in place.load()
        assert versions(place, first.id) == [words, "first"]
    assert place.tree()["Papers/a.txt"].id == second.id
    with place.database.begin() as cx:
        version_removal.delete(cx, repositories.find(cx, "main"), BOSS, first.id, "unused", now(), 10)
    os.utime(file)
    assert "1 unchanged" in place.load(), "the first version is gone, its tree is not"
    place.write("a.txt", "fifth")
    assert "0 imported, 1 replaced" in place.load()
    assert versions(place, first.id) == ["fifth"]
    assert "1 unchanged" in place.load("--checksums")


@pytest.mark.slow
def test_a_file_whose_object_somebody_else_has_checked_out_is_reported_and_skipped(place: Place) -> None:
    for name in ("a.txt", "b.txt"):
        place.write(name, "first")
    place.load()
    check_out(place, "Papers/a.txt")
    for name in ("a.txt", "b.txt"):
        place.write(name, "second")
    for _ in range(2):
        printed = place.load(code=1)
        assert "1 failed" in printed
        assert "a.txt: ada@staff has this object checked out since" in printed
    assert [place.content(f"Papers/{name}") for name in ("a.txt", "b.txt")] == ["first", "second"]
    assert sorted(contents(place.data / "content")) == [b"first", b"second"], "nothing of the refused file stays"
    with place.database.begin() as cx:
        object_id = place.tree()["Papers/a.txt"].id
        checkouts.cancel(cx, repositories.find(cx, "main"), ADA, object_id, now())
    assert "1 replaced, 1 unchanged, 0 failed" in place.load()
    check_out(place, "Papers/a.txt", BOSS)
    place.write("a.txt", "third")
    assert "1 replaced" in place.load(), "the importer's own check-out does not stop them"


@pytest.mark.slow
def test_a_current_version_that_is_not_the_latest_keeps_its_content(place: Place) -> None:
    place.write("a.txt", "first")
    place.load()
    first = place.tree()["Papers/a.txt"]
    check_in(place, "Papers/a.txt", "second", make_current=False)
    place.write("a.txt", "changed")
    assert "a.txt: The version has a next one" in place.load(code=1)
    assert versions(place, first.id) == ["first", "second"]


@pytest.mark.slow
def test_a_mirroring_import_moves_the_current_version_and_deletes_no_version_that_it_did_not_make(place: Place) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "deep/f.txt"):
        place.write(name, f"words of {name}")
    place.load()
    first = place.tree()["Papers/a.txt"]
    second = check_in(place, "Papers/a.txt", "words of a.txt")
    (place.folder / "a.txt").rename(place.folder / "moved.txt")
    assert "1 moved" in place.load("--mirror")
    moved = place.tree()["Papers/moved.txt"]
    assert (moved.id, moved.chronicle_id) == (second.id, first.id)
    (place.folder / "moved.txt").unlink()
    refused = place.load("--mirror", code=1)
    assert "moved.txt: is gone from the folder, but its object stays: It has versions that no import made." in refused
    assert versions(place, first.id) == ["words of a.txt"] * 2
    assert "0 failed" in place.load("--mirror"), "that is said once"

    check_out(place, "Papers/deep/f.txt")
    (place.folder / "deep/f.txt").unlink()
    (place.folder / "deep").rmdir()
    for _ in range(2):
        assert "f.txt: is gone from the folder, but its object stays: ada@staff has" in place.load("--mirror", code=1)
    with place.database.begin() as cx:
        object_id = place.tree()["Papers/deep/f.txt"].id
        checkouts.cancel(cx, repositories.find(cx, "main"), ADA, object_id, now())
    assert "1 deleted" in place.load("--mirror")
    assert not [path for path in place.tree() if "deep" in path]


@pytest.mark.slow
def test_the_former_folder_of_a_document_that_somebody_has_checked_out_goes_when_the_document_moves(
    place: Place,
) -> None:
    for name in ("deep/a.txt", "other/b.txt"):
        place.write(name, f"words of {name}")
    place.load()
    stored = check_out(place, "Papers/deep/a.txt")
    (place.folder / "deep/a.txt").rename(place.folder / "other/a.txt")
    (place.folder / "deep").rmdir()
    place.load("--mirror", code=1)
    with place.database.begin() as cx:
        checkouts.cancel(cx, repositories.find(cx, "main"), ADA, stored.id, now())
    assert "1 moved" in place.load("--mirror")
    assert set(place.tree()) == {"Papers", "Papers/other", "Papers/other/a.txt", "Papers/other/b.txt"}


@pytest.mark.slow
def test_another_acl_is_put_on_every_version(place: Place) -> None:
    place.write("a.txt", "first")
    place.load("--acl", "public")
    first = place.tree()["Papers/a.txt"]
    second = check_in(place, "Papers/a.txt", "second")
    place.load("--acl", "private")
    with place.database.read() as cx:
        for each in (first, second):
            stored, _ = objects.read(cx, repositories.find(cx, "main"), each.id, BOSS)
            assert object_acls.shown_name(cx, stored, BOSS) == "private"
