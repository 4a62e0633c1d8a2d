"""Two commits of ours in one run: each row is measured at both, in turns, and one is set beside the other."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from bench.checkout import Checkout
from bench.page import Line, cells, shown
from bench.run import Run

Found = TypeVar("Found")

_APART = 1.3
"""A ratio from which two figures are apart by more than chance."""


class Turns:
    """Lets one of several threads work at a time, one after the other."""

    def __init__(self, count: int) -> None:
        self._waiting = list(range(count))
        self._changed = threading.Condition()
        self._stopped = False

    def hand_over(self, number: int) -> None:
        """Let the others go on, and return when it is the turn of this one again."""
        with self._changed:
            self._waiting.remove(number)
            self._waiting.append(number)
            self._changed.notify_all()
        self.wait(number)

    def wait(self, number: int) -> None:
        """Return when it is the turn of this one. Raises SystemExit when no more turns are given."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._waiting[0] == number)
            if self._stopped:
                raise SystemExit

    def leave(self, number: int) -> None:
        """Take no more turns."""
        with self._changed:
            self._waiting.remove(number)
            self._changed.notify_all()

    def stop(self) -> None:
        """Give no more turns."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def both(run: Run, checkout: Checkout, measure: Callable[[Run], Found]) -> list[Found]:
    """Measure our server of this commit and of the other one, in turns: what each gave.

    Each has a thread: the rows are measured as ever, and wait for the other's turn before every round. When the run is
    told to stop, both end what they have started first.
    """
    turns, found = Turns(2), dict[int, Found]()

    def work(number: int, side: Run) -> None:
        with suppress(SystemExit):
            try:
                turns.wait(number)
                found[number] = measure(side)
            finally:
                turns.leave(number)

    threads = []
    for number, side in enumerate((run, replace(run, checkout=checkout))):
        scratch = run.scratch / f"side-{number}"
        scratch.mkdir(exist_ok=True)
        scratch.chmod(0o755)
        here = replace(side, scratch=scratch, hand_over=partial(turns.hand_over, number))
        threads.append(threading.Thread(target=work, args=(number, here), daemon=True))
    for each in threads:
        each.start()
    try:
        for each in threads:
            each.join()
    except BaseException:
        turns.stop()
        for each in threads:
            each.join()
        raise
    return [found[0], found[1]]


def table(mine: Sequence[Line], theirs: Sequence[Line], commit: str) -> list[str]:
    """Write a table of the figures of this commit beside those of the other one.

    It marks what got slower or larger by more than three tenths, and what got as much better.
    """
    written = [cells(("Row", "Work", "Ours", commit, "Ratio", "")), "|" + "---|" * 6]
    here, there = _by_work(mine), _by_work(theirs)
    for key in here | there:
        line, other = (side.get(key, Line(row=key[0], work=key[1], beside="")) for side in (here, there))
        if line.figure is None or other.figure is None:
            ratio, said = "", " ".join({one.remark: "" for one in (line, other) if one.figure is None and one.remark})
        else:
            ratio, said = f"{shown(line.figure / other.figure)}x", _mark(line, line.figure / other.figure)
        written.append(cells((*key, line.ours, other.ours, ratio, said)))
    return written


def _mark(line: Line, ratio: float) -> str:
    worse = 1 / ratio if line.ours.endswith("/s") else ratio
    return "**worse**" if worse > _APART else "better" if worse < 1 / _APART else ""


def _by_work(lines: Sequence[Line]) -> dict[tuple[str, str], Line]:
    """Keep one line of each work: ours is the same beside each peer, and lines without a figure tell nothing more."""
    found: dict[tuple[str, str], Line] = {}
    for line in lines:
        kept = found.setdefault((line.row, line.work), line)
        if kept.figure is None:
            found[line.row, line.work] = line
    return found
