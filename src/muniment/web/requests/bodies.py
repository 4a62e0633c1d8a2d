"""Read request bodies within caps: forms, JSON, raw bytes. Only ``fast_path`` reads others."""

import re
from collections.abc import AsyncIterator, Collection, Iterator
from typing import TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect, Request

from muniment.ground import json_text
from muniment.ground.refusals import Malformed, TooLarge, UnsupportedMediaType
from muniment.web.requests import pace

T = TypeVar("T")

_PLAIN = re.compile(rb"[A-Za-z0-9._@:/-]*")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_encoding(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")


async def pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Without a deadline, but at the lowest rate.

    Raises TimedOut, and TooLarge: at once if Content-Length exceeds ``limit``.
    """
    _check_content_length(request, limit)
    pace.expect_content(request)
    size, has_more = 0, True
    while has_more:
        piece, has_more = await _next_piece(request, limit, size)
        size += len(piece)
        if piece:
            yield piece


async def raw(request: Request, limit: int) -> bytes:
    """Raises TooLarge, TimedOut."""
    _check_content_length(request, limit)
    body, has_more = await _next_piece(request, limit, 0)
    if not has_more:  # nearly always
        return body
    parts, size = [body], len(body)
    while has_more:
        piece, has_more = await _next_piece(request, limit, size)
        size += len(piece)
        parts.append(piece)
    return b"".join(parts)


async def form(request: Request, limit: int = 65_536) -> dict[str, str]:
    """A parameter may come only once (RFC 6749 3.2). Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed."""
    return form_fields(await raw_form(request, limit), "The form")


async def raw_form(request: Request, limit: int = 65_536) -> bytes:
    """What ``form_fields`` reads. Raises UnsupportedMediaType, TooLarge, TimedOut."""
    if media_type(request) != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("The body must be application/x-www-form-urlencoded.")
    return await raw(request, limit)


def query(request: Request, lists: Collection[str] = ()) -> dict[str, str]:
    """Values of repeated parameters in ``lists`` are joined with commas. Raises Malformed."""
    return form_fields(request.scope["query_string"], "The query", lists)


def form_fields(encoded: bytes, what: str, lists: Collection[str] = ()) -> dict[str, str]:
    """Raises Malformed, also for a repeated name."""
    fields: dict[str, str] = {}
    for name, value in pairs(encoded, what):
        if name in fields and name not in lists:
            raise Malformed(f"{what} repeats the parameter {name[:100]!r}.")
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def pairs(encoded: bytes, what: str) -> Iterator[tuple[str, str]]:
    """A name may come more than once. Raises Malformed."""
    if encoded.count(b"&") > 1000:
        raise Malformed(f"{what} has more than 1000 parameters.")
    for pair in encoded.split(b"&"):
        if pair:
            name_part, _, value_part = pair.partition(b"=")
            yield form_value(name_part, what), form_value(value_part, what)


async def json(request: Request, decoder: msgspec.json.Decoder[T], limit: int = 65_536) -> T:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed."""
    return json_text.decode(await raw_json(request, limit), decoder)


async def raw_json(request: Request, limit: int = 65_536) -> bytes:
    """Raises UnsupportedMediaType, TooLarge, TimedOut."""
    kind = media_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType("The body must be application/json.")
    return await raw(request, limit)


def form_value(part: bytes, what: str) -> str:
    """Decode a form-encoded name or value; ``what`` begins the refusal. Raises Malformed."""
    if _PLAIN.fullmatch(part):  # nearly always
        return part.decode("ascii")
    if _BAD_ESCAPE.search(part):
        raise Malformed(f"{what} has a % that is not followed by two hexadecimal digits.")
    try:
        text = unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"{what} is not UTF-8.") from error
    if "\x00" in text:
        raise Malformed(f"{what} holds a NUL character.")
    return text


def _check_content_length(request: Request, limit: int) -> None:
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdecimal() and (len(length) > 18 or int(length) > limit):
        raise TooLarge(f"The body is larger than {limit} bytes.")


async def _next_piece(request: Request, limit: int, size: int) -> tuple[bytes, bool]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    piece: bytes = message.get("body", b"")
    if size + len(piece) > limit:
        raise TooLarge(f"The body is larger than {limit} bytes.")
    return piece, message.get("more_body", False)
