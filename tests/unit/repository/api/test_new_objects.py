"""What a create leaves in the content store when it fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from muniment.repository.store.objects.decisions import copying, creation
from tests.shelf import Shelf
from tests.unit.repository.api.test_objects import Site


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.half.transactions._threads.shutdown()


def lost_commit(*_about: Any, **_more: Any) -> Any:
    error = sa.exc.OperationalError("COMMIT", {}, Exception("disk I/O error"))
    raise RuntimeError("nobody knows") from error


def bug(*_about: Any, **_more: Any) -> Any:
    raise RuntimeError("a bug")


@pytest.mark.slow
@pytest.mark.parametrize(("failure", "left"), [(bug, 1), (lost_commit, 2)])
@pytest.mark.parametrize("way", ["copy", "content", "replacement"])
def test_content_goes_again_whatever_fails_unless_it_may_be_committed(
    site: Site, monkeypatch: pytest.MonkeyPatch, way: str, failure: Callable[..., Any], left: int
) -> None:
    folder = site.make(r_object_type="cabinet")
    source = site("POST", f"/folders/{folder}/objects?object-name=a.txt", b"words", Content_Type="text/plain")
    assert source.status_code == 201
    (first,) = site.shelf.files()
    monkeypatch.setattr(copying, "copy", failure)
    monkeypatch.setattr(creation, "create_all", failure)
    if way == "copy":
        answer = site("POST", f"/folders/{folder}/objects", {"href": source.headers["location"]})
    elif way == "content":
        answer = site("POST", "/objects?object-name=b.txt", b"more words", Content_Type="text/plain")
    else:
        monkeypatch.setattr("muniment.repository.store.objects.objects.replace_content", failure)
        answer = site("POST", f"{source.headers['location']}/contents", b"more words", Content_Type="text/plain")
    assert answer.status_code == 500
    assert first in site.shelf.files()
    left = 1 if way == "copy" else left  # a copy shares the bytes of its original
    assert len(site.shelf.files()) == left
