"""The pages for those who write clients: their commands run, their programs work, and a person uses them.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_applications.py`` writes into the pages what the commands print now.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.e2e.pages import altered, commands
from tests.e2e.test_browser import CHROMIUM, FLAGS, PATIENTLY
from tests.house.sources import ROOT

AGAIN = "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_applications.py"
SIGN_IN, SERVICE = "docs/sign-people-in.md", "docs/call-as-a-service.md"

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@pytest.mark.parametrize("name", [SIGN_IN, SERVICE])
def test_what_a_page_quotes_is_in_a_program(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    quoted = re.findall(r"(?<=^```python\n).*?(?=^```$)", page, re.MULTILINE | re.DOTALL)
    programs = [file.read_text("utf-8") for file in (ROOT / "examples").glob("*.py")]
    assert quoted
    assert not [each for each in quoted if not any(each in program for program in programs)]


@pytest.mark.campaign
def test_a_service_gets_tokens_and_loses_its_right(tmp_path: Path) -> None:
    assert not altered(SERVICE, tmp_path), AGAIN


class Anna:
    """A person with a browser, and what she does while the page's commands run."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self._folder = page, folder

    def signs_in_and_searches(self, port: int) -> None:
        self.page.goto(f"http://127.0.0.1:{port}/")
        self.page.get_by_role("link", name="Sign in").click()
        expect(self.page.get_by_text("to go on to letters")).to_be_visible()
        if os.environ.get("MUNIMENT_WRITE_DOCS"):
            self.page.screenshot(path=ROOT / "docs" / "pictures" / "sign-in-for-an-application.png")
        self.page.get_by_label("User name").fill("anna@staff")
        self.page.get_by_label("Password").fill((self._folder / "anna.password").read_text().strip())
        self.page.get_by_role("button", name="Sign in").click()
        self.allows(port)
        self.searches()
        expect(self.page.get_by_role("listitem")).to_have_text("letter.txt")

    def allows(self, port: int) -> None:
        self.page.get_by_role("button", name="Allow", exact=True).click()
        expect(self.page).to_have_url(f"http://127.0.0.1:{port}/")
        expect(self.page.get_by_text("You are anna.")).to_be_visible()

    def searches(self) -> None:
        self.page.get_by_label("Search for").fill("charter")
        self.page.get_by_role("button", name="Search").click()

    def is_shut_out(self, port: int) -> None:
        self.searches()
        expect(self.page.get_by_text("Your sign-in has ended.")).to_be_visible()
        self.page.get_by_role("link", name="Sign in").click()
        expect(self.page.get_by_role("heading")).to_have_text("You cannot go on")
        self.page.get_by_role("button", name="Go back").click()
        expect(self.page.get_by_text("Not signed in:")).to_be_visible()

    def signs_in_without_a_password_and_out(self, port: int) -> None:
        self.page.get_by_role("link", name="Sign in").click()
        self.allows(port)
        self.page.get_by_role("button", name="Sign out").click()
        expect(self.page.get_by_role("link", name="Sign in")).to_be_visible()
        self.page.goto(f"http://127.0.0.1:{port}/?q=charter")
        expect(self.page.get_by_text("You are anna.")).not_to_be_visible()


@pytest.mark.campaign
@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is absent: apt-get install chromium")
def test_a_person_signs_in_is_shut_out_and_signs_out(tmp_path: Path) -> None:
    """Chromium obeys the directory's policy of where its forms may lead."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(ignore_https_errors=True, viewport={"width": 720, "height": 600})
        page.set_default_timeout(PATIENTLY)
        anna = Anna(page, tmp_path)
        every = commands((ROOT / SIGN_IN).read_text("utf-8"))

        def number(ending: str) -> int:
            return max(number for number, command in enumerate(every) if command.endswith(ending))

        meanwhile: dict[int, Callable[[int], None]] = {
            number("web_application.py"): anna.signs_in_and_searches,
            number("remove-member 'Documents of main' staff"): anna.is_shut_out,
            number(" add-member 'Documents of main' staff"): anna.signs_in_without_a_password_and_out,
        }
        assert not altered(SIGN_IN, tmp_path, meanwhile), AGAIN
        browser.close()
