"""How often was this refused within the minute? The processes of one server count together, in a file of fixed size.

The file outlives the processes: what was counted and not yet told is told after the next start.
"""

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from muniment import locks

_SLOTS = 256
_TRIES = 8
_HEAD = struct.Struct("<q")
_SLOT = struct.Struct("<16sIH178s")
_SIZE = _HEAD.size + _SLOTS * _SLOT.size
_ANY = 0
"""The slot of all that found no slot of their own."""


class Count(NamedTuple):
    """How many came in a minute beyond those told one by one; without a label those of many keys together."""

    label: str
    number: int


class Tally:
    """Counts of one minute, under keys; each key's first ``limit`` are to be told, the rest as one count.

    ``path`` None, or a file that cannot be used: this process counts alone. Memory and file have a fixed size,
    whatever the keys: what finds no slot of its own is counted with all others of that sort.
    """

    def __init__(self, path: Path | None, limit: int = 10) -> None:
        self._limit = limit
        self._file: int | None = None
        self._table: mmap.mmap | None = None
        self._path = path

    def count(self, key: str, label: str, minute: int) -> tuple[bool, list[Count]]:
        """Count one more under a key. Say whether to tell of it, and what the minute before left to be told."""
        with self._held() as table:
            over = self._over(table, minute)
            place = self._slot(table, hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).digest(), label)
            digest, count, size, text = _SLOT.unpack_from(table, place)
            _SLOT.pack_into(table, place, digest, min(count + 1, 2**32 - 1), size, text)
            return place != self._place(_ANY) and count < self._limit, over

    def settle(self, minute: int, *, all_of_it: bool = False) -> list[Count]:
        """Give what is left to be told of minutes that are over; with ``all_of_it`` also of the one under way."""
        with self._held() as table:
            return self._over(table, minute) + (self._left(table) if all_of_it else [])

    def _over(self, table: mmap.mmap, minute: int) -> list[Count]:
        (kept,) = _HEAD.unpack_from(table)
        if kept == minute:
            return []
        left = self._left(table)
        table[:] = _HEAD.pack(minute) + b"\x00" * (_SIZE - _HEAD.size)
        return left

    def _left(self, table: mmap.mmap) -> list[Count]:
        left = []
        for slot in range(_SLOTS):
            digest, count, size, text = _SLOT.unpack_from(table, self._place(slot))
            limit = 0 if slot == _ANY else self._limit
            if count > limit:
                left.append(Count(text[:size].decode("utf-8", "ignore"), count - limit))
                _SLOT.pack_into(table, self._place(slot), digest, limit, size, text)
        return left

    def _slot(self, table: mmap.mmap, digest: bytes, label: str) -> int:
        first = int.from_bytes(digest[:4], "little")
        for number in range(first, first + _TRIES):
            place = self._place(1 + number % (_SLOTS - 1))
            held = _SLOT.unpack_from(table, place)
            if held[1] == 0:
                text = label.encode("utf-8", "replace")[:178]
                _SLOT.pack_into(table, place, digest, 0, len(text), text)
                return place
            if held[0] == digest:
                return place
        return self._place(_ANY)

    @staticmethod
    def _place(slot: int) -> int:
        return _HEAD.size + slot * _SLOT.size

    @contextmanager
    def _held(self) -> Iterator[mmap.mmap]:
        table = self._table or self._open()
        if self._file is None:
            yield table
            return
        # The lock goes with the process: whoever is killed while holding it leaves nobody waiting.
        locks.take(self._file)
        try:
            yield table
        finally:
            locks.release(self._file)

    def _open(self) -> mmap.mmap:
        try:
            if self._path is not None:
                self._file = locks.open_file(self._path)
                # With its room taken beforehand, a full disk cannot break a write into it.
                os.posix_fallocate(self._file, 0, _SIZE)
                self._table = mmap.mmap(self._file, _SIZE)
        except OSError:
            if self._file is not None:
                os.close(self._file)
            self._file = None
        if self._table is None:
            self._table = mmap.mmap(-1, _SIZE)
        return self._table
