"""Make a whole backup or none, also while a server uses the installation (decision 0027).

It is written beside the target, and gets its name when all of it is on the disk.
"""

import ctypes
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from muniment.database import schema
from muniment.database.connections import Database, Half
from muniment.directory import version_stamps
from muniment.ground import disk, locks
from muniment.ground.clock import Instant
from muniment.installation import backends, settings
from muniment.installation.backups import dumps, manifest
from muniment.installation.backups.manifest import DatabaseCopy, Manifest
from muniment.installation.backups.refusals import BackupRefused
from muniment.installation.layout import Installation
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects.contents import content_references, stored_contents

SETTINGS, TLS, CONTENT = "muniment.toml", "tls", "content"
"""Parts of a backup, beside a manifest and a file for each database."""

Progress = Callable[[int, int], None]
"""Gets how many contents are done, of how many."""

_FILE_PARAMETERS = frozenset(
    {"sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile", "service", "servicefile"}
)
"""The parameters of a PostgreSQL address that name files."""

_LOCK = ".lock"
_SPARE_BYTES = 64 << 20


class BackupSource(NamedTuple):
    """The original of a backup."""

    installation: Installation
    databases: Mapping[Half, Database]
    settings_file: Path


def make(
    source: BackupSource, target: Path, release: str, clock: Callable[[], Instant], progress: Progress
) -> Manifest:
    """Raises BackupRefused, OSError, Busy. The backup has every undamaged content that the copied database names;
    ``damaged`` in the manifest lists the objects of the others.
    """
    target = target.resolve()
    if target.is_mount():  # no other folder can get its name
        raise BackupRefused(f"{target} is a whole disk: name a folder on it that does not exist.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} exists already: name a folder that does not exist, or an empty folder.")
    for database in source.databases.values():
        dumps.check_programs(database)
    with _work_folder(target) as folder:
        result = _copy(source, folder, release, clock, progress)
        bring_to_disk(folder)
        manifest.write(folder, result)
        os.rename(folder, target)
        disk.sync(target.parent)
    return result


def _copy(
    source: BackupSource, folder: Path, release: str, clock: Callable[[], Instant], progress: Progress
) -> Manifest:
    installation, damaged_ids = source.installation, list[str]()
    count = size = 0
    with ExitStack() as stack:
        if "repository" in source.databases:
            # From here on, no content is removed that a database may name (decision 0027).
            stack.enter_context(backends.content(installation).keeping())
        snapshots, taken_at = _freeze(source.databases, stack, clock)
        if "repository" in snapshots:
            count, size = stored_contents.amount(snapshots["repository"].connection)
        _check_room(folder, size + sum(snapshot.bytes for snapshot in snapshots.values()) + count * 4096)
        copies = _databases(source.databases, snapshots, folder)
        if "repository" in snapshots:
            (folder / CONTENT).mkdir(mode=0o700)
            snapshot = snapshots["repository"].connection
            store, copy = backends.content(installation), FileStore(folder / CONTENT, copies=True)
            for number, content in enumerate(stored_contents.all_stored_contents(snapshot), 1):
                if not copy.adopt(content, store.read(content)):
                    damaged_ids += content_references.object_ids(snapshot, content.key)
                progress(number, count)
    keys = _settings(source.settings_file, folder)
    _tls(installation.tls, folder)
    names = [copy.file for copy in copies.values()] + [
        str(file.relative_to(folder)) for file in (folder / SETTINGS, *(folder / TLS).glob("*")) if file.is_file()
    ]
    return Manifest(
        format=manifest.FORMAT,
        release=release,
        taken_at=taken_at,
        databases=copies,
        files=manifest.describe({name: folder / name for name in names}),
        contents=count,
        content_bytes=size,
        damaged=tuple(damaged_ids),
        settings=keys,
        external=_external(installation.settings),
    )


def _freeze(
    databases: Mapping[Half, Database], stack: ExitStack, clock: Callable[[], Instant]
) -> tuple[dict[Half, dumps.DatabaseSnapshot], Instant]:
    """``stack`` closes the snapshots. Of two databases, nobody can change a right until both are open."""
    with ExitStack() as rights_lock:
        if len(databases) > 1:
            version_stamps.lock_rights(rights_lock.enter_context(databases["directory"].begin()))
        snapshots = {half: stack.enter_context(dumps.freeze(database)) for half, database in sorted(databases.items())}
        return snapshots, clock()


def _databases(
    databases: Mapping[Half, Database], snapshots: Mapping[Half, dumps.DatabaseSnapshot], folder: Path
) -> dict[Half, DatabaseCopy]:
    copies: dict[Half, DatabaseCopy] = {}
    files: dict[object, str] = {}
    for half, database in databases.items():
        # Both halves may use one PostgreSQL database, which is copied once.
        address = database.engine.url.render_as_string(hide_password=True)
        if address not in files:
            files[address] = f"{half}.{dumps.suffix(database)}"
            snapshots[half].copy(folder / files[address])
        revision = schema.revision(snapshots[half].connection, half)
        copies[half] = DatabaseCopy(files[address], database.dialect, revision or "")
    return copies


def _settings(file: Path, folder: Path) -> tuple[str, ...]:
    if not file.is_file():
        return ()
    content = file.read_bytes()
    with disk.create(folder / SETTINGS) as copy:
        copy.write(content)
    return tuple(sorted(_names(tomllib.loads(content.decode()))))


def _external(values: settings.Settings) -> tuple[str, ...]:
    return tuple(
        setting.key for setting in settings.table() if _names_file(setting.key, attrgetter(setting.key)(values))
    )


def _names_file(key: str, value: object) -> bool:
    if key.endswith("_database") and value:
        return not _FILE_PARAMETERS.isdisjoint(sa.make_url(str(value)).query)
    return key.endswith("_file") and bool(value)


def _names(table: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _tls(source: Path, folder: Path) -> None:
    if source.is_dir():
        (folder / TLS).mkdir(mode=0o700)
        for file in sorted(source.iterdir()):
            if file.is_file():
                with disk.create(folder / TLS / file.name) as copy:
                    copy.write(file.read_bytes())


def _check_room(folder: Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < bytes_needed + _SPARE_BYTES:
        raise BackupRefused(
            f"The backup takes about {(bytes_needed + _SPARE_BYTES) >> 20:,} MiB, and the disk of {folder.parent} has "
            f"{free >> 20:,} MiB left: make room there, or name a folder on another disk."
        )


@contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    """Make the folder to write into, without what a killed backup has left there.

    The block must rename it to ``target``, unless it raises. Raises BackupRefused while another process makes a backup
    there.
    """
    folder = target.parent / f".{target.name}.unfinished"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock_folder(lock, folder, target)
        for entry in folder.iterdir():
            if entry.name != _LOCK:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        try:
            yield folder
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.filename is None:  # the error of a failed write names no file
                error.filename = str(folder)
            raise
        (target / _LOCK).unlink()
    finally:
        os.close(lock)


def _lock_folder(lock: int, folder: Path, target: Path) -> None:
    try:
        locks.take(lock, wait=False)
        # Another backup may have renamed the folder before this process got the lock.
        if os.fstat(lock).st_ino == os.stat(folder / _LOCK).st_ino:
            return
    except (locks.Held, FileNotFoundError):
        pass
    raise BackupRefused(f"Another process is making a backup to {target}: wait for it, or name another folder.")


def bring_to_disk(folder: Path) -> None:
    """The folder's whole file system (syncfs). Raises OSError when the disk fails."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if library.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)
