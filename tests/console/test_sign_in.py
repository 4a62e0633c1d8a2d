"""The sign-in page (given 4.1, 5.2), without a browser."""

import base64
import hashlib
import re
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace

import httpx
import pytest
from msgspec import structs
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from muniment.directory.api import routes, spelling
from muniment.directory.entries import credentials, editing, entries, memberships, resources, system
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.line import Asker
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded
from muniment.web.options import WebOptions
from muniment.web.requests.transport import Transport
from tests.console.conftest import OPTIONS, Page, Scene
from tests.counting import cost
from tests.office import HASH, PASSWORD
from tests.scenes import InProcess

COOKIE = "__Host-muniment_ticket"


def _ticket(browser: httpx.Client) -> str:
    return browser.cookies.get(COOKIE) or ""


def test_the_page_asks_for_the_administration_unless_told_otherwise(scene: Scene) -> None:
    page = scene.open()
    assert page.status == 200
    assert "to Directory Administration" in page.text


@pytest.mark.parametrize("more", ["", ":https://evil.example/", ":"])
def test_rfa_names_the_resource_and_its_return_address_is_ignored(scene: Scene, more: str) -> None:
    """failures A17: nobody is led to an address that a request names."""
    page = scene.open(f"/dirws/login?RFA={scene.resource.id}{more}")
    assert "to My API" in page.text
    assert "evil" not in page.response.text
    answer = page.send(scene.browser, m_username=scene.shown_id(scene.user), m_password=PASSWORD)
    assert answer.headers["location"] == f"/dirws/login?RFA={scene.resource.id}"


@pytest.mark.parametrize(
    "query", ["RFA=nonsense", "RFA=00000000-0000-4000-8000-000000000000", "RFA=a&RFA=b", "RFA=%ff"]
)
def test_a_resource_that_does_not_exist_is_a_page_with_a_sentence(scene: Scene, query: str) -> None:
    page = scene.open(f"/dirws/login?{query}")
    assert page.status == 400
    assert page.response.headers["content-type"].startswith("text/html")


def test_every_field_has_a_label_and_the_page_has_landmarks(scene: Scene) -> None:
    page = scene.open()
    labels = {label.get("for") for label in page.tree.iter("label")}
    visible = [field for field in page.tree.iter("input") if field.get("type") != "hidden"]
    assert {field.get("id") for field in visible} == labels == {"username", "password"}
    assert {field.get("name") for field in visible} == {"m_username", "m_password"}
    assert page.tree.get("lang") == "en"
    assert len(page.tree.findall(".//main")) == len(page.tree.findall(".//h1")) == 1


def test_a_user_in_the_access_role_signs_in_and_sees_who_and_for_what(scene: Scene) -> None:
    answer = scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert answer.status_code == 303
    page = scene.open(answer.headers["location"])
    assert "As alice@People To My API" in page.text


def test_the_cookie_is_for_this_server_and_out_of_reach_of_scripts(scene: Scene) -> None:
    answer = scene.sign_in(scene.user, resource_id=scene.resource.id)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(f"{COOKIE}="))
    attributes = {
        part.strip().partition("=")[0].lower(): part.strip().partition("=")[2] for part in cookie.split(";")[1:]
    }
    assert {"secure", "httponly"} <= attributes.keys()
    assert attributes["samesite"].lower() == "lax"
    assert attributes["path"] == "/"
    assert attributes["max-age"] == str(OPTIONS.ticket_seconds)
    assert "domain" not in attributes


def test_the_ticket_is_stored_as_a_digest_only(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert len(_ticket(scene.browser)) >= 43
    stored = scene.everything_stored()
    assert _ticket(scene.browser) not in stored
    assert PASSWORD not in stored


def test_an_administrator_is_led_to_the_console(scene: Scene) -> None:
    answer = scene.sign_in(scene.admin)
    answer = scene.browser.get(answer.headers["location"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/dirws/console")
    assert "Overview" in scene.open("/dirws/console").text


# Signed in to the administration, and no administrator


@pytest.mark.parametrize("who", ["in another role", "in no role"])
def test_who_is_no_administrator_reads_so_and_who_they_are_and_can_sign_out(scene: Scene, who: str) -> None:
    user = scene.user if who == "in another role" else scene.outsider
    answer = scene.sign_in(user)
    assert answer.status_code == 303
    page = scene.open(answer.headers["location"])
    assert page.status == 200
    assert f"As {scene.shown_id(user)}" in page.text
    assert "there is nothing for you here" in page.text
    assert "That did not work" not in page.text
    assert scene.open("/dirws/login").text == page.text
    ticket = _ticket(scene.browser)
    signed_out = page.send(scene.browser)
    assert (signed_out.status_code, _ticket(scene.browser)) == (303, "")
    assert "Password" in scene.open(signed_out.headers["location"]).text
    thief = scene.new_browser()
    thief.cookies.set(COOKIE, ticket)
    assert "Password" in scene.open("/dirws/login", thief).text, "the session is over, and not the cookie alone"


def test_who_is_no_administrator_is_led_from_every_page_of_the_console_to_the_same_sentence(scene: Scene) -> None:
    page = scene.open("/dirws/login?RFA=&page=/console/system-attributes")
    answer = page.send(scene.browser, m_username=scene.shown_id(scene.user), m_password=PASSWORD)
    for _ in range(3):
        assert answer.headers["location"].startswith("/dirws/login?RFA=")
        assert "there is nothing for you here" in scene.open(answer.headers["location"]).text
        answer = scene.browser.get("/dirws/console/system-attributes")
        assert answer.status_code == 303


def test_the_sign_in_of_who_is_no_administrator_opens_no_other_resource(scene: Scene) -> None:
    scene.sign_in(scene.user)
    page = scene.open(f"/dirws/login?RFA={scene.resource.id}")
    assert "alice@People" not in page.text
    assert "to My API" in page.text


def test_an_administrator_who_is_one_no_more_reads_so_and_comes_back_with_the_role(scene: Scene) -> None:
    scene.sign_in(scene.admin)
    with scene.database.begin() as cx:
        memberships.remove_members(cx, entries.administrators(cx), [scene.admin])
    led = scene.browser.get("/dirws/console")
    assert "there is nothing for you here" in scene.open(led.headers["location"]).text
    with scene.database.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), scene.admin)
    assert scene.browser.get(led.headers["location"]).headers["location"] == "/dirws/console"


@pytest.mark.parametrize("decision", ["disabled", "locked", "deleted"])
def test_who_is_no_administrator_and_may_not_act_any_more_is_not_named(scene: Scene, decision: str) -> None:
    scene.sign_in(scene.user)
    scene.alter(decision)
    page = scene.open()
    assert "alice@People" not in page.text
    assert "Password" in page.text


def test_at_the_administration_every_sign_in_but_a_right_one_is_the_same_page(scene: Scene) -> None:
    """failures A1: nobody learns by a wrong sign-in whether a name exists; a client is no person."""
    reasons = _refused_reasons(scene)
    del reasons["not in the role"]
    with scene.database.begin() as cx:
        editing.add_client(cx, "confidential", scene.clock(), password_hash=HASH)
    reasons["client"] = ("confidential@OAuthClients", PASSWORD)
    reasons["wrong password without a role"] = ("bob@People", "wrong")
    pages = {}
    scene.sign_in(*reasons["client"])  # the first sign-in of a process reads its keys
    for reason, (username, password) in reasons.items():
        with cost(scene.database) as spent:
            answer = scene.sign_in(username, password)
        text = answer.text.replace(f'value="{username}"', 'value=""').replace(" autofocus", "")
        about = {
            name: value for name, value in answer.headers.items() if name not in {"x-request-id", "content-length"}
        }
        pages[reason] = (answer.status_code, text, about, len(spent.statements))
        assert _ticket(scene.browser) == "", reason
    assert len({repr(page) for page in pages.values()}) == 1, pages
    assert "That did not work" in pages["client"][1]


def test_a_ticket_for_one_resource_is_none_for_another(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert "to Directory Administration" in scene.open("/dirws/login?RFA=").text
    assert scene.open(f"/dirws/login?RFA={scene.administration.id}").forms()[0].inputs["m_password"] is not None
    assert "As alice@People" in scene.open("/dirws/login").text


# Refused


def _refused_reasons(scene: Scene) -> dict[str, tuple[str, str]]:
    with scene.database.begin() as cx:
        partition = entries.find_partition(cx, scene.names, "People")
        for name in ("disabled", "locked", "paused", "without-password"):
            stored = None if name == "without-password" else HASH
            user = editing.add_user(cx, partition, name, scene.clock(), password_hash=stored)
            resources.add_to_role(cx, scene.resource, user)
            if name == "disabled":
                editing.set_disabled(cx, user, True, scene.clock())
            if name == "locked":
                editing.set_locked(cx, user, True, scene.clock())
            if name == "paused":
                far = scene.clock() + OPTIONS.lockout_seconds * SECOND
                credentials.note_sign_in(cx, user.id, f'{{"":[10,{far}]}}', "{}", scene.clock())
    return {
        "wrong password": ("alice@People", "wrong"),
        "no password": ("alice@People", ""),
        "unknown user": ("nobody@People", PASSWORD),
        "unknown partition": ("ann@nowhere", PASSWORD),
        "no partition": ("ann", PASSWORD),
        "nothing": ("", ""),
        "not in the role": ("bob@People", PASSWORD),
        "disabled": ("disabled@People", PASSWORD),
        "locked": ("locked@People", PASSWORD),
        "paused": ("paused@People", PASSWORD),
        "without password": ("without-password@People", PASSWORD),
    }


def test_every_reason_to_refuse_is_the_same_page_after_one_check_of_a_password(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """failures A1"""
    checks = Counter[str]()
    check = scene.directory.gate.check

    def counted(stored: str | None, password: str, asker: Asker, now: Instant) -> Future[bool]:
        checks["checks"] += 1
        return check(stored, password, asker, now)

    monkeypatch.setattr(scene.directory.gate, "check", counted)
    seen = {}
    for reason, (username, password) in _refused_reasons(scene).items():
        checks.clear()
        answer = scene.sign_in(username, password, resource_id=scene.resource.id)
        text = answer.text.replace(f'value="{username}"', 'value=""').replace(" autofocus", "")
        headers = {
            name: value for name, value in answer.headers.items() if name not in {"x-request-id", "content-length"}
        }
        seen[reason] = (answer.status_code, text, headers, checks["checks"])
        assert _ticket(scene.browser) == ""
    assert len({repr(answer) for answer in seen.values()}) == 1, seen
    status, text, _, counted_checks = next(iter(seen.values()))
    assert (status, counted_checks) == (200, 1)
    assert "That did not work" in text


def test_what_was_typed_is_shown_as_text_never_as_markup(scene: Scene) -> None:
    """failures B12."""
    answer = scene.sign_in('"><script>alert(1)</script>@People', "wrong")
    assert "<script" not in answer.text
    assert "&lt;script" in answer.text
    assert "wrong" not in answer.text


def test_too_many_wrong_passwords_pause_the_form_and_the_grant_alike(scene: Scene) -> None:
    """failures A4"""
    for _ in range(OPTIONS.lockout_failures):
        scene.sign_in(scene.user, "wrong", resource_id=scene.resource.id)
    assert "That did not work" in scene.sign_in(scene.user, resource_id=scene.resource.id).text
    asked = {
        "grant_type": "password",
        "client_id": scene.client_id,
        "username": "alice@People",
        "password": PASSWORD,
        "scope": "resource:My API",
    }
    assert scene.browser.post("/dirws/login", data=asked).status_code == 400
    scene.clock.advance(OPTIONS.lockout_seconds + 1)
    assert scene.browser.post("/dirws/login", data=asked).status_code == 200
    assert scene.sign_in(scene.user, resource_id=scene.resource.id).status_code == 303


def test_too_many_at_once_is_a_page_that_says_when_to_try_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_stored: str | None, _password: str, _asker: Asker, _now: Instant) -> Future[bool]:
        raise Overloaded("Too many people are signing in.", 3)

    monkeypatch.setattr(scene.directory.gate, "check", full)
    answer = scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert "Too many people" in Page(answer).text


# Forged


@pytest.mark.parametrize(
    "how", ["no cookie", "another form", "no mark", "another site", "sibling site", "cookie alone"]
)
def test_a_form_that_is_not_ours_is_refused(scene: Scene, how: str) -> None:
    """failures A20"""
    page = scene.open(f"/dirws/login?RFA={scene.resource.id}")
    typed = {"m_username": "alice@People", "m_password": PASSWORD}
    headers: dict[str, str] = {}
    browser = scene.browser
    if how == "no cookie":
        browser = scene.new_browser()
    elif how == "another form":
        typed["m_csrf"] = str(dict(scene.open(browser=scene.new_browser()).forms()[0].form_values())["m_csrf"])
    elif how == "no mark":
        typed["m_csrf"] = ""
    elif how == "cookie alone":
        typed["m_csrf"] = browser.cookies["__Host-muniment_ticket_form"]
    else:
        headers["Sec-Fetch-Site"] = "cross-site" if how == "another site" else "same-site"
    answer = page.send(browser, headers=headers, typed=typed)
    assert answer.status_code == 403
    assert "Open the page again" in Page(answer).text
    assert _ticket(browser) == ""


def test_a_form_from_before_the_sign_in_is_worth_nothing_after_it(scene: Scene) -> None:
    before = scene.open(f"/dirws/login?RFA={scene.resource.id}")
    fields = dict(before.forms()[0].form_values())
    assert before.send(scene.browser, m_username="alice@People", m_password=PASSWORD).status_code == 303
    assert "__Host-muniment_ticket_form" not in scene.browser.cookies
    answer = scene.browser.post("/dirws/login", data={"sign_out": "1", "m_csrf": str(fields["m_csrf"])})
    assert answer.status_code == 403
    assert "As alice@People" in scene.open().text


def test_signing_in_makes_a_new_session_and_ends_the_one_before(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    first = _ticket(scene.browser)
    with scene.database.begin() as cx:
        resources.add_to_role(cx, resources.administration(cx), scene.user)
    scene.sign_in(scene.user, resource_id=scene.administration.id)
    assert _ticket(scene.browser) not in {"", first}
    thief = scene.new_browser()
    thief.cookies.set(COOKIE, first)
    assert "As alice@People" not in scene.open(f"/dirws/login?RFA={scene.resource.id}", thief).text


def test_a_planted_session_is_not_taken_over(scene: Scene) -> None:
    """failures A19"""
    scene.browser.cookies.set(COOKIE, "planted", domain="muniment.test", path="/dirws")
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    other = scene.new_browser()
    other.cookies.set(COOKIE, "planted")
    assert "As alice@People" not in scene.open(browser=other).text


# Ended


@pytest.mark.parametrize("decision", ["disabled", "locked", "deleted", "out of the role"])
def test_a_session_ends_at_once_with_the_users_access(scene: Scene, decision: str) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    assert "As alice@People" in scene.open().text
    scene.alter(decision)
    page = scene.open(f"/dirws/login?RFA={scene.resource.id}")
    assert "alice@People" not in page.text
    assert "Sign in" in page.text


def test_a_session_ends_when_its_time_is_over(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    scene.clock.advance(OPTIONS.ticket_seconds - 1)
    assert "As alice@People" in scene.open().text
    scene.clock.advance(1)
    assert "alice@People" not in scene.open().text
    with scene.database.begin() as cx:
        assert tickets.purge(cx, scene.clock() + 1, 10) == 1
        assert tickets.purge(cx, scene.clock() + 1, 10) == 0


def test_signing_out_ends_the_session_and_not_the_cookie_alone(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    ticket = _ticket(scene.browser)
    answer = scene.open().send(scene.browser)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dirws/login?RFA={scene.resource.id}")
    assert _ticket(scene.browser) == ""
    thief = scene.new_browser()
    thief.cookies.set(COOKIE, ticket)
    assert "As alice@People" not in scene.open(browser=thief).text


def test_signing_out_of_a_session_that_is_over_leads_to_the_form(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    page = scene.open()
    scene.alter("disabled")
    assert page.send(scene.browser).status_code == 303


# One address, two surfaces


def test_a_post_without_the_forms_own_field_is_oauth(scene: Scene) -> None:
    answer = scene.browser.post(
        "/dirws/login", data={"m_username": "alice@People", "m_password": PASSWORD}, headers={"Accept": "*/*"}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_pages_are_not_stored_not_framed_and_run_no_scripts(scene: Scene) -> None:
    for address in ("/dirws/login", "/dirws/login?RFA=nonsense"):
        headers = scene.open(address).response.headers
        assert headers["cache-control"] == "no-store"
        assert re.search("default-src 'none'.*frame-ancestors 'none'", headers["content-security-policy"])
        assert "script" not in headers["content-security-policy"]


def test_nobody_signs_in_to_a_resource_before_it_is_activated(scene: Scene) -> None:
    with scene.database.begin() as cx:
        made = resources.add(cx, scene.names, "Not Yet", scene.clock())
        resources.add_to_role(cx, made, scene.user)
    page = scene.open(f"/dirws/login?RFA={made.id}")
    assert page.status == 400
    assert "not been activated" in page.text
    asked = scene.open().send(scene.browser, m_username="alice@People", m_password=PASSWORD, RFA=made.id)
    assert asked.status_code == 400
    with scene.database.begin() as cx:
        resources.activate(cx, made.id, scene.clock())
    assert scene.sign_in(scene.user, resource_id=made.id).status_code == 303


def test_over_plain_http_the_refusal_carries_its_style(scene: Scene) -> None:
    answer = scene.new_browser("http://muniment.test").get("/dirws/login")
    style = answer.text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert "--accent" in style
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]
    assert "/static/" not in answer.text, "which would not be answered"


def test_over_plain_http_there_is_no_form_until_it_is_permitted(scene: Scene) -> None:
    browser = scene.new_browser("http://muniment.test")
    refused = scene.open(browser=browser)
    assert refused.status == 403
    assert "TLS is required" in refused.text
    links = {link.text: link.get("href") for link in refused.tree.iter("a")}
    assert links["Go to the sign-in page"] == "https://muniment.test/dirws/login"
    with scene.database.begin() as cx:
        system.put(cx, system.ENFORCE_SSL, "false", scene.clock())
    assert scene.sign_in(scene.user, resource_id=scene.resource.id, browser=browser).status_code == 303
    assert "As alice@People" in scene.open(browser=browser).text


def test_links_keep_to_the_path_of_the_base_address(scene: Scene) -> None:
    inner = Starlette(routes=routes.routes(scene.directory))

    async def below(scope: Scope, receive: Receive, send: Send) -> None:
        await inner({**scope, "muniment.base": "https://muniment.test/inner"}, receive, send)

    page = scene.open_served_by(below)
    assert page.forms()[0].action == "/inner/dirws/login"
    named = structs.replace(OPTIONS, names=structs.replace(OPTIONS.names, ticket_cookie="Own"))
    inner = Starlette(routes=routes.routes(replace(scene.directory, options=named)))
    assert "Path=/inner/dirws;" in scene.open_served_by(below).response.headers["set-cookie"]


def test_without_a_prefix_the_fields_have_their_plain_names(scene: Scene) -> None:
    plain = replace(scene.directory, options=DirectoryOptions())
    page = scene.open_served_by(Starlette(routes=routes.routes(plain)))
    assert set(page.forms()[0].inputs.keys()) == {"csrf", "username", "password", "RFA"}


# Pauses by place, the cookie of a browser, and the way back


def test_a_stranger_cannot_keep_the_administrator_out(scene: Scene) -> None:
    """failures A5: from the browser of an earlier sign-in, wherever it is, and from the address of one."""
    assert scene.sign_in(scene.admin).status_code == 303
    cookie = scene.browser.cookies[f"{COOKIE}_browser"]
    stranger = scene.new_browser(address="203.0.113.9")
    for _ in range(OPTIONS.lockout_failures):
        assert scene.sign_in(scene.admin, "wrong", browser=stranger).status_code == 200
    assert scene.sign_in(scene.admin, browser=stranger).status_code == 200, "paused"
    at_home = scene.new_browser()
    assert scene.sign_in(scene.admin, browser=at_home).status_code == 303
    travelling = scene.new_browser(address="198.51.100.7")
    assert scene.sign_in(scene.admin, browser=travelling).status_code == 200, "a browser that nobody knows"
    travelling.cookies.set(f"{COOKIE}_browser", cookie, domain="muniment.test")
    assert scene.sign_in(scene.admin, browser=travelling).status_code == 303
    assert cookie not in scene.everything_stored()


def test_a_paused_account_is_refused_like_any_other_also_at_a_known_place(scene: Scene) -> None:
    """failures A1"""
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    asked = {"resource_id": scene.resource.id, "browser": scene.new_browser()}
    texts = {scene.sign_in(scene.user, "wrong", **asked).text for _ in range(OPTIONS.lockout_failures + 1)}  # type: ignore[arg-type]
    texts.add(scene.sign_in(scene.user, **asked).text)  # type: ignore[arg-type]
    texts.add(scene.sign_in("nobody@People", **asked).text.replace("nobody@People", "alice@People"))  # type: ignore[arg-type]
    assert len({re.sub(r'value="[^"]{40,}"', "", text) for text in texts}) == 1


def test_the_cookie_of_a_browser_proves_no_sign_in(scene: Scene) -> None:
    answer = scene.sign_in(scene.admin)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(f"{COOKIE}_browser="))
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
    other = scene.new_browser()
    other.cookies.set(f"{COOKIE}_browser", scene.browser.cookies[f"{COOKIE}_browser"], domain="muniment.test")
    assert other.get("/dirws/console").status_code == 303
    assert "Sign in" in scene.open("/dirws/login", other).text


def test_a_browser_keeps_its_cookie_for_all_who_sign_in_with_it(scene: Scene) -> None:
    scene.sign_in(scene.user, resource_id=scene.resource.id)
    first = scene.browser.cookies[f"{COOKIE}_browser"]
    scene.sign_in(scene.admin)
    assert scene.browser.cookies[f"{COOKIE}_browser"] == first
    scene.browser.cookies.set(f"{COOKIE}_browser", "x" * 500, domain="muniment.test", path="/")
    stranger = scene.new_browser()
    stranger.cookies.set(f"{COOKIE}_browser", "not ours", domain="muniment.test", path="/")
    scene.sign_in(scene.admin, browser=stranger)
    assert "not ours" not in [cookie.value for cookie in stranger.cookies.jar if cookie.domain != "muniment.test"]


@pytest.mark.parametrize("given", ["", "OTDSTicket", "__Host-Own"])
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_cookies_of_our_own_name_are_of_this_host_alone_over_tls_and_a_given_name_is_used_exactly(
    scene: Scene, given: str, scheme: str
) -> None:
    with scene.database.begin() as cx:
        system.put(cx, system.ENFORCE_SSL, "false", scene.clock())
    options = structs.replace(OPTIONS, names=structs.replace(OPTIONS.names, ticket_cookie=given))
    app = Transport(
        Starlette(routes=routes.routes(replace(scene.directory, options=options))),
        WebOptions(base_address=f"{scheme}://muniment.test"),
        sensitive_prefixes=[],
        requires_tls=scene._enforced,
        shape=spelling.shape(options),
    )
    name = given or ("__Host-muniment_ticket" if scheme == "https" else "muniment_ticket")
    wire = InProcess(app, scene.loop)
    with httpx.Client(transport=wire, base_url=f"{scheme}://muniment.test") as browser:
        answer = scene.sign_in(scene.admin, browser=browser)
        assert answer.status_code == 303
        set_now = {value.partition("=")[0]: value.split("; ") for value in answer.headers.get_list("set-cookie")}
        assert set_now.keys() == {name, f"{name}_form", f"{name}_browser"}
        for set_name, cookie in set_now.items():
            assert ("Secure" in cookie) is (scheme == "https")
            assert ("Path=/" if name.startswith("__Host-") or set_name == name else "Path=/dirws") in cookie
            assert not any(part.lower().startswith("domain") for part in cookie)


def test_without_a_ticket_a_page_of_the_console_leads_to_the_sign_in_and_back(scene: Scene) -> None:
    answer = scene.browser.get("/dirws/console/system-attributes?done=add")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/dirws/login?RFA=&page=/console/system-attributes",
    )
    page = scene.open(answer.headers["location"])
    refused = Page(page.send(scene.browser, m_username=scene.shown_id(scene.admin), m_password="wrong"))
    answer = refused.send(scene.browser, m_username=scene.shown_id(scene.admin), m_password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/dirws/console/system-attributes")
    assert "System attributes" in scene.open(answer.headers["location"]).text
    again = scene.browser.get("/dirws/login?RFA=&page=/console/system-attributes")
    assert again.headers["location"] == "/dirws/console/system-attributes"


@pytest.mark.parametrize(
    "page",
    [
        "https://evil.example/",
        "//evil.example",
        "/console//evil.example",
        "/console/../../rest",
        "/console/..",
        "/consoleevil",
        "/console/%2e%2e",
        "/console/a\\b",
        "/console/a\r\nSet-Cookie: x=y",
        "/console\n",
        "console",
        "/login",
        "/CONSOLE",
        "@evil.example",
    ],
)
def test_the_sign_in_leads_to_no_address_but_a_page_of_the_console(scene: Scene, page: str) -> None:
    """failures A17: what a request names is a path below the console, or nothing."""
    shown = Page(scene.browser.get("/dirws/login", params={"RFA": "", "page": page}))
    assert "page" not in shown.forms()[0].fields
    answer = shown.send(
        scene.browser, typed={"page": page}, m_username=scene.shown_id(scene.admin), m_password=PASSWORD
    )
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dirws/login?RFA={scene.administration.id}")
