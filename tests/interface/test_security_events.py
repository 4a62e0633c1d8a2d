"""Each address that may change who may do what leaves one security event: who, where, from where, with which result."""

import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import editing, entries, resources
from muniment.directory.sign_in.passwords import new_secret
from tests.house.test_docs import endpoint, routes
from tests.interface.by_rest import Rest, header, ticket
from tests.interface.changes_by_rest import STEPS, parts
from tests.pages import Reader
from tests.scenes import Person, Site

DIALECTS = ("rest", "v1")
Event = dict[str, Any]
minutes = itertools.count(1)


@pytest.fixture(autouse=True)
def _a_minute_of_its_own(site: Site) -> Iterator[None]:
    """Other tests have been refused in the minute at which the clock stands."""
    with site.world.clock.shift(60 * next(minutes)):
        yield


def left_by(site: Site, act: Callable[[Site], object]) -> list[Event]:
    """Do it, and give the events it left, without what every event has."""
    file = site.installation.events
    before = file.stat().st_size if file.exists() else 0
    act(site)
    with file.open("rb") as log:
        log.seek(before)
        lines = [msgspec.json.decode(line) for line in log.read().splitlines()]
    # The count of what an earlier test was refused is written with the first event of the next minute.
    events = [line for line in lines if "count" not in line]
    for event in events:
        assert event.pop("timestamp")
        assert event.pop("request_id")
        assert event.pop("origin") == "127.0.0.1"
    return events


def event(kind: str, result: str, **more: object) -> Event:
    return {"event": kind, "result": result, **more}


class Browser:
    """A browser with cookies of its own, at the sign-in page."""

    def __init__(self, site: Site) -> None:
        self.site, self.prefix = site, site.directory_names.form_prefix
        transport = site.http._transport
        self.http = httpx.Client(transport=transport, base_url=site.base, headers={"Accept": "text/html"})

    def sign_in(self, person: Person, password: str = "") -> httpx.Response:
        fields = {"username": person.id, "password": password or person.password}
        return self.send(self.site.login, **fields)

    def send(self, page: str, to: str = "", **fields: str) -> httpx.Response:
        text = self.http.get(page).text
        csrf = re.search(rf'name="{self.prefix}csrf" value="([^"]+)"', text)
        assert csrf, text
        own = {"csrf", "username", "password"}
        form = {(self.prefix + name if name in own else name): value for name, value in fields.items()}
        return self.http.post(to or page, data=form | {f"{self.prefix}csrf": csrf[1]})


def password_grant(site: Site) -> None:
    reader, about = site.world.person(), {"client": site.world.client_id, "resource": site.world.resource_name}
    stranger = Person(f"nobody-{secrets.token_hex(4)}@demo", "secret-of-nobody")
    typed_in_the_wrong_field = Person(reader.password, "x")
    assert left_by(site, lambda _: site.issue(reader)) == [
        event("sign-in", "done", who=reader.id, how="password grant", **about)
    ]
    assert left_by(site, lambda _: site.ask_token(reader, password="wrong")) == [
        event("sign-in", "refused", who=reader.id, how="password grant", reason="wrong password", **about)
    ]
    for nobody in (stranger, typed_in_the_wrong_field):
        assert left_by(site, partial(Site.ask_token, person=nobody)) == [
            event("sign-in", "refused", how="password grant", reason="unknown user", **about)
        ]
    assert left_by(site, lambda _: site.ask_token(reader, client_id="no-such-client")) == [
        event("sign-in", "refused", how="password grant")
    ]
    assert left_by(site, lambda _: site.ask_token(reader, scope="resource:None")) == [
        event("sign-in", "refused", how="password grant")
    ]
    assert left_by(site, lambda _: site.ask_token(reader, grant_type="none")) == []


def _change(site: Site, person: Person, decision: Callable[..., object], *more: object) -> None:
    with site.world.directory_db.begin() as cx:
        decision(cx, site.world.entry(person), *more, site.world.clock())


def _guess(site: Site, person: Person) -> None:
    with site.world.clock.shift(-60):  # of one minute only the first events are written
        for _ in range(site.installation.settings.directory.lockout_failures):
            site.ask_token(person, password="wrong")


REASONS: dict[str, Callable[[Site, Person], None]] = {
    "disabled": lambda site, person: _change(site, person, decisions.set_disabled, True),
    "locked": lambda site, person: _change(site, person, decisions.set_locked, True),
    "paused": _guess,
    "no password": lambda site, person: _change(site, person, decisions.set_password, None),
    "no access to the resource": lambda site, person: None,
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_event_and_not_the_answer_says_why_a_sign_in_was_refused(site: Site, reason: str) -> None:
    person = site.world.person(member=reason != "no access to the resource")
    REASONS[reason](site, person)
    answers: list[httpx.Response] = []
    *_, left = left_by(site, lambda _: answers.append(site.ask_token(person)))
    assert (left["result"], left["who"], left["reason"]) == ("refused", person.id, reason)
    assert answers[0].text == site.ask_token(Person(f"nobody-{secrets.token_hex(4)}@demo", "x")).text


def form(site: Site) -> None:
    admin, browser = site.world.admin(site.directory_names), Browser(site)
    held = site.directory_names.administration_resource
    signed_in = event("sign-in", "done", who=admin.id, how="form", resource=held)
    refused = event("sign-in", "refused", who=admin.id, how="form", resource=held, reason="wrong password")
    assert left_by(site, lambda _: browser.sign_in(admin, "wrong")) == [refused]
    assert left_by(site, lambda _: browser.sign_in(admin)) == [signed_in]
    console = f"{site.directory}/console"
    assert left_by(site, lambda _: browser.send(console, site.login, sign_out="yes", RFA="")) == [
        event("sign-out", "done", who=admin.id, how="form")
    ]
    reader = site.world.reader
    assert left_by(site, lambda _: browser.sign_in(reader)) == [event("sign-in", "done", who=reader.id, how="form")]
    assert left_by(site, lambda _: browser.send(site.login, site.login, sign_out="yes", RFA="")) == [
        event("sign-out", "done", who=reader.id, how="form")
    ]


def search_page(site: Site) -> None:
    person, page = site.world.person(), Reader(site)
    about = {"who": person.id, "how": "search page"}
    where = {"client": site.world.client_id, "resource": site.world.repository}
    # A wrong password is tried at other guards of the server, too.
    refused = left_by(site, lambda _: page.sign_in(person, "wrong"))
    assert refused[0] == event("sign-in", "refused", reason="wrong password", **about, **where)
    assert {each["event"] for each in refused} == {"sign-in"}
    assert "done" not in {each["result"] for each in refused}
    assert left_by(site, lambda _: page.sign_in(person)) == [event("sign-in", "done", **about, **where)]
    assert left_by(site, lambda _: page.send("Sign out")) == [event("sign-out", "done", **about)]


def left_by_rest(rest: Rest, method: str, path: str, body: object = None, **more: Any) -> list[Event]:
    return left_by(rest.site, lambda _: rest(method, path, body, **more))


def revocation(site: Site) -> None:
    reader = site.world.reader
    whose = {"who": reader.id, "client": site.world.client_id, "resource": site.world.resource_name}
    for dialect in DIALECTS:
        revoke = partial(left_by_rest, Rest(site, dialect), "DELETE", headers={})
        address = f"/authentication/oauth/{site.issue(reader)['access_token']}"
        assert revoke(address) == [event("revocation", "done", **whose)]
        assert revoke(address) == [event("revocation", "refused", how="ended before")]
        assert revoke("/authentication/oauth/garbage") == [event("revocation", "refused")]


def programs(site: Site) -> None:
    world, person = site.world, site.world.person()
    admin = world.admin(site.directory_names)

    def post(path: str, **fields: str) -> Callable[[Site], httpx.Response]:
        return lambda _: site.http.post(f"{site.directory}/rest/authentication/{path}", json=fields)

    def sign_in(who: Person, password: str) -> Callable[[Site], httpx.Response]:
        return post("credentials", userName=who.id, password=password)

    about = {"who": person.id, "how": "credentials"}
    assert left_by(site, sign_in(person, person.password)) == [event("sign-in", "done", **about)]
    wrong = event("sign-in", "refused", reason="wrong password", **about)
    assert left_by(site, sign_in(person, "wrong")) == [wrong]
    unknown = event("sign-in", "refused", reason="unknown user", how="credentials")
    assert left_by(site, sign_in(Person("no such person@demo", ""), "wrong")) == [unknown]
    own, others = (sign_in(each, each.password)(site).json()["ticket"] for each in (admin, person))
    with world.directory_db.begin() as cx:
        resource = resources.by_id(cx, world.resource_id)
        resources.change(cx, resource, allow_impersonation=True)
    at = {"targetResourceId": world.resource_id}
    acting = {"how": "ticket for a user", "on": person.id}
    for path in ("ticketforuser", "resource/ticketforuser"):
        assert left_by(site, post(path, ticket=own, userName=person.id, **at)) == [
            event("impersonation", "done", who=admin.id, resource=world.resource_name, **acting)
        ]
        assert left_by(site, post(path, ticket=others, userName=person.id)) == [
            event("impersonation", "refused", who=person.id, **acting)
        ]
        assert left_by(site, post(path, ticket="x", userName=person.id)) == [
            event("impersonation", "refused", how="ticket for a user")
        ]
    made = event("sign-in", "done", who=person.id, how="ticket for a resource", resource=world.resource_name)
    for path in ("ticketforresource", "resource/ticketforresource"):
        assert left_by(site, post(path, ticket=others, **at)) == [made]
        assert left_by(site, post(path, ticket="x", **at)) == [event("sign-in", "refused", how="ticket for a resource")]


def revocation_by_client(site: Site) -> None:
    reader, form = site.world.reader, {"client_id": site.world.client_id}
    whose = {"who": reader.id, "client": site.world.client_id, "resource": site.world.resource_name}
    form["token"] = site.issue(reader)["access_token"]
    address = f"{site.directory}/oauth2/revoke"
    for left in ({"result": "done", **whose}, {"result": "refused", "how": "ended before, or of another client"}):
        assert left_by(site, lambda _: site.http.post(address, data=form)) == [{"event": "revocation", **left}]


def token_endpoint(site: Site) -> None:
    """A service signs in as itself, and acts as nobody without being allowed to."""
    secret, kept = new_secret()
    with site.world.directory_db.begin() as cx:
        entry = editing.add_client(cx, site.world.word(), site.world.clock(), password_hash=kept)
        resources.add_to_role(cx, resources.by_id(cx, site.world.resource_id), entry)
    address, auth = f"{site.directory}/oauth2/token", (entry.name, secret)
    about = {"client": entry.name, "resource": site.world.resource_name}
    own_id = f"{entry.name}@{site.directory_names.clients_partition}"
    own = {"grant_type": "client_credentials", "scope": site.world.scope}
    assert left_by(site, lambda _: site.http.post(address, data=own, auth=auth)) == [
        event("sign-in", "done", who=own_id, how="client_credentials grant", **about)
    ]
    assert left_by(site, lambda _: site.http.post(address, data=own, auth=(entry.name, "x"))) == [
        event("sign-in", "refused", how="client_credentials grant", **about)
    ]
    reader = site.world.reader
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": reader.id,
        "subject_token_type": site.directory_names.user_id_type,
        "scope": site.world.scope,
    }
    assert left_by(site, lambda _: site.http.post(address, data=exchange, auth=auth)) == [
        event("impersonation", "refused", on=reader.id, how="token exchange", **about)
    ]


def activation(site: Site) -> None:
    admin, ordinary = site.world.admin(site.directory_names), site.issue(site.world.reader)["access_token"]
    site.administrator()
    for dialect in DIALECTS:
        rest, resource = Rest(site, dialect), site.world.resource()
        activate = partial(left_by_rest, rest, "POST", f"/resources/{resource.id}/activate")
        refused = event("activation", "refused", how="POST /resources/{resource}/activate")
        assert activate(headers={}) == [refused]
        assert activate(headers={"Authorization": f"Bearer {ordinary}"}) == [refused]
        assert activate() == [event("activation", "done", who=admin.id, on=resource.name)]
        assert activate() == [refused | {"who": admin.id}]
        name, secret = f"Chosen {site.world.word()}", "a-secret-that-the-caller-chose"
        assert left_by_rest(rest, "POST", "/resources", {"resourceName": name, "secretKey": secret}) == [
            event("resource", "done", who=admin.id, on=name),
            event("activation", "done", who=admin.id, on=name, how="with a secret that the caller chose"),
        ]
        path = f"/resources/{name}/deactivate"
        for own, told in (("wrong", {"result": "refused"}), (secret, {"result": "done", "on": name})):
            left = left_by_rest(rest, "POST", path, {"secretKey": own}, headers={})
            assert left == [{"event": "activation", "how": "deactivated", **told}]


def system_attribute(site: Site) -> None:
    admin, browser = site.world.admin(site.directory_names), Browser(site)
    page = f"{site.directory}/console/system-attributes"
    browser.sign_in(admin)
    for action, value in (("add", "hidden-value"), ("change", "another"), ("delete", "")):
        send = partial(browser.send, page, action=action, name="x.Y", value=value, free="yes")
        assert left_by(site, lambda _, send=send: send()) == [  # type: ignore[misc]
            event("system attribute", "done", who=admin.id, on="x.Y", how=action)
        ]
    assert left_by(site, lambda _: site.http.post(page, data={"action": "add", "name": "x.Y"})) == [
        event("system attribute", "refused", how="add")
    ]


def acl(site: Site) -> None:
    name, writer, at = f"acl-{site.world.word()}", site.world.writer, f"{site.repository}/acls"
    body = {"name": name, "permitted": [{"accessor": "world", "basic-permission": "Read"}]}
    headers, about = site.bearer(), {"who": writer.id, "resource": site.world.repository}
    made = event("acl", "done", how="made", on=name, **about)
    assert left_by(site, lambda _: site.http.post(at, json=body, headers=headers)) == [made]
    assert left_by(site, lambda _: site.http.post(at, json=body, headers=headers)) == [
        event("acl", "refused", how="made", **about)
    ]
    assert left_by(site, lambda _: site.http.post(at, json=body)) == [event("acl", "refused", how="made")]
    address = f"{at}/{name}"
    changed = {"permitted": [{"accessor": "world", "basic-permission": "Browse"}]}
    assert left_by(site, lambda _: site.http.post(address, json=changed, headers=headers)) == [
        event("acl", "done", how="changed", on=name, **about)
    ]
    made_by_us = site.create("thing")
    assert left_by(site, lambda _: site.share(made_by_us, "public")) == [
        event("acl", "done", how="assigned", on=f"{made_by_us}: public", **about)
    ]
    assert left_by(site, lambda _: site.http.delete(address, headers=headers)) == [
        event("acl", "done", how="removed", on=name, **about)
    ]
    folder = site.cabinet("with a default")
    default = f"{site.repository}/folders/{folder}/default-permission-set"
    assert left_by(site, lambda _: site.http.put(default, json={"acl-name": "public"}, headers=headers)) == [
        event("acl", "done", how="made the default", on=f"{folder}: public", **about)
    ]
    assert left_by(site, lambda _: site.http.delete(default, headers=headers)) == [
        event("acl", "done", how="no longer the default", on=folder, **about)
    ]


def object_rights(site: Site) -> None:
    writer, made = site.world.writer, site.create("thing")
    for kind in ("objects", "documents"):
        address = f"{site.repository}/{kind}/{made}"

        def change(_: Site, address: str = address, **properties: str) -> httpx.Response:
            return site.http.post(address, json={"properties": properties}, headers=site.bearer())

        about = {"who": writer.id, "resource": site.world.repository, "how": "acl_name"}
        assert left_by(site, change) == []
        assert left_by(site, lambda _: change(_, acl_name="public")) == [
            event("object rights", "done", on=made, **about)
        ]
        assert left_by(site, lambda _: change(_, acl_name="no such")) == [event("object rights", "refused", **about)]


def batch(site: Site) -> None:
    """A batch leaves the events of its operations; ours 21 says what they tell."""
    name, address = site.world.word(), f"{site.repository}/acls"
    entity = json.dumps({"name": name, "permitted": []})
    making: dict[str, Any] = {"uri": address, "method": "POST", "entity": entity}
    making["headers"] = [{"name": "Content-Type", "value": "application/json"}]
    body = {"transactional": True, "operations": [{"id": "1", "request": making}]}
    left = left_by(site, lambda _: site.http.post(f"{site.repository}/batches", json=body, headers=site.bearer()))
    assert [(one["event"], one["result"], one["on"]) for one in left] == [("acl", "done", name)]


def users_and_groups(site: Site) -> None:
    world, names = site.world, site.directory_names
    admin, word = world.admin(names), secrets.token_hex(4)
    world.admit(world.admin(world.names), world.resource_id)
    site.forget(admin)  # another test may have ended their sessions
    about = {"who": admin.id, "resource": world.repository}

    def send(method: str, path: str, body: object = None, person: Person | None = None) -> httpx.Response:
        headers = site.bearer(person or admin)
        return site.http.request(method, f"{site.repository}/{path}", json=body, headers=headers)

    def told(how: str, on: str | None, method: str, path: str, body: object = None) -> None:
        expected = event("user or group", "done", how=how, on=on, **about)
        if on is None:
            expected = event("user or group", "refused", how=how, **about)
        assert left_by(site, lambda _: send(method, path, body)) == [expected]

    site.bearer(admin)
    for kind in ("user", "group"):
        person = f"{kind}-{word}@demo"
        described = {"properties": {f"{kind}_name": person, "description": "top-secret, too"}}
        if kind == "user":
            described["properties"]["user_password"] = "top-secret"
        told(f"{kind} made", person, "POST", f"{kind}s", described)
        told(f"{kind} changed", person, "POST", f"{kind}s/{person}", described)
        members, membership = f"groups/writers@demo/{kind}s", f"{person} in writers@demo"
        href = {"href": f"{site.base}{site.repository}/{kind}s/{person}"}
        told(f"{kind} added to a group", membership, "POST", members, href)
        told(f"{kind} removed from a group", membership, "DELETE", f"{members}/{person}")
        told(f"{kind} removed", person, "DELETE", f"{kind}s/{person}")
        told(f"{kind} removed from a group", None, "DELETE", f"groups/no@demo/{kind}s/{person}")
        told(f"{kind} removed", None, "DELETE", f"{kind}s/{person}")
    site.bearer()
    refused = event("user or group", "refused", how="user made", who=world.writer.id, resource=world.repository)
    body = {"properties": {"user_name": "x@demo"}}
    assert left_by(site, lambda _: send("POST", "users", body, world.writer)) == [refused]
    assert b"top-secret" not in site.installation.events.read_bytes()


def object_type(site: Site) -> None:
    admin = site.world.admin(site.directory_names)
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    site.forget(admin)  # another test may have ended their sessions
    headers, about = site.bearer(admin), {"who": admin.id, "resource": site.world.repository}
    name, at = f"type_{site.world.word()}", f"{site.repository}/types"
    body = {"name": name, "properties": [{"name": f"of_{name}", "type": "string"}]}
    assert left_by(site, lambda _: site.http.post(at, json=body, headers=headers)) == [
        event("object type", "done", how="made", on=name, **about)
    ]
    assert left_by(site, lambda _: site.http.post(f"{at}/{name}", json={"label": "l"}, headers=headers)) == [
        event("object type", "done", how="changed", on=name, **about)
    ]
    assert left_by(site, lambda _: site.http.delete(f"{at}/{name}", headers=headers)) == [
        event("object type", "done", how="removed", on=name, **about)
    ]
    assert left_by(site, lambda _: site.http.post(at, json=body, headers=site.bearer())) == [
        event("object type", "refused", how="made", who=site.world.writer.id, resource=site.world.repository)
    ]


def version_rights(site: Site) -> None:
    made = site.create("thing")
    assert site.http.put(f"{site.repository}/objects/{made}/lock", headers=site.bearer()).status_code == 200

    def check_in(_: Site) -> httpx.Response:
        body = {"properties": {"acl_name": "public"}}
        return site.http.post(f"{site.repository}/objects/{made}/versions", json=body, headers=site.bearer())

    (left,) = left_by(site, check_in)
    assert (left["event"], left["result"], left["how"]) == ("object rights", "done", "acl_name")


def changes_by_rest(site: Site) -> None:
    """The first of each kind is refused to a reader before it is done."""
    admin, filled = site.world.admin(site.directory_names), parts(site.directory_names)
    reader = site.world.reader
    ordinary = {header(site): ticket(site, reader)}
    site.administrator()
    for dialect, (kind, steps) in itertools.product(DIALECTS, STEPS.items()):
        for step in steps:
            path, told = step.path.format(**{**filled, **step.parts}), step.on.format(**filled)
            change = partial(left_by_rest, Rest(site, dialect), step.method, path, step.body)
            if step is steps[0]:  # only ten refusals a minute are written
                (refused,) = change(headers=ordinary)
                how = refused.pop("how")
                assert refused == event(kind, "refused", who=reader.id)
                assert re.fullmatch(rf"{step.method} /[a-z_{{}}/]+", how), how
            done = event(kind, "done", who=admin.id, on=told)
            assert change() == [done], (dialect, step)
    assert b"hidden-value" not in site.installation.events.read_bytes()


BELOW = "/rest/repositories/{repository}"
BY_ADMINISTRATORS = {
    *(("POST", f"{BELOW}/{path}") for path in ("users", "groups")),
    *((method, f"{BELOW}/{kind}s/{{person}}") for kind in ("user", "group") for method in ("POST", "DELETE")),
    *(("POST", f"{BELOW}/groups/{{person}}/{kind}s") for kind in ("user", "group")),
    *(("DELETE", f"{BELOW}/groups/{{person}}/{kind}s/{{member}}") for kind in ("user", "group")),
}
DRIVERS: dict[Callable[[Site], None], set[tuple[str, str]]] = {
    password_grant: {("POST", "/dirws/login")},
    form: {("POST", "/dirws/login")},
    search_page: {("POST", "/search/sign-in"), ("POST", "/search/sign-out")},
    revocation: {("DELETE", f"/dirws/{dialect}/authentication/oauth/{{token}}") for dialect in DIALECTS},
    revocation_by_client: {("POST", "/dirws/oauth2/revoke")},
    token_endpoint: {("POST", "/dirws/oauth2/token")},
    activation: {
        ("POST", f"/dirws/{dialect}/resources/{{resource}}/{way}")
        for dialect in DIALECTS
        for way in ("activate", "deactivate")
    },
    changes_by_rest: {
        (step.method, f"/dirws/{dialect}{step.path}")
        for dialect in DIALECTS
        for steps in STEPS.values()
        for step in steps
    },
    programs: {
        ("POST", f"/dirws/{dialect}/authentication/{way}")
        for dialect in DIALECTS
        for way in (
            *("credentials", "ticketforuser", "resource/ticketforuser"),
            *("ticketforresource", "resource/ticketforresource"),
        )
    },
    system_attribute: {("POST", "/dirws/console/system-attributes")},
    acl: {
        ("POST", f"{BELOW}/acls"),
        ("POST", f"{BELOW}/acls/{{acl}}"),
        ("DELETE", f"{BELOW}/acls/{{acl}}"),
        ("PUT", f"{BELOW}/objects/{{id}}/permission-set"),
        ("PUT", f"{BELOW}/folders/{{id}}/default-permission-set"),
        ("DELETE", f"{BELOW}/folders/{{id}}/default-permission-set"),
    },
    batch: {("POST", f"{BELOW}/batches")},
    object_type: {
        ("POST", f"{BELOW}/types"),
        ("POST", f"{BELOW}/types/{{name}}"),
        ("DELETE", f"{BELOW}/types/{{name}}"),
    },
    version_rights: {("POST", f"{BELOW}/objects/{{id}}/versions")},
    object_rights: {("POST", f"{BELOW}/{kind}s/{{id}}") for kind in ("object", "document", "folder", "cabinet")},
    users_and_groups: BY_ADMINISTRATORS,
}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
def test_it_leaves_one_event(site: Site, driver: Callable[[Site], None]) -> None:
    driver(site)


def test_every_address_that_leaves_events_is_driven() -> None:
    telling = {
        (method, route.path)
        for route in routes()
        if (found := endpoint(route))
        for method, answering in found._methods.items()
        if getattr(answering.func if isinstance(answering, partial) else answering, "events", ())
    }
    assert telling == set[tuple[str, str]]().union(*DRIVERS.values())


def test_of_refused_sign_ins_ten_a_minute_are_written_and_the_rest_counted(site: Site) -> None:
    person = site.world.person()
    refused = left_by(site, lambda _: [site.ask_token(person, password=f"wrong-{n}") for n in range(25)])
    assert [one["who"] for one in refused if one["event"] == "sign-in"] == [person.id] * 10
    with site.world.clock.shift(3600):
        file = site.installation.events
        before = file.stat().st_size
        site.ask_token(person, password="wrong")
        counts = [msgspec.json.decode(line) for line in file.read_bytes()[before:].splitlines()]
    assert [one["count"] for one in counts if one.get("who") == person.id and "count" in one] == [15]


def test_a_disk_without_room_for_events_stops_no_decision(site: Site) -> None:
    file, aside = site.installation.events, site.installation.events.with_suffix(".aside")
    if file.exists():
        file.rename(aside)
    file.mkdir()
    try:
        reader = site.world.reader
        token = site.issue(reader)["access_token"]
        assert site.ask_token(reader, password="wrong").status_code == 400
        assert site.revoke(token).status_code == 204
        assert site.tokeninfo(token).status_code == 410
    finally:
        file.rmdir()
        if aside.exists():
            aside.rename(file)
    with site.world.directory_db.read() as cx:
        assert entries.find_user(cx, site.world.names, reader.id)
