"""How many bytes does a packed file really hold?"""

import bz2
import gzip
import io
import lzma
import re
import zipfile
import zlib
from typing import Any, BinaryIO, Literal

from muniment.repository.store.extraction.findings import Limits, Unreadable

_MOST_PARTS = 20_000
_PIECE = 1 << 16
_ALGORITHM = re.compile(rb"EncryptionMethod[^>]*Algorithm=[\"']([^\"']+)")
_FONT_MASKS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")


_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}


class _KeyNeeded(Exception):
    """An archive opens only with a password or another key."""


class _Budget:
    def __init__(self, limits: Limits) -> None:
        self._bytes_left = limits.loaded_bytes
        self._sentence = f"The file unpacks to more than {self._bytes_left} bytes; it was not read."

    def spend(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise Unreadable(self._sentence)


def check_parts(file: BinaryIO, limits: Limits) -> None:
    """Unpack every part, and those of archives in it, to check the limits.

    Raises Unreadable if the file is encrypted or damaged, has too many parts or bytes, or is packed too deep or in an
    unknown way.
    """
    try:
        _check(file, _Budget(limits), limits.depth)
    except _KeyNeeded as error:
        raise Unreadable(str(error)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Unreadable("The file is truncated or damaged: its parts cannot be unpacked.") from error
    except (NotImplementedError, RuntimeError) as error:
        raise Unreadable("The file is packed in a way that is not read.") from error


def inflate(file: BinaryIO, format_: Literal["gzip", "bzip2", "xz"], limits: Limits) -> bytes:
    """Raises Unreadable for damage, truncation, or too many bytes."""
    budget = _Budget(limits)
    file.seek(0)
    out = io.BytesIO()
    try:
        with _OPENERS[format_](file) as stream:
            while piece := stream.read(_PIECE):
                budget.spend(len(piece))
                out.write(piece)
    except (zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise Unreadable("The file is truncated or damaged: it cannot be unpacked.") from error
    return out.getvalue()


def _check(file: BinaryIO, budget: _Budget, depth: int) -> None:
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS:
            raise Unreadable(f"The file has more than {_MOST_PARTS} parts; it was not read.")
        for part in parts:
            if part.flag_bits & 1:
                raise _KeyNeeded("The file is encrypted.")
            _check_part(archive, part, budget, depth)


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo, budget: _Budget, depth: int) -> None:
    with archive.open(part) as stream:
        piece = stream.read(_PIECE)
        budget.spend(len(piece))
        nested = piece.startswith((b"PK\x03\x04", b"\x1f\x8b"))
        copy = io.BytesIO(piece)
        copy.seek(len(piece))
        keep = nested or part.filename in {"META-INF/manifest.xml", "META-INF/encryption.xml"}
        while piece := stream.read(_PIECE):
            budget.spend(len(piece))
            if keep:
                copy.write(piece)
    if part.filename == "META-INF/manifest.xml" and b"encryption-data" in copy.getvalue():
        raise _KeyNeeded("The file is encrypted: it opens with a password only.")
    if part.filename == "META-INF/encryption.xml" and set(_ALGORITHM.findall(copy.getvalue())) - set(_FONT_MASKS):
        raise _KeyNeeded("The book is locked by rights management.")
    if nested:
        _check_nested(copy, budget, depth - 1)


def _check_nested(file: io.BytesIO, budget: _Budget, depth: int) -> None:
    if depth < 1:
        raise Unreadable("The file holds archives within archives deeper than is read.")
    file.seek(0)
    try:
        if file.getvalue().startswith(b"PK"):
            _check(file, budget, depth)
        else:
            with gzip.GzipFile(fileobj=file) as stream:
                while piece := stream.read(_PIECE):
                    budget.spend(len(piece))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, _KeyNeeded):
        return  # no reader unpacks an inner archive that is damaged, locked or packed in an unknown way
