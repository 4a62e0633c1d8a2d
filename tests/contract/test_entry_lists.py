"""Pages of lists: each entry once, in one order, whatever the size of a page; and what no index answers is bounded."""

import random
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import pytest
from sqlalchemy.engine import Connection

from muniment.directory.entries import attributes, editing, listing, memberships
from muniment.directory.entries.listing import EntryPage, ListPlace, Which
from muniment.directory.entries.table import Entry
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from tests.office import Office
from tests.plans import steps

WORDS = ("anna", "ANNE", "an%a", "a_na", "ben", "Émile", "émilie", "zoë", "a/b", "anna.berg", "straße", "x")


class Crowd:
    """Users of two partitions and a unit, with texts that begin alike."""

    def __init__(self, office: Office, now: Instant) -> None:
        self.office, chance = office, random.Random(7)
        self.texts: dict[str, list[str]] = {}
        self.users: list[Entry] = []
        with office.db.begin() as cx:
            other = editing.add_partition(cx, office.names, "Others", now)
            self.unit = editing.add_unit(cx, office.partition, "Sales", now)
            for number in range(40):
                place = chance.choice([office.partition, self.unit, other])
                name = f"{chance.choice(WORDS)}{number}"
                user = editing.add_user(cx, place, name, now)
                several = [f"{chance.choice(WORDS)}{chance.randrange(9)}" for _ in range(chance.randrange(3))]
                further = chance.choice(WORDS)
                attributes.put(cx, office.names, user, {"mail": several, "displayName": [further]}, now)
                if chance.random() < 0.3:
                    editing.set_disabled(cx, user, True, now)
                self.texts[name] = [name, further, *several]
                self.users.append(user)

    def walk(self, cx: Connection, which: Which, limit: int) -> list[str]:
        return walk(lambda after: listing.page(cx, which, after, limit), limit)

    def beginning(self, begins: str) -> set[str]:
        return {
            name
            for name, texts in self.texts.items()
            if any(fold_name(text).startswith(fold_name(begins)) for text in texts)
        }


def walk(turn: Callable[[ListPlace | None], EntryPage], limit: int) -> list[str]:
    names: list[str] = []
    after: ListPlace | None = None
    for _ in range(1000):
        page = turn(after)
        assert len(page.entries) <= limit
        names += [entry.name for entry in page.entries]
        if page.next is None:
            return names
        after = page.next
    raise AssertionError("it never ends")


@pytest.fixture
def crowd(office: Office, now: Instant) -> Crowd:
    return Crowd(office, now)


@pytest.mark.parametrize("scanned", [5, 5000])
def test_a_filter_finds_each_entry_that_begins_so_once_and_names_first(crowd: Crowd, scanned: int) -> None:
    with crowd.office.db.read() as cx, patch.object(listing, "SCANNED", scanned):
        for begins in ("a", "AN", "an%", "a_", "a/", "é", "straß", "anna.berg", "ben7", "nobody"):
            whole = crowd.walk(cx, Which("user", pattern=begins), 1000)
            assert set(whole) == crowd.beginning(begins) | _of_office(cx, begins), begins
            assert len(set(whole)) == len(whole)
            assert crowd.walk(cx, Which("user", pattern=begins), 3) == whole
            assert crowd.walk(cx, Which("user", pattern=f"{begins}*"), 7) == whole
            named = [name for name in whole if fold_name(name).startswith(fold_name(begins))]
            assert whole[: len(named)] == sorted(named, key=fold_name)


def test_a_star_at_the_beginning_or_within_stands_for_any_text(crowd: Crowd) -> None:
    with crowd.office.db.read() as cx, patch.object(listing, "SCANNED", 6):
        found = crowd.walk(cx, Which("user", pattern="*BERG"), 4)
        assert set(found) == {name for name, texts in crowd.texts.items() if any("berg" in text for text in texts)}
        found = crowd.walk(cx, Which("user", pattern="an*b"), 4)
        wanted = {
            name
            for name, texts in crowd.texts.items()
            if any(text.lower().startswith("an") and "b" in text[2:] for text in texts)
        }
        assert set(found) == wanted


def test_a_list_is_of_all_partitions_of_one_or_of_a_unit_and_of_a_state(crowd: Crowd) -> None:
    office = crowd.office
    with office.db.read() as cx, patch.object(listing, "SCANNED", 6):
        for partition, unit, disabled in (
            (None, None, None),
            (office.partition, None, None),
            (None, crowd.unit, None),
            (None, None, True),
            (office.partition, None, True),
            (None, crowd.unit, True),
            (office.partition, None, False),
        ):
            which = Which("user", partition, unit, disabled)
            users = [one for one in walk_all(cx, which) if unit is None or one.parent_id == unit.id]
            assert [one.name for one in users] == crowd.walk(cx, which, 3) == crowd.walk(cx, which, 1000)
            assert [fold_name(one.name) for one in users] == sorted(fold_name(one.name) for one in users)
            every = [one for one in walk_all(cx, Which("user")) if disabled in (None, one.disabled)]
            if partition is not None:
                every = [one for one in every if one.partition_id == partition.id]
            if unit is not None:
                every = [one for one in every if one.parent_id == unit.id]
            assert every == users


def test_members_and_what_contains_an_entry_come_by_page(crowd: Crowd, now: Instant) -> None:
    office = crowd.office
    with office.db.begin() as cx:
        inner = [editing.add_group(cx, office.partition, f"g{number}", now) for number in range(9)]
        memberships.add_members(cx, office.group, [*inner, *crowd.users])
        role = editing.add_role(cx, office.partition, "role", now)
        memberships.add_members(cx, role, [office.group, crowd.users[0]])
        with patch.object(listing, "SCANNED", 6):
            groups = walk(lambda after: listing.members_of(cx, office.group, ["group"], after, 2), 2)
            assert sorted(groups) == [one.name for one in inner]
            everybody = walk(lambda after: listing.members_of(cx, office.group, ["group", "user"], after, 7), 7)
            assert sorted(everybody) == sorted([one.name for one in [*inner, *crowd.users, office.alice]])
            user = crowd.users[0]
            assert walk(lambda after: listing.containers_of(cx, user, "group", after, 1), 1) == ["staff"]
            assert walk(lambda after: listing.containers_of(cx, user, "role", after, 1), 1) == ["role"]
        each = memberships.groups_of_each(cx, [crowd.users[0].id, office.alice.id, office.bob.id])
        assert {key: [one.name for one in groups] for key, groups in each.items()} == {
            crowd.users[0].id: ["staff"],
            office.alice.id: ["staff"],
            office.bob.id: [],
        }
        assert memberships.count_members(cx, [office.group.id, role.id]) == {office.group.id: 50, role.id: 2}


INDEXES: dict[str, tuple[Callable[[Crowd], Which], str]] = {
    "of all": (lambda _: Which("user"), "ix_entries_names (kind=? AND name_key>?)"),
    "of a partition": (
        lambda crowd: Which("user", crowd.office.partition),
        "ix_entries_listing (partition_id=? AND kind=? AND name_key>?)",
    ),
    "of a unit": (lambda crowd: Which("user", unit=crowd.unit), "ix_entries_inside (parent_id=? AND kind=?"),
    "disabled": (lambda _: Which("user", disabled=True), "ix_entries_disabled (kind=? AND name_key>?)"),
    "beginning": (lambda _: Which("user", pattern="an"), "ix_entries_names (kind=? AND name_key>? AND name_key<?)"),
    "beginning in a partition": (
        lambda crowd: Which("user", crowd.office.partition, pattern="an"),
        "ix_entries_listing (partition_id=? AND kind=? AND name_key>? AND name_key<?)",
    ),
}


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
@pytest.mark.parametrize("what", INDEXES)
def test_a_page_is_read_from_an_index_in_its_order(crowd: Crowd, what: str) -> None:
    make, index = INDEXES[what]
    after = ListPlace(0, "anna", crowd.users[0].id)
    plans = steps(crowd.office.db, lambda cx: listing.page(cx, make(crowd), after, 3))
    assert any(index in step for step in plans[0][1]), plans[0]
    for statement, plan in plans:
        sorted_from = [
            step for step in plan if step.startswith(("SCAN e", "SCAN attribute_values", "SCAN other_value"))
        ]
        assert not sorted_from, (statement, plan)


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_values_are_read_from_their_index_and_those_of_one_entry_by_its_key(crowd: Crowd) -> None:
    """Of a frequent beginning, the index of values would give all entries for each one."""
    for part in (1, 2, 3):
        turn = partial(listing.page, which=Which("user", pattern="a"), after=ListPlace(part, "an", 5), limit=3)
        plans = steps(crowd.office.db, turn)
        plan = plans[0][1]
        wanted = "ix_attribute_values_folded (name=? AND (folded,entry_id)>(?,?) AND folded<?)"
        assert any(wanted in step for step in plan), plan
        others = [step for step in plan if "other_value" in step]
        assert others
        assert all("(entry_id=?" in step for step in others), plan


def walk_all(cx: Connection, which: Which) -> list[Entry]:
    page = listing.page(cx, which, None, 1000)
    while page.next is not None:
        further = listing.page(cx, which, page.next, 1000)
        page = EntryPage([*page.entries, *further.entries], further.next)
    return page.entries


def _of_office(cx: Connection, begins: str) -> set[str]:
    return {
        entry.name
        for entry in walk_all(cx, Which("user"))
        if entry.name in ("alice", "bob", "app") and entry.name.startswith(fold_name(begins))
    }
