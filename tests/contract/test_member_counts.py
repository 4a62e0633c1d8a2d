"""How many members a group has is written down by whatever changes that, and never counted."""

import random

import alembic.command
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database import schema
from muniment.database.connections import Database, directory_tables
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, memberships
from muniment.directory.entries.table import Entry
from muniment.ground.clock import Instant
from tests.conftest import Fresh
from tests.office import Office


def counted(cx: Connection) -> dict[int, int]:
    table = directory_tables.tables["memberships"]
    query = sa.select(table.c.group_id, sa.func.count()).group_by(table.c.group_id)
    return {row[0]: row[1] for row in cx.execute(query)}


def test_a_count_follows_every_way_in_which_members_come_and_go(office: Office, now: Instant) -> None:
    chance = random.Random(4)
    with office.db.begin() as cx:
        groups = [editing.add_group(cx, office.partition, f"group {number}", now) for number in range(6)]
        users = [editing.add_user(cx, office.partition, f"user {number}", now) for number in range(12)]
    for _ in range(25):
        with office.db.begin() as cx:
            group, people = chance.choice(groups), chance.sample(users, chance.randrange(1, 5))
            match chance.randrange(6):
                case 0 | 1:
                    decisions.add_members(cx, group, people, now)
                case 2:
                    decisions.add_members(cx, group, [chance.choice(groups)], now)
                case 3:
                    decisions.remove_members(cx, group, people, now)
                case 4:
                    _replaced(cx, office, users, now, chance)
                case _:
                    _replaced(cx, office, groups, now, chance)
        with office.db.read() as cx:
            wanted = counted(cx)
            assert memberships.count_members(cx, [each.id for each in groups]) == {
                each.id: wanted[each.id] for each in groups if each.id in wanted
            }


def _replaced(cx: Connection, office: Office, some: list[Entry], now: Instant, chance: random.Random) -> None:
    """Remove an entry with all its memberships, and make one of its name and kind."""
    gone = some.pop(chance.randrange(len(some)))
    decisions.remove(cx, gone, now)
    some.append((editing.add_user if gone.kind == "user" else editing.add_group)(cx, office.partition, gone.name, now))


def test_what_was_rolled_back_is_not_counted(office: Office) -> None:
    savepoint = office.db.begin()
    with savepoint as cx:
        with cx.begin_nested() as inner:
            memberships.add_member(cx, office.group, office.bob)
            inner.rollback()
        assert memberships.count_members(cx, [office.group.id]) == {office.group.id: 1}


def test_members_of_the_former_schema_are_counted(fresh: Fresh, now: Instant) -> None:
    database = Database(fresh())
    config = schema._alembic("directory")
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "directory_0008")
        connection.commit()
    flags = ("disabled", "locked", "password_never_expires", "must_change_password", "cannot_change_password")
    with database.begin() as cx:
        for number, kind in ((1, "partition"), (2, "group"), (3, "group"), (4, "user"), (5, "user")):
            row: dict[str, object] = {
                **dict.fromkeys(flags, False),
                **dict.fromkeys(("attempted", "created", "modified"), now),
                **dict.fromkeys(("space", "description", "units", "tries", "places"), ""),
                "id": number,
                "uuid": str(number),
                "kind": kind,
                "name": str(number),
                "name_key": str(number),
                "revision": 1,
            }
            names = ", ".join(row)
            cx.execute(sa.text(f"INSERT INTO entries ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)
        for group, member in ((2, 4), (2, 5), (2, 3)):
            cx.execute(sa.text("INSERT INTO memberships VALUES (:group, :member)"), {"group": group, "member": member})
    schema.migrate(database, "directory")
    with database.read() as cx:
        assert memberships.count_members(cx, [2, 3]) == {2: 3}
    database.close()
