"""Many small contents in one file: one sync brings all to the disk, and a crash leaves a tail that nobody names."""

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.ground.refusals import NotStored
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content import packs
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from tests.clock import Clock
from tests.contents import contents, lose, pack, spoil
from tests.waiting import until

BORDER = 1000


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> FileStore:
    return FileStore(tmp_path, packing=Packing(BORDER, clock))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=600), max_size=4), st.data())
def test_what_is_kept_is_given_back_whole_and_in_ranges(
    store: FileStore, pieces: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(pieces)
    kept = store.put(pieces)
    assert (kept.size, kept.sha256) == (len(whole), hashlib.sha256(whole).digest())
    assert packs.is_key(kept.key) == (len(whole) <= BORDER)
    assert b"".join(store.read(kept)) == whole
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, len(whole) + 10))
    assert b"".join(store.read(kept, start, length)) == whole[start : start + length]
    assert store.verify(kept.key, kept.sha256)
    with store.local(kept.key) as file:
        assert file.read() == whole


def test_a_batch_keeps_its_order_whatever_goes_where(store: FileStore, tmp_path: Path) -> None:
    given_contents = [b"a", b"b" * (BORDER + 1), b"", b"c" * BORDER, b"d" * 5000]
    kept = store.put_all(given_contents)
    assert [b"".join(store.read(each)) for each in kept] == given_contents
    assert [packs.is_key(each.key) for each in kept] == [True, False, True, True, False]
    assert sorted(contents(tmp_path)) == sorted(given_contents)
    assert store.put_all([]) == []


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_packs_are_for_their_owner_alone(no_umask: None, tmp_path: Path) -> None:
    FileStore(tmp_path / "content", packing=Packing(BORDER, Clock())).put([b"x"])
    places = [tmp_path / "content" / "packs", *(tmp_path / "content" / "packs").iterdir()]
    assert [place.stat().st_mode & 0o777 for place in places] == [0o700, 0o600]


def test_the_pack_and_its_folder_are_on_the_disk_before_the_first_content_is_kept(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = watched(monkeypatch)
    first, second = store.put([b"one"]), store.put_all([b"two", b"three"])
    pack = tmp_path / "packs" / first.key[:24]
    assert steps == [tmp_path / "packs", tmp_path, pack, pack], "one sync for each batch"
    assert second[0].key[:24] == first.key[:24]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Note what is synced, in order."""
    steps: list[Path] = []

    def watching(real: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
            real(descriptor)

        return synced

    monkeypatch.setattr(os, "fsync", watching(os.fsync))
    monkeypatch.setattr(os, "fdatasync", watching(os.fdatasync))
    return steps


def test_whoever_waits_while_one_is_synced_shares_the_next_sync(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put([b"first"])
    real, syncs, entered, go_on = os.fdatasync, list[int](), threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        syncs.append(descriptor)
        entered.set()
        assert go_on.wait(60)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    kept: list[StoredContent] = []
    threads = [
        threading.Thread(target=lambda text=b"%d" % number: kept.append(store.put([text])), daemon=True)
        for number in range(9)
    ]
    threads[0].start()
    assert entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(store._packs._waiting) == 8, "not all of them wait")
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert len(syncs) == 2
    assert sorted(b"".join(store.read(each)) for each in kept) == [b"%d" % number for number in range(9)]


@pytest.mark.parametrize("failing", ["fdatasync", "pwrite"])
def test_after_a_failure_nothing_is_appended_to_the_pack_and_what_was_kept_stays(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    kept = store.put([b"kept"])

    def broken(*_arguments: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, broken)
        with pytest.raises(NotStored, match="input/output error"):
            store.put_all([b"lost", b"large" * BORDER])
        with pytest.raises(NotStored):
            store.put([b"lost too"])
    assert contents(tmp_path) == [b"kept"]
    later = store.put([b"later"])
    assert later.key[:24] != kept.key[:24]
    assert [b"".join(store.read(each)) for each in (kept, later)] == [b"kept", b"later"]
    assert len(list((tmp_path / "packs").iterdir())) == 2, "a pack that never held anything is gone"


def test_everybody_who_shares_a_failed_sync_is_told(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put([b"first"])
    entered, go_on, told = threading.Event(), threading.Event(), list[str]()

    def broken(_descriptor: int) -> None:
        entered.set()
        assert go_on.wait(60)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", broken)

    def put() -> None:
        try:
            store.put([b"x"])
        except NotStored as refusal:
            told.append(refusal.sentence)

    threads = [threading.Thread(target=put, daemon=True) for _ in range(4)]
    threads[0].start()
    assert entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(store._packs._waiting) == 3, "not all of them wait")
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert told == ["The content cannot be kept: no space left on device."] * 4


def test_damage_is_noticed_and_stays_with_its_content(store: FileStore, tmp_path: Path) -> None:
    one, two, three = store.put_all([b"the first", b"the second", b"the third"])
    spoil(tmp_path, b"the first", at=4)
    lose(tmp_path, b"the second")
    for each in (one, two):
        assert not store.verify(each.key, each.sha256)
        with pytest.raises(ContentDamaged):
            next(store.read(each))
        with pytest.raises(ContentDamaged):
            next(store.read(each, 1, 1))
    assert b"".join(store.read(three)) == b"the third"
    other = StoredContent(three.key, three.size, one.sha256)
    with pytest.raises(ContentDamaged, match="digest"):
        next(store.read(other))
    with pytest.raises(ContentDamaged, match="size"):
        next(store.read(StoredContent(three.key, 3, three.sha256)))
    for key in (f"{three.key[:24]}00ffffff", f"{three.key[:23]}{'0' if three.key[23] != '0' else '1'}00000000"):
        with pytest.raises(ContentDamaged, match="missing"), store.local(key):
            pass


def test_a_pack_that_is_cut_off_loses_its_tail_alone(store: FileStore, tmp_path: Path) -> None:
    """As after a power cut of a disk that has lied."""
    kept, torn = store.put([b"kept"]), store.put([b"torn apart"])
    pack = tmp_path / "packs" / kept.key[:24]
    os.truncate(pack, pack.stat().st_size - 3)
    assert b"".join(store.read(kept)) == b"kept"
    with pytest.raises(ContentDamaged, match="ends early"):
        next(store.read(torn))


def test_what_is_removed_leaves_no_byte_behind(store: FileStore, tmp_path: Path) -> None:
    kept, gone = store.put_all([b"kept words", b"secret words"])
    with store.local(gone.key) as file:
        assert store.remove(gone.key)
        assert file.read() == b"secret words", "whoever has it reads on"
    assert store.remove(gone.key)
    assert b"secret" not in (tmp_path / "packs" / gone.key[:24]).read_bytes()
    with pytest.raises(ContentDamaged):
        next(store.read(gone))
    assert contents(tmp_path) == [b"kept words"]
    assert store.verify(kept.key, kept.sha256)


def test_what_a_read_only_disk_does_not_erase_stays(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.put([b"valve"])

    def refused(*_arguments: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as read_only:
        read_only.setattr(os, "pwrite", refused)
        store.remove(kept.key)
    assert b"".join(store.read(kept)) == b"valve"


def test_what_was_packed_is_read_where_nothing_is_packed_any_more(store: FileStore, tmp_path: Path) -> None:
    kept = store.put([b"packed"])
    without = FileStore(tmp_path)
    alone = without.put([b"alone"])
    assert b"".join(without.read(kept)) == b"packed"
    assert b"".join(store.read(alone)) == b"alone"
    assert (packs.is_key(kept.key), packs.is_key(alone.key)) == (True, False)


def test_a_pack_ends_when_it_is_full_old_or_its_process_is_gone(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path, packing=Packing(BORDER, clock))
    first = store.put([b"first"])
    clock.advance(86_400)
    second = store.put([b"second"])
    monkeypatch.setattr(packs, "_FULL_BYTES", 1)
    third = store.put([b"third"])
    assert len({each.key[:24] for each in (first, second, third)}) == 3
    assert [pack.first[:24] for pack in store.packs(2**52)] == [first.key[:24], second.key[:24]]
    day_of_second = clock.now + 86_400_000_000
    assert [pack.first[:24] for pack in store.packs(day_of_second)] == [first.key[:24]]
    other = FileStore(tmp_path, packing=Packing(BORDER, clock))
    del store
    assert len(list(other.packs(2**52))) == 3
    assert {place.name for _, place in pack(tmp_path)} == {each.key[:24] for each in (first, second, third)}
