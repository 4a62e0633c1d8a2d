"""What do all endpoints of the directory need in one process?"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Protocol, TypeAlias

from sqlalchemy.engine import Connection

from muniment.database import audit
from muniment.database.audit import Actor
from muniment.database.transactions import JointDecision, Transactions
from muniment.directory.entries import entries
from muniment.directory.entries.oauth_clients import Made
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry
from muniment.directory.oauth.access import AccessCache, Question
from muniment.directory.oauth.clients import PublicClientCache
from muniment.directory.oauth.grants import GRANTS
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.oauth.token_requests import AttemptCache, JointGrant, JointRequest, TokenResponse
from muniment.directory.oauth.tokeninfo import AnswerCache
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.ground.caches import Cache
from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal

AdministrationCache: TypeAlias = Cache[tuple[Question, Made], tuple[Entry, bool, str]]
"""Who calls REST by a grant: the user, whether they administer, and the client's name, under the generation."""


class Dependencies(Protocol):
    """What the repositories know of the directory's entries; a directory alone cannot tell.

    Each method raises CannotKnow if the repositories run elsewhere and it matters.
    """

    def rename(self, cx: Connection, entry: Entry, name: str, now: Instant) -> Entry:
        """Raises NameInUse, SignsIn, and what ``decisions.rename`` raises."""

    def remove_person(
        self, kind: Literal["user", "group"], person_id: str, check_right: Callable[[Connection], None]
    ) -> None:
        """Call it off the event loop: it opens transactions of its own; ``check_right`` is called in the one that
        removes. Raises UnknownEntry, SignsIn, and what ``decisions.remove`` raises.
        """

    def remove_resource(self, cx: Connection, resource: Resource, now: Instant) -> SessionCount:
        """Raises StillGuards, and BadName for the built-in resource."""

    def check_tokens(self, cx: Connection, resource: Resource) -> None:
        """Raises StillGuards for a resource whose tokens must be opaque, because it guards a repository."""

    def guard_at(self, cx: Connection, address: str) -> str | None:
        """The identifier of the resource that guards the repository at exactly this address, if one is there."""

    def check_client(self, cx: Connection, entry: Entry) -> None:
        """Raises SignsIn if people sign in to the repositories by this client."""

    def whom_it_lets_in(self, cx: Connection, resource: Resource, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a repository elsewhere about the users and groups of its own resource. Raises Malformed."""


@dataclass(frozen=True)
class Directory:
    """The context of every endpoint. ``issuer`` names this directory to clients (RFC 8414 2): its address, whatever
    other address was asked. ``search_path``, below the base address, is empty without a search page. ``descriptions``
    has the OpenAPI documents by base address.
    """

    transactions: Transactions
    options: DirectoryOptions
    gate: PasswordGate
    clock: Callable[[], Instant]
    dependencies: Dependencies
    issuer: str
    search_path: str = ""
    memory: AccessCache = field(default_factory=lambda: Cache(16 << 20))
    answers: AnswerCache = field(default_factory=lambda: Cache(16 << 20))
    clients: PublicClientCache = field(default_factory=lambda: Cache(1 << 20))
    attempts: AttemptCache = field(default_factory=lambda: Cache(1 << 20))
    administration: AdministrationCache = field(default_factory=lambda: Cache(1_000))
    descriptions: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def joint_grants(self) -> Mapping[str, JointDecision[JointRequest, TokenResponse]]:
        return {
            name: partial(_decide_each, self, grant.decide_each)
            for name, grant in GRANTS.items()
            if grant.decide_each is not None
        }

    def acting(
        self, scope: Mapping[str, Any], user: Entry, client: str | None = None, via: str = ""
    ) -> AbstractContextManager[None]:
        """In the block of a decision, ``user`` decides: by a request, through a client, or ``via`` whoever acts for
        them.
        """
        place = scope["client"][0] if scope.get("client") else ""
        return audit.acting(
            Actor(entries.shown_id(self.options.names, user), place, user.uuid, client, via), self.clock
        )

    @property
    def pause(self) -> str:
        return f"for {self.options.lockout_seconds} seconds"


def _decide_each(
    directory: Directory, decision: JointGrant, cx: Connection, requests: Sequence[JointRequest], alone: bool
) -> list[TokenResponse | Refusal | None]:
    return decision(cx, directory.options, directory.memory, directory.clients, requests, directory.clock(), alone)
