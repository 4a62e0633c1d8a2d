"""How tests wait: until something is true, with a deadline. A fixed sleep is too long on one machine and too short on
another; tests/house allows it only where time itself is what the test gives."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds that anything may take on a slow machine."""

_PAUSE = 0.01
_NEVER = "what the test waits for does not happen"


def until(
    happens: Callable[[], T],
    otherwise: Callable[[], str] | str = _NEVER,
    seconds: float = PATIENCE,
    *,
    pause: float = _PAUSE,
) -> T:
    """Ask until the answer is true, and return that answer.

    Raises AssertionError with what is said ``otherwise`` when it is not true in time.
    """
    deadline = time.monotonic() + seconds
    while not (answer := happens()):
        assert time.monotonic() < deadline, otherwise if isinstance(otherwise, str) else otherwise()
        time.sleep(pause)
    return answer


async def until_on_loop(happens: Callable[[], T], otherwise: str = _NEVER, seconds: float = PATIENCE) -> T:
    """Wait as ``until`` does, in a coroutine: the event loop goes on meanwhile. Raises AssertionError likewise."""
    deadline = time.monotonic() + seconds
    while not (answer := happens()):
        assert time.monotonic() < deadline, otherwise
        await asyncio.sleep(_PAUSE)
    return answer
