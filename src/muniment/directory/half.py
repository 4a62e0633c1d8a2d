"""The directory as one process holds it: what every surface of it is handed."""

from collections.abc import Callable
from dataclasses import dataclass

from muniment.db import Instant
from muniment.directory.options import DirectoryOptions
from muniment.directory.passwords import Gate
from muniment.web.decisions import Desk


@dataclass(frozen=True)
class Directory:
    """The desk that takes decisions, the options, the gate before every password check, and the clock."""

    desk: Desk
    options: DirectoryOptions
    gate: Gate
    clock: Callable[[], Instant]
