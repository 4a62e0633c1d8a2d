"""What do all endpoints of the directory need in one process?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from sqlalchemy.engine import Connection

from muniment.database.transactions import JointDecision, Transactions
from muniment.directory.oauth.access import AccessCache
from muniment.directory.oauth.clients import PublicClientCache
from muniment.directory.oauth.grants import GRANTS
from muniment.directory.oauth.token_requests import JointGrant, JointRequest, TokenResponse
from muniment.directory.oauth.tokeninfo import AnswerCache
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.ground.caches import Cache
from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal


@dataclass(frozen=True)
class Directory:
    """The context of every endpoint. ``search_path``, below the base address, is empty without a search page."""

    transactions: Transactions
    options: DirectoryOptions
    gate: PasswordGate
    clock: Callable[[], Instant]
    search_path: str = ""
    memory: AccessCache = field(default_factory=lambda: Cache(16 << 20))
    answers: AnswerCache = field(default_factory=lambda: Cache(16 << 20))
    clients: PublicClientCache = field(default_factory=lambda: Cache(1 << 20))

    @cached_property
    def joint_grants(self) -> Mapping[str, JointDecision[JointRequest, TokenResponse]]:
        return {
            name: partial(_decide_each, self, grant.decide_each)
            for name, grant in GRANTS.items()
            if grant.decide_each is not None
        }

    @property
    def pause(self) -> str:
        return f"for {self.options.lockout_seconds} seconds"


def _decide_each(
    directory: Directory, decision: JointGrant, cx: Connection, requests: Sequence[JointRequest], alone: bool
) -> list[TokenResponse | Refusal | None]:
    return decision(cx, directory.options, directory.memory, directory.clients, requests, directory.clock(), alone)
