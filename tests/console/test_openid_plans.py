"""Cases of the OpenID Foundation's basic and config plans that no other test shows (docs/openid-plans.md).

The client is a web application of the usual kind: confidential, and it sends no challenge.
"""

from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from muniment.directory.entries import attributes, editing
from muniment.directory.sign_in.passwords import hash_password
from tests.console.conftest import ISSUER, SECRET, Application, Page, back, refused

pytestmark = pytest.mark.campaign_on("postgresql")


@pytest.fixture
def usual(web: Application) -> Application:
    web.settings(pkce="none")
    return web


def asked(web: Application, **changes: str | None) -> dict[str, str | None]:
    plain: dict[str, str | None] = {"scope": "openid", "code_challenge": None, "code_challenge_method": None}
    return {**plain, **changes}


def tokens(web: Application, **changes: str | None) -> dict[str, Any]:
    answer = web.redeem(web.code(**asked(web, **changes)), code_verifier=None)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def claims(web: Application, id_token: str) -> dict[str, Any]:
    keys = KeySet.import_key_set(web.browser.get("/dirws/oauth2/jwks").json())
    told: dict[str, Any] = jwt.decode(id_token, keys, algorithms=["RS256"]).claims
    return told


@pytest.mark.parametrize("way", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret_gets_an_id_token_of_openid_alone(usual: Application, way: str) -> None:
    code = usual.code(**asked(usual, nonce="n"))
    basic = way == "client_secret_basic"
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": "https://app.example/back"}
    proof = {} if basic else {"client_id": "web", "client_secret": SECRET}
    auth = httpx.BasicAuth("web", SECRET) if basic else httpx.USE_CLIENT_DEFAULT
    answer = usual.browser.post("/dirws/oauth2/token", data=form | proof, auth=auth)
    assert answer.status_code == 200, answer.text
    told = claims(usual, answer.json()["id_token"])
    assert (told["iss"], told["aud"], told["sub"], told["nonce"]) == (ISSUER, "web", usual.scene.user.uuid, "n")


def test_a_request_without_a_nonce_gets_an_id_token_without_one(usual: Application) -> None:
    assert "nonce" not in claims(usual, tokens(usual)["id_token"])


@pytest.mark.parametrize("way", ["get", "post header", "post body"])
def test_userinfo_is_asked_in_three_ways(usual: Application, way: str) -> None:
    token = tokens(usual)["access_token"]
    header = None if way == "post body" else {"Authorization": f"Bearer {token}"}
    form = {"access_token": token} if way == "post body" else None
    method = "GET" if way == "get" else "POST"
    answer = usual.browser.request(method, "/dirws/oauth2/userinfo", headers=header, data=form)
    assert (answer.status_code, answer.json()) == (200, {"sub": usual.scene.user.uuid})
    assert answer.headers["content-type"].startswith("application/json")


def test_scopes_open_what_they_name_whatever_their_order(usual: Application) -> None:
    with usual.scene.database.begin() as cx:
        about: dict[str, list[str | int]] = {"mail": ["a@example.org"], "givenName": ["Alice"]}
        attributes.put(cx, usual.scene.names, usual.scene.user, about, usual.scene.clock())
    for scope in ("openid profile email", "email profile openid"):
        token = tokens(usual, scope=scope, prompt="consent")["access_token"]
        told = usual.browser.get("/dirws/oauth2/userinfo", headers={"Authorization": f"Bearer {token}"}).json()
        assert (told["given_name"], told["email"]) == ("Alice", "a@example.org")


@pytest.mark.parametrize(
    "changes",
    [
        {"display": "page"},
        {"display": "popup"},
        {"ui_locales": "se"},
        {"claims_locales": "se"},
        {"acr_values": "1 2"},
        {"extra": "foobar"},
        {"claims": '{"userinfo": {"name": {"essential": true}}}'},
    ],
    ids=lambda changes: next(iter(changes)) + "=" + next(iter(changes.values()))[:5],
)
def test_what_is_not_known_or_only_a_wish_does_not_disturb(usual: Application, changes: dict[str, str]) -> None:
    """OpenID Connect Core 3.1.2.1, 5.5: what is not understood is ignored."""
    page = Page(usual.ask(**asked(usual, **changes)))
    assert "Sign in" in page.text
    answer = usual.type_password(page)
    page = Page(usual.browser.get(answer.headers["location"]))
    assert "code" in back(page.send(usual.browser, button="allow"))


def test_a_silent_request_of_the_same_client_names_the_same_user_and_sign_in(usual: Application) -> None:
    first = claims(usual, tokens(usual)["id_token"])
    usual.scene.clock.advance(90)
    code = back(usual.ask(**asked(usual, prompt="none")))["code"]
    again = claims(usual, usual.redeem(code, code_verifier=None).json()["id_token"])
    assert (again["sub"], again["auth_time"]) == (first["sub"], first["auth_time"])
    code = back(usual.ask(**asked(usual, max_age="10000")))["code"]
    again = claims(usual, usual.redeem(code, code_verifier=None).json()["id_token"])
    assert (again["sub"], again["auth_time"]) == (first["sub"], first["auth_time"])


def test_a_sign_in_that_was_too_long_ago_gets_a_later_auth_time(usual: Application) -> None:
    first = claims(usual, tokens(usual)["id_token"])
    usual.scene.clock.advance(2)
    page = Page(usual.ask(**asked(usual, max_age="1")))
    assert "Sign in" in page.text
    code = back(usual.browser.get(usual.type_password(page).headers["location"]))["code"]
    again = claims(usual, usual.redeem(code, code_verifier=None).json()["id_token"])
    assert again["auth_time"] > first["auth_time"]
    assert again["sub"] == first["sub"]


def test_a_code_is_used_a_second_time_after_half_a_minute(usual: Application) -> None:
    code = usual.code(**asked(usual))
    token = usual.redeem(code, code_verifier=None).json()["access_token"]
    usual.scene.clock.advance(30)
    assert refused(usual.redeem(code, code_verifier=None)) == "invalid_grant"
    answer = usual.browser.get("/dirws/oauth2/userinfo", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def test_a_request_may_be_posted(usual: Application) -> None:
    usual.sign_in()
    answer = usual.browser.post("/dirws/oauth2/auth", data=usual.asked(**asked(usual)))
    while answer.status_code == 303:
        answer = usual.browser.get(answer.headers["location"])
    assert "code" in back(Page(answer).send(usual.browser, button="allow"))


@pytest.mark.parametrize("name", ["request", "request_uri"])
def test_a_request_object_is_refused_and_leads_nowhere_else(usual: Application, name: str) -> None:
    told = back(usual.ask(**asked(usual, **{name: "eyJhbGciOiJub25lIn0.eyJyZWRpcmVjdF91cmkiOiJodHRwczovL2V2aWwifQ."})))
    assert told["error"] == f"{name}_not_supported"


def test_a_refresh_token_serves_its_own_client_alone(usual: Application) -> None:
    with usual.scene.database.begin() as cx:
        kept = hash_password(SECRET, memory_kib=8192, passes=1)
        editing.add_client(cx, "second", usual.scene.clock(), password_hash=kept)
    token = tokens(usual)["refresh_token"]
    assert refused(usual.refresh(token, client_id="second", client_secret=SECRET)) == "invalid_grant"
    refreshed = usual.refresh(token, client_secret=SECRET)
    assert refreshed.status_code == 200, refreshed.text
    answer = usual.browser.get(
        "/dirws/oauth2/userinfo", headers={"Authorization": f"Bearer {refreshed.json()['access_token']}"}
    )
    assert answer.json() == {"sub": usual.scene.user.uuid}


def test_a_valid_challenge_succeeds_where_none_is_required(usual: Application) -> None:
    assert usual.redeem(usual.code(scope="openid")).status_code == 200


def test_the_metadata_is_what_the_config_plan_asks_for(usual: Application) -> None:
    answer = usual.browser.get(f"{ISSUER}/.well-known/openid-configuration")
    assert answer.headers["content-type"].startswith("application/json")
    told = answer.json()
    assert told["issuer"] == ISSUER
    endpoints = {name for name in told if name.endswith("_endpoint") or name == "jwks_uri"}
    assert {"authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"} <= endpoints
    assert {urlsplit(told[name]).scheme for name in endpoints} == {"https"}
    assert "code" in told["response_types_supported"]
    assert "public" in told["subject_types_supported"]
    assert "RS256" in told["id_token_signing_alg_values_supported"]
    assert "openid" in told["scopes_supported"]
    assert all(0x21 <= ord(each) <= 0x7E and each not in '"\\' for scope in told["scopes_supported"] for each in scope)
    assert {"client_secret_basic", "client_secret_post"} <= {*told["token_endpoint_auth_methods_supported"]}
    assert told["claims_parameter_supported"] is False
    assert "sub" in told["claims_supported"]
    keys: httpx.Response = usual.browser.get(told["jwks_uri"])
    for key in msgspec.json.decode(keys.content)["keys"]:
        assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & key.keys(), "public halves alone"
        assert key["kid"]
