"""Import a folder of files as a cabinet of documents: many at once, and so that a stopped import can go on.

Small new files are imported in batches. Their bytes are on the disk before the one transaction that makes their
objects, and the text of plain text files is stored in the same transaction. A larger file, and a file that replaces
another, is imported alone.
"""

import mimetypes
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment import app, clock
from muniment.cli.file_tree import FileTree, SourceFile, printable
from muniment.cli.index_pace import IndexPace
from muniment.data_folder import DataFolder
from muniment.db import Busy, Database
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Position
from muniment.repository.content.contract import StoredContent
from muniment.repository.extraction import plain
from muniment.repository.extraction.queue import ExtractedText
from muniment.repository.importing import record
from muniment.repository.importing.record import ImportRecord
from muniment.repository.objects import creation, object_types, objects, writable
from muniment.repository.objects.creation import NewObject
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.web.refusals import Refusal

_BATCH_FILES = 100
_BATCH_BYTES = 4 * 1024 * 1024
_AHEAD = 400
_STANDING_SECONDS = 5.0
_UNKNOWN = "application/octet-stream"
_TYPES = {".md": "text/markdown", ".log": "text/plain", ".rst": "text/x-rst", ".eml": "message/rfc822"}

AclFor = Callable[[str], str | None]
"""Names the ACL of the document at a relative path; None = its folder's."""


class ImportReport(msgspec.Struct):
    """What an import did. ``object_ids`` names the objects of all files, imported now or earlier."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    links: int = 0
    failed: list[tuple[str, str]] = []
    object_ids: list[str] = []

    @property
    def files(self) -> int:
        """How many of the files are in the repository now."""
        return self.created + self.replaced + self.unchanged


class _Result(NamedTuple):
    path: str
    outcome: str
    object_id: str


class Import:
    """One import of one folder. ``limit`` bounds the number of files, ``limit_bytes`` their sizes together."""

    def __init__(
        self,
        data: DataFolder,
        database: Database,
        repository: Repository,
        folder: Path,
        *,
        principals: Principals,
        cabinet: str = "",
        acl: str = "",
        acl_for: AclFor = lambda _path: None,
        accept: Callable[[str], bool] = lambda _path: True,
        type_name: str = "document",
        limit: int | None = None,
        limit_bytes: int | None = None,
        checksums: bool = False,
    ) -> None:
        self._opened = data
        self._database = database
        self._repository = repository
        folder = folder.resolve()
        self._source = str(folder)
        self._principals = principals
        self._cabinet = cabinet or folder.name or "root"
        self._acl = acl
        self._acl_for = acl_for
        self._type_name = type_name
        self._checksums = checksums
        self._store = app.content(data.installation)
        self._characters = data.settings.repository.extraction_characters
        self.report = ImportReport()
        with database.read() as cx:
            self._catalogue: Catalogue = object_types.catalogue(cx, repository.id)
            records = record.find(cx, repository.id, self._source)
            alive = objects.rows(cx, repository.id, {imported.object_id for imported in records.values()})
        self._known = {path: imported for path, imported in records.items() if imported.object_id in alive}
        # So that searches soon find what others write meanwhile.
        self._pace = IndexPace(data.installation, database, repository, _is_far, _STANDING_SECONDS)
        self._ids: dict[str, str] = {}
        self._tree = FileTree(
            folder,
            enter=self._enter,
            accept=accept,
            unchanged=self._is_unchanged,
            failed=self._fail,
            largest=data.settings.repository.max_content_bytes,
            limit=limit,
            limit_bytes=limit_bytes,
        )

    def run(self, threads: int, progress: Callable[[], None] = lambda: None) -> ImportReport:
        """Import what is new and replace what has changed, ``threads`` batches of files at one time."""
        under_way: set[Future[list[_Result]]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="import") as pool:
            try:
                for batch in self._batches():
                    self._pace.keep()
                    under_way.add(pool.submit(self._import, batch))
                    if len(under_way) > threads:
                        finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                        self._count(finished, progress)
            finally:
                finished, _ = wait(under_way)
                self._count(finished, progress)
                self._pace.close()
        self.report.links = self._tree.links
        return self.report

    def _count(self, finished: set[Future[list[_Result]]], progress: Callable[[], None]) -> None:
        for result in (result for batch in finished for result in batch.result()):
            if result.object_id:
                self.report.object_ids.append(result.object_id)
            match result.outcome:
                case "made":
                    self.report.created += 1
                case "replaced":
                    self.report.replaced += 1
                case "unchanged":
                    self.report.unchanged += 1
                case reason:
                    self._fail(result.path, reason)
            progress()

    def _batches(self) -> Iterator[list[SourceFile]]:
        batch: list[SourceFile] = []
        size = 0
        for file in self._tree.files():
            batch.append(file)
            size += len(file.content or b"")
            if file.handle >= 0 or len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _enter(self, path: str) -> bool:
        if not path:
            self._ids[path] = self._container(path, self._cabinet, None)
            return True
        above, name = os.path.split(path)
        try:
            self._ids[path] = self._container(path, name, self._ids[above])
        except Refusal as refusal:
            self._fail(path, refusal.sentence)
            return False
        return True

    def _is_unchanged(self, file: SourceFile) -> bool:
        former = self._former(file.path)
        return (
            former is not None and not self._checksums and (former.size, former.modified) == (file.size, file.modified)
        )

    def _former(self, path: str) -> ImportRecord | None:
        return self._known.get(record.key(path))

    def _fail(self, path: str, reason: str) -> None:
        self.report.failed.append((printable(path), reason))

    def _container(self, path: str, name: str, parent: str | None) -> str:
        former = self._former(path)
        if former is not None:
            return former.object_id
        properties: dict[str, str] = {"object_name": _object_name(name)}
        if parent is None and self._acl:
            properties["acl_name"] = self._acl
        with self._database.begin() as cx:
            container = creation.create(
                cx,
                self._repository,
                self._catalogue,
                self._principals,
                "folder" if parent else "cabinet",
                properties,
                parent,
                None,
                clock.now(),
            )
            record.keep(cx, self._repository.id, self._source, {path: ImportRecord(container.id)})
        return container.id

    def _import(self, batch: list[SourceFile]) -> list[_Result]:
        new: list[SourceFile] = []
        alone: list[SourceFile] = []
        for file in batch:
            (alone if file.content is None or self._former(file.path) else new).append(file)
        return [self._import_one(file) for file in alone] + self._make_all(new)

    def _make_all(self, files: list[SourceFile]) -> list[_Result]:
        """Make the objects of small new files in one transaction; if one cannot be made, the others still are."""
        if not files:
            return []
        try:
            contents = self._store.put_all([file.content or b"" for file in files])
            return self._make(files, contents)
        except Busy as busy:
            return [_Result(file.path, str(busy), "") for file in files]
        except (Refusal, OSError) as error:
            if len(files) == 1:
                return [_Result(files[0].path, _reason(error), "")]
        half = len(files) // 2
        return self._make_all(files[:half]) + self._make_all(files[half:])

    def _import_one(self, file: SourceFile) -> _Result:
        try:
            return self._store_one(file)
        except (Refusal, Busy, OSError) as error:
            return _Result(file.path, _reason(error), "")
        finally:
            file.close()

    def _store_one(self, file: SourceFile) -> _Result:
        former = self._former(file.path)
        if former is not None and file.handle < 0 and file.content is None:
            return _Result(file.path, "unchanged", former.object_id)
        if former is not None and former.size == file.size and file.digest() == former.digest:
            with self._database.begin() as cx:
                self._keep(cx, {file.path: ImportRecord(former.object_id, file.size, file.modified, former.digest)})
            return _Result(file.path, "unchanged", former.object_id)
        content = self._store.put(file.pieces())
        if former is None:
            return self._make([file], [content])[0]
        return self._replace(file, former.object_id, content)

    def _make(self, files: list[SourceFile], contents: list[StoredContent]) -> list[_Result]:
        new_objects = [self._new(file, content) for file, content in zip(files, contents, strict=True)]
        try:
            with self._database.begin() as cx:
                created = creation.create_all(
                    cx, self._repository, self._catalogue, self._principals, new_objects, clock.now()
                )
                self._keep(
                    cx,
                    {
                        file.path: _record_of(file, stored.id, stored.content)
                        for file, stored in zip(files, created, strict=True)
                    },
                )
        except BaseException:
            for content in contents:
                self._store.remove(content.key)
            raise
        return [_Result(file.path, "made", stored.id) for file, stored in zip(files, created, strict=True)]

    def _new(self, file: SourceFile, content: StoredContent) -> NewObject:
        name, media_type = os.path.basename(file.path), _media_type(file.path)
        properties = {"object_name": _object_name(name), "a_content_type": media_type}
        acl = self._acl_for(file.path)
        if acl is not None:
            properties["acl_name"] = acl
        plain_text = plain.read(file.content or b"", printable(name), media_type, self._characters)
        text = ExtractedText(plain_text.text, plain_text.note) if plain_text else None
        return NewObject(self._type_name, properties, self._ids[os.path.dirname(file.path)], content, text)

    def _replace(self, file: SourceFile, object_id: str, content: StoredContent) -> _Result:
        try:
            with self._database.begin() as cx:
                _, former = objects.replace_content(
                    cx, self._repository, self._principals, object_id, content, _media_type(file.path), clock.now()
                )
                self._keep(cx, {file.path: _record_of(file, object_id, content)})
        except BaseException:
            self._store.remove(content.key)
            raise
        if former is not None:
            self._store.remove(former.key)
        return _Result(file.path, "replaced", object_id)

    def _keep(self, cx: Connection, records: Mapping[str, ImportRecord]) -> None:
        record.keep(cx, self._repository.id, self._source, records)


def _is_far(cx: Connection, repository_id: int, position: Position) -> bool:
    return changes.are_more_than(cx, repository_id, position, _AHEAD)


def _record_of(file: SourceFile, object_id: str, content: StoredContent | None) -> ImportRecord:
    return ImportRecord(object_id, file.size, file.modified, content.sha256.hex() if content else "")


def _reason(error: Refusal | Busy | OSError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read or kept: {error.strerror}"
    return error.sentence if isinstance(error, Refusal) else str(error)


def _media_type(path: str) -> str:
    media_type, packing = mimetypes.guess_type(printable(path), strict=False)
    if packing == "gzip":
        return "application/gzip"
    if packing:
        return _UNKNOWN
    return _TYPES.get(os.path.splitext(path)[1].lower()) or media_type or _UNKNOWN


def _object_name(name: str) -> str:
    return printable(name)[: writable.MAX_NAME]
