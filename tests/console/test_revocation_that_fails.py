"""A revocation that the database refuses is never reported as done (failures.md A8)."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from muniment.database.connections import Database, WriteBatch
from tests.console.conftest import Scene
from tests.office import PASSWORD

OAUTH = "/dirws/v1/authentication/oauth"


@contextmanager
def refusing(database: Database, what: str) -> Iterator[None]:
    """Let every commit, or every statement that ends a grant, fail within the block."""

    def commit(_cx: sa.Connection) -> None:
        raise OperationalError("COMMIT", None, Exception("disk full"))

    def commit_of_sqlite(writing: WriteBatch) -> None:
        writing.roll_back()
        commit(writing.connection)

    def execute(_cx: sa.Connection, _cursor: object, statement: str, *_more: object) -> None:
        if statement.startswith("UPDATE grants"):
            raise OperationalError(statement, None, Exception("disk full"))

    if what == "commit" and database.dialect == "sqlite":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(WriteBatch, "commit", commit_of_sqlite)
            yield
        return
    name, listener = ("commit", commit) if what == "commit" else ("before_cursor_execute", execute)
    event.listen(database.engine, name, listener)
    try:
        yield
    finally:
        event.remove(database.engine, name, listener)


@pytest.mark.parametrize("what", ["commit", "statement"])
def test_a_revocation_that_could_not_be_kept_is_no_204(scene: Scene, what: str) -> None:
    """failures A8"""
    form = {"grant_type": "password", "client_id": scene.client_id, "scope": "resource:My+API"}
    form |= {"username": scene.shown_id(scene.user), "password": PASSWORD}
    token = scene.browser.post("/dirws/login", data=form).json()["access_token"]
    asked = {"token": token, "resource_id": scene.resource.id}
    with refusing(scene.database, what):
        failed = scene.browser.delete(f"{OAUTH}/{token}")
    assert failed.status_code in {500, 503}, failed.text
    assert "disk full" not in failed.text
    assert scene.browser.post(f"{OAUTH}/tokeninfo", json=asked).status_code == 200
    assert scene.browser.delete(f"{OAUTH}/{token}").status_code == 204
    assert scene.browser.post(f"{OAUTH}/tokeninfo", json=asked).status_code == 410
