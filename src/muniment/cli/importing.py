"""A folder of files becomes a cabinet of documents: several at once, resumable, nothing followed out of the folder."""

import hashlib
import mimetypes
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment import app
from muniment.cli.opened import Opened
from muniment.db import Busy, Database
from muniment.repository import imports, metadata, object_types, objects
from muniment.repository.acls import Principals
from muniment.repository.content import ContentStore, StoredContent
from muniment.repository.imports import Imported
from muniment.repository.object_types import Catalogue
from muniment.repository.repositories import Repository
from muniment.web.refusals import Refusal

_PIECE = 1024 * 1024
_UNKNOWN = "application/octet-stream"
_TYPES = {".md": "text/markdown", ".log": "text/plain", ".rst": "text/x-rst", ".eml": "message/rfc822"}

AclFor = Callable[[str], str | None]
"""Names the ACL of the document at a relative path; None = its folder's."""


class Report(msgspec.Struct):
    """What an import did. ``kept`` are the objects of all files, imported now or before."""

    made: int = 0
    replaced: int = 0
    unchanged: int = 0
    links: int = 0
    failed: list[tuple[str, str]] = []
    kept: list[str] = []

    @property
    def files(self) -> int:
        """Files that are in the repository now."""
        return self.made + self.replaced + self.unchanged


class _File(NamedTuple):
    path: str
    folder_id: str
    handle: int
    size: int
    modified: int


class _Done(NamedTuple):
    path: str
    outcome: str
    object_id: str


class Import:
    """One import of one folder. ``limit`` bounds the number of files, ``limit_bytes`` their sizes together."""

    def __init__(
        self,
        opened: Opened,
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
        self._opened = opened
        self._database = database
        self._repository = repository
        self._folder = folder.resolve()
        self._source = str(self._folder)
        self._principals = principals
        self._cabinet = cabinet or self._folder.name or "root"
        self._acl = acl
        self._acl_for = acl_for
        self._accept = accept
        self._type_name = type_name
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._checksums = checksums
        self._store = ContentStore(opened.installation.content)
        self._largest = opened.settings.repository.max_content_bytes
        self.report = Report()
        with database.read() as cx:
            self._catalogue: Catalogue = object_types.catalogue(cx, repository.id)
            known = imports.known(cx, repository.id, self._source)
            alive = objects.rows(cx, repository.id, {one.object_id for one in known.values()})
        self._known = {path: one for path, one in known.items() if one.object_id in alive}

    def run(self, threads: int, progress: Callable[[], None] = lambda: None) -> Report:
        """Import what is new and replace what has changed, ``threads`` files at one time."""
        under_way: set[Future[_Done]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="import") as pool:
            try:
                for file in self._files():
                    under_way.add(pool.submit(self._import, file))
                    if len(under_way) >= threads * 4:
                        finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                        self._count(finished, progress)
            finally:
                finished, _ = wait(under_way)
                self._count(finished, progress)
        return self.report

    def _count(self, finished: set[Future[_Done]], progress: Callable[[], None]) -> None:
        for one in finished:
            done = one.result()
            if done.object_id:
                self.report.kept.append(done.object_id)
            match done.outcome:
                case "made":
                    self.report.made += 1
                case "replaced":
                    self.report.replaced += 1
                case "unchanged":
                    self.report.unchanged += 1
                case reason:
                    self.report.failed.append((_printable(done.path), reason))
            progress()

    def _files(self) -> Iterator[_File]:
        ids: dict[str, str] = {"": self._container("", self._cabinet, None)}
        seen, seen_bytes = 0, 0
        for root, folders, names, handle in os.fwalk(self._folder, follow_symlinks=False):
            here = os.path.relpath(root, self._folder)
            here = "" if here == "." else here
            if here not in ids:
                folders.clear()
                continue
            for name in sorted(folders):
                if stat.S_ISLNK(os.lstat(name, dir_fd=handle).st_mode):
                    self.report.links += 1
                    continue
                path = os.path.join(here, name)
                try:
                    ids[path] = self._container(path, name, ids[here])
                except Refusal as refusal:
                    self.report.failed.append((_printable(path), refusal.sentence))
            folders[:] = sorted(name for name in folders if os.path.join(here, name) in ids)
            for name in sorted(names):
                if not self._accept(os.path.join(here, name)):
                    continue
                file = self._opened_file(os.path.join(here, name), name, ids[here], handle)
                if file is None:
                    continue
                seen, seen_bytes = seen + 1, seen_bytes + file.size
                if (self._limit is not None and seen > self._limit) or (
                    self._limit_bytes is not None and seen_bytes > self._limit_bytes
                ):
                    os.close(file.handle)
                    return
                yield file

    def _opened_file(self, path: str, name: str, folder_id: str, handle: int) -> _File | None:
        try:
            if stat.S_ISLNK(os.lstat(name, dir_fd=handle).st_mode):
                self.report.links += 1
                return None
            # Without blocking: a named pipe would wait for a writer for ever.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
        except OSError as error:
            self.report.failed.append((_printable(path), f"cannot be read: {error.strerror}"))
            return None
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > self._largest:
            os.close(file)
            reason = "not a regular file" if not stat.S_ISREG(about.st_mode) else "larger than max_content_bytes allows"
            self.report.failed.append((_printable(path), reason))
            return None
        return _File(path, folder_id, file, about.st_size, about.st_mtime_ns)

    def _container(self, path: str, name: str, parent: str | None) -> str:
        known = self._known.get(imports.key(path))
        if known is not None:
            return known.object_id
        given: dict[str, str] = {"object_name": _object_name(name)}
        if parent is None and self._acl:
            given["acl_name"] = self._acl
        with self._database.begin() as cx:
            made = objects.create(
                cx,
                self._repository,
                self._catalogue,
                self._principals,
                "folder" if parent else "cabinet",
                given,
                parent,
                None,
                app.now(),
            )
            imports.keep(cx, self._repository.id, self._source, path, Imported(made.id))
        return made.id

    def _import(self, file: _File) -> _Done:
        try:
            with os.fdopen(file.handle, "rb", buffering=0) as opened:
                return self._imported(file, opened.fileno())
        except Refusal as refusal:
            return _Done(file.path, refusal.sentence, "")
        except Busy as busy:
            return _Done(file.path, str(busy), "")
        except OSError as error:
            return _Done(file.path, f"cannot be read: {error.strerror}", "")

    def _imported(self, file: _File, handle: int) -> _Done:
        known = self._known.get(imports.key(file.path))
        if known is not None and not self._checksums and (known.size, known.modified) == (file.size, file.modified):
            return _Done(file.path, "unchanged", known.object_id)
        if known is not None and known.size == file.size and _digest(handle) == known.digest:
            self._note(file, known.object_id, known.digest)
            return _Done(file.path, "unchanged", known.object_id)
        os.lseek(handle, 0, os.SEEK_SET)
        content = self._store.put(_pieces(handle))
        try:
            if known is not None:
                return self._replace(file, known.object_id, content)
            return self._make(file, content)
        except BaseException:
            self._store.remove(content.key)
            raise

    def _make(self, file: _File, content: StoredContent) -> _Done:
        given = {"object_name": _object_name(os.path.basename(file.path)), "a_content_type": _media_type(file.path)}
        acl = self._acl_for(file.path)
        if acl is not None:
            given["acl_name"] = acl
        with self._database.begin() as cx:
            made = objects.create(
                cx,
                self._repository,
                self._catalogue,
                self._principals,
                self._type_name,
                given,
                file.folder_id,
                content,
                app.now(),
            )
            self._keep(cx, file, made.id, content.sha256.hex())
        return _Done(file.path, "made", made.id)

    def _replace(self, file: _File, object_id: str, content: StoredContent) -> _Done:
        with self._database.begin() as cx:
            _, former = objects.replace_content(
                cx, self._repository, self._principals, object_id, content, _media_type(file.path), app.now()
            )
            self._keep(cx, file, object_id, content.sha256.hex())
        if former is not None:
            self._store.remove(former.key)
        return _Done(file.path, "replaced", object_id)

    def _note(self, file: _File, object_id: str, digest: str) -> None:
        with self._database.begin() as cx:
            self._keep(cx, file, object_id, digest)

    def _keep(self, cx: Connection, file: _File, object_id: str, digest: str) -> None:
        imported = Imported(object_id, file.size, file.modified, digest)
        imports.keep(cx, self._repository.id, self._source, file.path, imported)


def _pieces(handle: int) -> Iterator[bytes]:
    while piece := os.read(handle, _PIECE):
        yield piece


def _digest(handle: int) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(handle):
        digest.update(piece)
    return digest.hexdigest()


def _media_type(path: str) -> str:
    guessed, packed = mimetypes.guess_type(_printable(path), strict=False)
    if packed == "gzip":
        return "application/gzip"
    if packed:
        return _UNKNOWN
    return _TYPES.get(os.path.splitext(path)[1].lower()) or guessed or _UNKNOWN


def _object_name(name: str) -> str:
    return _printable(name)[: metadata.MAX_NAME]


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
