"""A folder becomes a cabinet: mirrored, resumed, mended; nothing is followed out of it."""

import os
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.db import Database
from muniment.repository import imports, object_types, objects, repositories
from muniment.repository.acls import Principals
from muniment.repository.content import ContentStore

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
            repository = repositories.named(cx, "main")
            catalogue = object_types.catalogue(cx, repository.id)

            def descend(above: str, folder_id: str | None) -> None:
                for one in objects.children(cx, repository, catalogue, BOSS, folder_id, "sysobject", 0, 1000):
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
        return b"".join(ContentStore(self.data / "content").read(stored.content)).decode()


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
    assert after["Papers/c.txt"].version == before["Papers/c.txt"].version
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
        repository = repositories.named(cx, "main")
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


def test_the_acl_and_the_owner_are_chosen(place: Place) -> None:
    place.write("a.txt", "one")
    place.load("--acl", "public", "--owner", "ada@staff")
    tree = place.tree()
    assert {one.owner for one in tree.values()} == {"ada@staff"}
    assert len({one.acl_id for one in tree.values()}) == 1


def test_paths_of_any_length_have_a_key_of_their_own() -> None:
    assert len({imports.key(path) for path in ("", "a", "a/b", "x" * 5000)}) == 4
    assert all(len(imports.key(path)) == 64 for path in ("", "x" * 5000))
