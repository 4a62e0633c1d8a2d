"""Bare ASGI endpoints beside which ours are measured: they decide nothing.

``application`` reads the JSON of a tokeninfo request and writes the same bytes as ours. ``files`` writes a request's
body to a file, and gives a file out, in the pieces our content store uses.
"""

import os
from typing import Any

import msgspec

REPLY = os.environ.get("BENCH_REPLY", "{}").encode()
FILE = os.environ.get("BENCH_FILE", "")
PIECE = 262_144


class Asked(msgspec.Struct):
    """The request of given 2.5."""

    token: str
    resource_id: str


_asked = msgspec.json.Decoder(Asked)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer every request with the same bytes (ASGI)."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more and scope["method"] == "POST":
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if body:
        _asked.decode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(REPLY)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": REPLY})


async def files(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """POST: the body becomes a file; GET /file: the file (ASGI). It writes and reads in the event loop, unverified."""
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
