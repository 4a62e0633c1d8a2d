"""Restore a backup into a data folder, which a server can use only when all of it is there (decision 0027)."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from muniment.database import schema
from muniment.database.connections import Database, Half
from muniment.directory.entries import changes as entry_changes
from muniment.directory.oauth import sessions
from muniment.directory.oauth.sessions import SessionCount
from muniment.ground import disk
from muniment.ground.clock import Instant
from muniment.installation import backends
from muniment.installation.backups import dumps, making, manifest
from muniment.installation.backups.making import CONTENT, SETTINGS, TLS
from muniment.installation.backups.manifest import Manifest
from muniment.installation.backups.refusals import BackupRefused
from muniment.installation.layout import UNFINISHED_RESTORE, Installation
from muniment.repository.search.agent import agent, reports
from muniment.repository.store import leases, repositories
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects.contents import content_references, stored_contents

_PERMITTED_NAMES = ("serve.lock", "events.log", SETTINGS)
"""A target may hold files whose names begin so."""

_EVER = 2**60

_NEW_MARK = f".{UNFINISHED_RESTORE}."
"""Begins the file's name while the mark is being written."""


class Backup(NamedTuple):
    """Manifest, schemas and files were checked; content is while it is copied."""

    folder: Path
    manifest: Manifest


class Mark(msgspec.Struct, frozen=True):
    """The state of a restore under way, in the data folder.

    ``own_settings``: the folder had a settings file before. ``filled`` lists the empty places that it fills: PostgreSQL
    databases, a content store in the network, and SQLite files elsewhere.
    """

    own_settings: bool
    filled: tuple[str, ...] = ()


class RestoreResult(NamedTuple):
    """Ended sessions, and the ids of objects with missing or altered content."""

    sessions: SessionCount
    damaged: tuple[str, ...]


def inspect(folder: Path) -> Backup:
    """The contents of objects are not checked. Raises BackupRefused."""
    backup = Backup(folder.absolute(), manifest.read(folder))
    for half, copy in backup.manifest.databases.items():
        if schema.is_former(half, copy.revision):
            raise BackupRefused(
                f"The backup's {half} is at schema {copy.revision}, older than any that this release migrates: "
                "restore it with the commit tagged 'before-light' first, and make a backup of that."
            )
        if not schema.knows(half, copy.revision):
            raise BackupRefused(
                f"The backup's {half} is at schema {copy.revision}, made by a newer release "
                f"({backup.manifest.release}): restore it with that release."
            )
    manifest.check_files(backup.folder, backup.manifest)
    return backup


def check_target(data: Path) -> None:
    """Raises BackupRefused unless it is missing, has permitted files only, or holds an unfinished restore."""
    if not data.exists() or _mark_file(data).exists():
        return
    if not data.is_dir():
        raise BackupRefused(f"{data} is no folder: name another with --data.")
    other_names = sorted(
        entry.name for entry in data.iterdir() if not entry.name.startswith((*_PERMITTED_NAMES, _NEW_MARK))
    )
    if other_names:
        raise BackupRefused(f"{data} is not empty ({', '.join(other_names[:3])}): name a new folder with --data.")


def begin(backup: Backup, data: Path) -> Mark:
    """Mark the folder, remove what an unfinished restore has left, and copy the settings unless it has its own."""
    mark = _read_mark(data) or Mark(own_settings=(data / SETTINGS).exists())
    _write_mark(data, mark)
    for entry in data.iterdir():
        stays = entry.name != SETTINGS or mark.own_settings
        if entry != _mark_file(data) and not (stays and entry.name.startswith(_PERMITTED_NAMES)):
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
    """``progress`` gets a part's name, how many items are done, and how many there are (0 if unknown). Without
    ``keep_sessions`` all sessions end. Raises BackupRefused.
    """
    _check_settings(backup, installation)
    names = [name for name in backup.manifest.files if Path(name).parts[0] == TLS]
    if names:
        installation.tls.mkdir(mode=0o700)
    for name in names:
        _copy(backup.folder / name, installation.data / name)
    with ExitStack() as stack:
        databases = _databases(backup, installation, mark, stack)
        count = SessionCount()
        if "directory" in databases:
            with databases["directory"].begin() as cx:
                entry_changes.settle(cx)
                if not keep_sessions:
                    count = sessions.end_every(cx, clock())
        damaged_ids: tuple[str, ...] = ()
        if "repository" in databases:
            with databases["repository"].begin() as cx:
                changes.settle(cx)
                followers.forget(cx)
                leases.forget(cx)
                reports.forget(cx)
            _claim_content(installation, mark)
            damaged_ids = _contents(backup, installation, databases["repository"], progress)
            _indexes(installation, databases["repository"], clock, progress)
    making.bring_to_disk(installation.data)
    _mark_file(installation.data).unlink()
    disk.sync(installation.data)
    return RestoreResult(count, damaged_ids)


def _check_settings(backup: Backup, installation: Installation) -> None:
    copies, halves = backup.manifest.databases, installation.settings.halves
    if set(copies) != set(halves):
        raise BackupRefused(
            f"The backup holds {_join_names(copies)}, and 'halves' in the settings says {_join_names(halves)}: "
            "both must name the same halves."
        )
    addresses = dict[str, str]()
    for half, copy in copies.items():
        if addresses.setdefault(copy.file, address := installation.database_url(half)) != address:
            raise BackupRefused(
                "The backup holds both halves in one database, and the settings name two: name one database for both."
            )
    sqlite_files = {copy.file for copy in copies.values() if copy.dialect == "sqlite"}
    if len({addresses[file] for file in sqlite_files}) < len(sqlite_files):
        raise BackupRefused("The backup holds two SQLite files, and the settings name one for both halves: name two.")


def _databases(backup: Backup, installation: Installation, mark: Mark, stack: ExitStack) -> Mapping[Half, Database]:
    databases: dict[Half, Database] = {}
    restored_files = set[str]()
    for half, copy in sorted(backup.manifest.databases.items()):
        database = Database(installation.database_url(half))
        stack.callback(database.close)
        databases[half] = database
        if database.dialect != copy.dialect:
            raise BackupRefused(
                f"The backup's {half} is a copy of {copy.dialect}, and the settings name {database.dialect} for it: "
                "name a database of the same kind."
            )
        if copy.file not in restored_files:
            restore = _put_sqlite if database.dialect == "sqlite" else _fill
            mark = restore(database, backup, copy.file, mark, installation.data)
            restored_files.add(copy.file)
        schema.migrate(database, half)
    return databases


def _put_sqlite(database: Database, backup: Backup, file: str, mark: Mark, data: Path) -> Mark:
    target = Path(database.engine.url.database or "")
    if target.parent != data:
        # In the data folder, ``begin`` has removed an earlier file. Outside, only a file of this restore is removed.
        # SQLite would take what a killed process has left beside the file for changes of the restored database.
        for each in (target, *(target.with_name(f"{target.name}{ending}") for ending in ("-wal", "-journal"))):
            if str(target) in mark.filled:
                each.unlink(missing_ok=True)
            elif each.exists():
                raise BackupRefused(
                    f"{each} exists already: name another file in the settings, or move that file away."
                )
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = _note_filled(data, mark, str(target))
    _copy(backup.folder / file, target)
    return mark


def _fill(database: Database, backup: Backup, file: str, mark: Mark, data: Path) -> Mark:
    dumps.check_programs(database)
    address = database.engine.url.render_as_string(hide_password=True)
    is_second_try = address in mark.filled
    if not is_second_try and not dumps.is_empty(database):
        raise BackupRefused(f"The database {address} is not empty: make an empty one, and name it in the settings.")
    mark = _note_filled(data, mark, address)
    replace = is_second_try and not dumps.is_empty(database)
    if replace:
        # A migration of the first try may have made tables that the dump does not name.
        copies = {half: copy for half, copy in backup.manifest.databases.items() if copy.file == file}
        with database.read() as cx:
            revisions = {half: schema.revision(cx, half) for half in copies}
        migrated = [half for half, copy in copies.items() if revisions[half] not in (None, copy.revision)]
        dumps.remove_halves(database, migrated)
    dumps.restore_dump(database, backup.folder / file, replace=replace)
    return mark


def _note_filled(data: Path, mark: Mark, place: str) -> Mark:
    mark = msgspec.structs.replace(mark, filled=tuple({*mark.filled, place}))
    _write_mark(data, mark)
    return mark


def _claim_content(installation: Installation, mark: Mark) -> None:
    """Note in the mark that this restore fills the content store in the network, if there is one.

    Raises BackupRefused if it has content and the mark does not name it yet: of two installations that share a store,
    each would remove what the other has written since the backup.
    """
    s3 = installation.settings.repository.s3
    place = f"{s3.endpoint}/{s3.bucket}/{s3.prefix}"
    if installation.settings.repository.content_store == "files" or place in mark.filled:
        return
    if next(backends.content(installation).older_than(_EVER), None) is not None:
        raise BackupRefused(
            f"The content store {place} holds content already, perhaps that of the installation from which the backup "
            "was made: in the settings of the new data folder, set repository.s3.prefix to a prefix without content."
        )
    _note_filled(installation.data, _read_mark(installation.data) or mark, place)


def _contents(
    backup: Backup, installation: Installation, database: Database, progress: Callable[[str, int, int], None]
) -> tuple[str, ...]:
    damaged_ids = list[str]()
    copies, store = FileStore(backup.folder / CONTENT, copies=True), backends.content(installation)
    with database.read() as cx:
        for count, content in enumerate(stored_contents.all_stored_contents(cx), 1):
            if not store.adopt(content, copies.read(content)):
                damaged_ids += content_references.object_ids(cx, content.key)
            progress("Content", count, backup.manifest.contents)
    return tuple(damaged_ids)


def _indexes(
    installation: Installation,
    database: Database,
    clock: Callable[[], Instant],
    progress: Callable[[str, int, int], None],
) -> None:
    with database.read() as cx:
        all_repositories = repositories.all_repositories(cx)
    for repository in all_repositories:

        def report(count: int, name: str = repository.name) -> None:
            progress(f"Index of {name}", count, 0)

        agent.rebuild(database, repository, backends.engine(installation), clock, report)


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
