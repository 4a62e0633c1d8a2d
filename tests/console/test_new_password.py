"""A sign-in is a row of steps: who must choose a new password does so before the browser gets its ticket."""

from collections.abc import Callable

import pytest
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy.engine import Connection

from muniment.directory.administration import decisions
from muniment.directory.entries import credentials, editing, entries
from muniment.directory.entries.table import Entry
from muniment.directory.sign_in import form
from muniment.directory.sign_in.passwords import hash_password
from muniment.ground.clock import Instant
from tests.console.conftest import Page, Scene
from tests.office import PASSWORD

TICKET = "__Host-muniment_ticket"
NEW = "another battery, another staple"


@pytest.fixture
def marked(scene: Scene) -> Scene:
    """The scene with a user who must choose a new password."""
    with scene.database.begin() as cx:
        editing.set_flags(cx, scene.user, scene.clock(), must_change_password=True)
    return scene


def asked(scene: Scene) -> Page:
    """Sign in with the right password."""
    return Page(scene.sign_in(scene.user, resource_id=scene.resource.id))


def choose(scene: Scene, page: Page, new: str = NEW, again: str | None = None) -> Page:
    return Page(page.send(scene.browser, m_new_password=new, m_again=new if again is None else again))


def test_the_right_password_leads_to_the_step_and_this_to_the_ticket(marked: Scene) -> None:
    page = asked(marked)
    assert page.status == 200
    assert "Choose a new password to sign in to My API" in page.text
    assert TICKET not in marked.browser.cookies
    answer = choose(marked, page).response
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dirws/login?RFA={marked.resource.id}")
    assert "As alice@People To My API" in marked.open(answer.headers["location"]).text
    with marked.database.read() as cx:
        assert not entries.find_user(cx, marked.names, "alice@People").must_change_password
    again = marked.new_browser()
    assert marked.sign_in(marked.user, NEW, resource_id=marked.resource.id, browser=again).status_code == 303
    assert marked.sign_in(marked.user, PASSWORD, browser=marked.new_browser()).status_code == 200


def test_a_wrong_password_does_not_show_that_a_step_follows(marked: Scene) -> None:
    """failures A1"""
    assert "That did not work" in Page(marked.sign_in(marked.user, "wrong")).text


def test_every_field_has_a_label(marked: Scene) -> None:
    page = asked(marked)
    labels = {label.get("for") for label in page.tree.iter("label")}
    visible = [field for field in page.tree.iter("input") if field.get("type") != "hidden"]
    assert {field.get("id") for field in visible} == labels == {"username", "new_password", "again"}


@pytest.mark.parametrize(
    ("new", "again", "sentence"),
    [
        (NEW, NEW + "!", "The two new passwords differ"),
        (PASSWORD, PASSWORD, "the password that has to be replaced"),
        ("   ", "   ", "not made of blanks alone"),
    ],
)
def test_what_is_no_new_password_is_asked_for_again(marked: Scene, new: str, again: str, sentence: str) -> None:
    page = choose(marked, asked(marked), new, again)
    assert page.status == 200
    assert sentence in page.text
    assert TICKET not in marked.browser.cookies
    assert choose(marked, page).response.status_code == 303


def _replaced(cx: Connection, user: Entry, now: Instant) -> None:
    decisions.set_password(cx, user, hash_password("x" * 9, memory_kib=8192, passes=1), now)
    editing.set_flags(cx, user, now, must_change_password=True)


ENDS: dict[str, Callable[[Connection, Entry, Instant], object]] = {
    "disabled": lambda cx, user, now: decisions.set_disabled(cx, user, True, now),
    "locked": lambda cx, user, now: decisions.set_locked(cx, user, True, now),
    "removed": decisions.remove,
    "another password": _replaced,
    "no step any more": lambda cx, user, now: editing.set_flags(cx, user, now, must_change_password=False),
}


@pytest.mark.parametrize("way", ENDS)
def test_what_ends_a_way_in_ends_the_step(marked: Scene, way: str) -> None:
    """failures A20"""
    page = asked(marked)
    with marked.database.begin() as cx:
        ENDS[way](cx, marked.user, marked.clock())
    assert_over(marked, page)


def assert_over(marked: Scene, page: Page, **fields: str) -> None:
    answer = page.send(marked.browser, m_new_password=NEW, m_again=NEW, typed=fields)
    assert "This sign-in took too long, or was begun elsewhere" in Page(answer).text
    assert TICKET not in marked.browser.cookies
    with marked.database.read() as cx:
        found = credentials.find(cx, marked.directory.options, "alice@People")
    assert found is None or not verifies(found.password_hash, NEW)


def verifies(password_hash: str | None, password: str) -> bool:
    try:
        return PasswordHasher().verify(password_hash or "", password)
    except (VerificationError, InvalidHashError):
        return False


def test_a_step_is_soon_over(marked: Scene) -> None:
    page = asked(marked)
    marked.clock.advance(form.STEP_SECONDS)
    assert_over(marked, page)


def test_a_step_is_of_this_browser(marked: Scene) -> None:
    """failures A19"""
    page = asked(marked)
    marked.browser = marked.new_browser()
    assert_over(marked, page, m_csrf=marked.open().forms()[0].fields["m_csrf"])


@pytest.mark.parametrize("change", [lambda text: "", lambda text: text[:-4] + "AAAA", lambda text: "é" + text])
def test_a_step_cannot_be_forged(marked: Scene, change: Callable[[str], str]) -> None:
    """failures A19"""
    page = asked(marked)
    assert_over(marked, page, m_step=change(page.forms()[0].fields["m_step"]))


def test_a_step_is_taken_once(marked: Scene) -> None:
    page = asked(marked)
    cookies = dict(marked.browser.cookies)
    assert choose(marked, page).response.status_code == 303
    marked.browser = marked.new_browser()
    marked.browser.cookies.update(cookies)
    answer = page.send(marked.browser, m_new_password="yet another one", m_again="yet another one")
    assert "This sign-in took too long" in Page(answer).text
    assert TICKET not in marked.browser.cookies


def test_who_cannot_change_it_is_not_asked(marked: Scene) -> None:
    with marked.database.begin() as cx:
        editing.set_flags(cx, marked.user, marked.clock(), cannot_change_password=True)
    assert marked.sign_in(marked.user, resource_id=marked.resource.id).status_code == 303


def test_the_new_password_ends_every_other_session(marked: Scene) -> None:
    other = marked.new_browser()
    with marked.database.begin() as cx:
        editing.set_flags(cx, marked.user, marked.clock(), must_change_password=False)
    marked.sign_in(marked.user, resource_id=marked.resource.id, browser=other)
    with marked.database.begin() as cx:
        editing.set_flags(cx, marked.user, marked.clock(), must_change_password=True)
    choose(marked, asked(marked))
    assert "Password" in marked.open(f"/dirws/login?RFA={marked.resource.id}", other).text


def test_an_administrator_is_led_to_the_page_that_was_asked_for(scene: Scene) -> None:
    with scene.database.begin() as cx:
        editing.set_flags(cx, scene.admin, scene.clock(), must_change_password=True)
    page = scene.open("/dirws/login?RFA=&page=/console/system-attributes")
    page = Page(page.send(scene.browser, m_username=scene.shown_id(scene.admin), m_password=PASSWORD))
    assert choose(scene, page).response.headers["location"] == "/dirws/console/system-attributes"
