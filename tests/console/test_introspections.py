"""What is remembered of an introspection is told to whom it was told, and ends with the token and with the asker."""

from collections.abc import Callable
from urllib.parse import urlencode

import httpx
import pytest

from bench.peers.tokens import basic
from muniment.directory.api import fast_path
from muniment.directory.entries import editing, resources
from muniment.directory.sign_in.passwords import new_secret
from tests.console.conftest import Scene
from tests.console.test_machine_grants import Service
from tests.office import HASH, PASSWORD, SCOPE

FORM = (b"content-type", b"application/x-www-form-urlencoded")


def ask(scene: Scene, token: str, *shown: str, **form: str) -> httpx.Response:
    """Ask with these Authorization headers."""
    headers = [("Content-Type", "application/x-www-form-urlencoded"), *(("Authorization", each) for each in shown)]
    return scene.new_browser().post("/dirws/oauth2/introspect", content=body(token, **form), headers=headers)


def body(token: str, **form: str) -> bytes:
    return urlencode({"token": token, **form}).encode()


def remembered(scene: Scene, token: str, *shown: str, **form: str) -> bytes | None:
    """What the front would answer such a request, before any endpoint."""
    scope = {"headers": [FORM, *((b"authorization", each.encode()) for each in shown)]}

    async def answer() -> bytes | None:
        return await fast_path.INTROSPECTION.answer(scope, body(token, **form), scene.directory)

    return scene.loop.run(answer())


@pytest.fixture
def service(scene: Scene) -> Service:
    return Service(scene)


def header(service: Service) -> str:
    return basic(service.name, service.secret)


def test_a_living_token_is_answered_from_memory_with_the_same_bytes(scene: Scene, service: Service) -> None:
    token, shown = service.token(scope=SCOPE), header(service)
    assert remembered(scene, token, shown) is None
    answer = ask(scene, token, shown)
    assert answer.json()["active"] is True
    assert remembered(scene, token, shown) == answer.content
    in_body = {"client_id": service.name, "client_secret": service.secret}
    assert remembered(scene, token, **in_body) is None
    answer = ask(scene, token, **in_body)
    assert answer.json()["active"] is True
    assert remembered(scene, token, **in_body) == answer.content


def revoke(scene: Scene, _service: Service, token: str) -> None:
    assert scene.new_browser().delete(f"/dirws/v1/authentication/oauth/{token}").status_code == 204


def change_secret(_scene: Scene, service: Service, _token: str) -> None:
    service.set(secret_hash=new_secret()[1])


def disable(scene: Scene, service: Service, _token: str) -> None:
    with scene.database.begin() as cx:
        editing.set_disabled(cx, service.entry, True, scene.clock())


def leave_role(scene: Scene, service: Service, _token: str) -> None:
    with scene.database.begin() as cx:
        resources.remove_from_role(cx, scene.resource, service.entry)


def expire(scene: Scene, _service: Service, _token: str) -> None:
    scene.clock.advance(3600)


@pytest.mark.parametrize(
    ("end", "status"), [(revoke, 200), (change_secret, 401), (disable, 401), (leave_role, 200), (expire, 200)]
)
def test_what_ends_is_forgotten_with_the_next_question(
    scene: Scene, service: Service, end: Callable[[Scene, Service, str], None], status: int
) -> None:
    token, shown = service.token(scope=SCOPE), header(service)
    ask(scene, token, shown)
    assert remembered(scene, token, shown) is not None
    end(scene, service, token)
    assert remembered(scene, token, shown) is None
    answer = ask(scene, token, shown)
    assert answer.status_code == status
    assert status != 200 or answer.json() == {"active": False}
    assert remembered(scene, token, shown) is None, "a refusal is never remembered"


def test_memory_holds_no_digest_of_a_password(scene: Scene, service: Service) -> None:
    service.set(secret_hash=HASH)
    token, shown = service.token(auth=(service.name, PASSWORD), scope=SCOPE), basic(service.name, PASSWORD)
    assert ask(scene, token, shown).json()["active"] is True
    assert remembered(scene, token, shown) is None


def test_a_resource_is_answered_from_memory_until_it_has_another_secret(scene: Scene, service: Service) -> None:
    token = service.token(scope=SCOPE)
    with scene.database.begin() as cx:
        resources.deactivate(cx, scene.resource)
        own = resources.activate(cx, scene.resource.id, scene.clock())
    shown = basic(scene.resource.id, own)
    answer = ask(scene, token, shown)
    assert answer.json()["active"] is True
    assert remembered(scene, token, shown) == answer.content
    with scene.database.begin() as cx:
        resources.deactivate(cx, scene.resource)
        resources.activate(cx, scene.resource.id, scene.clock())
    assert remembered(scene, token, shown) is None
    assert ask(scene, token, shown).status_code == 401


def test_what_one_asker_was_told_is_told_to_no_other(scene: Scene, service: Service) -> None:
    token, shown = service.token(scope=SCOPE), header(service)
    assert ask(scene, token, shown).json()["active"] is True
    for other in ((), ("Bearer",), (basic(service.name, "no"),)):
        assert remembered(scene, token, *other) is None
        assert ask(scene, token, *other).status_code in (400, 401)
    assert remembered(scene, token, shown, token_type_hint="access_token") is None
