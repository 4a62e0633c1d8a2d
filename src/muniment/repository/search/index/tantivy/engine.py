"""The embedded index: Tantivy stores one repository's documents in a folder."""

import os
import threading
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec
import tantivy

from muniment.ground import disk
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.analysis import compounds, languages
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.compounds import Compounds
from muniment.repository.search.index.contract import OtherFormat, Snapshot
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.answering import SnapshotCache
from muniment.repository.search.index.tantivy import failures, fields
from muniment.repository.search.index.tantivy.snapshot import TantivySnapshot
from muniment.repository.store.change_log.changes import Position

_ABOUT = "muniment.json"
_HEAP = 128_000_000


class _About(msgspec.Struct, frozen=True):
    """The format and languages of an index; ``compounds`` is the version of the rules, or 0."""

    format: int
    language: str
    others: tuple[str, ...] = ()
    compounds: int = 0

    @property
    def languages(self) -> str:
        return " and ".join((self.language, *self.others))


class TantivyIndex:
    """A folder, open for reading (an Index): the newest commit, even after another folder has replaced it. Searches use
    the language of the index.
    """

    def __init__(self, folder: Path, stop_words: Collection[str] = ()) -> None:
        self._folder = folder
        self._stop_words = stop_words
        self._analyser = Analyser(stop_words=stop_words)
        self._memory = SnapshotCache()
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        self._place: tuple[int, int] | None = None
        self._commit: tuple[int, int] | None = None
        self._snapshot: TantivySnapshot | None = None

    def snapshot(self) -> Snapshot:
        """Raises IndexUnavailable if none exists or the index cannot be read."""
        with self._lock, failures.as_refusals("the index could not be opened"):
            index = self._current()
            if self._snapshot is None:
                self._snapshot = TantivySnapshot(index, index.searcher(), self._analyser, self._memory)
            return self._snapshot

    def close(self) -> None:
        """A snapshot that was taken before keeps its files open."""
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
            self._index, self._snapshot, self._memory = self._open(), None, SnapshotCache()
        elif commit != self._commit:
            self._index.reload()
            self._snapshot = None
        self._place, self._commit = place, commit
        return self._index

    def _open(self) -> tantivy.Index:
        try:
            about = _read_about(self._folder)
        except OtherFormat as error:
            raise IndexUnavailable(f"{error} The index agent makes a new one.") from error
        self._analyser = Analyser(
            about.language,
            self._stop_words,
            others=about.others,
            compounds=_read_compounds(self._folder, about),
        )
        return _open_folder(self._folder, self._analyser)


class TantivyWriter:
    """A folder, open for writing (an IndexWriter), made if missing.

    ``others`` are further languages of texts. Raises IndexUnavailable, as while another process writes; OtherFormat for
    another format, other languages or older rules for compounds; DetectorMissing if there are ``others``, and languages
    cannot be detected; ValueError for an unknown language.
    """

    def __init__(self, folder: Path, language: str = "English", others: Collection[str] = ()) -> None:
        self._folder = folder
        others = Analyser(language, others=others).others
        if others:
            languages.check_detector()
        wanted = _About(fields.FORMAT, language, others, compounds.rules((language, *others)))
        with failures.as_refusals("the index could not be opened for writing"):
            _prepare(folder, wanted)
            # The writer does not keep the index open: its files would stay open after merges have replaced them.
            about = _read_about(folder)
            if (about.language, about.others) != (language, others):
                raise OtherFormat(
                    f"The repository's index is in {about.languages}, and its texts are in {wanted.languages} now."
                )
            if about.compounds < wanted.compounds:
                raise OtherFormat("The repository's index does not take compound words apart as this release does.")
            self._analyser = Analyser(language, others=others, compounds=_read_compounds(folder, about))
            index = _open_folder(folder, self._analyser)
            self._writer: tantivy.IndexWriter | None = index.writer(_HEAP, 1)
            self._begin()
            self._position = fields.read_position(index.searcher())

    @property
    def position(self) -> Position:
        return self._position

    def apply(self, documents: Iterable[Document], keys_to_remove: Collection[str], position: Position) -> None:
        writer = self._writing()
        try:
            with failures.as_refusals("the index could not be written"):
                for key in keys_to_remove:
                    writer.delete_documents_by_term(layout.KEY, key)
                for document in documents:
                    writer.delete_documents_by_term(layout.KEY, document.key)
                    writer.add_document(fields.to_tantivy(document, self._analyser))
                writer.delete_documents_by_term(layout.KEY, layout.POSITION)
                writer.add_document(fields.position_document(position))
                writer.commit()
        except BaseException:
            failures.check_room(self._folder)
            with failures.as_refusals("the index could not be taken back to its last commit"):
                writer.rollback()
                self._begin()
            raise
        self._position = position

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with failures.as_refusals("the index's merges could not be finished"):
                writer.wait_merging_threads()

    def _begin(self) -> None:
        # The first operation of a new writer has the stamp of the last commit, so a merge may lose it. Therefore the
        # first operation is one that changes nothing.
        self._writing().delete_documents_by_term(layout.KEY, fields.NOTHING)

    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise IndexUnavailable("The index has been closed.")
        return self._writer


def _read_about(folder: Path) -> _About:
    try:
        about = msgspec.json.decode((folder / _ABOUT).read_bytes(), type=_About)
    except (FileNotFoundError, msgspec.DecodeError) as error:
        raise IndexUnavailable("The repository's index is incomplete: run 'muniment index rebuild'.") from error
    if about.format != fields.FORMAT:
        raise OtherFormat(f"The repository's index is of format {about.format}, made by another release.")
    return about


def _open_folder(folder: Path, analyser: Analyser) -> tantivy.Index:
    index = tantivy.Index.open(str(folder))
    index.config_reader("manual")
    fields.register(index, analyser)
    index.reload()
    return index


def _prepare(folder: Path, about: _About) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / "meta.json").exists():
        return
    for language in _compound_languages(about):
        compounds.learn(language).write(_compounds_file(folder, language))
    disk.replace(folder / _ABOUT, msgspec.json.encode(about))
    tantivy.Index(fields.SCHEMA, str(folder))


def _read_compounds(folder: Path, about: _About) -> dict[str, Compounds]:
    try:
        return {language: Compounds.read(_compounds_file(folder, language)) for language in _compound_languages(about)}
    except (FileNotFoundError, msgspec.DecodeError) as error:
        raise IndexUnavailable("The repository's index is incomplete: run 'muniment index rebuild'.") from error


def _compound_languages(about: _About) -> list[str]:
    return [each for each in (about.language, *about.others) if about.compounds and each in compounds.CODES]


def _compounds_file(folder: Path, language: str) -> Path:
    return folder / f"compounds-{language}.json"


def _mark(path: Path) -> tuple[int, int]:
    """Numbers change if another folder takes the place, those of ``meta.json`` with each commit."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns if path.name == "meta.json" else status.st_dev
