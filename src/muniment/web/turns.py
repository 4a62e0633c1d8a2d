"""Whose turn is it? A few long questions run at one time. Callers take turns, however many questions each one sends."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muniment.web.refusals import Overloaded


class Turns:
    """Lets at most ``at_once`` tasks run at one time, and at most ``waiting_each`` tasks of each owner wait.

    Each running task holds a slot. The owners who wait get free slots in turn, one slot each. Each instance belongs to
    one event loop.
    """

    def __init__(self, at_once: int, waiting_each: int) -> None:
        self._free = at_once
        self._waiting_each = waiting_each
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, owner: str, seconds: float) -> AsyncIterator[None]:
        """Wait at most ``seconds`` for a slot, and hold it for the block.

        Raises Overloaded if no slot comes in that time, or if too many tasks of the owner wait already.
        """
        await self._take(owner, seconds)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, owner: str, seconds: float) -> None:
        if self._free:
            self._free -= 1
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._waiting_each:
            raise Overloaded("Too many of your requests of this kind are waiting.")
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(slot)
        try:
            await asyncio.wait_for(asyncio.shield(slot), seconds)
        except TimeoutError as error:
            self._leave(owner, slot)
            raise Overloaded("Too many requests of this kind are under way.") from error
        except BaseException:
            self._leave(owner, slot)
            raise

    def _leave(self, owner: str, slot: "asyncio.Future[None]") -> None:
        if slot.done():
            self._give_back()
            return
        slot.cancel()
        queue = self._queues[owner]
        queue.remove(slot)
        if not queue:
            del self._queues[owner]

    def _give_back(self) -> None:
        if not self._queues:
            self._free += 1
            return
        owner, queue = next(iter(self._queues.items()))
        del self._queues[owner]
        slot = queue.popleft()
        if queue:
            self._queues[owner] = queue  # behind the other owners
        slot.set_result(None)
