"""Objects of a release without dates of contents get them; a file without text gets its own state."""

import importlib

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from muniment.db import Database
from muniment.repository.extraction import queue
from muniment.repository.importing import record
from muniment.repository.importing.record import ImportRecord
from tests.shelf import Shelf

FILE = 946_684_799_123_456_789


def test_contents_of_a_former_release_get_dates(shelf: Shelf) -> None:
    first, replaced, uploaded = (shelf.create({"object_name": n}, content=shelf.content(n)) for n in ("a", "b", "c"))
    bare = shelf.create({"object_name": "d"})
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
        assert job is not None
        queue.finish(cx, job, "", shelf.now)
        for stored, digest in ((first, None), (replaced, "00" * 32)):
            assert stored.content is not None
            digest = digest or stored.content.sha256.hex()
            record.keep(cx, shelf.repository.id, "/f", {stored.name: ImportRecord(stored.id, 1, FILE, digest)})
    _migrate(shelf.database)
    dates = [shelf.read(each.id)[0].content_date for each in (first, replaced, uploaded, bare)]
    assert dates == [FILE // 1_000_000 * 1000, shelf.now, shelf.now, None]
    with shelf.database.read() as cx:
        assert queue.status(cx, first.id).state == "no-text"


def _migrate(database: Database) -> None:
    with database.begin() as cx:
        cx.execute(sa.text("ALTER TABLE objects DROP COLUMN content_date"))
        cx.execute(sa.text("UPDATE texts SET state = 'empty' WHERE state = 'no-text'"))
        with Operations.context(MigrationContext.configure(cx)):
            importlib.import_module("muniment.repository.migrations.versions.0030_status_and_content_dates").upgrade()
