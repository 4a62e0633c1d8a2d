"""Somebody always administers, whatever surface decides and however many decide at one time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.administration import decisions, resource_decisions, rules
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import BadName, NobodyAdministers, NotAdministrator, UnknownEntry, WrongPartition
from muniment.ground.clock import Instant
from tests.conftest import Fresh
from tests.counting import cost
from tests.office import HASH, Office

Way = Callable[[Connection, Entry, Instant], object]

WAYS: dict[str, Way] = {
    "disabled": lambda cx, user, now: decisions.set_disabled(cx, user, True, now),
    "locked": lambda cx, user, now: decisions.set_locked(cx, user, True, now),
    "without a password": lambda cx, user, now: decisions.set_password(cx, user, None, now),
    "removed": decisions.remove,
    "expelled": lambda cx, user, now: decisions.remove_members(cx, entries.administrators(cx), [user], now),
}


def administrators(office: Office, now: Instant, count: int) -> list[Entry]:
    made = []
    with office.db.begin() as cx:
        for number in range(count):
            one = editing.add_user(cx, entries.administration(cx), f"admin {number}", now, password_hash=HASH)
            memberships.add_member(cx, entries.administrators(cx), one)
            made.append(one)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_last_administrator_stays(directory_db: Database, now: Instant, way: str) -> None:
    """failures C12: the rule is the decision's, not the command line's."""
    office = Office(directory_db, now)
    first, last = administrators(office, now, 2)
    with office.db.begin() as cx:
        WAYS[way](cx, first, now)
    with office.db.read() as cx:
        before = entries.by_id(cx, last.id)
    with pytest.raises(NobodyAdministers), office.db.begin() as cx:
        WAYS[way](cx, last, now)
    with office.db.read() as cx:
        assert entries.by_id(cx, last.id) == before
        assert last.id in [one.id for one in memberships.members(cx, entries.administrators(cx))]


def test_the_way_in_of_the_administrators_group_stays(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    administrators(office, now, 1)
    with pytest.raises(NobodyAdministers), office.db.begin() as cx:
        resource_decisions.remove_from_role(cx, resources.administration(cx), entries.administrators(cx))


def hide(office: Office, now: Instant) -> tuple[Entry, Entry]:
    """Let two users who can sign in administer, in groups within groups, among some who cannot."""
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, editing.add_unit(cx, office.partition, "outer", now), "inner", now)
        first, last = (editing.add_user(cx, unit, f"admin {number}", now, password_hash=HASH) for number in range(2))
        group = editing.add_group(cx, unit, "deep", now)
        without = editing.add_user(cx, unit, "without a password", now)
        for member in (first, last, without):
            memberships.add_member(cx, group, member)
        outer = editing.add_group(cx, office.partition, "wide", now)
        memberships.add_member(cx, outer, group)
        memberships.add_member(cx, group, outer)
        memberships.add_member(cx, entries.administrators(cx), outer)
    return first, last


@pytest.mark.slow
@pytest.mark.parametrize("way", ["disabled", "locked", "without a password", "removed"])
def test_a_group_counts_by_who_is_in_it(directory_db: Database, now: Instant, way: str) -> None:
    """failures C12: who can sign in counts, not that somebody might be in a group."""
    office = Office(directory_db, now)
    first, last = hide(office, now)
    with office.db.begin() as cx:
        WAYS[way](cx, first, now)
    with pytest.raises(NobodyAdministers), office.db.begin() as cx:
        WAYS[way](cx, last, now)


def test_whoever_is_only_let_in_at_the_administration_administers_nothing(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    (last,) = administrators(office, now, 1)
    with office.db.begin() as cx:
        resources.add_to_role(cx, resources.administration(cx), office.alice)
        assert resources.admits(cx, resources.administration(cx).id, office.alice.id)
        assert not memberships.administers(cx, office.alice.id)
        with pytest.raises(NotAdministrator):
            rules.require_administrator(cx, office.names, f"{office.alice.name}@People")
        with pytest.raises(NobodyAdministers):
            decisions.set_disabled(cx, last, True, now)


@pytest.mark.slow
def test_the_rule_reads_no_more_rows_however_many_users_there_are(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    first = hide(office, now)[0]

    def rows() -> int:
        with cost(office.db) as spent, office.db.begin() as cx:
            decisions.set_disabled(cx, first, True, now)
        return spent.rows

    before = rows()
    with office.db.begin() as cx:
        decisions.set_disabled(cx, first, False, now)
        unit = entries.unit_at(cx, office.partition, ["outer", "inner"])
        group = entries.find_group(cx, office.names, "deep@People")
        for number in range(30):
            memberships.add_member(cx, group, editing.add_user(cx, unit, f"user {number}", now))
    assert rows() == before


@pytest.mark.slow
@pytest.mark.parametrize("way", ["disabled", "expelled"])
def test_of_two_that_take_the_last_two_away_at_one_time_one_is_refused(fresh: Fresh, now: Instant, way: str) -> None:
    """failures C12"""
    url = fresh("directory")
    office, other = Office(Database(url), now), Database(url)
    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            pair, start = list[Entry](), threading.Barrier(2)
            with office.db.begin() as cx:
                for number in range(2):
                    name = f"admin {number}"
                    try:
                        one = entries.find_user(cx, office.names, f"{name}@{office.names.administration_partition}")
                    except UnknownEntry:
                        one = editing.add_user(cx, entries.administration(cx), name, now, password_hash=HASH)
                    decisions.set_disabled(cx, one, False, now)
                    memberships.add_member(cx, entries.administrators(cx), one)
                    pair.append(one)

            def take(database: Database, user: Entry, start: threading.Barrier = start) -> bool:
                start.wait()
                try:
                    with database.begin() as cx:
                        WAYS[way](cx, user, now)
                except NobodyAdministers:
                    return False
                return True

            taken = [threads.submit(take, *one) for one in zip((office.db, other), pair, strict=True)]
            assert sorted(one.result(60) for one in taken) == [False, True]
    office.db.close()
    other.close()


def test_a_removal_tells_what_depended_on_it(directory_db: Database, now: Instant) -> None:
    """failures C10"""
    office = Office(directory_db, now)
    office.issue(now)
    with office.db.begin() as cx:
        resources.add_to_role(cx, office.resource, office.alice)
        with pytest.raises(BadName, match="this one holds 1 groups, 2 users"):
            decisions.remove(cx, office.partition, now)
        alice = decisions.remove(cx, office.alice, now)
        memberships.add_member(cx, office.group, office.bob)
        group = decisions.remove(cx, office.group, now)
    assert (alice.ended.grants, [one.id for one in alice.groups], alice.members) == (1, [office.group.id], [])
    assert [one.id for one in alice.resources] == [office.resource.id]
    assert [one.id for one in group.members] == [office.bob.id]
    assert [one.id for one in group.resources] == [office.resource.id]


def test_a_user_or_group_lies_in_the_partition_that_its_id_names(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, office.partition, "north", now)
        other = editing.add_partition(cx, office.names, "Others", now)
        user = decisions.add_user(cx, office.names, "carl@people", unit, now, password_hash=None)
        group = decisions.add_group(cx, office.names, "friends@People", None, now)
        assert [entries.shown_id(office.names, one) for one in (user, group)] == ["carl@People", "friends@People"]
        with pytest.raises(WrongPartition):
            decisions.add_user(cx, office.names, "dora@Others", unit, now, password_hash=None)
        with pytest.raises(WrongPartition):
            decisions.add_group(cx, office.names, "friends@People", other, now)
        with pytest.raises(BadName):
            decisions.add_group(cx, office.names, "friends", None, now)


def test_the_first_administrator_and_a_guarding_resource_are_made_once(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    with office.db.begin() as cx:
        assert decisions.ensure_administrator(cx, office.names, HASH, now)
        assert not decisions.ensure_administrator(cx, office.names, "another hash", now)
        made = resource_decisions.ensure_resource(cx, office.names, "Documents", now)
        assert resource_decisions.ensure_resource(cx, office.names, "Documents", now) == made
        assert made.activated == now
        assert resources.role_members(cx, made) == [entries.administrators(cx)]
