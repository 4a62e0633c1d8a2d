"""Read request bodies within caps: forms, JSON, raw bytes. Everything that a stranger sends passes here."""

import re
from collections.abc import AsyncIterator
from json import JSONDecoder
from typing import TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect, Request

from muniment.web import pace
from muniment.web.refusals import Malformed, TooLarge, UnsupportedMediaType

T = TypeVar("T")

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def media_type(request: Request) -> str:
    """Return the media type of the request's body, in lower case and without parameters; empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_encoding(request: Request) -> None:
    """Raise UnsupportedMediaType if the body is declared to be compressed."""
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")


async def pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield content piece by piece. It may take any time, as long as it arrives at the rate that the settings ask for.

    Raises TimedOut, and TooLarge above ``limit`` bytes: before reading if Content-Length says so.
    """
    _check_declared(request, limit)
    pace.expect_content(request)
    size, has_more = 0, True
    while has_more:
        piece, has_more = await _next_piece(request, limit, size)
        size += len(piece)
        if piece:
            yield piece


async def raw(request: Request, limit: int) -> bytes:
    """Read the whole body within its deadline. Raises TooLarge, TimedOut."""
    _check_declared(request, limit)
    body, has_more = await _next_piece(request, limit, 0)
    if not has_more:  # nearly always
        return body
    arrived, size = [body], len(body)
    while has_more:
        piece, has_more = await _next_piece(request, limit, size)
        size += len(piece)
        arrived.append(piece)
    return b"".join(arrived)


async def form(request: Request, limit: int = 65_536) -> dict[str, str]:
    """Read an application/x-www-form-urlencoded body (WHATWG URL 5.1), each parameter at most once (RFC 6749 3.2).

    Raises UnsupportedMediaType, TooLarge, Malformed.
    """
    if media_type(request) != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("The body must be application/x-www-form-urlencoded.")
    return form_fields(await raw(request, limit), "The form")


def query(request: Request) -> dict[str, str]:
    """Read the address's query, each parameter at most once. Raises Malformed."""
    return form_fields(request.scope["query_string"], "The query")


def form_fields(encoded: bytes, what: str) -> dict[str, str]:
    """Decode ``name=value&...``; ``what`` begins the sentence of a refusal. Raises Malformed."""
    fields: dict[str, str] = {}
    if encoded.count(b"&") > 1000:
        raise Malformed(f"{what} has more than 1000 parameters.")
    for pair in encoded.split(b"&"):
        if not pair:
            continue
        name, _, value = (form_value(part, what) for part in pair.partition(b"="))
        if name in fields:
            raise Malformed(f"{what} repeats the parameter {name[:100]!r}.")
        fields[name] = value
    return fields


async def json(request: Request, decoder: msgspec.json.Decoder[T], limit: int = 65_536) -> T:
    """Read a JSON body of the decoder's type. Raises UnsupportedMediaType, TooLarge, Malformed."""
    kind = media_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType("The body must be application/json.")
    return decode_json(await raw(request, limit), decoder)


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON text into the decoder's type, each key of an object at most once.

    For a repeated key RFC 8259 4 lets each reader take another value. So a proxy that checks a request might see
    another value than we use. Raises Malformed, which says what is wrong and where.
    """
    try:
        decoded = decoder.decode(body)
        if b"\\" in body or body.count(b'"') != _quotes(msgspec.json.decode(body)):
            _KEYS.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"The JSON cannot be read: {str(error)[:300].rstrip('.')}.") from error
    return decoded


def form_value(part: bytes, what: str) -> str:
    """Decode one form-encoded name or value; ``what`` begins the sentence of a refusal. Raises Malformed."""
    if _BAD_ESCAPE.search(part):
        raise Malformed(f"{what} has a % that is not followed by two hexadecimal digits.")
    try:
        text = unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"{what} is not UTF-8.") from error
    if "\x00" in text:
        raise Malformed(f"{what} holds a NUL character.")
    return text


def _check_declared(request: Request, limit: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise TooLarge(f"The body is larger than {limit} bytes.")


async def _next_piece(request: Request, limit: int, size: int) -> tuple[bytes, bool]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    piece: bytes = message.get("body", b"")
    if size + len(piece) > limit:
        raise TooLarge(f"The body is larger than {limit} bytes.")
    return piece, message.get("more_body", False)


def _quotes(decoded: object) -> int:
    """Count the quotation marks that the texts and keys of a value need, if none is escaped.

    A JSON text with more of them repeats a key: the value holds only the last of the repeated keys.
    """
    if isinstance(decoded, str):
        return 2
    if isinstance(decoded, dict):
        return 2 * len(decoded) + sum(map(_quotes, decoded.values()))
    return sum(map(_quotes, decoded)) if isinstance(decoded, list) else 0


def _refuse_repeated_key(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise Malformed(f"The JSON repeats the key {twice[:100]!r}.")


_KEYS = JSONDecoder(object_pairs_hook=_refuse_repeated_key, parse_int=str, parse_float=str)
