"""Objects of a release without folded forms get them, as this release writes them."""

import importlib
from typing import Any

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.objects.decisions import creation
from muniment.repository.objects.decisions.creation import NewObject
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Principals

TEXTS = ["plain", "Ärger", "\u212a", "ß" * 900, "x" * 2000, "a\nb", "é" * 5000, "日本", "ﬁle", "\u0130"]
FORMS = sa.text("SELECT id, folded FROM objects ORDER BY seq")


def test_objects_of_a_former_release_get_their_folded_forms(repository_db: Database, now: Instant) -> None:
    with repository_db.begin() as cx:
        repository = repositories.add(cx, "demo", "", "", now)
        acls.initialise(cx, repository.id, now)
        for owner in ("marta@demo", "Märta@demo"):
            given: list[dict[str, Any]] = [
                {"object_name": text[:255], "title": text[:4000], "keywords": ["X", text[:4000]]} for text in TEXTS
            ]
            wanted = [NewObject("document", one, None, None, None) for one in given]
            creation.create_all(cx, RepositoryView.read(cx, repository, Principals(owner)), wanted, now)
        written = cx.execute(FORMS).all()
    assert [row.folded for row in written[:1]] == [None]
    assert all(row.folded for row in written[1:])
    with repository_db.begin() as cx:
        cx.execute(sa.text("ALTER TABLE objects DROP COLUMN folded"))
        with Operations.context(MigrationContext.configure(cx)):
            importlib.import_module("muniment.repository.migrations.versions.0014_folded_texts").upgrade()
    with repository_db.read() as cx:
        assert cx.execute(FORMS).all() == written
