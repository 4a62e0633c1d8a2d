"""What the tests of the repository's rooms may ask for."""

from pathlib import Path

import pytest

from muniment.clock import Instant
from muniment.db import Database
from tests.unit.repository.shelf import Shelf


@pytest.fixture
def shelf(repository_db: Database, tmp_path: Path, now: Instant) -> Shelf:
    """An empty repository."""
    return Shelf(repository_db, tmp_path / "content", now)
