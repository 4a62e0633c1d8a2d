"""A directory alone, for its decisions: one partition, one client, one resource that admits a group."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import sqlalchemy as sa
from sqlalchemy import event

from muniment.database import connections
from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import grants, revocation, tokeninfo
from muniment.directory.oauth.access import AccessCache
from muniment.directory.oauth.clients import PublicClientCache
from muniment.directory.oauth.token_requests import (
    JointRequest,
    TokenAttempt,
    TokenRequest,
    TokenResponse,
)
from muniment.directory.oauth.tokeninfo import TokenInfo
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import SignInRefused
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.attempts import SignInAttempt
from muniment.directory.sign_in.passwords import hash_password
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.caches import Cache
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal

SCOPE = "resource:My+API"
PASSWORD = "correct horse battery staple"
HOME = "192.0.2.1"
HASH = hash_password(PASSWORD, memory_kib=8192, passes=1)


def page_ticket(
    cx: sa.Connection, names: DirectoryNames, user_id: int, resource_id: str, now: Instant, seconds: int = 3600
) -> str:
    """Give a ticket such as the sign-in page gives."""
    ticket = Ticket(user_id=user_id, resource_id=resource_id, expires=now + seconds * SECOND)
    return tickets.issue(cx, names, ticket, 1000, now)


class Office:
    """Partition People with the users alice (in the access role, by a group) and bob (not), and the client app."""

    def __init__(self, database: Database, now: Instant, options: DirectoryOptions | None = None) -> None:
        self.db = database
        self.options = options or DirectoryOptions()
        self.memory: AccessCache = Cache(16 << 20)
        self.clients: PublicClientCache = Cache(1 << 20)
        self.names = self.options.names
        with database.begin() as cx:
            self.administration = decisions.initialise(cx, now)
            self.partition = editing.add_partition(cx, self.names, "People", now)
            self.alice = editing.add_user(cx, self.partition, "alice", now, password_hash=HASH)
            self.bob = editing.add_user(cx, self.partition, "bob", now, password_hash=HASH)
            self.group = editing.add_group(cx, self.partition, "staff", now)
            memberships.add_member(cx, self.group, self.alice)
            self.client = editing.add_client(cx, "app", now)
            self.resource = resources.add(cx, self.names, "My API", now)
            resources.activate(cx, self.resource.id, now)
            resources.add_to_role(cx, self.resource, self.group)

    def begin(
        self,
        now: Instant,
        username: str = "alice@People",
        scope: str = SCOPE,
        address: str = HOME,
        client: str = "app",
    ) -> TokenAttempt[SignInAttempt]:
        """Begin a sign-in."""
        parameters = {"username": username, "password": PASSWORD, "scope": scope}
        request = TokenRequest("password", client, None, username, parameters, address)
        with self.db.read() as cx:
            return grants.look_up(cx, self.options, self.clients, request, now)

    def finish(self, attempt: TokenAttempt[SignInAttempt], right: bool, now: Instant) -> TokenResponse | SignInRefused:
        """Finish a sign-in. A refusal is committed with what it counted, as database/transactions does."""
        with self.db.begin() as cx:
            try:
                return grants.decide(cx, self.options, attempt, right, now)
            except SignInRefused as refusal:
                return refusal

    def sign_in(
        self, now: Instant, username: str = "alice@People", *, right: bool = True, address: str = HOME
    ) -> TokenResponse | SignInRefused:
        """Ask for tokens with the right password, or a wrong one."""
        return self.finish(self.begin(now, username, address=address), right, now)

    def issue(self, now: Instant, username: str = "alice@People") -> TokenResponse:
        """Ask for tokens, and get them."""
        issued = self.sign_in(now, username)
        assert isinstance(issued, TokenResponse)
        return issued

    def issue_from(self, address: str, now: Instant) -> TokenResponse:
        """Ask for tokens from there, and get them."""
        issued = self.sign_in(now, address=address)
        assert isinstance(issued, TokenResponse)
        return issued

    def refresh(self, issued: TokenResponse, now: Instant) -> TokenResponse:
        """Refresh."""
        assert isinstance(issued.refresh_token, str)
        with self.db.begin() as cx:
            return self.refresh_in(cx, issued.refresh_token, now)

    def refresh_in(
        self, cx: sa.Connection, refresh_token: str, now: Instant, *, client: str = "app", scope: str | None = None
    ) -> TokenResponse:
        """Refresh in a transaction under way, as a client, perhaps for a scope."""
        parameters = {"refresh_token": refresh_token} | ({} if scope is None else {"scope": scope})
        request = TokenRequest("refresh_token", client, None, None, parameters, HOME)
        decide_each = grants.GRANTS["refresh_token"].decide_each
        assert decide_each is not None
        asked = [JointRequest(request)]
        (outcome,) = decide_each(cx, self.options, self.memory, self.clients, asked, now, True)
        assert outcome is not None
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    def info(self, token: str, now: Instant) -> TokenInfo:
        """Verify a token for the office's resource."""
        with self.db.read() as cx:
            return tokeninfo.verify(cx, self.options, self.memory, token, self.resource.id, now)[0]

    def revoke(self, token: str, now: Instant) -> None:
        """End a token's grant."""
        with self.db.begin() as cx:
            revocation.revoke(cx, self.names, token, now)

    def disable(self, user: Entry, disabled: bool, now: Instant) -> None:
        """Disable a user, or enable them."""
        with self.db.begin() as cx:
            decisions.set_disabled(cx, user, disabled, now)

    def lock(self, user: Entry, locked: bool, now: Instant) -> None:
        """Lock a user out, or let them in."""
        with self.db.begin() as cx:
            decisions.set_locked(cx, user, locked, now)


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """List the statements sent to the database within the block, by SQLAlchemy or on the driver."""
    sent: list[str] = []
    on_driver = connections.on_driver

    def note_too(cx: sa.Connection, sql: str, values: Mapping[str, object] | None = None, **how: Any) -> object:
        if sql not in ("BEGIN IMMEDIATE", "COMMIT"):
            sent.append(sql)
        return on_driver(cx, sql, values, **how)

    def note(_cx: sa.Connection, _cursor: object, statement: str, *_more: object) -> None:
        sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        with patch.object(connections, "on_driver", note_too):
            yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
