"""How long and how often a run measures, and where it puts what it makes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Side = TypeVar("Side")
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Run:
    """One run of the bench. Every side runs in turn, for ``rounds`` of ``seconds`` each, and the median counts.

    ``rows`` are the names of the rows that are wanted.
    """

    scratch: Path
    rows: frozenset[str]
    quick: bool
    rounds: int
    seconds: float

    def size(self, full: int, quick: int) -> int:
        """Choose how much to do."""
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        """Make a folder for one row's data."""
        made = self.scratch / name
        made.mkdir(parents=True)
        made.chmod(0o755)
        return made

    def interleaved(self, *sides: Callable[[], object]) -> None:
        """Let every side measure once, then every side again, and so on."""
        for _ in range(self.rounds):
            for side in sides:
                side()

    def measure_in_turn(
        self, measure: Callable[[Side], Measured], mine: Side, theirs: Side
    ) -> tuple[list[Measured], list[Measured]]:
        """Measure both sides once, which does not count, and then in turn. Return what each side gave."""
        measure(mine)
        measure(theirs)
        found: tuple[list[Measured], list[Measured]] = ([], [])
        self.interleaved(lambda: found[0].append(measure(mine)), lambda: found[1].append(measure(theirs)))
        return found
