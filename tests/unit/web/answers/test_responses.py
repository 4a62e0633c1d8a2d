"""From an endpoint or a refusal to a response."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from unittest.mock import ANY

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Scope
from structlog.testing import capture_logs

from muniment.database.connections import Busy
from muniment.ground.refusals import Malformed, Overloaded, Refusal
from muniment.web.answers.responses import BUG, Endpoint, ErrorCode, add_header, find_code, json_response
from muniment.web.answers.unsent import LONG, UNSENT, Unsent


class Odd(Malformed):
    """A refusal of a subclass of one in the table."""


class Unlisted(Refusal):
    """A refusal that no table names."""


def _shape(_request: Request, said: ErrorCode, sentence: str) -> Response:
    return json_response({"code": said.code, "sentence": sentence}, said.status)


def _ask(
    endpoint: Endpoint[str], method: str = "GET", query: bytes = b"", unsent: Unsent | None = None
) -> tuple[int, dict[str, str], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    scope: Scope = {"type": "http", "method": method, "path": "/", "query_string": query, "headers": []}
    if unsent is not None:
        scope[UNSENT] = unsent
    asyncio.run(endpoint(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"]


def _raising(error: BaseException) -> Endpoint[str]:
    async def get(_request: Request, _half: str) -> Response:
        raise error

    return Endpoint("half", {"GET": get}, {Odd: ErrorCode(418, "odd")}, _shape)


class Behind(Refusal):
    """A refusal that passes by itself."""


async def _greet(_request: Request, half: str) -> Response:
    return PlainTextResponse(f"hello from the {half}")


def test_an_endpoint_is_handed_its_half() -> None:
    assert _ask(Endpoint("half", {"GET": _greet}, {}, _shape))[2] == b"hello from the half"


def test_head_is_answered_where_get_is() -> None:
    assert _ask(Endpoint("half", {"GET": _greet}, {}, _shape), "HEAD")[0] == 200


def test_a_method_the_address_does_not_know_is_answered_405_with_those_it_knows() -> None:
    status, headers, body = _ask(Endpoint("half", {"POST": _greet, "GET": _greet}, {}, _shape), "DELETE")
    assert (status, headers["allow"]) == (405, "GET, HEAD, POST")
    assert json.loads(body)["sentence"] == "This address knows GET, HEAD, POST, not DELETE."
    assert _ask(Endpoint("half", {"POST": _greet}, {}, _shape), "HEAD")[:2] == (405, ANY)
    assert _ask(Endpoint("half", {"POST": _greet}, {}, _shape), "GET")[1]["allow"] == "POST"


def test_the_nearest_class_in_a_refusals_ancestry_gives_its_status() -> None:
    assert _ask(_raising(Odd("Odd.")))[0] == 418
    assert _ask(_raising(Malformed("Bad.")))[0] == 400


def test_a_refusal_without_a_code_is_a_bug_wherever_it_is_looked_up() -> None:
    assert find_code(Odd("Odd."), {Malformed: ErrorCode(400, "bad")}) == ErrorCode(400, "bad")
    with capture_logs() as lines:
        assert find_code(Unlisted("What?"), {Malformed: ErrorCode(400, "bad")}) == BUG
    assert [line["refusal"] for line in lines] == ["Unlisted"]


def test_an_overloaded_answer_says_when_to_try_again() -> None:
    status, headers, _ = _ask(_raising(Overloaded("Too many.", 7)))
    assert (status, headers["retry-after"]) == (503, "7")
    status, headers, _ = _ask(_raising(Busy("The database is busy with other writes.")))
    assert (status, headers["retry-after"]) == (503, "1")


def test_a_refusal_that_no_table_names_is_a_bug_and_logged_as_one() -> None:
    with capture_logs() as lines:
        assert _ask(_raising(Unlisted("?")))[0] == 500
    assert lines[0]["log_level"] == "error"


def test_a_bug_is_logged_and_answered_without_its_details() -> None:
    with capture_logs() as lines:
        status, _, body = _ask(_raising(KeyError("the secret")))
    assert (status, json.loads(body)["code"]) == (500, "internal_error")
    assert b"secret" not in body
    assert lines[0]["event"] == "bug"


def test_a_caller_who_left_is_no_bug() -> None:
    with capture_logs() as lines:
        assert _ask(_raising(ClientDisconnect()))[0] == 400
    assert lines == []


def test_being_told_to_stop_is_not_swallowed() -> None:
    with pytest.raises(asyncio.CancelledError):
        _ask(_raising(asyncio.CancelledError()))


def test_whatever_is_unavailable_says_when_to_try_again() -> None:
    async def get(_request: Request, _half: str) -> Response:
        raise Behind("Not yet.")

    status, headers, _ = _ask(Endpoint("half", {"GET": get}, {Behind: ErrorCode(503, "behind")}, _shape))
    assert (status, headers["retry-after"]) == (503, "1")


def _with_options(prepared: list[str]) -> Endpoint[str]:
    async def prepare(request: Request, method: str) -> None:
        prepared.append(method)
        add_header(request, "X-Note", method)
        if request.query_params:
            raise Malformed("Not so.")

    methods = {"POST": _greet, "GET": _greet}
    return Endpoint("half", methods, {}, _shape, prepare=prepare, options=True)


def test_options_is_answered_with_the_methods_where_the_table_says_so() -> None:
    prepared: list[str] = []
    status, headers, body = _ask(_with_options(prepared), "OPTIONS")
    assert (status, headers["allow"], body) == (204, "GET, HEAD, OPTIONS, POST", b"")
    assert _ask(_with_options(prepared), "PUT")[1]["allow"] == "GET, HEAD, OPTIONS, POST"
    assert prepared == []
    assert _ask(Endpoint("half", {"GET": _greet}, {}, _shape), "OPTIONS")[:2] == (405, ANY)


def test_what_is_prepared_comes_before_the_method_and_may_refuse() -> None:
    prepared: list[str] = []
    endpoint = _with_options(prepared)
    status, headers, _ = _ask(endpoint, "HEAD")
    assert (status, headers["x-note"]) == (200, "GET")
    status, headers, body = _ask(endpoint, "POST", b"x=1")
    assert (status, headers["x-note"], json.loads(body)["sentence"]) == (400, "POST", "Not so.")
    assert prepared == ["GET", "POST"]


def test_a_long_answer_for_which_there_is_no_room_is_refused() -> None:
    async def get(_request: Request, _half: str) -> Response:
        return Response(bytes(LONG + 1))

    class Full(Unsent):
        def hold(self, scope: Scope, size: int) -> AbstractAsyncContextManager[None]:
            assert size > LONG
            raise Overloaded("Full.", 5)

    endpoint = Endpoint("half", {"GET": get}, {}, _shape)
    assert _ask(endpoint, unsent=Unsent(1000))[0] == 200
    status, headers, body = _ask(endpoint, unsent=Full(1000))
    assert (status, headers["retry-after"], json.loads(body)) == (503, "5", {"code": "overloaded", "sentence": "Full."})
