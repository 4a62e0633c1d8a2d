"""Keep these bytes; give me those bytes; are they still what they were?"""

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.ground.clock import SECOND
from muniment.ground.disk import Reserve
from muniment.ground.refusals import NotStored
from muniment.repository.refusals import ContentDamaged
from muniment.repository.search.agent import agent
from muniment.repository.store.content.contract import PIECE, StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from tests.shelf import Shelf


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "content")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "removals.lock"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=300_000), max_size=4), st.data())
def test_what_was_kept_is_given_back_whole_and_in_ranges(
    store: FileStore, pieces: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(pieces)
    kept = store.put(pieces)
    assert kept.size == len(whole)
    assert kept.sha256 == hashlib.sha256(whole).digest()
    assert b"".join(store.read(kept)) == whole
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, len(whole) + 10))
    assert b"".join(store.read(kept, start, length)) == whole[start : start + length]
    assert store.verify(kept.key, kept.sha256)


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in files(folder)}


def folder_modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*")) if path.is_dir()}


def test_files_and_folders_are_for_their_owner_alone_whatever_the_umask(no_umask: None, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "made" / "content")
    writer = store.writer()
    assert modes(tmp_path) == {0o600}
    writer.write(b"one")
    writer.finish()
    store.put([b"two"])
    store.put_all([b"three", b"four"])
    assert len(files(tmp_path)) == 4
    assert modes(tmp_path) == {0o600}
    assert folder_modes(tmp_path / "made" / "content") == {0o700}


def test_what_a_former_release_left_open_is_closed_to_others(store: FileStore, tmp_path: Path) -> None:
    """The folder as soon as it is opened, each file with the next search for content that nobody names."""
    kept = store.put([b"kept"])
    (place,) = files(tmp_path)
    place.chmod(0o644)
    (tmp_path / "content").chmod(0o755)
    again = FileStore(tmp_path / "content")
    assert (tmp_path / "content").stat().st_mode & 0o777 == 0o700
    assert list(again.older_than(0)) == []
    assert modes(tmp_path) == {0o600}
    assert b"".join(again.read(kept)) == b"kept"


def test_pieces_that_end_with_an_exception_leave_nothing(store: FileStore, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * 10
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.put(broken())
    writer = store.writer()
    writer.write(b"half")
    writer.abort()
    assert files(tmp_path) == []
    with pytest.raises(ValueError, match="finished or aborted"):
        writer.write(b"more")


def test_a_finished_content_is_not_aborted(store: FileStore) -> None:
    writer = store.writer()
    writer.write(b"kept")
    kept = writer.finish()
    writer.abort()
    assert b"".join(store.read(kept)) == b"kept"


def place(tmp_path: Path, kept: StoredContent) -> Path:
    (found,) = tmp_path.rglob(kept.key)
    return found


def test_damaged_content_is_never_given_back_whole(store: FileStore, tmp_path: Path) -> None:
    whole = os.urandom(PIECE * 2 + 10)
    kept = store.put([whole])
    changed = bytearray(whole)
    changed[5] ^= 1
    place(tmp_path, kept).write_bytes(changed)
    given_back: list[bytes] = []
    with pytest.raises(ContentDamaged):
        given_back.extend(store.read(kept))
    assert sum(map(len, given_back)) < len(whole)
    assert not store.verify(kept.key, kept.sha256)


def test_content_of_another_size_is_refused_at_the_first_piece(store: FileStore, tmp_path: Path) -> None:
    kept = store.put([b"0123456789"])
    place(tmp_path, kept).write_bytes(b"012")
    with pytest.raises(ContentDamaged):
        next(store.read(kept, 1, 1))


def test_content_that_is_gone_is_refused_but_who_reads_it_reads_on(store: FileStore) -> None:
    kept = store.put([b"x" * PIECE, b"y"])
    reading = store.read(kept)
    next(reading)
    store.remove(kept.key)
    store.remove(kept.key)
    assert next(reading) == b"y"
    with pytest.raises(ContentDamaged):
        next(store.read(kept))
    assert not store.verify(kept.key, kept.sha256)


def test_a_key_is_never_a_path(store: FileStore) -> None:
    for key in ("../x", "", "A" * 32, "0" * 31 + "/"):
        with pytest.raises(ContentDamaged), store.local(key):
            pass
        store.remove(key)


def test_files_and_folders_are_private(store: FileStore, tmp_path: Path) -> None:
    kept = store.put([b"x"])
    assert place(tmp_path, kept).parent.stat().st_mode & 0o077 == 0


def test_the_sweep_removes_what_no_object_names_and_nothing_else(shelf: Shelf, tmp_path: Path) -> None:
    named, _orphan, young = (shelf.store.put([text]) for text in (b"named", b"orphan", b"young"))
    shelf.create({"object_name": "x"}, content=named)
    part = shelf.store.writer()
    part.write(b"left by a crash")
    for path in files(tmp_path):
        if path.name != young.key:
            os.utime(path, (1000, 1000))
    assert sum(agent._sweep(shelf.database, shelf.store, 2000 * SECOND)) == 1
    kept = {path.name for path in files(tmp_path / "content")}
    assert kept == {named.key, young.key}
    part.abort()


def test_many_are_on_the_disk_before_any_has_its_name(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent.name)
        sync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        steps.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    kept = store.put_all([b"one", b"", b"three"])
    monkeypatch.undo()
    assert [b"".join(store.read(each)) for each in kept] == [b"one", b"", b"three"]
    assert len({place(tmp_path, each).parent for each in kept}) == 1, "one folder is brought to the disk"
    assert steps[:3] == ["incoming"] * 3
    assert steps[-4:-1] == ["rename"] * 3
    assert steps[-1] == kept[0].key[:2]
    assert store.verify(kept[2].key, kept[2].sha256)
    assert store.put_all([]) == []


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_many_of_which_one_fails_leave_nothing(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    whole, calls = getattr(os, failing), iter(range(100))

    def sometimes(*arguments: object) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device")
        whole(*arguments)

    monkeypatch.setattr(os, failing, sometimes)
    with pytest.raises(NotStored, match="no space"):
        store.put_all([b"one", b"two", b"three", b"four"])
    assert files(tmp_path) == []


def test_stored_content_compares_by_value() -> None:
    kept = StoredContent("k", 1, b"d")
    assert msgspec.structs.replace(kept) == kept


def test_what_a_read_only_disk_does_not_let_go_stays(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.put([b"valve"])

    def refused(_path: object, **_options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as read_only:
        read_only.setattr(os, "unlink", refused)
        store.remove(kept.key)
    assert b"".join(store.read(kept)) == b"valve"
    store.remove(kept.key)
    with pytest.raises(ContentDamaged), store.local(kept.key):
        pass


@pytest.mark.parametrize("packing", [None, Packing(100, lambda: 0)], ids=["files", "packs"])
def test_new_content_leaves_the_reserve_alone(tmp_path: Path, packing: Packing | None) -> None:
    """What is kept is read and removed, and a copy of it may go there, as a restore makes."""
    folder = tmp_path / "content"
    free = FileStore(folder, packing=packing)
    kept = free.put([b"kept"])
    full = FileStore(folder, packing=packing, reserve=Reserve((tmp_path / "none", tmp_path), 1 << 60))
    for refused in (lambda: full.put([b"x"]), lambda: full.put([b"x" * 200]), lambda: full.put_all([b"x", b"y" * 200])):
        with pytest.raises(NotStored, match="no space left"):
            refused()
    assert files(folder / "incoming") == []
    assert b"".join(full.read(kept)) == b"kept"
    assert full.remove(kept.key)
    assert full.adopt(kept, [b"kept"])
    assert FileStore(folder, packing=packing, reserve=Reserve((tmp_path,), 1)).put([b"room"]).size == 4


def test_an_upload_ends_where_the_reserve_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path / "content", reserve=Reserve((tmp_path,), 1))
    writer = store.writer()
    writer.write(b"x")
    monkeypatch.setattr(Reserve, "is_used", lambda _: True)
    with pytest.raises(NotStored):
        writer.write(b"x")
    writer.abort()
    assert files(tmp_path / "content") == []
