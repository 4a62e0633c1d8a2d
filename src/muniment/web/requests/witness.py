"""Record a request's security events after its answer."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.ground.clock import Instant
from muniment.ground.events import Event, Recorder, Result

WITNESS = "muniment.witness"
"""A batch passes its requests to this one's ``app``."""


class Witness:
    """The answer's status gives the result, unless the endpoint has set one.

    Written after the answer, an event does not show in its time.
    """

    def __init__(self, app: ASGIApp, recorder: Recorder, clock: Callable[[], Instant]) -> None:
        self.app = app
        self._recorder = recorder
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[WITNESS] = self
        try:
            await self.app(scope, receive, send)
        finally:
            self.record(scope)

    def record(self, scope: Scope) -> None:
        """Once for each request: after its answer, or when it will get none."""
        events: Sequence[Event] = scope.get("muniment.events", ())
        for event in events:
            status = scope.get("muniment.status", 500)
            event.result = event.result or result(status, is_refused="muniment.refused" in scope)
            event.origin = scope["client"][0] if scope.get("client") else None
            event.request_id = event.request_id or scope.get("muniment.request_id")
            self._recorder.record(event, self._clock())


async def record_counts(recorder: Recorder, clock: Callable[[], Instant]) -> None:
    try:
        while True:
            await asyncio.sleep(5)
            recorder.settle(clock())
    finally:
        recorder.settle(clock(), stopping=True)


def result(status: int, *, is_refused: bool) -> Result:
    if status >= 500:
        return "failed"
    return "refused" if is_refused or status >= 400 else "done"
