"""Write and read a backup's manifest.

It is written last: a folder without one is no backup.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from muniment.database.connections import Half
from muniment.ground import disk
from muniment.ground.clock import Instant
from muniment.installation.backups.refusals import BackupRefused

NAME = "manifest.json"
FORMAT = 2
"""Since format 2 a backup may hold packs of content."""


class FileDigest(msgspec.Struct, frozen=True):
    """A file's size in bytes and SHA-256 digest, in hexadecimal."""

    size: int
    sha256: str


class DatabaseCopy(msgspec.Struct, frozen=True):
    """A half's copy: its file, the original's dialect, and its schema revision."""

    file: str
    dialect: str
    revision: str


class Manifest(msgspec.Struct, frozen=True):
    """``files`` names every file except the manifest and content, whose digests are in the repository's database.

    ``damaged`` are the ids of objects whose content was missing or altered before, ``settings`` the keys in the
    settings file, ``external`` the settings that name files outside of the backup.
    """

    format: int
    release: str
    taken_at: Instant = msgspec.field(name="made")
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
    """Add the manifest's own digest, and wait until it is on the disk."""
    document = msgspec.json.encode(manifest)
    sealed_manifest = _Sealed(msgspec.Raw(document), hashlib.sha256(document).hexdigest())
    disk.replace(folder / NAME, msgspec.json.encode(sealed_manifest))


def read(folder: Path) -> Manifest:
    """Raises BackupRefused when it is missing, damaged or of a newer release."""
    try:
        sealed_manifest = msgspec.json.decode((folder / NAME).read_bytes(), type=_Sealed)
    except (FileNotFoundError, NotADirectoryError):
        raise BackupRefused(f"{folder} holds no whole backup: there is no {NAME} in it.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _refusal_of(folder) from None
    document = bytes(sealed_manifest.manifest)
    if hashlib.sha256(document).hexdigest() != sealed_manifest.sha256:
        raise _refusal_of(folder)
    number = msgspec.json.decode(document, type=_Format).format
    if number > FORMAT:
        raise BackupRefused(f"The backup is of format {number}, made by a newer release: restore it with that release.")
    try:
        return msgspec.json.decode(document, type=Manifest)
    except msgspec.DecodeError:
        raise _refusal_of(folder) from None


def describe(names: Mapping[str, Path]) -> dict[str, FileDigest]:
    return {name: _describe_file(file) for name, file in sorted(names.items())}


def check_files(folder: Path, manifest: Manifest) -> None:
    """Content is not checked. Raises BackupRefused."""
    for name, expected in manifest.files.items():
        file = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute() or not file.is_file():
            raise BackupRefused(f"The backup is damaged: {name} is missing.")
        if _describe_file(file) != expected:
            raise BackupRefused(f"The backup is damaged: {name} differs from its digest.")


class _Format(msgspec.Struct):
    format: int


def _describe_file(file: Path) -> FileDigest:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return FileDigest(stream.tell(), digest)


def _refusal_of(folder: Path) -> BackupRefused:
    return BackupRefused(f"The manifest {folder / NAME} is damaged: nobody can tell what this backup should hold.")
