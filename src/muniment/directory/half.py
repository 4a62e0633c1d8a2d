"""The directory as one process holds it: what every surface of it is handed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from muniment.db import Instant
from muniment.directory.access import Memory
from muniment.directory.options import DirectoryOptions
from muniment.directory.passwords import Gate
from muniment.web.decisions import Desk


@dataclass(frozen=True)
class Directory:
    """The desk that takes decisions, the options, the gate before every password check, the clock, and what is
    remembered of users' access."""

    desk: Desk
    options: DirectoryOptions
    gate: Gate
    clock: Callable[[], Instant]
    memory: Memory = field(default_factory=Memory)

    @property
    def pause(self) -> str:
        """Say how long a pause of sign-in lasts."""
        return f"for {self.options.lockout_seconds} seconds"
