"""given 2.2: a directory Resource has a name, an identifier, an activation and an access role."""

import uuid

import pytest

from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.refusals import UnknownResource
from muniment.ground.refusals import Refusal
from tests.scenes import Site


def test_2_2_the_name_is_used_in_the_scope(site: Site) -> None:
    assert site.world.scope == "resource:" + site.world.resource_name.replace(" ", "+")
    assert site.ask_token(site.world.reader).status_code == 200


def test_2_2_the_identifier_is_a_uuid_assigned_at_creation(site: Site) -> None:
    made = site.world.resource()
    with site.world.directory_db.read() as cx:
        assert str(uuid.UUID(made.id)) == made.id
        assert resources.by_id(cx, made.id).name == made.name
        with pytest.raises(UnknownResource):
            resources.by_id(cx, str(uuid.uuid4()))


def test_2_2_activation_is_required_once_before_use(site: Site) -> None:
    made = site.world.resource()
    site.world.admit(site.world.reader, made.id)
    scope = "resource:" + made.name.replace(" ", "+")
    before = site.ask_token(site.world.reader, scope=scope)
    assert (before.status_code, before.json()["error"]) == (400, "invalid_scope")
    with site.world.directory_db.begin() as cx:
        resources.activate(cx, made.id, site.world.clock())
    assert site.ask_token(site.world.reader, scope=scope).status_code == 200


def test_2_2_the_access_role_is_made_with_the_resource_and_admits_nobody_yet(site: Site) -> None:
    made = site.world.resource(activated=True)
    refused = site.ask_token(site.world.reader, scope="resource:" + made.name.replace(" ", "+"))
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("container", ["user", "group", "group in a group", "unit", "partition"])
def test_2_2_users_and_containers_of_users_may_be_members(site: Site, container: str) -> None:
    world, now = site.world, site.world.clock()
    person = world.person(member=False)
    made = world.resource(activated=True)
    scope = "resource:" + made.name.replace(" ", "+")
    assert site.ask_token(person, scope=scope).json()["error"] == "invalid_grant"
    with world.directory_db.begin() as cx:
        user = entries.find_user(cx, site.directory_names, person.id)
        partition = entries.find_partition(cx, site.directory_names, world.partition)
        if container == "user":
            member = user
        elif container == "partition":
            member = partition
        elif container == "unit":
            member = entries.unit_at(cx, partition, ())
        else:
            member = editing.add_group(cx, partition, f"group-{next(world.numbers)}", now)
            memberships.add_member(cx, member, user)
            if container == "group in a group":
                inner, member = member, editing.add_group(cx, partition, f"group-{next(world.numbers)}", now)
                memberships.add_member(cx, member, inner)
        resources.add_to_role(cx, made, member)
    assert site.ask_token(person, scope=scope).status_code == 200


def test_2_2_groups_that_hold_each_other_end(site: Site) -> None:
    world, now = site.world, site.world.clock()
    person = world.person(member=False)
    with world.directory_db.begin() as cx:
        user = entries.find_user(cx, site.directory_names, person.id)
        partition = entries.find_partition(cx, site.directory_names, world.partition)
        one = editing.add_group(cx, partition, f"loop-{next(world.numbers)}", now)
        two = editing.add_group(cx, partition, f"loop-{next(world.numbers)}", now)
        memberships.add_member(cx, one, two)
        memberships.add_member(cx, two, one)
        memberships.add_member(cx, two, user)
        resources.add_to_role(cx, resources.by_id(cx, world.resource_id), one)
    assert site.ask_token(person).status_code == 200


def test_2_2_a_name_whose_scope_could_mean_another_is_refused(site: Site) -> None:
    with site.world.directory_db.begin() as cx:
        for name in ("Demo+Files", "demo files", site.world.resource_name):
            with pytest.raises(Refusal):
                resources.add(cx, site.directory_names, name, site.world.clock())
