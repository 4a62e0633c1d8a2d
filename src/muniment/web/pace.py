"""Do a caller's bytes come, or go, as fast as they must? A deadline for what is short, a lowest rate for what is long.

Only the time that the server waits for the caller counts, never what it takes itself.
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
"""Where a request's scope keeps its ``ArrivingBody``."""


class Pace:
    """How long a caller may still be waited for, in seconds. At a ``rate`` (bytes a second), each byte earns time.

    No more is ever left than at the beginning: nobody can be quick first to be slow for long.
    """

    def __init__(self, seconds: float, rate: int | None = None) -> None:
        self._most = seconds
        self._rate = rate
        self.left = seconds

    def count(self, waited: float, moved: int) -> None:
        """Note the seconds that the caller was waited for, and the bytes that moved meanwhile."""
        earned = moved / self._rate if self._rate else 0.0
        self.left = min(self._most, self.left - waited + earned)


class ArrivingBody:
    """A request's body on its way in: as a whole within a deadline, or at a rate once somebody says it is content.

    asyncio.timeout would do the same for four times the cost; nearly every request with a body passes here, and its
    body is nearly always there already.
    """

    def __init__(self, receive: Receive, options: WebOptions) -> None:
        self._receive = receive
        self._options = options
        self._pace = Pace(options.body_seconds)
        self._late = f"The body did not arrive within {options.body_seconds} seconds."
        self._whole = False

    async def __call__(self) -> Message:
        """Give the next piece (ASGI). Raises TimedOut."""
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
        """Let the body take as long as it needs, as long as it does not come slower than the settings allow."""
        rate, seconds = self._options.lowest_upload_rate, self._options.slow_seconds
        self._pace = Pace(seconds, rate)
        self._late = f"The body came slower than {rate} bytes a second for {seconds} seconds."


def arriving(scope: Scope, receive: Receive, options: WebOptions) -> ArrivingBody:
    """Make the body of a request, and let whoever reads it know it."""
    body = scope[_BODY] = ArrivingBody(receive, options)
    return body


def take_content(request: Request) -> None:
    """Say that the request's body is content, which may be large."""
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
