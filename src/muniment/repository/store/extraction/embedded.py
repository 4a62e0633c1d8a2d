"""Which file does an OLE object hold? Office puts files of other programs into compound files (MS-CFB): of any kind in
a package (MS-OLEDS 2.3.6, as the Packager of Windows fills it), of a program that knows OLE in a stream of a name of
its own, or as the compound file itself.
"""

from io import BytesIO
from typing import NamedTuple

import olefile

from muniment.repository.store.extraction.findings import Unreadable

_PACKAGE = "\x01Ole10Native"
_HOLDERS = ("Package", "package_stream", "CONTENTS")
"""Office, LibreOffice and Acrobat put a whole file into these streams."""

_WHOLE_FILES = (b"PK\x03\x04", b"%PDF-")
_PROGRAMS = ("WordDocument", "Workbook", "Book", "PowerPoint Document", "VisioDocument", "EncryptedPackage")
"""Their streams mark a compound file that is itself a program's file."""

_EMBEDDED = 0x30000
_DAMAGED = "It is damaged: its compound file cannot be read."


class InnerFile(NamedTuple):
    """The name is empty unless the object says it."""

    name: str
    content: bytes


def file_within(content: bytes) -> InnerFile | None:
    """Return None for anything else, such as a formula.

    Raises Unreadable.
    """
    if not content.startswith(olefile.MAGIC):
        return InnerFile("", content)
    _check_tables(content)
    try:
        with olefile.OleFileIO(BytesIO(content)) as compound:
            if compound.exists(_PACKAGE):
                return _packaged(_stream(compound, _PACKAGE, len(content)))
            for name in filter(compound.exists, _HOLDERS):
                whole = _stream(compound, name, len(content))
                if whole.startswith(_WHOLE_FILES):
                    return InnerFile("", whole)
            return InnerFile("", content) if any(map(compound.exists, _PROGRAMS)) else None
    except MemoryError:
        raise
    except Exception as error:  # the library raises many for damaged bytes
        raise Unreadable(_DAMAGED) from error


def _check_tables(content: bytes) -> None:
    sector = 1 << min(16, _number(content, 30, 2))
    of_tables, of_small = _number(content, 44, 4), _number(content, 64, 4)
    if sector * of_tables > 8 * (len(content) // sector) + 2 * sector or sector * of_small > len(content):
        raise Unreadable(_DAMAGED)


def _stream(compound: olefile.OleFileIO, name: str, most: int) -> bytes:
    # Small streams lie in that of the root.
    if max(compound.get_size(name), compound.root.size) > most:
        raise Unreadable(_DAMAGED)
    content: bytes = compound.openstream(name).read()
    return content


def _packaged(data: bytes) -> InnerFile | None:
    """A label, a path, a temporary path and the file, then perhaps the three texts in UTF-16."""
    label, _, rest = data[6:].partition(b"\0")
    _path, _, rest = rest.partition(b"\0")
    if _number(data, 4, 2) != 2 or _number(rest, 0, 4) != _EMBEDDED:
        return None
    rest = rest[8 + _number(rest, 4, 4) :]
    size = _number(rest, 0, 4)
    rest, file = rest[4 + size :], rest[4 : 4 + size]
    rest = rest[4 + 2 * _number(rest, 0, 4) :]
    wide = rest[4 : 4 + 2 * _number(rest, 0, 4)]
    return InnerFile(wide.decode("utf-16-le", "replace") or label.decode("cp1252", "replace"), file) if file else None


def _number(data: bytes, place: int, size: int) -> int:
    return int.from_bytes(data[place : place + size], "little")
