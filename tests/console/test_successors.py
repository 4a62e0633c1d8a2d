"""ours 26: a public client's refresh token is used once, and a second use ends its grant (RFC 9700 4.14.2)."""

import base64
from functools import partial

import msgspec
import pytest

from muniment.directory import minting
from muniment.directory.entries import resources, system
from muniment.directory.oauth import sessions
from tests.console.conftest import Application, refused
from tests.office import SCOPE

pytestmark = pytest.mark.campaign_on("postgresql")


def test_each_refresh_gives_a_successor_which_serves_next(app: Application) -> None:
    reply = app.tokens()
    seen = {reply["refresh_token"]}
    for _ in range(3):
        app.scene.clock.advance(100)
        answer = app.refresh(reply["refresh_token"])
        assert answer.status_code == 200
        reply = answer.json()
        assert reply["refresh_token"] not in seen
        seen.add(reply["refresh_token"])
        assert app.tokeninfo(reply["access_token"]).status_code == 200


def test_within_ten_seconds_the_same_token_gets_the_same_successor(app: Application) -> None:
    """An answer that was lost on the way ends nothing."""
    token = app.tokens()["refresh_token"]
    answers = [app.refresh(token).json()]
    app.scene.clock.advance(9.9)
    answers += [app.refresh(token).json() for _ in range(3)]
    assert len({answer["refresh_token"] for answer in answers}) == 1
    assert len({answer["access_token"] for answer in answers}) == 4
    assert app.refresh(answers[0]["refresh_token"]).status_code == 200


@pytest.mark.parametrize("seconds", [10, 3000])
def test_a_later_use_ends_the_grant(app: Application, seconds: float) -> None:
    """failures A7"""
    token = app.tokens()["refresh_token"]
    reply = app.refresh(token).json()
    app.scene.clock.advance(seconds)
    assert refused(app.refresh(token)) == "invalid_grant"
    assert app.tokeninfo(reply["access_token"]).status_code == 410
    assert refused(app.refresh(reply["refresh_token"])) == "invalid_grant"


def test_a_token_of_long_before_ends_the_grant_even_within_ten_seconds(app: Application) -> None:
    first = app.tokens()["refresh_token"]
    second = app.refresh(first).json()["refresh_token"]
    third = app.refresh(second).json()
    assert app.refresh(second).status_code == 200
    assert refused(app.refresh(first)) == "invalid_grant"
    assert app.tokeninfo(third["access_token"]).status_code == 410


def test_a_refresh_may_name_the_scope_that_was_granted_and_no_more(app: Application) -> None:
    """failures A10, RFC 6749 6"""
    token = app.tokens(scope=f"openid profile {SCOPE}")["refresh_token"]
    for more in (f"openid email {SCOPE}", "groups", "resource:Directory+Administration", f"{SCOPE} groups"):
        assert refused(app.refresh(token, scope=more)) == "invalid_scope"
    same = app.refresh(token, scope=f"openid profile {SCOPE}").json()
    assert "scope" not in same
    token = same["refresh_token"]
    for part, told in (
        (SCOPE, SCOPE),
        (f"profile {SCOPE}", f"{SCOPE} profile"),
        ("openid", f"{SCOPE} openid"),
        ("profile openid", f"{SCOPE} openid profile"),
    ):
        reply = app.refresh(token, scope=part).json()
        token = reply["refresh_token"]
        assert reply["scope"] == told
        assert _userinfo(app, reply["access_token"]) == (200 if "openid" in told else 403)
        assert app.tokeninfo(reply["access_token"]).status_code == 200
    reply = app.refresh(token).json()
    assert "scope" not in reply
    assert _userinfo(app, reply["access_token"]) == 200, "the grant has what it had"


def _userinfo(app: Application, token: str) -> int:
    return app.browser.get("/dirws/oauth2/userinfo", headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_signed_token_is_narrowed_too(app: Application) -> None:
    with app.scene.database.begin() as cx:
        resources.change(cx, app.scene.resource, token_format="ES256")
    token = app.tokens(scope=f"openid profile {SCOPE}")["refresh_token"]
    narrow = app.refresh(token, scope=SCOPE).json()["access_token"]
    assert _userinfo(app, narrow) == 403
    payload = narrow.split(".")[1]
    assert msgspec.json.decode(base64.urlsafe_b64decode(payload + "=="))["scope"] == SCOPE


def test_a_refresh_names_the_resource_that_was_granted_or_is_invalid_target(app: Application) -> None:
    """RFC 8707 2.2"""
    with app.scene.database.begin() as cx:
        other = resources.add(cx, app.scene.names, "Other", app.scene.clock())
        resources.activate(cx, other.id, app.scene.clock())
        resources.add_to_role(cx, other, app.scene.group)
    own, others = f"urn:uuid:{app.scene.resource.id}", f"urn:uuid:{other.id}"
    token = app.tokens(scope=f"openid {SCOPE}")["refresh_token"]
    for wrong in ({"resource": others}, {"resource": "urn:uuid:none"}, {"resource": others, "scope": "openid"}):
        assert refused(app.refresh(token, **wrong)) == "invalid_target"
    reply = app.refresh(token, resource=own).json()
    assert "scope" not in reply
    assert _userinfo(app, reply["access_token"]) == 200
    without = app.tokens(scope="openid")["refresh_token"]
    assert refused(app.refresh(without, resource=own)) == "invalid_target"


def test_another_client_gets_no_successor_and_ends_nothing(app: Application, web: Application) -> None:
    token = app.tokens()["refresh_token"]
    for _ in range(2):
        answer = web.refresh(token, client_secret=web.secret or "")
        assert refused(answer) == "invalid_grant"
        successor = app.refresh(token)
        assert successor.status_code == 200
        token = successor.json()["refresh_token"]


def test_a_confidential_clients_token_stays(web: Application) -> None:
    token = web.tokens()["refresh_token"]
    for _ in range(2):
        answer = web.refresh(token, client_secret=web.secret or "")
        assert answer.status_code == 200
        assert "refresh_token" not in answer.json()
        web.scene.clock.advance(60)


def test_the_password_grants_token_stays(app: Application) -> None:
    """given 2.4"""
    form = {
        "grant_type": "password",
        "client_id": "app",
        "username": "alice@People",
        "password": "correct horse battery staple",
        "scope": "resource:My+API",
    }
    token = app.browser.post("/dirws/login", data=form).json()["refresh_token"]
    for _ in range(2):
        answer = app.refresh(token)
        assert (answer.status_code, "refresh_token" in answer.json()) == (200, False)
        app.scene.clock.advance(60)


def test_a_session_keeps_its_id_and_can_be_ended_by_it(app: Application) -> None:
    reply = app.tokens()
    with app.scene.database.read() as cx:
        before = [each for each in sessions.of_user(cx, app.scene.user, app.scene.clock()) if each.kind == "grant"]
    reply = app.refresh(reply["refresh_token"]).json()
    with app.scene.database.begin() as cx:
        after = [each for each in sessions.of_user(cx, app.scene.user, app.scene.clock()) if each.kind == "grant"]
        assert before == after
        sessions.end_one(cx, after[0].id, app.scene.clock())
    assert app.tokeninfo(reply["access_token"]).status_code == 410


def test_a_key_that_changes_ends_nothing(app: Application) -> None:
    """An answer is lost, the key changes, and the same successor is given again; codes and devices go on, too."""
    token, code = app.tokens()["refresh_token"], app.code()
    successor = app.refresh(token).json()["refresh_token"]
    for change in (system.prepare_key, partial(system.promote_key, keep_former=True)):
        with app.scene.database.begin() as cx:
            change(cx, "tokens")
        with app.scene.database.read() as cx:
            system.remember_keys(cx)
        assert app.refresh(token).json()["refresh_token"] == successor
    assert app.refresh(successor).status_code == 200
    assert app.redeem(code).status_code == 200


def test_a_process_that_has_not_read_the_new_key_yet_gives_the_same_successor(app: Application) -> None:
    """The first answer came from one that has, whichever of the two is asked again."""
    token, database = app.tokens()["refresh_token"], app.scene.database
    with database.begin() as cx:
        system.prepare_key(cx, "tokens")
    with database.read() as cx:
        system.remember_keys(cx)
    behind = dict(system._read_keys[database.engine])
    with database.begin() as cx:
        system.promote_key(cx, "tokens", keep_former=True)
    with database.read() as cx:
        system.remember_keys(cx)
    successor = app.refresh(token).json()["refresh_token"]
    assert app.refresh(token).json()["refresh_token"] == successor
    system._read_keys[database.engine] = behind
    assert app.refresh(token).json()["refresh_token"] == successor
    assert app.refresh(successor).status_code == 200


def test_a_successor_cannot_be_told_without_the_key_and_is_a_value_of_ours() -> None:
    key = b"k" * 32
    value, digest = minting.mint(key, "refresh")
    successor, its_digest = minting.successor(key, "refresh", value)
    assert minting.successor(key, "refresh", value) == (successor, its_digest)
    assert minting.successor(b"o" * 32, "refresh", value)[1] != its_digest
    assert minting.parse(key, "refresh", successor) == its_digest != digest
    assert minting.family(value) == minting.family(successor) != minting.family(minting.mint(key, "refresh")[0])
    assert minting.successor(key, "refresh", successor)[0] != value
