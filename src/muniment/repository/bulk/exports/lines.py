"""How are JSON Lines written, and read line by line, within limits, from any place in a file?"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import msgspec

from muniment.ground import disk
from muniment.ground.naming import is_storable
from muniment.repository.bulk.exports.records import FILES, ExportLine
from muniment.repository.refusals import BadExport

LONGEST_LINE = 128 << 20
"""A line has so many bytes, with its line break."""

PORTION, PORTION_BYTES = 500, 4 << 20

_decoders = {name: msgspec.json.Decoder(kind) for name, kind in FILES.items()}
_encoder = msgspec.json.Encoder()


class LinePlace(NamedTuple):
    """So many lines and bytes come before it."""

    line: int = 0
    offset: int = 0


class FileSummary(msgspec.Struct, frozen=True):
    """What a manifest says of a file; its size is in bytes."""

    lines: int
    bytes: int
    sha256: str


class LineWriter:
    """Writes a file under a temporary name, and renames it when all lines are on the disk."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._part = file.with_name(f"{file.name}.part")
        self._digest = hashlib.sha256()
        self._lines = self._bytes = 0

    def __enter__(self) -> Self:
        self._part.unlink(missing_ok=True)  # of an export that was killed
        self._target = disk.create(self._part, buffering=1 << 20)
        return self

    def __exit__(self, *_error: object) -> None:
        self._target.close()

    def write(self, line: ExportLine) -> None:
        """Raises BadExport if it is too long to be read again."""
        text = _encoder.encode(line)
        if len(text) >= LONGEST_LINE:
            raise BadExport(f"A line of {self._file.name} would have more than {LONGEST_LINE} bytes: {text[:80]!r}.")
        self.write_text(text + b"\n")

    def write_text(self, text: bytes) -> None:
        self._target.write(text)
        self._digest.update(text)
        self._lines += 1
        self._bytes += len(text)

    def finish(self) -> FileSummary:
        """Sync, rename, and return the summary."""
        self._target.flush()
        os.fsync(self._target.fileno())
        self._part.replace(self._file)
        return FileSummary(self._lines, self._bytes, self._digest.hexdigest())


def portions(file: Path, place: LinePlace) -> Iterator[tuple[list[ExportLine], LinePlace]]:
    """Yield lines after a place, some at a time, with the place that follows. Raises BadExport for a line that is
    damaged or too long.
    """
    with open_regular(file) as source:
        source.seek(place.offset)
        number, offset = place
        some, size = list[ExportLine](), 0
        for text in _raw(file.name, source, number):
            number, offset = number + 1, offset + len(text)
            some.append(read(file.name, number, text))
            size += len(text)
            if len(some) >= PORTION or size >= PORTION_BYTES:
                yield some, LinePlace(number, offset)
                some, size = [], 0
        if some:
            yield some, LinePlace(number, offset)


def numbered(file: Path, summary: FileSummary) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with numbers, then compare the file with its summary.

    Raises BadExport if the file differs, and for a line that is cut off or too long.
    """
    digest, count, size = hashlib.sha256(), 0, 0
    with open_regular(file) as source:
        for text in _raw(file.name, source, 0):
            count, size = count + 1, size + len(text)
            digest.update(text)
            yield count, text
    if FileSummary(count, size, digest.hexdigest()) != summary:
        raise BadExport(f"{file.name} is not the file that the manifest describes: its digest or its length differs.")


def read(name: str, number: int, text: bytes) -> ExportLine:
    """Raises BadExport."""
    try:
        line = _decoders[name].decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_line(name, number, str(error)[:300]) from error
    if b"\\u0000" in text and not _is_storable(msgspec.to_builtins(line)):
        raise bad_line(name, number, "it holds a character that no database can store")
    return line


def bad_line(name: str, number: int, reason: str) -> BadExport:
    return BadExport(f"{name}, line {number}: {reason.rstrip('.')}.")


def open_regular(file: Path) -> BinaryIO:
    """Raises BadExport if it cannot be opened, or is no regular file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BadExport(f"{file}: {(error.strerror or 'it cannot be read').lower()}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadExport(f"{file} is not a regular file.")
    return os.fdopen(descriptor, "rb", buffering=1 << 20)


def _is_storable(value: object) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, dict):
        return all(map(_is_storable, (*value, *value.values())))
    return not isinstance(value, list) or all(map(_is_storable, value))


def _raw(name: str, source: BinaryIO, number: int) -> Iterator[bytes]:
    while text := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(text) > LONGEST_LINE:
            raise bad_line(name, number, f"it is longer than {LONGEST_LINE} bytes")
        if not text.endswith(b"\n"):
            raise bad_line(name, number, "it ends too early")
        yield text
