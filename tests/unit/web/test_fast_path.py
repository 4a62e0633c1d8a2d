"""The short ways: what they take, and that everything else goes the ordinary way as it came."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope
from structlog.testing import capture_logs

from muniment.database.connections import Busy
from muniment.ground import events
from muniment.ground.refusals import Malformed, Refusal
from muniment.web.answers.responses import Endpoint, ErrorCode
from muniment.web.fast_path import AnswerAtOnce, FastFront, FastPath
from muniment.web.options import WebOptions
from muniment.web.requests import bodies
from muniment.web.requests.transport import Transport

JSON = b"application/json"
HEADERS = ((b"content-type", JSON), (b"cache-control", b"no-store"))
BODY = b'{"question": 1}'


class Answer:
    """What came back."""

    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])


def shape(_request: Request, code: ErrorCode, sentence: str) -> Response:
    return Response(json.dumps({"code": code.code, "sentence": sentence}), code.status, media_type="application/json")


async def ordinary(request: Request, _context: None) -> Response:
    return Response(b"ordinary: " + await bodies.raw(request, 1_000_000), media_type="application/json")


async def send_to(application: Any, *pieces: bytes, late: bool = False, **changes: Any) -> Answer:
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, 1)
    ]

    async def receive() -> Message:
        if late:
            await asyncio.sleep(0)
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await application(scope_of(**changes), receive, send)
    return Answer(sent)


def scope_of(*, more_headers: Sequence[tuple[bytes, bytes]] = (), **changes: Any) -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "path": "/dirws/hot",
        "query_string": b"",
        "scheme": "https",
        "headers": [(b"host", b"files.example.org"), (b"content-type", JSON), *more_headers],
        "client": ("203.0.113.9", 4711),
        **changes,
    }


def front(recall: Callable[[bytes], bytes | None], **options: Any) -> FastFront:
    async def no() -> bool:
        return True

    async def recalled(_scope: Scope, body: bytes, _context: object) -> bytes | None:
        return recall(body)

    inner = Endpoint(None, {"POST": ordinary}, {}, shape)
    settings = WebOptions(base_address="https://files.example.org", **options)
    made = FastFront(Transport(inner, settings, sensitive_prefixes=["/dirws"], requires_tls=no, shape=shape))

    def recall_all(requests: Sequence[tuple[Scope, bytes]], _context: object) -> list[bytes | None]:
        return [recall(body) for _, body in requests]

    made.addresses = {"/dirws/hot": (FastPath(recalled, JSON, HEADERS, recall_all), None)}
    return made


def at_once(made: FastFront, body: bytes = BODY, **changes: Any) -> AnswerAtOnce | None:
    """Return what the front answers at once, which needs nobody who receives or sends."""
    (answer,) = made.answer_at_once([(scope_of(**changes), body)])
    return answer


def asked(application: Any, *pieces: bytes, **changes: Any) -> Answer:
    return asyncio.run(send_to(application, *pieces, **changes))


OTHER_FORMS: dict[str, tuple[tuple[bytes, ...], dict[str, Any]]] = {
    "query": ((BODY,), {"query_string": b"a=b"}),
    "two types": ((BODY,), {"more_headers": [(b"content-type", JSON)]}),
    "type with a parameter": ((BODY,), {"headers": [(b"content-type", b"application/json; charset=utf-8")]}),
    "type in capitals": ((BODY,), {"headers": [(b"content-type", b"Application/JSON")]}),
    "no type": ((BODY,), {"headers": []}),
    "two pieces": ((BODY[:5], BODY[5:]), {}),
    "no body": ((b"",), {}),
    "long body": ((b"x" * 65_537,), {}),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_request_of_another_form_goes_the_ordinary_way_with_its_whole_body(form: str) -> None:
    def never(_body: bytes) -> bytes:
        raise AssertionError

    pieces, changes = OTHER_FORMS[form]
    assert asked(front(never), *pieces, **changes).body == b"ordinary: " + b"".join(pieces)


def test_another_method_is_refused_as_ever() -> None:
    assert asked(front(lambda _body: b"hot"), b"", method="GET").status == 405


@pytest.mark.parametrize("late", [False, True])
def test_what_a_short_way_leaves_to_the_ordinary_one_comes_there_whole(late: bool) -> None:
    assert asked(front(lambda _body: None), BODY, late=late).body == b"ordinary: " + BODY


def test_the_front_answers_what_is_remembered_with_the_headers_and_the_line_of_every_answer() -> None:
    with capture_logs() as lines:
        hot = asked(front(lambda _body: b"remembered"), BODY)
        cold = asked(front(lambda _body: None), BODY)
    assert (hot.status, hot.body) == (200, b"remembered")
    assert hot.headers.keys() == cold.headers.keys()
    different = {name for name in hot.headers if hot.headers[name] != cold.headers[name]}
    assert different == {"content-length", "x-request-id"}
    first, second = lines
    assert first.keys() == second.keys()
    assert (first["request_id"], first["bytes"]) == (hot.headers["x-request-id"], len(b"remembered"))
    changing = {"request_id", "bytes", "ms"}
    assert {name: first[name] for name in first.keys() - changing} == {
        name: second[name] for name in second.keys() - changing
    }


def test_an_answer_at_once_has_the_headers_and_the_line_of_every_answer() -> None:
    with capture_logs() as lines:
        hot = asked(front(lambda _body: b"remembered"), BODY)
        answer = at_once(front(lambda _body: b"remembered"))
    assert answer is not None
    assert answer.body == b"remembered"
    headers = dict(line.split(": ", 1) for line in answer.header_lines.decode().splitlines())
    assert list(headers) == list(hot.headers)
    assert headers == hot.headers | {"x-request-id": headers["x-request-id"]}
    assert lines[1]["request_id"] == headers["x-request-id"]
    assert {name: value for name, value in lines[1].items() if name not in {"request_id", "ms"}} == {
        name: value for name, value in lines[0].items() if name not in {"request_id", "ms"}
    }


def test_requests_that_come_together_share_what_is_read_and_each_gets_its_own_answer() -> None:
    reads: list[Sequence[bytes]] = []

    def recall(requests: Sequence[tuple[Scope, bytes]], _context: object) -> list[bytes | None]:
        bodies = [body for _, body in requests]
        reads.append(bodies)
        return [body if body != b"unknown" else None for body in bodies]

    async def never(_scope: Scope, _body: bytes, _context: object) -> bytes | None:
        raise AssertionError

    made = front(lambda _body: None)
    made.addresses = {"/dirws/hot": (FastPath(never, JSON, HEADERS, recall), None)}
    bodies = [b"one", b"unknown", b"", b"two"]
    answers = made.answer_at_once([(scope_of(), body) for body in bodies])
    assert [answer and answer.body for answer in answers] == [b"one", None, None, b"two"]
    assert reads == [[b"one", b"unknown", b"two"]]


def test_what_is_not_answered_at_once_leaves_no_line() -> None:
    def fail(_body: bytes) -> bytes:
        raise KeyError

    def never(_body: bytes) -> bytes:
        raise AssertionError

    others = [(pieces[0], changes) for form, (pieces, changes) in OTHER_FORMS.items() if form != "two pieces"]
    with capture_logs() as lines:
        assert at_once(front(fail)) is None
        assert at_once(front(lambda _body: None)) is None
        for body, changes in [*others, *((BODY, changes) for changes in ORDINARY_AT_THE_FRONT.values())]:
            assert at_once(front(never), body, **changes) is None
    assert not lines


ORDINARY_AT_THE_FRONT: dict[str, dict[str, Any]] = {
    "slash in a name": {"path": "/dirws/hot", "raw_path": b"/dirws%2Fhot"},
    "plain HTTP": {"scheme": "http"},
    "request id of the caller": {"more_headers": [(b"x-request-id", b"order-66")]},
    "repeated header": {"more_headers": [(b"host", b"files.example.org")]},
}


@pytest.mark.parametrize("form", ORDINARY_AT_THE_FRONT)
def test_the_front_leaves_to_the_ordinary_way_what_needs_its_rules(form: str) -> None:
    def never(_body: bytes) -> bytes:
        raise AssertionError

    answer = asked(front(never), BODY, **ORDINARY_AT_THE_FRONT[form])
    assert answer.status == {"plain HTTP": 403, "repeated header": 400}.get(form, 200)


def test_behind_a_trusted_proxy_the_front_knows_the_caller_and_the_scheme() -> None:
    options = {"trusted_proxies": ("10.0.0.0/8",)}
    proxied: dict[str, Any] = {"scheme": "http", "client": ("10.0.0.1", 1)}
    told = [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"198.51.100.7")]
    with capture_logs() as lines:
        answer = asked(front(lambda _body: b"hot", **options), BODY, more_headers=told, **proxied)
        plain = asked(front(lambda _body: b"hot", **options), BODY, more_headers=told[1:], **proxied)
    assert answer.body == b"hot"
    assert lines[0]["client"] == "198.51.100.7"
    assert plain.status == 403


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(Malformed("No."), 400, "malformed_request"), (Busy("Busy."), 503, "overloaded"), (KeyError("secret"), 500, "")],
)
def test_what_is_refused_at_the_front_is_answered_by_the_endpoint_and_decided_once(
    error: Exception, status: int, code: str
) -> None:
    decided: list[bytes] = []

    def fail(body: bytes) -> bytes:
        decided.append(body)
        raise error

    with capture_logs() as lines:
        answer = asked(front(fail), BODY)
    assert answer.status == status
    assert json.loads(answer.body)["code"] == (code or "internal_error")
    assert b"secret" not in answer.body
    assert decided == [BODY]
    assert [line["status"] for line in lines if line["event"] == "request"] == [status]


def beginning(decide: Callable[[bytes], bytes | None]) -> tuple[FastFront, list[Scope]]:
    """A front whose decision begins an event, and the scopes whose events it records itself."""
    recorded: list[Scope] = []

    async def begin(scope: Scope, body: bytes, _context: object) -> bytes | None:
        events.begin(scope, "sign-in", account="service")
        return decide(body)

    made = front(decide)
    made.addresses, made.record = {"/dirws/hot": (FastPath(begin, JSON, HEADERS), None)}, recorded.append
    return made, recorded


def test_the_front_records_the_events_of_what_it_answers() -> None:
    made, recorded = beginning(lambda _body: b"hot")
    answer = asked(made, BODY)
    (scope,) = recorded
    assert [event.event for event in scope["muniment.events"]] == ["sign-in"]
    assert (scope["muniment.status"], scope["muniment.request_id"]) == (200, answer.headers["x-request-id"])


def test_an_event_whose_answer_cannot_be_sent_is_of_what_was_decided() -> None:
    async def fail(_message: Message) -> None:
        raise ConnectionError

    async def receive() -> Message:
        return {"type": "http.request", "body": BODY, "more_body": False}

    made, recorded = beginning(lambda _body: b"hot")
    with pytest.raises(ConnectionError):
        asyncio.run(made(scope_of(), receive, fail))
    (scope,) = recorded
    assert scope["muniment.status"] == 200


def test_the_events_of_what_the_front_does_not_answer_are_left_to_who_does() -> None:
    def fail(_body: bytes) -> bytes:
        raise Malformed("No.")

    made, recorded = beginning(fail)
    assert asked(made, BODY).status == 400
    assert recorded == []


def test_a_request_that_is_cancelled_leaves_its_events_and_its_line() -> None:
    def cancel(_body: bytes) -> bytes:
        raise asyncio.CancelledError

    made, recorded = beginning(cancel)
    with capture_logs() as lines, pytest.raises(asyncio.CancelledError):
        asked(made, BODY)
    (scope,), (line,) = recorded, lines
    assert (line["event"], line["status"], line["request_id"]) == ("request", None, scope["muniment.request_id"])
    assert "muniment.status" not in scope


def test_a_refusal_while_the_body_arrives_has_the_endpoints_own_shape() -> None:
    class Late(Refusal):
        """Too late."""

    async def receive() -> Message:
        raise Late("Too late.")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    application = Endpoint(None, {"POST": ordinary}, {Late: ErrorCode(408, "late")}, shape)
    asyncio.run(application(scope_of(), receive, send))
    assert Answer(sent).status == 408
    assert json.loads(Answer(sent).body)["code"] == "late"
