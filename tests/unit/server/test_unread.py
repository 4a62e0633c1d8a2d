"""After which time is a caller cut off who has stopped reading? The seconds are those of the test."""

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable
from typing import Any, cast

import pytest

from muniment.server.unread import Unread, _View
from muniment.web.options import WebOptions


class Seconds:
    """A loop with callbacks that wait for a time, and a connection's transport and socket."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.cut_off: float | None = None

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> "Seconds":
        self.waiting.append((self.now + seconds, call))
        return self

    def get_extra_info(self, _name: str) -> Any:
        return self

    def getsockopt(self, *_: int) -> bytes:
        return b""

    def setsockopt(self, *_: object) -> None:
        pass

    def abort(self) -> None:
        self.cut_off = self.now

    def run(self) -> None:
        """Run until nothing waits."""
        while self.waiting:
            self.now, call = self.waiting.pop(0)
            call()


def test_the_time_without_reading_begins_with_the_last_byte_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = Seconds()
    options = WebOptions(slow_seconds=20, lowest_download_rate=1_000_000)
    unread = Unread(cast("Transport", seconds), options, cast("AbstractEventLoop", seconds))
    views = iter([_View(0, 40_000_000, 0)])
    # The caller's system takes thirty megabytes at once, and nothing more.
    monkeypatch.setattr(unread, "_look", lambda: next(views, _View(0, 10_000_000, 30_000_000)))
    assert unread.watch()
    seconds.run()
    assert seconds.cut_off is not None
    assert 20 <= seconds.cut_off <= 23
