"""One node for all modules of a worker."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pytest

from muniment.repository.search.index.contract import IndexWriter
from tests import cluster
from tests.cluster import OnCluster
from tests.shelf import Shelf


@pytest.fixture(scope="session")
def opensearch() -> Iterator[str]:
    """Its address."""
    with cluster.running() as address:
        yield address


@pytest.fixture
def shelves_on_cluster(
    opensearch: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., OnCluster]]:
    """Let every ``Shelf`` keep its index in the cluster, with three shards; give what finds the index of a folder."""
    made, numbers = dict[Path, OnCluster](), itertools.count()

    def of(folder: Path, language: str = "English", others: Sequence[str] = ()) -> OnCluster:
        if folder not in made:
            # An example that has ended would hold points in time, of which a node permits only so many.
            for gone in [each for each in made if not each.parent.exists()]:
                made.pop(gone).close()
            locks = tmp_path / f"locks-{next(numbers)}"
            made[folder] = OnCluster(opensearch, locks, shards=3, language=language, languages=others)
        return made[folder]

    def writer(shelf: Shelf) -> IndexWriter:
        on = of(shelf.folder)
        return on.index.writer(on.generation)

    for name, make in (("writer", writer), ("index", lambda shelf: of(shelf.folder).index.reader())):
        kept = cached_property(make)
        kept.__set_name__(Shelf, name)
        monkeypatch.setattr(Shelf, name, kept)
    monkeypatch.setattr(Shelf, "another_reader", lambda shelf: of(shelf.folder).index.reader())
    yield of
    for each in made.values():
        each.close()
