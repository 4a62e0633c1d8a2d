"""Do a caller's bytes come and go as fast as they must? Short bodies have a deadline, long ones a lowest rate.

Only the time for which the server waits for the caller counts, never the server's own time.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from muniment.web.options import WebOptions
from muniment.web.refusals import TimedOut

T = TypeVar("T")

_BODY = "muniment.body"
"""The key of the ``ArrivingBody`` in a request's scope."""


class Pace:
    """How many seconds the server may still wait for a caller. With a ``rate`` (bytes a second), each byte earns time.

    Earned time never exceeds the time at the beginning: a caller cannot be fast first to be slow for long.
    """

    def __init__(self, seconds: float, rate: int | None = None) -> None:
        self._longest = seconds
        self._rate = rate
        self.left = seconds

    def count(self, seconds: float, size: int) -> None:
        """Count the seconds for which the server waited, and the bytes that came or went meanwhile."""
        earned = size / self._rate if self._rate else 0.0
        self.left = min(self._longest, self.left - seconds + earned)


class ArrivingBody:
    """A request's body while it arrives: the whole within a deadline, or at a rate once an endpoint calls it content.

    asyncio.timeout would do the same at four times the cost. Nearly every request with a body passes here, and nearly
    always its body has arrived already.
    """

    def __init__(self, receive: Receive, options: WebOptions) -> None:
        self._receive = receive
        self._options = options
        self._pace = Pace(options.body_seconds)
        self._late = f"The body did not arrive within {options.body_seconds} seconds."
        self._whole = False

    async def __call__(self) -> Message:
        """Return the next piece (ASGI). Raises TimedOut."""
        if self._whole:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        pause, began = self._options.body_pause_seconds, clock()
        if pause < self._pace.left:
            message = await _within(pause, self._receive(), f"Nothing of the body arrived for {pause} seconds.")
        else:
            message = await _within(self._pace.left, self._receive(), self._late)
        self._pace.count(clock() - began, len(message.get("body", b"")))
        self._whole = not message.get("more_body", False)
        return message

    def at_a_rate(self) -> None:
        """Let the body take any time, unless it arrives more slowly than the settings allow."""
        rate, seconds = self._options.lowest_upload_rate, self._options.slow_seconds
        self._pace = Pace(seconds, rate)
        self._late = f"The body came slower than {rate} bytes a second for {seconds} seconds."


def arriving_body(scope: Scope, receive: Receive, options: WebOptions) -> ArrivingBody:
    """Wrap the body of a request, and keep the wrapper in the request's scope."""
    body = scope[_BODY] = ArrivingBody(receive, options)
    return body


def expect_content(request: Request) -> None:
    """Treat the request's body as content, which may be large."""
    body: ArrivingBody | None = request.scope.get(_BODY)
    if body is not None:
        body.at_a_rate()


async def _within(seconds: float, step: Awaitable[T], late: str) -> T:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine of asyncio runs in a task
    fired = False

    def give_up() -> None:
        nonlocal fired
        fired = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), give_up)
    try:
        return await step
    except asyncio.CancelledError:
        if fired and not task.uncancel():
            raise TimedOut(late) from None
        raise
    finally:
        timer.cancel()
