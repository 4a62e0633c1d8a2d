"""How long and how often a run measures, whose server, and where it puts what it makes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench import ours
from bench.checkout import Checkout
from bench.ours import Data
from bench.peers import Missing

Side = TypeVar("Side")
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Run:
    """One run of the bench. Every side runs in turn, for ``rounds`` of ``seconds`` each, and the median counts.

    ``rows`` are the names of the rows that are wanted. Where two commits of ours are measured, each has a run of its
    own: ``checkout`` is the other commit, and ``hand_over`` lets the other run go on and waits for the next turn.
    Neither of the two measures what stands beside us.
    """

    scratch: Path
    rows: frozenset[str]
    quick: bool
    rounds: int
    seconds: float
    checkout: Checkout | None = None
    hand_over: Callable[[], None] | None = None

    @property
    def alone(self) -> bool:
        """Say whether nothing but our own server is measured."""
        return self.hand_over is not None

    def need_peers(self) -> None:
        """Raise Missing if nothing but our own server is measured."""
        if self.alone:
            raise Missing("only two commits of ours are measured")

    def take_turn(self) -> None:
        """Let the run of the other commit measure first, if there is one."""
        if self.hand_over is not None:
            self.hand_over()

    def size(self, full: int, quick: int) -> int:
        """Choose how much to do."""
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        """Make a folder for one row's data."""
        made = self.scratch / name
        made.mkdir(parents=True)
        made.chmod(0o755)
        return made

    def prepare(self, folder: Path, *overrides: str) -> Data:
        """Make a data folder for the server that is measured."""
        if self.checkout is None:
            return ours.prepare(folder, *overrides)
        return ours.prepare_at(self.checkout, folder, *overrides)

    def interleaved(self, mine: Callable[[], object], *theirs: Callable[[], object]) -> None:
        """Let every side measure once, then every side again, and so on."""
        for _ in range(self.rounds):
            self.take_turn()
            for side in (mine, *(() if self.alone else theirs)):
                side()

    def measure_in_turn(
        self, measure: Callable[[Side], Measured], mine: Side, theirs: Side
    ) -> tuple[list[Measured], list[Measured]]:
        """Measure both sides once, which does not count, and then in turn. Return what each side gave."""
        measure(mine)
        if not self.alone:
            measure(theirs)
        found: tuple[list[Measured], list[Measured]] = ([], [])
        self.interleaved(lambda: found[0].append(measure(mine)), lambda: found[1].append(measure(theirs)))
        return found
