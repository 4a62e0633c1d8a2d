"""How is a whole repository written into a folder, while others go on working with it?

All lines are of one snapshot, read a page at a time. Nobody can remove content before all of it is copied
(``ContentStore.keeping``). The manifest comes last. An export made again writes no content file anew that has the right
bytes.

Source: docs/export.md; decision 0082.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground import locks
from muniment.ground.clock import Instant
from muniment.repository.bulk.exports import content_files, manifest, rows
from muniment.repository.bulk.exports import progress as unfinished_imports
from muniment.repository.bulk.exports.lines import FileSummary, LineWriter
from muniment.repository.bulk.exports.manifest import ExportManifest
from muniment.repository.bulk.exports.naming import BearerNames
from muniment.repository.bulk.exports.records import BEARERS, FILES
from muniment.repository.refusals import BadExport, InUse
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.repositories import Repository

_LOCK = "export.lock"
"""It names the repository while an export is not finished."""

_KEYS = "contents.part"
"""It lists the digest, size and key of each content, in the order of digests."""

_AT_ONE_TIME = 8
_AT_A_TIME = 64

Progress = Callable[[str, int, int | None], None]
"""Gets what is written or read, how much is done, and of how much, if known."""


class ExportResult(NamedTuple):
    """The manifest, or else the objects whose contents are missing or altered."""

    manifest: ExportManifest | None
    damaged_ids: tuple[str, ...] = ()


def make(
    database: Database,
    store: ContentStore,
    repository: Repository,
    target: Path,
    release: str,
    now: Instant,
    sync: Callable[[], None],
    progress: Progress,
) -> ExportResult:
    """Write a repository into a folder: new, empty, or with an export of it, whole or not.

    If contents are damaged, all but the manifest is written. ``sync`` writes the folder to its disk.

    Raises BadExport, InUse, OSError, NotStored, Busy.
    """
    with database.read() as cx:
        if unfinished_imports.is_begun(cx, repository):
            raise InUse(f"The import into {repository.name!r} is not finished: finish it before you export.")
    with _own_folder(target, repository):
        (target / manifest.NAME).unlink(missing_ok=True)
        content_files.begin(target)
        with store.keeping():
            with database.read() as cx:
                files = _write_lines(cx, repository, target, progress)
                contents, content_bytes, files[content_files.LIST] = _list_contents(cx, repository, target)
            damaged_keys = _copy(store, target, contents, progress)
        if damaged_keys:
            with database.read() as cx:
                ids = [each for key in damaged_keys for each in content_references.object_ids(cx, key)]
            return ExportResult(None, tuple(dict.fromkeys(ids)))
        content_files.prune(target, (content.sha256.hex() for content in _listed(target)))
        content_files.end(target)
        (target / _KEYS).unlink()
        sync()
        result = ExportManifest(
            format=manifest.FORMAT,
            release=release,
            repository=repository.name,
            language=repository.language,
            exported=now,
            files=files,
            contents=contents,
            content_bytes=content_bytes,
        )
        manifest.write(target, result)
        (target / _LOCK).unlink()
    return ExportResult(result)


def _write_lines(cx: Connection, repository: Repository, target: Path, progress: Progress) -> dict[str, FileSummary]:
    names, files = BearerNames(), dict[str, FileSummary]()
    for name in FILES:
        if name == BEARERS:
            continue
        count = 0
        with LineWriter(target / name) as writer:
            for page in rows.pages(cx, repository, name, names):
                for line in page:
                    writer.write(line)
                count += len(page)
                progress(name, count, None)
            files[name] = writer.finish()
    with LineWriter(target / BEARERS) as writer:
        for line in names.lines():
            writer.write(line)
        files[BEARERS] = writer.finish()
    return {name: files[name] for name in FILES}


def _list_contents(cx: Connection, repository: Repository, target: Path) -> tuple[int, int, FileSummary]:
    count = size = 0
    with LineWriter(target / content_files.LIST) as writer, open(target / _KEYS, "wb") as keys:
        for content in content_references.of_repository(cx, repository.id):
            digest = content.sha256.hex()
            writer.write_text(f"{digest}  {content_files.path_of(digest)}\n".encode())
            keys.write(f"{digest} {content.size} {content.key}\n".encode())
            count, size = count + 1, size + content.size
        return count, size, writer.finish()


def _listed(target: Path) -> Iterator[StoredContent]:
    with open(target / _KEYS, encoding="ascii") as lines:
        for line in lines:
            digest, size, key = line.split()
            yield StoredContent(key, int(size), bytes.fromhex(digest))


def _copy(store: ContentStore, target: Path, total: int, progress: Progress) -> list[str]:
    damaged, count, contents = list[str](), 0, _listed(target)

    def copy(content: StoredContent) -> bool:
        return content_files.write(target, content, store.read)

    with ThreadPoolExecutor(_AT_ONE_TIME) as threads:
        while portion := list(islice(contents, _AT_A_TIME)):
            for content, is_there in zip(portion, threads.map(copy, portion), strict=True):
                count += 1
                damaged += [] if is_there else [content.key]
                progress("contents", count, total)
    return damaged


@contextmanager
def _own_folder(target: Path, repository: Repository) -> Iterator[None]:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    present = {entry.name for entry in target.iterdir()}
    if present and present.isdisjoint({_LOCK, manifest.NAME}):
        raise BadExport(f"{target} holds something else: name a folder that does not exist, or an empty one.")
    lock = locks.open_file(target / _LOCK)
    try:
        try:
            locks.take(lock, wait=False)
        except locks.Held:
            raise InUse(f"Another process writes an export into {target}: wait for it.") from None
        names = [os.pread(lock, 1000, 0).decode("utf-8", "replace")]
        if manifest.NAME in present:
            names.append(manifest.read(target)[0].repository)
        if others := sorted({name for name in names if name} - {repository.name}):
            raise BadExport(f"{target} holds an export of the repository {others[0][:120]!r}: name another folder.")
        os.pwrite(lock, repository.name.encode(), 0)
        yield
    finally:
        os.close(lock)
