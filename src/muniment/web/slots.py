"""How many streams of a kind may one caller have under way? Each takes a place, and gives it back however it ends.

The places are counted in one process.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.web.refusals import Overloaded

_RETRY_SECONDS = 5


class Slots:
    """The places of one kind, counted for each owner. They belong to one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def place(self, owner: str, limit: int, what: str) -> Iterator[None]:
        """Hold one of ``limit`` places for the block. Raises Overloaded when the owner holds all of them."""
        if self._counts[owner] >= limit:
            raise Overloaded(
                f"You have {limit} {what} under way, the most that you may have: end one first.", _RETRY_SECONDS
            )
        self._counts[owner] += 1
        try:
            yield
        finally:
            self._counts[owner] -= 1
            if not self._counts[owner]:
                del self._counts[owner]

    def count(self) -> int:
        """Count the places that are taken, over all owners."""
        return self._counts.total()


class HoldingResponse(Response):
    """An answer that holds resources until it ends: when it is sent, or cut off, or its caller leaves."""

    def __init__(self, answer: Response, resources: ExitStack) -> None:
        self._answer = answer
        self._resources = resources
        self.status_code = answer.status_code
        self.raw_headers = answer.raw_headers
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer (ASGI), then free the resources."""
        with self._resources:
            await self._answer(scope, receive, send)
