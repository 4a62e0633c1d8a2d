"""ours 26: what a browser allows at both halves together, under both sets of names, and the events that it leaves."""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import lxml.html
import pytest

from muniment.directory.administration import client_decisions
from muniment.directory.entries import editing, entries, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from tests.office import page_ticket
from tests.scenes import Site

BACK = "https://app.example/back"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


class Application:
    """A public client of its own, and a browser in which a person of its own is signed in."""

    def __init__(self, site: Site) -> None:
        self.site, self.person = site, site.world.person()
        world = site.world
        with world.directory_db.begin() as cx:
            client = editing.add_client(cx, world.word(), world.clock())
            settings = ClientSettings(redirect_urls=(BACK,), denied_grants=())
            client_decisions.set_settings(cx, client, settings, world.clock())
            user = entries.find_user(cx, world.names, self.person.id)
            administration = resources.administration(cx)
            ticket = page_ticket(cx, site.directory_names, user.id, administration.id, world.clock())
        self.id = client.name
        cookie = site.directory_names.ticket_cookie or "__Host-muniment_ticket"
        self.signed_in = {"Cookie": f"{cookie}={ticket}", "Accept": "text/html"}

    def post(self, path: str, form: dict[str, str], *, by_browser: bool = False) -> Any:
        headers = self.signed_in if by_browser else {}
        return self.site.http.post(f"{self.site.directory}{path}", data=form, headers=headers)

    def press(self, page: str, button: str = "", **fields: str) -> Any:
        """Send the page's form."""
        tree: Any = lxml.html.fromstring(page)
        form = tree.forms[-1]
        filled = {str(name): str(value) for name, value in form.form_values()} | fields
        pressed = {"decision": button} if button else {}
        return self.site.http.post(form.action, data=filled | pressed, headers=self.signed_in)

    def code(self) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": BACK,
            "scope": f"openid {self.site.world.scope}",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        page = self.site.http.get(f"{self.site.directory}/oauth2/auth?{urlencode(asked)}", headers=self.signed_in)
        assert page.status_code == 200, page.text
        answer = self.press(page.text, "allow")
        code: str = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
        return code

    def redeem(self, code: str) -> Any:
        form = {"grant_type": "authorization_code", "client_id": self.id, "code": code}
        return self.post("/oauth2/token", form | {"redirect_uri": BACK, "code_verifier": VERIFIER})

    def events(self) -> list[dict[str, Any]]:
        """Those that name the client, without what every event has."""
        lines = [json.loads(line) for line in self.site.installation.events.read_text("utf-8").splitlines()]
        every = ("timestamp", "request_id", "origin", "client")
        of_mine = [each for each in lines if each.get("client") == self.id]
        return [{name: value for name, value in each.items() if name not in every} for each in of_mine]


@pytest.fixture
def app(site: Site) -> Application:
    return Application(site)


def test_a_code_opens_the_repository_and_leaves_an_event(app: Application) -> None:
    """RFC 6749 4.1: as a password grant leaves one."""
    code = app.code()
    reply = app.redeem(code).json()
    assert reply.keys() >= {"access_token", "refresh_token", "id_token"}
    header = {"Authorization": f"Bearer {reply['access_token']}"}
    assert app.site.http.get(f"{app.site.repository}/types", headers=header).status_code == 200
    usual = {
        "event": "sign-in",
        "who": app.person.id,
        "resource": app.site.world.resource_name,
        "how": "authorization_code grant",
    }
    assert app.events() == [{**usual, "result": "done"}]
    assert app.redeem(code).status_code == 400
    assert app.site.http.get(f"{app.site.repository}/types", headers=header).status_code == 401
    assert app.events() == [{**usual, "result": "done"}, {**usual, "result": "refused"}]


def test_a_device_opens_the_repository_and_leaves_an_event(app: Application) -> None:
    """RFC 8628: its questions before the user's word leave none."""
    told = app.post("/oauth2/device_authorization", {"client_id": app.id, "scope": app.site.world.scope}).json()
    asked = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "client_id": app.id,
        "device_code": told["device_code"],
    }
    assert app.post("/oauth2/token", asked).json()["error"] == "authorization_pending"
    assert told["verification_uri"] == f"{app.site.base}{app.site.directory}/oauth2/device"
    page = app.site.http.get(told["verification_uri_complete"], headers=app.signed_in)
    assert app.press(app.press(page.text).text, "allow").status_code == 200
    with app.site.world.clock.shift(10):
        reply = app.post("/oauth2/token", asked).json()
    header = {"Authorization": f"Bearer {reply['access_token']}"}
    assert app.site.http.get(f"{app.site.repository}/types", headers=header).status_code == 200
    (left,) = app.events()
    assert (left["event"], left["result"], left["who"]) == ("sign-in", "done", app.person.id)
    assert left["how"] == "device_code grant"


def test_the_sign_in_page_tells_for_which_application(app: Application, site: Site) -> None:
    asked = {"client_id": app.id, "redirect_uri": BACK, "response_type": "code"}
    page = site.http.get(f"{site.login}?{urlencode(asked)}", headers={"Accept": "text/html"})
    assert f"to go on to <strong>{app.id}</strong>" not in page.text
    assert page.status_code == 303
    assert parse_qs(urlsplit(page.headers["location"]).query)["error"] == ["invalid_request"]
    asked |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256", "scope": site.world.scope}
    page = site.http.get(f"{site.login}?{urlencode(asked)}", headers={"Accept": "text/html"})
    assert f"to go on to <strong>{app.id}</strong>" in page.text
