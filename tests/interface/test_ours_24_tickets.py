"""ours 24: a program gets tickets, in both dialects, and what they open."""

import json
import re
from typing import Any

import httpx
import pytest

from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.console import frame
from muniment.directory.entries import editing, entries, oauth_clients, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from tests.office import page_ticket
from tests.scenes import Person, Site

DIALECTS = ("rest", "v1")
WALK = ("credentials", "ticketforuser", "resource/ticketforuser", "ticketforresource", "resource/ticketforresource")
SPELLINGS = {"v1": {name: re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name) for name in (
    "userName", "newPassword", "targetResourceId", "sourceResourceId", "secureSecret", "ticketType")}}  # fmt: skip


class Program:
    """What an old client does, in one dialect."""

    def __init__(self, site: Site, dialect: str) -> None:
        self.site, self.dialect = site, dialect

    def post(self, path: str, **fields: Any) -> httpx.Response:
        spelled = {SPELLINGS.get(self.dialect, {}).get(name, name): value for name, value in fields.items()}
        address = f"{self.site.directory}/{self.dialect}/authentication/{path}"
        return self.site.http.post(address, json=spelled)

    def sign_in(self, person: Person, **more: str) -> httpx.Response:
        return self.post("credentials", userName=person.id, password=person.password, **more)

    def ticket(self, person: Person, **more: str) -> str:
        answer = self.sign_in(person, **more)
        assert answer.status_code == 200, answer.text
        text: str = answer.json()["ticket"]
        return text

    def header(self, text: str) -> dict[str, str]:
        return {self.site.directory_names.ticket_cookie or "Muniment-Ticket": text}

    def opens(self, text: str) -> bool:
        return self.site.http.get(f"{self.site.repository}/types", headers=self.header(text)).status_code == 200


@pytest.fixture(params=DIALECTS)
def program(site: Site, request: pytest.FixtureRequest) -> Program:
    return Program(site, request.param)


@pytest.fixture
def client(site: Site) -> Person:
    """A client with a secret that may act for others, as the world's resource lets it."""
    client_id = f"{site.world.confidential_id}@{site.directory_names.clients_partition}"
    with site.world.directory_db.begin() as cx:
        entry = entries.find_client(cx, site.world.confidential_id)
        oauth_clients.write(cx, entry, ClientSettings(allow_impersonation=True), site.world.clock())
        resources.change(cx, resources.by_id(cx, site.world.resource_id), allow_impersonation=True)
    return Person(client_id, site.world.confidential_secret)


def resource_with_secret(site: Site) -> tuple[str, str]:
    with site.world.directory_db.begin() as cx:
        made = resources.add(cx, site.world.names, f"Caller {next(site.world.numbers)}", site.world.clock())
        secret = resources.activate(cx, made.id, site.world.clock())
        resources.change(cx, made, allow_impersonation=True)
    return made.id, secret


# A name and a password


def test_the_answer_is_the_fields(program: Program) -> None:
    person = program.site.world.person()
    answer = program.sign_in(person, ticketType="OTDSTICKET")
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    snake = program.dialect == "v1"
    document = answer.json()
    prefix = re.escape(program.site.directory_names.ticket_prefix)
    assert re.fullmatch(prefix + r"[A-Za-z0-9_-]+\*", document.pop("ticket"))
    assert document == {
        "token": None,
        "user_id" if snake else "userId": person.id,
        "resourceID": None,
        "failureReason": None,
        "password_expiration_time" if snake else "passwordExpirationTime": 0,
        "continuation": False,
        "continuationContext": None,
        "continuationData": None,
    }


def test_both_spellings_are_read_and_other_keys_ignored(program: Program) -> None:
    person = program.site.world.person()
    for name in ("userName", "user_name"):
        body = {name: person.id, "password": person.password, "more": [1], "targetResourceId": None}
        address = f"{program.site.directory}/{program.dialect}/authentication/credentials"
        for kind in ("application/json", "application/json;charset=utf-8"):
            answer = program.site.http.post(address, content=json.dumps(body), headers={"Content-Type": kind})
            assert answer.status_code == 200, answer.text


def test_a_form_and_what_lacks_a_field_are_refused_as_objects(program: Program) -> None:
    person = program.site.world.person()
    address = f"{program.site.directory}/{program.dialect}/authentication/credentials"
    form = program.site.http.post(address, data={"username": person.id, "password": person.password})
    plain = program.site.http.post(address, content="{}", headers={"Content-Type": "text/plain"})
    large = program.post("credentials", userName=person.id, password="x" * 70_000)
    answers = [form, plain, large, program.post("credentials"), program.post("credentials", userName=person.id)]
    assert [answer.status_code for answer in answers] == [415, 415, 413, 400, 400]
    for answer in answers:
        assert answer.json()["status"] == answer.status_code


def test_every_refusal_is_the_same(program: Program) -> None:
    """failures A1"""
    site, world = program.site, program.site.world
    people = {reason: world.person() for reason in ("disabled", "locked", "wrong", "not in the role")}
    with world.directory_db.begin() as cx:
        decisions.set_disabled(cx, world.entry(people["disabled"]), True, world.clock())
        decisions.set_locked(cx, world.entry(people["locked"]), True, world.clock())
    people["wrong"] = Person(people["wrong"].id, "wrong")
    people["not in the role"] = world.outsider
    people["unknown"] = Person("nobody@demo", "x")
    people["unknown and bare"] = Person("nobody", "x")
    people["public client"] = Person(f"{world.client_id}@{site.directory_names.clients_partition}", "x")
    people["empty"] = Person(world.reader.id, "")
    answers = {reason: program.sign_in(person, targetResourceId=world.resource_id) for reason, person in people.items()}
    told = {(answer.status_code, answer.text, answer.headers["content-type"]) for answer in answers.values()}
    assert len(told) == 1, answers
    assert told.pop()[0] == 401


def test_a_pause_is_that_of_every_sign_in(program: Program) -> None:
    """failures A4: no side door"""
    person, limit = program.site.world.person(), program.site.installation.settings.directory.lockout_failures
    for _ in range(limit):
        assert program.sign_in(Person(person.id, "wrong")).status_code == 401
    assert program.sign_in(person).status_code == 401
    assert program.site.ask_token(person).status_code == 400
    with program.site.world.clock.shift(program.site.installation.settings.directory.lockout_seconds + 1):
        assert program.sign_in(person).status_code == 200


def test_a_bare_name_signs_in(program: Program) -> None:
    person = program.site.world.person()
    answer = program.sign_in(Person(person.id.partition("@")[0].upper(), person.password))
    assert answer.status_code == 200
    assert person.id in answer.text


def test_a_client_signs_in_with_its_secret(program: Program, client: Person) -> None:
    assert client.id in program.sign_in(client).text


@pytest.mark.parametrize("target", ["garbage", "idle", "00000000-0000-0000-0000-000000000000"])
def test_a_target_that_lets_nobody_in_is_bad_input(program: Program, target: str) -> None:
    target = program.site.world.idle_resource_id if target == "idle" else target
    answer = program.sign_in(program.site.world.reader, targetResourceId=target)
    assert (answer.status_code, answer.json()["status"]) == (400, 400)


def test_who_must_choose_a_new_password_is_told_to_go_on_at_the_page(program: Program) -> None:
    world, person = program.site.world, program.site.world.person()
    with world.directory_db.begin() as cx:
        editing.set_flags(cx, world.entry(person), world.clock(), must_change_password=True)
    document = program.sign_in(person).json()
    assert (document["ticket"], document["continuation"]) == (None, True)
    assert document["continuationContext"] == "newPassword"
    assert document["continuationData"] == f"{program.site.base}{program.site.login}"
    assert program.sign_in(Person(person.id, "wrong")).status_code == 401


# What a ticket opens


def test_a_ticket_opens_the_repository_and_one_with_another_target_does_not(program: Program) -> None:
    world, person = program.site.world, program.site.world.person()
    world.admit(person, world.other_resource_id)
    assert program.opens(program.ticket(person))
    assert program.opens(program.ticket(person, targetResourceId=world.resource_id))
    assert not program.opens(program.ticket(person, targetResourceId=world.other_resource_id))


def test_a_target_is_told_as_the_resource(program: Program) -> None:
    world = program.site.world
    document = program.sign_in(world.person(), targetResourceId=world.resource_id.upper()).json()
    assert document["resourceID"] == world.resource_id


def test_an_ended_ticket_has_a_code_of_its_own(program: Program) -> None:
    world, person = program.site.world, program.site.world.person()
    text = program.ticket(person)
    with world.directory_db.begin() as cx:
        decisions.sign_out(cx, world.entry(person), world.clock())
    for path in WALK[1:]:
        answer = program.post(path, ticket=text, userName=person.id, targetResourceId=world.resource_id)
        assert (answer.status_code, answer.json()["status"]) == (400, 1034)
        assert answer.json()["error"] == program.site.directory_names.expired_ticket
        for garbage in (text[:-2] + "*", "", "x"):
            answer = program.post(path, ticket=garbage, userName=person.id, targetResourceId=world.resource_id)
            assert (answer.status_code, answer.json()["status"]) == (401, 401)


def test_one_ticket_makes_another_for_a_resource_that_ends_with_it(program: Program) -> None:
    world, person = program.site.world, program.site.world.person()
    general = program.ticket(person)
    for path in ("ticketforresource", "resource/ticketforresource"):
        answer = program.post(path, ticket=general, targetResourceId=world.resource_id)
        assert answer.status_code == 200, answer.text
        document = answer.json()
        assert (document["resourceID"], program.opens(document["ticket"])) == (world.resource_id, True)
        assert person.id in answer.text
        refused = program.post(path, ticket=general, targetResourceId=world.other_resource_id)
        assert (refused.status_code, refused.json()["status"]) == (403, 403)
        further = program.post(path, ticket=document["ticket"], targetResourceId=world.resource_id)
        assert further.status_code == 401
    with world.clock.shift(program.site.installation.settings.directory.ticket_seconds):
        assert not program.opens(document["ticket"])


def test_a_resource_learns_whether_a_ticket_opens_it(program: Program) -> None:
    world, person = program.site.world, program.site.world.person()
    resource_id, secret = resource_with_secret(program.site)
    world.admit(person, resource_id)
    shown = {"sourceResourceId": resource_id, "secureSecret": secret}
    here, there = (program.ticket(person, targetResourceId=each) for each in (resource_id, world.resource_id))
    for text in (here, program.ticket(person)):
        answer = program.post("resource/validation", ticket=text, **shown)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["ticket"], answer.json()["resourceID"]) == (text, resource_id)
        assert person.id in answer.text
    for text in (there, program.ticket(world.outsider), "x"):
        assert program.post("resource/validation", ticket=text, **shown).status_code == 401
    for wrong in ({"secureSecret": "x"}, {"secureSecret": ""}, {"sourceResourceId": world.resource_id}):
        assert program.post("resource/validation", ticket=here, **{**shown, **wrong}).status_code == 401


# Acting for others


def test_a_client_acts_for_a_user_where_the_switches_are_on(program: Program, client: Person) -> None:
    world, person = program.site.world, program.site.world.person()
    own = program.ticket(client)
    for path in ("ticketforuser", "resource/ticketforuser"):
        answer = program.post(path, ticket=own, userName=person.id)
        assert answer.status_code == 200, answer.text
        assert person.id in answer.text
        text = answer.json()["ticket"]
        assert program.opens(text)
        refused = program.post("ticketforresource", ticket=text, targetResourceId=world.resource_id)
        assert refused.status_code == 401
        assert program.post(path, ticket=text, userName=person.id).status_code == 401
    with world.directory_db.begin() as cx:
        resource_decisions.set_impersonation(cx, resources.by_id(cx, world.resource_id), False, [], world.clock())
    assert not program.opens(text)
    refused = program.post(path, ticket=own, userName=person.id, targetResourceId=world.resource_id)
    assert (refused.status_code, refused.json()["status"]) == (403, 403)
    assert f"allowImpersonation of the resource '{world.resource_name}' is off" in refused.json()["error"]


def test_a_resource_acts_for_a_user_with_its_secret(program: Program, client: Person) -> None:
    world, person = program.site.world, program.site.world.person()
    resource_id, secret = resource_with_secret(program.site)
    shown = {"sourceResourceId": resource_id, "secureSecret": secret, "userName": person.id}
    answer = program.post("resource/ticketforuser", targetResourceId=world.resource_id, **shown)
    assert answer.json()["resourceID"] == world.resource_id
    assert program.opens(answer.json()["ticket"])
    assert program.post("resource/ticketforuser", **{**shown, "secureSecret": "x"}).status_code == 401


def test_an_administrator_acts_for_a_user(program: Program, client: Person) -> None:
    person = program.site.world.person()
    own = program.ticket(program.site.world.admin(program.site.directory_names))
    assert program.opens(program.post("ticketforuser", ticket=own, userName=person.id).json()["ticket"])
    assert program.post("ticketforuser", ticket=program.ticket(person), userName=person.id).status_code == 403


# What a ticket writes


def activation(program: Program) -> str:
    resource = program.site.world.resource()
    return f"{program.site.directory}/{program.dialect}/resources/{resource.id}/activate"


def cookie(site: Site, text: str) -> dict[str, str]:
    return {"Cookie": f"{site.directory_names.ticket_cookie or '__Host-muniment_ticket'}={text}"}


def test_a_programs_ticket_writes_unless_another_sites_page_sends_it(program: Program) -> None:
    site = program.site
    text = program.ticket(site.world.admin(site.directory_names))
    for shown in (program.header(text), cookie(site, text)):
        for more, expected in (
            ({}, 200),
            ({"Origin": site.base, "Sec-Fetch-Site": "same-origin"}, 200),
            ({"Sec-Fetch-Site": "none"}, 200),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Origin": "https://other.test"}, 403),
            ({"Origin": "null"}, 403),
        ):
            answer = site.http.post(activation(program), json={}, headers={**shown, **more})
            assert answer.status_code == expected, (shown, more, answer.text)


def test_a_browsers_ticket_writes_by_the_mark_of_our_forms_alone(program: Program) -> None:
    site = program.site
    admin_id = site.world.admin(site.directory_names).id
    with site.world.directory_db.begin() as cx:
        admin = entries.find_user(cx, site.directory_names, admin_id)
        administration = resources.administration(cx).id
        text = page_ticket(cx, site.directory_names, admin.id, administration, site.world.clock())
        mark = {"X-CSRF-Token": frame.csrf(cx, text)}
    for more, expected in (
        ({}, 403),
        ({"X-CSRF-Token": "x"}, 403),
        ({**mark, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**mark, "Origin": "https://other.test"}, 403),
        (mark, 200),
    ):
        answer = site.http.post(activation(program), json={}, headers={**cookie(site, text), **more})
        assert answer.status_code == expected, (more, answer.text)


def test_of_several_credentials_the_first_valid_one_counts(program: Program) -> None:
    """What pyxecm does: a stale token beside a good cookie; what old loaders do: a ticket beside a useless Basic."""
    site = program.site
    text = program.ticket(site.world.admin(site.directory_names))
    for stale in ("Bearer stale", "Bearer ", "Basic dXNlbGVzcw=="):
        for shown in (program.header(text), cookie(site, text)):
            answer = site.http.post(activation(program), json={}, headers={**shown, "Authorization": stale})
            assert answer.status_code == 200, (stale, shown, answer.text)
    with site.world.clock.shift(site.installation.settings.directory.ticket_seconds):
        answer = site.http.post(
            activation(program), json={}, headers={**cookie(site, text), "Authorization": "Bearer stale"}
        )
    assert (answer.status_code, answer.json()["status"]) == (400, 1034)
    assert answer.json()["error"] == site.directory_names.expired_ticket
