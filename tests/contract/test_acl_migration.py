"""ACLs of a released folder: each has an id, and its name goes on where it can mean the same."""

import re

import sqlalchemy as sa
from alembic import command

from muniment import schema
from muniment.clock import Instant
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.cursors import Stretch
from muniment.repository.objects import objects
from muniment.repository.permissions import acl_lists, acl_look_up, acls
from muniment.repository.permissions.principals import Permission, Principals
from tests.conftest import Fresh

BORIS = Principals("boris@demo", frozenset({"staff@demo"}))
MARTA = Principals("marta@demo")
ROOT = Principals("root@demo", administrator=True)
NAMES = {
    1: ("private", ""),
    2: ("public", ""),
    3: ("team", "Marta@Demo"),
    4: ("of the house", "ROOT@demo"),
    5: ("0123456789abcdef", "root@demo"),
}


def released(url: str) -> None:
    """Bring a database to the first release's schema, with ACLs and an object in it."""
    database = Database(url)
    config = schema._alembic("repository")
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.commit()
    with database.begin() as cx:
        cx.execute(
            sa.text("INSERT INTO repositories (id, name, description, resource_id, created) "
                    "VALUES (1, 'main', '', '11111111-1111-1111-1111-111111111111', 0)")
        )  # fmt: skip
        for number, (name, owner) in NAMES.items():
            cx.execute(
                sa.text("INSERT INTO acls (id, repository_id, name, owner, created, modified) "
                        "VALUES (:id, 1, :name, :owner, 0, 0)"),
                {"id": number, "name": name, "owner": owner},
            )  # fmt: skip
        for accessor in ("owner", "staff@demo"):
            cx.execute(
                sa.text("INSERT INTO acl_entries (acl_id, accessor, permission) VALUES (3, :who, 3)"), {"who": accessor}
            )
        cx.execute(
            sa.text(
                "INSERT INTO objects (seq, id, repository_id, type, name, owner, owner_key, acl_id, created, creator,"
                " modified, modifier, version, properties, media_type, content_size) VALUES (1, '0900000100000001', 1,"
                " 'document', 'x', 'Marta@Demo', 'marta@demo', 3, 0, 'm', 0, 'm', 7, '{}', '', 0)"
            )
        )
        if database.dialect == "postgresql":
            cx.execute(sa.text("SELECT setval(pg_get_serial_sequence('acls', 'id'), 5)"))
    database.close()


def test_a_released_folder_keeps_its_acls_under_new_ids(fresh: Fresh, now: Instant) -> None:
    url = fresh()
    released(url)
    database = Database(url)
    schema.migrate(database, "repository")
    with database.begin() as cx:
        main = repositories.find(cx, "main")
        renamed = acls.settle(cx, main.id, ["root@demo"])
        assert acls.settle(cx, main.id, ["root@demo"]) == []
    assert [(one.name, one.owner, one.entries) for one in renamed] == [
        ("0123456789abcdef", "root@demo", 0),
        ("team", "Marta@Demo", 2),
    ]
    with database.begin() as cx:
        every = [one.acl for one in acl_lists.page(cx, main.id, ROOT, Stretch(None, 0, 10))]
        assert [one.name for one in every] == ["0123456789abcdef", "of the house", "private", "public", "team"]
        assert all(re.fullmatch("45[0-9a-f]{14}", one.shown_id) for one in every)
        assert len({one.shown_id for one in every}) == 5
        stored, permission = objects.read(cx, main, "0900000100000001", BORIS)
        assert (permission, stored.revision) == (Permission.READ, 7)
        assert acl_look_up.shown_name(cx, stored.acl_id, BORIS) == "Marta@Demo/team"
        assert acl_look_up.shown_name(cx, stored.acl_id, MARTA) == "team"
        assert acls.look_up(cx, main.id, ["team"], BORIS) == {}
        assert acls.look_up(cx, main.id, ["of the house"], ROOT) == {"of the house": 4}
        odd = next(one for one in every if one.name == "0123456789abcdef")
        assert acl_look_up.shown_name(cx, odd.id, ROOT) == odd.shown_id
        made = acls.add(cx, main.id, "team", BORIS, {}, now)
        assert made.id == 6
        assert made.shown_id not in {one.shown_id for one in every}
        with_references = cx.execute(sa.text("SELECT count(*) FROM objects JOIN acls ON acls.id = objects.acl_id"))
        assert with_references.scalar_one() == 1
    database.close()
