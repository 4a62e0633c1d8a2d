"""What a backup says of itself: written last, so that a folder without it is no backup."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from muniment import disk
from muniment.backups.refusals import BackupRefused
from muniment.clock import Instant
from muniment.db import Half

NAME = "manifest.json"
FORMAT = 1

_PIECE = 1 << 20


class FileDigest(msgspec.Struct, frozen=True):
    """One file of the backup: its size in bytes and its SHA-256 digest, in hexadecimal."""

    size: int
    sha256: str


class DatabaseCopy(msgspec.Struct, frozen=True):
    """A half's database: the file that holds it, what it was copied from, and its schema's revision."""

    file: str
    dialect: str
    revision: str


class Manifest(msgspec.Struct, frozen=True):
    """A whole backup. ``made`` is the moment of both databases.

    ``files`` names every file but content, whose digests are in the repository's database: ``contents`` of them, with
    ``content_bytes``. ``damaged`` names the objects whose content was missing or altered already. ``settings`` names
    the settings in the settings file, ``external`` those whose files are not in the backup.
    """

    format: int
    release: str
    made: Instant
    databases: dict[Half, DatabaseCopy]
    files: dict[str, FileDigest]
    contents: int
    content_bytes: int
    damaged: tuple[str, ...]
    settings: tuple[str, ...]
    external: tuple[str, ...]


class _Sealed(msgspec.Struct):
    manifest: msgspec.Raw
    sha256: str


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the digest of itself, and bring it and its folder to the disk."""
    document = msgspec.json.encode(manifest)
    sealed = _Sealed(msgspec.Raw(document), hashlib.sha256(document).hexdigest())
    disk.replace(folder / NAME, msgspec.json.encode(sealed))


def read(folder: Path) -> Manifest:
    """Read a backup's manifest. Raises BackupRefused when there is none, or it is damaged or of a newer release."""
    try:
        sealed = msgspec.json.decode((folder / NAME).read_bytes(), type=_Sealed)
    except (FileNotFoundError, NotADirectoryError):
        raise BackupRefused(f"{folder} holds no whole backup: there is no {NAME} in it.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _damaged(folder) from None
    document = bytes(sealed.manifest)
    if hashlib.sha256(document).hexdigest() != sealed.sha256:
        raise _damaged(folder)
    number = msgspec.json.decode(document, type=_Format).format
    if number != FORMAT:
        raise BackupRefused(f"The backup is of format {number}, made by a newer release: restore it with that one.")
    try:
        return msgspec.json.decode(document, type=Manifest)
    except msgspec.DecodeError:
        raise _damaged(folder) from None


def describe(names: Mapping[str, Path]) -> dict[str, FileDigest]:
    """Describe files of a backup, by their names in it."""
    return {name: _described(file) for name, file in sorted(names.items())}


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise BackupRefused unless every file that the manifest names is there as it says. Content is not looked at."""
    for name, expected in manifest.files.items():
        file = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute() or not file.is_file():
            raise BackupRefused(f"The backup is damaged: {name} is missing.")
        if _described(file) != expected:
            raise BackupRefused(f"The backup is damaged: {name} is not what was copied.")


class _Format(msgspec.Struct):
    format: int


def _described(file: Path) -> FileDigest:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return FileDigest(size, digest.hexdigest())


def _damaged(folder: Path) -> BackupRefused:
    return BackupRefused(f"The manifest {folder / NAME} is damaged: nothing says what this backup should hold.")
