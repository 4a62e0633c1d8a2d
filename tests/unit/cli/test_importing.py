"""A folder becomes a cabinet: mirrored, resumed, mended; nothing is followed out of it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muniment import app
from muniment.cli import commands, file_tree, importing
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.change_log import changes
from muniment.repository.content.files import FileStore
from muniment.repository.cursors import Stretch
from muniment.repository.extraction import queue
from muniment.repository.importing import record
from muniment.repository.objects import object_types, objects
from muniment.repository.permissions.principals import Principals

QUICK = ["--set", "directory.hash_memory_kib=8192", "--set", "directory.hash_passes=1"]
BOSS = Principals("admin@directory.admin", frozenset(), administrator=True)


class Place:
    """A data folder and a folder to import."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = root / "data"
        self.folder = root / "Papers"
        self.folder.mkdir()
        self._capsys = capsys
        assert commands.run(["--data", str(self.data), *QUICK, "init"]) == 0
        capsys.readouterr()
        self.database = Database(f"sqlite:///{self.data}/repository.db")

    def write(self, path: str, content: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def load(self, *arguments: str, code: int = 0) -> str:
        left = commands.run(["--data", str(self.data), *QUICK, "import", str(self.folder), "--no-wait", *arguments])
        printed = self._capsys.readouterr()
        assert left == code, printed.out + printed.err
        return printed.out

    def tree(self) -> dict[str, objects.StoredObject]:
        """Every object by its path from the cabinet on."""
        found: dict[str, objects.StoredObject] = {}
        with self.database.read() as cx:
            repository = repositories.find(cx, "main")
            catalogue = object_types.catalogue(cx, repository.id)

            def descend(above: str, folder_id: str | None) -> None:
                for one in objects.children(
                    cx, repository, catalogue, BOSS, folder_id, "sysobject", Stretch(None, 0, 1000)
                ):
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
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


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
    assert after["Papers/c.txt"].revision == before["Papers/c.txt"].revision
    assert "0 imported, 0 replaced, 4 unchanged" in place.load()


def test_a_change_that_keeps_size_and_time_is_found_by_checksum(place: Place) -> None:
    file = place.write("a.txt", "one")
    place.load()
    times = file.stat()
    file.write_text("two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "1 unchanged" in place.load()
    assert "1 replaced" in place.load("--checksums")
    assert place.content("Papers/a.txt") == "two"


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


def test_what_a_plain_text_says_is_kept_with_it(place: Place) -> None:
    for number in range(importing._BATCH_FILES + 3):
        place.write(f"{number}.txt", f"word{number}")
    place.write("page.html", "<p>words</p>")
    assert f"{importing._BATCH_FILES + 4} imported" in place.load()
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
    kept = [path for path in (place.data / "content").rglob("*") if path.is_file() and path.name != "removals.lock"]
    assert len(kept) == 9, "nothing is left of what was refused"


def test_a_file_larger_than_a_batch_goes_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tree, "SMALL", 10)
    place.write("large.txt", "x" * 11)
    place.write("small.txt", "y" * 10)
    assert "2 imported" in place.load()
    assert place.content("Papers/large.txt") == "x" * 11
    (place.folder / "large.txt").write_text("z" * 12)
    assert "1 replaced, 1 unchanged" in place.load()
    assert place.content("Papers/large.txt") == "z" * 12


def test_a_killed_import_goes_on_and_doubles_nothing(place: Place) -> None:
    files = {f"{number}.txt": f"words of {number}" for number in range(400)}
    for name, content in files.items():
        place.write(name, content)
    command = [sys.executable, "-m", "muniment", "--data", str(place.data), *QUICK]
    for kept_before in (100, 200):
        work = subprocess.Popen([*command, "import", str(place.folder), "--no-wait", "--threads", "1"])
        while work.poll() is None and imported(place) <= kept_before:
            time.sleep(0.001)
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


@pytest.mark.parametrize("pace", [1, 0])
def test_an_import_waits_for_an_index_that_moves(place: Place, monkeypatch: pytest.MonkeyPatch, pace: int) -> None:
    behind = Trailing(pace)
    monkeypatch.setattr(app, "reader", lambda *_: behind)
    monkeypatch.setattr(importing, "_BATCH_FILES", 10)
    monkeypatch.setattr(importing, "_AHEAD", 5)
    monkeypatch.setattr(importing, "_STANDING_SECONDS", 0.1)
    for number in range(60):
        place.write(f"{number:02}.txt", "words")
    assert "60 imported" in place.load("--threads", "1")
    if pace:
        assert behind.position >= changes.Position(0, 30), "it waited until the index was near"
    else:
        assert behind.looks < 50, "it did not wait for an index that nobody writes"


def test_the_acl_and_the_owner_are_chosen(place: Place) -> None:
    place.write("a.txt", "one")
    place.load("--acl", "public", "--owner", "ada@staff")
    tree = place.tree()
    assert {one.owner for one in tree.values()} == {"ada@staff"}
    assert len({one.acl_id for one in tree.values()}) == 1


def test_paths_of_any_length_have_a_key_of_their_own() -> None:
    assert len({record.key(path) for path in ("", "a", "a/b", "x" * 5000)}) == 4
    assert all(len(record.key(path)) == 64 for path in ("", "x" * 5000))
