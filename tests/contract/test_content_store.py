"""What every content store does: the built-in one with and without packs, a real store of S3, and one in memory."""

import hashlib
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from muniment.ground.clock import Instant
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content.contract import PIECE, ContentStore, ContentWriter, Pack, StoredContent
from muniment.repository.store.content.files import FileStore, Packing
from tests.clock import Clock
from tests.s3 import S3Server


class _Part:
    """Content on its way into the store below."""

    def __init__(self, held: dict[str, bytes]) -> None:
        self._held, self._bytes, self._open = held, bytearray(), True

    def write(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._bytes += piece

    def finish(self) -> StoredContent:
        key, whole, self._open = uuid.uuid4().hex, bytes(self._bytes), False
        self._held[key] = whole
        return StoredContent(key, len(whole), hashlib.sha256(whole).digest())

    def abort(self) -> None:
        self._open = False


class Elsewhere:
    """A store without a folder: it has bytes under keys, as a store of objects in the network does."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.kept = 0

    def writer(self) -> ContentWriter:
        return _Part(self.held)

    def put(self, pieces: Iterable[bytes]) -> StoredContent:
        part = self.writer()
        for piece in pieces:
            part.write(piece)
        return part.finish()

    def put_all(self, contents: Sequence[bytes]) -> list[StoredContent]:
        return [self.put([each]) for each in contents]

    def adopt(self, content: StoredContent, pieces: Iterable[bytes]) -> bool:
        try:
            self.held[content.key] = b"".join(pieces)
        except ContentDamaged:
            return False
        return True

    def read(self, content: StoredContent, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        whole = self.held.get(content.key, b"")
        if len(whole) != content.size or hashlib.sha256(whole).digest() != content.sha256:
            raise ContentDamaged("The content no longer has the digest with which it was stored.")
        end = content.size if length is None else start + length
        for place in range(start, end, PIECE):
            yield whole[place : min(place + PIECE, end)]

    @contextmanager
    def local(self, key: str) -> Iterator[BinaryIO]:
        if key not in self.held:
            raise ContentDamaged("The content is missing from the store.")
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(self.held[key])
            file.seek(0)
            yield file

    def verify(self, key: str, sha256: bytes) -> bool:
        return key in self.held and hashlib.sha256(self.held[key]).digest() == sha256

    def remove(self, key: str) -> bool:
        if self.kept:
            return False
        self.held.pop(key, None)
        return True

    @contextmanager
    def keeping(self) -> Iterator[None]:
        self.kept += 1
        yield
        self.kept -= 1

    def older_than(self, before: Instant) -> Iterator[str]:
        yield from list(self.held) if before > 0 else ()

    def packs(self, before: Instant) -> Iterator[Pack]:
        yield from ()

    def drop(self, pack: Pack) -> bool:
        return not self.kept


@pytest.fixture(params=["files", "packs", "elsewhere", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> ContentStore:
    if request.param == "elsewhere":
        return Elsewhere()
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return server.store(tmp_path / "s3")
    return FileStore(tmp_path / "content", packing=Packing(65_536, clock) if request.param == "packs" else None)


def test_what_is_kept_is_given_back_whole_and_in_ranges(store: ContentStore) -> None:
    whole = bytes(range(256)) * 2000
    writer = store.writer()
    writer.write(whole[:1000], whole[1000:5000])
    writer.write(whole[5000:])
    kept = writer.finish()
    assert (kept.size, kept.sha256) == (len(whole), hashlib.sha256(whole).digest())
    assert b"".join(store.read(kept)) == whole
    assert b"".join(store.read(kept, 300_000, 7)) == whole[300_000:300_007]
    assert max(len(piece) for piece in store.read(kept)) <= PIECE
    assert [b"".join(store.read(each)) for each in store.put_all([b"one", b""])] == [b"one", b""]


def test_a_reader_gets_a_file_of_this_machine(store: ContentStore) -> None:
    kept = store.put([b"some ", b"words"])
    with store.local(kept.key) as file:
        assert file.fileno() >= 0
        assert file.read() == b"some words"
    store.remove(kept.key)
    with pytest.raises(ContentDamaged), store.local(kept.key):
        pass


def test_nothing_is_removed_while_all_is_being_kept(store: ContentStore) -> None:
    kept = store.put([b"x"])
    with store.keeping():
        assert not store.remove(kept.key)
        assert store.verify(kept.key, kept.sha256)
    assert store.remove(kept.key)
    assert not store.verify(kept.key, kept.sha256)
    assert store.remove(kept.key), "there is none, and nothing happens"


def test_what_is_old_is_named_alone_or_in_its_pack(store: ContentStore, clock: Clock) -> None:
    kept = store.put([b"x"])
    clock.advance(2 * 86_400)
    later = store.put([b"y"])
    assert [*store.older_than(0), *store.packs(0)] == []
    alone, packs = set(store.older_than(2**52)), list(store.packs(2**52))
    assert len(alone) == 2 or [pack.first <= kept.key <= pack.last for pack in packs] == [True]
    with store.keeping():
        assert not any(store.drop(pack) for pack in packs)
        assert store.verify(kept.key, kept.sha256)
    assert all(store.drop(pack) for pack in packs)
    assert store.verify(kept.key, kept.sha256) == (not packs)
    assert store.verify(later.key, later.sha256), "it is in the pack to which this process writes"


def test_a_store_adopts_what_another_holds_and_nothing_damaged(store: ContentStore, tmp_path: Path) -> None:
    for other in (
        FileStore(tmp_path / "other"),
        FileStore(tmp_path / "packed", packing=Packing(65_536, Clock())),
        Elsewhere(),
    ):
        kept, lost = other.put([b"x" * PIECE, b"y"]), other.put([b"z"])
        altered = StoredContent(kept.key, kept.size, bytes(32))
        other.remove(lost.key)
        assert not store.adopt(altered, other.read(altered))
        assert not store.adopt(lost, other.read(lost))
        assert not store.verify(kept.key, kept.sha256)
        assert store.adopt(kept, other.read(kept))
        assert b"".join(store.read(kept)) == b"x" * PIECE + b"y"
        assert next(iter(store.read(kept, kept.size - 1))) == b"y"
        small = other.put_all([b"small", b""])
        assert all(store.adopt(each, other.read(each)) for each in reversed(small))
        assert [b"".join(store.read(each)) for each in small] == [b"small", b""]
