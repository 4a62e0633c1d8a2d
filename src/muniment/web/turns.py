"""Whose turn is it? A few long questions run at a time; callers take turns, however many each of them sends."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muniment.web.refusals import Overloaded


class Turns:
    """Lets ``at_once`` tasks run at a time, while up to ``waiting_each`` of each owner wait.

    The next place goes to the owner whose last place is longest ago. It belongs to one event loop.
    """

    def __init__(self, at_once: int, waiting_each: int) -> None:
        self._free = at_once
        self._waiting_each = waiting_each
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, owner: str, patience: float) -> AsyncIterator[None]:
        """Wait for a place, at most ``patience`` seconds, and hold it for the block. Raises Overloaded."""
        await self._place(owner, patience)
        try:
            yield
        finally:
            self._pass_on()

    async def _place(self, owner: str, patience: float) -> None:
        if self._free:
            self._free -= 1
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._waiting_each:
            raise Overloaded("Too many of your requests of this kind are waiting.")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(place)
        try:
            await asyncio.wait_for(asyncio.shield(place), patience)
        except TimeoutError as error:
            self._leave(owner, place)
            raise Overloaded("Too many requests of this kind are under way.") from error
        except BaseException:
            self._leave(owner, place)
            raise

    def _leave(self, owner: str, place: "asyncio.Future[None]") -> None:
        if place.done():
            self._pass_on()
            return
        place.cancel()
        queue = self._queues[owner]
        queue.remove(place)
        if not queue:
            del self._queues[owner]

    def _pass_on(self) -> None:
        if not self._queues:
            self._free += 1
            return
        owner, queue = next(iter(self._queues.items()))
        del self._queues[owner]
        place = queue.popleft()
        if queue:
            self._queues[owner] = queue  # behind all others
        place.set_result(None)
