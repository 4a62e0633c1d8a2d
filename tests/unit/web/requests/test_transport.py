"""Everything before an address is looked up."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from muniment.database.connections import Busy
from muniment.ground.refusals import Malformed, Refusal, TimedOut
from muniment.web.answers.responses import ErrorCode
from muniment.web.options import WebOptions
from muniment.web.requests import bodies, transport
from muniment.web.requests.transport import Transport

TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYm"


class UnknownThing(Refusal):
    """A refusal that only one address knows."""


class Answer:
    """What came back, and what the app saw."""

    def __init__(self, messages: list[Message], scope: Scope) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])
        self.scope = scope


def _shape(_request: Request, said: ErrorCode, sentence: str) -> Response:
    return Response(json.dumps({"code": said.code, "sentence": sentence}), said.status, media_type="application/json")


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


def _ask(
    app: ASGIApp = _echo,
    path: str = "/x",
    *,
    scheme: str = "https",
    headers: dict[str, str] | None = None,
    query: str = "",
    client: str = "203.0.113.9",
    options: WebOptions | None = None,
    enforced: Callable[[], bool] = lambda: True,
    receive: Receive | None = None,
    method: str = "GET",
) -> Answer:
    async def whether() -> bool:
        return enforced()

    left: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def nothing() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    all_headers = {"host": "files.example.org", **(headers or {})}
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "scheme": scheme,
        "headers": [(name.lower().encode(), value.encode()) for name, value in all_headers.items()],
        "client": (client, 4711),
    }
    told = options or WebOptions(base_address="https://files.example.org/")
    whole = Transport(app, told, sensitive_prefixes=["/dirws"], requires_tls=whether, shape=_shape)
    asyncio.run(whole(scope, receive or nothing, send))
    return Answer(sent, scope)


async def _never() -> Message:
    raise AssertionError("The body was read.")


# Request ids


OURS = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def test_a_callers_request_id_is_noted_beside_ours_and_the_answer_carries_ours() -> None:
    answer, (line,) = _asked_with_lines({"X-Request-ID": "order-66.a_b"})
    assert re.fullmatch(OURS, answer.headers["x-request-id"])
    assert answer.headers["x-request-id"] == answer.scope["muniment.request_id"] == line["request_id"]
    assert line["caller_request_id"] == "order-66.a_b"


@pytest.mark.parametrize("given", ["", "two words", "x" * 41, "line\u0085break", "<b>"])
def test_a_callers_request_id_that_is_none_is_not_noted(given: str) -> None:
    answer, (line,) = _asked_with_lines({"X-Request-ID": given})
    assert re.fullmatch(OURS, answer.headers["x-request-id"])
    assert "caller_request_id" not in line


def _asked_with_lines(headers: dict[str, str]) -> tuple[Answer, list[MutableMapping[str, Any]]]:
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        return _ask(headers=headers), lines


# The access log


def test_a_request_leaves_one_line_without_its_query() -> None:
    with capture_logs() as lines:
        _ask(path="/dirws/login", query="RFA=secret", method="POST")
    (line,) = lines
    assert {key: line[key] for key in ("event", "method", "path", "status", "bytes", "scheme", "client")} == {
        "event": "request",
        "method": "POST",
        "path": "/dirws/login",
        "status": 200,
        "bytes": 0,
        "scheme": "https",
        "client": "203.0.113.9",
    }
    assert "secret" not in str(line)


@pytest.mark.parametrize(
    "path",
    [
        f"/dirws/v1/authentication/oauth/{TOKEN}",
        f"/dirws/v1/authentication/oauth//{TOKEN}/",
        f"/DIRWS/V1/Authentication/OAuth/{TOKEN}",
        f"/dirws/v1/authentication/{TOKEN}",
        f"/elsewhere/{TOKEN}/more",
        f"/dirws/v1/authentication/oauth/tokeninfo/{TOKEN}",
    ],
)
def test_a_token_in_the_path_is_logged_as_a_fingerprint(path: str) -> None:
    """failures A29."""
    with capture_logs() as lines:
        _ask(path=path)
    assert TOKEN not in str(lines)
    assert "sha256:" in lines[0]["path"]


def test_the_fingerprint_is_the_beginning_of_the_tokens_sha_256() -> None:
    expected = hashlib.sha256(TOKEN.encode()).hexdigest()[:12]
    assert (
        transport.logged_path(f"/d/v1/authentication/oauth/{TOKEN}") == f"/d/v1/authentication/oauth/sha256:{expected}"
    )


def test_short_garbage_in_a_tokens_place_is_no_more_logged_than_a_token() -> None:
    assert "hunter2" not in transport.logged_path("/dirws/v1/authentication/oauth/hunter2")


@pytest.mark.parametrize(
    "path", ["/dirws/v1/authentication/oauth/tokeninfo", "/rest/repositories/a/objects/0900000100000001"]
)
def test_other_paths_are_logged_as_they_are(path: str) -> None:
    assert transport.logged_path(path) == path


def test_a_path_cannot_forge_a_line_of_the_log() -> None:
    assert transport.logged_path("/a\n2026 event=request\x1b[31m") == "/a\\n2026 event=request\\x1b[31m"


# TLS


@pytest.mark.parametrize(
    "request_",
    [
        {"path": "/dirws/login"},
        {"path": "/dirws"},
        {"path": "/rest/x", "headers": {"Authorization": "Bearer x"}},
        {"path": "/rest/x", "headers": {"Authorization": ""}},
        {"path": "/rest/x", "headers": {"Cookie": "a=b"}},
        {"path": "/rest/x", "query": "q=1&access_token=x"},
        {"path": "/rest/x", "query": "access%5Ftoken=x"},
        {"path": "/dirws/login", "headers": {"X-Forwarded-Proto": "https"}},
    ],
)
def test_plain_http_with_secrets_is_refused_before_the_body_is_read(request_: dict[str, Any]) -> None:
    answer = _ask(scheme="http", receive=_never, method="POST", **request_)
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "tls_required")


@pytest.mark.parametrize("path", ["/", "/health", "/rest/x", "/dirwsx"])
def test_plain_http_without_secrets_passes(path: str) -> None:
    assert _ask(path=path, scheme="http").status == 200


def test_plain_http_passes_once_tls_is_not_enforced() -> None:
    assert _ask(path="/dirws/login", scheme="http", enforced=lambda: False).status == 200


def test_over_https_nobody_asks_whether_tls_is_enforced() -> None:
    def broken() -> bool:
        raise AssertionError

    assert _ask(path="/dirws/login", enforced=broken).status == 200


def test_when_nobody_can_tell_whether_tls_is_enforced_plain_http_does_not_pass() -> None:
    def busy() -> bool:
        raise Busy("The database is busy with other writes.")

    def broken() -> bool:
        raise OSError

    assert _ask(path="/dirws/login", scheme="http", enforced=busy, receive=_never).status == 503
    assert _ask(path="/dirws/login", scheme="http", enforced=broken, receive=_never).status == 500


# Proxies


def _proxied() -> WebOptions:
    return WebOptions(base_address="https://files.example.org", trusted_proxies=("10.0.0.0/8", "::1"))


@pytest.mark.parametrize(
    ("proto", "scheme"),
    [("https", "https"), ("http, https", "https"), ("https, http", "http"), ("gopher", "http"), ("", "http")],
)
def test_a_trusted_proxys_last_word_on_the_scheme_counts(proto: str, scheme: str) -> None:
    answer = _ask(
        scheme="http",
        client="10.1.2.3",
        headers={"X-Forwarded-Proto": proto},
        options=_proxied(),
        enforced=lambda: False,
    )
    assert answer.scope["scheme"] == scheme


def test_a_strangers_word_on_scheme_and_address_does_not_count() -> None:
    """failures A23."""
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "127.0.0.1"}
    answer = _ask(scheme="http", client="203.0.113.9", headers=headers, options=_proxied())
    assert (answer.scope["scheme"], answer.scope["client"][0]) == ("http", "203.0.113.9")


@pytest.mark.parametrize(
    ("hops", "caller"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("6.6.6.6, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("198.51.100.1:5555", "198.51.100.1"),
        ("[2001:db8::7]:5555", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("10.5.5.5", "10.5.5.5"),
        ("rubbish", "10.1.2.3"),
        ("", "10.1.2.3"),
    ],
)
def test_the_caller_is_the_last_hop_that_is_no_proxy_of_ours(hops: str, caller: str) -> None:
    """failures A23"""
    answer = _ask(client="10.1.2.3", headers={"X-Forwarded-For": hops}, options=_proxied())
    assert answer.scope["client"][0] == caller


@pytest.mark.parametrize(
    ("client", "caller"), [("::ffff:10.1.2.3", "198.51.100.1"), ("::ffff:9.1.2.3", "::ffff:9.1.2.3")]
)
def test_a_proxy_by_ipv4_is_trusted_also_at_a_listener_of_both_families(client: str, caller: str) -> None:
    headers = {"X-Forwarded-For": "198.51.100.1, ::ffff:10.9.9.9"}
    assert _ask(client=client, headers=headers, options=_proxied()).scope["client"][0] == caller


def test_a_caller_without_an_address_of_the_network_is_no_proxy() -> None:
    answer = _ask(client="a socket", headers={"X-Forwarded-For": "127.0.0.1"}, options=_proxied())
    assert answer.scope["client"][0] == "a socket"


def test_a_proxy_that_came_by_plain_http_is_refused_what_plain_http_is_refused() -> None:
    answer = _ask(path="/dirws/login", client="10.1.2.3", headers={"X-Forwarded-Proto": "http"}, options=_proxied())
    assert answer.status == 403


# Base addresses


@pytest.mark.parametrize(
    ("host", "scheme", "base"),
    [
        ("files.example.org", "https", "https://files.example.org/archive"),
        ("evil.example", "https", "https://files.example.org/archive"),
        ("inner.example:8443", "https", "https://inner.example:8443"),
        ("INNER.example:8443", "https", "https://inner.example:8443"),
        ("inner.example:8443", "http", "https://files.example.org/archive"),
        ("inner.example", "https", "https://files.example.org/archive"),
        ("plain.example", "http", "http://plain.example"),
        ("plain.example:80", "http", "http://plain.example"),
        ("a:b:c", "https", "https://files.example.org/archive"),
        ("", "https", "https://files.example.org/archive"),
    ],
)
def test_links_begin_with_a_listed_address_whatever_the_host(host: str, scheme: str, base: str) -> None:
    options = WebOptions(
        base_address="https://files.example.org/archive/",
        other_addresses=("https://inner.example:8443/", "http://plain.example"),
    )
    assert _ask(headers={"host": host}, scheme=scheme, options=options).scope["muniment.base"] == base


# Deadlines


def _stopping_after(*pieces: bytes) -> Receive:
    left = list(pieces)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    return receive


@pytest.mark.slow
def test_a_body_that_stops_coming_is_answered_408_and_the_connection_closed() -> None:
    impatient = WebOptions(body_pause_seconds=1)
    answer = _ask(receive=_stopping_after(b"a", b"b"), method="POST", options=impatient)
    assert (answer.status, answer.headers["connection"]) == (408, "close")


async def _keep(scope: Scope, receive: Receive, send: Send) -> None:
    async for _piece in bodies.pieces(Request(scope, receive), 10_000_000):
        pass
    await PlainTextResponse("kept")(scope, receive, send)


def _steady(piece: bytes, every_seconds: float, times: int) -> Receive:
    """Send a body in pieces that come one after the other, the last one when they have come so many times."""
    left = iter(range(times, -1, -1))

    async def receive() -> Message:
        await asyncio.sleep(every_seconds)
        return {"type": "http.request", "body": piece, "more_body": bool(next(left))}

    return receive


@pytest.mark.slow
@pytest.mark.parametrize("piece", [b"a", b"a" * 1000])
def test_a_body_that_never_pauses_has_to_be_there_in_time_as_a_whole(piece: bytes) -> None:
    """failures C1: a byte each 20 seconds took 284 seconds, and was obeyed."""
    told = WebOptions(body_seconds=1, body_pause_seconds=30)
    answer = _ask(receive=_steady(piece, 0.05, 10_000), method="POST", options=told)
    assert (answer.status, answer.headers["connection"]) == (408, "close")


@pytest.mark.slow
def test_content_may_take_longer_when_it_comes_fast_enough() -> None:
    told = WebOptions(body_seconds=1, slow_seconds=1, lowest_upload_rate=1000)
    assert _ask(_keep, receive=_steady(b"a" * 1000, 0.05, 50), method="POST", options=told).body == b"kept"


@pytest.mark.slow
def test_content_that_comes_slower_than_it_must_is_broken_off() -> None:
    told = WebOptions(slow_seconds=1, lowest_upload_rate=1000)
    answer = _ask(_keep, receive=_steady(b"a" * 10, 0.05, 10_000), method="POST", options=told)
    assert (answer.status, answer.headers["connection"]) == (408, "close")


@pytest.mark.slow
def test_nobody_can_be_quick_first_to_be_slow_for_long() -> None:
    told = WebOptions(slow_seconds=1, lowest_upload_rate=1000)
    slow = _steady(b"a", 0.05, 10_000)
    begun: list[bytes] = [b"a" * 1_000_000]

    async def receive() -> Message:
        return {"type": "http.request", "body": begun.pop(), "more_body": True} if begun else await slow()

    assert _ask(_keep, receive=receive, method="POST", options=told).status == 408


@pytest.mark.slow
def test_once_the_body_is_there_waiting_for_the_caller_to_leave_has_no_deadline() -> None:
    messages: list[Message] = [{"type": "http.request", "body": b"x", "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.sleep(1.2)
        return {"type": "http.disconnect"}

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        await PlainTextResponse("done")(scope, receive, send)

    assert _ask(waits, receive=receive, options=WebOptions(body_pause_seconds=1)).body == b"done"


def test_a_request_that_is_called_off_while_its_body_is_awaited_is_not_answered() -> None:
    async def never() -> Message:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        _ask(receive=never, method="POST")


# Headers of every answer


def test_every_answer_forbids_guessing_types_and_framing() -> None:
    headers = _ask().headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_policy_that_the_answer_brings_is_left_alone() -> None:
    async def sandboxed(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"Content-Security-Policy": "sandbox", "Cache-Control": "max-age=60"}
        await PlainTextResponse("x", headers=headers)(scope, receive, send)

    headers = _ask(sandboxed, path="/dirws/x").headers
    assert (headers["content-security-policy"], headers["cache-control"]) == ("sandbox", "max-age=60")


@pytest.mark.parametrize(
    ("scheme", "host", "sent"),
    [("https", "files.example.org", True), ("http", "files.example.org", False), ("https", "localhost:8443", False)],
)
def test_only_https_asks_browsers_to_stay_with_https_and_never_for_localhost(
    scheme: str, host: str, sent: bool
) -> None:
    assert ("strict-transport-security" in _ask(scheme=scheme, headers={"host": host}).headers) is sent


@pytest.mark.parametrize(("path", "kept"), [("/dirws/x", "no-store"), ("/rest/x", None)])
def test_the_directorys_answers_are_not_stored(path: str, kept: str | None) -> None:
    assert _ask(path=path).headers.get("cache-control") == kept


# What goes wrong inside


def test_a_refusal_that_nobody_answered_is_answered() -> None:
    async def refuses(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise Malformed("No.")

    answer = _ask(refuses)
    assert (answer.status, json.loads(answer.body)["sentence"]) == (400, "No.")


def test_a_bug_is_answered_500_without_its_details() -> None:
    async def breaks(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise KeyError("the secret")

    with capture_logs() as lines:
        answer = _ask(breaks)
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert [line["event"] for line in lines] == ["bug", "request"]


def test_a_refusal_in_the_middle_of_an_answer_cuts_it_short_and_is_no_error() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise UnknownThing("The right ended.")

    with capture_logs() as lines, pytest.raises(transport.CutShort):
        _ask(app)
    (line,) = (line for line in lines if line["event"] != "request")
    assert (line["event"], line["log_level"]) == ("cut short", "warning")
    assert (line["refusal"], line["reason"]) == ("UnknownThing", "The right ended.")


def test_a_bug_in_the_middle_of_an_answer_cuts_it_short() -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        async def pieces() -> Any:
            yield b"half"
            raise TimedOut("late")

        await StreamingResponse(pieces())(scope, receive, send)

    with pytest.raises(transport.CutShort):
        _ask(breaks)


def test_a_websocket_is_closed() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def never() -> bool:
        raise AssertionError

    whole = Transport(_echo, WebOptions(), sensitive_prefixes=[], requires_tls=never, shape=_shape)
    asyncio.run(whole({"type": "websocket"}, _never, send))
    assert sent == [{"type": "websocket.close", "code": 1000}]
