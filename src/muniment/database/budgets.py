"""May the work in this thread go on?

Nothing can interrupt one call of the index engine. Source: docs/decisions/0087.
"""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from muniment.database.connections import TookTooLong

T = TypeVar("T")

_current: ContextVar["Budget | None"] = ContextVar("muniment.budget", default=None)


class Budget:
    """The ``seconds`` that one piece of work may take, from ``spend`` on.

    ``is_cut`` once ``limit``, which any thread may call, has made them fewer.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_cut = False
        self._began = math.inf

    def spend(self, work: Callable[[], T]) -> T:
        """Raises TookTooLong where the work calls ``check``."""
        self._began = time.monotonic()
        token = _current.set(self)
        try:
            check()
            return work()
        finally:
            _current.reset(token)

    def limit(self, seconds: float) -> None:
        """With 0 the work ends as soon as it can."""
        if seconds < self.seconds:
            self.seconds, self.is_cut = seconds, True

    def is_spent(self) -> bool:
        return self.left() <= 0

    def left(self) -> float:
        """In seconds."""
        return self.seconds - (time.monotonic() - self._began)


def check() -> None:
    """Raises TookTooLong if this thread's budget is spent."""
    budget = _current.get()
    if budget is not None and budget.is_spent():
        raise TookTooLong("The search took longer than one request may: narrow it, or try again.")


def left() -> float:
    """Return the seconds that this thread's budget still has; infinity without one."""
    budget = _current.get()
    return math.inf if budget is None else budget.left()
