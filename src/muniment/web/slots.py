"""How many of a kind may one caller have under way? Each that begins takes a place, and leaves it however it ends.

The places are those of one process.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.web.refusals import Overloaded

_RETRY_SECONDS = 5


class Slots:
    """Places of one kind, counted for each owner. They belong to one event loop."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, owner: str, most: int, what: str) -> Iterator[None]:
        """Hold one of ``most`` places for the block. Raises Overloaded when the owner has them all."""
        if self._taken[owner] >= most:
            raise Overloaded(f"You have {most} {what} under way, the most there may be: end one first.", _RETRY_SECONDS)
        self._taken[owner] += 1
        try:
            yield
        finally:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]

    def taken(self) -> int:
        """Say how many places are taken in all."""
        return self._taken.total()


class HoldingResponse(Response):
    """An answer that holds something until it has ended: sent, cut off, or left by its caller."""

    def __init__(self, answer: Response, held: ExitStack) -> None:
        self._answer = answer
        self._held = held
        self.status_code = answer.status_code
        self.raw_headers = answer.raw_headers
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it (ASGI), then let go."""
        with self._held:
            await self._answer(scope, receive, send)
