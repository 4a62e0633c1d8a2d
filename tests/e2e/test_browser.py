"""A real Chromium signs in, administers and is shut out; with scripts and without."""

import base64
import hashlib
import itertools
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, HttpCredentials, Page, expect, sync_playwright

from muniment.database.connections import Database
from muniment.directory.entries import editing, entries, oauth_clients, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.options import DirectoryNames
from muniment.directory.sign_in.passwords import hash_password
from muniment.front import documentation
from muniment.ground import clock
from muniment.installation import initialise
from tests.e2e.processes import Server, initialised
from tests.servers import free_port
from tests.waiting import PATIENCE, until

NAMES = DirectoryNames()
VERIFIER = "v" * 43
CHROMIUM = Path("/usr/bin/chromium")
PATIENTLY = PATIENCE * 1000
"""Milliseconds that a browser may take for anything."""

expect.set_options(timeout=PATIENTLY)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is absent: apt-get install chromium"),
]

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Every page that needs no sign-in, with two of the decision records: one with a table, one without.
PAGES = (
    "/",
    "/docs",
    "/docs/decisions",
    *(f"/docs/{name}" for name in documentation.names() if not name.startswith(documentation.DECISIONS)),
    "/docs/decisions/0001-the-stack",
    "/docs/decisions/0101-the-search-page-keeps-nothing",
)

# Sends a form to the page's own address, as no page of ours does.
SEND_HERE = """(fields) => {
  const form = document.body.appendChild(document.createElement("form"));
  form.method = "post";
  form.action = location.href;
  for (const [name, value] of Object.entries(fields))
    form.append(Object.assign(document.createElement("input"), {name, value}));
  form.submit();
}"""


# The lowest contrast between a text and what lies behind it (WCAG 2.2, 1.4.3), with the text.
def looks(*usual: tuple[int, str]) -> list[Any]:
    """List the widths of windows and color schemes in which pages are looked at: some here, all in the campaign."""
    return [
        pytest.param(*look, marks=[] if look in usual else [pytest.mark.campaign], id="-".join(map(str, look)))
        for look in itertools.product((320, 390, 1280), ("light", "dark"))
    ]


PHONE, DESK = (320, "dark"), (1280, "light")

LOWEST_CONTRAST = """() => {
  const colour = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = colour(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  let lowest = [99, ""];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    if (!text) continue;
    const parent = texts.currentNode.parentElement;
    const [a, b] = [light(colour(getComputedStyle(parent).color)), light(behind(parent))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < lowest[0]) lowest = [ratio, text];
  }
  return lowest;
}"""


class Place:
    """A server with a few people, and a browser that trusts it."""

    def __init__(self, server: Server, browser: Browser, admin_password: str, plain_port: int) -> None:
        self.server, self.browser, self.admin_password = server, browser, admin_password
        self.login = f"{server.base}/dirws/login"
        self.console = f"{server.base}/dirws/console"
        self.plain = f"http://127.0.0.1:{plain_port}"
        self.plain_login = f"{self.plain}/dirws/login"
        self._database = Database(f"sqlite:///{server.data}/directory.db")
        self._numbers = itertools.count(1)
        with self._database.begin() as cx:
            self._partition = editing.add_partition(cx, NAMES, "demo", clock.now())
            self._resource = resources.add(cx, NAMES, "Demo Files", clock.now())
            resources.activate(cx, self._resource.id, clock.now())
        self.resource_login = f"{self.login}?RFA={self._resource.id}"

    def person(self, *, member: bool = True) -> tuple[str, str]:
        """Make a user; give his id and his password."""
        number = next(self._numbers)
        password = f"password-{number}"
        stored = hash_password(password, memory_kib=8192, passes=1)
        with self._database.begin() as cx:
            made = editing.add_user(cx, self._partition, f"person-{number}", clock.now(), password_hash=stored)
            if member:
                resources.add_to_role(cx, self._resource, made)
        return entries.shown_id(NAMES, made), password

    def application(self, *addresses: str) -> str:
        """Make a public client with these return addresses; give its authorization request, up to the address."""
        settings = ClientSettings(redirect_urls=addresses, denied_grants=())
        with self._database.begin() as cx:
            client = editing.add_client(cx, f"Application {next(self._numbers)}", clock.now())
            oauth_clients.write(cx, client, settings, clock.now())
        digest = hashlib.sha256(VERIFIER.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": client.name,
            "scope": "openid resource:Demo+Files",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{self.server.base}/dirws/oauth2/auth?{urlencode(asked)}&redirect_uri="

    def redeem(self, request: str, address: str, code: str) -> httpx.Response:
        """Send the code to the token endpoint, as the application of this request does."""
        client_id = parse_qs(urlsplit(request).query)["client_id"][0]
        form = {"grant_type": "authorization_code", "client_id": client_id, "code": code}
        form |= {"redirect_uri": address, "code_verifier": VERIFIER}
        token = f"{self.server.base}/dirws/oauth2/token"
        return httpx.post(token, data=form, verify=str(self.server.data / "tls" / "ca.pem"), trust_env=False)

    def long_login(self) -> str:
        """Give the sign-in page's address for a resource with the longest name there can be."""
        with self._database.begin() as cx:
            known = {one.name: one for one in resources.all_resources(cx)}
            made = known.get("n" * 120)
            if made is None:
                made = resources.add(cx, NAMES, "n" * 120, clock.now())
                resources.activate(cx, made.id, clock.now())
        return f"{self.login}?RFA={made.id}"

    def disable(self, user_id: str) -> None:
        """Disable a user, from another process than the server's."""
        with self._database.begin() as cx:
            editing.set_disabled(cx, entries.find_user(cx, NAMES, user_id), True, clock.now())

    def close(self) -> None:
        """Give the database back."""
        self._database.close()

    def sign_in(self, page: Page, user_id: str, password: str, address: str | None = None) -> None:
        """Open the form, fill it in by its labels, and send it."""
        page.goto(address or self.login)
        page.get_by_label("User name").fill(user_id)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()

    def sign_in_administrator(self, page: Page) -> None:
        """Sign in to the console."""
        self.sign_in(page, "admin@directory.admin", self.admin_password)
        expect(page).to_have_url(self.console)
        page.wait_for_load_state()

    def plain_status(self) -> int:
        """Say what the sign-in page answers over plain HTTP."""
        return httpx.get(self.plain_login, trust_env=False).status_code


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("browser") / "data"
    password, plain_port = initialised(data), free_port()
    with (
        Server(
            data,
            free_port(),
            *("--set", f"web.http_port={plain_port}", "--set", f"repository.basic_client={initialise.BASIC_CLIENT}"),
        ) as server,
        sync_playwright() as playwright,
    ):
        trusted = f"--ignore-certificate-errors-spki-list={key_digest(data / 'tls' / 'server.pem')}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, trusted], headless=True)
        made = Place(server, browser, password, plain_port)
        yield made
        made.close()
        browser.close()


@pytest.fixture
def page(place: Place) -> Iterator[Page]:
    yield from _opened(place)


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.campaign)], ids=["with scripts", "without scripts"])
def either_page(place: Place, request: pytest.FixtureRequest) -> Iterator[Page]:
    yield from _opened(place, java_script_enabled=request.param)


def _opened(place: Place, **options: Any) -> Iterator[Page]:
    context = place.browser.new_context(**options)
    context.set_default_timeout(PATIENTLY)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda asked: complaints.append(asked.url) if not asked.url.startswith(place.server.base) else None
    )
    yield page
    context.close()
    assert complaints == [], "the browser complained, or was sent elsewhere"


def key_digest(certificate: Path) -> str:
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    return base64.b64encode(
        hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    ).decode()


def test_an_administrator_permits_plain_http_and_takes_it_back(place: Place, either_page: Page) -> None:
    page = either_page
    place.sign_in(page, "admin@directory.admin", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("That did not work")
    expect(page.get_by_label("User name")).to_have_value("admin@directory.admin")
    page.get_by_label("Password").fill(place.admin_password)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(place.console)
    assert place.plain_status() == 403

    page.get_by_role("navigation").get_by_role("link", name="System attributes").click()
    page.get_by_label("Name", exact=True).fill("directory.auth.EnforceSSL")
    page.get_by_label("Value", exact=True).fill("false")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_have_text("The attribute was added.")
    assert place.plain_status() == 200

    page.get_by_label("directory.auth.EnforceSSL", exact=True).fill("true")
    page.get_by_role("button", name="Change directory.auth.EnforceSSL").click()
    expect(page.get_by_role("status")).to_have_text("The attribute was changed.")
    assert place.plain_status() == 403

    page.get_by_role("button", name="Delete directory.auth.EnforceSSL").click()
    expect(page.get_by_role("status")).to_have_text("The attribute is gone.")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(place.console)
    expect(page).to_have_url(f"{place.login}?RFA=&page=/console")


def test_a_user_in_the_role_sees_who_and_for_what_until_he_is_disabled(place: Place, either_page: Page) -> None:
    page = either_page
    user_id, password = place.person()
    address = f"{place.resource_login}:https://evil.example/"
    place.sign_in(page, user_id, password, address)
    expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(user_id)
    expect(page.get_by_role("main")).to_contain_text("Demo Files")
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert cookies.keys() == {"__Host-muniment_ticket", "__Host-muniment_ticket_browser"}
    for cookie in cookies.values():
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    page.goto(place.console)
    expect(page.get_by_role("main")).to_contain_text("Directory Administration")

    place.disable(user_id)
    page.goto(address)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text(user_id)


def test_a_user_outside_the_role_stays_outside(place: Place, either_page: Page) -> None:
    user_id, password = place.person(member=False)
    place.sign_in(either_page, user_id, password, place.resource_login)
    expect(either_page.get_by_role("alert")).to_contain_text("That did not work")


def test_a_user_who_is_no_administrator_reads_so_and_signs_out(place: Place, either_page: Page) -> None:
    page = either_page
    user_id, password = place.person()
    place.sign_in(page, user_id, password)
    expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(user_id)
    expect(page.get_by_role("main")).to_contain_text("there is nothing for you here")
    page.goto(place.console)
    expect(page.get_by_role("main")).to_contain_text("there is nothing for you here")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text(user_id)


def test_the_way_from_the_front_page_to_a_decision_is_links(place: Place, either_page: Page) -> None:
    page = either_page
    page.goto(place.server.base)
    page.get_by_role("navigation").get_by_role("link", name="Documentation").click()
    page.get_by_role("link", name="The interface", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The interface")
    page.get_by_role("link", name="Ours 3 Content").click()
    expect(page.get_by_role("heading", name="Ours 3 Content")).to_be_in_viewport()
    page.get_by_role("link", name="docs/decisions/0019").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("0019")
    page.get_by_role("link", name="Decisions", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Decisions")
    page.get_by_role("banner").get_by_role("link", name="Muniment").click()
    expect(page).to_have_url(f"{place.server.base}/")


def test_a_page_is_read_from_the_keyboard(place: Place, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{place.server.base}/docs/interface")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("navigation", name="Where this page lies").get_by_role("link")).to_be_focused()
    table = page.get_by_role("group", name="Table").first
    table.focus()
    assert "3px" in page.evaluate("getComputedStyle(document.activeElement).outline")
    page.keyboard.press("ArrowRight")
    # Not wait_for_function: it may evaluate text in the page, which the page's own policy refuses.
    until(lambda: page.evaluate("document.activeElement.scrollLeft") > 0)


def test_the_form_is_filled_in_and_sent_from_the_keyboard(place: Place, page: Page) -> None:
    page.goto(place.login)
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type("admin@directory.admin")
    page.keyboard.press("Tab")
    page.keyboard.type(place.admin_password)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outline")
    assert re.search(r"solid 3px|3px.*solid|solid.*3px", outline), outline
    page.keyboard.press("Enter")
    expect(page).to_have_url(place.console)
    page.wait_for_load_state()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()


@pytest.mark.parametrize("mode", ["query", "form_post"])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_application_sends_a_browser_and_it_comes_back_with_a_code(place: Place, host: str, mode: str) -> None:
    """Chromium holds the redirect, and the posted answer, against the policy of the page whose form began it."""
    told: list[dict[str, list[str]]] = []
    with listening(host, told) as port:
        address = f"http://{host}:{port}/back"
        request = place.application(f"http://{host}/back")
        context = place.browser.new_context()
        page = context.new_page()
        place.sign_in(page, *place.person(), f"{request}{quote(address)}&response_mode={mode}&state=1")
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.get_by_text("You are back")).to_be_visible()
        context.close()
    (answer,) = told
    assert (answer["state"], answer["iss"]) == (["1"], [f"{place.server.base}/dirws"])
    reply = place.redeem(request, address, answer["code"][0])
    assert reply.status_code == 200
    assert reply.json().keys() >= {"access_token", "refresh_token", "id_token"}


@contextmanager
def listening(host: str, told: list[dict[str, list[str]]]) -> Iterator[int]:
    """An application at a free port of its own machine."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(parse_qs(urlsplit(self.path).query))
            self._answer()

        def do_POST(self) -> None:
            told.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._answer()

        def _answer(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<link rel='icon' href='data:,'><p>You are back")

        def log_message(self, *_: object) -> None:
            pass

    class Listener(HTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Listener((host.strip("[]"), 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_device_is_connected(place: Place, page: Page) -> None:
    request = place.application("https://app.example/back")
    client_id = parse_qs(urlsplit(request).query)["client_id"][0]
    asked = {"client_id": client_id, "scope": "resource:Demo Files"}
    authority = str(place.server.data / "tls" / "ca.pem")
    begin = f"{place.server.base}/dirws/oauth2/device_authorization"
    told = httpx.post(begin, data=asked, verify=authority, trust_env=False).json()
    place.sign_in(page, *place.person(), told["verification_uri"])
    page.get_by_label("Code").fill(told["user_code"].lower())
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("main")).to_contain_text(told["user_code"])
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("may go on")


@pytest.mark.parametrize(("width", "scheme"), looks(PHONE))
def test_every_page_fits_its_width_and_can_be_read(place: Place, page: Page, width: int, scheme: Any) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.emulate_media(color_scheme=scheme)

    def fits() -> None:
        page.wait_for_load_state()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        ratio, text = page.evaluate(LOWEST_CONTRAST)
        assert ratio >= 4.5, (text, ratio, page.url)

    for address in PAGES:
        page.goto(f"{place.server.base}{address}")
        fits()
    user_id, password = place.person()
    request = place.application("https://app.example/back") + quote("https://app.example/back")
    page.goto(f"{request}&login_hint={'x' * 200}")
    fits()
    place.sign_in(page, user_id, password, request)
    expect(page.get_by_role("heading", name="Allow access?")).to_be_visible()
    fits()
    page.goto(f"{place.server.base}/dirws/oauth2/device")
    fits()
    page.context.clear_cookies()
    place.sign_in(page, user_id, password)
    expect(page.get_by_role("main")).to_contain_text("there is nothing for you here")
    fits()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(place.long_login())
    expect(page.get_by_role("main")).to_contain_text("n" * 120)
    fits()
    place.sign_in(page, "admin@directory.admin", "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    fits()
    place.sign_in_administrator(page)
    fits()
    page.goto(f"{place.console}/system-attributes")
    fits()
    page.get_by_label("Name", exact=True).fill("x" * 190)
    page.get_by_label("Value", exact=True).fill("y" * 500)
    page.get_by_label("Any other name").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("was added")
    fits()
    page.get_by_role("button", name="Delete " + "x" * 190).click()
    expect(page.get_by_role("status")).to_contain_text("is gone")
    fits()


def test_a_page_of_another_site_writes_nothing_with_a_password_that_the_browser_knows(place: Place) -> None:
    """Chromium answers the 401 with the password, whoever made it ask."""
    pair = HttpCredentials(username="admin@directory.admin", password=place.admin_password)
    form = """([address, kind]) => {
      const form = document.body.appendChild(document.createElement("form"));
      Object.assign(form, {method: "post", action: address, enctype: kind});
      form.append(Object.assign(document.createElement("input"), {name: "a", value: "b"}));
      form.submit();
    }"""
    context = place.browser.new_context(http_credentials=pair)
    page = context.new_page()
    objects = f"{place.server.base}/rest/repositories/main/objects"
    own = f"{place.server.base}/a-page-of-its-own"
    for address in ("https://other.example/", own):
        page.route(address, lambda route: route.fulfill(content_type="text/html", body="<p>Hello</p>"))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        page.goto("https://other.example/")
        with page.expect_navigation() as moved:
            page.evaluate(form, [f"{objects}?object-name=forged", kind])
        assert (moved.value.status, moved.value.request.headers.get("origin")) == (403, "https://other.example")
    page.goto(own)
    write = "(address) => fetch(address, {method: 'POST', body: 'own'}).then((answer) => answer.status)"
    assert page.evaluate(write, f"{objects}?object-name=own") == 201
    context.close()


def test_scripts_have_no_way_to_the_ticket_or_into_the_page(place: Place, page: Page) -> None:
    place.sign_in_administrator(page)
    assert page.evaluate("document.cookie") == ""
    assert page.locator("script").count() == 0
    framed = place.browser.new_page()
    framed.goto(f"{place.server.base}/health/live")
    frame = f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{place.login}'}}))"
    with framed.expect_event("framenavigated", lambda shown: shown.url.startswith("chrome-error:")):
        framed.evaluate(frame)
    assert "password" not in framed.frames[-1].content()
    framed.close()


@pytest.mark.campaign
@pytest.mark.parametrize(("width", "scheme"), looks(DESK))
def test_axe_finds_nothing_on_any_page(place: Place, width: int, scheme: Any) -> None:
    context = place.browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    axe = Axe()
    seen: list[str] = []

    def sound() -> None:
        page.wait_for_load_state()
        found = axe.run(page)
        assert found.violations_count == 0, f"{page.url}\n{found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        assert page.evaluate("document.styleSheets.length") == 1, f"{page.url} is drawn without its style"
        seen.append(page.title())

    base = place.server.base
    for address in (
        *(f"{base}{address}" for address in PAGES),
        f"{base}/nothing",
        f"{base}/docs/none.md",
        place.login,
        place.long_login(),
        f"{place.login}?RFA=nonsense",
        f"{base}/dirws/nothing",
        f"{place.console}/nothing",
        f"{place.plain}/",
        place.plain_login,
        f"{place.plain}/dirws/console",
    ):
        page.goto(address)
        sound()
    for address, fields, heading in (
        (f"{base}/docs", {}, "This page cannot do that"),
        (place.login, {"csrf": "forged"}, "This is not allowed"),
    ):
        page.goto(address)
        page.evaluate(SEND_HERE, fields)
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        sound()
    user_id, password = place.person()
    request = place.application("https://app.example/back") + quote("https://app.example/back")
    page.goto(request)
    sound()
    place.sign_in(page, user_id, password, request)
    expect(page.get_by_role("heading", name="Allow access?")).to_be_visible()
    sound()
    page.goto(f"{base}/dirws/oauth2/device")
    sound()
    page.get_by_label("Code").fill("none")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("alert")).to_be_visible()
    sound()
    context.clear_cookies()
    place.sign_in(page, user_id, password)
    expect(page.get_by_role("main")).to_contain_text("there is nothing for you here")
    sound()
    context.clear_cookies()
    place.sign_in(page, user_id, password, place.resource_login)
    expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    sound()
    context.clear_cookies()
    place.sign_in(page, "admin@directory.admin", "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    sound()
    place.sign_in_administrator(page)
    sound()
    page.goto(f"{place.console}/system-attributes")
    sound()
    page.get_by_label("Name", exact=True).fill(f"a.{width}.{scheme}")
    page.get_by_label("Any other name").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_be_visible()
    sound()
    page.get_by_label("Name", exact=True).fill(f"a.{width}.{scheme}")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_be_visible()
    sound()
    context.close()
    assert len(set(seen)) >= len(PAGES) + 8, seen
