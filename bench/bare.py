"""Bare ASGI endpoints beside which ours are measured: they decide nothing.

``application`` reads the JSON of a tokeninfo request and writes the same bytes as ours. ``stored`` does so after one
prepared statement on PostgreSQL that finds the token. ``replayed`` runs the statements that ours ran for such a
request. ``files`` writes a request's body to a file, and gives a file out, in the pieces our content store uses.
"""

import asyncio
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from bench.recordings import Replay

REPLY = os.environ.get("BENCH_REPLY", "{}").encode()
FILE = os.environ.get("BENCH_FILE", "")
DATABASE = os.environ.get("BENCH_DATABASE", "")
STATEMENTS = os.environ.get("BENCH_STATEMENTS", "")
PIECE = 262_144

_FIND = "SELECT expires FROM bench_tokens WHERE token = %s"
_CONNECTIONS = 4


class Asked(msgspec.Struct):
    """The request of given 2.5."""

    token: str
    resource_id: str


_asked = msgspec.json.Decoder(Asked)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer every request with the same bytes (ASGI)."""
    if scope["type"] != "http":
        return
    await _read(scope, receive)
    await _write(200, REPLY, send)


async def _read(scope: dict[str, Any], receive: Any) -> Asked | None:
    body = await _received(scope, receive)
    return _asked.decode(body) if body else None


async def _received(scope: dict[str, Any], receive: Any) -> bytes:
    body, more = b"", True
    while more and scope["method"] == "POST":
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _write(status: int, body: bytes, send: Any) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_idle: "asyncio.Queue[psycopg.AsyncConnection[Any]]" = asyncio.Queue()


async def stored(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a request whose token is in the database with the same bytes (ASGI)."""
    if scope["type"] != "http":
        return
    asked = await _read(scope, receive)
    if asked is None:
        while _idle.qsize() < _CONNECTIONS:  # the first request of all, which asks whether the server is ready
            _idle.put_nowait(await psycopg.AsyncConnection.connect(DATABASE, autocommit=True))
        await _write(200, b"{}", send)
        return
    connection = await _idle.get()
    try:
        found = await (await connection.execute(_FIND, (asked.token,), prepare=True)).fetchone()
    finally:
        _idle.put_nowait(connection)
    await _write(404 if found is None else 200, REPLY, send)


@cache
def _replay() -> Replay:
    return Replay(Path(STATEMENTS), Path(DATABASE))


async def replayed(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Read the JSON, run the statements recorded under the request's method, and write the same bytes as ours (ASGI).

    The statements run in the event loop, each request's in a transaction of its own.
    """
    if scope["type"] != "http":
        return
    if scope["path"] == "/":  # asks whether the server is ready
        await _write(200, b"{}", send)
        return
    if body := await _received(scope, receive):
        msgspec.json.decode(body)
    await _write(*_replay().run(scope["method"]), send)


async def files(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """POST: the body becomes a file; GET /file: the file (ASGI). It works in the event loop, and verifies nothing."""
    if scope["type"] != "http":
        return
    if scope["method"] == "POST":
        with open(FILE + ".up", "wb", buffering=0) as file:
            more = True
            while more:
                message = await receive()
                file.write(message.get("body", b""))
                more = message.get("more_body", False)
            os.fsync(file.fileno())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    size = os.path.getsize(FILE) if scope["path"] == "/file" else 0
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if size:
        with open(FILE, "rb", buffering=0) as file:
            while piece := file.read(PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
