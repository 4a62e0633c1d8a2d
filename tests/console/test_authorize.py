"""ours 26: an application sends a browser, and gets a code (RFC 6749 4.1, OpenID Connect Core 3.1, RFC 9207)."""

import itertools
import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import editing, entries, resources
from tests.console.conftest import BACK, CHALLENGE, ISSUER, NATIVE, Application, Page, Scene, back, refused
from tests.office import PASSWORD, SCOPE

pytestmark = pytest.mark.campaign_on("postgresql")

# The flow


@pytest.mark.parametrize("path", ["/dirws/oauth2/auth", "/dirws/oauth2/authorize", "/dirws/login"])
def test_a_user_signs_in_is_asked_and_the_application_gets_tokens(app: Application, path: str) -> None:
    page = Page(app.ask(path))
    assert page.status == 200
    assert "to go on to app" in page.text
    assert "led back to https://app.example" in page.text
    answer = app.type_password(page)
    assert answer.status_code == 303
    page = Page(app.browser.get(answer.headers["location"]))
    assert "app asks to act for you" in page.text
    assert "You are alice@People With My API" in page.text
    told = back(page.send(app.browser, button="allow"))
    assert told.keys() == {"code", "state", "iss"}
    assert (told["state"], told["iss"]) == ("a state & more", ISSUER)
    answer = app.redeem(told["code"])
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    reply = answer.json()
    assert (reply["token_type"], reply["expires_in"]) == ("Bearer", 3600)
    assert app.tokeninfo(reply["access_token"]).json()["user"]["id"] == "alice@People"


def test_who_is_signed_in_is_asked_at_once(app: Application) -> None:
    app.sign_in()
    assert app.tokens()["access_token"]


def test_who_signed_in_to_a_resource_need_not_sign_in_again(app: Application) -> None:
    app.scene.sign_in(app.scene.user, resource_id=app.scene.resource.id)
    assert "Allow access?" in Page(app.ask()).text


def test_who_does_not_allow_it_is_led_back_with_that_word(app: Application) -> None:
    told = back(app.consent().send(app.browser, button="deny"))
    assert (told["error"], told["state"], told["iss"]) == ("access_denied", "a state & more", ISSUER)


def test_another_account_signs_in_and_the_first_sign_in_ends(app: Application) -> None:
    app.sign_in(app.scene.admin)
    page = Page(app.ask())
    assert "You are admin@directory.admin" in page.text
    former = app.browser.cookies["__Host-muniment_ticket"]
    answer = page.send(app.browser, button="other")
    page = Page(app.browser.get(answer.headers["location"]))
    assert "Sign in" in page.text
    page = Page(app.browser.get(app.type_password(page).headers["location"]))
    assert "You are alice@People" in page.text
    app.browser.cookies.set("__Host-muniment_ticket", former, domain="muniment.test")
    assert "Sign in" in Page(app.ask()).text


def test_who_has_no_access_learns_so_here_and_may_go_back_or_be_somebody_else(app: Application) -> None:
    """A left-over sign-in of somebody else does not send the browser in a circle."""
    page = Page(app.ask())
    page = Page(app.browser.get(app.type_password(page, app.scene.outsider).headers["location"]))
    assert "You cannot go on" in page.text
    assert [button.get("value") for button in page.tree.iter("button")] == ["deny", "other"]
    assert back(page.send(app.browser, decision="allow"))["error"] == "access_denied"
    assert back(page.send(app.browser, button="deny"))["error"] == "access_denied"


def test_a_wrong_password_shows_the_form_of_the_same_request(app: Application) -> None:
    page = Page(app.ask())
    page = Page(page.send(app.browser, m_username="alice@People", m_password="wrong"))
    assert "That did not work" in page.text
    assert "to go on to app" in page.text
    assert app.type_password(page).headers["location"].startswith("/dirws/oauth2/auth?")


def test_who_must_choose_a_new_password_does_so_on_the_way(app: Application) -> None:
    with app.scene.database.begin() as cx:
        editing.set_flags(cx, app.scene.user, app.scene.clock(), must_change_password=True)
    page = Page(app.type_password(Page(app.ask())))
    assert "Choose a new password" in page.text
    answer = page.send(app.browser, m_new_password="another word", m_again="another word")
    assert "Allow access?" in Page(app.browser.get(answer.headers["location"])).text


def test_a_form_that_another_site_sends_is_led_on_with_the_cookies(app: Application) -> None:
    """OpenID Connect Core 3.1.2.1: POST, too. Our cookies do not come with it (SameSite)."""
    answer = app.browser.post("/dirws/oauth2/auth", data=app.asked(), headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 303
    assert dict(parse_qsl(urlsplit(answer.headers["location"]).query)) == app.asked()
    app.sign_in()
    assert "Allow access?" in Page(app.browser.get(answer.headers["location"])).text


def test_the_answer_can_be_posted_and_has_a_button(app: Application) -> None:
    """OAuth 2.0 Form Post Response Mode."""
    page = Page(app.allowed(response_mode="form_post"))
    assert page.status == 200
    (form,) = page.forms()
    assert (form.action, form.method) == (BACK, "POST")
    fields = dict(form.form_values())
    assert fields.keys() == {"code", "state", "iss"}
    assert fields["state"] == "a state & more"
    assert len(page.tree.findall(".//button")) == len(page.tree.findall(".//script")) == 1
    assert "form-action https://app.example;" in page.response.headers["content-security-policy"]
    assert page.response.headers["cache-control"] == "no-store"
    assert refused(app.redeem(fields["code"], code_verifier=None)) == "invalid_grant"
    assert app.redeem(fields["code"]).status_code == 200


# Who asks, and where the answer goes


WRONG: list[dict[str, str | None]] = [
    {"client_id": None},
    {"client_id": "nobody"},
    {"client_id": "x" * 5000},
    {"redirect_uri": None},
    {"redirect_uri": "https://evil.example/back"},
    {"redirect_uri": f"{BACK}/"},
    {"redirect_uri": f"{BACK}#fragment"},
    {"redirect_uri": "https://app.example:8443/back"},
    {"redirect_uri": "https://user@app.example/back"},
    {"redirect_uri": "https://app.example\\back"},
    {"redirect_uri": "https://app.example/%62ack"},
    {"state": "x" * 5000},
]


@pytest.mark.parametrize("signed_in", [False, True])
def test_if_the_client_or_the_address_is_wrong_nobody_is_led_anywhere(app: Application, signed_in: bool) -> None:
    """failures A17, RFC 9700 4.11"""
    if signed_in:
        app.sign_in()
    more: list[dict[str, str | None]] = [{}, {"prompt": "none"}, {"response_type": "token"}]
    for changes, further in itertools.product(WRONG, more):
        answer = app.ask(**changes | further)
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert answer.headers["content-type"].startswith("text/html")
        assert not [link for link in Page(answer).tree.iter("a", "form") if "evil" in str(link.attrib)]


def test_a_disabled_client_sends_nobody(app: Application) -> None:
    with app.scene.database.begin() as cx:
        decisions.set_disabled(cx, entries.find_client(cx, "app"), True, app.scene.clock())
    assert app.ask().status_code == 400


def test_a_request_that_repeats_a_parameter_is_not_read(app: Application) -> None:
    answer = app.browser.get(f"/dirws/oauth2/auth?{urlencode(app.asked())}&redirect_uri={quote(BACK)}")
    assert (answer.status_code, "location" in answer.headers) == (400, False)


def test_a_native_application_takes_any_port_and_a_web_application_does_not(app: Application, web: Application) -> None:
    """RFC 8252 7.3"""
    told = app.allowed(redirect_uri="http://127.0.0.1:50123/back")
    code = back(told, "http://127.0.0.1:50123/back")["code"]
    assert app.redeem(code, redirect_uri="http://127.0.0.1:50123/back").status_code == 200
    web.settings(redirect_urls=(NATIVE,))
    assert web.ask(redirect_uri="http://127.0.0.1:50123/back").status_code == 400


def test_the_only_address_of_a_client_need_not_be_named(app: Application) -> None:
    """RFC 6749 3.1.2.3"""
    app.settings(redirect_urls=(BACK,))
    code = app.code(redirect_uri=None)
    assert app.redeem(code, redirect_uri="https://app.example/other").status_code == 400
    assert app.redeem(code, redirect_uri=None).status_code == 200


REFUSED: list[tuple[dict[str, str | None], str]] = [
    ({"response_type": None}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "id_token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"),
    ({"response_type": "none"}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"request": "eyJ"}, "request_not_supported"),
    ({"request_uri": "https://app.example/request"}, "request_uri_not_supported"),
    ({"registration": "{}"}, "registration_not_supported"),
    ({"scope": "resource:Nothing"}, "invalid_scope"),
    ({"scope": "resource:My+API resource:Directory+Administration"}, "invalid_scope"),
    ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge": CHALLENGE[:-1]}, "invalid_request"),
    ({"code_challenge": f"{CHALLENGE[:-1]}="}, "invalid_request"),
    ({"nonce": "x" * 5000}, "invalid_request"),
    ({"prompt": "none login"}, "invalid_request"),
    ({"prompt": "create"}, "invalid_request"),
    ({"max_age": "-1"}, "invalid_request"),
    ({"max_age": "1e3"}, "invalid_request"),
    ({"max_age": "9" * 50}, "invalid_request"),
    ({"prompt": "none"}, "login_required"),
]


def test_every_other_refusal_is_an_answer_to_the_client(app: Application) -> None:
    """RFC 6749 4.1.2.1, OpenID Connect Core 3.1.2.6, 6.1, 7.2.1; PKCE is not left out (failures A18)"""
    for changes, error in REFUSED:
        told = back(app.ask(**changes))
        assert (told["error"], told["state"], told["iss"]) == (error, "a state & more", ISSUER), changes
        assert "code" not in told
        assert re.fullmatch(r"[ -~]+", told["error_description"])


def test_a_request_of_100_kb_gets_a_clear_answer(app: Application) -> None:
    """Whatever would come back, or be stored, is bounded."""
    for name, method in itertools.product(("state", "nonce", "login_hint", "scope", "ui_locales"), ("GET", "POST")):
        # The client of these tests sends no longer address.
        huge = app.asked(**{name: "x" * (60_000 if method == "GET" else 100_000)})
        parameters, form = (huge, None) if method == "GET" else (None, huge)
        answer = app.browser.request(method, "/dirws/oauth2/auth", params=parameters, data=form)
        assert answer.status_code == 413
        assert answer.headers["content-type"].startswith("text/html")
        assert "larger than" in Page(answer).text or "more than" in Page(answer).text
        assert len(answer.content) < 20_000


# Prompts


def test_who_has_allowed_the_same_is_not_asked_again_while_the_grant_lives(app: Application) -> None:
    reply = app.tokens(scope=f"openid {SCOPE}")
    for same in ({}, {"scope": f"openid {SCOPE}"}, {"prompt": "none"}):
        assert back(app.ask(**same)).keys() == {"code", "state", "iss"}
    for more in ({"scope": f"openid email {SCOPE}"}, {"scope": "openid"}, {"prompt": "consent"}):
        assert "Allow access?" in Page(app.ask(**more)).text
    assert "You are alice@People" in Page(app.ask(prompt="select_account")).text
    app.browser.delete(f"/dirws/v1/authentication/oauth/{reply['access_token']}")
    assert "Allow access?" in Page(app.ask()).text


def test_where_any_program_could_take_the_answer_the_user_is_always_asked(app: Application) -> None:
    """RFC 8252 8.6"""
    app.redeem(back(app.allowed(redirect_uri=NATIVE), NATIVE)["code"], redirect_uri=NATIVE)
    assert "Allow access?" in Page(app.ask(redirect_uri=NATIVE)).text
    assert back(app.ask(redirect_uri=NATIVE, prompt="none"), NATIVE)["error"] == "consent_required"


def test_nobody_is_asked_where_the_client_wants_so(app: Application) -> None:
    """OpenID Connect Core 3.1.2.1, prompt=none"""
    app.sign_in()
    assert back(app.ask(prompt="none"))["error"] == "consent_required"
    app.sign_in(app.scene.outsider)
    assert back(app.ask(prompt="none"))["error"] == "access_denied"


def test_a_hint_is_for_its_user_alone(app: Application) -> None:
    """OpenID Connect Core 3.1.2.1, 3.1.2.2"""
    hint = app.tokens(scope=f"openid {SCOPE}")["id_token"]
    app.scene.clock.advance(3600)
    with app.scene.database.begin() as cx:
        resources.add_to_role(cx, app.scene.resource, app.scene.outsider)
    asked = {"scope": f"openid {SCOPE}", "id_token_hint": hint}
    app.sign_in()
    assert "code" in back(app.ask(**asked, prompt="none"))
    assert "code" in back(app.ask(**asked))
    app.sign_in(app.scene.outsider)
    assert back(app.ask(**asked, prompt="none"))["error"] == "login_required"
    page = Page(app.ask(**asked))
    assert "asks for another user" in page.text
    assert back(page.send(app.browser, decision="allow"))["error"] == "access_denied"
    page = Page(app.browser.get(page.send(app.browser, button="other").headers["location"]))
    answer = app.type_password(page)
    assert "code" in back(app.browser.get(answer.headers["location"])), "that user signs in, and goes on"


def test_a_hint_that_is_no_id_token_of_ours_is_refused(app: Application) -> None:
    reply = app.tokens(scope=f"openid {SCOPE}")
    for wrong in ("x", "a.b.c", reply["access_token"], reply["id_token"][:-4] + "AAAA", "é.."):
        assert back(app.ask(id_token_hint=wrong))["error"] == "invalid_request"


def test_prompt_login_asks_for_the_password_again_and_only_once(app: Application) -> None:
    app.sign_in()
    page = Page(app.ask(prompt="login"))
    assert "Sign in" in page.text
    page = Page(page.send(app.browser, m_username="alice@People", m_password="wrong"))
    assert "That did not work" in page.text
    answer = app.type_password(page)
    assert "Allow access?" in Page(app.browser.get(answer.headers["location"])).text


@pytest.mark.parametrize(("max_age", "passed", "asks"), [("0", 0, True), ("10", 11, True), ("10", 10, False)])
def test_who_signed_in_too_long_ago_does_so_again(app: Application, max_age: str, passed: int, asks: bool) -> None:
    """OpenID Connect Core 3.1.2.1, max_age"""
    app.sign_in()
    app.scene.clock.advance(passed)
    page = Page(app.ask(max_age=max_age))
    assert ("Sign in" in page.text) == asks
    if asks:
        assert back(app.ask(max_age=max_age, prompt="none"))["error"] == "login_required"
        answer = app.type_password(page)
        assert "Allow access?" in Page(app.browser.get(answer.headers["location"])).text


def test_the_clients_guess_at_the_user_is_written_into_the_form(app: Application) -> None:
    page = Page(app.ask(login_hint='alice"><b>@People', ui_locales="de en"))
    assert page.tree.get_element_by_id("username").get("value") == 'alice"><b>@People'


# The consent: forged, framed, out of date


@pytest.mark.parametrize("how", ["no mark", "wrong mark", "another's mark", "another site"])
def test_a_forged_consent_gives_nothing(app: Application, how: str) -> None:
    """The mark is bound to the browser's ticket."""
    page = app.consent()
    other = app.scene.new_browser()
    app.scene.sign_in(app.scene.admin, browser=other)
    marks = {"no mark": "", "wrong mark": "x" * 43, "another's mark": _mark(app, other)}
    fields = {"m_csrf": marks[how]} if how in marks else {}
    headers = {"Sec-Fetch-Site": "cross-site"} if how == "another site" else None
    answer = page.send(app.browser, button="allow", headers=headers, typed=fields)
    assert (answer.status_code, "location" in answer.headers) == (403, False)
    assert _codes(app) == 0


def _mark(app: Application, browser: httpx.Client) -> str:
    form = Page(browser.get("/dirws/oauth2/auth", params=app.asked())).forms()[-1]
    return str(dict(form.form_values())["m_csrf"])


def _codes(app: Application) -> int:
    with app.scene.database.read() as cx:
        count: int = cx.exec_driver_sql("SELECT count(*) FROM authorization_codes").scalar_one()
    return count


def test_no_page_of_an_authorization_can_be_framed_and_each_names_where_its_forms_go(app: Application) -> None:
    pages = [Page(app.ask()), app.consent(), app.consent(redirect_uri="http://127.0.0.1:50123/back")]
    for page, place in zip(pages, ("https://app.example",) * 2 + ("http://127.0.0.1:50123",), strict=True):
        policy = page.response.headers["content-security-policy"]
        assert f"form-action 'self' {place};" in policy
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert page.response.headers["x-frame-options"] == "DENY"


def test_a_changed_request_in_the_form_is_read_like_any_other(app: Application) -> None:
    page = app.consent()
    request = urlencode(app.asked(redirect_uri="https://evil.example/"))
    answer = page.send(app.browser, button="allow", request=request)
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    answer = page.send(app.browser, button="allow", request=urlencode(app.asked(code_challenge_method="plain")))
    assert back(answer)["error"] == "invalid_request"
    assert page.send(app.browser, button="allow", request="%ff").status_code == 400


@pytest.mark.parametrize("decision", ["disabled", "locked", "deleted", "removed from the role"])
def test_who_lost_access_while_the_page_was_open_allows_nothing(app: Application, decision: str) -> None:
    page = app.consent()
    app.scene.alter(decision)
    answer = page.send(app.browser, button="allow")
    if decision == "removed from the role":
        assert back(answer)["error"] == "access_denied"
    else:
        assert answer.headers["location"].startswith("/dirws/oauth2/auth?")
        assert "Sign in" in Page(app.browser.get(answer.headers["location"])).text
    assert _codes(app) == 0


@pytest.mark.parametrize("page", ["/oauth2/auth?a=b\r\nX: y", "/oauth2/auth/../x", "//evil.example", "/oauth2/other"])
def test_a_sign_in_leads_to_pages_of_ours_alone(scene: Scene, page: str) -> None:
    form = scene.open("/dirws/login")
    answer = form.send(scene.browser, m_username="admin@directory.admin", m_password=PASSWORD, page=page)
    assert answer.headers["location"].startswith("/dirws/login?RFA=")
