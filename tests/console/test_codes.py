"""ours 26: what a code is good for (RFC 6749 4.1.3, RFC 7636, RFC 9700 4.5, 4.8, 4.14)."""

import base64
import hashlib
from collections.abc import Callable

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import entries
from muniment.directory.oauth import sessions
from muniment.ground.clock import SECOND
from tests.console.conftest import BACK, ISSUER, SIGNING_KEY, VERIFIER, Application, back, refused

pytestmark = pytest.mark.campaign_on("postgresql")


def test_a_code_serves_once_and_a_second_use_ends_what_came_of_it(app: Application) -> None:
    code = app.code()
    reply = app.redeem(code).json()
    assert app.tokeninfo(reply["access_token"]).status_code == 200
    assert refused(app.redeem(code)) == "invalid_grant"
    assert app.tokeninfo(reply["access_token"]).status_code == 410
    assert refused(app.refresh(reply["refresh_token"])) == "invalid_grant"


def test_a_code_that_comes_again_after_it_has_expired_still_ends_its_grant(app: Application) -> None:
    code = app.code()
    reply = app.redeem(code).json()
    app.scene.clock.advance(1800)
    assert refused(app.redeem(code)) == "invalid_grant"
    assert app.tokeninfo(reply["access_token"]).status_code == 410


def test_a_code_lives_a_minute_and_a_client_may_have_it_shorter(app: Application) -> None:
    for seconds, lives in ((None, 60), (20_000, 60), (5, 5)):
        app.settings(code_seconds=seconds)
        first, second = app.code(), app.code(prompt="consent")
        app.scene.clock.advance(lives - 1)
        assert app.redeem(first).status_code == 200
        app.scene.clock.advance(1)
        assert refused(app.redeem(second)) == "invalid_grant"


OTHERWISE: list[dict[str, str | None]] = [
    {"code_verifier": None},
    {"code_verifier": f"{VERIFIER}x"},
    {"code_verifier": VERIFIER[:42]},
    {"code_verifier": "x" * 100_000},
    {"redirect_uri": None},
    {"redirect_uri": f"{BACK}/"},
    {"redirect_uri": "https://evil.example/back"},
    {"code": "x" * 54},
    {"code": "x" * 5000},
]


def test_a_code_is_bound_to_its_request(app: Application) -> None:
    """failures A18. A refused attempt does not take the code from who holds the verifier."""
    code = app.code()
    for changes in OTHERWISE:
        answer = app.redeem(**{"code": code} | changes)
        assert answer.status_code in (400, 413), changes
    assert app.redeem(code).status_code == 200


def test_a_code_of_another_client_is_none(app: Application, web: Application) -> None:
    """RFC 9700 4.5: an injected code."""
    code = app.code()
    assert refused(web.redeem(code)) == "invalid_grant"
    assert refused(web.redeem(code, code_verifier=None)) == "invalid_grant"
    assert app.redeem(code).status_code == 200


@pytest.mark.parametrize("token", ["access_token", "refresh_token"])
def test_a_token_is_no_code_and_a_code_is_no_token(app: Application, token: str) -> None:
    reply, code = app.tokens(), app.code(prompt="consent")
    assert refused(app.redeem(reply[token])) == "invalid_grant"
    assert app.tokeninfo(code).status_code == 401
    assert refused(app.refresh(code)) == "invalid_grant"


def test_a_request_without_a_challenge_never_takes_a_verifier(web: Application) -> None:
    """failures A18, RFC 9700 4.8.2: the downgrade."""
    without: dict[str, str | None] = {"code_challenge": None, "code_challenge_method": None}
    assert back(web.ask(**without))["error"] == "invalid_request"
    web.settings(pkce="pkce_or_nonce")
    assert back(web.ask(**without))["error"] == "invalid_request"
    code = web.code(**without, nonce="n", scope="openid resource:My+API")
    assert refused(web.redeem(code)) == "invalid_grant"
    assert web.redeem(code, code_verifier=None).status_code == 200
    web.settings(pkce="none")
    code = web.code(**without, prompt="consent")
    assert refused(web.redeem(code)) == "invalid_grant"
    assert web.redeem(code, code_verifier=None).status_code == 200


@pytest.mark.parametrize("pkce", ["pkce_or_nonce", "none"])
def test_a_public_client_always_sends_a_challenge_and_a_challenge_is_always_asked_for(
    app: Application, web: Application, pkce: str
) -> None:
    app.settings(pkce=pkce)
    told = back(app.ask(code_challenge=None, code_challenge_method=None, nonce="n"))
    assert told["error"] == "invalid_request"
    web.settings(pkce=pkce)
    code = web.code()
    assert refused(web.redeem(code, code_verifier=None)) == "invalid_grant"
    assert web.redeem(code).status_code == 200


def test_an_id_token_says_who_signed_in_when_and_for_which_request(web: Application) -> None:
    """OpenID Connect Core 2, 3.1.3.6, 3.1.3.7"""
    web.sign_in()
    signed_in = web.scene.clock() // SECOND
    web.scene.clock.advance(90)
    for scope in ("openid profile", "openid resource:My+API"):
        code = web.code(scope=scope, nonce="n-0S6_WzA2Mj")
        web.scene.clock.advance(10)
        reply = web.redeem(code).json()
        key_set = KeySet.import_key_set({"keys": [msgspec.json.decode(SIGNING_KEY.public)]})
        token = jwt.decode(reply["id_token"], key_set, algorithms=["RS256"])
        assert token.header == {"alg": "RS256", "typ": "JWT", "kid": SIGNING_KEY.kid}
        digest = hashlib.sha256(reply["access_token"].encode()).digest()[:16]
        now = web.scene.clock() // SECOND
        assert token.claims == {
            "iss": ISSUER,
            "sub": web.scene.user.uuid,
            "aud": "web",
            "iat": now,
            "exp": now + 300,
            "auth_time": signed_in,
            "amr": ["pwd"],
            "nonce": "n-0S6_WzA2Mj",
            "at_hash": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        }
    assert "id_token" not in web.tokens(prompt="consent")


def test_a_confidential_client_proves_itself(web: Application) -> None:
    code = web.code()
    assert refused(web.redeem(code, client_secret=None)) == "invalid_client"
    assert refused(web.redeem(code, client_secret="wrong")) == "invalid_client"
    assert web.redeem(code).status_code == 200


def test_the_answer_names_its_issuer_so_that_no_other_server_can_be_meant(app: Application) -> None:
    """RFC 9207, RFC 9700 4.4: mix-up. The issuer is the base address and the prefix, whatever host was asked."""
    app.sign_in()
    for host in ("muniment.test", "other.test"):
        answer = app.browser.get("/dirws/oauth2/auth", params=app.asked(prompt="none"), headers={"Host": host})
        assert back(answer)["iss"] == "https://muniment.test/dirws"


ENDINGS: dict[str, Callable[[Application], None]] = {}


def ending(name: str) -> Callable[[Callable[[Application], None]], None]:
    def keep(change: Callable[[Application], None]) -> None:
        ENDINGS[name] = change

    return keep


@ending("the user signs out")
def _(app: Application) -> None:
    page = app.scene.open(f"/dirws/login?RFA={app.scene.administration.id}")
    page.send(app.browser, button="1")


@ending("an administrator ends the session")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        (ticket,) = [each for each in sessions.of_user(cx, app.scene.user, app.scene.clock()) if each.kind == "ticket"]
        sessions.end_one(cx, ticket.id, app.scene.clock())


@ending("the user is disabled and enabled again")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        decisions.set_disabled(cx, app.scene.user, True, app.scene.clock())
        decisions.set_disabled(cx, app.scene.user, False, app.scene.clock())


@ending("the client is signed out")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        decisions.sign_out(cx, entries.find_client(cx, "app"), app.scene.clock())


@ending("the resource is switched off and on again")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        for is_on in (False, True):
            resource_decisions.set_status(cx, app.scene.resource, app.scene.clock(), authentication=is_on)


@ending("every session ends")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        sessions.end_every(cx, app.scene.clock())


@ending("the user leaves the role")
def _(app: Application) -> None:
    app.scene.alter("removed from the role")


@ending("the user's partition may not use the client")
def _(app: Application) -> None:
    with app.scene.database.begin() as cx:
        other = entries.administration(cx).id
    app.settings(auth_scopes=(other,))


@pytest.mark.parametrize("name", ENDINGS)
def test_what_ends_the_sign_in_ends_its_codes(app: Application, name: str) -> None:
    """What ends, ends with the next request."""
    app.sign_in()
    code = app.code()
    ENDINGS[name](app)
    assert refused(app.redeem(code)) == "invalid_grant"
