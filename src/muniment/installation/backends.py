"""Open what an installation has beside its databases: indexes, a content store, a model of meaning, a Tika server."""

import hashlib
import threading
from typing import TYPE_CHECKING, Literal, get_args

from muniment.database.connections import Database, Half
from muniment.ground.clock import now
from muniment.ground.disk import Reserve
from muniment.installation.layout import Installation
from muniment.repository import keys
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.analysis.languages import LANGUAGES, check_detector
from muniment.repository.search.index.contract import Engine, Index
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.search.index.tantivy.generations import FolderEngine
from muniment.repository.search.meaning import model
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.content.files import NO_RESERVE, FileStore, Packing
from muniment.repository.store.content.removals import RemovalLock
from muniment.repository.store.content.s3.bucket import ContentBucket
from muniment.repository.store.content.s3.store import S3Store
from muniment.repository.store.extraction.tika.tika import TikaServer
from muniment.repository.store.repositories import Repository

if TYPE_CHECKING:  # Its libraries are an extra.
    from muniment.repository.search.meaning.nearness import Meaning

ContentKind = Literal["files", "s3"]


def reader(installation: Installation, repository: Repository) -> Index:
    """The open index switches to each new generation by itself."""
    return engine(installation).index(repository).reader()


def engine(installation: Installation) -> Engine:
    options = installation.settings.repository
    if options.index == "opensearch":
        # Its client reads certificates; an installation without it should not.
        from muniment.repository.search.index.opensearch.generations import OpenSearchEngine

        return OpenSearchEngine(
            installation.indexes,
            options.opensearch,
            _Lazy(installation.database_url("repository")).owner_of_indexes,
            now,
            language=options.language,
            others=options.languages,
            stop_words=options.stop_words,
        )
    return FolderEngine(
        installation.indexes,
        lambda folder, language: TantivyWriter(folder, language, options.languages),
        open_index=lambda folder: TantivyIndex(folder, options.stop_words),
        language=options.language,
    )


def check_languages(installation: Installation) -> None:
    """Raises IndexUnavailable if an index cannot hold a language, or further languages lack their detector."""
    options = installation.settings.repository
    for name in (options.language, *options.languages):
        if name not in LANGUAGES:
            raise IndexUnavailable(f"There are no stems for {name!r}; choose one of {', '.join(sorted(LANGUAGES))}.")
    if options.languages:
        check_detector()


def meaning(installation: Installation) -> "Meaning | None":
    """Raises ModelMissing, OSError."""
    options = installation.settings.repository
    if not options.meaning:
        return None
    folder = model.ready(installation.models)
    from muniment.repository.search.meaning.nearness import Meaning

    return Meaning.of_folder(folder, options.meaning_vectors)


def reserve(installation: Installation) -> Reserve:
    files = [file for half in get_args(Half) if (file := installation.database_file(half)) is not None]
    folders = (installation.content, *(file.parent for file in files))
    return Reserve(folders, installation.settings.disk_reserve_mib << 20)


def content(installation: Installation, kind: ContentKind | None = None, *, makes_room: bool = False) -> ContentStore:
    """Who ``makes_room`` may also use the ``reserve``. Nothing is read yet."""
    options = installation.settings.repository
    if (kind or options.content_store) == "files":
        largest = options.packed_bytes
        return FileStore(
            installation.content,
            packing=Packing(largest, now) if largest else None,
            reserve=NO_RESERVE if makes_room else reserve(installation),
        )
    database = _Lazy(installation.database_url("repository"))
    lock = RemovalLock(database.open, installation.removals)
    bucket = ContentBucket(options.s3, now)
    return S3Store(bucket, lock, database.owner, installation.data, options.s3.largest_copy)


def tika(installation: Installation) -> TikaServer | None:
    """It is not asked yet."""
    options = installation.settings.repository
    return TikaServer(options.extraction, options.extraction_characters) if options.extraction.tika else None


class _Lazy:
    """The repository's database, opened at its first use: after the server has forked."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._database: Database | None = None

    def open(self) -> Database:
        with self._lock:
            if self._database is None:
                self._database = Database(self._address)
            return self._database

    def owner(self) -> str:
        """A name that no other installation has."""
        return self._name(b"owner of content")

    def owner_of_indexes(self) -> str:
        return self._name(b"owner of indexes")

    def _name(self, purpose: bytes) -> str:
        with self.open().read() as cx:
            secret = keys.key(cx, keys.SEALS)
        return hashlib.sha256(purpose + secret).hexdigest()[:32]
