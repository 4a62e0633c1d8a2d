"""Tickets of programs: made for a password, for a user, for a resource; and what each of them opens."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from muniment.directory.administration import client_decisions, decisions, resource_decisions
from muniment.directory.entries import editing, entries, memberships, oauth_clients, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import tokeninfo
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.refusals import (
    AccessEnded,
    CannotImpersonate,
    ExpiredTicket,
    NotSignedIn,
    SignInRefused,
    UnknownResource,
)
from muniment.directory.sign_in import form, holders, programs, tickets
from muniment.directory.sign_in.pauses import Origin
from muniment.directory.sign_in.programs import Impersonator, ProgramTicket
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal
from tests.office import HASH, HOME, Office, counted

HOUR = 3600 * SECOND


class Desk:
    """The office, with an administrator, a client and a resource that may act for others, and a resource for them."""

    def __init__(self, office: Office, now: Instant) -> None:
        self.office, self.db, self.names, self.options = office, office.db, office.names, office.options
        with self.db.begin() as cx:
            administration = entries.administration(cx)
            self.admin = editing.add_user(cx, administration, "admin", now, password_hash=HASH)
            memberships.add_member(cx, entries.administrators(cx), self.admin)
            self.client = editing.add_client(cx, "agent", now, password_hash=HASH)
            self.robot = resources.add(cx, self.names, "Robot", now)
            self.secret = resources.activate(cx, self.robot.id, now)
        self.allow(office.resource.id)
        self.allow(self.robot.id)
        self.allow(self.client)

    def allow(self, whom: Entry | str, allowed: bool = True, only: Sequence[str] = ()) -> None:
        """Turn the switch of a client or a resource in its row."""
        switch: dict[str, Any] = {"allow_impersonation": allowed, "impersonate_list": tuple(only)}
        with self.db.begin() as cx:
            if isinstance(whom, str):
                resources.change(cx, resources.by_id(cx, whom), **switch)
            else:
                oauth_clients.write(cx, whom, ClientSettings(**switch), 0)

    def sign_in(self, username: str, now: Instant, target: str | None = None, *, right: bool = True) -> ProgramTicket:
        with self.db.begin() as cx:
            attempt = programs.begin(cx, self.options, target, username, Origin(HOME), now)
            return programs.finish(cx, self.options, attempt, target, right, now)

    def ticket(self, username: str, now: Instant, target: str | None = None) -> str:
        text = self.sign_in(username, now, target).text
        assert text is not None
        return text

    def caller(self, who: str, now: Instant) -> Impersonator:
        """An administrator, a client, a resource, or a user."""
        if who == "resource":
            with self.db.read() as cx:
                return Impersonator(resource=programs.resource_by_secret(cx, self.robot.id, self.secret))
        name = {"administrator": "admin", "client": "agent@OAuthClients", "user": "bob@People"}[who]
        text = self.ticket(name, now)
        with self.db.read() as cx:
            return programs.caller_by_ticket(cx, self.names, text, now)

    def for_user(
        self, caller: Impersonator, now: Instant, username: str = "alice@People", target: str | None = None
    ) -> ProgramTicket:
        with self.db.begin() as cx:
            user = programs.lock_user(cx, self.options, username)
            return programs.for_user(cx, self.options, caller, user, target, now)

    def acting(
        self, caller: Impersonator, now: Instant, username: str = "alice@People", target: str | None = None
    ) -> str:
        text = self.for_user(caller, now, username, target).text
        assert text is not None
        return text

    def for_resource(self, text: str, target: str, now: Instant) -> str:
        with self.db.begin() as cx:
            given = programs.for_resource(cx, self.options, text, None, target, now).text
        assert given is not None
        return given

    def opens(self, text: str, now: Instant, resource_id: str = "") -> type[Refusal] | None:
        """What a repository guarded by the resource is told of the ticket, None if it opens it."""
        resource_id = resource_id or self.office.resource.id
        with self.db.read() as cx:
            try:
                tokeninfo.verify_ticket(cx, self.options, self.office.memory, text, resource_id, now)
            except Refusal as refusal:
                return type(refusal)
        return None

    def opens_directory(self, text: str, now: Instant) -> type[Refusal] | None:
        with self.db.read() as cx:
            try:
                holders.of_directory(cx, self.names, text, now)
            except Refusal as refusal:
                return type(refusal)
        return None


@pytest.fixture
def desk(office: Office, now: Instant) -> Desk:
    return Desk(office, now)


# A name and a password


def test_without_a_target_it_opens_the_directory_and_what_lets_its_user_in(desk: Desk, now: Instant) -> None:
    given = desk.sign_in("alice@People", now)
    assert given.text is not None
    assert (given.user.name, given.resource) == ("alice", None)
    assert desk.opens_directory(given.text, now) is None
    assert desk.opens(given.text, now) is None
    assert desk.opens(desk.ticket("bob@People", now), now) is AccessEnded
    with desk.db.read() as cx:
        holder = holders.of_directory(cx, desk.names, given.text, now)
    assert (holder.user.name, holder.ticket.made, holder.of_browser) == ("alice", "credentials", False)


def test_with_a_target_it_opens_that_resource_alone(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        resources.add_to_role(cx, desk.robot, desk.office.group)
    text = desk.ticket("alice@People", now, desk.office.resource.id)
    assert desk.opens(text, now) is None
    assert desk.opens(text, now, desk.robot.id) is NotSignedIn
    assert desk.opens_directory(text, now) is NotSignedIn
    with pytest.raises(NotSignedIn):
        desk.for_resource(text, desk.robot.id, now)


def test_a_target_must_be_activated_and_let_the_user_in(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        dormant = resources.add(cx, desk.names, "Dormant", now)
    for target in (dormant.id, "garbage", desk.client.uuid):
        with pytest.raises(UnknownResource):
            desk.sign_in("alice@People", now, target)
    with pytest.raises(SignInRefused) as refusal:
        desk.sign_in("bob@People", now, desk.office.resource.id)
    assert refusal.value.reason == "no access to the resource"


def test_a_client_signs_in_with_its_secret_and_a_public_one_does_not(desk: Desk, now: Instant) -> None:
    assert desk.opens_directory(desk.ticket("agent@OAuthClients", now), now) is None
    with pytest.raises(SignInRefused):
        desk.sign_in("app@OAuthClients", now)


@pytest.mark.parametrize("default", ["", "People"])
def test_a_bare_name_is_looked_for_in_three_places(office: Office, now: Instant, default: str) -> None:
    desk = Desk(office, now)
    desk.options = msgspec.structs.replace(office.options, default_partition=default)
    with desk.db.begin() as cx:
        other = editing.add_partition(cx, desk.names, "Others", now)
        for partition in (office.partition, other):
            for name in ("admin", "marta"):
                editing.add_user(cx, partition, name, now, password_hash=HASH)
        editing.add_user(cx, other, "lone", now, password_hash=HASH)
        editing.add_user(cx, other, "x@y.example", now, password_hash=HASH)
    assert desk.sign_in("ADMIN", now).user.id == desk.admin.id
    assert desk.sign_in("lone", now).user.partition == "Others"
    assert desk.sign_in("x@y.example", now).user.partition == "Others"
    if default:
        assert desk.sign_in("marta", now).user.partition == "People"
    else:
        with pytest.raises(SignInRefused) as refusal:
            desk.sign_in("marta", now)
        assert refusal.value.reason == "unknown user"


@pytest.mark.parametrize("bare", [False, True])
def test_whatever_speaks_against_it_it_takes_the_same_statements(desk: Desk, now: Instant, bare: bool) -> None:
    """failures A1, A2"""
    with desk.db.begin() as cx:
        other = editing.add_partition(cx, desk.names, "Others", now)
        for name in ("off", "out", "wrong"):
            editing.add_user(cx, desk.office.partition, name, now, password_hash=HASH)
        for partition in (desk.office.partition, other):
            editing.add_user(cx, partition, "twice", now, password_hash=HASH)
        for name, state in (("off", editing.set_disabled), ("out", editing.set_locked)):
            state(cx, entries.find_user(cx, desk.names, f"{name}@People"), True, now)
    seen = set()
    for name in ("off", "out", "wrong", "nobody", "twice" if bare else "nobody"):
        with counted(desk.db) as sent, pytest.raises(SignInRefused) as refusal:
            desk.sign_in(name if bare else f"{name}@People", now, right=name != "wrong")
        seen.add((refusal.value.sentence, tuple(sent)))
    assert len(seen) == 1


def test_who_must_choose_a_new_password_gets_no_ticket(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        editing.set_flags(cx, desk.office.alice, now, must_change_password=True)
    given = desk.sign_in("alice@People", now)
    assert (given.text, given.user.name) == (None, "alice")
    with pytest.raises(SignInRefused):
        desk.sign_in("alice@People", now, right=False)


@pytest.mark.parametrize("way", ["disabled", "locked", "new password", "removed", "signed out"])
def test_what_ends_a_users_tickets_ends_a_programs_for_good(desk: Desk, now: Instant, way: str) -> None:
    """decision 0021"""
    alice = desk.office.alice
    general, targeted = desk.ticket("alice@People", now), desk.ticket("alice@People", now, desk.office.resource.id)
    derived, acting = (
        desk.for_resource(general, desk.office.resource.id, now),
        desk.acting(desk.caller("client", now), now),
    )
    everything = (general, targeted, derived, acting)
    assert [desk.opens(text, now) for text in everything] == [None] * 4
    with desk.db.begin() as cx:
        match way:
            case "disabled":
                decisions.set_disabled(cx, alice, True, now)
                decisions.set_disabled(cx, alice, False, now)
            case "locked":
                decisions.set_locked(cx, alice, True, now)
                decisions.set_locked(cx, alice, False, now)
            case "new password":
                decisions.set_password(cx, alice, HASH, now)
            case "removed":
                decisions.remove(cx, alice, now)
            case _:
                decisions.sign_out(cx, alice, now)
    assert [desk.opens(text, now) for text in everything] == [ExpiredTicket] * 4


# For one resource


def test_a_ticket_for_a_resource_opens_it_alone_and_ends_with_the_other(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        resources.add_to_role(cx, desk.robot, desk.office.group)
    general = desk.ticket("alice@People", now)
    text = desk.for_resource(general, desk.office.resource.id, now)
    assert desk.opens(text, now) is None
    assert desk.opens(text, now, desk.robot.id) is NotSignedIn
    assert desk.opens_directory(text, now) is NotSignedIn
    for target in (desk.robot.id, desk.office.resource.id):
        with pytest.raises(NotSignedIn):
            desk.for_resource(text, target, now)
    with desk.db.read() as cx:
        expires = {tickets.read(cx, desk.names, each, now).expires for each in (general, text)}
    assert len(expires) == 1
    with desk.db.begin() as cx:
        tickets.end(cx, desk.names, general)
    assert desk.opens(text, now) is ExpiredTicket


def test_nobody_gets_one_for_a_resource_that_does_not_let_them_in(desk: Desk, now: Instant) -> None:
    with pytest.raises(AccessEnded):
        desk.for_resource(desk.ticket("bob@People", now), desk.office.resource.id, now)
    with pytest.raises(UnknownResource):
        desk.for_resource(desk.ticket("alice@People", now), "garbage", now)


def test_a_browsers_ticket_for_another_resource_makes_none(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        attempt = form.begin(cx, desk.options, desk.office.resource.id, "alice@People", Origin(HOME), now)
        text = form.finish(cx, desk.options, attempt, True, "", "", now).ticket
    with pytest.raises(NotSignedIn):
        desk.for_resource(text, desk.office.resource.id, now)


def test_a_resource_learns_whose_ticket_it_is(desk: Desk, now: Instant) -> None:
    resource = desk.office.resource
    with desk.db.begin() as cx:
        resources.add_to_role(cx, desk.robot, desk.office.group)
    general = desk.ticket("alice@People", now)
    here, there = (desk.for_resource(general, each, now) for each in (resource.id, desk.robot.id))

    def valid(text: str) -> str:
        with desk.db.read() as cx:
            return programs.validate(cx, desk.names, text, resource, now).user.name

    assert [valid(text) for text in (general, here)] == ["alice", "alice"]
    for text in (there, desk.ticket("bob@People", now), "garbage"):
        with pytest.raises(NotSignedIn):
            valid(text)


def test_only_its_own_secret_shows_a_resource(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        assert programs.resource_by_secret(cx, desk.robot.id, desk.secret).name == "Robot"
        dormant = resources.add(cx, desk.names, "Dormant", now)
        other = resources.activate(cx, resources.add(cx, desk.names, "Other", now).id, now)
        for resource_id, secret in (
            (desk.robot.id, other),
            (desk.robot.id, ""),
            (dormant.id, ""),
            ("garbage", desk.secret),
            (desk.client.uuid, desk.secret),
        ):
            with pytest.raises(NotSignedIn):
                programs.resource_by_secret(cx, resource_id, secret)


# For another user

CALLERS = ("administrator", "client", "resource")


@pytest.mark.parametrize("who", CALLERS)
def test_a_caller_acts_as_a_user_where_it_and_the_resource_allow_it(desk: Desk, now: Instant, who: str) -> None:
    caller = desk.caller(who, now)
    general = desk.acting(caller, now)
    targeted = desk.acting(caller, now, target=desk.office.resource.id)
    assert [desk.opens(text, now) for text in (general, targeted)] == [None, None]
    assert desk.opens(targeted, now, desk.robot.id) is NotSignedIn
    desk.allow(desk.office.resource.id, False)
    assert [desk.opens(text, now) for text in (general, targeted)] == [ExpiredTicket, ExpiredTicket]
    assert desk.acting(caller, now)
    with pytest.raises(CannotImpersonate, match="allowImpersonation of the resource 'My API' is off"):
        desk.for_user(caller, now, target=desk.office.resource.id)


@pytest.mark.parametrize("who", CALLERS)
def test_never_for_the_directory_for_further_tickets_or_for_acting_further(desk: Desk, now: Instant, who: str) -> None:
    caller = desk.caller(who, now)
    for text in (desk.acting(caller, now), desk.acting(caller, now, target=desk.office.resource.id)):
        assert desk.opens_directory(text, now) is NotSignedIn
        with pytest.raises(NotSignedIn):
            desk.for_resource(text, desk.office.resource.id, now)
        with desk.db.read() as cx:
            with pytest.raises(NotSignedIn):
                programs.caller_by_ticket(cx, desk.names, text, now)
            with pytest.raises(NotSignedIn):
                holders.of_sign_in(cx, desk.names, text, now)


def test_an_administrator_may_act_as_one_and_nobody_else(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        memberships.add_member(cx, desk.office.group, desk.admin)
        inner = editing.add_group(cx, desk.office.partition, "inner", now)
        memberships.add_member(cx, entries.administrators(cx), inner)
        memberships.add_member(cx, inner, desk.office.bob)
        memberships.add_member(cx, desk.office.group, desk.office.bob)
    for name in ("admin", "bob@People"):
        assert desk.opens(desk.acting(desk.caller("administrator", now), now, name), now) is None
        for who in ("client", "resource"):
            with pytest.raises(CannotImpersonate):
                desk.for_user(desk.caller(who, now), now, name)


def test_who_comes_to_administer_is_acted_for_no_more(desk: Desk, now: Instant) -> None:
    by_client, by_admin = (desk.acting(desk.caller(who, now), now) for who in ("client", "administrator"))
    with desk.db.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), desk.office.alice)
    assert [desk.opens(text, now) for text in (by_client, by_admin)] == [ExpiredTicket, None]


def test_a_user_acts_for_nobody(desk: Desk, now: Instant) -> None:
    with pytest.raises(CannotImpersonate, match="confidential client"):
        desk.for_user(desk.caller("user", now), now)


@pytest.mark.parametrize("who", ["client", "resource"])
def test_the_callers_own_switch_is_named(desk: Desk, now: Instant, who: str) -> None:
    caller = desk.caller(who, now)
    text = desk.acting(caller, now)
    desk.allow(desk.client if who == "client" else desk.robot.id, False)
    name = "the client 'agent'" if who == "client" else "the resource 'Robot'"
    with pytest.raises(CannotImpersonate, match=f"allowImpersonation of {name} is off"):
        desk.for_user(caller, now)
    assert desk.opens(text, now) is ExpiredTicket


@pytest.mark.parametrize("place", ["caller", "target"])
@pytest.mark.parametrize(
    ("only", "is_named"),
    [
        (["ALICE@people"], True),
        (["staff@People"], True),
        (["People"], True),
        (["cn=alice,ou=Root,ou=People,ou=IdentityProviders,dc=identity,dc=muniment"], True),
        (["ou=Root,ou=People,ou=IdentityProviders,dc=identity,dc=muniment"], True),
        (["bob@People", "OAuthClients"], False),
    ],
)
def test_a_list_narrows_whom(desk: Desk, now: Instant, place: str, only: list[str], is_named: bool) -> None:
    caller = desk.caller("client", now)
    text = desk.acting(caller, now)
    desk.allow(desk.client if place == "caller" else desk.office.resource.id, True, only)
    assert desk.opens(text, now) is (None if is_named else ExpiredTicket)
    refused = nullcontext() if is_named else pytest.raises(CannotImpersonate, match="impersonateList")
    with refused:
        assert desk.acting(caller, now, target=desk.office.resource.id)


def test_the_refusal_tells_nothing_of_the_user(desk: Desk, now: Instant) -> None:
    with desk.db.begin() as cx:
        off = editing.add_user(cx, desk.office.partition, "off", now)
        decisions.set_disabled(cx, off, True, now)
    caller, sentences = desk.caller("client", now), set()
    for name in ("off@People", "nobody@People", "admin", "app@OAuthClients", ""):
        with pytest.raises(CannotImpersonate) as refusal:
            desk.for_user(caller, now, name)
        sentences.add(refusal.value.sentence)
    with pytest.raises(CannotImpersonate) as refusal:
        desk.for_user(caller, now, "bob@People", desk.office.resource.id)
    assert sentences == {refusal.value.sentence}


def test_it_lives_no_longer_than_an_hour_and_than_the_callers_own_ticket(desk: Desk, now: Instant) -> None:
    def expires(text: str) -> Instant:
        with desk.db.read() as cx:
            return tickets.read(cx, desk.names, text, now).expires

    caller = desk.caller("client", now)
    assert expires(desk.acting(caller, now)) == now + HOUR
    assert expires(desk.acting(msgspec.structs.replace(caller, expires=now + SECOND), now)) == now + SECOND
    assert expires(desk.acting(desk.caller("resource", now), now)) == now + HOUR


def _set(state: Callable[..., object]) -> Callable[[Desk, sa.Connection, Entry, Instant], object]:
    """And back again: nothing revives."""
    return lambda _, cx, entry, now: (state(cx, entry, True, now), state(cx, entry, False, now))


_NEEDS_NONE = ("administrator", "without a secret")
ENDS: dict[str, Callable[[Desk, sa.Connection, Entry, Instant], object]] = {
    "disabled and enabled": _set(decisions.set_disabled),
    "locked and unlocked": _set(decisions.set_locked),
    "disabled in its row": lambda _, cx, entry, now: editing.set_disabled(cx, entry, True, now),
    "removed": lambda _, cx, entry, now: decisions.remove(cx, entry, now),
    "signed out": lambda _, cx, entry, now: decisions.sign_out(cx, entry, now),
    "without a secret": lambda _, cx, entry, now: editing.set_password_hash(cx, entry, None, now),
}


@pytest.mark.parametrize(
    ("who", "way"),
    [(who, way) for who in ("administrator", "client") for way in ENDS if (who, way) != _NEEDS_NONE],
)
def test_what_ends_the_caller_ends_what_it_does_for_others(desk: Desk, now: Instant, who: str, way: str) -> None:
    if who == "administrator":
        with desk.db.begin() as cx:
            second = editing.add_user(cx, entries.administration(cx), "second", now, password_hash=HASH)
            memberships.add_member(cx, entries.administrators(cx), second)
    text = desk.acting(desk.caller(who, now), now)
    assert desk.opens(text, now) is None
    with desk.db.begin() as cx:
        ENDS[way](desk, cx, desk.admin if who == "administrator" else desk.client, now)
    assert desk.opens(text, now) is ExpiredTicket


def test_who_administers_no_more_acts_for_nobody_any_more(desk: Desk, now: Instant) -> None:
    text = desk.acting(desk.caller("administrator", now), now)
    with desk.db.begin() as cx:
        memberships.remove_members(cx, entries.administrators(cx), [desk.admin])
    assert desk.opens(text, now) is ExpiredTicket


def test_a_removed_resource_acts_for_nobody_any_more(desk: Desk, now: Instant) -> None:
    text = desk.acting(desk.caller("resource", now), now)
    with desk.db.begin() as cx:
        resources.delete(cx, desk.robot)
    assert desk.opens(text, now) is ExpiredTicket


def test_the_audit_tells_of_it(desk: Desk, now: Instant) -> None:
    desk.acting(desk.caller("client", now), now, target=desk.office.resource.id)
    with desk.db.read() as cx:
        query = "SELECT who, target, after FROM audit_events WHERE action = 'ticket made'"
        (row,) = cx.exec_driver_sql(query).all()
    assert tuple(row) == ("tester", "alice@People", '{"resource":"My API"}')


def test_the_row_names_the_caller(desk: Desk, now: Instant) -> None:
    for who in CALLERS:
        caller = desk.caller(who, now)
        text = desk.acting(caller, now)
        with desk.db.read() as cx:
            ticket = tickets.read(cx, desk.names, text, now)
        assert (ticket.made, ticket.by_ticket) == ("for_user", caller.ticket)
        assert (ticket.by_user_id, ticket.by_client_id, ticket.by_resource_id) == {
            "administrator": (desk.admin.id, None, None),
            "client": (None, desk.client.id, None),
            "resource": (None, None, desk.robot.id),
        }[who]


def test_what_was_turned_off_and_on_again_revives_nothing(desk: Desk, now: Instant) -> None:
    by_resource, by_client = (desk.acting(desk.caller(who, now), now) for who in ("resource", "client"))
    with desk.db.begin() as cx:
        for allowed in (False, True):
            resource_decisions.set_impersonation(cx, desk.robot, allowed, [], now)
            settings = ClientSettings(allow_impersonation=allowed)
            client_decisions.set_settings(cx, desk.client, settings, now)
    assert [desk.opens(text, now) for text in (by_resource, by_client)] == [ExpiredTicket, ExpiredTicket]


def test_a_deactivated_resource_acts_for_nobody_also_when_activated_again(desk: Desk, now: Instant) -> None:
    text = desk.acting(desk.caller("resource", now), now)
    with desk.db.begin() as cx:
        resource_decisions.deactivate(cx, desk.robot.id, desk.secret, now)
        resources.activate(cx, desk.robot.id, now)
    assert desk.opens(text, now) is ExpiredTicket


def test_a_clients_new_secret_ends_its_own_tickets_and_no_grant(desk: Desk, now: Instant) -> None:
    own, acting = desk.ticket("agent@OAuthClients", now), desk.acting(desk.caller("client", now), now)
    with desk.db.begin() as cx:
        assert decisions.set_password(cx, desk.client, HASH, now) == SessionCount(0, 2)
    assert desk.opens_directory(own, now) is ExpiredTicket
    assert desk.opens(acting, now) is ExpiredTicket


def test_where_nobody_may_sign_in_no_ticket_opens_anything(desk: Desk, now: Instant) -> None:
    text, target = desk.ticket("alice@People", now), desk.office.resource
    with desk.db.begin() as cx:
        resource_decisions.set_status(cx, target, now, authentication=False)
    assert desk.opens(text, now) is AccessEnded
    with pytest.raises(UnknownResource):
        desk.sign_in("alice@People", now, target.id)
    with pytest.raises(UnknownResource):
        desk.for_resource(text, target.id, now)
