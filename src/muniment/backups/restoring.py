"""Put a backup into a data folder, so that it is served whole or not at all.

A file marks the data folder from the first step to the last: nothing opens a folder with that mark but another restore,
which begins anew.
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
"""What may be in a data folder that a backup is restored to, or more of that name."""

_NEW_MARK = f".{UNFINISHED_RESTORE}."
"""How the name of a mark begins that is being written."""


class Backup(NamedTuple):
    """A backup that was found whole, but for its content."""

    folder: Path
    manifest: Manifest


class Mark(msgspec.Struct, frozen=True):
    """What a restore says of itself in the data folder while it is under way.

    ``own_settings``: the settings file was there before. ``filled`` names the PostgreSQL databases that were empty, and
    that it fills.
    """

    own_settings: bool
    filled: tuple[str, ...] = ()


class RestoreResult(NamedTuple):
    """What has become of it: the sessions that were ended, and the objects whose content is missing or altered."""

    ended: SessionCount
    damaged: tuple[str, ...]


def inspect(folder: Path) -> Backup:
    """Look at a backup: its manifest, its schemas and its files but content. Raises BackupRefused."""
    found = Backup(folder.absolute(), manifest.read(folder))
    for half, copy in found.manifest.databases.items():
        if not schema.knows(half, copy.revision):
            raise BackupRefused(
                f"The backup's {half} is at schema {copy.revision}, made by a newer release "
                f"({found.manifest.release}): restore it with that one."
            )
    manifest.check_files(found.folder, found.manifest)
    return found


def check_target(data: Path) -> None:
    """Raise BackupRefused unless the folder is empty, holds settings alone, or a restore of it did not end."""
    if not data.exists() or _mark_file(data).exists():
        return
    if not data.is_dir():
        raise BackupRefused(f"{data} is no folder: name another with --data.")
    others = sorted(each.name for each in data.iterdir() if not each.name.startswith((*_OURS, _NEW_MARK)))
    if others:
        raise BackupRefused(f"{data} is not empty ({', '.join(others[:3])}): name a new folder with --data.")


def begin(backup: Backup, data: Path) -> Mark:
    """Mark the folder, clear away what an earlier try has left, and put the settings there unless it has its own."""
    mark = _read_mark(data) or Mark(own_settings=(data / SETTINGS).exists())
    _write_mark(data, mark)
    for each in data.iterdir():
        kept = each.name != SETTINGS or mark.own_settings
        if each != _mark_file(data) and not (kept and each.name.startswith(_OURS)):
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
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
    """Bring back certificates, databases, content and indexes, and take the mark away. Raises BackupRefused.

    ``progress`` hears what is being done, how much of it is done, and how much there is.
    """
    _check_settings(backup, installation)
    names = [name for name in backup.manifest.files if Path(name).parts[0] == TLS]
    if names:
        installation.tls.mkdir(mode=0o700)
    for name in names:
        _copy(backup.folder / name, installation.data / name)
    with ExitStack() as closing:
        databases = _databases(backup, installation, mark, closing)
        ended = SessionCount()
        if "directory" in databases and not keep_sessions:
            with databases["directory"].begin() as cx:
                ended = sessions.end_every(cx, clock())
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
    return RestoreResult(ended, damaged)


def _check_settings(backup: Backup, installation: Installation) -> None:
    copied, halves = backup.manifest.databases, installation.settings.halves
    if set(copied) != set(halves):
        raise BackupRefused(
            f"The backup holds {_listed(copied)}, and 'halves' in the settings says {_listed(halves)}: "
            "they have to be the same."
        )


def _databases(backup: Backup, installation: Installation, mark: Mark, closing: ExitStack) -> Mapping[Half, Database]:
    databases: dict[Half, Database] = {}
    filled: dict[str, str] = {}
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
        elif filled.get(copy.file) is None:
            mark = _fill(database, backup.folder / copy.file, mark, installation.data)
            filled[copy.file] = half
        schema.migrate(database, half)
    return databases


def _put_sqlite(source: Path, target: Path, data: Path) -> None:
    # What an earlier try has left in the data folder is gone by now; elsewhere nothing is overwritten.
    if target.exists():
        raise BackupRefused(f"{target} is there already: name another file in the settings, or move that one away.")
    if target.parent != data:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _copy(source, target)


def _fill(database: Database, file: Path, mark: Mark, data: Path) -> Mark:
    dumps.check_programs(database)
    address = database.engine.url.render_as_string(hide_password=True)
    again = address in mark.filled
    if not again and not dumps.is_empty(database):
        raise BackupRefused(f"The database {address} is not empty: make an empty one, and name it in the settings.")
    mark = msgspec.structs.replace(mark, filled=tuple({*mark.filled, address}))
    _write_mark(data, mark)
    dumps.restore_dump(database, file, again=again and not dumps.is_empty(database))
    return mark


def _contents(
    backup: Backup, installation: Installation, database: Database, progress: Callable[[str, int, int], None]
) -> tuple[str, ...]:
    damaged = []
    copies, store = FileStore(backup.folder / CONTENT, copies=True), app.content(installation)
    with database.read() as cx:
        for done, stored in enumerate(making.with_content(cx), 1):
            assert stored.content is not None  # noqa: S101 - those without were left out
            if not store.adopt(stored.content, copies.read(stored.content)):
                damaged.append(stored.id)
            progress("Content", done, backup.manifest.contents)
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
    with open(source, "rb") as read, disk.create(target) as to:
        shutil.copyfileobj(read, to, 1 << 20)
        to.flush()
        os.fsync(to.fileno())


def _listed(halves: Iterable[str]) -> str:
    return " and ".join(sorted(halves))
