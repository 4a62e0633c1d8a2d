"""ours 26: a public client's refresh token is used once, and a second use ends its grant (RFC 9700 4.14.2)."""

from functools import partial

import pytest

from muniment.directory import minting
from muniment.directory.entries import system
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
    for more in (f"openid email {SCOPE}", "openid", "resource:Directory+Administration", f"{SCOPE} groups"):
        assert refused(app.refresh(token, scope=more)) == "invalid_scope"
    for same in (f"openid profile {SCOPE}", SCOPE, f"profile {SCOPE}"):
        token = app.refresh(token, scope=same).json()["refresh_token"]


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


def test_a_successor_cannot_be_told_without_the_key_and_is_a_value_of_ours() -> None:
    key = b"k" * 32
    value, digest = minting.mint(key, "refresh")
    successor, its_digest = minting.successor(key, "refresh", value)
    assert minting.successor(key, "refresh", value) == (successor, its_digest)
    assert minting.successor(b"o" * 32, "refresh", value)[1] != its_digest
    assert minting.parse(key, "refresh", successor) == its_digest != digest
    assert minting.family(value) == minting.family(successor) != minting.family(minting.mint(key, "refresh")[0])
    assert minting.successor(key, "refresh", successor)[0] != value
