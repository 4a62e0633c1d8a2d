"""From the event loop into a decision: a plain function run in one transaction, off the loop when it may wait."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import Connection

from muniment.db import Busy, Database

P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """Takes decisions to one database: writes in a small pool of threads, reads inline on SQLite.

    What does not write has threads of its own: it goes on while writes wait for a locked database.
    """

    def __init__(self, database: Database, *, threads: int = 8) -> None:
        self.database = database
        self._writing = ThreadPoolExecutor(threads, thread_name_prefix="decision")
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="question")

    async def write(self, decision: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the decision in one write transaction. What it raises rolls everything back and is raised here.

        Raises Busy, also when it came to no thread within the time that the database lets a write wait.
        """
        patience = time.monotonic() + self.database.busy_seconds

        def run() -> T:
            if time.monotonic() > patience:
                raise Busy("The database is busy with other writes.")
            with self.database.begin() as cx:
                return decision(cx, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._writing, run)

    async def read(self, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask a question of one snapshot. On SQLite it takes microseconds, less than a change of threads."""

        def run() -> T:
            with self.database.read() as cx:
                return question(cx, *args, **kwargs)

        if self.database.dialect == "sqlite":
            return run()
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def off_loop(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that opens its own transactions, or none, in the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Wait for the decisions under way, then give the database back."""
        self._writing.shutdown(wait=True)
        self._threads.shutdown(wait=True)
        self.database.close()
