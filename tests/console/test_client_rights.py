"""What an administrator takes from an OAuth client ends, and what they say of its proof holds (decision 0118)."""

import json
from typing import Any

import httpx
import msgspec
import pytest

from muniment.directory.entries import entries, memberships, oauth_clients
from muniment.directory.oauth import scopes
from tests.console.conftest import Application, Scene, refused
from tests.console.test_devices import Device
from tests.console.test_machine_grants import RSA, Service, assertion, at_rest, info, keys, sign_in
from tests.office import SCOPE

BASIC, POST, BY_KEY = "client_secret_basic", "client_secret_post", "private_key_jwt"
KEYS = json.loads(keys(RSA))


class Clients:
    """An administrator's program, which changes the client ``service`` by REST."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        token = sign_in(scene, scene.admin, administration(scene))["access_token"]
        self.header = {"Authorization": f"Bearer {token}"}

    def patch(self, **body: Any) -> httpx.Response:
        path = "/dirws/rest/oauthclients/service"
        return self.scene.new_browser().patch(path, json=body, headers=self.header)

    def done(self, **body: Any) -> dict[str, Any]:
        answer = self.patch(**body)
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown


def administration(scene: Scene) -> str:
    return scopes.spell(scene.names, scene.administration, ())


def proves(scene: Scene, secret: str | None = None, **form: Any) -> bool:
    """Whether the token endpoint takes this proof of the client, or None as that of a public one."""
    sent = {"client_id": "service", "grant_type": "password", "scope": SCOPE, "client_secret": secret, **form}
    sent |= {"username": "nobody@People", "password": "x"}
    asked = {name: value for name, value in sent.items() if value is not None}
    told = scene.new_browser().post("/dirws/oauth2/token", data=asked).json()["error"]
    assert told in ("invalid_client", "invalid_grant")
    return bool(told == "invalid_grant")


def by_key(scene: Scene) -> bool:
    return proves(scene, **assertion(scene))


@pytest.fixture
def service(scene: Scene) -> Service:
    return Service(scene)


@pytest.fixture
def clients(scene: Scene, service: Service) -> Clients:
    return Clients(scene)


# How a client proves itself


@pytest.mark.parametrize("body", [{"tokenEndpointAuthMethod": BASIC}, {"tokenEndpointAuthMethod": POST}])
@pytest.mark.parametrize("confidential", [{}, {"confidential": True}])
def test_a_client_that_gives_up_its_key_gets_a_secret(
    scene: Scene, clients: Clients, body: dict[str, Any], confidential: dict[str, Any]
) -> None:
    assert clients.done(tokenEndpointAuthMethod=BY_KEY, jwks=KEYS)["secret"] is None
    assert by_key(scene)
    shown = clients.done(**body, **confidential)
    assert (shown["tokenEndpointAuthMethod"], shown["confidential"]) == (BASIC, True)
    assert proves(scene, shown["secret"])
    assert not proves(scene)
    assert not by_key(scene)


def test_the_way_that_is_named_is_the_way_that_counts(scene: Scene, clients: Clients, service: Service) -> None:
    """Each step from the one before."""
    assert clients.done(tokenEndpointAuthMethod="none")["confidential"] is False
    assert proves(scene)
    shown = clients.done(tokenEndpointAuthMethod=BASIC)
    assert shown["confidential"] is True
    assert proves(scene, shown["secret"])
    assert clients.done(tokenEndpointAuthMethod=POST)["secret"] is None, "it has one"
    assert proves(scene, shown["secret"])
    keyed = clients.done(tokenEndpointAuthMethod=BY_KEY, jwks=KEYS)
    assert clients.done(**keyed) == keyed, "what was shown changes nothing"
    assert (keyed["confidential"], proves(scene, shown["secret"]), by_key(scene)) == (True, False, True)
    assert clients.done(confidential=True)["tokenEndpointAuthMethod"] == BY_KEY
    assert clients.done(secret="my own")["tokenEndpointAuthMethod"] == BASIC
    assert proves(scene, "my own")
    clients.done(tokenEndpointAuthMethod=BY_KEY)
    assert clients.done(confidential=False)["tokenEndpointAuthMethod"] == "none"
    assert proves(scene)


@pytest.mark.parametrize(
    "body",
    [
        {"tokenEndpointAuthMethod": "none", "confidential": True},
        {"tokenEndpointAuthMethod": "none", "secret": "x"},
        {"tokenEndpointAuthMethod": BASIC, "confidential": False},
        {"tokenEndpointAuthMethod": BY_KEY, "confidential": False},
        {"tokenEndpointAuthMethod": BY_KEY, "secret": "x"},
        {"secret": "x", "confidential": False},
    ],
)
def test_what_contradicts_itself_changes_nothing(
    scene: Scene, clients: Clients, service: Service, body: dict[str, Any]
) -> None:
    answer = clients.patch(jwks=KEYS, **body)
    assert (answer.status_code, "contradicts itself" in answer.text) == (400, True), answer.text
    assert proves(scene, service.secret)


# What is taken away ends


def test_a_client_that_may_not_administer_any_more_loses_what_it_had_there(scene: Scene, app: Application) -> None:
    app.settings(may_administer=True)
    with scene.database.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), scene.user)
    asked = administration(scene)
    by_code = app.tokens(scope=asked)["access_token"]
    elsewhere = app.tokens()["access_token"]
    by_password = sign_in(scene, scene.admin, asked)["access_token"]
    code, device = app.code(scope=asked), Device(app, scope=asked)
    device.decide("allow")
    assert at_rest(scene, by_code) == at_rest(scene, by_password) == {200}
    app.settings(may_administer=False)
    app.settings(may_administer=True)
    assert at_rest(scene, by_code) == {401}, "nothing revives it"
    assert refused(app.redeem(code)) == refused(device.later()) == "invalid_grant"
    assert at_rest(scene, by_password) == {200}, "a password opens it by any client (given 4.1)"
    assert info(scene, elsewhere).status_code == 200


@pytest.mark.parametrize("narrower", [("openid",), (SCOPE,)])
def test_a_client_that_may_ask_for_less_loses_what_it_asked_for(
    scene: Scene, app: Application, narrower: tuple[str, ...]
) -> None:
    app.settings(allowed_scopes=(SCOPE, "openid"))
    by_password = sign_in(scene)["access_token"]
    token, code, device = app.tokens()["access_token"], app.code(), Device(app)
    device.decide("allow")
    app.settings(allowed_scopes=(SCOPE, "openid", "email"))
    assert info(scene, token).status_code == 200, "more ends nothing"
    app.settings(allowed_scopes=narrower)
    assert info(scene, token).status_code == 410
    app.settings(allowed_scopes=())
    assert refused(app.redeem(code)) == refused(device.later()) == "invalid_grant", "nothing revives them"
    assert info(scene, by_password).status_code == 200, "given 4.1 knows no such bound"


def test_a_default_resource_that_is_another_takes_the_former_one_away(scene: Scene, service: Service) -> None:
    """It needs no entry in ``allowed_scopes`` while it is the default."""
    service.set(allowed_scopes=("openid",), default_resource=scene.resource.id)
    token = service.token()
    service.set(default_resource="")
    assert info(scene, token).status_code == 410


@pytest.mark.parametrize("way", ["code", "device"])
@pytest.mark.parametrize("right", ["may_administer", "allowed_scopes"])
def test_a_clients_rights_are_asked_again_when_it_fetches_its_tokens(
    scene: Scene, app: Application, way: str, right: str
) -> None:
    """Also if no decision has ended what it waits for."""
    with scene.database.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), scene.user)
    app.settings(may_administer=True)
    scope = administration(scene) if right == "may_administer" else SCOPE
    device = Device(app, scope=scope) if way == "device" else None
    code = app.code(scope=scope) if device is None else device.decide("allow")
    less: dict[str, Any] = {"may_administer": False} if right == "may_administer" else {"allowed_scopes": ("openid",)}
    with scene.database.begin() as cx:
        client = entries.find_client(cx, "app")
        former = oauth_clients.read(cx, [client.id])[client.id]
        oauth_clients.write(cx, client, msgspec.structs.replace(former, **less), scene.clock())
    assert refused(app.redeem(str(code)) if device is None else device.later()) == "invalid_grant"
