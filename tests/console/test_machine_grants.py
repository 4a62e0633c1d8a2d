"""Services and their keys at the token endpoint: RFC 6749 4.4, 7523, 7662, 7009, 8414, 8693, 9068, and facts 3."""

import base64
import json
import uuid
from typing import Any

import httpx
import msgspec
import pytest
import sqlalchemy as sa
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from muniment.database.connections import directory_tables
from muniment.directory.administration import client_decisions, decisions, resource_decisions
from muniment.directory.entries import attributes, editing, entries, memberships, oauth_clients, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import assertions, discovery, grant_purge, grants, scopes, sessions, signing_keys, tokens
from muniment.directory.refusals import BadAttribute
from muniment.directory.sign_in.passwords import new_secret
from muniment.ground.clock import SECOND
from tests.console.conftest import Scene
from tests.office import PASSWORD, SCOPE

ISSUER = "https://muniment.test/dirws"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
USER_ID = "urn:muniment:oauth:user_id"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
RSA = RSAKey.generate_key(2048)
OTHER = RSAKey.generate_key(2048)


class Service:
    """A confidential client that is in the access role of the scene's resource."""

    def __init__(self, scene: Scene, name: str = "service", **settings: Any) -> None:
        self.scene, self.name = scene, name
        self.secret, kept = new_secret()
        with scene.database.begin() as cx:
            self.entry = editing.add_client(cx, name, scene.clock(), password_hash=kept)
            resources.add_to_role(cx, scene.resource, self.entry)
        self.set(**settings)

    def set(self, *, secret_hash: str | msgspec.UnsetType | None = msgspec.UNSET, **settings: Any) -> None:
        with self.scene.database.begin() as cx:
            former = oauth_clients.read(cx, [self.entry.id])[self.entry.id]
            changed, now = msgspec.structs.replace(former, **settings), self.scene.clock()
            client_decisions.set_settings(cx, self.entry, changed, now, secret_hash=secret_hash)

    def post(self, path: str, *, auth: Any = "basic", **form: str | None) -> httpx.Response:
        sent = {name: value for name, value in form.items() if value is not None}
        basic = (self.name, self.secret) if auth == "basic" else auth
        return self.scene.new_browser().post(f"/dirws/oauth2/{path}", data=sent, auth=basic)

    def ask(self, grant_type: str = "client_credentials", **form: Any) -> httpx.Response:
        return self.post("token", grant_type=grant_type, **form)

    def token(self, **form: Any) -> str:
        answer = self.ask(**form)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def exchange(self, subject: str, scope: str | None = SCOPE, kind: str = USER_ID, **form: Any) -> httpx.Response:
        return self.ask(EXCHANGE, subject_token=subject, subject_token_type=kind, scope=scope, **form)

    def introspect(self, token: str, **form: Any) -> dict[str, Any]:
        answer = self.post("introspect", token=token, **form)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


def info(scene: Scene, token: str, resource: Resource | None = None) -> httpx.Response:
    body = {"token": token, "resource_id": (resource or scene.resource).id}
    return scene.new_browser().post("/dirws/v1/authentication/oauth/tokeninfo", json=body)


def userinfo(scene: Scene, token: str) -> httpx.Response:
    return scene.new_browser().get("/dirws/oauth2/userinfo", headers={"Authorization": f"Bearer {token}"})


def sign_in(scene: Scene, user: Entry | None = None, scope: str = SCOPE) -> dict[str, Any]:
    form = {"grant_type": "password", "client_id": "app", "scope": scope, "password": PASSWORD}
    form["username"] = scene.shown_id(user or scene.user)
    answer = scene.new_browser().post("/dirws/oauth2/token", data=form)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def at_rest(scene: Scene, token: str) -> set[int]:
    browser, header = scene.new_browser(), {"Authorization": f"Bearer {token}"}
    paths = ("users", "currentuser", "oauthclients", "resources", "partitions", "accessroles", "groups")
    return {browser.get(f"/dirws/rest/{path}", headers=header).status_code for path in paths}


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@pytest.fixture
def service(scene: Scene) -> Service:
    return Service(scene)


# Client credentials


def test_a_client_is_the_user_of_its_own_token(scene: Scene, service: Service) -> None:
    """RFC 6749 4.4.3: no refresh token; given 5.2: it is in the access role."""
    answer = service.ask(scope=SCOPE)
    assert answer.json().keys() == {"access_token", "expires_in", "token_type"}
    assert answer.headers["cache-control"] == "no-store"
    user = info(scene, answer.json()["access_token"]).json()["user"]
    assert (user["name"], user["id"]) == ("service", "service@OAuthClients")
    with scene.database.begin() as cx:
        resources.remove_from_role(cx, scene.resource, service.entry)
    assert info(scene, answer.json()["access_token"]).status_code == 401
    assert error(service.ask(scope=SCOPE)) == (400, "unauthorized_client")


def test_a_service_that_is_disabled_is_over_with_the_next_request(scene: Scene, service: Service) -> None:
    token = service.token(scope=SCOPE)
    with scene.database.begin() as cx:
        decisions.set_disabled(cx, service.entry, True, scene.clock())
    assert info(scene, token).status_code == 410
    assert error(service.ask(scope=SCOPE)) == (401, "invalid_client")


def test_what_a_process_remembers_of_a_service_ends_with_what_it_says(scene: Scene, service: Service) -> None:
    """Decision 0057. Each is asked right after a success, which is remembered."""
    assert service.ask(scope=SCOPE).status_code == 200
    assert error(service.ask(scope=SCOPE, auth=("service", "wrong"))) == (401, "invalid_client")
    assert error(service.ask(scope=SCOPE, auth=None, client_id="service")) == (401, "invalid_client")
    former = service.secret
    service.secret, kept = new_secret()
    service.set(secret_hash=kept)
    assert error(service.ask(scope=SCOPE, auth=("service", former))) == (401, "invalid_client")
    assert service.ask(scope=SCOPE).status_code == 200
    service.set(denied_grants=("client_credentials",))
    assert error(service.ask(scope=SCOPE)) == (400, "unauthorized_client")
    service.set(denied_grants=(), allowed_scopes=(SCOPE,), access_seconds=50)
    assert service.ask(scope=SCOPE).json()["expires_in"] == 50
    service.set(allowed_scopes=("openid",))
    assert error(service.ask(scope=SCOPE)) == (400, "invalid_scope")
    service.set(allowed_scopes=())
    assert service.token(scope=SCOPE).count(".") == 0
    with scene.database.begin() as cx:
        resources.change(cx, scene.resource, token_format="ES256")
    assert service.token(scope=SCOPE).count(".") == 2
    with scene.database.begin() as cx:
        resources.change(cx, scene.resource, authentication_enabled=False)
    assert error(service.ask(scope=SCOPE)) == (400, "invalid_scope")


def test_without_a_scope_it_is_for_the_default_resource(scene: Scene, service: Service) -> None:
    answer = service.ask()
    assert answer.json().keys() == {"access_token", "expires_in", "token_type"}
    assert info(scene, answer.json()["access_token"]).status_code == 401
    service.set(default_resource=scene.resource.id)
    answer = service.ask()
    assert answer.json()["scope"] == SCOPE
    assert info(scene, answer.json()["access_token"]).status_code == 200


def test_a_public_client_and_one_that_is_denied_it_get_no_token_for_themselves(scene: Scene, service: Service) -> None:
    refused = scene.new_browser().post(
        "/dirws/oauth2/token", data={"grant_type": "client_credentials", "client_id": "app", "scope": SCOPE}
    )
    assert error(refused) == (400, "unauthorized_client")
    token = service.token(scope=SCOPE)
    service.set(denied_grants=("client_credentials",))
    assert info(scene, token).status_code == 410
    assert error(service.ask(scope=SCOPE)) == (400, "unauthorized_client")


def test_the_password_grant_is_a_switch_of_the_client(scene: Scene, service: Service) -> None:
    form = {"username": scene.shown_id(scene.user), "password": PASSWORD, "scope": SCOPE}
    assert service.ask("password", **form).status_code == 200
    service.set(denied_grants=("password",))
    assert error(service.ask("password", **form)) == (400, "unauthorized_client")


def test_a_service_administers_only_as_a_member_of_the_administrators(scene: Scene, service: Service) -> None:
    scope = scopes.spell(scene.names, scene.administration, ())
    assert error(service.ask(scope=scope)) == (400, "unauthorized_client")
    with scene.database.begin() as cx:
        group = next(each for each in resources.role_members(cx, scene.administration))
        memberships.add_member(cx, group, service.entry)
    token = service.token(scope=scope)
    assert at_rest(scene, token) == {200}
    with scene.database.begin() as cx:
        memberships.remove_members(cx, group, [service.entry])
    assert at_rest(scene, token) == {403}


# Tokens without a resource, and the administration


def test_a_token_without_a_resource_is_good_for_userinfo_and_nothing_else(scene: Scene) -> None:
    """The administrator signs in to a strange application with ``openid profile``."""
    token = sign_in(scene, scene.admin, "openid profile")["access_token"]
    assert userinfo(scene, token).json()["preferred_username"] == scene.shown_id(scene.admin)
    assert at_rest(scene, token) == {403}
    for resource in (scene.administration, scene.resource):
        assert info(scene, token, resource).status_code == 401
    answer = scene.new_browser().post("/dirws/rest/authentication/oauth/tokeninfo", json={"token": token})
    assert answer.status_code == 401


def test_nobody_gets_an_administrators_rights_by_exchange(scene: Scene) -> None:
    """Neither with a resource nor without one (decision 0111), and who becomes one later keeps what they had."""
    service = Service(scene, allow_impersonation=True, may_administer=True)
    allow(scene, scene.administration)
    for scope in (None, scopes.spell(scene.names, scene.administration, ())):
        assert error(service.exchange(scene.shown_id(scene.admin), scope)) == (400, "invalid_request")
    token = service.exchange(scene.shown_id(scene.user), None).json()["access_token"]
    with scene.database.begin() as cx:
        group = next(each for each in resources.role_members(cx, scene.administration))
        memberships.add_member(cx, group, scene.user)
    assert at_rest(scene, token) <= {401, 403}


# Client authentication


def test_a_secret_comes_by_basic_or_in_the_body_and_not_in_both(scene: Scene, service: Service) -> None:
    body = {"client_id": "service", "client_secret": service.secret, "scope": SCOPE}
    assert service.ask(auth=None, **body).status_code == 200
    assert error(service.ask(**body)) == (400, "invalid_request")
    wrong = service.ask(auth=("service", "no"), scope=SCOPE)
    assert error(wrong) == (401, "invalid_client")
    assert wrong.headers["www-authenticate"].startswith("Basic")
    assert error(service.ask(auth=None, client_id="service", scope=SCOPE)) == (401, "invalid_client")


def test_an_empty_bearer_beside_the_body_counts_as_absent(scene: Scene, service: Service) -> None:
    """facts 3.1: a client library sends one."""
    form = {"grant_type": "client_credentials", "client_id": "service", "client_secret": service.secret}
    answer = scene.new_browser().post("/dirws/oauth2/token", data=form, headers={"Authorization": "Bearer "})
    assert answer.status_code == 200


def test_basic_is_form_decoded_and_taken_as_sent_if_that_fails(scene: Scene, service: Service) -> None:
    secret = "a+b%2Bc d"
    with scene.database.begin() as cx:
        kept = scene.directory.gate.hash_new(secret)
        editing.set_password_hash(cx, service.entry, kept, scene.clock())
    assert service.ask(auth=("service", secret), scope=SCOPE).status_code == 200
    encoded = secret.replace("%", "%25").replace("+", "%2B").replace(" ", "+")
    assert service.ask(auth=("service", encoded), scope=SCOPE).status_code == 200
    assert error(service.ask(auth=("service", "a b+c d"), scope=SCOPE)) == (401, "invalid_client")


def keys(*several: RSAKey | ECKey, **more: str) -> str:
    return json.dumps({"keys": [{**key.as_dict(private=False), **more} for key in several]})


def assertion(scene: Scene, key: RSAKey | ECKey = RSA, alg: str = "RS256", **changes: Any) -> dict[str, str]:
    now = scene.clock() // SECOND
    claims = {"iss": "service", "sub": "service", "aud": ISSUER, "exp": now + 60, "iat": now, "jti": str(uuid.uuid4())}
    claims = {name: value for name, value in (claims | changes).items() if value is not None}
    text = jwt.encode({"alg": alg}, claims, key, algorithms=[alg])
    return {"client_assertion": text, "client_assertion_type": assertions.TYPE}


@pytest.fixture
def keyed(scene: Scene, service: Service) -> Service:
    service.set(authentication="private_key_jwt", jwks=keys(RSA))
    return service


def test_a_key_stands_for_a_secret(scene: Scene, keyed: Service) -> None:
    """RFC 7523 2.2, 3; the secret that the client had is of no use any more."""
    assert keyed.ask(auth=None, scope=SCOPE, **assertion(scene)).status_code == 200
    assert keyed.ask(auth=None, client_id="service", scope=SCOPE, **assertion(scene)).status_code == 200
    assert keyed.ask(auth=None, scope=SCOPE, **assertion(scene, alg="PS256")).status_code == 200
    curve = ECKey.generate_key("P-256")
    keyed.set(jwks=keys(curve, kid="1"))
    assert keyed.ask(auth=None, scope=SCOPE, **assertion(scene, curve, "ES256")).status_code == 200
    assert error(keyed.ask(scope=SCOPE)) == (401, "invalid_client")
    assert error(keyed.ask(auth=None, client_id="service", scope=SCOPE)) == (401, "invalid_client")
    assert error(keyed.ask(scope=SCOPE, **assertion(scene))) == (400, "invalid_request")


def test_a_client_by_key_has_no_secret(scene: Scene, service: Service) -> None:
    """What it was opens nothing, at no address (ours 24 takes a client's secret for a ticket)."""
    browser, path = scene.new_browser(), "/dirws/rest/authentication/credentials"
    credentials = {"userName": "service@OAuthClients", "password": service.secret}
    assert browser.post(path, json=credentials).status_code == 200
    service.set(authentication="private_key_jwt", jwks=keys(RSA))
    assert browser.post(path, json=credentials).status_code == 401
    with scene.database.begin() as cx, pytest.raises(BadAttribute):
        decisions.set_password(cx, service.entry, new_secret()[1], scene.clock())


def test_a_client_by_key_is_never_left_without_proof(scene: Scene, keyed: Service) -> None:
    with pytest.raises(BadAttribute):
        keyed.set(authentication="secret")
    assert error(keyed.ask(auth=None, client_id="service", scope=SCOPE)) == (401, "invalid_client")
    keyed.secret, kept = new_secret()
    with pytest.raises(BadAttribute):
        keyed.set(secret_hash=kept)
    keyed.set(authentication="secret", secret_hash=kept)
    assert keyed.ask(scope=SCOPE).status_code == 200
    assert error(keyed.ask(auth=None, scope=SCOPE, **assertion(scene))) == (401, "invalid_client")


def test_a_client_by_key_acts_as_a_user_like_one_with_a_secret(scene: Scene, acting: Service) -> None:
    acting.set(authentication="private_key_jwt", jwks=keys(RSA))
    answer = acting.exchange(scene.shown_id(scene.user), auth=None, **assertion(scene))
    assert answer.status_code == 200, answer.text
    assert info(scene, answer.json()["access_token"]).json()["user"]["name"] == "alice"


def test_an_assertion_that_no_client_can_have_signed_names_none(scene: Scene, keyed: Service) -> None:
    """No database is asked for it: PostgreSQL takes no text with NUL."""
    shown = assertion(scene, iss="a\0", sub="a\0")
    assert error(keyed.ask(auth=None, scope=SCOPE, **shown)) == (400, "invalid_request")


def test_an_assertion_that_was_taken_is_known_until_no_server_would_take_it(scene: Scene, keyed: Service) -> None:
    table = directory_tables.tables["assertions"]
    shown = assertion(scene)
    assert keyed.ask(auth=None, scope=SCOPE, **shown).status_code == 200
    for seconds, kept in ((60, 1), (30, 1), (1, 0)):
        scene.clock.advance(seconds)
        with scene.database.begin() as cx:
            sessions.purge(cx, grant_purge.PURGE_START, scene.clock(), 10)
            assert cx.scalar(sa.select(sa.func.count()).select_from(table)) == kept
        assert error(keyed.ask(auth=None, scope=SCOPE, **shown)) == (401, "invalid_client")


def test_an_assertion_that_says_when_it_was_made_is_good_for_five_minutes(scene: Scene, keyed: Service) -> None:
    """Whatever it says: Authlib's are made for an hour. Until then it is known, and taken once."""
    now = scene.clock() // SECOND
    first, second, ahead = (assertion(scene, exp=now + 3600, iat=iat) for iat in (now, now, now + 20))
    assert keyed.ask(auth=None, scope=SCOPE, **first).status_code == 200
    assert keyed.ask(auth=None, scope=SCOPE, **ahead).status_code == 200
    scene.clock.advance(299)
    assert keyed.ask(auth=None, scope=SCOPE, **second).status_code == 200
    with scene.database.begin() as cx:
        sessions.purge(cx, grant_purge.PURGE_START, scene.clock(), 10)
    for used in (first, second, ahead):
        assert error(keyed.ask(auth=None, scope=SCOPE, **used)) == (401, "invalid_client")
    scene.clock.advance(1)
    late = assertion(scene, exp=now + 3600, iat=now)
    assert error(keyed.ask(auth=None, scope=SCOPE, **late)) == (401, "invalid_client")


def test_an_assertion_is_taken_once(scene: Scene, keyed: Service) -> None:
    """failures A16"""
    for once in (assertion(scene), assertion(scene, jti="x")):
        assert keyed.ask(auth=None, scope=SCOPE, **once).status_code == 200
        assert error(keyed.ask(auth=None, scope=SCOPE, **once)) == (401, "invalid_client")
        assert error(keyed.post("introspect", auth=None, token="x", **once)) == (401, "invalid_client")
    again = assertion(scene, jti="x", exp=scene.clock() // SECOND + 100)
    assert error(keyed.ask(auth=None, scope=SCOPE, **again)) == (401, "invalid_client")


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.test"},
        {"aud": f"{ISSUER}/oauth2/token"},
        {"aud": [ISSUER, "https://other.test"]},
        {"aud": None},
        {"iss": "app"},
        {"sub": "app"},
        {"exp": None},
        {"exp": 1},
        {"exp": 4_000_000_000, "iat": None},
        {"jti": None},
        {"jti": ""},
        {"jti": "x" * 300},
        {"jti": 5},
        {"nbf": 4_000_000_000},
        {"padding": "x" * 9000},
    ],
    ids=repr,
)
def test_what_an_assertion_says_must_be_right(scene: Scene, keyed: Service, changes: dict[str, Any]) -> None:
    assert error(keyed.ask(auth=None, client_id="service", **assertion(scene, **changes))) == (401, "invalid_client")


def test_no_other_key_or_algorithm_signs_an_assertion(scene: Scene, keyed: Service) -> None:
    good = assertion(scene)
    head, claims, signature = good["client_assertion"].split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for text in (f"{unsigned}.{claims}.", f"{head}.{claims}.", f"{unsigned}.{claims}.{signature}", "x", "a.b.c", ".."):
        sent = good | {"client_assertion": text}
        assert error(keyed.ask(auth=None, client_id="service", **sent)) == (401, "invalid_client"), text
    assert error(keyed.ask(auth=None, client_id="service", **assertion(scene, OTHER))) == (401, "invalid_client")
    wrong_type = good | {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}
    assert error(keyed.ask(auth=None, **wrong_type)) == (401, "invalid_client")
    assert error(keyed.ask(auth=None, client_id="app", **good)) == (401, "invalid_client")
    assert keyed.ask(auth=None, **good).status_code == 200


def test_the_token_endpoint_is_an_audience_where_the_client_says_so(scene: Scene, keyed: Service) -> None:
    keyed.set(takes_endpoint_audience=True)
    for path in ("/oauth2/token", "/login", ""):
        assert keyed.ask(auth=None, **assertion(scene, aud=ISSUER + path)).status_code == 200, path


def test_only_public_keys_of_a_good_size_are_taken(scene: Scene, service: Service) -> None:
    private = json.dumps({"keys": [RSA.as_dict(private=True)]})
    weak = keys(RSAKey.generate_key(1024))
    for jwks in (
        "",
        "x",
        "{}",
        '{"keys": []}',
        private,
        weak,
        '{"keys": [{"kty": "oct", "k": "AAAA"}]}',
        keys(RSA) * 2,
    ):
        with pytest.raises(Exception, match=r"key"):
            service.set(authentication="private_key_jwt", jwks=jwks)


def test_other_keys_end_what_the_former_ones_got(scene: Scene, keyed: Service) -> None:
    token = keyed.ask(auth=None, scope=SCOPE, **assertion(scene)).json()["access_token"]
    keyed.set(jwks=keys(OTHER))
    assert info(scene, token).status_code == 410
    assert error(keyed.ask(auth=None, **assertion(scene))) == (401, "invalid_client")
    assert keyed.ask(auth=None, **assertion(scene, OTHER)).status_code == 200


# Introspection, revocation, userinfo


def test_introspection_tells_what_rfc_7662_lists(scene: Scene, service: Service) -> None:
    token = service.token(scope=f"{SCOPE} groups")
    told = service.introspect(token)
    now = scene.clock() // SECOND
    assert told == {
        "active": True,
        "scope": f"{SCOPE} groups",
        "scp": [SCOPE, "groups"],
        "client_id": "service",
        "username": "service@OAuthClients",
        "token_type": "Bearer",
        "sub": service.entry.uuid,
        "aud": f"urn:uuid:{scene.resource.id}",
        "iss": ISSUER,
        "iat": now,
        "exp": now + 3600,
        "jti": info(scene, token).json()["token_id"],
        "grp": [],
    }
    scene.clock.advance(3600)
    assert service.introspect(token) == {"active": False}


def test_introspection_needs_a_secret(scene: Scene, service: Service) -> None:
    token = service.token(scope=SCOPE)
    for auth, form in (
        (None, {"client_id": "app"}),
        (("service", "no"), {}),
        ((scene.resource.id, "no"), {}),
        (None, {}),
    ):
        assert service.post("introspect", auth=auth, token=token, **form).status_code in (400, 401)
    assert error(service.post("introspect")) == (400, "invalid_request")


def test_a_resource_asks_about_its_own_tokens_and_of_no_other(scene: Scene, service: Service) -> None:
    """failures A11, A12."""
    with scene.database.begin() as cx:
        other = resources.add(cx, scene.names, "Other", scene.clock())
        secret = resources.activate(cx, other.id, scene.clock())
        resources.deactivate(cx, scene.resource)
        own = resources.activate(cx, scene.resource.id, scene.clock())
    token = service.token(scope=SCOPE)
    assert service.introspect(token, auth=(scene.resource.id, own))["active"] is True
    assert service.introspect(token, auth=(scene.resource.id.upper(), own))["active"] is True
    assert service.introspect(token, auth=(other.id, secret)) == {"active": False}
    assert service.introspect("x", auth=(other.id, secret)) == {"active": False}
    stranger = Service(scene, "stranger")
    assert stranger.introspect(token) == {"active": False}
    stranger.set(default_resource=scene.resource.id)
    assert stranger.introspect(token)["active"] is True


@pytest.mark.parametrize("decision", ["disabled", "locked", "deleted", "out of the role"])
def test_introspection_and_userinfo_obey_with_the_next_request(scene: Scene, decision: str) -> None:
    service = Service(scene, default_resource=scene.resource.id)
    token = sign_in(scene, scope=f"openid {SCOPE}")["access_token"]
    assert service.introspect(token)["sub"] == scene.user.uuid
    assert userinfo(scene, token).status_code == 200
    scene.alter(decision)
    assert service.introspect(token) == {"active": False}
    assert userinfo(scene, token).status_code == 401


def test_only_the_client_that_holds_a_token_revokes_it(scene: Scene, service: Service) -> None:
    """failures A9"""
    """RFC 7009 2.1, 2.2; failures A9: the wrong client gets no effect and no oracle."""
    token, issued = service.token(scope=SCOPE), sign_in(scene)
    stranger = Service(scene, "stranger")
    answers = [stranger.post("revoke", token=each) for each in (token, issued["refresh_token"], "garbage")]
    assert {(answer.status_code, answer.content) for answer in answers} == {(200, b"")}
    assert info(scene, token).status_code == 200
    assert service.post("revoke", token=token, token_type_hint="access_token").status_code == 200
    assert info(scene, token).status_code == 410
    ended = stranger.post("revoke", auth=None, client_id="app", token=issued["refresh_token"])
    assert ended.status_code == 200
    assert info(scene, issued["access_token"]).status_code == 410
    assert error(stranger.post("revoke", auth=("service", "no"), token=token)) == (401, "invalid_client")


def test_userinfo_tells_what_the_scopes_open(scene: Scene) -> None:
    with scene.database.begin() as cx:
        about: dict[str, list[str | int]] = {"mail": ["a@example.org"], "givenName": ["Alice"], "sn": ["Ames"]}
        attributes.put(cx, scene.names, scene.user, about, scene.clock())
    told = {scope: userinfo(scene, sign_in(scene, scope=scope)["access_token"]).json() for scope in (
        "openid", "openid email", "openid profile", "openid groups roles groupids")}  # fmt: skip
    sub = {"sub": scene.user.uuid}
    assert told["openid"] == sub
    assert told["openid email"] == sub | {"email": "a@example.org"}
    profile = told["openid profile"]
    assert (profile["given_name"], profile["family_name"], profile["pid"]) == ("Alice", "Ames", "People")
    assert profile["preferred_username"] == profile["uid"] == "alice@People"
    assert told["openid groups roles groupids"] == sub | {
        "grp": ["staff@People"],
        "role": [],
        "groupids": [scene.group.uuid],
    }


def test_userinfo_refuses_as_rfc_6750_says(scene: Scene) -> None:
    without = userinfo(scene, sign_in(scene)["access_token"])
    assert (without.status_code, without.headers["www-authenticate"]) == (403, 'Bearer error="insufficient_scope"')
    wrong = userinfo(scene, "x")
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"')
    none = scene.new_browser().get("/dirws/oauth2/userinfo")
    assert (none.status_code, none.headers["www-authenticate"]) == (401, "Bearer")
    token = sign_in(scene, scope="openid")["access_token"]
    assert scene.new_browser().post("/dirws/oauth2/userinfo", data={"access_token": token}).status_code == 200


# Metadata


def test_what_the_metadata_names_is_offered_and_what_is_offered_is_named(scene: Scene) -> None:
    browser = scene.new_browser("https://alias.test")
    below = ("/dirws/.well-known/openid-configuration", "/dirws/.well-known/oauth-authorization-server")
    root = ("/.well-known/oauth-authorization-server/dirws", "/.well-known/openid-configuration/dirws")
    answers = [browser.get(path) for path in (*below, *root, "/dirws/oauth2/.well-known/openid-configuration")]
    assert {answer.status_code for answer in answers} == {200}
    documents = [answer.json() for answer in answers]
    assert all(document == documents[0] for document in documents)
    (told, *_) = documents
    assert told["issuer"] == ISSUER
    paths = {route.path for route in scene.routes}
    for path, member in discovery.ENDPOINTS.items():
        assert (told.get(member) == ISSUER + path) is (f"/dirws{path}" in paths), path
        if member in told:
            assert browser.options(told[member]).status_code in (204, 405), member
    assert told["grant_types_supported"] == list(grants.GRANTS)
    assert not {"implicit", "token", "id_token"} & {*told["grant_types_supported"], *told["response_types_supported"]}
    assert told["request_uri_parameter_supported"] is False
    offered = {path.removeprefix("/dirws") for path in paths if path.startswith("/dirws/oauth2/")}
    assert offered - set(discovery.ENDPOINTS) <= discovery.UNNAMED, "what is offered is named"
    for method in told["token_endpoint_auth_methods_supported"]:
        assert method in {"client_secret_basic", "client_secret_post", "private_key_jwt", "none"}


def test_the_key_set_has_keys_before_anything_is_signed(scene: Scene) -> None:
    answer = scene.new_browser().get("/dirws/oauth2/jwks")
    assert {key["alg"] for key in answer.json()["keys"]} == {"RS256", "ES256"}
    assert answer.headers["cache-control"] == "public, max-age=900"
    assert answer.json() == scene.new_browser().get("/dirws/oauth2/jwks").json()


# Token exchange


def allow(scene: Scene, resource: Resource, allowed: bool = True) -> None:
    with scene.database.begin() as cx:
        current = resources.by_id(cx, resource.id)
        resource_decisions.set_impersonation(cx, current, allowed, (), scene.clock())


@pytest.fixture
def acting(scene: Scene) -> Service:
    allow(scene, scene.resource)
    return Service(scene, allow_impersonation=True)


def test_a_client_acts_as_a_user_where_both_switches_allow_it(scene: Scene, acting: Service) -> None:
    """facts 3.1: the reply fields, and the text of the refusal."""
    answer = acting.exchange(scene.shown_id(scene.user))
    assert answer.json().keys() == {"access_token", "issued_token_type", "token_type", "expires_in"}
    assert answer.json()["issued_token_type"] == ACCESS
    token = answer.json()["access_token"]
    assert info(scene, token).json()["user"]["name"] == "alice"
    acting.set(allow_impersonation=False)
    assert info(scene, token).status_code == 410
    refused = acting.exchange(scene.shown_id(scene.user))
    assert refused.json()["error_description"] == "User cannot be impersonated in resource My API"
    assert error(refused) == (400, "invalid_request")


def test_a_switch_that_is_turned_off_ends_it_at_the_resource_too(scene: Scene, acting: Service) -> None:
    token = acting.exchange(scene.shown_id(scene.user)).json()["access_token"]
    allow(scene, scene.resource, False)
    assert info(scene, token).status_code == 410
    allow(scene, scene.resource)
    assert info(scene, token).status_code == 410, "nothing revives"


@pytest.mark.parametrize("who", ["nobody@People", "bob@People", "admin@directory.admin", "app@OAuthClients"])
def test_of_the_user_a_refusal_tells_nothing(scene: Scene, acting: Service, who: str) -> None:
    refused = acting.exchange(who)
    assert refused.json() == {
        "error": "invalid_request",
        "error_description": "User cannot be impersonated in resource My API",
    }


def test_an_exchange_gives_no_refresh_token_and_signs_nobody_in(scene: Scene, acting: Service) -> None:
    assert error(acting.exchange(scene.shown_id(scene.user), f"openid {SCOPE}")) == (400, "invalid_scope")
    scope = scopes.spell(scene.names, scene.administration, ())
    assert error(acting.exchange(scene.shown_id(scene.user), scope)) == (400, "invalid_scope")
    for form in ({"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, {"kind": "x"}):
        assert error(acting.exchange(scene.shown_id(scene.user), **form)) == (400, "invalid_request")
    assert error(acting.exchange(scene.shown_id(scene.user), audience="x")) == (400, "invalid_target")
    public = acting.exchange(scene.shown_id(scene.user), auth=None, client_id="app")
    assert error(public) == (400, "unauthorized_client")


def test_a_users_token_is_exchanged_by_who_holds_it_and_ends_with_it(scene: Scene, acting: Service) -> None:
    subject = acting.ask(
        "password", username=scene.shown_id(scene.user), password=PASSWORD, scope="openid"
    ).json()["access_token"]  # fmt: skip
    token = acting.exchange(subject, kind=ACCESS).json()["access_token"]
    assert info(scene, token).json()["user"]["name"] == "alice"
    assert error(acting.exchange(token, kind=ACCESS)) == (400, "invalid_request")
    assert error(acting.exchange(sign_in(scene)["access_token"], kind=ACCESS)) == (400, "invalid_request")
    assert acting.post("revoke", token=subject).status_code == 200
    assert info(scene, token).status_code == 410
    assert error(acting.exchange(subject, kind=ACCESS)) == (400, "invalid_request")


def test_delegation_names_the_actor_who_must_still_be_there(scene: Scene, acting: Service) -> None:
    """RFC 8693 4.1."""
    own = {"actor_token": acting.token(), "actor_token_type": ACCESS}
    token = acting.exchange(scene.shown_id(scene.user), **own).json()["access_token"]
    assert acting.introspect(token)["act"] == {"sub": acting.entry.uuid}
    assert "act" not in acting.introspect(acting.exchange(scene.shown_id(scene.user)).json()["access_token"])
    others = {"actor_token": sign_in(scene)["access_token"], "actor_token_type": ACCESS}
    assert error(acting.exchange(scene.shown_id(scene.user), **others)) == (400, "invalid_request")
    assert error(acting.exchange(scene.shown_id(scene.user), actor_token="x")) == (400, "invalid_request")


# Signed tokens


def signed(scene: Scene, token_format: str = "RS256", **changes: Any) -> None:
    with scene.database.begin() as cx:
        resources.change(cx, resources.by_id(cx, scene.resource.id), token_format=token_format, **changes)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_resource_may_have_signed_tokens(scene: Scene, service: Service, algorithm: str) -> None:
    """RFC 9068 2.1, 2.2; facts 3.5; wherever an opaque token goes, a JWT goes."""
    signed(scene, algorithm, address="https://api.test/")
    answer = sign_in(scene, scope=f"{SCOPE} groups profile")
    assert answer["expires_in"] == 300
    token = answer["access_token"]
    published = KeySet.import_key_set(scene.new_browser().get("/dirws/oauth2/jwks").json())
    verified = jwt.decode(token, published, algorithms=[algorithm])
    assert verified.header["typ"] == "at+jwt"
    told, now = verified.claims, scene.clock() // SECOND
    spelt = f"{SCOPE} profile groups"
    assert {name: told[name] for name in ("iss", "aud", "sub", "client_id", "scope", "scp", "grp", "iat", "exp")} == {
        "iss": ISSUER,
        "aud": "https://api.test/",
        "sub": scene.user.uuid,
        "client_id": "app",
        "scope": spelt,
        "scp": spelt.split(),
        "grp": ["staff@People"],
        "iat": now,
        "exp": now + 300,
    }
    assert told["jti"] == info(scene, token).json()["token_id"]
    service.set(default_resource=scene.resource.id)
    assert service.introspect(token)["jti"] == told["jti"]
    refreshed = scene.new_browser().post(
        "/dirws/login",
        data={"grant_type": "refresh_token", "client_id": "app", "refresh_token": answer["refresh_token"]},
    )
    again = jwt.decode(refreshed.json()["access_token"], published, algorithms=[algorithm]).claims
    assert (again["sub"], again["exp"]) == (told["sub"], now + 300)
    assert scene.new_browser().delete(f"/dirws/v1/authentication/oauth/{token}").status_code == 204
    assert info(scene, token).status_code == info(scene, refreshed.json()["access_token"]).status_code == 410


def test_a_signed_token_that_ended_is_410_and_a_forged_one_401(scene: Scene, service: Service) -> None:
    signed(scene, token_seconds=600)
    token = service.token(scope=SCOPE)
    head, claims, signature = token.split(".")
    assert info(scene, f"{head}.{claims}.{signature[:-4]}AAAA").status_code == 401
    scene.clock.advance(600)
    assert info(scene, token).status_code == 410
    with scene.database.begin() as cx:
        signing_keys.rotate(cx, [signing_keys.generate("RS256")], scene.clock(), at_once=True)
    assert info(scene, token).status_code == 410, "also under a retired key"
    assert error(service.post("introspect", auth=("service", "x"), token=token)) == (401, "invalid_client")
    assert service.introspect(token) == {"active": False}


def test_no_signed_token_is_issued_that_we_could_not_read(scene: Scene) -> None:
    signed(scene)
    with scene.database.begin() as cx:
        partition = entries.find_partition(cx, scene.names, "People")
        for number in range(50):
            group = editing.add_group(cx, partition, f"{number:0120}", scene.clock())
            memberships.add_member(cx, group, scene.user)
    issued = sign_in(scene)
    assert info(scene, issued["access_token"]).status_code == 200
    form = {"grant_type": "password", "client_id": "app", "password": PASSWORD, "scope": f"{SCOPE} groups"}
    form["username"] = scene.shown_id(scene.user)
    refused = scene.new_browser().post("/dirws/oauth2/token", data=form)
    assert error(refused) == (400, "invalid_scope")
    assert "too many groups" in refused.json()["error_description"]
    with scene.database.read() as cx:
        assert len(tokens.live_grants(cx, "user", scene.user.id, scene.clock(), 10)) == 1, "and no grant is left of it"


def test_an_id_token_or_another_jwt_of_ours_is_no_access_token(scene: Scene, service: Service) -> None:
    with scene.database.begin() as cx:
        text = signing_keys.signer(cx, scene.clock()).sign({"sub": scene.admin.uuid, "jti": str(uuid.uuid4())}, "JWT")
    assert info(scene, text).status_code == 401
    assert userinfo(scene, text).status_code == 401
    assert at_rest(scene, text) == {401}


def test_tokens_of_the_administration_are_opaque(scene: Scene) -> None:
    with scene.database.begin() as cx, pytest.raises(Exception, match="opaque"):
        resources.change(cx, scene.administration, token_format="RS256")
    for wrong in ({"token_format": "HS256"}, {"token_seconds": 3601}, {"address": "x"}, {"address": "https://a/#b"}):
        with scene.database.begin() as cx, pytest.raises(Exception, match=r"."):
            resources.change(cx, scene.resource, **wrong)
