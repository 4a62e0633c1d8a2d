"""What `tests/contract/test_either_spelling.py` proves, of an index in OpenSearch, in each language."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from muniment.repository.search.index.contract import IndexWriter
from tests.cluster import OnCluster
from tests.contract.test_either_spelling import *  # noqa: F403 - its tests

pytestmark = pytest.mark.only("sqlite")


@pytest.fixture(autouse=True)
def languages(shelves_on_cluster: Callable[..., OnCluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers in a language write to the cluster, too."""

    def writer(folder: Path, language: str, others: Sequence[str]) -> IndexWriter:
        return shelves_on_cluster(folder.parent, language, others).writer

    monkeypatch.setattr("tests.contract.test_either_spelling.TantivyWriter", writer)
