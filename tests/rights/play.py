"""One request to the application without a socket, during which something happens at an exact moment."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from starlette.types import ASGIApp, Message, Scope

from muniment.repository.api.callers.callers import Callers
from muniment.web.requests.transport import CutShort
from tests.scenes import Loop

Moment = Literal["last byte", "wait", "queue", "first bytes"]
"""When the right ends: before the last byte of the body is given, while the request waits for the index or for other
writes, or once the first bytes of a long answer are out."""


class Sent(NamedTuple):
    """A request as it is sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


class Outcome(NamedTuple):
    """What came back. ``whole`` is false where the answer was cut off."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool


def play(
    application: ASGIApp, loop: Loop, sent: Sent, moment: Moment | None, happen: Callable[[], None] = lambda: None
) -> Outcome:
    """Send a request; what is to ``happen`` happens at the moment, and is over before the request goes on.

    While it waits, what happens begins when the caller was let in; it is for what happens to end the wait.
    """
    if moment in {"wait", "queue"}:
        with _let_in() as inside, ThreadPoolExecutor(1) as beside:
            happened = beside.submit(_once, inside, happen)
            outcome = loop.run(_play(application, sent, None, happen))
            happened.result()
        return outcome
    return loop.run(_play(application, sent, moment, happen))


async def _play(application: ASGIApp, sent: Sent, moment: Moment | None, happen: Callable[[], None]) -> Outcome:
    half = len(sent.body) // 2
    left = [sent.body[:half], sent.body[half:]] if sent.body else [b""]
    messages: list[Message] = []

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        piece = left.pop(0)
        if not left and moment == "last byte":
            await asyncio.to_thread(happen)
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    async def send(message: Message) -> None:
        first = message.get("body") and not any(one.get("body") for one in messages)
        messages.append(message)
        if first and moment == "first bytes":
            await asyncio.to_thread(happen)

    try:
        await application(_scope(sent), receive, send)
        whole = True
    except CutShort:
        whole = False
    headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
    return Outcome(messages[0]["status"], headers, b"".join(one.get("body", b"") for one in messages[1:]), whole)


def _scope(sent: Sent) -> Scope:
    parts = urlsplit(sent.path)
    headers: dict[str, Any] = {"host": "muniment.test", "content-length": str(len(sent.body)), **sent.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "https",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("203.0.113.9", 4711),
        "server": ("muniment.test", 443),
    }


@contextmanager
def _let_in() -> Iterator[threading.Event]:
    """Say when a caller was let in at the head of a request."""
    inside = threading.Event()

    def observed(identify: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def identify_and_say(*args: Any) -> Any:
            bearer = await identify(*args)
            inside.set()
            return bearer

        return identify_and_say

    with pytest.MonkeyPatch.context() as patch:
        for name in ("identify", "identify_page"):
            patch.setattr(Callers, name, observed(getattr(Callers, name)))
        yield inside


def _once(inside: threading.Event, happen: Callable[[], None]) -> None:
    assert inside.wait(30), "the caller was not let in"
    happen()
