"""Several contents as one zip file. It is made while it is sent, never whole in memory or on disk.

Source: PKWARE's APPNOTE 6.3.10 (4.3.9: sizes and checksums follow the bytes; 4.5.3: zip64).
"""

import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from unicodedata import normalize

from muniment.ground.clock import SECOND, Instant
from muniment.repository.store.content.contract import PIECE

_LEVEL = 1
_LONGEST_NAME = 200
_FORBIDDEN = frozenset('/\\:*?"<>|')
_DEVICES = frozenset(
    (*("con", "prn", "aux", "nul"), *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10)))
)
"""Some systems take these for devices, whatever the ending."""


class Archive:
    """Makes a zip file of what ``add`` yields and ``end`` returns."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._file = _ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._names: set[str] = set()

    def add(self, name: str, size: int, modified: Instant, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Raises what ``pieces`` raises. The entry's name is made safe and unique."""
        entry = zipfile.ZipInfo(self._unique(name), _date(modified))
        entry.compress_type, entry.file_size, entry.external_attr = zipfile.ZIP_DEFLATED, size, 0o600 << 16
        with self._file.open(entry, "w") as target:
            for piece in pieces:
                target.write(piece)
                if self._sink.size >= PIECE:
                    yield self._sink.take()
        if self._sink.size:
            yield self._sink.take()

    def end(self) -> bytes:
        self._file.close()
        return self._sink.take()

    def _unique(self, name: str) -> str:
        safe = safe_name(name)
        stem, ending = os.path.splitext(safe)
        number = 1
        while _fold(safe) in self._names:
            number += 1
            safe = f"{stem} ({number}){ending}"
        self._names.add(_fold(safe))
        return safe


def safe_name(name: str) -> str:
    printable = "".join(
        "_" if character in _FORBIDDEN or not character.isprintable() else character for character in name
    )
    stem, ending = os.path.splitext(printable.strip(" ."))
    ending = ending[:20]
    while len((stem + ending).encode("utf-8", "replace")) > _LONGEST_NAME:
        stem = stem[:-1]
    if not stem or stem.partition(".")[0].rstrip().lower() in _DEVICES:
        stem = f"_{stem}"
    return (stem + ending).encode("utf-8", "replace").decode("utf-8")


def _fold(name: str) -> str:
    return normalize("NFC", name.casefold())


def _date(instant: Instant) -> tuple[int, int, int, int, int, int]:
    moment = datetime.fromtimestamp(instant / SECOND, UTC)
    if not 1980 <= moment.year <= 2107:
        return 1980, 1, 1, 0, 0, 0
    return moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second


class _ZipFile(zipfile.ZipFile):
    def __del__(self) -> None:
        """Do nothing: the library would close the file, which fails while an entry is being written."""


class _Sink(io.RawIOBase):
    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        piece = bytes(data)
        self._pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return taken
