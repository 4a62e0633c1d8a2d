"""The life of tokens against a small model: issue, refresh, verify, revoke, time, disable, sign out, leave the role."""

import itertools
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, memberships
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import grant_purge
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import AccessEnded, DeadToken, InvalidGrant
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal
from tests.office import HASH, Office
from tests.properties.lengths import examples

ACCESS, REFRESH = 60, 200
OPTIONS = DirectoryOptions(access_token_seconds=ACCESS, refresh_token_seconds=REFRESH)


class ModelGrant:
    """The model: a grant ends when it is revoked, its user disabled or signed out, or when it is old."""

    def __init__(self, now: Instant, user: str) -> None:
        self.user, self.revoked, self.ends = user, False, now + REFRESH * SECOND

    def alive(self, now: Instant) -> bool:
        return not self.revoked and now < self.ends


class ModelToken:
    """An access token of the model."""

    def __init__(self, grant: ModelGrant, now: Instant, text: str) -> None:
        self.grant, self.ends, self.text = grant, min(now + ACCESS * SECOND, grant.ends), text
        self.forgotten = False

    def alive(self, now: Instant) -> bool:
        return self.grant.alive(now) and now < self.ends


class TokenLife(RuleBasedStateMachine):
    """Two users of one office. After each step every token issued so far is verified."""

    office: Office
    begin: Instant
    numbers = itertools.count()
    issued: Bundle[tuple[ModelGrant, TokenResponse]] = Bundle("issued")
    who = st.sampled_from(["one", "two"])

    @initialize()
    def arrive(self) -> None:
        self.now = self.begin
        self.tokens: list[ModelToken] = []
        self.users: dict[str, Entry] = {}
        self.enabled = dict.fromkeys(("one", "two"), True)
        self.in_role = dict.fromkeys(("one", "two"), True)
        with self.office.db.begin() as cx:
            for name in self.enabled:
                full = f"{name}-{next(self.numbers)}"
                made = editing.add_user(cx, self.office.partition, full, self.begin, password_hash=HASH)
                memberships.add_member(cx, self.office.group, made)
                self.users[name] = made

    def may(self, user: str) -> bool:
        return self.enabled[user] and self.in_role[user]

    @rule(target=issued, user=who)
    def issue(self, user: str) -> Any:
        outcome = self.office.sign_in(self.now, f"{self.users[user].name}@People")
        assert isinstance(outcome, TokenResponse) == self.may(user)
        if not isinstance(outcome, TokenResponse):
            return multiple()
        grant = ModelGrant(self.now, user)
        self._keep(grant, outcome)
        return grant, outcome

    @rule(pair=issued)
    def refresh(self, pair: tuple[ModelGrant, TokenResponse]) -> None:
        grant, issued = pair
        allowed = grant.alive(self.now) and self.may(grant.user)
        try:
            again = self.office.refresh(issued, self.now)
        except InvalidGrant:
            assert not allowed
        else:
            assert allowed
            self._keep(grant, again)

    def _keep(self, grant: ModelGrant, issued: TokenResponse) -> None:
        made = ModelToken(grant, self.now, issued.access_token)
        assert issued.expires_in == (made.ends - self.now) // SECOND
        self.tokens.append(made)

    @invariant()
    def verify(self) -> None:
        for token in self.tokens:
            said: Refusal | None = None
            try:
                info = self.office.info(token.text, self.now)
            except (DeadToken, AccessEnded) as refusal:
                said = refusal
            else:
                assert info.user.name == self.users[token.grant.user].name
            alive, may = token.alive(self.now), self.may(token.grant.user)
            assert type(said) is (type(None) if alive and may else AccessEnded if alive else DeadToken)

    @precondition(lambda self: self.tokens)
    @rule(number=st.integers(0, 100))
    def revoke(self, number: int) -> None:
        token = self.tokens[number % len(self.tokens)]
        self.office.revoke(token.text, self.now)
        token.grant.revoked |= not token.forgotten

    @rule(pair=issued)
    def revoke_by_refresh_token(self, pair: tuple[ModelGrant, TokenResponse]) -> None:
        grant, issued = pair
        assert isinstance(issued.refresh_token, str)
        self.office.revoke(issued.refresh_token, self.now)
        grant.revoked = True

    @rule(seconds=st.sampled_from([1, ACCESS - 1, ACCESS, REFRESH - ACCESS, REFRESH]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(user=who)
    def switch(self, user: str) -> None:
        self.enabled[user] = not self.enabled[user]
        self.office.disable(self.users[user], not self.enabled[user], self.now)
        if not self.enabled[user]:
            self._end(user)

    @rule(user=who)
    def sign_out(self, user: str) -> None:
        with self.office.db.begin() as cx:
            decisions.sign_out(cx, self.users[user], self.now)
        self._end(user)

    @rule(user=who)
    def new_password(self, user: str) -> None:
        with self.office.db.begin() as cx:
            decisions.set_password(cx, self.users[user], HASH, self.now)
        self._end(user)

    def _end(self, user: str) -> None:
        for token in self.tokens:
            token.grant.revoked |= token.grant.user == user

    @rule(user=who)
    def change_role(self, user: str) -> None:
        self.in_role[user] = not self.in_role[user]
        change = memberships.add_members if self.in_role[user] else memberships.remove_members
        with self.office.db.begin() as cx:
            change(cx, self.office.group, [self.users[user]])

    @rule()
    def purge(self) -> None:
        with self.office.db.begin() as cx:
            grant_purge.purge(cx, self.now, 1000)

    @rule()
    def sweep(self) -> None:
        """Expired tokens that their grant has outlived are forgotten; its newest never is."""
        with self.office.db.begin() as cx:
            grant_purge.purge_expired(cx, grant_purge.PURGE_START, self.now, 1000)
        for token in self.tokens:
            newest = max(other.ends for other in self.tokens if other.grant is token.grant)
            token.forgotten |= token.ends < min(newest, self.now)


def test_tokens_live_and_die_as_the_model_says(directory_db: Database, now: Instant) -> None:
    TokenLife.office, TokenLife.begin = Office(directory_db, now, OPTIONS), now
    run_state_machine_as_test(
        TokenLife,
        settings=settings(
            max_examples=examples(40, 600),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
