"""The office behind its addresses, with pages that a browser without scripts could use."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

import httpx
import lxml.html
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp

from muniment.database.connections import Database
from muniment.database.transactions import Transactions
from muniment.directory.administration import client_decisions
from muniment.directory.api import routes, spelling
from muniment.directory.context import Directory
from muniment.directory.entries import editing, entries, memberships, oauth_clients, resources, system
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import signing_keys
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate, hash_password
from muniment.integration.directory_dependencies import RepositoryDependencies
from muniment.web.options import WebOptions
from muniment.web.requests.transport import Transport
from tests.clock import Clock
from tests.office import HASH, PASSWORD, SCOPE, Office, page_ticket
from tests.scenes import InProcess, Loop

OPTIONS = DirectoryOptions(names=DirectoryNames(form_prefix="m_"), hash_memory_kib=8192, hash_passes=1)

BACK = "https://app.example/back"
NATIVE = "http://127.0.0.1/back"
SECRET = "the secret of a web application"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
ISSUER = "https://muniment.test/dirws"
SIGNING_KEY = signing_keys.generate("RS256")


class Scene:
    """An office with an administrator, and a browser with its cookies; its user is alice."""

    def __init__(self, database: Database, gate: PasswordGate, clock: Clock, loop: Loop) -> None:
        office = Office(database, clock(), OPTIONS)
        self.database, self.clock, self.names = database, clock, OPTIONS.names
        self.administration, self.group, self.client_id = office.administration, office.group, office.client.name
        self.user, self.outsider, self.resource = office.alice, office.bob, office.resource
        apart = RepositoryDependencies(database, OPTIONS.names, clock, lambda: None)
        self.directory = Directory(Transactions(database), OPTIONS, gate, clock, apart, ISSUER)
        with database.begin() as cx:
            signing_keys.add_missing(cx, [SIGNING_KEY], clock())
            editing.set_description(cx, office.partition, "Our people", clock())
            partition = entries.administration(cx)
            self.admin = editing.add_user(cx, partition, "admin", clock(), password_hash=HASH)
            memberships.add_member(cx, entries.administrators(cx), self.admin)
        self.routes = routes.routes(self.directory)
        self.app = Transport(
            Starlette(routes=self.routes),
            WebOptions(base_address="https://muniment.test", trusted_proxies=("127.0.0.1",)),
            sensitive_prefixes=["/dirws"],
            requires_tls=self._enforced,
            shape=spelling.shape(self.directory.options),
        )
        self.loop, self.wire = loop, InProcess(self.app, loop)
        self.browser = self.new_browser()

    def close(self) -> None:
        """Give the database back."""
        self.wire.close()
        self.directory.transactions.close()

    async def _enforced(self) -> bool:
        return await self.directory.transactions.read(system.enforce_ssl)

    def new_browser(self, base: str = "https://muniment.test", address: str = "192.0.2.1") -> httpx.Client:
        """Give a browser without cookies, at an address."""
        headers = {"Accept": "text/html", "X-Forwarded-For": address}
        return httpx.Client(transport=self.wire, base_url=base, headers=headers)

    def shown_id(self, user: Entry) -> str:
        """Write a user's id."""
        return entries.shown_id(self.names, user)

    def open_served_by(self, app: ASGIApp, address: str = "/dirws/login") -> "Page":
        """Fetch a page from another application than the scene's own."""
        with httpx.Client(transport=InProcess(app, self.loop), base_url="https://muniment.test") as browser:
            return Page(browser.get(address))

    def open(self, address: str = "/dirws/login", browser: httpx.Client | None = None) -> "Page":
        """Fetch a page."""
        return Page((browser or self.browser).get(address))

    def sign_in(
        self,
        user: Entry | str,
        password: str = PASSWORD,
        *,
        resource_id: str | None = None,
        browser: httpx.Client | None = None,
    ) -> httpx.Response:
        """Open the form, fill it in and send it."""
        address = "/dirws/login" + (f"?RFA={resource_id}" if resource_id else "")
        user_id = user if isinstance(user, str) else self.shown_id(user)
        page = self.open(address, browser)
        return page.send(browser or self.browser, m_username=user_id, m_password=password)

    def alter(self, decision: str, *about: object) -> None:
        """Take one of the decisions that end a user's access."""
        with self.database.begin() as cx:
            if decision == "disabled":
                editing.set_disabled(cx, self.user, True, self.clock())
            elif decision == "locked":
                editing.set_locked(cx, self.user, True, self.clock())
            elif decision == "deleted":
                editing.delete(cx, self.user, self.clock())
            else:
                resources.remove_from_role(cx, self.resource, self.group)

    def everything_stored(self) -> str:
        """Spell out every value in the directory's database."""
        with self.database.read() as cx:
            cells = [
                cell
                for table in ("tickets", "keys", "entries", "system_attributes", "grants", "access_tokens")
                for row in cx.exec_driver_sql(f"SELECT * FROM {table}")
                for cell in row
            ]
        texts = [cell if not isinstance(cell, bytes | memoryview) else bytes(cell) for cell in cells]
        return "\n".join(
            repr(text) + (base64.urlsafe_b64encode(text).decode() if isinstance(text, bytes) else "") for text in texts
        )


class Page:
    """A page as a browser without scripts sees it."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.status = response.status_code
        self.tree: Any = lxml.html.fromstring(response.text or "<p></p>")

    @property
    def text(self) -> str:
        """What stands on it, in one line."""
        return re.sub(r"\s+", " ", " ".join(self.tree.itertext())).strip()

    def forms(self) -> list[Any]:
        """Its forms."""
        return list(self.tree.forms)

    def send(
        self,
        browser: httpx.Client,
        number: int = -1,
        *,
        button: str = "",
        headers: dict[str, str] | None = None,
        typed: Mapping[str, str] | None = None,
        **fields: str,
    ) -> httpx.Response:
        """Fill in one of the forms and press its button (the one with that value, else the first)."""
        form = self.forms()[number]
        filled = {str(name): str(value) for name, value in form.form_values()}
        buttons = {button.get("value"): button.get("name") for button in form.iter("button") if button.get("name")}
        if buttons:
            value = button or next(iter(buttons))
            filled[buttons[value]] = value
        answer: httpx.Response = browser.post(form.action, data=filled | {**(typed or {}), **fields}, headers=headers)
        return answer


class Application:
    """The public client ``app``, with a browser that it sends."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.browser, self.id = scene, scene.browser, "app"
        self.secret: str | None = None
        self.settings(redirect_urls=(BACK, NATIVE), denied_grants=())

    def settings(self, **settings: Any) -> None:
        with self.scene.database.begin() as cx:
            entry = entries.find_client(cx, self.id)
            former = oauth_clients.read(cx, [entry.id])[entry.id]
            client_decisions.set_settings(cx, entry, msgspec.structs.replace(former, **settings), self.scene.clock())

    def asked(self, **changes: str | None) -> dict[str, str]:
        usual = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": BACK,
            "scope": SCOPE,
            "state": "a state & more",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def ask(self, at: str = "/dirws/oauth2/auth", /, **changes: str | None) -> httpx.Response:
        return self.browser.get(at, params=self.asked(**changes))

    def sign_in(self, user: Entry | None = None) -> None:
        """As the sign-in page does, without its password check."""
        scene = self.scene
        with scene.database.begin() as cx:
            user_id = (user or scene.user).id
            ticket = page_ticket(cx, scene.names, user_id, scene.administration.id, scene.clock(), 28_800)
        self.browser.cookies.clear()
        self.browser.cookies.set("__Host-muniment_ticket", ticket, domain="muniment.test")

    def consent(self, **changes: str | None) -> Page:
        """Ask, signing in if nobody has, and give the page that asks the user."""
        self._sign_in_first()
        return self._consent(self.ask(**changes))

    def _sign_in_first(self) -> None:
        if "__Host-muniment_ticket" not in self.browser.cookies:
            self.sign_in()

    def _consent(self, answer: httpx.Response) -> Page:
        page = Page(answer)
        assert "Allow access?" in page.text, page.text
        return page

    def type_password(self, page: Page, user: Entry | None = None) -> httpx.Response:
        return page.send(self.browser, m_username=self.scene.shown_id(user or self.scene.user), m_password=PASSWORD)

    def allowed(self, **changes: str | None) -> httpx.Response:
        """Ask, and let the user allow it, if they are asked at all."""
        self._sign_in_first()
        answer = self.ask(**changes)
        return answer if answer.status_code == 303 else self._consent(answer).send(self.browser, button="allow")

    def code(self, **changes: str | None) -> str:
        return back(self.allowed(**changes))["code"]

    def redeem(self, code: str | None, **changes: str | None) -> httpx.Response:
        usual = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": BACK,
            "client_id": self.id,
            "client_secret": self.secret,
            "code_verifier": VERIFIER,
        }
        form = {name: value for name, value in (usual | changes).items() if value is not None}
        return self.browser.post("/dirws/oauth2/token", data=form)

    def tokens(self, **changes: str | None) -> dict[str, Any]:
        answer = self.redeem(self.code(**changes))
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    def refresh(self, token: str, **changes: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "client_id": self.id, "refresh_token": token} | changes
        return self.browser.post("/dirws/oauth2/token", data=form)

    def tokeninfo(self, token: str) -> httpx.Response:
        body = {"token": token, "resource_id": self.scene.resource.id}
        return self.browser.post("/dirws/v1/authentication/oauth/tokeninfo", json=body)


def back(answer: httpx.Response, address: str = BACK) -> dict[str, str]:
    """What the application is told at its address."""
    assert answer.status_code == 303, answer.text
    found, _, query = answer.headers["location"].partition("?")
    assert found == address
    return dict(parse_qsl(query, strict_parsing=True))


def refused(answer: httpx.Response) -> str:
    """The code of an error at the token endpoint."""
    assert answer.status_code in (400, 401), answer.text
    error: str = answer.json()["error"]
    return error


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PasswordGate]:
    """One gate for all tests: it costs a hash to open."""
    opened = PasswordGate(tmp_path_factory.mktemp("gate"), 2, 64, 8192, 1)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """The loop in which every scene's directory answers."""
    running = Loop()
    yield running
    running.close()


@pytest.fixture
def scene(directory_db: Database, gate: PasswordGate, clock: Clock, loop: Loop) -> Iterator[Scene]:
    """A directory with people in it, on each of the two databases."""
    made = Scene(directory_db, gate, clock, loop)
    yield made
    made.close()


@pytest.fixture
def app(scene: Scene) -> Application:
    return Application(scene)


@pytest.fixture
def web(scene: Scene) -> Application:
    """A confidential client, ``web``."""
    with scene.database.begin() as cx:
        editing.add_client(cx, "web", scene.clock(), password_hash=hash_password(SECRET, memory_kib=8192, passes=1))
    made = Application.__new__(Application)
    made.scene, made.browser, made.id, made.secret = scene, scene.browser, "web", SECRET
    made.settings(redirect_urls=(BACK,))
    return made
