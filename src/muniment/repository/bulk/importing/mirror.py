"""Import a folder of files as a cabinet of documents; if stopped, it goes on when run again.

Small new files are imported in batches: bytes are stored before the one transaction that makes their objects, with the
text of plain text. A larger file, and one that replaces another, is imported alone.

Another ACL than the cabinet's replaces it, also on all imported objects that have it; another type than before is
refused. A mirroring import also follows moved files, so that objects live on, and deletes the objects of files that are
gone.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.database.connections import Busy, Database, portions
from muniment.database.driver_errors import is_undone
from muniment.ground.clock import SECOND, Instant, timestamp
from muniment.ground.naming import without_reordering
from muniment.ground.refusals import Refusal
from muniment.repository.bulk.importing import record, settling
from muniment.repository.bulk.importing.differences import Differences, FormerFile, compare
from muniment.repository.bulk.importing.file_tree import FileTree, SourceFile, printable
from muniment.repository.bulk.importing.media_types import media_type_of
from muniment.repository.bulk.importing.record import ImportRecord
from muniment.repository.bulk.importing.report import ImportReport, reason_of
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import CheckedOut, InUse, WrongValue
from muniment.repository.search.index.contract import Index
from muniment.repository.search.index_pace import IndexPace
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.extraction.queue import ExtractedText
from muniment.repository.store.extraction.readers import plain
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.objects.decisions import assigned_acls, creation, moving
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

_BATCH_FILES = 250
_BATCH_BYTES = 4 * 1024 * 1024
_AHEAD, _MOST_AHEAD = 300, 4000
"""The import waits while the index lacks too many changes, with those of files under way, so that searches find what
others change: the first number if the oldest is older than ``_LONGEST_WAIT``, the second always.
"""

_LONGEST_WAIT: Instant = SECOND // 10
_STANDING_SECONDS = 5.0
_LONGEST_REST = 5.0
"""The import waits no longer, so that it can renew its lease in between."""
_DOCUMENT, _PRIVATE = "document", "private"

AclFor = Callable[[str], str | None]
"""Takes a document's relative path; None stands for its folder's ACL."""


class _Result(NamedTuple):
    path: str
    outcome: str
    object_id: str


class Import:
    """One import of one folder; ``limit`` bounds the files, ``limit_bytes`` their total.

    An empty ``cabinet``, ``acl`` or ``type_name`` stays as before. With ``mirrors``, objects of files that are gone are
    deleted, more than half only with ``deletes_most``. With ``quiet_seconds``, unfinished downloads, files written more
    recently, and those that a process writes are left for later (``settling``). The import keeps pace with ``index``,
    and closes it at the end.
    """

    def __init__(
        self,
        database: Database,
        repository: Repository,
        store: ContentStore,
        index: Index,
        options: RepositoryOptions,
        clock: Callable[[], Instant],
        locks: Path,
        folder: Path,
        *,
        principals: Principals,
        cabinet: str = "",
        acl: str = "",
        acl_for: AclFor = lambda _path: None,
        accept: Callable[[str], bool] = lambda _path: True,
        type_name: str = "",
        hidden: bool = False,
        mirrors: bool = False,
        deletes_most: bool = False,
        quiet_seconds: float = 0.0,
        limit: int | None = None,
        limit_bytes: int | None = None,
        checksums: bool = False,
    ) -> None:
        self._clock = clock
        self._locks = locks
        self._principals = principals
        self._database = database
        self._repository = repository
        folder = folder.resolve()
        self._source = str(folder)
        self._cabinet = cabinet
        self._default_cabinet = folder.name or "root"
        self._acl = acl
        self._acl_for = acl_for
        self._mirrors = mirrors
        self._deletes_most = deletes_most
        self._checksums = checksums
        self._store = store
        self._options = options
        self.report = ImportReport()
        self._moved_files: dict[str, FormerFile] = {}
        self._not_moved_yet = set[str]()
        self._type_name = type_name
        # So that searches soon find what others write meanwhile.
        self._pace = IndexPace(database, repository, index, self._is_far, _STANDING_SECONDS)
        self._under_way: dict[Future[list[_Result]], int] = {}
        self._ids: dict[str, str] = {}
        self._tree = FileTree(
            folder,
            enter=self._enter,
            accept=accept,
            is_unchanged=self._is_unchanged,
            note_failure=self._fail,
            largest=options.max_content_bytes,
            hidden=hidden,
            unfinished=not quiet_seconds,
            is_settled=lambda file, descriptor: (
                not quiet_seconds
                or settling.is_settled((clock() * 1000 - file.modified) / 1e9, quiet_seconds, descriptor)
            ),
            limit=limit,
            limit_bytes=limit_bytes,
        )

    def run(self, threads: int, progress: Callable[[], None] = lambda: None) -> ImportReport:
        """Raises InUse while another process imports the folder, WrongValue for another type than before, and any
        refusal of ``cabinet`` or ``acl``.
        """
        with (
            closing(self._pace),
            record.hold(self._database, self._locks, self._repository.id, self._source, self._clock) as self._tenure,
        ):
            self._read()
            self._apply_options()
            differences = self._compare()
            self._moved_files, self._not_moved_yet = differences.moved, set(differences.moved)
            self._import_all(threads, progress)
            self._delete(differences)
        self.report.links, self.report.hidden = self._tree.links, self._tree.left_out
        self.report.unsettled = self._tree.unsettled
        return self.report

    def _read(self) -> None:
        """The caller keeps out other imports of the folder."""
        with self._database.read() as cx:
            unique = self._options.unique_names
            self._view = RepositoryView.read(cx, self._repository, self._principals, unique_names=unique)
            records = record.find(cx, self._repository.id, self._source)
            self._versions = inventory.versions(cx, self._repository.id, {each.object_id for each in records.values()})
        self._alive = {chronicle_id: versions[0] for chronicle_id, versions in self._versions.items()}
        self._known_records = {path: each for path, each in records.items() if each.object_id in self._alive}
        self._type_name = self._type_for(self._type_name)

    def _import_all(self, threads: int, progress: Callable[[], None]) -> None:
        with ThreadPoolExecutor(threads, thread_name_prefix="import") as pool:
            try:
                for batch in self._batches():
                    self._keep_pace()
                    self._under_way[pool.submit(self._import, batch)] = len(batch)
                    while len(self._under_way) > threads:
                        ready_batches, _ = wait(self._under_way, _LONGEST_REST, FIRST_COMPLETED)
                        self._tenure.keep()
                        self._count(ready_batches, progress)
                while self._under_way:
                    ready_batches, _ = wait(self._under_way, _LONGEST_REST)
                    self._tenure.keep()
                    self._count(ready_batches, progress)
            finally:
                ready_batches, _ = wait(self._under_way)
                self._count(ready_batches, progress)

    def _keep_pace(self) -> None:
        self._tenure.keep()
        self._pace.keep(self._tenure.keep)

    def _type_for(self, type_name: str) -> str:
        types = {self._alive[each.object_id].type for each in self._known_records.values() if each.size >= 0}
        if type_name and types - {type_name}:
            raise WrongValue(
                f"Files of this folder were imported with the type {min(types - {type_name})!r}, and an object keeps "
                f"its type: leave out the type {type_name!r}, or first remove the documents imported before."
            )
        return type_name or (types.pop() if len(types) == 1 else _DOCUMENT)

    def _apply_options(self) -> None:
        """Give this ACL to all imported objects that have the cabinet's, the cabinet last; then rename it."""
        former = self._former("", is_folder=True)
        if former is None:
            return
        cabinet = self._alive[former.object_id]
        principals = self._view.principals
        if self._acl:
            with self._database.read() as cx:
                acl_id = acls.find_assignable(cx, self._repository.id, self._acl, principals)
            every_version = (each for versions in self._versions.values() for each in versions)
            carrying = [each.id for each in every_version if each.acl_id == cabinet.acl_id]
            carrying.sort(key=lambda object_id: object_id == cabinet.id)
            for some in portions(carrying if acl_id != cabinet.acl_id else (), _BATCH_FILES):
                self._keep_pace()
                with self._database.begin() as cx:
                    for object_id in some:
                        assigned_acls.assign(cx, self._repository, principals, object_id, self._acl, self._clock())
                        self.report.reassigned += 1
        if self._cabinet and cabinet.name != _object_name(self._cabinet):
            with self._database.begin() as cx:
                name: dict[str, Given] = {"object_name": _object_name(self._cabinet)}
                objects.change(cx, self._view, cabinet.id, name, self._clock())

    def _compare(self) -> Differences:
        if not self._mirrors or not self._known_records:
            return Differences()
        listing = self._tree.contents()
        for path, _reason in listing.unreadable:
            self._fail(path, "cannot be read, so nothing was moved or deleted")
        if listing.unreadable:
            return Differences()
        differences = compare(listing, self._known_records, self._alive, self._tree.digest)
        if len(differences.files) * 2 > differences.files_before and not self._deletes_most:
            self.report.withheld = len(differences.files)
            return Differences(moved=differences.moved)
        return differences

    def _delete(self, differences: Differences) -> None:
        """Keep objects with content, versions or members that no import made."""
        is_later = bool(self._not_moved_yet)  # a file that is yet to move keeps its former folder
        for former in (*differences.files, *differences.folders):
            self._keep_pace()
            try:
                self._delete_one(former)
            except Busy as busy:
                is_later = True
                self._fail(former.stored.name, str(busy))
            except Refusal as refusal:
                is_later = is_later or isinstance(refusal, CheckedOut)
                if not is_later:
                    # From now on the object is not this import's any more, so that this is said once.
                    with self._database.begin() as cx:
                        self._forget(cx, former)
                self._fail(former.stored.name, f"is gone from the folder, but its object stays: {refusal.sentence}")

    def _forget(self, cx: Connection, former: FormerFile) -> None:
        record.forget(cx, self._repository.id, self._source, former.key, former.record.object_id)

    def _delete_one(self, former: FormerFile) -> None:
        with self._database.begin() as cx:
            self._forget(cx, former)
            current, who, days = self._current(cx, former.record), self._view.principals, self._options.wastebasket_days
            stored = objects.lock_to_delete(cx, self._repository, who, current, "object", None)
            if former.record.digest and stored.content and stored.content.sha256.hex() != former.record.digest:
                raise InUse("Its content was changed in the repository.")
            if stored.version.chronicle_id is not None:
                raise InUse("It has versions that no import made.")
            gone = objects.delete(cx, self._repository, who, current, self._clock(), keep_days=days)
        for key in gone.freed:
            self._store.remove(key)
        self.report.deleted += former.record.size >= 0

    def _move(self, path: str, former: FormerFile) -> None:
        name = _object_name(os.path.basename(path))
        changes: dict[str, Given] = {} if name == former.stored.name else {"object_name": name}
        if former.record.size >= 0 and media_type_of(path) != media_type_of(former.stored.name):
            changes["a_content_type"] = media_type_of(path)
        above, now = self._ids[os.path.dirname(path)], self._clock()
        with self._database.begin() as cx:
            object_id = self._current(cx, former.record)
            stored, _ = objects.read(cx, self._repository, object_id, self._view.principals, lock=True)
            if stored.folder_id is None:
                moving.link(cx, self._view, object_id, above, now)
            elif above not in stored.folder_ids:
                moving.move(cx, self._view, object_id, stored.folder_id, above, now)
            if changes:
                objects.change(cx, self._view, object_id, changes, now)
            self._forget(cx, former)
            self._keep(cx, {path: former.record})
        self._not_moved_yet.discard(path)

    def _count(self, ready_batches: set[Future[list[_Result]]], progress: Callable[[], None]) -> None:
        for batch in ready_batches:
            del self._under_way[batch]
        for result in (result for batch in ready_batches for result in batch.result()):
            self.report.add(printable(result.path), result.outcome, result.object_id)
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
            self._ids[path] = self._container(path, self._cabinet or self._default_cabinet, None)
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

    def _former(self, path: str, *, is_folder: bool = False) -> ImportRecord | None:
        """Return None if a file has become a folder, or the reverse."""
        known = self._known_records.get(record.key(path))
        return known if known is not None and (known.size < 0) == is_folder else None

    def _fail(self, path: str, reason: str) -> None:
        self.report.failed.append((printable(path), reason))

    def _container(self, path: str, name: str, parent: str | None) -> str:
        former = self._former(path, is_folder=True)
        if former is not None:
            return former.object_id
        if path in self._moved_files:
            self._move(path, self._moved_files[path])
            return self._moved_files[path].record.object_id
        properties: dict[str, str] = {"object_name": _object_name(name)}
        if parent is None:
            properties["acl_name"] = self._acl or _PRIVATE
        with self._database.begin() as cx:
            kind = "folder" if parent else "cabinet"
            container = creation.create(cx, self._view, kind, properties, parent, None, self._clock())
            record.keep_records(cx, self._repository.id, self._source, {path: ImportRecord(container.id)})
        return container.id

    def _import(self, batch: list[SourceFile]) -> list[_Result]:
        new: list[SourceFile] = []
        single_files: list[SourceFile] = []
        for file in batch:
            (
                single_files
                if file.content is None or file.path in self._moved_files or self._former(file.path)
                else new
            ).append(file)
        return [self._import_one(file) for file in single_files] + self._make_all(new)

    def _make_all(self, files: list[SourceFile]) -> list[_Result]:
        """Make objects in one transaction; if one cannot be made, the others still are."""
        if not files:
            return []
        try:
            contents = self._store.put_all([file.content or b"" for file in files])
            return self._make(files, contents)
        except Busy as busy:
            return [_Result(file.path, str(busy), "") for file in files]
        except (Refusal, OSError) as error:
            if len(files) == 1:
                return [_Result(files[0].path, reason_of(error), "")]
        half = len(files) // 2
        return self._make_all(files[:half]) + self._make_all(files[half:])

    def _import_one(self, file: SourceFile) -> _Result:
        try:
            return self._store_one(file)
        except (Refusal, Busy, OSError) as error:
            return _Result(file.path, reason_of(error), "")
        finally:
            file.close()

    def _store_one(self, file: SourceFile) -> _Result:
        former = self._former(file.path)
        if former is not None and file.handle < 0 and file.content is None:
            return _Result(file.path, "unchanged", self._alive[former.object_id].id)
        if former is not None and former.size == file.size and file.digest() == former.digest:
            with self._database.begin() as cx:
                self._date(cx, file, former)
                self._keep(cx, {file.path: ImportRecord(former.object_id, file.size, file.modified, former.digest)})
            return _Result(file.path, "unchanged", self._alive[former.object_id].id)
        if former is None and file.path in self._moved_files:
            self._move(file.path, self._moved_files[file.path])
            return _Result(file.path, "moved", self._moved_files[file.path].stored.id)
        content = self._store.put(file.pieces())
        if former is None:
            return self._make([file], [content])[0]
        return self._replace(file, former, content)

    def _make(self, files: list[SourceFile], contents: list[StoredContent]) -> list[_Result]:
        new_objects = [self._new(file, content) for file, content in zip(files, contents, strict=True)]
        try:
            with self._database.begin() as cx:
                created = creation.create_all(cx, self._view, new_objects, self._clock())
                self._keep(
                    cx,
                    {
                        file.path: _record_of(file, stored.id, stored.content)
                        for file, stored in zip(files, created, strict=True)
                    },
                )
        except BaseException as error:
            for content in contents if is_undone(error) else ():
                self._store.remove(content.key)
            raise
        content_references.drop_spares(self._database, self._store, contents, [stored.content for stored in created])
        return [_Result(file.path, "made", stored.id) for file, stored in zip(files, created, strict=True)]

    def _new(self, file: SourceFile, content: StoredContent) -> NewObject:
        name, media_type = _object_name(os.path.basename(file.path)), media_type_of(file.path, file.head)
        properties = {"object_name": name, "a_content_type": media_type, "a_content_date": timestamp(file.date)}
        acl = self._acl_for(file.path)
        if acl is not None:
            properties["acl_name"] = acl
        plain_text = plain.read(file.content or b"", printable(name), media_type, self._options.extraction_characters)
        text = ExtractedText(plain_text.text, plain_text.note) if plain_text else None
        return NewObject(self._type_name, properties, self._ids[os.path.dirname(file.path)], content, text)

    def _current(self, cx: Connection, import_record: ImportRecord) -> str:
        versions = inventory.versions(cx, self._repository.id, [import_record.object_id])
        return versions[import_record.object_id][0].id if versions else import_record.object_id

    def _date(self, cx: Connection, file: SourceFile, former: ImportRecord) -> None:
        """Give a document its file's new date, unless somebody has replaced its content."""
        stored, _ = objects.read(cx, self._repository, self._current(cx, former), self._view.principals)
        if stored.content and stored.content.sha256.hex() == former.digest and stored.content_date != file.date:
            objects.change(cx, self._view, stored.id, {"a_content_date": timestamp(file.date)}, self._clock())

    def _replace(self, file: SourceFile, former: ImportRecord, content: StoredContent) -> _Result:
        try:
            with self._database.begin() as cx:
                object_id = self._current(cx, former)
                stored = objects.replace_content(
                    cx,
                    self._repository,
                    self._view.principals,
                    object_id,
                    content,
                    media_type_of(file.path, file.head),
                    self._clock(),
                    content_date=file.date,
                )
                self._keep(cx, {file.path: _record_of(file, former.object_id, content)})
        except BaseException as error:
            if is_undone(error):
                self._store.remove(content.key)
            raise
        content_references.drop_spares(self._database, self._store, [content], [stored.content])
        for key in stored.freed:
            self._store.remove(key)
        return _Result(file.path, "replaced", object_id)

    def _is_far(self, cx: Connection, repository_id: int, position: Position) -> bool:
        coming = sum(files for batch, files in self._under_way.items() if not batch.done())
        if not changes.are_more_than(cx, repository_id, position, max(0, _AHEAD - coming)):
            return False
        noted_at = changes.waiting_since(cx, repository_id, position)
        waits_long = noted_at is not None and self._clock() - noted_at > _LONGEST_WAIT
        return waits_long or changes.are_more_than(cx, repository_id, position, max(0, _MOST_AHEAD - coming))

    def _keep(self, cx: Connection, records: Mapping[str, ImportRecord]) -> None:
        record.keep_records(cx, self._repository.id, self._source, records)


def _record_of(file: SourceFile, object_id: str, content: StoredContent | None) -> ImportRecord:
    return ImportRecord(object_id, file.size, file.modified, content.sha256.hex() if content else "")


def _object_name(name: str) -> str:
    return without_reordering(printable(name))[: object_types.MAX_NAME]
