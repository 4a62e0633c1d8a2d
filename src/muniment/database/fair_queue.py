"""Whose turn is it? A few long pieces of work run at one time. Callers take turns, and pay for the time that they use
(decision 0087).
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

from muniment.database.budgets import Budget
from muniment.database.connections import TookTooLong
from muniment.ground.refusals import Overloaded

T = TypeVar("T")

HasLeft: TypeAlias = Callable[[], Awaitable[bool]]
"""Says whether a request's caller has closed the connection."""

_LOOK_SECONDS = 0.1

_SHARED_SECONDS = 1.5
"""So long may work go on while somebody waits, longer by as much as that one has used more."""

_MOST_REMEMBERED = 1000


class Turns:
    """At most ``at_once`` tasks run at one time, ``running_each`` of each owner; ``waiting_each`` of each may wait.

    A free slot goes to the owner who has used the least time, then to the one whose last turn was longest ago. Time
    that nobody waited for does not count. For one event loop.
    """

    def __init__(self, at_once: int, waiting_each: int, running_each: int | None = None) -> None:
        self._free = at_once
        self._waiting_each = waiting_each
        self._running_each = running_each or at_once
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self._running = Counter[str]()
        # The seconds that each owner has used. Who has used less than ``_now`` counts as having used that.
        self._ahead: dict[str, float] = {}
        self._now = 0.0
        self._budgets: dict[Budget, tuple[str, float]] = {}

    @asynccontextmanager
    async def turn(self, owner: str, seconds: float) -> AsyncIterator[None]:
        """Raises Overloaded if no slot comes in that time, or too many of the owner's tasks wait."""
        await self._take(owner, seconds)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            yield
        finally:
            self._give_back(owner, clock() - began)

    async def run(
        self, owner: str, seconds: float, threads: Executor, budget: Budget, work: Callable[[], T], has_left: HasLeft
    ) -> T:
        """Its ``budget`` shrinks while others wait who have used less.

        Raises what ``turn`` and ``work`` raise, and Overloaded when it is ended for others or the caller has left.
        """
        task = asyncio.create_task(self._run(owner, seconds, threads, budget, work))
        try:
            while not (await asyncio.wait([task], timeout=_LOOK_SECONDS))[0]:
                if await has_left():
                    raise Overloaded("The caller has left.")
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self, owner: str, seconds: float, threads: Executor, budget: Budget, work: Callable[[], T]) -> T:
        async with self.turn(owner, seconds):
            self._budgets[budget] = owner, self._place(owner)
            self._share()
            under_way = asyncio.get_running_loop().run_in_executor(threads, budget.spend, work)
            try:
                return await asyncio.shield(under_way)
            except asyncio.CancelledError:
                budget.limit(0)
                await asyncio.gather(under_way, return_exceptions=True)
                raise
            except TookTooLong as error:
                if budget.is_cut:
                    raise Overloaded("This takes long, and others wait: try again, or ask for less.") from error
                raise
            finally:
                del self._budgets[budget]

    def _share(self) -> None:
        ready = self._ready()
        for budget, (owner, began_at) in self._budgets.items():
            for other in ready:
                if other != owner:
                    budget.limit(_SHARED_SECONDS + self._place(other) - began_at)

    async def _take(self, owner: str, seconds: float) -> None:
        if self._free and self._running[owner] < self._running_each:
            self._start(owner)
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._waiting_each:
            raise Overloaded("Too many of your requests of this kind are waiting.")
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(slot)
        self._share()
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
            self._give_back(owner, 0.0)
            return
        slot.cancel()
        queue = self._queues[owner]
        queue.remove(slot)
        if not queue:
            del self._queues[owner]

    def _start(self, owner: str) -> None:
        self._free -= 1
        self._running[owner] += 1
        self._now = self._ahead[owner] = self._place(owner)

    def _give_back(self, owner: str, used: float) -> None:
        self._free += 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._ahead[owner] = self._ahead.get(owner, self._now) + used
        if len(self._ahead) > _MOST_REMEMBERED:
            self._ahead = {each: ahead for each, ahead in self._ahead.items() if ahead > self._now}
        self._pass_on()

    def _place(self, owner: str) -> float:
        """The time that the owner counts as having used, on the scale of ``_now``."""
        return max(self._now, self._ahead.get(owner, 0.0))

    def _pass_on(self) -> None:
        while self._free and (ready := self._ready()):
            owner = min(ready, key=self._place)
            queue = self._queues.pop(owner)
            slot = queue.popleft()
            if queue:
                self._queues[owner] = queue  # behind the other owners
            self._start(owner)
            slot.set_result(None)
        self._share()

    def _ready(self) -> list[str]:
        """Owners who wait for a free slot alone, not for work of their own."""
        return [owner for owner in self._queues if self._running[owner] < self._running_each]


async def stays() -> bool:
    return False
