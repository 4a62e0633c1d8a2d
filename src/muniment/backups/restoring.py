"""Put a backup into a data folder, so that it is served whole or not at all.

A file marks the data folder from the first step to the last. Only another restore opens a folder with that mark, and it
starts again from the beginning.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from muniment import app, disk, schema
from muniment.backups import dumps, making, manifest
from muniment.backups.making import CONTENT, SETTINGS, TLS
from muniment.backups.manifest import Manifest
from muniment.backups.refusals import BackupRefused
from muniment.clock import Instant
from muniment.db import Database, Half
from muniment.directory import sessions
from muniment.directory.sessions import SessionCount
from muniment.installation import UNFINISHED_RESTORE, Installation
from muniment.repository import leases, repositories
from muniment.repository.change_log import changes, followers
from muniment.repository.content.files import FileStore
from muniment.repository.index_agent import agent

_OURS = ("serve.lock", "events.log", SETTINGS)
"""Names of files that the target of a restore may hold already, and beginnings of such names."""

_NEW_MARK = f".{UNFINISHED_RESTORE}."
"""The beginning of the name of a mark that is being written."""


class Backup(NamedTuple):
    """A backup whose manifest, schemas and files were found whole. Its content is checked while it is copied."""

    folder: Path
    manifest: Manifest


class Mark(msgspec.Struct, frozen=True):
    """The state of a restore, stored in the data folder while it is under way.

    ``own_settings``: the data folder had a settings file before. ``filled`` names the PostgreSQL databases that were
    empty and that this restore fills.
    """

    own_settings: bool
    filled: tuple[str, ...] = ()


class RestoreResult(NamedTuple):
    """The outcome of a restore: how many sessions it ended, and the objects whose content is missing or altered."""

    sessions: SessionCount
    damaged: tuple[str, ...]


def inspect(folder: Path) -> Backup:
    """Check a backup's manifest, schemas and files, but not its content. Raises BackupRefused."""
    backup = Backup(folder.absolute(), manifest.read(folder))
    for half, copy in backup.manifest.databases.items():
        if not schema.knows(half, copy.revision):
            raise BackupRefused(
                f"The backup's {half} is at schema {copy.revision}, made by a newer release "
                f"({backup.manifest.release}): restore it with that one."
            )
    manifest.check_files(backup.folder, backup.manifest)
    return backup


def check_target(data: Path) -> None:
    """Raise BackupRefused unless the folder is empty, holds settings alone, or holds an unfinished restore."""
    if not data.exists() or _mark_file(data).exists():
        return
    if not data.is_dir():
        raise BackupRefused(f"{data} is no folder: name another with --data.")
    foreign = sorted(entry.name for entry in data.iterdir() if not entry.name.startswith((*_OURS, _NEW_MARK)))
    if foreign:
        raise BackupRefused(f"{data} is not empty ({', '.join(foreign[:3])}): name a new folder with --data.")


def begin(backup: Backup, data: Path) -> Mark:
    """Mark the folder, remove what an earlier try has left, and copy the settings unless the folder has its own."""
    mark = _read_mark(data) or Mark(own_settings=(data / SETTINGS).exists())
    _write_mark(data, mark)
    for entry in data.iterdir():
        stays = entry.name != SETTINGS or mark.own_settings
        if entry != _mark_file(data) and not (stays and entry.name.startswith(_OURS)):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    if SETTINGS in backup.manifest.files and not mark.own_settings:
        _copy(backup.folder / SETTINGS, data / SETTINGS)
    return mark


def finish(
    backup: Backup,
    installation: Installation,
    mark: Mark,
    clock: Callable[[], Instant],
    progress: Callable[[str, int, int], None],
    *,
    keep_sessions: bool,
) -> RestoreResult:
    """Restore certificates, databases, content and indexes, then remove the mark. Raises BackupRefused.

    ``progress`` is called with the name of the part, how much of it is done, and how much there is.
    """
    _check_settings(backup, installation)
    names = [name for name in backup.manifest.files if Path(name).parts[0] == TLS]
    if names:
        installation.tls.mkdir(mode=0o700)
    for name in names:
        _copy(backup.folder / name, installation.data / name)
    with ExitStack() as closing:
        databases = _databases(backup, installation, mark, closing)
        count = SessionCount()
        if "directory" in databases and not keep_sessions:
            with databases["directory"].begin() as cx:
                count = sessions.end_every(cx, clock())
        damaged: tuple[str, ...] = ()
        if "repository" in databases:
            with databases["repository"].begin() as cx:
                changes.settle(cx)
                followers.forget(cx)
                leases.forget(cx)
            damaged = _contents(backup, installation, databases["repository"], progress)
            _indexes(installation, databases["repository"], clock, progress)
    making.bring_to_disk(installation.data)
    _mark_file(installation.data).unlink()
    disk.sync(installation.data)
    return RestoreResult(count, damaged)


def _check_settings(backup: Backup, installation: Installation) -> None:
    copied, halves = backup.manifest.databases, installation.settings.halves
    if set(copied) != set(halves):
        raise BackupRefused(
            f"The backup holds {_join_names(copied)}, and 'halves' in the settings says {_join_names(halves)}: "
            "both must name the same halves."
        )


def _databases(backup: Backup, installation: Installation, mark: Mark, closing: ExitStack) -> Mapping[Half, Database]:
    databases: dict[Half, Database] = {}
    half_by_file: dict[str, str] = {}
    for half, copy in sorted(backup.manifest.databases.items()):
        database = Database(installation.database_url(half))
        closing.callback(database.close)
        databases[half] = database
        if database.dialect != copy.dialect:
            raise BackupRefused(
                f"The backup's {half} is a copy of {copy.dialect}, and the settings name {database.dialect} for it: "
                "name one of the same kind."
            )
        if database.dialect == "sqlite":
            _put_sqlite(backup.folder / copy.file, Path(database.engine.url.database or ""), installation.data)
        elif half_by_file.get(copy.file) is None:
            mark = _fill(database, backup.folder / copy.file, mark, installation.data)
            half_by_file[copy.file] = half
        schema.migrate(database, half)
    return databases


def _put_sqlite(source: Path, target: Path, data: Path) -> None:
    # In the data folder, what an earlier try has left was removed before; elsewhere nothing is overwritten.
    if target.exists():
        raise BackupRefused(f"{target} is there already: name another file in the settings, or move that one away.")
    if target.parent != data:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _copy(source, target)


def _fill(database: Database, file: Path, mark: Mark, data: Path) -> Mark:
    dumps.check_programs(database)
    address = database.engine.url.render_as_string(hide_password=True)
    was_filled = address in mark.filled
    if not was_filled and not dumps.is_empty(database):
        raise BackupRefused(f"The database {address} is not empty: make an empty one, and name it in the settings.")
    mark = msgspec.structs.replace(mark, filled=tuple({*mark.filled, address}))
    _write_mark(data, mark)
    dumps.restore_dump(database, file, replace=was_filled and not dumps.is_empty(database))
    return mark


def _contents(
    backup: Backup, installation: Installation, database: Database, progress: Callable[[str, int, int], None]
) -> tuple[str, ...]:
    damaged = []
    copies, store = FileStore(backup.folder / CONTENT, copies=True), app.content(installation)
    with database.read() as cx:
        for count, document in enumerate(making.objects_with_content(cx), 1):
            assert document.content is not None  # noqa: S101 - those without were left out
            if not store.adopt(document.content, copies.read(document.content)):
                damaged.append(document.id)
            progress("Content", count, backup.manifest.contents)
    return tuple(damaged)


def _indexes(
    installation: Installation,
    database: Database,
    clock: Callable[[], Instant],
    progress: Callable[[str, int, int], None],
) -> None:
    with database.read() as cx:
        every = repositories.every(cx)
    for repository in every:

        def report(indexed: int, name: str = repository.name) -> None:
            progress(f"Index of {name}", indexed, 0)

        agent.rebuild(database, repository, app.engine(installation), clock, report)


def _mark_file(data: Path) -> Path:
    return data / UNFINISHED_RESTORE


def _read_mark(data: Path) -> Mark | None:
    try:
        return msgspec.json.decode(_mark_file(data).read_bytes(), type=Mark)
    except FileNotFoundError:
        return None


def _write_mark(data: Path, mark: Mark) -> None:
    disk.replace(_mark_file(data), msgspec.json.encode(mark))


def _copy(source: Path, target: Path) -> None:
    with open(source, "rb") as origin, disk.create(target) as copy:
        shutil.copyfileobj(origin, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())


def _join_names(halves: Iterable[str]) -> str:
    return " and ".join(sorted(halves))
