"""Protected APIs: activated once, and who is in their access role."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.administration import resource_decisions
from muniment.directory.entries import access_roles, editing, entries, memberships, resources
from muniment.directory.entries.access_roles import AccessRole
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AlreadyActivated,
    BadAttribute,
    BadName,
    DeadToken,
    InvalidScope,
    NameTaken,
    UnknownResource,
    WrongSecret,
)
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


SECRET = "MDEyMzQ1Njc4OWFiY2RlZg=="


def test_a_resource_may_come_with_the_identity_and_the_secret_that_its_server_has(office: Office, now: Instant) -> None:
    identity = "0B0E6CEB-35B6-4D2E-9E07-4D9B9E2B6A01"
    with office.db.begin() as cx:
        made = resources.add(cx, office.names, "Preset", now, resource_id=identity, secret=SECRET)
        assert (made.id, made.activated) == (identity.lower(), now)
        assert resources.with_secret(cx, made.id, SECRET) == made
        with pytest.raises(AlreadyActivated):
            resources.activate(cx, made.id, now)
        with pytest.raises(NameTaken):
            resources.add(cx, office.names, "Another", now, resource_id=identity)
        for wrong in ({"resource_id": "no uuid"}, {"secret": "short"}):
            with pytest.raises(BadAttribute):
                resources.add(cx, office.names, "Another", now, **wrong)
        only_known = resources.add(cx, office.names, "Named", now, resource_id=identity.replace("0B", "0C"))
        assert only_known.activated is None


def test_a_user_stands_for_a_resource_and_goes_with_it(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        made = resource_decisions.add_resource(cx, office.names, "Archive", now)
        user = entries.stand_in(cx, made.id)
        assert user is not None
        assert (user.name, user.partition_id) == (made.id, entries.administration(cx).id)
        assert not user.has_password
        resource_decisions.remove_resource(cx, made, now)
        assert entries.stand_in(cx, made.id) is None


def test_whoever_got_a_password_stands_for_himself(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        made = resource_decisions.add_resource(cx, office.names, "Archive", now)
        user = entries.stand_in(cx, made.id)
        assert user is not None
        editing.set_password_hash(cx, user, "a hash", now)
        resource_decisions.remove_resource(cx, made, now)
        assert entries.stand_in(cx, made.id) is not None


def test_a_resource_shows_its_own_secret_and_no_other(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        idle = resources.add(cx, office.names, "Idle", now)
        for resource, secret in ((office.resource, "wrong"), (idle, ""), (idle, "wrong"), (office.resource, "")):
            with pytest.raises(WrongSecret):
                resources.with_secret(cx, resource.id, secret)


def test_a_deactivated_resource_can_be_activated_again_and_has_no_sessions(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    with office.db.begin() as cx:
        secret = resources.activate(cx, resources.add(cx, office.names, "Other", now).id, now)
        with pytest.raises(WrongSecret):
            resource_decisions.deactivate(cx, office.resource.id, secret, now)
        other = resources.find(cx, office.names, "Other")
        left, count = resource_decisions.deactivate(cx, other.id, secret, now)
        assert (left, count) == (other, SessionCount())
        assert resources.by_id(cx, other.id).activated is None
        assert resources.activate(cx, other.id, now) != secret
    office.info(issued.access_token, now)


@pytest.mark.parametrize("way", ["activated", "authentication"])
def test_a_resource_that_is_switched_off_ends_its_sessions_and_lets_nobody_sign_in(
    office: Office, now: Instant, way: str
) -> None:
    issued = office.issue(now)
    with office.db.begin() as cx:
        count = resource_decisions.set_status(cx, office.resource, now, **{way: False})
        assert count == SessionCount(1, 0)
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now)
    with pytest.raises(InvalidScope):
        office.begin(now)
    with office.db.begin() as cx:
        present = resources.by_id(cx, office.resource.id)
        assert resource_decisions.set_status(cx, present, now, **{way: True}) == SessionCount()
    office.issue(now)


def test_a_sign_in_under_way_at_a_resource_that_is_switched_off_opens_nothing(office: Office, now: Instant) -> None:
    attempt = office.begin(now)
    with office.db.begin() as cx:
        resource_decisions.set_status(cx, office.resource, now, authentication=False)
    with pytest.raises(InvalidScope):
        office.finish(attempt, True, now)


def test_the_administrations_resource_stays_on(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        held = resources.administration(cx)
        for off in ("activated", "authentication"):
            with pytest.raises(BadName):
                resource_decisions.set_status(cx, held, now, **{off: False})


def test_what_a_resource_says_of_itself_is_kept(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        values: dict[str, Any] = {
            "display_name": "Shown",
            "impersonate_list": ["alice@People"],
            "allow_impersonation": True,
        }
        resources.change(cx, office.resource, **values, settings='{"logoutURL": "x"}')
        kept = resources.by_id(cx, office.resource.id)
        assert (kept.display_name, kept.impersonate_list, kept.allow_impersonation, kept.settings) == (
            *("Shown", ("alice@People",), True, '{"logoutURL": "x"}'),
        )
        wrongs: list[dict[str, Any]] = [{"activated": True}, {"display_name": "x" * 256}, {"description": "\x00"}]
        for wrong in wrongs:
            with pytest.raises(BadAttribute):
                resources.change(cx, office.resource, **wrong)


def _role(cx: Connection, office: Office) -> AccessRole:
    return access_roles.read(cx, office.names, [office.resource])[office.resource.id]


def test_an_access_role_is_named_for_its_resource(office: Office) -> None:
    with office.db.begin() as cx:
        assert access_roles.name(office.names, office.resource) == "Access to My API"
        assert access_roles.find_resource(cx, office.names, "Access to My API").id == office.resource.id
        for unknown in ("My API", "Access to Nothing", ""):
            with pytest.raises(UnknownResource):
                access_roles.find_resource(cx, office.names, unknown)
        default = "Default access role for resource My API"
        assert _role(cx, office).description == default
        access_roles.change(cx, office.resource, description="Ours", attributes='[{"name": "pushAllGroups"}]')
        role = _role(cx, office)
        assert (role.description, role.attributes) == ("Ours", '[{"name": "pushAllGroups"}]')


def test_five_kinds_of_members_let_a_user_in(office: Office, now: Instant) -> None:
    """A role lets in whom it holds, through groups and roles in it, too."""
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, office.partition, "Sales", now)
        jo = editing.add_user(cx, unit, "jo", now)
        group = editing.add_group(cx, office.partition, "sellers", now)
        memberships.add_member(cx, group, jo)
        inner, outer = (editing.add_role(cx, office.partition, name, now) for name in ("inner", "outer"))
        memberships.add_member(cx, outer, inner)
        memberships.add_member(cx, inner, group)
        for member in (jo, group, outer, unit, office.partition):
            resource_decisions.set_role_members(cx, office.resource, [member])
            assert resources.role_members(cx, office.resource) == [member]
            assert resources.admits(cx, office.resource.id, jo.id), member.kind
        resource_decisions.set_role_members(cx, office.resource, [])
        assert not resources.admits(cx, office.resource.id, jo.id)
        assert [one.name for one in memberships.groups_of(cx, jo.id)] == ["sellers"], "a role is no group"


def test_resources_are_listed_by_page_and_by_what_their_name_begins_with(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        for name in ("my other", "Zebra", "Äther"):
            resources.add(cx, office.names, name, now)

        def names(pattern: str, limit: int) -> list[str]:
            found: list[str] = []
            after = None
            while True:
                several, after = resources.page(cx, office.names, pattern, after, limit)
                assert len(several) <= limit
                found += [resources.shown_name(office.names, one) for one in several]
                if after is None:
                    return found

        every = ["Directory Administration", "My API", "my other", "Zebra", "Äther"]
        assert names("", 2) == names("", 100) == names("*", 100) == every
        assert names("MY", 1) == names("my*", 100) == ["My API", "my other"]
        assert names("äTHER", 1) == ["Äther"]
        assert names("*API", 1) == ["My API"]
        assert names("dir", 1) == ["Directory Administration"]
        assert names("+adm", 1) == []
