"""The embedded index: one repository's documents in a folder, kept by Tantivy."""

import os
import threading
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec
import tantivy

from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import OtherFormat, Snapshot
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import failures, fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.snapshot import TantivySnapshot
from muniment.repository.refusals import IndexUnavailable

_ABOUT = "muniment.json"
_HEAP = 128_000_000


class _About(msgspec.Struct, frozen=True):
    """What an index was made with; a reader of something else would find the wrong things."""

    format: int
    language: str


class TantivyIndex:
    """An index folder, open for reading; it follows every commit, also when another folder takes its place."""

    def __init__(self, folder: Path, language: str = "English") -> None:
        self._folder = folder
        self._analyser = Analyser(language)
        self._schema = fields.schema()
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        self._format = fields.FORMAT
        self._place: tuple[int, int] | None = None
        self._commit: tuple[int, int] | None = None
        self._snapshot: TantivySnapshot | None = None

    def snapshot(self) -> Snapshot:
        """Take the newest commit. Raises IndexUnavailable when there is none, or one of another language or format."""
        with self._lock, failures.refused("the index could not be opened"):
            index = self._current()
            if self._snapshot is None:
                self._snapshot = TantivySnapshot(
                    index, index.searcher(), self._schema, self._analyser, dated=self._format >= fields.DATED
                )
            return self._snapshot

    def close(self) -> None:
        """Close the files; snapshots that were taken keep theirs."""
        with self._lock:
            self._index = self._snapshot = None

    def _current(self) -> tantivy.Index:
        try:
            place, commit = _mark(self._folder), _mark(self._folder / "meta.json")
        except FileNotFoundError as missing:
            raise IndexUnavailable(
                "The repository has no index yet: the index agent has not been started."
            ) from missing
        if self._index is None or place != self._place:
            self._index, self._snapshot = self._readable(), None
        elif commit != self._commit:
            self._index.reload()
            self._snapshot = None
        self._place, self._commit = place, commit
        return self._index

    def _readable(self) -> tantivy.Index:
        try:
            index, self._format = _opened(self._folder, self._analyser, fields.READABLE)
        except OtherFormat as error:
            raise IndexUnavailable(f"{error} The index agent makes a new one.") from error
        return index


class TantivyWriter:
    """An index folder, open for writing; made when there is none.

    Raises IndexUnavailable when another process is writing to it or it is of another language, OtherFormat when it is
    of another format.
    """

    def __init__(self, folder: Path, language: str = "English") -> None:
        self._folder = folder
        self._analyser = Analyser(language)
        self._schema = fields.schema()
        with failures.refused("the index could not be opened for writing"):
            _prepare(folder, self._schema, language)
            # Not kept: what can be read of it now, merges will have replaced, and it would hold on to those files.
            index, _ = _opened(folder, self._analyser, {fields.FORMAT})
            self._writer: tantivy.IndexWriter | None = index.writer(_HEAP, 1)
            self._begin()
            self._position = fields.read_position(index.searcher(), self._schema)

    @property
    def position(self) -> Position:
        """The position of the last commit; START for a new index."""
        return self._position

    def apply(self, documents: Iterable[Document], gone: Collection[str], position: Position) -> None:
        """Replace these documents, drop those gone, and move to the position: all in one commit, or nothing.

        Raises IndexUnavailable when the engine fails, OSError when that is because its disk is full or takes nothing;
        the writer is then of no more use and must be closed.
        """
        writer = self._writing()
        try:
            with failures.refused("the index could not be written"):
                for key in gone:
                    writer.delete_documents_by_term(fields.KEY, key)
                for document in documents:
                    writer.delete_documents_by_term(fields.KEY, document.key)
                    writer.add_document(fields.to_tantivy(document, self._schema))
                writer.delete_documents_by_term(fields.KEY, fields.POSITION)
                writer.add_document(fields.position_document(position, self._schema))
                writer.commit()
        except BaseException:
            failures.check_room(self._folder)
            with failures.refused("the index could not be taken back to its last commit"):
                writer.rollback()
                self._begin()
            raise
        self._position = position

    def close(self) -> None:
        """Finish merges and let the lock go."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with failures.refused("the index's merges could not be finished"):
                writer.wait_merging_threads()

    def _begin(self) -> None:
        # A new writer's first operation bears the stamp of the last commit, and a merge may then lose it: let it be
        # one that nobody misses.
        self._writing().delete_documents_by_term(fields.KEY, fields.NOTHING)

    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise IndexUnavailable("The index has been closed.")
        return self._writer


def _opened(folder: Path, analyser: Analyser, formats: Collection[int]) -> tuple[tantivy.Index, int]:
    try:
        about = msgspec.json.decode((folder / _ABOUT).read_bytes(), type=_About)
    except (FileNotFoundError, msgspec.DecodeError) as error:
        raise IndexUnavailable("The repository's index is not whole: run 'muniment index rebuild'.") from error
    if about.format not in formats:
        raise OtherFormat(f"The repository's index is of format {about.format}, made by another release.")
    if about.language != analyser.language:
        raise IndexUnavailable(
            f"The repository's index was made for {about.language}, the settings ask for {analyser.language}: "
            "run 'muniment index rebuild'."
        )
    index = tantivy.Index.open(str(folder))
    index.config_reader("manual")
    fields.register(index, analyser)
    index.reload()
    return index, about.format


def _prepare(folder: Path, schema: tantivy.Schema, language: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / "meta.json").exists():
        return
    (folder / _ABOUT).write_bytes(msgspec.json.encode(_About(fields.FORMAT, language)))
    tantivy.Index(schema, str(folder))


def _mark(path: Path) -> tuple[int, int]:
    seen = os.stat(path)
    return seen.st_ino, seen.st_mtime_ns if path.name == "meta.json" else seen.st_dev
