"""Entries and resources get other names and other places, unless others know them by the ones they have."""

import pytest

from muniment.database.connections import Database
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import BadName, CannotKnow, NameInUse, NameTaken, UnknownEntry, WrongPartition
from muniment.ground.clock import Instant
from muniment.integration import guards
from tests.office import Office


@pytest.fixture
def office(directory_db: Database, now: Instant) -> Office:
    return Office(directory_db, now)


def rename(office: Office, entry: Entry, name: str, now: Instant, *, known: str = "") -> Entry:
    with office.db.begin() as cx:
        return decisions.rename(cx, office.names, entry, name, now, is_known=lambda identity: identity == known)


def move(office: Office, entry: Entry, parent: Entry, now: Instant) -> Entry:
    with office.db.begin() as cx:
        return decisions.move(cx, office.names, entry, parent, now)


def unit(office: Office, parent: Entry, name: str, now: Instant) -> Entry:
    with office.db.begin() as cx:
        return editing.add_unit(cx, parent, name, now)


def location(office: Office, entry: Entry) -> str:
    with office.db.read() as cx:
        stored = entries.by_id(cx, entry.id)
    assert stored is not None
    return entries.location(office.names, stored)


def test_a_user_whom_no_repository_knows_gets_another_name_and_stays_the_same_user(
    office: Office, now: Instant
) -> None:
    renamed = rename(office, office.bob, "Robert", now + 1)
    assert entries.shown_id(office.names, renamed) == "Robert@People"
    assert (renamed.id, renamed.uuid, renamed.modified) == (office.bob.id, office.bob.uuid, now + 1)
    with office.db.read() as cx:
        assert entries.find_user(cx, office.names, "ROBERT@people") == renamed
        with pytest.raises(UnknownEntry):
            entries.find_user(cx, office.names, "bob@People")
    assert rename(office, renamed, "robert", now).name == "robert", "its own name is not taken"


def test_a_name_that_a_repository_knows_or_another_has_stays(office: Office, now: Instant) -> None:
    with pytest.raises(NameInUse, match="bob@People"):
        rename(office, office.bob, "Robert", now, known=office.bob.uuid)
    with pytest.raises(NameTaken):
        rename(office, office.bob, "ALICE", now)
    with pytest.raises(NameTaken):
        rename(office, office.group, "alice", now)
    with pytest.raises(BadName):
        rename(office, office.bob, "", now)
    assert location(office, office.bob).startswith("cn=bob,")


def test_a_directory_apart_renames_users_only_when_told_that_nobody_knows_them(office: Office, now: Instant) -> None:
    with pytest.raises(CannotKnow, match="bob@People"), office.db.begin() as cx:
        guards.rename(cx, None, office.names, office.bob, "Robert", now, {})
    with office.db.begin() as cx:
        assert guards.rename(cx, None, office.names, office.bob, "Robert", now, {}, force=True).name == "Robert"


def test_a_renamed_unit_changes_the_locations_of_all_that_lies_in_it(office: Office, now: Instant) -> None:
    house = unit(office, office.partition, "House", now)
    room = unit(office, house, "Room", now)
    desk = unit(office, room, "Desk", now)
    for entry, place in ((office.alice, desk), (office.group, house)):
        move(office, entry, place, now)
    renamed = rename(office, house, "Palace", now)
    end = f"ou=Palace,ou=Root,ou=People,{office.names.dn_suffix}"
    assert entries.location(office.names, renamed) == end
    assert location(office, office.alice) == f"cn=alice,ou=Desk,ou=Room,{end}"
    assert location(office, office.group) == f"cn=staff,{end}"
    assert location(office, office.bob) == f"cn=bob,ou=Root,ou=People,{office.names.dn_suffix}"
    with office.db.read() as cx:
        assert entries.find_location(cx, office.names, f"ou=Desk,ou=Room,{end}").id == desk.id
        assert [one.name for one in entries.inside(cx, renamed)] == ["Room", "staff"], "units come first"
    unit(office, office.partition, "Annex", now)
    with pytest.raises(NameTaken):
        rename(office, renamed, "ANNEX", now)


def test_what_comes_into_a_unit_while_it_is_renamed_or_removed_has_its_present_location(
    office: Office, now: Instant
) -> None:
    """On PostgreSQL, another transaction may have read the unit before."""
    house, shed = unit(office, office.partition, "House", now), unit(office, office.partition, "Shed", now)
    rename(office, house, "Palace", now)
    with office.db.begin() as cx:
        guest = editing.add_user(cx, house, "guest", now)
        decisions.remove(cx, shed, now)
    move(office, office.bob, house, now)
    end = f"ou=Palace,ou=Root,ou=People,{office.names.dn_suffix}"
    assert [location(office, each) for each in (guest, office.bob)] == [f"cn=guest,{end}", f"cn=bob,{end}"]
    with pytest.raises(BadName, match="removed"):
        unit(office, shed, "Corner", now)
    with pytest.raises(BadName, match="removed"):
        move(office, office.bob, shed, now)
    with office.db.begin() as cx:
        others = editing.add_partition(cx, office.names, "Others", now)
        corner = editing.add_unit(cx, others, "Corner", now)
        decisions.remove(cx, corner, now)
        decisions.remove(cx, others, now)
    for place in (corner, others):
        with pytest.raises(BadName, match="removed"), office.db.begin() as cx:
            editing.add_user(cx, place, "guest", now)
    with pytest.raises(BadName, match="removed"):
        rename(office, corner, "Nook", now)
    with pytest.raises(BadName, match="removed"):
        move(office, shed, office.partition, now)


def test_a_moved_unit_takes_all_that_lies_in_it_along(office: Office, now: Instant) -> None:
    house, garden = unit(office, office.partition, "House", now), unit(office, office.partition, "Garden", now)
    room = unit(office, house, "Room", now)
    move(office, office.bob, room, now)
    move(office, room, garden, now)
    root = f"ou=Root,ou=People,{office.names.dn_suffix}"
    assert location(office, office.bob) == f"cn=bob,ou=Room,ou=Garden,{root}"
    unit(office, house, "ROOM", now)
    with pytest.raises(NameTaken):
        move(office, room, house, now)
    with pytest.raises(BadName, match="into itself"):
        move(office, garden, room, now)
    with pytest.raises(BadName, match="into itself"):
        move(office, garden, garden, now)
    move(office, room, office.partition, now)
    assert location(office, office.bob) == f"cn=bob,ou=Room,{root}"


def test_what_is_built_in_stays_and_nothing_leaves_its_partition(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        other = editing.add_partition(cx, office.names, "Others", now)
        built_in = [entries.administration(cx), entries.administrators(cx), entries.clients(cx)]
    for entry in built_in:
        with pytest.raises((BadName, NameInUse)):
            rename(office, entry, "mine", now)
    with pytest.raises(WrongPartition, match="'Others'"):
        move(office, office.bob, other, now)
    with pytest.raises(BadName):
        move(office, other, other, now)
    with pytest.raises(BadName):
        move(office, office.bob, office.group, now)
    with office.db.read() as cx:
        clients = entries.clients(cx)
    with pytest.raises(BadName):
        move(office, office.client, clients, now)


def test_a_partition_keeps_its_name_while_ids_end_with_it(office: Office, now: Instant) -> None:
    with pytest.raises(NameInUse, match="1 groups and 2 users"):
        rename(office, office.partition, "Persons", now)
    with office.db.begin() as cx:
        empty = editing.add_partition(cx, office.names, "Nobody", now)
    for taken in ("people", office.names.clients_partition, office.names.administration_partition.upper()):
        with pytest.raises(NameTaken):
            rename(office, empty, taken, now)
    assert rename(office, empty, "Everybody", now).name == "Everybody"


def test_clients_and_resources_keep_their_names_while_grants_live(office: Office, now: Instant) -> None:
    office.issue(now)
    with pytest.raises(NameInUse, match="1 grants"):
        rename(office, office.client, "application", now)
    with pytest.raises(NameInUse, match=r"resource:My\+API"), office.db.begin() as cx:
        resource_decisions.rename_resource(cx, office.names, office.resource, "Your API", now)
    with office.db.begin() as cx:
        decisions.sign_out(cx, office.alice, now)
    with office.db.begin() as cx:
        robots = editing.add_group(cx, entries.clients(cx), "robots", now)
    for known in (office.client, robots):
        with pytest.raises(NameInUse, match="A repository knows"):
            rename(office, known, "others", now, known=known.uuid)
    assert rename(office, office.client, "application", now).name == "application"
    with office.db.begin() as cx:
        other = resources.add(cx, office.names, "Other", now)
        resource_decisions.rename_resource(cx, office.names, office.resource, "Your API", now)
        assert resources.find(cx, office.names, "Your API").id == office.resource.id
        resources.change(cx, office.resource, description="for you")
        assert resources.by_id(cx, office.resource.id).description == "for you"
        for name, refusal in (
            ("your api", NameTaken),
            ("a+b", BadName),
            (office.names.administration_resource, NameTaken),
        ):
            with pytest.raises(refusal):
                resource_decisions.rename_resource(cx, office.names, other, name, now)
        with pytest.raises(BadName):
            resource_decisions.rename_resource(cx, office.names, resources.administration(cx), "mine", now)


def test_groups_that_contain_each_other_are_a_loop(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        inner = editing.add_group(cx, office.partition, "inner", now)
        deepest = editing.add_group(cx, office.partition, "deepest", now)
        memberships.add_member(cx, office.group, inner)
        memberships.add_member(cx, inner, deepest)
        assert not memberships.closes_loop(cx, office.group, inner)
        assert not memberships.closes_loop(cx, deepest, office.alice)
        assert memberships.closes_loop(cx, deepest, office.group), "before it is added"
        memberships.add_member(cx, deepest, office.group)
        assert memberships.closes_loop(cx, deepest, office.group)
        assert memberships.closes_loop(cx, inner, inner)
