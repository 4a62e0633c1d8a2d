"""Room in packs comes back, and nothing that a row names is ever lost on the way."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.refusals import NotStored
from muniment.repository.search.agent import agent
from muniment.repository.store.content import packs
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import compaction
from tests.clock import Clock
from tests.contents import contents, lose
from tests.shelf import ADMIN, Shelf

EVER = 2**52


class Room:
    """A shelf whose contents lie in packs."""

    def __init__(self, shelf: Shelf, folder: Path, clock: Clock) -> None:
        self.shelf, self.folder, self.clock = shelf, folder, clock
        self.database: Database = shelf.database
        self.store = FileStore(folder, packing=Packing(1000, clock))

    def keep(self, *texts: bytes) -> list[str]:
        """Make a document of each text, all in one batch."""
        kept = self.store.put_all(texts)
        return [self.shelf.create({"object_name": "x"}, content=each).id for each in kept]

    def delete(self, object_ids: Iterable[str]) -> None:
        """Delete documents, and then their contents."""
        for object_id in object_ids:
            gone = self.shelf.delete(object_id).content
            assert gone is not None
            self.store.remove(gone.key)

    def content(self, object_id: str) -> StoredContent:
        """What the row names now."""
        content = self.shelf.read(object_id, ADMIN)[0].content
        assert content is not None
        return content

    def end_pack(self) -> None:
        """Let the process go on in another pack."""
        self.clock.advance(2 * 86_400)
        self.store.put([b""])

    def compact(self) -> int:
        """Compact what can be compacted; say how many contents were moved."""
        return sum(compaction.steps(self.database, self.store, EVER))

    def packs(self) -> set[str]:
        """The names of all packs."""
        return set(os.listdir(self.folder / "packs"))

    def text(self, object_id: str) -> bytes:
        """What an object's content says."""
        return b"".join(self.store.read(self.content(object_id)))


@pytest.fixture
def room(shelf: Shelf, tmp_path: Path, clock: Clock) -> Room:
    return Room(shelf, tmp_path / "packed", clock)


def test_a_pack_more_than_half_dead_is_moved_and_dropped_the_next_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_AT_A_TIME", 2)
    texts = [b"text %d" % number for number in range(12)]
    made = room.keep(*texts)
    (old_pack,) = room.packs()
    room.delete(made[5:])
    room.end_pack()
    before = [room.content(each) for each in made[:5]]
    assert room.compact() == 5
    assert [room.text(each) for each in made[:5]] == texts[:5]
    assert all(room.content(each).key[:24] != old_pack for each in made[:5])
    assert old_pack in room.packs(), "whoever has read a row before still reads the content"
    assert [b"".join(room.store.read(each)) for each in before] == texts[:5]
    assert room.compact() == 0
    assert old_pack not in room.packs()
    assert sorted(contents(room.folder)) == [b"", *texts[:5]]
    assert not sum(agent._sweep(room.database, room.store, EVER))


def test_a_pack_half_alive_stays_however_small_its_contents_are(room: Room) -> None:
    made = room.keep(*(b"%d" % number for number in range(10)))
    room.delete(made[:5])
    room.end_pack()
    assert room.compact() == 0
    assert len(room.packs()) == 2
    assert [room.text(each) for each in made[5:]] == [b"5", b"6", b"7", b"8", b"9"]


def test_what_a_crash_left_without_a_name_counts_as_dead(room: Room) -> None:
    (named,) = room.keep(b"named")
    room.store.put_all([b"never named"] * 3)
    room.end_pack()
    assert room.compact() == 1
    assert room.compact() == 0
    assert room.text(named) == b"named"
    assert sorted(contents(room.folder)) == [b"", b"named"]


def test_a_file_that_still_waits_for_its_text_is_found_where_it_lies_now(room: Room) -> None:
    made = room.keep(b"to be read", *(b"dead" for _ in range(3)))
    room.delete(made[1:])
    room.end_pack()
    room.compact()
    room.compact()
    with room.database.begin() as cx:
        job = queue.take(cx, room.shelf.now)
    assert job is not None
    with room.store.local(job.content_key) as file:
        assert file.read() == b"to be read"


def test_content_that_is_replaced_or_deleted_while_it_is_moved_is_not_brought_back(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = room.keep(b"replaced", b"deleted", b"moved", *(b"dead" * 20 for _ in range(5)))
    room.delete(made[3:])
    room.end_pack()
    put_all = FileStore.put_all

    def beside_others(self: FileStore, texts: list[bytes]) -> list[StoredContent]:
        copies = put_all(self, texts)
        monkeypatch.undo()
        new = room.store.put([b"new"])
        with room.database.begin() as cx:
            changed = objects.replace_content(
                cx, room.shelf.repository, ADMIN, made[0], new, "text/plain", room.shelf.now
            )
        (former,) = changed.freed
        room.store.remove(former)
        room.delete([made[1]])
        return copies

    monkeypatch.setattr(FileStore, "put_all", beside_others)
    room.compact()
    room.compact()
    assert (room.text(made[0]), room.text(made[2])) == (b"new", b"moved")
    with room.database.read() as cx:
        assert set(inventory.rows(cx, room.shelf.repository.id, made)) == {made[0], made[2]}
    assert len(room.packs()) == 1


def test_a_pack_with_damaged_content_stays(room: Room) -> None:
    made = room.keep(b"damaged", b"whole", *(b"dead" * 20 for _ in range(5)))
    room.delete(made[2:])
    lose(room.folder, b"damaged")
    room.end_pack()
    before = room.packs()
    for _ in range(3):
        room.compact()
    assert room.packs() == before
    assert not room.store.verify(room.content(made[0]).key, room.content(made[0]).sha256)
    assert room.text(made[1]) == b"whole"


def test_nothing_is_dropped_while_a_backup_is_made(room: Room) -> None:
    room.delete(room.keep(b"one", b"two"))
    room.end_pack()
    with room.store.keeping():
        room.compact()
        assert len(room.packs()) == 2
    room.compact()
    assert len(room.packs()) == 1


def test_a_young_pack_and_one_that_is_being_written_stay(room: Room) -> None:
    room.delete(room.keep(b"one", b"two"))
    assert list(compaction.steps(room.database, room.store, EVER)) == []
    room.end_pack()
    assert list(compaction.steps(room.database, room.store, room.clock.now - 86_400_000_000)) == []
    assert len(room.packs()) == 2


def test_a_full_disk_leaves_everything_as_it_is(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    made = room.keep(b"kept", *(b"dead" for _ in range(5)))
    room.delete(made[1:])
    room.end_pack()

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", full)
        with pytest.raises(NotStored):
            room.compact()
    assert room.text(made[0]) == b"kept"
    assert room.compact() == 1
    assert packs.is_key(room.content(made[0]).key)
