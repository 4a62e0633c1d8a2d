"""A mark is renewed by every write to the tables that it stands for, and by nothing else."""

from contextlib import suppress

import pytest
import sqlalchemy as sa

from muniment.database.connections import repository_tables
from muniment.repository import version_stamps
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission
from muniment.repository.version_stamps import SearchStamps
from tests.counting import cost
from tests.shelf import ADMIN, MARTA, Shelf

WATCHED = {"acls": "acls", "acl_entries": "acls", "object_types": "types", "type_properties": "types"}


def read(shelf: Shelf) -> SearchStamps:
    with shelf.database.read() as cx:
        return version_stamps.read(cx)


def renewed(shelf: Shelf, before: SearchStamps) -> set[str]:
    after = read(shelf)
    return {name for name in SearchStamps._fields if getattr(before, name) != getattr(after, name)}


def test_a_snapshot_reads_the_marks_once_and_a_transaction_that_writes_each_time(shelf: Shelf) -> None:
    for _ in range(2):
        with cost(shelf.database) as counted, shelf.database.read() as cx:
            assert version_stamps.read(cx) == version_stamps.read(cx)
        assert len(counted.statements) == 1
    with shelf.database.begin() as cx:
        before = version_stamps.read(cx)
        acls.add(cx, shelf.repository.id, "ring", MARTA, {}, shelf.now)
        assert version_stamps.read(cx) != before
    assert read(shelf) != before


def test_every_write_of_a_noun_renews_its_mark(shelf: Shelf) -> None:
    repository_id, now = shelf.repository.id, shelf.now
    entries = {"staff@demo": Permission.READ}
    before = read(shelf)
    with shelf.database.begin() as cx:
        acl = acls.add(cx, repository_id, "circle", MARTA, entries, now)
    assert renewed(shelf, before) == {"acls"}
    before = read(shelf)
    with shelf.database.begin() as cx:
        acls.change(cx, acl, MARTA, {"guests@demo": Permission.READ}, now)
    assert renewed(shelf, before) == {"acls"}
    before = read(shelf)
    with shelf.database.begin() as cx:
        acls.forget(cx, "guests@demo")
    assert renewed(shelf, before) == {"acls"}
    before = read(shelf)
    with shelf.database.begin() as cx:
        acls.remove(cx, acl, ADMIN)
    assert renewed(shelf, before) == {"acls"}
    before = read(shelf)
    with shelf.database.begin() as cx:
        type_editing.add_type(cx, repository_id, ObjectType("well", "document"), now)
    assert renewed(shelf, before) == {"types"}
    before = read(shelf)
    with shelf.database.begin() as cx:
        type_editing.add_properties(cx, repository_id, "well", [PropertyDefinition("depth", "integer")], now)
    assert renewed(shelf, before) == {"types"}


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(set(repository_tables.tables) - {"marks"}))
def test_a_write_to_any_column_renews_the_mark_of_its_table_alone(shelf: Shelf, table: str) -> None:
    """A new table has to be watched, or to be one on which neither types nor rights hang."""
    with shelf.database.begin() as cx:
        kind = ObjectType("well", "document", (PropertyDefinition("depth", "integer"),))
        type_editing.add_type(cx, shelf.repository.id, kind, shelf.now)
    for column in repository_tables.tables[table].columns:
        before = read(shelf)
        with shelf.database.begin() as cx:
            cx.execute(sa.text(f'UPDATE {table} SET "{column.name}" = "{column.name}"'))
        assert renewed(shelf, before) == ({WATCHED[table]} if table in WATCHED else set()), column.name


def test_what_is_rolled_back_leaves_the_marks_alone(shelf: Shelf) -> None:
    before = read(shelf)
    with suppress(ZeroDivisionError), shelf.database.begin() as cx:
        acls.add(cx, shelf.repository.id, "circle", MARTA, {}, shelf.now)
        raise ZeroDivisionError
    assert read(shelf) == before


def test_an_import_or_a_new_object_renews_none(shelf: Shelf) -> None:
    before = read(shelf)
    shelf.delete(shelf.create({"object_name": "a pump"}).id)
    assert read(shelf) == before
