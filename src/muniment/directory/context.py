"""The directory as one process holds it: what every surface of it is handed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from muniment.clock import Instant
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.web.transactions import Transactions


@dataclass(frozen=True)
class Directory:
    """What takes decisions to the database, the options, the gate before every password check, the clock, and what is
    remembered of users' access."""

    transactions: Transactions
    options: DirectoryOptions
    gate: PasswordGate
    clock: Callable[[], Instant]
    memory: AccessMemory = field(default_factory=AccessMemory)

    @property
    def pause(self) -> str:
        """Say how long a pause of sign-in lasts."""
        return f"for {self.options.lockout_seconds} seconds"
