"""A token request goes through the same phases for every grant; a new grant is a module and a row (decision 0032)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy.engine import Connection

from muniment.directory.administration import client_decisions, resource_decisions
from muniment.directory.entries import credentials, editing, entries, oauth_clients, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.oauth import grants, scopes, token_requests, tokens
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.token_requests import (
    GrantType,
    JointRequest,
    TokenAttempt,
    TokenRequest,
    TokenResponse,
)
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import DeadToken, InvalidScope
from muniment.directory.sign_in import pauses
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded, Refusal
from tests.console.conftest import Scene
from tests.office import HASH, PASSWORD, SCOPE

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def ask(scene: Scene, **asked: str) -> httpx.Response:
    return scene.browser.post("/dirws/login", data=asked, headers={"Accept": "application/json"})


def test_a_wrong_client_secret_ends_a_request_before_the_user_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene.database.begin() as cx:
        editing.add_client(cx, "safe", scene.clock(), password_hash=HASH)
    checked: list[str] = []
    check = scene.directory.gate.check

    def noted(stored: str | None, password: str, *more: Any) -> Any:
        checked.append(password)
        return check(stored, password, *more)

    monkeypatch.setattr(scene.directory.gate, "check", noted)
    asked = {"grant_type": "password", "username": scene.shown_id(scene.user), "scope": "resource:My API"}
    answer = ask(scene, **asked, client_id="safe", client_secret="wrong", password="no")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert checked == ["wrong"], "the user's password is nothing to a stranger"
    with scene.database.read() as cx:
        known = credentials.find(cx, scene.directory.options, scene.shown_id(scene.user))
    assert known is not None
    assert pauses.pauses(scene.directory.options, known, scene.clock()) == []
    assert ask(scene, **asked, client_id="safe", client_secret=PASSWORD, password=PASSWORD).status_code == 200


def _look_up(
    cx: Connection, options: DirectoryOptions, request: TokenRequest, _client: Client, _now: Instant
) -> Resource:
    return scopes.resource_of(cx, options.names, request["scope"])


def _decide(
    cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[Resource], password_ok: bool, now: Instant
) -> TokenResponse:
    assert not password_ok
    client = attempt.client
    grant, refresh_token = tokens.open_grant(cx, client.id, client.id, attempt.basis.id, now, now + 60 * SECOND)
    return token_requests.issue(cx, options, attempt.request, client, grant, refresh_token, now)


def test_a_new_grant_is_a_module_and_a_row(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"grant_type": "urn:example:grant", "client_id": scene.client_id}
    refused = ask(scene, **asked)
    assert (refused.status_code, refused.json()["error"]) == (400, "unsupported_grant_type")
    monkeypatch.setitem(
        grants.GRANTS,
        "urn:example:grant",
        GrantType(("scope",), _look_up, decide=_decide),
    )
    assert ask(scene, **asked).json()["error_description"] == "The parameter scope is missing."
    assert ask(scene, **asked, scope="resource:Nothing").json()["error"] == "invalid_scope"
    assert ask(scene, **asked, scope="resource:My API").json()["expires_in"] == 60
    assert "and urn:example:grant" in ask(scene, grant_type="magic", client_id="app").json()["error_description"]


def begin(scene: Scene, grant_type: str) -> TokenAttempt[Any]:
    """A request of a confidential client, looked up and not yet decided."""
    with scene.database.begin() as cx:
        resource_decisions.set_impersonation(cx, scene.resource, True, (), scene.clock())
        safe = editing.add_client(cx, "safe", scene.clock(), password_hash=HASH)
        resources.add_to_role(cx, scene.resource, safe)
        oauth_clients.write(cx, safe, oauth_clients.ClientSettings(allow_impersonation=True), scene.clock())
    user = scene.shown_id(scene.user)
    form = {"scope": SCOPE, "username": user, "password": PASSWORD}
    form |= {"subject_token": user, "subject_token_type": scene.names.user_id_type}
    request = TokenRequest(grant_type, "safe", PASSWORD, None, form, "192.0.2.1", issuer="https://muniment.test")
    return look_up(scene, request)


def look_up(scene: Scene, request: TokenRequest) -> TokenAttempt[Any]:
    with scene.database.read() as cx:
        return grants.look_up(cx, scene.directory.options, scene.directory.clients, request, scene.clock())


def finish(scene: Scene, attempt: TokenAttempt[Any]) -> TokenResponse:
    with scene.database.begin() as cx:
        return decide(scene, cx, attempt)


def decide(scene: Scene, cx: Connection, attempt: TokenAttempt[Any]) -> TokenResponse:
    """Decide alone."""
    directory, decide_each = scene.directory, grants.GRANTS[attempt.request.grant_type].decide_each
    if decide_each is None:
        return grants.decide(cx, directory.options, attempt, True, scene.clock()).signed()
    asked = [JointRequest(attempt.request, attempt)]
    (outcome,) = decide_each(cx, directory.options, directory.memory, directory.clients, asked, scene.clock(), True)
    assert outcome is not None
    if isinstance(outcome, Refusal):
        raise outcome
    return outcome.signed()


@pytest.mark.parametrize("grant_type", ["password", "client_credentials", EXCHANGE])
def test_a_decision_reads_the_resource_anew(scene: Scene, grant_type: str) -> None:
    """A password's check, or a queue, lies between the look-up and the decision."""
    attempt = begin(scene, grant_type)
    with scene.database.begin() as cx:
        resources.change(cx, scene.resource, token_format="ES256")
    assert finish(scene, attempt).access_token.count(".") == 2
    with scene.database.begin() as cx:
        resources.change(cx, scene.resource, authentication_enabled=False)
    with pytest.raises(InvalidScope):
        finish(scene, attempt)
    with scene.database.begin() as cx:
        resources.change(cx, scene.resource, authentication_enabled=True)
        resources.deactivate(cx, scene.resource)
    with pytest.raises(InvalidScope):
        finish(scene, attempt)


@pytest.mark.campaign
@pytest.mark.only("postgresql", "SQLite has one writer")
@pytest.mark.parametrize("grant_type", ["password", "client_credentials"])
def test_a_resource_whose_tokens_become_opaque_leaves_no_signed_one(scene: Scene, grant_type: str) -> None:
    attempt = begin(scene, grant_type)

    def write(cx: Connection, token_format: str) -> None:
        resource = resources.by_id(cx, scene.resource.id)
        resource_decisions.set_tokens(
            *(cx, resource, scene.clock()),
            address=None,
            token_format=token_format,
            token_seconds=None,
            check=lambda *_: None,
        )

    def make_opaque() -> None:
        with scene.database.begin() as cx:
            write(cx, "opaque")

    with scene.database.begin() as cx:
        write(cx, "ES256")
    with scene.database.begin() as cx:
        write(cx, "opaque")
        with pytest.raises(Overloaded):
            finish(scene, attempt)
    assert finish(scene, attempt).access_token.count(".") == 0
    with scene.database.begin() as cx:
        write(cx, "ES256")
    attempt = look_up(scene, attempt.request)
    with ThreadPoolExecutor(1) as thread:
        with scene.database.begin() as cx:
            response = decide(scene, cx, attempt)
            waiting = thread.submit(make_opaque)
            with pytest.raises(TimeoutError):
                waiting.result(0.5)
        waiting.result(30)
    with scene.database.read() as cx, pytest.raises(DeadToken):
        tokens.state_of(cx, response.access_token).require_alive(scene.clock())


@pytest.mark.parametrize("grant_type", ["client_credentials", EXCHANGE])
def test_a_decision_asks_anew_what_the_client_may_ask_for(scene: Scene, grant_type: str) -> None:
    attempt = begin(scene, grant_type)
    with scene.database.begin() as cx:
        safe = entries.find_client(cx, "safe")
        settings = msgspec.structs.replace(attempt.client.settings, allowed_scopes=("openid",))
        client_decisions.set_settings(cx, safe, settings, scene.clock())
    with pytest.raises(InvalidScope):
        finish(scene, attempt)
