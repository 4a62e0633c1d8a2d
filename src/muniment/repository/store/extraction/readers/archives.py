"""Which files does an archive hold?"""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import IO, BinaryIO

from muniment.repository.store.extraction.findings import Extracted, Unreadable
from muniment.repository.store.extraction.readers.inner_files import Entry, InnerFiles

_MOST_ENTRIES = 20_000
_DAMAGED = "The archive is truncated or damaged."


def zip_text(file: BinaryIO, inner: InnerFiles) -> Extracted:
    """Raises Unreadable if it is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = (
                (entry.filename, partial(_open_in_zip, archive, entry))
                for entry in archive.infolist()
                if not entry.is_dir()
            )
            return Extracted(inner.texts_of(entries), "")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise Unreadable(_DAMAGED) from error


def tar_text(file: BinaryIO, inner: InnerFiles) -> Extracted:
    """Note a missing or damaged end.

    Raises Unreadable if it is damaged.
    """
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            damages: list[str] = []
            text = inner.texts_of(_entries_of_tar(archive, damages))
            return Extracted(text, " ".join(damages))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise Unreadable(_DAMAGED) from error


def _open_in_zip(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    return archive.open(entry)


def _entries_of_tar(archive: tarfile.TarFile, damages: list[str]) -> Iterator[Entry]:
    for _ in range(_MOST_ENTRIES):
        try:
            entry = archive.next()
        except (tarfile.TarError, EOFError, OSError, ValueError):
            damages.append(f"{_DAMAGED} The text is what could be read of it.")
            return
        if entry is None:
            return
        if entry.isreg():
            yield entry.name, partial(_open_in_tar, archive, entry)
    damages.append(f"The archive has more than {_MOST_ENTRIES} entries; the others were not read.")


def _open_in_tar(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> AbstractContextManager[IO[bytes]]:
    stream = archive.extractfile(entry)
    if stream is None:  # it is a link, and those are left out before
        raise ValueError(entry.name)
    return stream
