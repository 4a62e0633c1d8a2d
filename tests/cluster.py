"""A real OpenSearch for the tests that need one; its node starts once a run, from what ``bench.peers`` installs."""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from bench.peers import Missing, opensearch
from muniment.ground import clock
from muniment.ground.clock import Instant
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.index.contract import Index, IndexWriter, Snapshot
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch.generations import OpenSearchEngine
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.repositories import Repository

_prefixes = (f"t{os.getpid()}-{number}" for number in itertools.count())


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The address of a node; ``MUNIMENT_TEST_OPENSEARCH`` names one that runs already."""
    if address := os.environ.get("MUNIMENT_TEST_OPENSEARCH"):
        yield address
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with opensearch.serving(Path(folder), heap="512m") as node:
                yield node.base
        except Missing as missing:
            pytest.skip(str(missing))


def repository(number: int = 7, now: Instant = 0) -> Repository:
    return Repository(number, "demo", "00000000-0000-4000-8000-000000000000", "", now)


class OnCluster:
    """One repository's index in a cluster, made at once."""

    def __init__(
        self,
        address: str,
        folder: Path,
        *,
        shards: int = 1,
        replicas: int = 0,
        owner: str = "tests",
        languages: Collection[str] = (),
        language: str = "English",
    ) -> None:
        self.options = OpenSearchOptions(address=address, prefix=next(_prefixes), shards=shards, replicas=replicas)
        self.engine = OpenSearchEngine(
            folder, self.options, lambda: owner, clock.now, language=language, others=languages
        )
        self.index = self.engine.index(repository())
        self.generation = self.index.begin()
        self.writer: IndexWriter = self.index.writer(self.generation)
        self.index.switch(self.generation)
        self.reader: Index = self.index.reader()
        self._keys: set[str] = set()
        self._commits = itertools.count(1)

    def holding(self, documents: Sequence[Document]) -> Snapshot:
        """A snapshot of these documents alone."""
        keys = {each.key for each in documents}
        self.writer.apply(documents, self._keys - keys, Position(1, next(self._commits)))
        self._keys = keys
        return self.reader.snapshot()

    def close(self) -> None:
        self.writer.close()
        self.reader.close()
        self.index.remove()
