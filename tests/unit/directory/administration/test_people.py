"""Whom an access role lets in: the lists agree with what a sign-in asks, user by user."""

import random
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.administration import people
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.entries.table import Entry, to_entry
from muniment.directory.refusals import UnknownEntry
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from tests.office import Office


class Town:
    """Random partitions, units, groups and users, some of them in the access role of the office's resource."""

    def __init__(self, cx: Connection, office: Office, chance: random.Random, now: Instant) -> None:
        self.office = office
        self.users: list[Entry] = []
        self.groups: list[Entry] = []
        partitions = [editing.add_partition(cx, office.names, f"Town {number}", now) for number in range(3)]
        units: list[Entry] = []
        for partition in partitions:
            places = [partition]
            for number in range(4):
                places.append(editing.add_unit(cx, chance.choice(places), f"unit {number}", now))
            units += places[1:]
            for number in range(6):
                self.users.append(editing.add_user(cx, chance.choice(places), f"user {number}", now))
                if number < 4:
                    self.groups.append(editing.add_group(cx, chance.choice(places), f"group {number}", now))
        for _ in range(30):
            memberships.add_member(cx, chance.choice(self.groups), chance.choice([*self.users, *self.groups]))
        for entry in chance.sample([*self.users, *self.groups, *units], 4) + chance.sample(
            partitions, chance.randint(0, 1)
        ):
            resources.add_to_role(cx, office.resource, entry)


def listed(cx: Connection, office: Office, *listing: Any) -> list[Entry]:
    """Read a list whole, and compare the ids that the database makes with those of the wire."""
    chosen = people.choose(office.names, *listing)
    rows = cx.execute(chosen.query.add_columns(chosen.id, chosen.folded_id)).all()
    found = [to_entry(row) for row in rows]
    for entry, row in zip(found, rows, strict=True):
        shown = entries.shown_id(office.names, entry)
        assert tuple(row[-2:]) == (shown, fold_name(shown))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_list_of_users_holds_those_whom_the_role_admits(database: Database, now: Instant, seed: int) -> None:
    office = Office(database, now)
    with database.begin() as cx:
        town = Town(cx, office, random.Random(seed), now)
        users = listed(cx, office, office.resource.id, "user")
        everybody = [*town.users, office.alice, office.bob]
        admitted = [user for user in everybody if resources.admits(cx, office.resource.id, user.id)]
        assert sorted(user.id for user in users) == sorted(user.id for user in admitted)
        for user in everybody:
            if user in admitted:
                found = people.find(cx, office.names, office.resource.id, "user", entries.shown_id(office.names, user))
                assert found.id == user.id
            else:
                with pytest.raises(UnknownEntry):
                    people.find(cx, office.names, office.resource.id, "user", entries.shown_id(office.names, user))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_groups_are_those_in_the_role_however_deep_and_of_a_partition_in_it(
    database: Database, now: Instant, seed: int
) -> None:
    office = Office(database, now)
    with database.begin() as cx:
        town = Town(cx, office, random.Random(seed), now)
        groups = {group.id for group in listed(cx, office, office.resource.id, "group")}
        role = {entry.id for entry in resources.role_members(cx, office.resource)}
        for group in [*town.groups, office.group]:
            above = {entry.id for entry in memberships.groups_of(cx, group.id)} | {group.id, group.partition_id}
            assert (group.id in groups) == bool(above & role)
        for group in town.groups:
            within = listed(cx, office, office.resource.id, "user", group)
            members = {member.id for member in memberships.members(cx, group) if member.kind == "user"}
            admitted = {user for user in members if resources.admits(cx, office.resource.id, user)}
            assert {user.id for user in within} == admitted
