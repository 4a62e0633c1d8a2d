"""The time at which tests happen."""

from collections.abc import Iterator
from contextlib import contextmanager

from muniment.ground.clock import SECOND, Instant

NOON: Instant = 1_795_262_400 * SECOND
"""2026-11-21T12:00:00Z."""


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self, now: Instant = NOON) -> None:
        self.now = now

    def __call__(self) -> Instant:
        return self.now

    def advance(self, seconds: float) -> Instant:
        """Let time pass."""
        self.now += round(seconds * SECOND)
        return self.now

    @contextmanager
    def shift(self, seconds: float) -> Iterator[None]:
        """Let it be later for the length of a block."""
        before = self.now
        self.advance(seconds)
        try:
            yield
        finally:
            self.now = before
