"""Who may hold a database's writer next, and when?

Between two holds all other writes, such as those that end rights, have it for as long as the last hold took (decision
0090).
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from muniment.database.connections import Database
from muniment.database.fair_queue import Turns
from muniment.ground import locks
from muniment.ground.refusals import Overloaded

_WAITING_EACH = 2

_REST_OF_CALLER = 4.0

_LONGEST_REST = 60.0
"""A file's time further ahead, in seconds, is from before the machine started."""

_LOOK_SECONDS = 0.005
_BUSY = "Too many transactional batches are under way."


class Holds:
    """A caller who held it N seconds waits 4 N seconds in this process, everybody else N seconds.

    On SQLite a lock file's time of modification is the ``time.monotonic`` until which no process may take its lock. On
    PostgreSQL each process is on its own.
    """

    def __init__(self, database: Database) -> None:
        self._turns = Turns(1, _WAITING_EACH)
        self._seconds = database.busy_seconds
        self._path = Path(f"{database.engine.url.database}-batches") if database.dialect == "sqlite" else None
        self._rests: dict[str, float] = {}

    @asynccontextmanager
    async def hold(self, caller: str) -> AsyncIterator[None]:
        """Raises Overloaded if, after what the caller owes, no turn comes within the database's ``busy_seconds``, or
        too many of the caller's wait.
        """
        while True:
            await asyncio.sleep(self._rests.get(caller, 0.0) - time.monotonic())
            until = time.monotonic() + self._seconds
            async with self._turns.turn(caller, self._seconds):
                if self._rests.get(caller, 0.0) > time.monotonic():
                    continue  # another hold of the caller came first
                with ExitStack() as stack:
                    file = None if self._path is None else await self._lock(stack, self._path, until)
                    began = time.monotonic()
                    try:
                        yield
                    finally:
                        self._rest(caller, file, began)
                return

    async def _lock(self, stack: ExitStack, path: Path, until: float) -> int:
        while time.monotonic() < until:
            with ExitStack() as attempt:
                try:
                    file = attempt.enter_context(locks.hold(path, wait=False))
                except locks.Held:
                    pass
                else:
                    if not 0 < os.fstat(file).st_mtime - time.monotonic() < _LONGEST_REST:
                        stack.push(attempt.pop_all())
                        return file
            await asyncio.sleep(_LOOK_SECONDS)
        raise Overloaded(_BUSY)

    def _rest(self, caller: str, file: int | None, began: float) -> None:
        now = time.monotonic()
        self._rests = {each: end for each, end in self._rests.items() if end > now}
        self._rests[caller] = now + _REST_OF_CALLER * (now - began)
        if file is not None:
            os.utime(file, (2 * now - began, 2 * now - began))
