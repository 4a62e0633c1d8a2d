"""Partitions, units, groups and users: who is where, and who is in what."""

import pytest

from muniment.directory.entries import attributes, editing, entries, memberships, resources
from muniment.directory.entries.table import CLIENTS
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, BadName, NameTaken, UnknownEntry, UnknownPartition
from muniment.ground.clock import Instant
from tests.office import Office

FIELD = DirectoryNames(
    clients_partition="Apps", administration_partition="boss", root_unit="Top", attributes={"mail": "eMail"}
)


def test_initialising_twice_changes_nothing(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        before = entries.partitions(cx)
        editing.initialise(cx, now)
        assert entries.partitions(cx) == before
        assert len(before) == 3


def test_built_in_partitions_are_called_what_the_names_say(office: Office) -> None:
    with office.db.read() as cx:
        for names in (office.names, FIELD):
            clients = entries.find_partition(cx, names, names.clients_partition.upper())
            assert clients.built_in == CLIENTS
            assert entries.shown_name(names, clients) == names.clients_partition
            assert entries.location(names, office.client).startswith(f"cn=app,ou={names.root_unit},ou=")
            found = entries.find_user(cx, names, f"app@{names.clients_partition}")
            assert found == office.client
            assert entries.find_location(cx, names, entries.location(names, found)) == found
        with pytest.raises(UnknownPartition):
            entries.find_partition(cx, office.names, "@clients")


def test_a_partition_may_not_take_a_built_in_name(office: Office, now: Instant) -> None:
    with office.db.begin() as cx, pytest.raises(NameTaken):
        editing.add_partition(cx, office.names, "OAUTHclients", now)


def test_a_name_is_unique_over_the_users_and_groups_of_a_partition_in_any_case(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, office.partition, "Unit", now)
        with pytest.raises(NameTaken):
            editing.add_group(cx, unit, "ALICE", now)
        with pytest.raises(NameTaken):
            editing.add_user(cx, unit, "Staff", now)
        other = editing.add_partition(cx, office.names, "Others", now)
        assert editing.add_user(cx, other, "alice", now).id != office.alice.id


def test_clients_live_at_the_root_location_of_their_partition(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        clients = entries.clients(cx)
        with pytest.raises(BadName):
            editing.add_unit(cx, clients, "Unit", now)
        client = editing.add_user(cx, clients, "other app", now)
        assert client.parent_id == entries.unit_at(cx, clients, ()).id
        assert entries.find_client(cx, "OTHER app") == client
        with pytest.raises(UnknownEntry):
            entries.find_client(cx, "alice")


def test_every_entry_is_found_by_its_location(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        outer = editing.add_unit(cx, office.partition, "A, B", now)
        inner = editing.add_unit(cx, outer, "#In=ner", now)
        jo = editing.add_user(cx, inner, "jo+@x", now)
        root = entries.unit_at(cx, office.partition, ())
        for entry in (office.partition, root, outer, inner, jo, office.group):
            assert entries.find_location(cx, office.names, entries.location(office.names, entry)) == entry
        assert entries.unit_at(cx, office.partition, ("a, b", "#in=NER")) == inner
        with pytest.raises(UnknownEntry):
            entries.find_location(cx, office.names, entries.location(office.names, jo).replace("jo", "jim"))
        with pytest.raises(UnknownEntry):
            entries.find_unit(cx, office.names, entries.location(office.names, jo))


@pytest.mark.slow
@pytest.mark.parametrize("unknown", ["", "alice", "alice@", "@People", "alice@Nowhere", "a\x00@People", "\ud800@x"])
def test_an_unknown_user_is_unknown_whatever_the_spelling(office: Office, unknown: str) -> None:
    with office.db.read() as cx, pytest.raises(UnknownEntry):
        entries.find_user(cx, office.names, unknown)


def test_groups_nest_and_loops_end(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        two = editing.add_group(cx, office.partition, "two", now)
        three = editing.add_group(cx, office.partition, "three", now)
        for group, member in ((two, office.group), (three, two), (office.group, three)):
            memberships.add_member(cx, group, member)
            memberships.add_member(cx, group, member)
        assert memberships.groups_of(cx, office.alice.id) == [office.group, three, two]
        assert memberships.groups_of(cx, office.bob.id) == []
        assert memberships.members(cx, office.group) == [three, office.alice]
        memberships.remove_members(cx, office.group, [office.alice])
        memberships.remove_members(cx, office.group, [office.alice])
        assert memberships.groups_of(cx, office.alice.id) == []


def test_only_users_and_groups_are_members_of_groups(office: Office) -> None:
    with office.db.begin() as cx:
        with pytest.raises(BadName):
            memberships.add_member(cx, office.group, office.partition)
        with pytest.raises(BadName):
            memberships.add_member(cx, office.alice, office.bob)


def test_a_deleted_users_number_is_not_given_again(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        last = editing.add_user(cx, office.partition, "last", now)
        memberships.add_member(cx, office.group, last)
        editing.delete(cx, last, now)
        assert entries.by_id(cx, last.id) is None
        assert last not in memberships.members(cx, office.group)
        assert editing.add_user(cx, office.partition, "last", now).id > last.id


def test_what_is_built_in_or_filled_is_not_deleted(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        for held in (entries.clients(cx), entries.administrators(cx), office.partition):
            with pytest.raises(BadName):
                editing.delete(cx, held, now)
        empty = editing.add_partition(cx, office.names, "Empty", now)
        unit = editing.add_unit(cx, empty, "Unit", now)
        with pytest.raises(BadName):
            editing.delete(cx, empty, now)
        editing.delete(cx, unit, now)
        editing.delete(cx, empty, now)
        with pytest.raises(UnknownPartition):
            entries.find_partition(cx, office.names, "Empty")


def test_a_listing_is_read_page_by_page(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        for number in range(5):
            editing.add_user(cx, office.partition, f"user {number}", now)
        seen: list[str] = []
        while page := entries.listing(cx, office.partition, "user", after=seen[-1] if seen else "", limit=2):
            seen += [user.name for user in page]
    assert seen == ["alice", "bob", *(f"user {number}" for number in range(5))]


def test_flags_and_descriptions_are_kept(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        editing.set_flags(cx, office.bob, now + 5, password_never_expires=True)
        editing.set_description(cx, office.bob, "A builder.", now + 5)
        editing.set_disabled(cx, office.bob, True, now + 5)
        editing.set_locked(cx, office.bob, True, now + 5)
        editing.set_password_hash(cx, office.bob, None, now + 6)
        bob = entries.find_user(cx, office.names, "bob@people")
        with pytest.raises(BadAttribute):
            editing.set_flags(cx, office.bob, now, locked=True)
    assert (bob.password_never_expires, bob.must_change_password, bob.disabled, bob.locked) == (True, False, True, True)
    assert (bob.description, bob.has_password, bob.created, bob.modified) == ("A builder.", False, now, now + 6)
    assert not bob.live


@pytest.mark.parametrize("text", ["\x00", "a\udcff"])
def test_a_description_that_no_database_can_store_is_refused(office: Office, text: str, now: Instant) -> None:
    """A command gets half of a surrogate pair for a byte that is not UTF-8."""
    with office.db.begin() as cx:
        for change in (
            lambda: editing.set_description(cx, office.bob, text, now),
            lambda: editing.add_partition(cx, office.names, "New", now, description=text),
            lambda: editing.add_user(cx, office.partition, "new", now, description=text),
            lambda: resources.add(cx, office.names, "New", now, description=text),
            lambda: resources.change(cx, office.resource, description=text),
        ):
            with pytest.raises(BadAttribute):
                change()


def test_an_attribute_is_kept_under_our_name_and_shown_under_the_wires(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        attributes.put(cx, FIELD, office.bob, {"eMail": ["bob@example.org"], "room": ["east", 7]}, now)
        assert attributes.stored_values(cx, office.bob.id) == {"mail": ["bob@example.org"], "room": ["east", 7]}
        attributes.put(cx, office.names, office.bob, {"mail": []}, now)
        assert attributes.stored_values(cx, office.bob.id) == {"room": ["east", 7]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"), [("", ["a"]), ("9", ["a"]), ("cn", ["a"]), ("room", ["\x00"]), ("room", ["a"] * 101)]
)
def test_an_attribute_that_cannot_be_kept_is_refused(
    office: Office, now: Instant, name: str, values: list[str | int]
) -> None:
    with office.db.begin() as cx, pytest.raises(BadAttribute):
        attributes.put(cx, office.names, office.bob, {name: values}, now)
