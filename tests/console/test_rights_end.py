"""A right that ends while a request to the directory is under way is not used: at every address that asks for one.

Source: issue 8, 1 (failures C1). The addresses come from the table that serves them.
"""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables
from muniment.directory.administration import decisions
from muniment.directory.api import routes
from muniment.directory.api.rest import addresses
from muniment.directory.console import frame
from muniment.directory.entries import editing, entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import revocation, tokens
from muniment.directory.refusals import NotSignedIn
from muniment.directory.sign_in import form as form_sign_in
from muniment.ground.clock import SECOND
from muniment.web.answers.responses import Endpoint
from tests.console.conftest import BACK, VERIFIER, Application, Scene
from tests.office import HASH, PASSWORD, page_ticket
from tests.rights.play import Outcome, Sent, play

OAUTH = "/dirws/v1/authentication"
REST_OAUTH = "/dirws/rest/authentication/oauth"
CONSOLE = "/dirws/console/system-attributes"
ACTIVATION = "/dirws/rest/resources/{resource_id}/activate"

COOKIE = "__Host-muniment_ticket"

numbers = itertools.count(1)

End = Callable[[Connection, Scene, Entry, str], object]

OF_THE_USER: dict[str, End] = {
    "disabled": lambda cx, scene, user, _: decisions.set_disabled(cx, user, True, scene.clock()),
    "locked": lambda cx, scene, user, _: decisions.set_locked(cx, user, True, scene.clock()),
    "new password": lambda cx, scene, user, _: decisions.set_password(cx, user, "another hash", scene.clock()),
    "removed": lambda cx, scene, user, _: decisions.remove(cx, user, scene.clock()),
    "group": lambda cx, scene, user, _: decisions.remove_members(cx, entries.administrators(cx), [user], scene.clock()),
}
"""What takes from an administrator what they may do: their role is the group's."""

OF_THE_SESSION: dict[str, End] = {
    "signed out": lambda cx, scene, user, _: decisions.sign_out(cx, user, scene.clock()),
    "revocation": lambda cx, scene, _, token: revocation.revoke(cx, scene.names, token, scene.clock()),
}

USED = {
    ("POST", "/dirws/login"),
    ("POST", f"{OAUTH}/oauth/tokeninfo"),
    ("POST", f"{OAUTH}/tokeninfo"),
    ("POST", f"{REST_OAUTH}/tokeninfo"),
    ("POST", CONSOLE),
    ("POST", "/dirws/oauth2/token"),
    ("POST", "/dirws/oauth2/introspect"),
    ("POST", "/dirws/oauth2/revoke"),
    ("POST", "/dirws/oauth2/userinfo"),
    ("POST", "/dirws/oauth2/auth"),
    ("POST", "/dirws/oauth2/authorize"),
    ("POST", "/dirws/oauth2/device"),
    ("POST", "/dirws/oauth2/device_authorization"),
}
"""Every address that takes a body or writes for somebody with a right."""

AT_ONCE = {
    ("GET", "/dirws/login"),
    ("GET", "/dirws/oauth2/auth"),
    ("GET", "/dirws/oauth2/authorize"),
    ("GET", "/dirws/oauth2/device"),
    ("GET", "/dirws/console"),
    ("GET", CONSOLE),
    ("GET", "/dirws/static/{name}"),
    ("DELETE", f"{OAUTH}/oauth/{{token}}"),
    ("OPTIONS", f"{OAUTH}/oauth/{{token}}"),
    ("DELETE", f"{REST_OAUTH}/{{token}}"),
    ("OPTIONS", f"{REST_OAUTH}/{{token}}"),
    ("GET", "/dirws/rest/openapi.json"),
    ("GET", "/dirws/oauth2/userinfo"),
    ("GET", "/dirws/oauth2/jwks"),
    ("GET", "/dirws/oauth2/.well-known/openid-configuration"),
    ("GET", "/dirws/.well-known/openid-configuration"),
    ("GET", "/dirws/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/openid-configuration/dirws"),
    ("GET", "/.well-known/oauth-authorization-server/dirws"),
}
"""What is asked of one snapshot, and the end of a token, for which the token itself is the right."""


class Someone:
    """An administrator made for one request, with a grant and a browser's ticket."""

    def __init__(self, scene: Scene) -> None:
        now = scene.clock()
        with scene.database.begin() as cx:
            name = f"passing-{next(numbers)}"
            self.user = editing.add_user(cx, entries.administration(cx), name, now, password_hash=HASH)
            memberships.add_member(cx, entries.administrators(cx), self.user)
            client = entries.find_client(cx, scene.client_id)
            until = now + 3600 * SECOND
            grant, self.refresh = tokens.open_grant(cx, self.user.id, client.id, scene.administration.id, now, until)
            self.access = tokens.add_access_tokens(cx, [(grant, until)], now)[0]
            self.ticket = page_ticket(cx, scene.names, self.user.id, scene.administration.id, now)
            self.csrf = frame.csrf(cx, self.ticket)
        self.id = scene.shown_id(self.user)


def rows(scene: Scene) -> dict[str, int]:
    with scene.database.read() as cx:
        return {
            table.name: cx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in directory_tables.sorted_tables
        }


def _end(scene: Scene, someone: Someone, end: End, token: str) -> None:
    with scene.database.begin() as cx:
        end(cx, scene, someone.user, token)


def ended(scene: Scene, someone: Someone, end: End, token: str) -> dict[str, int]:
    _end(scene, someone, end, token)
    return rows(scene)


def form(scene: Scene, someone: Someone, end: End, path: str, fields: dict[str, str]) -> tuple[Outcome, dict[str, int]]:
    """Send a form whose sender's right ends before its last byte."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"{COOKIE}={someone.ticket}"}
    kept: list[dict[str, int]] = []
    sent = Sent("POST", path, headers, urlencode(fields).encode())
    outcome = play(scene.app, scene.loop, sent, "last byte", lambda: kept.append(ended(scene, someone, end, "")))
    return outcome, kept[0]


def test_every_address_of_the_directory_says_when_its_right_is_asked(scene: Scene) -> None:
    served = {
        (method, route.path)
        for route in routes.routes(scene.directory)
        if isinstance(route.app, Endpoint)
        for method in route.app._methods
    }
    by_rest = {
        (method, f"/dirws/{dialect}{row.path}")
        for row in addresses.ROWS
        for method in row.methods
        for dialect in ("rest", "v1")
    }
    assert served == USED | AT_ONCE | by_rest, "tests/rights/test_directory_by_rest.py asks about those by REST"


@pytest.mark.parametrize("way", OF_THE_USER)
def test_a_password_grant_is_refused(scene: Scene, way: str) -> None:
    someone = Someone(scene)
    scope = "resource:" + scene.names.administration_resource.replace(" ", "+")
    fields = {"grant_type": "password", "client_id": scene.client_id, "scope": scope}
    fields |= {"username": someone.id, "password": PASSWORD}
    outcome, before = form(scene, someone, OF_THE_USER[way], "/dirws/login", fields)
    assert json.loads(outcome.body)["error"] == "invalid_grant"
    assert {**rows(scene), "entries": 0} == {**before, "entries": 0}


@pytest.mark.parametrize("way", [*OF_THE_USER, *OF_THE_SESSION])
def test_a_refresh_is_refused(scene: Scene, way: str) -> None:
    someone = Someone(scene)
    fields = {"grant_type": "refresh_token", "client_id": scene.client_id, "refresh_token": someone.refresh}
    end = (OF_THE_USER | OF_THE_SESSION)[way]

    def with_token(cx: Connection, at: Scene, user: Entry, _: str) -> object:
        return end(cx, at, user, someone.access)

    outcome, before = form(scene, someone, with_token, "/dirws/login", fields)
    assert json.loads(outcome.body)["error"] == "invalid_grant"
    assert rows(scene) == before


ENDS_A_TICKET = [way for way in (*OF_THE_USER, "signed out") if way != "group"]
"""Who is not in the group any more may still allow what needs no rights of an administrator."""


@pytest.mark.parametrize("way", ENDS_A_TICKET)
def test_a_consent_gives_no_code(scene: Scene, way: str) -> None:
    app, someone = Application(scene), Someone(scene)
    fields = {"m_csrf": someone.csrf, "decision": "allow", "request": urlencode(app.asked(scope="openid"))}
    outcome, before = form(scene, someone, (OF_THE_USER | OF_THE_SESSION)[way], "/dirws/oauth2/auth", fields)
    assert outcome.headers["location"].startswith("/dirws/oauth2/auth?")
    assert rows(scene) == before


@pytest.mark.parametrize("way", ENDS_A_TICKET)
def test_a_device_is_not_claimed(scene: Scene, way: str) -> None:
    Application(scene)
    device = {"client_id": "app", "scope": "openid"}
    told = scene.browser.post("/dirws/oauth2/device_authorization", data=device).json()
    someone = Someone(scene)
    fields = {"m_csrf": someone.csrf, "user_code": told["user_code"], "decision": "allow"}
    outcome, before = form(scene, someone, (OF_THE_USER | OF_THE_SESSION)[way], "/dirws/oauth2/device", fields)
    assert outcome.headers["location"] == "/dirws/oauth2/device"
    assert rows(scene) == before


@pytest.mark.parametrize("way", ENDS_A_TICKET)
def test_a_code_gives_no_tokens(scene: Scene, way: str) -> None:
    app, someone = Application(scene), Someone(scene)
    scene.browser.cookies.set(COOKIE, someone.ticket, domain="muniment.test")
    fields = {"grant_type": "authorization_code", "client_id": "app", "code": app.code(scope="openid")}
    fields |= {"redirect_uri": BACK, "code_verifier": VERIFIER}
    outcome, before = form(scene, someone, (OF_THE_USER | OF_THE_SESSION)[way], "/dirws/oauth2/token", fields)
    assert json.loads(outcome.body)["error"] == "invalid_grant"
    assert rows(scene) == before


@pytest.mark.parametrize("address", ["/oauth/tokeninfo", "/tokeninfo"])
@pytest.mark.parametrize("way", [*OF_THE_USER, *OF_THE_SESSION])
def test_tokeninfo_says_so(scene: Scene, way: str, address: str) -> None:
    someone = Someone(scene)
    body = json.dumps({"token": someone.access, "resource_id": scene.administration.id}).encode()
    end = (OF_THE_USER | OF_THE_SESSION)[way]
    sent = Sent("POST", OAUTH + address, {"Content-Type": "application/json"}, body)
    outcome = play(scene.app, scene.loop, sent, "last byte", lambda: _end(scene, someone, end, someone.access))
    assert outcome.status in {401, 410}


@pytest.mark.parametrize("way", [*OF_THE_USER, "signed out"])
def test_a_form_of_the_console_changes_nothing(scene: Scene, way: str) -> None:
    someone = Someone(scene)
    fields = {"m_csrf": someone.csrf, "action": "add", "name": f"x.{next(numbers)}", "value": "y"}
    outcome, before = form(scene, someone, (OF_THE_USER | OF_THE_SESSION)[way], CONSOLE, fields)
    assert outcome.status == 303
    assert outcome.headers["location"].startswith("/dirws/login?")
    assert rows(scene) == before


@pytest.mark.parametrize("way", OF_THE_USER)
def test_the_sign_in_form_signs_nobody_in_to_the_console(scene: Scene, way: str) -> None:
    someone = Someone(scene)
    page = scene.open("/dirws/login?RFA=")
    fields = {str(name): str(value) for name, value in page.forms()[0].form_values()}
    fields |= {"m_username": someone.id, "m_password": PASSWORD}
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in scene.browser.cookies.jar)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies}
    sent = Sent("POST", "/dirws/login", headers, urlencode(fields).encode())
    kept: list[dict[str, int]] = []
    outcome = play(
        scene.app,
        scene.loop,
        sent,
        "last byte",
        lambda: kept.append(ended(scene, someone, OF_THE_USER[way], "")),
    )
    # Who is no administrator any more is signed in, and reads that there is nothing for them.
    assert rows(scene)["tickets"] == kept[0]["tickets"] + (way == "group")
    if way == "group":
        assert outcome.headers["location"] == f"/dirws/login?RFA={scene.administration.id}"
        ticket = outcome.headers["set-cookie"].partition(";")[0].partition("=")[2]
        with scene.database.read() as cx, pytest.raises(NotSignedIn):
            form_sign_in.administrator_of(cx, scene.names, ticket, scene.clock())


@pytest.mark.parametrize("way", [*OF_THE_USER, *OF_THE_SESSION])
def test_an_activation_that_waited_tells_no_secret(scene: Scene, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no body: the right ends before the write begins."""
    someone, write = Someone(scene), scene.directory.transactions.write
    end = (OF_THE_USER | OF_THE_SESSION)[way]
    with scene.database.begin() as cx:
        idle = resources.add(cx, scene.names, f"Idle {next(numbers)}", scene.clock())

    async def late(*args: Any, **more: Any) -> Any:
        await asyncio.to_thread(ended, scene, someone, end, someone.access)
        return await write(*args, **more)

    monkeypatch.setattr(scene.directory.transactions, "write", late)
    path = ACTIVATION.replace("{resource_id}", idle.id)
    outcome = play(scene.app, scene.loop, Sent("POST", path, {"Authorization": f"Bearer {someone.access}"}), None)
    assert outcome.status in {401, 403}
    with scene.database.read() as cx:
        assert resources.by_id(cx, idle.id).activated is None


ENDS = [(way, shown) for shown in ("token", "ticket") for way in (*OF_THE_USER, *OF_THE_SESSION)]
ENDS.remove(("revocation", "ticket"))  # a ticket outlives a token of its user


@pytest.mark.parametrize(("way", "shown"), ENDS)
def test_a_change_by_rest_is_refused(scene: Scene, way: str, shown: str) -> None:
    someone = Someone(scene)
    headers = {"Authorization": f"Bearer {someone.access}"} if shown == "token" else {"Muniment-Ticket": someone.ticket}
    body = json.dumps({"userPartitionID": "People", "name": f"new-{next(numbers)}"}).encode()
    kept: list[dict[str, int]] = []
    end = (OF_THE_USER | OF_THE_SESSION)[way]
    sent = Sent("POST", "/dirws/rest/users", {**headers, "Content-Type": "application/json"}, body)
    outcome = play(
        scene.app, scene.loop, sent, "last byte", lambda: kept.append(ended(scene, someone, end, someone.access))
    )
    assert outcome.status in {400, 401, 403}
    assert rows(scene) == kept[0]
