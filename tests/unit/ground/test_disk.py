"""Files on the disk: for their owner alone, whole or as before, and there for good."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.ground import disk


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_new_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path, no_umask: None) -> None:
    with disk.create(tmp_path / "new") as file:
        file.write(b"some")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").read_bytes() == b"some"


def test_what_is_there_is_never_taken_for_new(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "old")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "link")
    assert (tmp_path / "old").read_bytes() == b"old"


def test_without_a_buffer_each_piece_is_there_when_it_is_written(tmp_path: Path) -> None:
    with disk.create(tmp_path / "new", buffering=0) as file:
        file.write(b"piece")
        assert (tmp_path / "new").read_bytes() == b"piece"


def test_a_replaced_file_is_its_owners_alone_and_leaves_nothing_beside_it(tmp_path: Path, no_umask: None) -> None:
    file = tmp_path / "pointer"
    for content in (b"first", b"second, longer", b"3"):
        disk.replace(file, content)
        assert file.read_bytes() == content
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_bytes_come_to_the_disk_before_their_name_and_the_name_before_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, fsync, rename = list[str](), os.fsync, os.replace

    def synced(handle: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name.rpartition('.')[0] or 'folder'}")
        fsync(handle)

    def replaced(source: Path, target: Path) -> None:
        steps.append(f"rename to {Path(target).name}")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    disk.replace(tmp_path / "pointer", b"there")
    assert steps == ["sync .pointer", "rename to pointer", "sync folder"]


def test_a_replacement_that_finds_no_room_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pointer"
    disk.replace(file, b"before")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        disk.replace(file, b"after")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_killed_process_of_this_number_left_is_in_nobodys_way(tmp_path: Path) -> None:
    file = tmp_path / "pointer"
    (tmp_path / f".pointer.{os.getpid()}").write_bytes(b"half of so")
    disk.replace(file, b"whole")
    assert file.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [file]
