"""What does an import fill?"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.ground.caches import Cache
from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal
from muniment.repository.bulk.exports import content_files, lines
from muniment.repository.bulk.exports.naming import BearerKeys
from muniment.repository.bulk.exports.records import ContentOfLine, ExportLine, ObjectLine
from muniment.repository.refusals import BadExport, VersionConflict
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.repositories import Repository

_SMALL = 65_536

_AT_ONE_TIME = 8
_REMEMBERED = 50_000


class ContentArrivals:
    """Brings contents into the store, and remembers those that rows name already."""

    def __init__(self, store: ContentStore, folder: Path) -> None:
        self.store = store
        self._folder = folder
        self._known: Cache[str, StoredContent] = Cache(_REMEMBERED)
        self._uploaded: dict[str, StoredContent] = {}

    def upload(self, some: Sequence[ExportLine]) -> list[StoredContent]:
        """Store the contents of some lines, except remembered ones.

        Raises NotStored, and BadExport if bytes are not those of the line, after removing the new contents again.
        """
        new = {
            content.sha256: content
            for line in some
            if isinstance(line, ObjectLine)
            for content in line.contents
            if self._known.recall(content.sha256) is None
        }
        self._uploaded = {}
        small = [content for content in new.values() if content.size <= _SMALL]
        large = [content for content in new.values() if content.size > _SMALL]
        try:
            put = self.store.put_all([b"".join(self._read(content)) for content in small]) if small else []
            self._uploaded.update((each.sha256.hex(), each) for each in put)
            with ThreadPoolExecutor(_AT_ONE_TIME) as threads:
                for each in threads.map(lambda content: self.store.put(self._read(content)), large):
                    self._uploaded[each.sha256.hex()] = each
        except Refusal:
            self.remove(list(self._uploaded.values()))
            raise
        return list(self._uploaded.values())

    def of(self, content: ContentOfLine) -> StoredContent:
        return self._known.recall(content.sha256) or self._uploaded[content.sha256]

    def shared(self, some: Sequence[ObjectLine]) -> set[str]:
        """Return the keys of contents that rows are known to name already."""
        contents = (content for line in some for content in line.contents)
        return {known.key for content in contents if (known := self._known.recall(content.sha256)) is not None}

    def remember(self, named: Sequence[StoredContent]) -> None:
        for each in named:
            self._known.keep(each.sha256.hex(), each)

    def forget(self) -> None:
        """Forget when one of them may be gone, or may have another key."""
        self._known = Cache(_REMEMBERED)

    def remove(self, uploaded: Sequence[StoredContent]) -> None:
        """Remove contents that no row names. The sweep or the compaction removes what cannot go now."""
        for content in uploaded:
            self.store.remove(content.key)

    def _read(self, content: ContentOfLine) -> Iterator[bytes]:
        return content_files.read(self._folder, content.sha256, content.size)


class Destination(msgspec.Struct, frozen=True):
    """The repository, its keys of users and groups, and its contents."""

    repository: Repository
    bearers: BearerKeys
    contents: ContentArrivals


Stage: TypeAlias = Callable[
    [Connection, Destination, Sequence[ExportLine], int, Instant], Sequence[StoredContent] | None
]
"""Turns lines of a file, after so many others, into rows; returns the contents that these name.

Raises BadExport, VersionConflict.
"""


@contextmanager
def about(file: str, first: int, last: int | None = None) -> Iterator[None]:
    """Turn a refusal in the block, or an IntegrityError, into a BadExport that names the lines. VersionConflict and
    BadExport pass through.
    """
    place = f"{file}, line {first}" if last in (None, first) else f"{file}, lines {first} to {last}"
    try:
        yield
    except (VersionConflict, BadExport):
        raise
    except Refusal as refusal:
        raise BadExport(f"{place}: {refusal.sentence}") from refusal
    except IntegrityError as error:
        raise BadExport(
            f"{place}: an id is there twice, or belongs to something in this installation already. Is the exported "
            "repository still here?"
        ) from error


def refuse_dangling(file: str, number: int, what: str, reference: str) -> BadExport:
    return lines.bad_line(file, number, f"it refers to {what} {reference!r}, which the export does not hold before it")
