"""Make a backup of an installation that is being served, whole or not at all (decision "A backup is whole").

Everything is written into a folder beside the one that was named, which gets its name when all of it is on the disk.
"""

import ctypes
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment import app, disk, locks, schema
from muniment.backups import dumps, manifest
from muniment.backups.dumps import DatabaseSnapshot
from muniment.backups.manifest import DatabaseCopy, Manifest
from muniment.backups.refusals import BackupRefused
from muniment.clock import Instant
from muniment.db import Database, Half
from muniment.directory.oauth import access
from muniment.installation import Installation
from muniment.repository import repositories
from muniment.repository.content.contract import ContentStore
from muniment.repository.content.files import FileStore
from muniment.repository.objects import objects
from muniment.repository.objects.objects import StoredObject

SETTINGS, TLS, CONTENT = "muniment.toml", "tls", "content"
"""What the parts of a backup are called, beside its manifest and one file for each database."""

Progress = Callable[[int, int], None]
"""Hears how many contents are done, and how many there are."""

_AT_A_TIME = 500
_LOCK = ".lock"
_SPARE = 64 << 20


class BackupSource(NamedTuple):
    """What is copied: an installation, its open databases, and the file that its settings were read from."""

    installation: Installation
    databases: Mapping[Half, Database]
    settings_file: Path


def make(
    source: BackupSource, target: Path, release: str, clock: Callable[[], Instant], progress: Progress
) -> Manifest:
    """Copy an installation into a new folder, and say what is in it. Raises BackupRefused, OSError, Busy.

    Every content that the copied database names is in the backup as it was kept, or named as damaged.
    """
    target = target.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} is there already: name a folder that does not exist, or an empty one.")
    for database in source.databases.values():
        dumps.check_programs(database)
    with _unfinished(target) as folder:
        written = _copy(source, folder, release, clock, progress)
        bring_to_disk(folder)
        manifest.write(folder, written)
        os.rename(folder, target)
        disk.sync(target.parent)
    return written


def _copy(
    source: BackupSource, folder: Path, release: str, clock: Callable[[], Instant], progress: Progress
) -> Manifest:
    installation, damaged, external = source.installation, list[str](), list[str]()
    count = size = 0
    with ExitStack() as held:
        if "repository" in source.databases:
            # From here on nothing is removed that a database may name: see the decision.
            held.enter_context(app.content(installation).keeping())
        frozen, made = _freeze(source.databases, held, clock)
        if "repository" in frozen:
            count, size = objects.contents(frozen["repository"].connection)
        _check_room(folder, size + sum(each.bytes for each in frozen.values()) + count * 4096)
        copies = _databases(source.databases, frozen, folder)
        if "repository" in frozen:
            (folder / CONTENT).mkdir(mode=0o700)
            for done, (stored, good) in enumerate(
                _contents(
                    frozen["repository"].connection, app.content(installation), FileStore(folder / CONTENT, copies=True)
                ),
                1,
            ):
                damaged += [] if good else [stored.id]
                progress(done, count)
    settings = _settings(source.settings_file, folder)
    _tls(installation.tls, folder)
    if installation.settings.web.certificate_file:
        external += ["web.certificate_file", "web.key_file"]
    names = [copy.file for copy in copies.values()] + [
        str(file.relative_to(folder)) for file in (folder / SETTINGS, *(folder / TLS).glob("*")) if file.is_file()
    ]
    return Manifest(
        format=manifest.FORMAT,
        release=release,
        made=made,
        databases=copies,
        files=manifest.describe({name: folder / name for name in names}),
        contents=count,
        content_bytes=size,
        damaged=tuple(damaged),
        settings=settings,
        external=tuple(external),
    )


def _freeze(
    databases: Mapping[Half, Database], held: ExitStack, clock: Callable[[], Instant]
) -> tuple[dict[Half, DatabaseSnapshot], Instant]:
    """Hold both databases as of one moment: while the repository's snapshot is taken, no right changes."""
    with ExitStack() as still:
        if len(databases) > 1:
            access.one_at_a_time(still.enter_context(databases["directory"].begin()))
        frozen = {half: held.enter_context(dumps.freeze(database)) for half, database in sorted(databases.items())}
        return frozen, clock()


def _databases(
    databases: Mapping[Half, Database], frozen: Mapping[Half, DatabaseSnapshot], folder: Path
) -> dict[Half, DatabaseCopy]:
    copies: dict[Half, DatabaseCopy] = {}
    files: dict[object, str] = {}
    for half, database in databases.items():
        # Two halves may live in one PostgreSQL database: it is copied once.
        address = database.engine.url.render_as_string(hide_password=True)
        if address not in files:
            files[address] = f"{half}.{dumps.suffix(database)}"
            frozen[half].copy(folder / files[address])
        revision = schema.revision(frozen[half].connection, half)
        copies[half] = DatabaseCopy(files[address], database.dialect, revision or "")
    return copies


def _contents(cx: Connection, source: ContentStore, target: ContentStore) -> Iterator[tuple[StoredObject, bool]]:
    for stored in with_content(cx):
        assert stored.content is not None  # noqa: S101 - those without were left out
        yield stored, target.adopt(stored.content, source.read(stored.content))


def with_content(cx: Connection) -> Iterator[StoredObject]:
    """List every object that has content, of all repositories."""
    for repository in repositories.every(cx):
        last: int | None = 0
        while last is not None:
            page = objects.every(cx, repository.id, last, _AT_A_TIME)
            yield from (each for each in page if each.content is not None)
            last = page[-1].seq if page else None


def _settings(file: Path, folder: Path) -> tuple[str, ...]:
    if not file.is_file():
        return ()
    kept = file.read_bytes()
    with disk.create(folder / SETTINGS) as copied:
        copied.write(kept)
    return tuple(sorted(_names(tomllib.loads(kept.decode()))))


def _names(table: Mapping[str, object], within: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{within}{name}.")
        else:
            yield within + name


def _tls(source: Path, folder: Path) -> None:
    if source.is_dir():
        (folder / TLS).mkdir(mode=0o700)
        for file in sorted(source.iterdir()):
            if file.is_file():
                with disk.create(folder / TLS / file.name) as copied:
                    copied.write(file.read_bytes())


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise BackupRefused(
            f"The backup takes about {(needed + _SPARE) >> 20:,} MiB, and the disk of {folder.parent} has "
            f"{free >> 20:,} MiB left: make room there, or name a folder on another disk."
        )


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Make the folder that the backup is written into; what a killed one has left there goes first."""
    folder = target.parent / f".{target.name}.unfinished"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(lock, folder, target)
        for each in folder.iterdir():
            if each.name != _LOCK:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        try:
            yield folder
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.filename is None:  # a write does not say where
                error.filename = str(folder)
            raise
        (target / _LOCK).unlink()
    finally:
        os.close(lock)


def _take(lock: int, folder: Path, target: Path) -> None:
    try:
        locks.take(lock, wait=False)
        # Meanwhile another one may have given the folder its name.
        if os.fstat(lock).st_ino == os.stat(folder / _LOCK).st_ino:
            return
    except (locks.Held, FileNotFoundError):
        pass
    raise BackupRefused(f"Another backup to {target} is being made: wait for it, or name another folder.")


def bring_to_disk(folder: Path) -> None:
    """Bring everything that was written to the folder's disk there, at once. Raises OSError when the disk fails."""
    library = ctypes.CDLL(None, use_errno=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if library.syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
