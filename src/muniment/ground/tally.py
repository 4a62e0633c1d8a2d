"""Count refusals by minute, for the processes of one server together, in a file of fixed size.

The file outlives them, so the next start reports what a stop left.
"""

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from muniment.ground import locks

_SLOTS = 256
_TRIES = 8
_LIMIT = 10
_HEAD = struct.Struct("<q")
_SLOT = struct.Struct("<16sIH178s")
_SIZE = _HEAD.size + _SLOTS * _SLOT.size
_SHARED = 0
"""The slot for all keys that found no slot of their own."""


class Count(NamedTuple):
    """A minute's refusals that were not reported one by one; without a key for the slot that many share."""

    label: str
    number: int


class Tally:
    """Of each key's refusals the first ten are reported one by one, the rest as a sum.

    Without a usable ``path`` this process counts alone.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        self._table: mmap.mmap | None = None
        self._path = path

    def count(self, key: str, label: str, minute: int) -> tuple[bool, list[Count]]:
        """Return whether to report it by itself, and an earlier minute's sums."""
        with self._locked_table() as table:
            sums = self._sums_of_past(table, minute)
            offset = self._slot_of(
                table, hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).digest(), label
            )
            digest, count, size, text = _SLOT.unpack_from(table, offset)
            _SLOT.pack_into(table, offset, digest, min(count + 1, 2**32 - 1), size, text)
            return offset != self._offset(_SHARED) and count < _LIMIT, sums

    def settle(self, minute: int, *, include_present: bool = False) -> list[Count]:
        """Give the unreported sums of past minutes, and of the present one with ``include_present``."""
        with self._locked_table() as table:
            return self._sums_of_past(table, minute) + (self._take_sums(table) if include_present else [])

    def _sums_of_past(self, table: mmap.mmap, minute: int) -> list[Count]:
        (table_minute,) = _HEAD.unpack_from(table)
        if table_minute == minute:
            return []
        sums = self._take_sums(table)
        table[:] = _HEAD.pack(minute) + b"\x00" * (_SIZE - _HEAD.size)
        return sums

    def _take_sums(self, table: mmap.mmap) -> list[Count]:
        sums = []
        for slot in range(_SLOTS):
            digest, count, size, text = _SLOT.unpack_from(table, self._offset(slot))
            limit = 0 if slot == _SHARED else _LIMIT
            if count > limit:
                sums.append(Count(text[:size].decode("utf-8", "ignore"), count - limit))
                _SLOT.pack_into(table, self._offset(slot), digest, limit, size, text)
        return sums

    def _slot_of(self, table: mmap.mmap, digest: bytes, label: str) -> int:
        start = int.from_bytes(digest[:4], "little")
        for number in range(start, start + _TRIES):
            offset = self._offset(1 + number % (_SLOTS - 1))
            slot = _SLOT.unpack_from(table, offset)
            if slot[1] == 0:
                text = label.encode("utf-8", "replace")[:178]
                _SLOT.pack_into(table, offset, digest, 0, len(text), text)
                return offset
            if slot[0] == digest:
                return offset
        return self._offset(_SHARED)

    @staticmethod
    def _offset(slot: int) -> int:
        return _HEAD.size + slot * _SLOT.size

    @contextmanager
    def _locked_table(self) -> Iterator[mmap.mmap]:
        table = self._table or self._open_table()
        if self._file is None:
            yield table
            return
        # The lock ends with its process. So nobody waits for a process that was killed.
        locks.take(self._file)
        try:
            yield table
        finally:
            locks.release(self._file)

    def _open_table(self) -> mmap.mmap:
        try:
            if self._path is not None:
                self._file = locks.open_file(self._path)
                # This reserves the space on the disk, so that a full disk cannot break a later write.
                os.posix_fallocate(self._file, 0, _SIZE)
                self._table = mmap.mmap(self._file, _SIZE)
        except OSError:
            if self._file is not None:
                os.close(self._file)
            self._file = None
        if self._table is None:
            self._table = mmap.mmap(-1, _SIZE)
        return self._table
