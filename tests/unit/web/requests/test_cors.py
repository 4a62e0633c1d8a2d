"""Which answers get headers for other sites' pages."""

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from muniment.web.requests.cors import Cors

APP = "https://app.example.org"


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("x", headers={"Allow": "GET, OPTIONS", "Vary": "Accept"})(scope, receive, send)


def _ask(path: str, *headers: tuple[str, str], method: str = "GET", credentials: bool = False) -> dict[str, str]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
    cors = Cors(_answer, "/rest", [APP, "*"], credentials=credentials, exposed_headers=["ETag"], seconds=5)
    asyncio.run(cors(scope, receive, send))
    found: dict[str, str] = {}
    for name, value in sent[0]["headers"]:
        key = name.decode()
        found[key] = f"{found[key]}, {value.decode()}" if key in found else value.decode()
    return found


@pytest.mark.parametrize(("path", "is_below"), [("/rest", True), ("/rest/x", True), ("/restful", False), ("/", False)])
def test_only_answers_below_the_prefix_get_headers(path: str, *, is_below: bool) -> None:
    headers = _ask(path, ("Origin", APP))
    assert ("access-control-allow-origin" in headers) == is_below
    assert headers["vary"] == ("Accept, Origin" if is_below else "Accept")


def test_a_star_stands_for_no_origin_once_there_are_credentials() -> None:
    assert _ask("/rest", ("Origin", "https://x"))["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in _ask("/rest", ("Origin", "https://x"), credentials=True)
    assert _ask("/rest", ("Origin", APP), credentials=True)["access-control-allow-origin"] == APP


def test_a_preflight_names_the_headers_that_the_page_wants_to_send_if_they_can_be_headers() -> None:
    wanted = "authorization, x-own,*,a b, é," + ",".join(f"x-{number}" for number in range(100))
    asked = [("Origin", APP), ("Access-Control-Request-Method", "GET"), ("Access-Control-Request-Headers", wanted)]
    headers = _ask("/rest", *asked, method="OPTIONS")
    named = headers["access-control-allow-headers"].split(", ")
    assert named[:3] == ["authorization", "x-own", "x-0"]
    assert len(named) < 50
    assert headers["access-control-allow-methods"] == "GET, OPTIONS"
    assert headers["access-control-max-age"] == "5"
    assert "access-control-expose-headers" not in headers
    assert "Access-Control-Request-Headers" in headers["vary"]


def test_options_that_is_no_preflight_is_an_answer_like_any_other() -> None:
    headers = _ask("/rest", ("Origin", APP), method="OPTIONS")
    assert headers["access-control-expose-headers"] == "ETag"
    assert "access-control-allow-methods" not in headers


def test_what_is_no_request_passes() -> None:
    passed: list[str] = []

    async def note(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def receive() -> Message:
        return {}

    async def send(_message: Message) -> None:
        pass

    cors = Cors(note, "/rest", [APP], credentials=False, exposed_headers=[], seconds=5)
    asyncio.run(cors({"type": "lifespan"}, receive, send))
    assert passed == ["lifespan"]
