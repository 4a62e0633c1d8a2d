"""How many streams of one kind may a caller have under way?

Each process counts its own slots.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.ground.refusals import Overloaded

_RETRY_SECONDS = 5


class Slots:
    """For one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def hold(self, owner: str, limit: int, what: str) -> Iterator[None]:
        """Raises Overloaded, whose sentence names ``what``, such as ``downloads``, when the owner holds all."""
        if self._counts[owner] >= limit:
            raise Overloaded(
                f"You have {limit} {what} under way, and you may not have more: end one of them first.", _RETRY_SECONDS
            )
        self._counts[owner] += 1
        try:
            yield
        finally:
            self._counts[owner] -= 1
            if not self._counts[owner]:
                del self._counts[owner]

    def count(self) -> int:
        return self._counts.total()


class HoldingResponse(Response):
    """Holds resources until it is sent, is cut off, or its caller leaves."""

    def __init__(self, answer: Response, resources: ExitStack) -> None:
        self._answer = answer
        self._resources = resources
        self.status_code = answer.status_code
        self.raw_headers = answer.raw_headers
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._resources:
            await self._answer(scope, receive, send)
