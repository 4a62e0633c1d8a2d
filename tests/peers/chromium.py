"""A real Chromium in which a person signs in to an application that knows them from the directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.test_browser import CHROMIUM, FLAGS, PATIENTLY, key_digest
from tests.scenes import Person


@contextmanager
def chromium(*certificates: Path) -> Iterator[Browser]:
    """Start a browser that trusts these certificates of servers. Where there is none, the test is skipped."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is absent: apt-get install chromium")
    trusted = f"--ignore-certificate-errors-spki-list={','.join(map(key_digest, certificates))}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, trusted], headless=True)
        yield browser
        browser.close()


@contextmanager
def fresh_page(browser: Browser) -> Iterator[Page]:
    """Open a page without cookies."""
    context = browser.new_context()
    context.set_default_timeout(PATIENTLY)
    yield context.new_page()
    context.close()


def sign_in(page: Page, person: Person, application: str, button: str = "Allow") -> None:
    """Sign in on the directory's page, and press a button of the page that then names the application."""
    page.get_by_label("User name").fill(person.id)
    page.get_by_label("Password").fill(person.password)
    page.get_by_role("button", name="Sign in").click()
    answer(page, application, button)


def answer(page: Page, application: str, button: str = "Allow") -> None:
    """Press a button of the directory's page that names the application."""
    expect(page.get_by_role("main")).to_contain_text(application)
    page.get_by_role("button", name=button, exact=True).click()
