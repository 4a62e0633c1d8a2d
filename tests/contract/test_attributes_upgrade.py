"""A directory of schema 0007 goes on with the same answers, and with the same administrators."""

from collections.abc import Callable, Mapping

import alembic.command
import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database import schema
from muniment.database.connections import Database
from muniment.directory.entries import attributes, entries, listing, memberships
from muniment.directory.entries.listing import Which
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from tests.conftest import Fresh

NAMES = DirectoryNames()
FORMER = {
    "mail": ["Anna@Example.org", "a@example.org"],
    "displayName": ["Ärger, Anna"],
    "employeeNumber": [7, -12345678901234567890],
    "room": ["", "7", "true"],
    "numbers": [1, "one"],
}


def _at_the_former_schema(database: Database) -> None:
    config = schema._alembic("directory")
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "directory_0007")
        connection.commit()


def _insert(cx: Connection, table: str, row: Mapping[str, object]) -> None:
    cx.execute(sa.text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"), row)


def _adder(cx: Connection, now: Instant) -> Callable[..., None]:
    """Return a function that adds an entry as the former schema has it."""
    common = {
        **dict.fromkeys(("disabled", "locked", "password_never_expires"), False),
        **dict.fromkeys(("must_change_password", "cannot_change_password"), False),
        "attempted": 0,
        "created": now,
        "modified": now,
        "description": "",
        "built_in": None,
    }

    def add(number: int, **values: object) -> None:
        _insert(cx, "entries", common | {"id": number, "uuid": f"uuid-{number}", "units": "[]"} | values)

    return add


def test_whoever_was_let_in_at_the_administration_administers(fresh: Fresh, now: Instant) -> None:
    database = Database(fresh())
    _at_the_former_schema(database)
    with database.begin() as cx:
        add = _adder(cx, now)
        add(1, kind="partition", space="", name="@administration", name_key="@administration")
        inside = {"partition_id": 1, "parent_id": 1, "space": "members 1"}
        for number, kind in ((2, "group"), (3, "user"), (4, "group"), (5, "user"), (6, "user")):
            add(number, kind=kind, name=f"entry{number}", name_key=f"entry{number}", **inside)
        cx.execute(sa.text("UPDATE entries SET built_in = 'administrators' WHERE id = 2"))
        for number, built_in in ((1, "administration"), (2, None)):
            name = f"resource{number}"
            row = {"id": name, "name": name, "name_key": name, "description": "", "built_in": built_in, "created": now}
            _insert(cx, "resources", row)
            _insert(cx, "access_roles", {"id": number, "resource_id": name, "created": now})
        for role, entry in ((1, 2), (1, 3), (1, 4), (2, 5)):
            _insert(cx, "access_role_members", {"role_id": role, "entry_id": entry})
        _insert(cx, "memberships", {"group_id": 2, "member_id": 3})
        _insert(cx, "memberships", {"group_id": 4, "member_id": 6})
    schema.migrate(database, "directory")
    with database.read() as cx:
        assert [number for number in range(3, 7) if memberships.administers(cx, number)] == [3, 4, 6]
    database.close()


def test_values_of_the_former_release_are_rows_with_the_same_answers(fresh: Fresh, now: Instant) -> None:
    database = Database(fresh())
    _at_the_former_schema(database)
    with database.begin() as cx:
        add = _adder(cx, now)
        add(1, kind="partition", space="", name="People", name_key="people")
        inside = {"partition_id": 1, "parent_id": 2}
        add(2, kind="unit", space="units 1", name="Root", name_key="root", partition_id=1, parent_id=1)
        cx.execute(sa.text("UPDATE entries SET built_in = 'root' WHERE id = 2"))
        for number in range(3, 2500):
            add(number, kind="user", space="members 1", name=f"User{number}", name_key=f"user{number}", **inside)
        add(2500, kind="group", space="members 1", name="staff", name_key="staff", **inside)
        cx.execute(sa.text("INSERT INTO memberships (group_id, member_id) VALUES (2500, 3)"))
        insert = sa.text("INSERT INTO user_attributes (entry_id, name, content) VALUES (:entry, :name, :content)")
        rows = [
            {"entry": number, "name": name, "content": msgspec.json.encode(values).decode()}
            for number in (3, 2499)
            for name, values in FORMER.items()
        ]
        rows += [{"entry": number, "name": "mail", "content": f'["u{number}@x"]'} for number in range(4, 2499)]
        cx.execute(insert, rows)
    schema.migrate(database, "directory")
    schema.check_schema(database, "directory")
    with database.read() as cx:
        for number in (3, 2499):
            assert attributes.stored_values(cx, number) == FORMER
        assert attributes.stored_values(cx, 2000) == {"mail": ["u2000@x"]}
        assert attributes.first_texts_of_attributes(cx, [3, 4], ["mail"]) == {
            3: {"mail": "Anna@Example.org"},
            4: {"mail": "u4@x"},
        }
        user = entries.find_user(cx, NAMES, "USER3@people")
        assert (user.revision, user.external_id, user.signed_in) == (1, None, None)
        assert [group.name for group in memberships.groups_of(cx, user.id)] == ["staff"]
        shown = {one.name: one.values for one in attributes.of_user(cx, NAMES, user, "People", "x", {})}
        assert {name: shown[name] for name in FORMER} == FORMER
        for begins, names in (
            ("ANNA@", ["User2499", "User3"]),
            ("ärger", ["User2499", "User3"]),
            ("u1999@", ["User1999"]),
        ):
            found = listing.page(cx, Which("user", pattern=begins), None, 5).entries
            assert sorted(entry.name for entry in found) == names
        folded = cx.execute(sa.text("SELECT value, folded FROM attribute_values")).all()
        assert all(row.folded == fold_name(row.value) for row in folded)
    with database.begin() as cx:
        attributes.put(cx, NAMES, user, {"mail": []}, now)
    database.close()
