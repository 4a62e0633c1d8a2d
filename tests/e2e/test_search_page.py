"""A real Chromium searches: with scripts and without, by keyboard alone, on a phone and on a desk, light and dark."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from muniment.database.connections import Database
from muniment.directory.entries import editing, resources
from muniment.directory.options import DirectoryNames
from muniment.directory.sign_in.passwords import hash_password
from muniment.ground import clock
from tests.e2e.processes import Server, initialised
from tests.e2e.test_browser import CHROMIUM, FLAGS, LOWEST_CONTRAST, PATIENTLY, key_digest, looks
from tests.servers import free_port
from tests.waiting import until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is absent: apt-get install chromium"),
]

USER, PASSWORD = "anna@demo", "a-good-password"
EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


class Place:
    """A server with a cabinet of documents, and a browser that trusts it."""

    def __init__(self, server: Server, browser: Browser) -> None:
        self.server, self.browser = server, browser
        self.search = f"{server.base}/search"
        self._make_user()
        self._fill()

    def _make_user(self) -> None:
        names, database = DirectoryNames(), Database(f"sqlite:///{self.server.data}/directory.db")
        with database.begin() as cx:
            partition = editing.add_partition(cx, names, "demo", clock.now())
            stored = hash_password(PASSWORD, memory_kib=8192, passes=1)
            made = editing.add_user(cx, partition, "anna", clock.now(), password_hash=stored)
            resources.add_to_role(cx, resources.find(cx, names, "Documents of main"), made)
        database.close()

    def _fill(self) -> None:
        http = httpx.Client(base_url=self.server.base, verify=str(self.server.data / "tls" / "ca.pem"), trust_env=False)
        form = {"grant_type": "password", "client_id": "muniment-cli", "username": USER, "password": PASSWORD}
        issued = http.post("/dirws/login", data=form | {"scope": "resource:Documents of main"})
        assert issued.status_code == 200, issued.text
        http.headers["Authorization"] = f"Bearer {issued.json()['access_token']}"
        here = "/rest/repositories/main"
        cabinet = http.post(f"{here}/cabinets", json={"properties": {"object_name": "Pumps and valves"}}).json()
        folder = cabinet["properties"]["r_object_id"]
        for number in range(45):
            title = EVIL if number == 3 else f"Report {number:02} on a pump" if number else "n" * 200
            properties = {"object_name": f"report-{number:02}.txt", "title": title, "r_object_type": "document"}
            where = f"{here}/folders/{folder}/documents" if number % 2 else f"{here}/objects"
            made = http.post(where, json={"properties": properties})
            assert made.status_code == 201, made.text
            object_id = made.json()["properties"]["r_object_id"]
            text = (
                f"The pump of report {number} was drained before winter. {EVIL if number == 3 else ''}"
                + " more" * number
            )
            sent = http.post(
                f"{here}/objects/{object_id}/contents", content=text.encode(), headers={"Content-Type": "text/plain"}
            )
            assert sent.status_code == 201, sent.text
        asked = {"q": "drained", "include-total": "true", "words": "all"}
        accept = {"Accept": "application/json"}
        until(lambda: http.get(f"{here}/search", params=asked, headers=accept).json().get("total") == 45)
        http.close()

    def sign_in(self, page: Page, path: str = "") -> None:
        """Open a page, and sign in on the way."""
        page.goto(f"{self.search}{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to search")
        page.get_by_label("User name").fill(USER)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("navigation", name="Search")).to_be_visible()
        page.wait_for_load_state("load")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("searching") / "data"
    initialised(data)
    with Server(data, free_port()) as server, sync_playwright() as playwright:
        trusted = f"--ignore-certificate-errors-spki-list={key_digest(data / 'tls' / 'server.pem')}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, trusted], headless=True)
        yield Place(server, browser)
        browser.close()


@pytest.fixture
def page(place: Place) -> Iterator[Page]:
    yield from _opened(place)


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.campaign)], ids=["with scripts", "without scripts"])
def scripts(request: pytest.FixtureRequest) -> bool:
    chosen: bool = request.param
    return chosen


@pytest.fixture
def either_page(place: Place, scripts: bool) -> Iterator[Page]:
    yield from _opened(place, java_script_enabled=scripts)


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


def titles(page: Page) -> list[str]:
    """Read the headings of the hits."""
    return page.locator(".hits h3").all_text_contents()


def test_somebody_searches_from_the_front_page_to_a_document_and_out_again(
    place: Place, either_page: Page, scripts: bool
) -> None:
    page = either_page
    page.goto(place.server.base)
    page.get_by_role("searchbox", name="Search the documents").fill("how is a pump drained")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("Then you search for how is a pump drained.")).to_be_visible()
    page.get_by_label("User name").fill(USER)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("That did not work")
    expect(page.get_by_label("User name")).to_have_value(USER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=2, name="46 hits")).to_be_visible()
    assert page.locator("mark").first.text_content() in {"pump", "drained", "Pumps"}

    page.get_by_label("document").check()
    page.get_by_role("region", name="Narrow").get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_visible()
    page.get_by_label("Order").select_option("Name")
    if not scripts:  # a script sends the new order by itself
        page.get_by_role("region", name="45 hits").get_by_role("button", name="Apply").click()
    page.wait_for_url(re.compile("sort=name"))
    hits = page.locator(".hits h3")
    expect(hits.nth(1)).to_have_text("Report 01 on a pump")
    page.get_by_role("link", name="Next page").click()
    expect(hits.first).to_have_text("Report 20 on a pump")

    page.get_by_role("link", name="Report 21 on a pump").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Report 21 on a pump")
    expect(page.locator(".sheet mark").first).to_have_text("pump")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download").click()
    assert downloading.value.suggested_filename == "report-21.txt"
    page.get_by_role("link", name="Back to the hits").click()
    expect(page.get_by_role("heading", level=2, name="45 hits, page 2")).to_be_visible()
    page.get_by_role("link", name="Remove Type: document").click()
    expect(page.get_by_role("heading", level=2, name="46 hits")).to_be_visible()

    page.get_by_text("Save this search").click()
    page.get_by_label("Name", exact=True).fill("Drained pumps")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The search is saved.")
    page.get_by_role("link", name="Saved searches").click()
    page.get_by_role("link", name="Drained pumps").click()
    expect(page.get_by_role("heading", level=2, name="46 hits")).to_be_visible()
    page.get_by_role("link", name="Saved searches").click()
    page.get_by_role("button", name="Remove Drained pumps").click()
    expect(page.get_by_role("status")).to_have_text("The saved search is gone.")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to search")


def test_everything_is_reached_from_the_keyboard(place: Place, either_page: Page) -> None:
    page = either_page
    page.goto(f"{place.search}?q=drained&sort=name")
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type(USER)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_visible()
    # Once a page has been loaded, Chromium goes to the fragment again, and takes the focus back there.
    page.wait_for_load_state()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the hits")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator(".hits h3 a").first).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".hits h3 a").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Report 01 on a pump")
    page.go_back()
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_visible()
    page.get_by_label("Format").or_(page.get_by_label("Text")).first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("format=text"))


def test_keys_of_the_script_lead_to_the_box_from_hit_to_hit_and_from_mark_to_mark(place: Place, page: Page) -> None:
    place.sign_in(page, "?q=drained&sort=name")
    page.keyboard.press("Control+k")
    box = page.get_by_label("Search main")
    expect(box).to_be_focused()
    page.keyboard.type("jk")
    expect(box).to_have_value("jk")
    hits = page.locator(".hits h3 a")
    hits.first.focus()
    for key, at in (("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        expect(hits.nth(at)).to_be_focused()
    hits.nth(1).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Report 01 on a pump")
    page.wait_for_load_state()  # by then the script has run
    page.get_by_role("heading", name="Text").focus()
    page.keyboard.press("j")
    expect(page.locator(".sheet mark").first).to_be_focused()


def test_the_script_sends_a_new_order_at_once_and_leaves_out_what_is_empty(place: Place, page: Page) -> None:
    place.sign_in(page, "?q=drained")
    page.get_by_label("Order").select_option("Newest first")
    page.wait_for_url(f"{place.search}?q=drained&sort=newest")
    page.get_by_label("Order").select_option("Best match")
    page.wait_for_url(f"{place.search}?q=drained")
    page.get_by_text("This search as AQL").click()
    expect(page.get_by_role("button", name="Copy")).to_have_count(3)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()").startswith("<search ")


def test_the_box_completes_what_is_typed_and_a_wrong_letter_is_corrected(place: Place, page: Page) -> None:
    place.sign_in(page)
    box = page.get_by_label("Search main")
    box.press_sequentially("pump drai")
    expect(page.locator("datalist option").first).to_have_attribute("value", "pump drained")
    box.fill("pumq drained")
    box.press("Enter")
    page.get_by_role("link", name="pump drained", exact=True).click()
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_visible()
    expect(page.get_by_text("Did you mean")).to_have_count(0)


def test_markup_in_documents_and_questions_runs_nothing(place: Place, page: Page) -> None:
    place.sign_in(page, "?sort=name&q=" + EVIL.replace(" ", "+").replace("=", "%3D"))
    for path in ("?q=drained&sort=name", "?q=script+hacked"):
        page.goto(f"{place.search}{path}")
        assert EVIL in titles(page)
        page.get_by_role("link", name=EVIL).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(EVIL)
        page.wait_for_load_state()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img").count() == 0
    assert page.evaluate("document.cookie") == ""


@pytest.mark.parametrize(("width", "scheme"), looks())
def test_every_page_fits_its_width_can_be_read_and_is_clean_to_axe(place: Place, width: int, scheme: Any) -> None:
    context = place.browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, axe = context.new_page(), Axe()

    def sound() -> None:
        page.wait_for_load_state()
        found = axe.run(page)
        assert found.violations_count == 0, f"{page.url}\n{found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        ratio, text = page.evaluate(LOWEST_CONTRAST)
        assert ratio >= 4.5, (text, ratio, page.url)
        assert page.evaluate("document.styleSheets.length") == 1

    page.goto(f"{place.search}?q=drained")
    sound()
    page.get_by_label("User name").fill(USER)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    sound()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=2, name="45 hits")).to_be_visible()
    sound()
    for summary in page.locator("summary").all():
        summary.click()
    sound()
    long = "x" * 150
    for path in (
        "",
        "/saved",
        "?q=how+was+it+drained+before+winter",
        f"?q={long}&owner={long}&type={long}&format={long}&changed=1999",
        f"?q=drained&type=document&sort=name&page=3&size=1-9999&owner={USER}",
        "?q=drained&page=70",
        "?q=" + "(" * 60 + "x" + ")" * 60,
        "?page=nothing",
        "/objects/0900000000000000",
        "/nothing",
    ):
        page.goto(f"{place.search}{path}")
        sound()
    page.goto(f"{place.search}?q=drained&sort=name")
    for name in ("n" * 200, EVIL, "Report 07 on a pump"):
        page.get_by_role("link", name=name).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        sound()
        page.go_back()
    page.get_by_role("link", name="in Pumps and valves").first.click()
    expect(page.get_by_role("heading", level=2, name="22 hits")).to_be_visible()
    sound()
    context.close()


@pytest.mark.parametrize(
    ("picture", "path", "link"),
    [
        ("search-hits", "?q=was+it+drained+before+winter&type=document&page=2", ""),
        ("search-document", "?q=drained&sort=name", "Report 07 on a pump"),
    ],
)
def test_the_documentation_has_a_picture_of_the_page(place: Place, picture: str, path: str, link: str) -> None:
    """MUNIMENT_WRITE_DOCS makes it anew."""
    file = Path(__file__).parents[2] / "docs" / "pictures" / f"{picture}.png"
    context = place.browser.new_context(viewport={"width": 1000, "height": 640}, color_scheme="light")
    page = context.new_page()
    place.sign_in(page, path)
    if link:
        page.get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(link)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        page.screenshot(path=file)
    page.goto(f"{place.server.base}/docs/search-page")
    shown = page.locator(f"img[src$='{file.name}']")
    assert shown.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1000
    context.close()
