"""Bodies and queries, read within caps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
from starlette.requests import Request
from starlette.types import Message

from muniment.ground.refusals import Malformed, Refusal, TooLarge, UnsupportedMediaType
from muniment.web.requests import bodies

T = TypeVar("T")

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}


class Asked(msgspec.Struct):
    name: str


def _request(pieces: list[bytes], headers: dict[str, str], query: bytes = b"") -> Request:
    left = list(pieces)

    async def receive() -> Message:
        body = left.pop(0) if left else b""
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    return Request(scope, receive)


def _read(reader: Callable[..., Awaitable[T]], body: bytes, headers: dict[str, str], *more: Any) -> T:
    async def run() -> T:
        return await reader(_request([body[:3], body[3:]], headers), *more)

    return asyncio.run(run())


def test_a_form_is_read_as_browsers_write_it() -> None:
    fields = _read(bodies.form, b"a=1&b=x+y%2Bz&empty=&%C3%BC=%E2%82%AC&&flag", FORM)
    assert fields == {"a": "1", "b": "x y+z", "empty": "", "ü": "€", "flag": ""}


@pytest.mark.parametrize(
    "spelled", ["application/x-www-form-urlencoded; charset=UTF-8", "APPLICATION/X-WWW-FORM-URLENCODED"]
)
def test_a_forms_media_type_may_be_spelled_with_capitals_and_parameters(spelled: str) -> None:
    assert _read(bodies.form, b"a=1", {"content-type": spelled}) == {"a": "1"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"a=1&b=2&a=1", "repeats the parameter 'a'"),
        (b"a=1&%61=2", "repeats the parameter 'a'"),
        (b"a=%zz", "two hexadecimal digits"),
        (b"a=%4", "two hexadecimal digits"),
        (b"a=%ff", "not UTF-8"),
        (b"a=\xff", "not UTF-8"),
        (b"a=%00", "NUL"),
        (b"&".join(b"a%d=1" % number for number in range(1002)), "more than 1000 parameters"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_with_what_is_wrong(body: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        _read(bodies.form, body, FORM)


@pytest.mark.parametrize("headers", [{}, JSON, {"content-type": "multipart/form-data; boundary=x"}])
def test_a_form_of_another_media_type_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UnsupportedMediaType):
        _read(bodies.form, b"a=1", headers)


def test_a_query_is_read_like_a_form() -> None:
    assert bodies.query(_request([], {}, b"q=a+b&page=2")) == {"q": "a b", "page": "2"}
    with pytest.raises(Malformed, match="The query repeats"):
        bodies.query(_request([], {}, b"q=a&q=b"))


def test_json_is_read_into_its_type_and_further_keys_do_no_harm() -> None:
    decoder = msgspec.json.Decoder(Asked)
    assert _read(bodies.json, b'{"name": "x", "more": [1]}', JSON, decoder) == Asked("x")
    assert _read(bodies.json, b'{"name": "x"}', {"content-type": "application/vnd.x+json"}, decoder) == Asked("x")


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"name": 1}', b"{}", b"[]", b'{"name": "\xff"}', b"null", b'{"name": "x"} x', b"[" * 60_000],
)
def test_json_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed, match="The JSON cannot be read"):
        _read(bodies.json, body, JSON, msgspec.json.Decoder(Asked))


@pytest.mark.parametrize("body", [b"", b" \r\n\t"])
def test_an_empty_body_is_called_empty(body: bytes) -> None:
    with pytest.raises(Malformed) as refused:
        _read(bodies.json, body, JSON, msgspec.json.Decoder(Asked))
    assert refused.value.sentence == "The body is empty: it must hold a JSON object."


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "x", "name": "y"}',
        b'{"name": "x", "n\\u0061me": "y"}',
        b'{"name": "x", "more": [{"b": {"name": 1, "a": 2, "name": 1}}]}',
    ],
)
def test_json_that_repeats_a_key_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed, match="The JSON repeats the key 'name'"):
        _read(bodies.json, body, JSON, msgspec.json.Decoder(Asked))


@pytest.mark.slow
def test_a_repeated_key_among_many_is_found_quickly() -> None:
    keys = b",".join(b'"%d":0' % number for number in (*range(30_000), 29_999))
    start = time.process_time()
    with pytest.raises(Malformed, match="The JSON repeats the key '29999'"):
        _read(bodies.json, b'{"name":"x","more":{%b}}' % keys, JSON, msgspec.json.Decoder(Asked), 1_000_000)
    assert time.process_time() - start < 3  # with each key compared to all before it, it is 8 seconds


def test_json_of_another_media_type_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType):
        _read(bodies.json, b"{}", FORM, msgspec.json.Decoder(Asked))


def test_a_body_may_be_as_large_as_the_limit_and_no_larger() -> None:
    assert _read(bodies.raw, b"x" * 10, {}, 10) == b"x" * 10
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        _read(bodies.raw, b"x" * 11, {}, 10)


@pytest.mark.parametrize("declared", [b"11", b"9" * 5000])
def test_a_body_declared_too_large_is_refused_before_it_is_read(declared: bytes) -> None:
    async def never() -> Message:
        raise AssertionError("The body was read.")

    async def run() -> None:
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", declared)]}
        await bodies.raw(Request(scope, never), 10)

    with pytest.raises(TooLarge):
        asyncio.run(run())


@pytest.mark.parametrize("declared", ["\u00b2", "-1", "", "many"])
def test_a_length_that_is_no_number_says_nothing(declared: str) -> None:
    assert _read(bodies.raw, b"x" * 10, {"content-length": declared}, 10) == b"x" * 10


@pytest.mark.parametrize(
    "refusal", [Malformed("The form repeats."), TooLarge("Large."), UnsupportedMediaType("Another type.")]
)
def test_a_refusal_is_a_sentence(refusal: Refusal) -> None:
    assert refusal.sentence == str(refusal)
