"""What do all endpoints of the directory need in one process?"""

from collections.abc import Callable
from dataclasses import dataclass, field

from muniment.clock import Instant
from muniment.directory.marks import MarkedMemory
from muniment.directory.oauth.access import AccessMemory
from muniment.directory.oauth.clients import PublicClientMemory
from muniment.directory.oauth.tokeninfo import AnswerMemory
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.web.transactions import Transactions


@dataclass(frozen=True)
class Directory:
    """The context of every endpoint of the directory.

    It holds the database's transactions, the options, the gate for password checks, the clock, and what this process
    remembers under the directory's marks.
    """

    transactions: Transactions
    options: DirectoryOptions
    gate: PasswordGate
    clock: Callable[[], Instant]
    memory: AccessMemory = field(default_factory=lambda: MarkedMemory(16 << 20))
    answers: AnswerMemory = field(default_factory=lambda: MarkedMemory(16 << 20))
    clients: PublicClientMemory = field(default_factory=lambda: MarkedMemory(1 << 20))

    @property
    def pause(self) -> str:
        """How long a pause of sign-in lasts, as text for a security event."""
        return f"for {self.options.lockout_seconds} seconds"
