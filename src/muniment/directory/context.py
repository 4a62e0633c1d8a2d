"""What do all endpoints of the directory need in one process?"""

from collections.abc import Callable
from dataclasses import dataclass, field

from muniment.clock import Instant
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.web.transactions import Transactions


@dataclass(frozen=True)
class Directory:
    """The context of every endpoint of the directory.

    It holds the database's transactions, the options, the gate for password checks, the clock, and the memory of access
    answers.
    """

    transactions: Transactions
    options: DirectoryOptions
    gate: PasswordGate
    clock: Callable[[], Instant]
    memory: AccessMemory = field(default_factory=AccessMemory)

    @property
    def pause(self) -> str:
        """How long a pause of sign-in lasts, as text for a security event."""
        return f"for {self.options.lockout_seconds} seconds"
