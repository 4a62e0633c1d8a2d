"""Protected APIs: activated once, and who is in their access role."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AlreadyActivated, BadName, NameTaken, UnknownResource
from muniment.ground.clock import Instant
from tests.office import Office, counted


def test_a_resource_is_found_by_any_spelling_of_its_identifier(office: Office) -> None:
    with office.db.read() as cx:
        assert resources.by_id(cx, office.resource.id.upper()).id == office.resource.id
        for unknown in ("", "x", "00000000-0000-0000-0000-000000000000", "\x00", office.resource.id + "0"):
            with pytest.raises(UnknownResource):
                resources.by_id(cx, unknown)


def test_a_resource_is_found_by_its_exact_name(office: Office) -> None:
    with office.db.read() as cx:
        assert resources.find(cx, office.names, "My API").id == office.resource.id
        for unknown in ("my api", "My+API", "", "+administration", "\x00"):
            with pytest.raises(UnknownResource):
                resources.find(cx, office.names, unknown)


def test_the_administrations_resource_is_called_what_the_names_say(office: Office) -> None:
    with office.db.read() as cx:
        held = resources.administration(cx)
        assert held.activated is not None
        for names in (office.names, DirectoryNames(administration_resource="Boss")):
            assert resources.find(cx, names, names.administration_resource) == held
            assert resources.scope(names, held) == "resource:" + names.administration_resource.replace(" ", "+")


@pytest.mark.parametrize("name", ["my API", "MY API", "Directory Administration"])
def test_a_name_whose_scope_exists_is_taken(office: Office, now: Instant, name: str) -> None:
    with office.db.begin() as cx, pytest.raises(NameTaken):
        resources.add(cx, office.names, name, now)


def test_a_name_with_a_plus_sign_is_refused(office: Office, now: Instant) -> None:
    with office.db.begin() as cx, pytest.raises(BadName):
        resources.add(cx, office.names, "My+API", now)


def test_of_twenty_activations_at_a_time_one_succeeds(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        made = resources.add(cx, office.names, "Twenty", now)
        assert made.activated is None

    def activate(_: int) -> str | None:
        try:
            with office.db.begin() as cx:
                return resources.activate(cx, made.id, now)
        except AlreadyActivated:
            return None

    with ThreadPoolExecutor(20) as threads:
        secrets = [secret for secret in threads.map(activate, range(20)) if secret is not None]
    assert len(secrets) == 1
    assert len(secrets[0]) == 24
    with office.db.read() as cx:
        kept = cx.execute(sa.text("SELECT secret_digest FROM resources WHERE id = :id"), {"id": made.id}).scalar_one()
        assert bytes(kept) == hashlib.sha256(secrets[0].encode()).digest()
        assert resources.by_id(cx, made.id).activated == now


def test_an_unknown_resource_is_not_activated(office: Office, now: Instant) -> None:
    with office.db.begin() as cx, pytest.raises(UnknownResource):
        resources.activate(cx, "00000000-0000-0000-0000-000000000000", now)


def test_the_role_admits_by_user_group_unit_and_partition_however_deep(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        outer = editing.add_unit(cx, office.partition, "Outer", now)
        inner = editing.add_unit(cx, outer, "Inner", now)
        jo = editing.add_user(cx, inner, "jo", now)
        group = editing.add_group(cx, office.partition, "group", now)
        nested = editing.add_group(cx, office.partition, "nested", now)
        memberships.add_member(cx, group, nested)
        memberships.add_member(cx, nested, group)
        memberships.add_member(cx, nested, jo)
        made = resources.add(cx, office.names, "Roles", now)
        for way_in in (jo, nested, group, inner, outer, entries.unit_at(cx, office.partition, ()), office.partition):
            assert not resources.admits(cx, made.id, jo.id)
            resources.add_to_role(cx, made, way_in)
            resources.add_to_role(cx, made, way_in)
            assert resources.admits(cx, made.id, jo.id), way_in.name
            assert resources.role_members(cx, made) == [way_in]
            assert not resources.admits(cx, office.resource.id, jo.id), "another resource's role"
            resources.remove_from_role(cx, made, way_in)


def test_where_a_group_lies_gives_its_members_nothing(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, office.partition, "Unit", now)
        group = editing.add_group(cx, unit, "of the unit", now)
        other = editing.add_partition(cx, office.names, "Others", now)
        jo = editing.add_user(cx, other, "jo", now)
        memberships.add_member(cx, group, jo)
        made = resources.add(cx, office.names, "Unit's own", now)
        resources.add_to_role(cx, made, unit)
        resources.add_to_role(cx, made, office.partition)
        assert not resources.admits(cx, made.id, jo.id)


def test_admission_is_one_statement(office: Office) -> None:
    with office.db.read() as cx:
        for user in (office.alice.id, office.bob.id, -1):
            with counted(office.db) as sent:
                resources.admits(cx, office.resource.id, user)
            assert len(sent) == 1


def test_a_deleted_resource_takes_its_role_along(office: Office) -> None:
    with office.db.begin() as cx:
        resources.delete(cx, office.resource)
        assert not resources.admits(cx, office.resource.id, office.alice.id)
        assert [held.built_in for held in resources.all_resources(cx)] == [resources.ADMINISTRATION]
        with pytest.raises(BadName):
            resources.delete(cx, resources.administration(cx))
