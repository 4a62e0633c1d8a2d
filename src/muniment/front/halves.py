"""The halves that run in one process, as the front door uses them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from muniment.directory.context import Directory
from muniment.ground.clock import Instant
from muniment.installation.layout import Installation
from muniment.repository.api.context import RepositoryContext
from muniment.repository.search.index.contract import Index
from muniment.repository.store.extraction.tika.tika import TikaServer
from muniment.repository.store.repositories import Repository


@dataclass
class Halves:
    """None stands for a half that does not run here.

    ``descriptions`` has the OpenAPI documents by base address.
    """

    installation: Installation
    clock: Callable[[], Instant]
    open_index: Callable[[Installation, Repository], Index]
    directory: Directory | None = None
    repository: RepositoryContext | None = None
    tika: TikaServer | None = None
    indexes: dict[int, Index] = field(default_factory=dict)
    descriptions: dict[str, bytes] = field(default_factory=dict)

    def index(self, repository: Repository) -> Index:
        """The first call for a repository opens it."""
        if repository.id not in self.indexes:
            self.indexes[repository.id] = self.open_index(self.installation, repository)
        return self.indexes[repository.id]

    def close_indexes(self) -> None:
        for index in self.indexes.values():
            index.close()
