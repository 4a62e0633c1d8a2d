"""How SQLite looks up who is there: by a key, however many users there are."""

from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.entries import credentials, editing, entries, memberships, resources
from muniment.ground.clock import Instant
from tests.office import Office
from tests.plans import steps

QUESTIONS: dict[str, Callable[[Connection, Office], object]] = {
    "partitions": lambda cx, _: entries.partitions(cx),
    "a partition": lambda cx, office: entries.find_partition(cx, office.names, "People"),
    "the clients": lambda cx, _: entries.clients(cx),
    "the administrators": lambda cx, _: entries.administrators(cx),
    "a user": lambda cx, office: entries.find_user(cx, office.names, "alice@People"),
    "a group": lambda cx, office: entries.find_group(cx, office.names, "staff@People"),
    "a user's location": lambda cx, office: entries.find_location(
        cx, office.names, entries.location(office.names, office.alice)
    ),
    "a unit": lambda cx, office: entries.unit_at(cx, office.partition, ["Sales", "North"]),
    "a page of users": lambda cx, office: entries.listing(cx, office.partition, "user", after="alice", limit=20),
    "an entry": lambda cx, office: entries.by_id(cx, office.alice.id),
    "a sign-in": lambda cx, office: credentials.find(cx, office.options, "alice@People"),
    "a decision of a sign-in": lambda cx, office: credentials.lock(cx, office.alice.id),
    "a decision about nobody": lambda cx, _: credentials.lock(cx, None),
    "a group's members": lambda cx, office: memberships.members(cx, office.group),
    "a user's groups": lambda cx, office: memberships.groups_of(cx, office.alice.id),
    "who acts in a group": lambda cx, office: memberships.acting_in(cx, [office.group.id]),
    "the units of a unit": lambda cx, office: entries.units_in(cx, office.partition),
    "who administers": lambda cx, office: memberships.administers(cx, office.alice.id),
    "a role": lambda cx, office: resources.role_members(cx, office.resource),
    "who is in a role": lambda cx, office: resources.admits(cx, office.resource.id, office.alice.id),
}


@pytest.fixture
def office(directory_db: Database, now: Instant) -> Office:
    made = Office(directory_db, now)
    with made.db.begin() as cx:
        sales = editing.add_unit(cx, made.partition, "Sales", now)
        editing.add_unit(cx, sales, "North", now)
    return made


@pytest.mark.slow
@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("what", QUESTIONS)
def test_each_is_looked_up_by_its_key(office: Office, what: str) -> None:
    """By their parent or their kind alone, all users of a partition would be read."""
    plans = steps(office.db, lambda cx: QUESTIONS[what](cx, office))
    assert plans
    for statement, looked_up in plans:
        for step in looked_up:
            entries_read = step.startswith("SCAN") and step.split()[1] in ("entries", "e", "p")
            # A partition has one child, its root unit.
            children_read = "ix_entries_inside (" in step and "e.built_in = " not in statement
            assert not entries_read, (statement, looked_up)
            assert not children_read, (statement, looked_up)
