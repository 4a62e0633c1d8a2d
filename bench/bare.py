"""The endpoint beside which tokeninfo is measured: reads the same JSON, writes the same bytes, decides nothing."""

import os
from typing import Any

import msgspec

REPLY = os.environ.get("BENCH_REPLY", "{}").encode()


class Asked(msgspec.Struct):
    """The request of given 2.5."""

    token: str
    resource_id: str


_asked = msgspec.json.Decoder(Asked)


async def application(_scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer every request with the same bytes (ASGI)."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    _asked.decode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(REPLY)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": REPLY})
