"""How does all content get from one content store to the other?

A content keeps its key, so no row changes. A copy is noted in a file once it was read back with the right digest; a
killed transfer goes on there. What is written during a pass is left to the next; the last runs while nobody writes, and
finds nothing (decision 0070).
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from muniment.database.connections import Database
from muniment.ground import disk
from muniment.repository.refusals import ContentDamaged, InUse
from muniment.repository.store.content.contract import ContentStore, StoredContent
from muniment.repository.store.objects.contents import stored_contents

_PAGE_SIZE = 500
_AT_ONE_TIME = 8
_NOTED_AT_A_TIME = 64
_EVER = 2**60


class TransferOutcome(Enum):
    """The outcome for one content in a pass."""

    THERE = "there"
    """It was noted before, or ``verify_all`` has found it."""
    COPIED = "copied"
    GONE = "gone"
    DAMAGED = "damaged"


class TransferStep(NamedTuple):
    """One content of a pass, and the outcome."""

    content: StoredContent
    outcome: TransferOutcome


class TransferRecord:
    """The contents verified in one new place."""

    def __init__(self, file: Path, place: str) -> None:
        self._file = file
        self._head = json.dumps({"to": place})
        self._keys = set[bytes]()
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Forget the lines of a transfer to another place."""
        with suppress(FileNotFoundError):
            head, *lines = self._file.read_text("ascii", "replace").split("\n")
            if head == self._head:
                # The last line may be half a key, when the transfer was killed.
                self._keys = {bytes.fromhex(line) for line in lines[:-1] if _is_key(line)}
        lines = [self._head, *sorted(key.hex() for key in self._keys), ""]
        disk.replace(self._file, "\n".join(lines).encode())
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def has(self, key: str) -> bool:
        return bytes.fromhex(key) in self._keys

    def note(self, keys: list[str]) -> None:
        """Wait until the notes are on the disk."""
        if keys and self._descriptor is not None:
            os.write(self._descriptor, "".join(f"{key}\n" for key in keys).encode())
            os.fdatasync(self._descriptor)
            self._keys.update(map(bytes.fromhex, keys))

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)


def copy_all(
    database: Database, source: ContentStore, target: ContentStore, record: TransferRecord, sync: Callable[[], None]
) -> Iterator[TransferStep]:
    """Copy what rows name and ``record`` has not.

    ``sync`` makes sure that the copies survive a power cut.

    Raises NotStored, Busy, OSError.
    """
    contents = _every(database)
    with ThreadPoolExecutor(_AT_ONE_TIME) as threads:

        def copy(content: StoredContent) -> TransferStep:
            return TransferStep(content, _copy(database, source, target, content))

        while portion := list(islice(contents, _NOTED_AT_A_TIME)):
            new_contents = list[StoredContent]()
            for content in portion:
                if record.has(content.key):
                    yield TransferStep(content, TransferOutcome.THERE)
                else:
                    new_contents.append(content)
            steps = list(threads.map(copy, new_contents))
            copied = [step.content.key for step in steps if step.outcome == TransferOutcome.COPIED]
            if copied:
                sync()
                record.note(copied)
            yield from steps


def verify_all(database: Database, target: ContentStore, record: TransferRecord) -> Iterator[TransferStep]:
    """Look for contents in the new place: by size if noted, else by digest. Yield THERE or DAMAGED."""
    with ThreadPoolExecutor(_AT_ONE_TIME) as threads:

        def look(content: StoredContent) -> TransferStep:
            good = _has(target, content) if record.has(content.key) else target.verify(content.key, content.sha256)
            return TransferStep(content, TransferOutcome.THERE if good else TransferOutcome.DAMAGED)

        contents = _every(database)
        while portion := list(islice(contents, _PAGE_SIZE)):
            yield from threads.map(look, portion)


def clear(source: ContentStore) -> Iterator[str]:
    """Remove everything, and yield a key for each pack and each other content. Raises InUse while a backup reads the
    store.
    """
    for key in source.older_than(_EVER):
        if not source.remove(key):
            raise InUse("Content cannot be removed now, because a backup reads it: try again when the backup is made.")
        yield key
    for pack in source.packs(_EVER):
        if not source.drop(pack):
            raise InUse("Content cannot be removed now, because a backup reads it: try again when the backup is made.")
        yield pack.first


def _copy(database: Database, source: ContentStore, target: ContentStore, content: StoredContent) -> TransferOutcome:
    try:
        is_intact = target.adopt(content, source.read(content))
    except FileExistsError:  # a transfer was killed while it copied this content, or before it noted it
        target.remove(content.key)
        is_intact = target.adopt(content, source.read(content))
    if is_intact and target.verify(content.key, content.sha256):
        return TransferOutcome.COPIED
    with database.read() as cx:
        is_wanted = content.key in stored_contents.used_keys(cx, [content.key])
    return TransferOutcome.DAMAGED if is_wanted else TransferOutcome.GONE


def _has(store: ContentStore, content: StoredContent) -> bool:
    try:
        list(store.read(content, content.size, 0))
    except ContentDamaged:
        return False
    return True


def _every(database: Database) -> Iterator[StoredContent]:
    last_key: str | None = ""
    while last_key is not None:
        with database.read() as cx:
            page = stored_contents.stored_content_page(cx, last_key, _PAGE_SIZE)
        yield from page
        last_key = page[-1].key if page else None


def _is_key(line: str) -> bool:
    return len(line) == 32 and all(character in "0123456789abcdef" for character in line)
