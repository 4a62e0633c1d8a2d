"""ours 26: a device without a keyboard shows a code, which its user types here (RFC 8628)."""

import re
from typing import Any

import httpx
import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import entries
from muniment.directory.oauth import device_codes, sessions
from tests.console.conftest import Application, Page, Scene, refused
from tests.office import PASSWORD, SCOPE

GRANT = "urn:ietf:params:oauth:grant-type:device_code"

pytestmark = pytest.mark.campaign_on("postgresql")


class Device:
    """A device of the client ``app``, and the browser in which its user types the code."""

    def __init__(self, app: Application, **changes: str) -> None:
        self.app, self.scene, self.browser = app, app.scene, app.browser
        self.answer = self.browser.post(
            "/dirws/oauth2/device_authorization", data={"client_id": "app", "scope": SCOPE} | changes
        )
        assert self.answer.status_code == 200, self.answer.text
        self.told: dict[str, Any] = self.answer.json()

    def poll(self, **changes: str) -> httpx.Response:
        form = {"grant_type": GRANT, "client_id": "app", "device_code": self.told["device_code"]} | changes
        return self.browser.post("/dirws/oauth2/token", data=form)

    def later(self, seconds: float = 5) -> httpx.Response:
        self.scene.clock.advance(seconds)
        return self.poll()

    def page(self, browser: httpx.Client | None = None, address: str = "/dirws/oauth2/device") -> Page:
        browser = browser or self.browser
        if "__Host-muniment_ticket" not in browser.cookies:
            self.app.sign_in()
        return Page(browser.get(address))

    def type(self, code: str | None = None, browser: httpx.Client | None = None) -> Page:
        browser = browser or self.browser
        return Page(self.page(browser).send(browser, user_code=code or self.told["user_code"]))

    def decide(self, word: str) -> Page:
        return Page(self.type().send(self.browser, button=word))


@pytest.fixture
def device(app: Application) -> Device:
    return Device(app)


def test_a_device_gets_tokens_when_its_user_has_allowed_it(device: Device) -> None:
    told = device.told
    assert told.keys() == {
        *("device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval")
    }
    assert device.answer.headers["cache-control"] == "no-store"
    assert (told["expires_in"], told["interval"]) == (600, 5)
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", told["user_code"])
    assert told["verification_uri"] == "https://muniment.test/dirws/oauth2/device"
    assert told["verification_uri_complete"] == f"{told['verification_uri']}?user_code={told['user_code']}"
    assert refused(device.poll()) == "authorization_pending"
    page = device.page(address=told["verification_uri_complete"])
    assert page.tree.get_element_by_id("user_code").get("value") == told["user_code"]
    page = Page(page.send(device.browser))
    assert "Go on only if it is yours" in page.text
    assert f"{told['user_code']} You are alice@People For app With My API" in page.text
    assert "may go on" in Page(page.send(device.browser, button="allow")).text
    answer = device.later()
    assert answer.status_code == 200
    assert device.app.tokeninfo(answer.json()["access_token"]).json()["user"]["id"] == "alice@People"
    assert "refresh_token" in device.app.refresh(answer.json()["refresh_token"]).json()
    assert refused(device.later()) == "invalid_grant"


def test_who_is_not_signed_in_does_so_first_and_comes_back_to_the_code(device: Device) -> None:
    page = Page(device.browser.get(device.told["verification_uri_complete"]))
    assert "to connect a device" in page.text
    answer = page.send(device.browser, m_username="alice@People", m_password=PASSWORD)
    page = Page(device.browser.get(answer.headers["location"]))
    assert page.tree.get_element_by_id("user_code").get("value") == device.told["user_code"]


def test_a_code_is_typed_as_people_type(device: Device) -> None:
    code = device.told["user_code"]
    assert "Allow access?" in device.type(f"  {code.lower().replace('-', ' ')} ").text


def test_a_device_that_is_refused_learns_so_once(device: Device) -> None:
    assert "no access" in device.decide("deny").text
    assert refused(device.later()) == "access_denied"
    assert refused(device.later()) == "invalid_grant"
    assert "No device waits" in device.type().text


def test_a_device_that_asks_too_often_has_to_wait_longer(device: Device) -> None:
    """RFC 8628 3.5: five seconds more, for this and all further questions."""
    assert refused(device.poll()) == "authorization_pending"
    assert refused(device.later(4)) == "slow_down"
    assert refused(device.later(9)) == "slow_down"
    assert refused(device.later(15)) == "authorization_pending"
    device.decide("allow")
    assert refused(device.later(1)) == "slow_down"
    assert device.later(20).status_code == 200


def test_a_device_waits_ten_minutes(device: Device) -> None:
    assert refused(device.later(599)) == "authorization_pending"
    assert refused(device.later(1)) == "expired_token"
    assert "No device waits" in device.type().text


def test_another_client_cannot_fetch_it(device: Device, web: Application) -> None:
    device.decide("allow")
    web.settings(denied_grants=())
    assert refused(device.poll(client_id="web", client_secret=web.secret or "")) == "invalid_grant"
    assert refused(device.poll(device_code="x" * 54)) == "invalid_grant"
    assert device.later().status_code == 200


def test_a_code_that_one_user_has_typed_is_none_for_another(device: Device, scene: Scene) -> None:
    device.type()
    other = scene.new_browser(address="192.0.2.99")
    scene.sign_in(scene.admin, browser=other)
    assert "No device waits" in device.type(browser=other).text
    assert device.decide("allow").status == 200


def test_guesses_are_paused_and_a_right_code_does_not_end_the_count(device: Device) -> None:
    for number in range(10):
        page = device.type("BBBB-BBBB" if number % 2 else "none")
        assert page.status == 400
        assert "No device waits" in page.text
    for code in ("BBBB-BBBB", device.told["user_code"]):
        assert "too many codes" in device.type(code).text
    device.scene.clock.advance(60 * 15)
    again = Device(device.app)
    assert "Allow access?" in again.type().text


def test_a_right_code_between_wrong_ones_does_not_let_anybody_guess_on(app: Application) -> None:
    for _ in range(10):
        device = Device(app)
        assert "Allow access?" in device.type().text
        device.type("BBBB-BBBB")
    assert "too many codes" in device.type().text


def test_whoever_leaves_devices_waiting_keeps_nobody_out(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_codes, "MOST_OF_PLACE", 3)
    devices = []
    for _ in range(4):
        devices.append(Device(app))
        app.scene.clock.advance(1)
    assert [refused(device.later()) for device in devices] == ["invalid_grant", *["authorization_pending"] * 3]


def test_whoever_calls_from_many_addresses_keeps_nobody_out(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place that has most makes room."""
    monkeypatch.setattr(device_codes, "MOST_OF_PLACE", 3)
    monkeypatch.setattr(device_codes, "MOST_OF_CLIENT", 4)
    own, strangers = app.browser, [app.scene.new_browser(address=f"198.51.100.{number}") for number in (1, 2)]

    def start(browser: httpx.Client) -> Device:
        app.scene.clock.advance(1)
        app.browser = browser
        return Device(app)

    crowd = [start(strangers[0]), start(strangers[0]), start(strangers[1])]
    device = start(own)
    crowd += [start(browser) for browser in strangers * 3]
    waiting = [each for each in crowd if each.poll().json()["error"] == "authorization_pending"]
    assert len(waiting) == 3
    app.browser = own
    assert refused(device.poll()) == "authorization_pending"
    assert "Allow access?" in device.type().text


def test_devices_whose_users_decide_now_are_not_ended_for_others(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_codes, "MOST_OF_CLIENT", 2)
    devices = [Device(app), Device(app)]
    for device in devices:
        assert "Allow access?" in device.type().text
    answer = app.browser.post("/dirws/oauth2/device_authorization", data={"client_id": "app", "scope": SCOPE})
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert [refused(device.poll()) for device in devices] == ["authorization_pending"] * 2


def test_where_no_address_has_a_crowd_a_further_device_ends_none(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever has many addresses would end everybody's."""
    monkeypatch.setattr(device_codes, "MOST_OF_CLIENT", 2)
    devices = []
    for number in (1, 2):
        app.browser = app.scene.new_browser(address=f"198.51.100.{number}")
        devices.append(Device(app))
    stranger = app.scene.new_browser(address="198.51.100.3")
    answer = stranger.post("/dirws/oauth2/device_authorization", data={"client_id": "app", "scope": SCOPE})
    assert answer.status_code == 503
    assert [refused(device.poll()) for device in devices] == ["authorization_pending"] * 2


@pytest.mark.parametrize("how", ["no mark", "another site"])
def test_a_forged_word_allows_nothing(device: Device, how: str) -> None:
    page = device.type()
    headers = {"Sec-Fetch-Site": "cross-site"} if how == "another site" else None
    answer = page.send(
        device.browser, button="allow", headers=headers, typed={"m_csrf": ""} if how == "no mark" else None
    )
    assert answer.status_code == 403
    assert refused(device.later()) == "authorization_pending"


def test_the_pages_cannot_be_framed_and_send_their_forms_here_alone(device: Device) -> None:
    for page in (device.page(), device.type()):
        policy = page.response.headers["content-security-policy"]
        assert "form-action 'self';" in policy
        assert "frame-ancestors 'none'" in policy


def test_who_has_no_access_cannot_allow_it(device: Device, scene: Scene) -> None:
    browser = scene.new_browser(address="192.0.2.98")
    scene.sign_in(scene.outsider, browser=browser)
    page = device.type(browser=browser)
    answer = page.send(browser, button="allow")
    assert (answer.status_code, "no access" in Page(answer).text) == (400, True)
    assert refused(device.later()) == "authorization_pending"


@pytest.mark.parametrize("ending", ["sign-out", "client", "every session"])
def test_what_ends_the_sign_in_or_the_client_ends_its_devices(device: Device, ending: str) -> None:
    device.decide("allow")
    with device.scene.database.begin() as cx:
        now = device.scene.clock()
        if ending == "sign-out":
            decisions.sign_out(cx, device.scene.user, now)
        elif ending == "client":
            decisions.sign_out(cx, entries.find_client(cx, "app"), now)
        else:
            sessions.end_every(cx, now)
    assert refused(device.later()) == "invalid_grant"


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"scope": "resource:Nothing"}, "invalid_scope"), ({"client_id": "nobody"}, "invalid_client")],
)
def test_a_device_is_refused_as_at_the_token_endpoint(app: Application, changes: dict[str, str], error: str) -> None:
    form = {"client_id": "app", "scope": SCOPE} | changes
    assert refused(app.browser.post("/dirws/oauth2/device_authorization", data=form)) == error
