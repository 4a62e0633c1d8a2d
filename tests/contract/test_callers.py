"""Callers are the same people, and refused alike, whether the directory is asked in this process or over HTTPS."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muniment.ground import certificates
from muniment.ground.clock import Instant
from muniment.ground.refusals import Overloaded, Refusal
from muniment.integration.people_elsewhere import PeopleElsewhere
from muniment.repository.api.callers.callers import Callers
from muniment.repository.api.callers.credentials import Pair, RequestCredentials
from muniment.repository.api.callers.over_http import DirectoryElsewhere
from muniment.repository.api.callers.pairs import AccessToken, PairSignIn
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.store.filters.tree import EVERYTHING
from muniment.repository.store.people import PeopleFilter
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from tests.waiting import PATIENCE

SUFFIX = "ou=IdentityProviders,dc=identity,dc=muniment"
RESOURCE = "6f2f6ab0-0000-4000-8000-000000000001"
ADMINISTRATORS = ("administrators@directory.admin",)
OAUTH = "/dirws/v1/authentication/oauth"


def tokeninfo(user_id: str, *groups: str) -> bytes:
    """Write the document of given 2.6 with what callers read and something of what they don't."""
    locations = [f"cn={group},ou=Root,ou=Staff,{SUFFIX}" for group in groups]
    user = {
        "id": user_id,
        "description": "ignored",
        "values": [{"name": "mail", "values": ["a@b.example", 7]}, {"name": "memberOf", "values": locations}],
        "custom_attributes": None,
    }
    return msgspec.json.encode({"user": user, "scopes": [], "data_map": {}})


ANSWERS: dict[str, tuple[int, bytes]] = {
    "marta": (200, tokeninfo("Marta@Staff", "Editors", "a\\,b")),
    "dead": (410, b'{"status":410}'),
    "foreign": (401, b"{}"),
    "misled": (400, b"{}"),
    "broken": (500, b"<html>"),
    "garbage": (200, b"<html>"),
    "moved": (302, b""),
    "huge": (200, b'{"user":{"id":"' + b"x" * 9_000_000 + b'"}}'),
}


def in_process(token: str, resource_id: str) -> bytes:
    """Answer as a directory in this process would."""
    status, document = ANSWERS.get(token, (401, b"")) if resource_id == RESOURCE else (400, b"")
    if status in (401, 410):
        raise NotSignedIn("no")
    if status != 200 or len(document) > 8_000_000:
        raise DirectoryUnavailable("no")
    return document


async def tokeninfo_address(request: Request) -> Response:
    """Answer as another directory would."""
    asked = msgspec.json.decode(await request.body(), type=dict[str, str])
    assert request.headers["accept"] == request.headers["content-type"] == "application/json"
    status, document = ANSWERS.get(asked["token"], (401, b"")) if asked["resource_id"] == RESOURCE else (400, b"")
    headers = {"location": "/tokeninfo-elsewhere"} if status == 302 else {}
    return Response(document, status, headers)


ISSUED = b'{"access_token":"issued","expires_in":3600,"refresh_token":"never used","token_type":"Bearer"}'
SIGN_INS: dict[str, tuple[int, bytes, type[Refusal] | None]] = {
    "right": (200, ISSUED, None),
    "wrong": (400, b'{"error":"invalid_grant"}', NotSignedIn),
    "foreign": (400, b'{"error":"invalid_scope"}', DirectoryUnavailable),
    "client": (401, b'{"error":"invalid_client"}', DirectoryUnavailable),
    "busy": (503, b'{"error":"temporarily_unavailable"}', Overloaded),
    "broken": (500, b"<html>", DirectoryUnavailable),
    "garbage": (200, b"<html>", DirectoryUnavailable),
    "moved": (302, b"", DirectoryUnavailable),
    "in Latin-1": (200, b'{"access_token":"\xe9","expires_in":3600}', DirectoryUnavailable),
    "broken in Latin-1": (500, b'{"error":"\xe9"}', DirectoryUnavailable),
}
"""What a directory elsewhere says to a password, and what that means here."""

asked: list[tuple[Any, Any]] = []
ended: list[str] = []


async def login_address(request: Request) -> Response:
    """Sign in as another directory would."""
    form = dict(parse_qsl((await request.body()).decode(), strict_parsing=True))
    asked.append((form, request.headers.get("x-forwarded-for")))
    status, body, _ = SIGN_INS[form["password"]]
    return Response(body, status, {"Retry-After": "7"} if status == 503 else {"location": "/"})


PEOPLE: dict[str, tuple[int, bytes, object]] = {
    "right": (200, b'{"answer": {"count": 7}}', 7),
    "wrong": (401, b'{"status": 401, "error": "no", "errorDetails": null}', DirectoryUnavailable),
    "busy": (503, b"", Overloaded),
    "older": (404, b"<p>none", DirectoryUnavailable),
    "garbage": (200, b"{", DirectoryUnavailable),
    "no answer": (200, b'{"answer": []}', DirectoryUnavailable),
    "no refusal of ours": (200, b'{"answer": {"refused": "nonsense"}}', DirectoryUnavailable),
    "hangs": (0, b"", DirectoryUnavailable),
}
"""What a directory answers to who shows such a secret, and what becomes of it."""


async def people_address(request: Request) -> Response:
    """Tell whom a resource lets in, as another directory would."""
    shown = await request.json()
    asked.append((request.path_params["resource"], shown["question"]))
    status, body, _ = PEOPLE[shown["secure_secret"]]
    while not status and (await request.receive())["type"] != "http.disconnect":
        pass
    return Response(body, status or 500, {"Retry-After": "7"} if status == 503 else {})


async def revocation_address(request: Request) -> Response:
    """End a grant as another directory would."""
    ended.append(request.path_params["token"])
    return Response(status_code=204)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A tokeninfo address over HTTPS, and the CA file that verifies it."""
    ca, certificate, key = certificates.ensure(tmp_path_factory.mktemp("tls"), (), _now())
    site = Starlette(
        routes=[
            Route(f"{OAUTH}/tokeninfo", tokeninfo_address, methods=["POST"]),
            Route("/dirws/v1/resources/{resource}/people", people_address, methods=["POST"]),
            Route("/dirws/login", login_address, methods=["POST"]),
            Route(f"{OAUTH}/{{token}}", revocation_address, methods=["DELETE"]),
        ]
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(
            uvicorn.Config(site, log_level="critical", ssl_certfile=str(certificate), ssl_keyfile=str(key))
        )
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}{OAUTH}/tokeninfo", ca
        server.should_exit = True
        thread.join(PATIENCE)


@pytest.fixture(params=["in process", "over HTTPS"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Principals]:
    """A function that identifies the bearer of a token."""
    if request.param == "in process":
        made: Callable[[], Callers] = lambda: Callers.in_process(in_process, ADMINISTRATORS, SUFFIX)  # noqa: E731
    else:
        url, ca = request.getfixturevalue("served")
        made = lambda: Callers.over_http(url, str(ca), ADMINISTRATORS, SUFFIX)  # noqa: E731

    async def identified(token: str, resource_id: str) -> Principals:
        callers = made()
        try:
            bearer = await callers.identify(RequestCredentials(token), Repository(1, "demo", "", resource_id, 0))
            return bearer.principals()
        finally:
            await callers.close()

    return lambda token, resource_id=RESOURCE: asyncio.run(identified(token, resource_id))


def test_a_caller_is_known_with_his_groups(ask: Callable[..., Principals]) -> None:
    assert ask("marta") == Principals("Marta@Staff", frozenset({"editors@staff", "a,b@staff"}), administrator=False)


@pytest.mark.parametrize("token", ["dead", "foreign", "unheard-of"])
def test_a_token_that_does_not_hold_is_refused(ask: Callable[..., Principals], token: str) -> None:
    with pytest.raises(NotSignedIn):
        ask(token)


@pytest.mark.parametrize("token", ["misled", "broken", "garbage", "moved", "huge"])
def test_a_directory_that_cannot_say_is_no_refusal_of_the_caller(ask: Callable[..., Principals], token: str) -> None:
    with pytest.raises(DirectoryUnavailable):
        ask(token)


def test_an_unknown_resource_is_the_repository_s_fault(ask: Callable[..., Principals]) -> None:
    with pytest.raises(DirectoryUnavailable):
        ask("marta", "00000000-0000-4000-8000-00000000dead")


def test_a_token_is_asked_about_each_time(ask: Callable[..., Principals], monkeypatch: pytest.MonkeyPatch) -> None:
    """failures A11"""
    assert ask("marta").id == "Marta@Staff"
    monkeypatch.setitem(ANSWERS, "marta", (410, b""))
    with pytest.raises(NotSignedIn):
        ask("marta")


def test_a_directory_that_does_not_listen_is_unavailable(served: tuple[str, Path]) -> None:
    _, ca = served
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    callers = Callers.over_http(f"https://127.0.0.1:{port}/tokeninfo", str(ca), ADMINISTRATORS, SUFFIX)
    with pytest.raises(DirectoryUnavailable):
        asyncio.run(callers.identify(RequestCredentials("marta"), Repository(1, "demo", "", RESOURCE, 0)))


def test_a_directory_with_a_certificate_of_strangers_is_not_believed(served: tuple[str, Path]) -> None:
    url, _ = served
    callers = Callers.over_http(url, "", ADMINISTRATORS, SUFFIX)
    with pytest.raises(DirectoryUnavailable):
        asyncio.run(callers.identify(RequestCredentials("marta"), Repository(1, "demo", "", RESOURCE, 0)))


@pytest.mark.parametrize("password", SIGN_INS)
def test_a_directory_elsewhere_signs_callers_in(served: tuple[str, Path], password: str) -> None:
    url, ca = served
    expected = SIGN_INS[password][2]

    async def sign_in() -> AccessToken:
        directory = DirectoryElsewhere(url, str(ca), "a client", "its secret")
        try:
            return await directory.sign_in(PairSignIn(Pair("m+ü@staff", password), RESOURCE, "demo", "192.0.2.7"))
        finally:
            await directory.close()

    asked.clear()
    if expected is None:
        issued = asyncio.run(sign_in())
        assert (issued.text, issued.seconds) == ("issued", 3600)
    else:
        with pytest.raises(expected) as refusal:
            asyncio.run(sign_in())
        assert not isinstance(refusal.value, Overloaded) or refusal.value.retry_seconds == 7
    form = {"grant_type": "password", "client_id": "a client", "client_secret": "its secret"}
    form |= {"username": "m+ü@staff", "password": password, "scope": f"resource:{RESOURCE}"}
    assert asked == [(form, "192.0.2.7")]


@pytest.mark.parametrize("secret", PEOPLE)
def test_a_directory_elsewhere_tells_whom_a_resource_lets_in(
    served: tuple[str, Path], tmp_path: Path, secret: str
) -> None:
    url, ca = served
    file, expected = tmp_path / "secrets", PEOPLE[secret][2]
    file.write_text(f"{RESOURCE} {secret}\n", "utf-8")

    async def count() -> int:
        directory = DirectoryElsewhere(url, str(ca), secrets_file=str(file))
        people = PeopleElsewhere(directory.people, 0.05 if secret == "hangs" else 30)
        try:
            return await asyncio.to_thread(people.count, PeopleFilter(RESOURCE, "user"), EVERYTHING)
        finally:
            await directory.close()

    asked.clear()
    if isinstance(expected, type):
        with pytest.raises(expected) as refusal:
            asyncio.run(count())
        assert not isinstance(refusal.value, Overloaded) or refusal.value.retry_seconds == 7
    else:
        assert asyncio.run(count()) == expected
    if secret != "hangs":
        assert asked == [(RESOURCE, {"type": "count", "kind": "user"})]


def test_a_directory_elsewhere_ends_the_grant(served: tuple[str, Path]) -> None:
    url, ca = served

    async def end() -> None:
        directory = DirectoryElsewhere(url, str(ca), "a client")
        await directory.end("issued")
        await directory.close()

    asyncio.run(end())
    assert ended == ["issued"]


def _now() -> Instant:
    return time.time_ns() // 1000
