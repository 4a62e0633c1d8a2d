"""An export goes from one database and one store to the others, and back: nothing of it belongs to either."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.repository.bulk.exports import lines
from tests.s3 import S3Server
from tests.servers import Sqlite
from tests.shelf import Shelf
from tests.unit.repository.bulk.exports import rich
from tests.unit.repository.bulk.exports.places import Place, export, files


@pytest.fixture
def elsewhere(engine: object, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place in the other one of the two databases."""
    other = request.getfixturevalue("postgres" if isinstance(engine, Sqlite) else "sqlite")
    url = other.fresh("repository")
    made = Place(url, tmp_path / "elsewhere")
    yield made
    made.database.close()
    other.drop(url)


def test_it_goes_to_the_other_database_and_back(
    shelf: Shelf, elsewhere: Place, fresh: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PORTION", 2)
    rich.fill(shelf)
    export(shelf, tmp_path / "first")
    elsewhere.bring_in(tmp_path / "first")
    export(elsewhere, tmp_path / "second")
    place = Place(fresh("repository"), tmp_path / "place")
    place.bring_in(tmp_path / "second")
    export(place, tmp_path / "third")
    place.database.close()
    assert files(tmp_path / "first") == files(tmp_path / "second") == files(tmp_path / "third")


@pytest.mark.only("sqlite", "the store is what differs")
def test_it_goes_to_a_store_in_the_network_and_back(
    shelf: Shelf, s3: S3Server, fresh: Callable[..., str], tmp_path: Path
) -> None:
    rich.fill(shelf)
    large = rich.put(shelf, b"0123456789abcdef" * (10 << 16))
    shelf.create({"object_name": "large", "a_content_type": "application/octet-stream"}, content=large)
    export(shelf, tmp_path / "first")
    place = Place(fresh("repository"), tmp_path / "place")
    place.store = s3.store(tmp_path / "copies")
    place.bring_in(tmp_path / "first")
    export(place, tmp_path / "second")
    place.database.close()
    assert files(tmp_path / "first") == files(tmp_path / "second")
