"""Do the bytes of a body or an answer keep the pace? Content and answers have a lowest rate, other bodies a deadline.

Only the time in which the server waits counts.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from muniment.ground.refusals import TimedOut
from muniment.web.options import WebOptions

T = TypeVar("T")

_BODY = "muniment.body"


class Pace:
    """How many seconds the server will still wait: never more than ``seconds``.

    With a ``rate`` (bytes a second) each byte adds time.
    """

    def __init__(self, seconds: float, rate: int | None = None) -> None:
        self._longest = seconds
        self._rate = rate
        self.seconds_left = seconds

    def count(self, seconds: float, size: int) -> None:
        extra_seconds = size / self._rate if self._rate else 0.0
        self.seconds_left = min(self._longest, self.seconds_left - seconds + extra_seconds)


class ArrivingBody:
    """Has a deadline, or after ``expect_content`` a lowest rate.

    ``asyncio.timeout`` costs four times as much, and nearly every body comes here.
    """

    __slots__ = ("_is_content", "_is_whole", "_options", "_pace", "_receive")

    def __init__(self, scope: Scope, receive: Receive, options: WebOptions) -> None:
        scope[_BODY] = self
        self._receive = receive
        self._options = options
        self._pace: Pace | None = None
        self._is_content = False
        self._is_whole = False

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        message = begin(self._receive())
        if isinstance(message, Waiting):
            message = await self._wait_for(message)
        elif self._pace is not None:
            self._pace.count(0, len(message.get("body", b"")))
        self._is_whole = not message.get("more_body", False)
        return message

    async def _wait_for(self, waiting: "Waiting") -> Message:
        options, clock = self._options, asyncio.get_running_loop().time
        if self._is_content:
            rate, seconds = options.lowest_upload_rate, options.slow_seconds
            pace = self._pace = self._pace or Pace(seconds, rate)
            sentence = f"The body came slower than {rate} bytes a second for {seconds} seconds."
        else:
            pace = self._pace = self._pace or Pace(options.body_seconds)
            sentence = f"The body did not arrive within {options.body_seconds} seconds."
        seconds_left = pace.seconds_left
        if options.body_pause_seconds < seconds_left:
            seconds_left = options.body_pause_seconds
            sentence = f"Nothing of the body arrived for {seconds_left} seconds."
        start = clock()
        message = await _limit(seconds_left, waiting, sentence)
        pace.count(clock() - start, len(message.get("body", b"")))
        return message


def expect_content(request: Request) -> None:
    body: ArrivingBody | None = request.scope.get(_BODY)
    if body is not None:
        body._pace, body._is_content = None, True


class Waiting(Awaitable[Message]):
    """``for_what`` is what the call's coroutine yielded first."""

    def __init__(self, call: Coroutine[Any, Any, Message], for_what: Any) -> None:
        self._call = call
        self._for_what = for_what

    def __await__(self) -> Generator[Any, Any, Message]:
        for_what = self._for_what
        try:
            while True:
                try:
                    answer = yield for_what
                except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the call
                    for_what = self._call.throw(error)
                else:
                    for_what = self._call.send(answer)
        except StopIteration as stop:
            message: Message = stop.value
            return message


def begin(call: Awaitable[Message]) -> Message | Waiting:
    """Return the message at once if it is there, as nearly always."""
    assert isinstance(call, Coroutine)  # noqa: S101 - ASGI's receive is a coroutine function
    try:
        return Waiting(call, call.send(None))
    except StopIteration as stop:
        message: Message = stop.value
        return message


async def _limit(seconds: float, step: Awaitable[T], sentence: str) -> T:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine of asyncio runs in a task
    is_late = False

    def cancel() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), cancel)
    try:
        return await step
    except asyncio.CancelledError:
        if is_late and not task.uncancel():
            raise TimedOut(sentence) from None
        raise
    finally:
        timer.cancel()
