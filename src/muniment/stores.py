"""Open what an installation keeps beside its databases: the indexes and the content store."""

from muniment.clock import now
from muniment.installation import Installation
from muniment.repository.content.contract import ContentStore
from muniment.repository.content.files import FileStore, Packing
from muniment.repository.index.contract import Engine, Index
from muniment.repository.index.tantivy.engine import TantivyIndex
from muniment.repository.index.tantivy.generations import FolderEngine
from muniment.repository.repositories import Repository


def reader(installation: Installation, repository: Repository) -> Index:
    """Open a repository's index for reading. It switches to each new generation of the index by itself."""
    return engine(installation).index(repository).reader()


def engine(installation: Installation) -> Engine:
    """Return the index engine, which holds the indexes of all repositories."""
    options = installation.settings.repository
    return FolderEngine(
        installation.indexes,
        open_index=lambda folder: TantivyIndex(folder, options.stop_words),
        language=options.language,
    )


def content(installation: Installation) -> ContentStore:
    """Open the content store."""
    largest = installation.settings.repository.packed_bytes
    return FileStore(installation.content, packing=Packing(largest, now) if largest else None)
