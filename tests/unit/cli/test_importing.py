"""A folder becomes a cabinet: mirrored, resumed, mended; nothing is followed out of it."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import now
from muniment.installation import backends
from muniment.installation.exit_codes import Exit
from muniment.repository.bulk.importing import file_tree, mirror, record
from muniment.repository.store import leases, repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.leases import Lease
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from tests.contents import contents
from tests.unit.cli.test_commands import QUICK, Muniment
from tests.waiting import until

BOSS = Principals("admin@directory.admin", frozenset(), administrator=True)


class Place(Muniment):
    """A data folder and a folder to import."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], initialise: Callable[[Path], Path]) -> None:
        super().__init__(initialise(root / "data"), capsys)
        self.folder = root / "Papers"
        self.folder.mkdir()
        self.database = Database(f"sqlite:///{self.data}/repository.db")

    def write(self, path: str, content: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def load(self, *arguments: str, code: int = 0) -> str:
        return self("import", str(self.folder), "--no-wait", *arguments, code=code)

    def tree(self) -> dict[str, StoredObject]:
        """Every object by its path from the cabinet on."""
        found: dict[str, StoredObject] = {}
        with self.database.read() as cx:
            repository = repositories.find(cx, "main")
            view = RepositoryView.read(cx, repository, BOSS)

            def descend(above: str, folder_id: str | None) -> None:
                for one, _ in lists.object_page(cx, Folder(view, folder_id, "sysobject"), Stretch(None, 0, 1000)):
                    path = f"{above}{one.name}"
                    assert path not in found, f"{path} is there twice"
                    found[path] = one
                    if one.type in {"cabinet", "folder"}:
                        descend(f"{path}/", one.id)

            descend("", None)
        return found

    def content(self, path: str) -> str:
        stored = self.tree()[path]
        assert stored.content is not None
        return b"".join(FileStore(self.data / "content").read(stored.content)).decode()


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], initialise: Callable[[Path], Path]) -> Place:
    return Place(tmp_path, capsys, initialise)


@pytest.mark.slow
def test_a_folder_is_mirrored(place: Place) -> None:
    place.write("a.txt", "one")
    place.write("deep/er/b.md", "two")
    (place.folder / "empty").mkdir()
    assert "2 imported" in place.load()
    tree = place.tree()
    assert {path: one.type for path, one in tree.items()} == {
        "Papers": "cabinet",
        "Papers/a.txt": "document",
        "Papers/deep": "folder",
        "Papers/deep/er": "folder",
        "Papers/deep/er/b.md": "document",
        "Papers/empty": "folder",
    }
    assert place.content("Papers/deep/er/b.md") == "two"
    assert tree["Papers/deep/er/b.md"].media_type == "text/markdown"


@pytest.mark.slow
def test_again_nothing_changes_and_what_changed_is_replaced(place: Place) -> None:
    place.write("a.txt", "one")
    changed = place.write("b.txt", "two")
    touched = place.write("c.txt", "three")
    place.load()
    before = place.tree()
    changed.write_text("TWO!")
    os.utime(touched, (1, 1))
    place.write("d.txt", "four")
    assert "1 imported, 1 replaced, 2 unchanged" in place.load()
    after = place.tree()
    assert {path: one.id for path, one in before.items()}.items() <= {
        path: one.id for path, one in after.items()
    }.items()
    assert place.content("Papers/b.txt") == "TWO!"
    assert after["Papers/c.txt"].content == before["Papers/c.txt"].content
    assert after["Papers/c.txt"].content_date == 1_000_000, "the date is that of the file"
    assert "0 imported, 0 replaced, 4 unchanged" in place.load()


def test_a_file_whose_time_no_database_can_hold_is_imported(place: Place) -> None:
    file = place.write("a.txt", "one")
    os.utime(file, ns=(2**63 + 10**9, 2**63 + 10**9))
    assert "1 imported" in place.load()
    assert "1 unchanged" in place.load()


@pytest.mark.slow
def test_a_change_that_keeps_size_and_time_is_found_by_checksum(place: Place) -> None:
    file = place.write("a.txt", "one")
    place.load()
    times = file.stat()
    file.write_text("two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "1 unchanged" in place.load()
    assert "1 replaced" in place.load("--checksums")
    assert place.content("Papers/a.txt") == "two"


@pytest.mark.slow
def test_what_was_deleted_in_the_repository_is_made_again(place: Place) -> None:
    place.write("deep/a.txt", "one")
    place.load()
    tree = place.tree()
    with place.database.begin() as cx:
        repository = repositories.find(cx, "main")
        objects.delete(cx, repository, BOSS, tree["Papers/deep/a.txt"].id, 1)
        objects.delete(cx, repository, BOSS, tree["Papers/deep"].id, 1)
    assert "1 imported" in place.load()
    assert set(place.tree()) == set(tree)


def test_links_are_never_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (place.folder / "file.txt").symlink_to(outside / "secret.txt")
    (place.folder / "folder").symlink_to(outside)
    (place.folder / "loop").symlink_to(place.folder)
    place.write("a.txt", "one")
    assert "1 imported" in (printed := place.load())
    assert "3 links not followed" in printed
    assert set(place.tree()) == {"Papers", "Papers/a.txt"}


def test_a_name_stays_on_its_line_and_a_terminal_only_shows_it(place: Place) -> None:
    os.mkfifo(place.folder / "a\x1b[2J\nb\u202ec")
    assert "  a\ufffd[2J\ufffdb\ufffdc: not a regular file\n" in place.load(code=1)


def test_what_cannot_be_imported_is_counted_with_its_reason(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    place.write("a.txt", "one")
    printed = place.load(code=1)
    assert "1 imported" in printed
    assert "pipe: not a regular file" in printed


def test_a_name_that_shows_itself_in_another_order_loses_what_does_so(place: Place) -> None:
    place.write("invoice\u202efdp.exe", "one")
    assert "1 imported" in place.load()
    assert "Papers/invoicefdp.exe" in place.tree()
    assert "1 unchanged" in place.load()


def test_a_name_that_is_no_unicode_is_kept_as_well_as_it_can_be(place: Place) -> None:
    with open(os.fsencode(place.folder) + b"/caf\xe9.txt", "wb") as file:
        file.write(b"one")
    assert "1 imported" in place.load()
    assert "Papers/caf\ufffd.txt" in place.tree()
    assert "1 unchanged" in place.load()


def test_an_interrupted_import_goes_on_where_it_stopped(place: Place) -> None:
    for number in range(7):
        place.write(f"{number}.txt", str(number))
    assert "3 imported" in place.load("--limit", "3")
    assert "4 imported, 0 replaced, 3 unchanged" in place.load()


@pytest.mark.slow
def test_what_a_plain_text_says_is_kept_with_it(place: Place) -> None:
    for number in range(mirror._BATCH_FILES + 3):
        place.write(f"{number}.txt", f"word{number}")
    place.write("page.html", "<p>words</p>")
    assert f"{mirror._BATCH_FILES + 4} imported" in place.load()
    tree = place.tree()
    with place.database.read() as cx:
        statuses = {path: queue.status(cx, one.id).state for path, one in tree.items() if one.content}
        lines = changes.after(cx, 1, changes.START, 1000)
        said = queue.text_of(cx, [tree["Papers/7.txt"].id])
    assert [path for path, state in statuses.items() if state != "done"] == ["Papers/page.html"]
    assert len(lines) == len(tree), "the index has one thing to do for each object"
    assert list(said.values()) == ["word7"]


def test_a_file_that_cannot_be_kept_stops_no_other(place: Place) -> None:
    for number in range(9):
        place.write(f"{number}.txt", str(number))
    place.write(" ", "nameless")
    printed = place.load(code=1)
    assert "9 imported" in printed
    assert "An object needs a name" in printed
    assert len(place.tree()) == 10
    kept = contents(place.data / "content") + list((place.data / "content" / "incoming").iterdir())
    assert len(kept) == 9, "nothing is left of what was refused"


@pytest.mark.slow
def test_a_broken_content_of_equal_bytes_doubles_no_object(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("first.txt", "same")
    place.load()
    for number in range(4):
        place.write(f"{number}.txt", "same" if number == 2 else str(number))

    def verify(*_arguments: object) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(FileStore, "verify", verify)
    assert "4 imported, 0 replaced, 1 unchanged, 0 failed" in place.load()
    assert len(place.tree()) == 6


@pytest.mark.slow
def test_a_file_larger_than_a_batch_goes_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tree, "SMALL", 10)
    place.write("large.txt", "x" * 11)
    place.write("small.txt", "y" * 10)
    assert "2 imported" in place.load()
    assert place.content("Papers/large.txt") == "x" * 11
    (place.folder / "large.txt").write_text("z" * 12)
    assert "1 replaced, 1 unchanged" in place.load()
    assert place.content("Papers/large.txt") == "z" * 12


@pytest.mark.slow
def test_a_killed_import_goes_on_and_doubles_nothing(place: Place) -> None:
    files = {f"{number}.txt": f"words of {number}" for number in range(400)}
    for name, content in files.items():
        place.write(name, content)
    command = [sys.executable, "-m", "muniment", "--data", str(place.data), *QUICK]
    for kept_before in (100, 200):
        work = subprocess.Popen([*command, "import", str(place.folder), "--no-wait", "--threads", "1"])
        try:
            until(lambda: work.poll() is not None or imported(place) > kept_before, pause=0.001)  # noqa: B023
        finally:
            work.kill()
            work.wait()
    place.load()
    tree = place.tree()
    assert len(tree) == len(files) + 1
    assert all(place.content(f"Papers/{name}") == files[name] for name in list(files)[::40])


def imported(place: Place) -> int:
    with place.database.read() as cx:
        return len(record.find(cx, 1, str(place.folder)))


class Trailing:
    """An index that moves on by some changes each time it is looked at, or stands."""

    def __init__(self, pace: int) -> None:
        self._pace = pace
        self.position = changes.START
        self.looks = 0

    def snapshot(self) -> "Trailing":
        self.looks += 1
        self.position = changes.Position(0, self.position.sequence + self._pace)
        return self

    def close(self) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("pace", [1, 0])
@pytest.mark.parametrize(("longest_wait", "most_ahead"), [(-1, 1000), (1_000_000_000, 5)], ids=["time", "number"])
def test_an_import_waits_for_an_index_that_moves(
    place: Place, monkeypatch: pytest.MonkeyPatch, longest_wait: int, most_ahead: int, pace: int
) -> None:
    behind = Trailing(pace)
    monkeypatch.setattr(backends, "reader", lambda *_: behind)
    monkeypatch.setattr(mirror, "_BATCH_FILES", 10)
    monkeypatch.setattr(mirror, "_AHEAD", 5)
    monkeypatch.setattr(mirror, "_MOST_AHEAD", most_ahead)
    monkeypatch.setattr(mirror, "_LONGEST_WAIT", longest_wait)
    monkeypatch.setattr(mirror, "_STANDING_SECONDS", 0.1)
    for number in range(60):
        place.write(f"{number:02}.txt", "words")
    assert "60 imported" in place.load("--threads", "1")
    if pace:
        assert behind.position >= changes.Position(0, 30), "it waited until the index was near"
    else:
        assert behind.looks < 50, "it did not wait for an index that nobody writes"


def test_files_under_way_count_as_changes_that_the_index_lacks(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five batches could be under way while none of their changes was seen, and the index had to catch up with all."""
    waits, started = threading.Event(), list[int]()
    original = mirror.Import._import

    class Standing(Trailing):
        def snapshot(self) -> Trailing:
            if self.looks > 20:
                waits.set()
            return super().snapshot()

    def held(self: mirror.Import, batch: list[file_tree.SourceFile]) -> object:
        if not waits.is_set():
            started.append(len(batch))
        waits.wait(3)
        return original(self, batch)

    monkeypatch.setattr(backends, "reader", lambda *_: Standing(0))
    monkeypatch.setattr(mirror.Import, "_import", held)
    monkeypatch.setattr(mirror, "_BATCH_FILES", 10)
    monkeypatch.setattr(mirror, "_AHEAD", 25)
    monkeypatch.setattr(mirror, "_LONGEST_WAIT", -1)
    monkeypatch.setattr(mirror, "_STANDING_SECONDS", 1.0)
    for number in range(60):
        place.write(f"{number:02}.txt", "words")
    assert "60 imported" in place.load("--threads", "4")
    assert started == [10, 10, 10]


def test_the_acl_and_the_owner_are_chosen(place: Place) -> None:
    place.write("a.txt", "one")
    place.load("--acl", "public", "--owner", "ada@staff")
    tree = place.tree()
    assert {one.owner for one in tree.values()} == {"ada@staff"}
    assert len({one.acl_id for one in tree.values()}) == 1


def test_paths_of_any_length_have_a_key_of_their_own() -> None:
    assert len({record.key(path) for path in ("", "a", "a/b", "x" * 5000)}) == 4
    assert all(len(record.key(path)) == 64 for path in ("", "x" * 5000))


def test_hidden_names_are_imported_on_request_only(place: Place) -> None:
    place.write("a.txt", "one")
    place.write(".secret", "two")
    place.write(".git/config", "three")
    printed = place.load()
    assert "1 imported" in printed
    assert "2 hidden names left out" in printed
    assert set(place.tree()) == {"Papers", "Papers/a.txt"}
    assert "2 imported" in place.load("--hidden")
    place.load()
    assert set(place.tree()) == {"Papers", "Papers/a.txt", "Papers/.secret", "Papers/.git", "Papers/.git/config"}


@pytest.mark.slow
def test_another_acl_is_put_on_what_was_imported_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_BATCH_FILES", 2)
    for number in range(5):
        place.write(f"deep/{number}.txt", str(number))
    place.load()
    before = place.tree()
    apart = before["Papers/deep/3.txt"].id
    place("acl", "add", "own", "readers@staff=READ")
    with place.database.begin() as cx:
        assigned_acls.assign(cx, repositories.find(cx, "main"), BOSS, apart, "own", 1)
    assert "6 objects carry the other ACL now" in place.load("--acl", "public")
    acls = {path: one.acl_id for path, one in place.tree().items()}
    own = acls.pop("Papers/deep/3.txt")
    assert len(set(acls.values())) == 1
    assert not {own, before["Papers"].acl_id} & set(acls.values())
    place.write("new.txt", "new")
    place.load()
    assert place.tree()["Papers/new.txt"].acl_id == acls["Papers"], "without the option all stays as it is"


@pytest.mark.slow
def test_another_name_renames_the_cabinet(place: Place) -> None:
    place.write("a.txt", "one")
    place.load()
    cabinet = place.tree()["Papers"].id
    place.load("--cabinet", "Letters")
    assert place.tree()["Letters"].id == cabinet
    place.load()
    assert set(place.tree()) == {"Letters", "Letters/a.txt"}


@pytest.mark.slow
def test_another_type_is_refused_and_says_what_to_do(place: Place) -> None:
    place.write("a.txt", "one")
    place("type", "add", "letter")
    place.load("--type", "letter")
    place.write("b.txt", "two")
    place.load("--type", "document", code=3)
    assert "an object keeps its type" in place.err
    assert "Papers/b.txt" not in place.tree()
    place.load()
    assert place.tree()["Papers/b.txt"].type == "letter", "without the option it is as before"


def test_another_owner_is_refused_and_says_what_to_do(place: Place) -> None:
    place.write("a.txt", "one")
    place.load("--owner", "ada@staff")
    place.write("b.txt", "two")
    place.load("--owner", "bob@staff", code=3)
    assert "muniment repository give" in place.err
    assert "Papers/b.txt" not in place.tree()
    place.load()
    assert {one.owner for one in place.tree().values()} == {"ada@staff"}, "without the option it is as before"


@pytest.mark.slow
def test_mirroring_deletes_the_objects_of_what_is_gone(place: Place) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "deep/er/d.txt"):
        place.write(name, f"words of {name}")
    place.load()
    (place.folder / "deep/er/d.txt").unlink()
    (place.folder / "deep/er").rmdir()
    (place.folder / "deep").rmdir()
    place.load()
    assert "Papers/deep/er/d.txt" in place.tree(), "nothing is deleted without --mirror"
    assert "1 deleted" in place.load("--mirror")
    assert set(place.tree()) == {"Papers", "Papers/a.txt", "Papers/b.txt", "Papers/c.txt"}
    kept = contents(place.data / "content") + list((place.data / "content" / "incoming").iterdir())
    assert len(kept) == 3
    assert "deleted" not in place.load("--mirror")


@pytest.mark.slow
def test_mirroring_moves_what_was_renamed_and_keeps_its_id(place: Place) -> None:
    for name in ("a.txt", "b.txt", "one/two/c.txt", "one/two/d.txt"):
        place.write(name, f"words of {name}")
    place.load()
    before = place.tree()
    (place.folder / "a.txt").rename(place.folder / "a.md")
    (place.folder / "new").mkdir()
    (place.folder / "one").rename(place.folder / "new/uno")
    place.write("new/e.txt", "more words")
    printed = place.load("--mirror")
    assert "1 imported" in printed
    assert "3 moved" in printed
    after = place.tree()
    renamed = {
        "Papers": "Papers",
        "Papers/a.txt": "Papers/a.md",
        "Papers/b.txt": "Papers/b.txt",
        "Papers/one": "Papers/new/uno",
        "Papers/one/two": "Papers/new/uno/two",
        "Papers/one/two/c.txt": "Papers/new/uno/two/c.txt",
        "Papers/one/two/d.txt": "Papers/new/uno/two/d.txt",
    }
    assert {path: one.id for path, one in before.items()} == {old: after[new].id for old, new in renamed.items()}
    assert set(after) == {*renamed.values(), "Papers/new", "Papers/new/e.txt"}
    assert after["Papers/a.md"].media_type == "text/markdown"
    assert "0 imported, 0 replaced, 5 unchanged" in place.load("--mirror")


def test_two_files_of_one_content_keep_apart_when_they_move(place: Place) -> None:
    for name in ("one/a.txt", "one/b.txt", "empty.txt", "void.txt", "c.txt", "d.txt", "e.txt"):
        place.write(name, "" if name in {"empty.txt", "void.txt"} else "the same")
    place.load()
    before = place.tree()
    (place.folder / "one").rename(place.folder / "two")
    (place.folder / "empty.txt").rename(place.folder / "two/empty.txt")
    place.load("--mirror")
    after = place.tree()
    for old, new in (("one/a.txt", "two/a.txt"), ("one/b.txt", "two/b.txt"), ("empty.txt", "two/empty.txt")):
        assert before[f"Papers/{old}"].id == after[f"Papers/{new}"].id
    assert len(after) == len(before)


@pytest.mark.slow
@pytest.mark.parametrize("mirrors", [False, True])
def test_a_file_that_becomes_a_folder_is_another_object_and_the_reverse(place: Place, mirrors: bool) -> None:
    for name in ("file", "folder/in.txt", "folder/moved.txt", "b.txt", "c.txt"):
        place.write(name, f"words of {name}")
    place.load()
    moved = place.tree()["Papers/folder/moved.txt"].id
    (place.folder / "file").rename(place.folder / "old")
    (place.folder / "file").mkdir()
    (place.folder / "old").rename(place.folder / "file/file")
    (place.folder / "folder/moved.txt").rename(place.folder / "moved.txt")
    (place.folder / "folder/in.txt").unlink()
    (place.folder / "folder").rmdir()
    place.write("folder", "words of a file")
    options = ["--mirror"] if mirrors else []
    assert f"{1 if mirrors else 3} imported, 0 replaced, 2 unchanged, 0 failed" in place.load(*options)
    assert "0 imported, 0 replaced, 5 unchanged, 0 failed" in place.load(*options), "each has its record"
    if mirrors:
        tree = place.tree()
        paths = {f"Papers/{name}" for name in ("file", "file/file", "folder", "moved.txt", "b.txt", "c.txt")}
        assert set(tree) == {"Papers", *paths}
        assert (tree["Papers/file"].type, tree["Papers/folder"].type) == ("folder", "document")
        assert tree["Papers/moved.txt"].id == moved


@pytest.mark.slow
def test_more_than_half_is_deleted_on_request_only(place: Place) -> None:
    for number in range(4):
        place.write(f"{number}.txt", str(number))
    place.load()
    for number in range(3):
        (place.folder / f"{number}.txt").unlink()
    place.write("new.txt", "new")
    printed = place.load("--mirror", code=3)
    assert "3 not deleted" in printed
    assert "--force" in printed
    assert len(place.tree()) == 6, "what is new is imported"
    assert "3 deleted" in place.load("--mirror", "--force")
    assert set(place.tree()) == {"Papers", "Papers/3.txt", "Papers/new.txt"}
    place.load("--force", code=2)
    assert "--mirror" in place.err


@pytest.mark.slow
def test_mirroring_deletes_nothing_that_it_did_not_make(place: Place) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "deep/d.txt"):
        place.write(name, f"words of {name}")
    place.load()
    tree = place.tree()
    mine = place.data.parent / "mine.txt"
    mine.write_text("my words")
    place("object", "put", str(mine), "--in", tree["Papers/deep"].id)
    place("object", "put", str(mine), "--replace", tree["Papers/a.txt"].id)
    (place.folder / "a.txt").unlink()
    (place.folder / "deep/d.txt").unlink()
    (place.folder / "deep").rmdir()
    printed = place.load("--mirror", code=1)
    assert "a.txt: is gone from the folder, but its object stays: Its content was changed" in printed
    assert set(place.tree()) == {
        "Papers", "Papers/a.txt", "Papers/b.txt", "Papers/c.txt", "Papers/deep", "Papers/deep/mine.txt"
    }  # fmt: skip
    place.load("--mirror")


def test_a_folder_that_cannot_be_read_is_not_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        place.write(name, f"words of {name}")
    place.load()
    opens = os.open

    def refuse(path: str | bytes | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "deep":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opens(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    assert "deep: cannot be read" in place.load("--mirror", code=1), place.err
    monkeypatch.undo()
    assert "Papers/deep/c.txt" in place.tree()


def test_folders_that_cannot_be_read_are_named_by_their_paths(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one/deep/a.txt", "one/well/b.txt", "two/deep/c.txt", "two/deep/er/d.txt", "z.txt"):
        place.write(name, f"words of {name}")
    (place.folder / "one/link").symlink_to("deep")
    place.load()
    opens = os.open

    def refuse(path: str | bytes | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path in {"deep", "link"}:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opens(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    printed = place.load("--mirror", code=1)
    assert sorted(line.strip() for line in printed.splitlines() if "cannot be read" in line) == [
        "one/deep: cannot be read, so nothing was moved or deleted",
        "one/deep: cannot be read: Permission denied",
        "two/deep: cannot be read, so nothing was moved or deleted",
        "two/deep: cannot be read: Permission denied",
    ]
    monkeypatch.undo()
    assert {"Papers/one/deep/a.txt", "Papers/two/deep/er/d.txt"} <= place.tree().keys()


def test_what_may_be_listed_and_not_looked_at_is_not_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that its owner may read and not search, or a file system that fails: everything else is imported."""
    for name in ("a.txt", "b.txt", "deep/c.txt", "deep/er/d.txt", "z.txt"):
        place.write(name, f"words of {name}")
    place.load()
    looks = os.lstat

    def refuse(path: str | bytes | Path, *, dir_fd: int | None = None) -> os.stat_result:
        if path in {"c.txt", "er"}:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return looks(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", refuse)
    place.write("z.txt", "other words")
    printed = place.load("--mirror", "--force", code=1)
    assert "1 replaced" in printed
    assert "deep: cannot be read, so nothing was moved or deleted" in printed
    assert {"Papers/deep/c.txt", "Papers/deep/er/d.txt"} <= place.tree().keys()


def test_a_folder_that_goes_while_the_tree_is_walked_stops_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deep/c.txt", "z.txt"):
        place.write(name, f"words of {name}")
    looks = os.lstat

    def vanish(path: str | bytes | Path, *, dir_fd: int | None = None) -> os.stat_result:
        if path == "deep":
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return looks(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", vanish)
    assert "1 imported" in place.load(code=1)
    assert set(place.tree()) == {"Papers", "Papers/z.txt"}


_ALONE = """
import sys
from pathlib import Path
from muniment.ground.clock import now
from muniment.database.connections import Database
from muniment.repository.bulk.importing import record
data, folder = map(Path, sys.argv[1:])
with record.hold(Database(f"sqlite:///{data}/repository.db"), data / "imports", 1, str(folder.resolve()), now):
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_two_processes_import_a_folder_one_after_the_other(place: Place) -> None:
    place.write("a.txt", "one")
    command = [sys.executable, "-c", _ALONE, str(place.data), str(place.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        place.load(code=Exit.REFUSED)
        assert f"by process {other.pid} of this machine" in place.err
        assert place.tree() == {}
        other.kill()
    assert "1 imported" in place.load(), "a killed import is in nobody's way"


@pytest.mark.slow
def test_two_imports_that_begin_together_make_each_object_once(place: Place) -> None:
    for number in range(300):
        place.write(f"{number}.txt", "words")
    command = [sys.executable, "-m", "muniment", "--data", str(place.data), "import", str(place.folder), "--no-wait"]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert {one.wait(120) for one in both} <= {Exit.OK, Exit.REFUSED}
    assert len(place.tree()) == 301, "the cabinet and each file once"


@pytest.mark.slow
def test_a_folder_that_another_machine_imports_is_left_to_it(place: Place) -> None:
    place.write("a.txt", "one")
    lease = Lease("import", record.key(f"1 {place.folder.resolve()}"))
    with place.database.begin() as cx:
        assert leases.take(cx, lease, "elsewhere:/data", now(), 60)
    place.load(code=Exit.REFUSED)
    assert "at elsewhere:/data" in place.err
    with place.database.begin() as cx:
        leases.release(cx, lease, "elsewhere:/data")
    assert "1 imported" in place.load()


LEVELS = 1100


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[str]:
    """A path of very many folders with a file in the last one."""
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(LEVELS):
            os.mkdir("below", dir_fd=handle)
            below = os.open("below", os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = below
        os.close(os.open("deepest.txt", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
        yield "below/" * LEVELS
    finally:
        os.close(handle)
        subprocess.run(["rm", "-r", tmp_path / "below"], check=True)  # Python's own ways recurse


def test_a_folder_may_lie_as_deep_as_the_file_system_lets_it(tmp_path: Path, deep: str) -> None:
    """An import of a folder 980 levels deep ended with a RecursionError, and a watch with it."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "below" / "near.txt").write_text("near")
    open_files, failures = len(os.listdir("/proc/self/fd")), list[str]()
    entered: list[str] = []

    def enter(path: str) -> bool:
        entered.append(path)
        return True

    tree = file_tree.FileTree(
        tmp_path,
        enter=enter,
        accept=lambda _path: len(os.listdir("/proc/self/fd")) < open_files + 10,
        is_unchanged=lambda _file: False,
        note_failure=lambda path, reason: failures.append(f"{path}: {reason}"),
        largest=1000,
    )
    assert [file.path for file in tree.files()] == ["below/near.txt", f"{deep}deepest.txt"]
    assert len(tree.contents().folders) == len(entered) == LEVELS + 2
    assert not failures


def test_files_without_text_are_read_again_on_command(place: Place) -> None:
    place.write("a.txt", "words")
    place.write("old.bin", "\0\1\2")
    place.load()
    with place.database.begin() as cx:
        cx.execute(queue.texts.update().where(queue.texts.c.state == "waiting").values(state="unsupported", reason="x"))
    assert "main: 1 files wait to be read" in place("index", "read-again")
    with place.database.read() as cx:
        assert queue.counts(cx, repositories.find(cx, "main").id)["waiting"] == 1
