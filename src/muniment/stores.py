"""Open what an installation keeps beside its databases: the indexes, the content store and the model of meaning."""

from typing import TYPE_CHECKING

from muniment.clock import now
from muniment.installation import Installation
from muniment.repository.content.contract import ContentStore
from muniment.repository.content.files import FileStore, Packing
from muniment.repository.index.contract import Engine, Index
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.index.tantivy.generations import FolderEngine
from muniment.repository.index.tantivy.languages import LANGUAGES, check_detector
from muniment.repository.meaning import model
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.repositories import Repository

if TYPE_CHECKING:  # Its libraries are an extra.
    from muniment.repository.meaning.nearness import Meaning


def reader(installation: Installation, repository: Repository) -> Index:
    """Open a repository's index for reading. It switches to each new generation of the index by itself."""
    return engine(installation).index(repository).reader()


def engine(installation: Installation) -> Engine:
    """Return the index engine, which holds the indexes of all repositories."""
    options = installation.settings.repository
    return FolderEngine(
        installation.indexes,
        lambda folder, language: TantivyWriter(folder, language, options.languages),
        open_index=lambda folder: TantivyIndex(folder, options.stop_words),
        language=options.language,
    )


def check_languages(installation: Installation) -> None:
    """Raise IndexUnavailable if the settings name a language that an index cannot hold, or none can be detected."""
    options = installation.settings.repository
    for name in (options.language, *options.languages):
        if name not in LANGUAGES:
            raise IndexUnavailable(f"There are no stems for {name!r}; choose one of {', '.join(sorted(LANGUAGES))}.")
    if options.languages:
        check_detector()


def meaning(installation: Installation) -> "Meaning | None":
    """Open what finds objects near in meaning; None unless the settings ask for it. Raises ModelMissing, OSError."""
    options = installation.settings.repository
    if not options.meaning:
        return None
    folder = model.ready(installation.models)
    from muniment.repository.meaning.nearness import Meaning

    return Meaning.of_folder(folder, options.meaning_vectors)


def content(installation: Installation) -> ContentStore:
    """Open the content store."""
    largest = installation.settings.repository.packed_bytes
    return FileStore(installation.content, packing=Packing(largest, now) if largest else None)
