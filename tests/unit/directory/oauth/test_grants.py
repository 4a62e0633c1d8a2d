"""Who may have tokens, whose token this is, and the end of them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from argon2 import PasswordHasher

from muniment.database.connections import Database
from muniment.directory import refusals
from muniment.directory.administration import decisions as administration
from muniment.directory.api.rest import callers
from muniment.directory.api.rest.callers import Presented, RequiredRight
from muniment.directory.context import AdministrationCache
from muniment.directory.entries import credentials, editing, entries, memberships, resources
from muniment.directory.entries.oauth_clients import DEFAULTS
from muniment.directory.oauth import clients, grant_purge, revocation, sessions, tokeninfo
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    NotAdministrator,
    NotSignedIn,
    SignInRefused,
    UnknownResource,
    UnparseableToken,
    WrongResource,
)
from muniment.directory.sign_in import form, holders, pauses
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.directory.sign_in.pauses import Origin
from muniment.ground.caches import Cache
from muniment.ground.clock import SECOND, Instant
from tests.counting import cost
from tests.office import HASH, HOME, PASSWORD, Office, counted

HOUR = 3600 * SECOND


def test_the_right_password_gets_both_tokens(office: Office, now: Instant) -> None:
    reply = msgspec.json.decode(msgspec.json.encode(office.issue(now)))
    assert sorted(reply) == ["access_token", "expires_in", "refresh_token", "token_type"]
    assert (reply["expires_in"], reply["token_type"]) == (3600, "Bearer")


def test_a_refresh_gives_an_access_token_and_no_refresh_token(office: Office, now: Instant) -> None:
    first = office.issue(now)
    reply = msgspec.json.decode(msgspec.json.encode(office.refresh(first, now)))
    assert sorted(reply) == ["access_token", "expires_in", "token_type"]
    assert reply["access_token"] != first.access_token
    assert office.info(reply["access_token"], now).token_id != office.info(first.access_token, now).token_id


def test_an_access_token_dies_when_its_seconds_are_over_and_its_grant_goes_on(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    office.info(issued.access_token, now + HOUR - 1)
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now + HOUR)
    office.info(office.refresh(issued, now + HOUR).access_token, now + HOUR)


def test_no_access_token_outlives_its_grant(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    end = now + office.options.refresh_token_seconds * SECOND
    last = office.refresh(issued, end - 5 * SECOND)
    assert last.expires_in == 5
    office.info(last.access_token, end - 1)
    with pytest.raises(DeadToken):
        office.info(last.access_token, end)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, end)


Change = Callable[[Office, Instant], None]


def _pause(office: Office, now: Instant) -> None:
    for _ in range(office.options.lockout_failures):
        office.sign_in(now, right=False)


def _leave_role(office: Office, _now: Instant) -> None:
    with office.db.begin() as cx:
        memberships.remove_members(cx, office.group, [office.alice])


def _lose_password(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        editing.set_password_hash(cx, office.alice, None, now)


NOTHING: Change = lambda _office, _now: None  # noqa: E731
REASONS: dict[str, tuple[Change, str, bool]] = {
    "unknown user": (NOTHING, "nobody@People", True),
    "unknown partition": (NOTHING, "alice@Nowhere", True),
    "no user id at all": (NOTHING, "alice", True),
    "wrong password": (NOTHING, "alice@People", False),
    "disabled": (lambda office, now: office.disable(office.alice, True, now), "alice@People", True),
    "locked": (lambda office, now: office.lock(office.alice, True, now), "alice@People", True),
    "paused": (_pause, "alice@People", True),
    "not in the role": (_leave_role, "alice@People", True),
    "another not in the role": (NOTHING, "bob@People", True),
    "no password": (_lose_password, "alice@People", True),
}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[PasswordGate]:
    made = PasswordGate(tmp_path / "slots", slots=1, queue=10, memory_kib=8192, passes=1)
    yield made
    made.close()


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stored hashes that argon2 was run with, in turn."""
    seen: list[str] = []
    verify = PasswordHasher.verify

    def noted(hasher: PasswordHasher, stored: str, password: bytes) -> bool:
        seen.append(stored)
        return verify(hasher, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", noted)
    return seen


def _refused(office: Office, gate: PasswordGate, username: str, right: bool, now: Instant) -> tuple[str, list[str]]:
    """Sign in as the edge does: the sentence of the refusal, and the statements sent."""
    with counted(office.db) as sent:
        attempt = office.begin(now, username)
        password_ok = gate.check(
            attempt.basis.password_hash, PASSWORD if right else "wrong", attempt.basis.asker(username), now
        ).result(30)
        outcome = office.finish(attempt, password_ok, now)
    assert isinstance(outcome, InvalidGrant), outcome
    return outcome.sentence, sent


@pytest.mark.slow
@pytest.mark.parametrize("reason", REASONS)
def test_whatever_is_wrong_with_the_user_it_is_refused_alike(
    office: Office, gate: PasswordGate, checks: list[str], now: Instant, reason: str
) -> None:
    """failures A1"""
    office.issue(now)
    usual = _refused(office, gate, "alice@People", False, now)
    change, username, right = REASONS[reason]
    change(office, now)
    assert _refused(office, gate, username, right, now) == usual
    assert len([statement for statement in usual[1] if not statement.startswith("BEGIN")]) == 6
    assert len(checks) == 2, "one check each"
    assert all(stored.startswith("$argon2id$v=19$m=8192,t=1,p=1$") for stored in checks), "of the same cost"


def test_a_refusal_writes_one_row_whoever_tried(office: Office, now: Instant) -> None:
    def stamp() -> set[tuple[int, int]]:
        with office.db.read() as cx:
            rows = cx.exec_driver_sql("SELECT id, attempted FROM entries").all()
        return {(row[0], row[1]) for row in rows}

    for number, username in enumerate(("nobody@People", "alice@People", "bob@People"), start=1):
        before = stamp()
        office.sign_in(now + number, username, right=False)
        assert len(stamp() - before) == 1


def test_wrong_passwords_in_a_row_pause_sign_in_for_a_while(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    for _ in range(office.options.lockout_failures - 1):
        office.sign_in(now, right=False)
    office.issue(now)
    _pause(office, now)
    assert isinstance(office.sign_in(now), InvalidGrant)
    over = now + office.options.lockout_seconds * SECOND
    assert office.begin(over - 1).basis.password_hash is None, "the real password is not even looked at"
    assert isinstance(office.sign_in(over - 1), InvalidGrant)
    office.info(issued.access_token, now)
    office.refresh(issued, now)
    assert isinstance(office.sign_in(over, right=False), InvalidGrant)
    office.issue(over)


def test_a_new_password_ends_the_pause(office: Office, now: Instant) -> None:
    _pause(office, now)
    with office.db.begin() as cx:
        editing.set_password_hash(cx, office.alice, HASH, now)
    office.issue(now)


def test_without_a_limit_sign_in_never_pauses(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now, DirectoryOptions(lockout_failures=0))
    for _ in range(30):
        office.sign_in(now, right=False)
    office.issue(now)


@pytest.mark.slow
def test_of_two_hundred_guesses_at_a_time_no_more_than_the_limit_count(office: Office, now: Instant) -> None:
    """failures A3"""
    attempts = [office.begin(now) for _ in range(200)]
    wrong = office.options.lockout_failures

    def finish(number: int) -> bool:
        return isinstance(office.finish(attempts[number], False, now), InvalidGrant)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(finish, range(wrong)))
    assert isinstance(office.finish(attempts[wrong], True, now), InvalidGrant), "the right guess came too late"
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(finish, range(wrong + 1, 200)))
    assert office.begin(now).basis.password_hash is None


def test_twenty_right_sign_ins_at_a_time_all_succeed(office: Office, now: Instant) -> None:
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda _: office.sign_in(now), range(20)))
    assert all(isinstance(outcome, TokenResponse) for outcome in outcomes)


def test_a_password_changed_while_the_check_waited_decides(office: Office, now: Instant) -> None:
    attempt = office.begin(now)
    with office.db.begin() as cx:
        editing.set_password_hash(cx, office.alice, "another hash", now)
    assert isinstance(office.finish(attempt, True, now), InvalidGrant)


@pytest.mark.slow
def test_the_gate_decides_a_sign_in(office: Office, gate: PasswordGate, now: Instant) -> None:
    for password, right in ((PASSWORD, True), (PASSWORD.upper(), False)):
        attempt = office.begin(now)
        outcome = office.finish(
            attempt,
            gate.check(attempt.basis.password_hash, password, attempt.basis.asker("alice@People"), now).result(30),
            now,
        )
        assert isinstance(outcome, TokenResponse) == right


@pytest.mark.slow
@pytest.mark.parametrize(
    "scope", ["", "resource:", "resource:Nothing", "resource:my+api", "resource:My API resource:x"]
)
def test_a_scope_that_names_no_resource_is_refused(office: Office, now: Instant, scope: str) -> None:
    with pytest.raises(InvalidScope):
        office.begin(now, scope=scope)


def test_a_resource_issues_nothing_until_it_is_activated(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        made = resources.add(cx, office.names, "New", now)
        resources.add_to_role(cx, made, office.alice)
    with pytest.raises(InvalidScope):
        office.begin(now, scope="resource:New")
    with office.db.begin() as cx:
        resources.activate(cx, made.id, now)
    office.begin(now, scope="resource:New")


def test_a_client_must_be_known_live_and_authenticate_as_it_must(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        safe = editing.add_client(cx, "safe", now, password_hash="a secret's hash")

    def begin(client_id: str, secret: str | None) -> Client:
        with office.db.read() as cx:
            return clients.find(cx, Cache(1000), clients.ClientProof(client_id, secret))

    assert begin("app", None) == begin("APP", "") == Client(office.client.id, "app", None, DEFAULTS)
    assert begin("safe", "anything") == Client(safe.id, "safe", "a secret's hash", DEFAULTS)
    for client_id, secret in (("nobody", None), ("", None), ("safe", None), ("safe", ""), ("app", "a secret")):
        with pytest.raises(InvalidClient):
            begin(client_id, secret)
    office.disable(office.client, True, now)
    with pytest.raises(InvalidClient):
        begin("app", None)


def test_a_refused_sign_in_says_itself_that_its_count_is_kept(office: Office, now: Instant) -> None:
    """The edge commits what a decision wrote only for a refusal whose class says so."""
    assert isinstance(office.sign_in(now, right=False), SignInRefused)
    with office.db.read() as cx:
        known = credentials.find(cx, office.options, "alice@People")
    assert known is not None
    assert [pause.failures for pause in pauses.pauses(office.options, known, now)] == [1]
    assert {kind.__name__ for kind in vars(refusals).values() if getattr(kind, "keeps_writes", False)} == {
        *("SignInRefused", "UsedAgain", "AuthorizationPending", "SlowDown", "AccessDenied", "WrongUserCode")
    }


def test_a_refresh_token_serves_its_own_client_and_scope_only(office: Office, now: Instant) -> None:
    """failures A10"""
    issued = office.issue(now)
    assert isinstance(issued.refresh_token, str)
    with office.db.begin() as cx:
        editing.add_client(cx, "other", now)
        administration = resources.scope(office.names, resources.administration(cx))
        with pytest.raises(InvalidGrant):
            office.refresh_in(cx, issued.refresh_token, now, client="other")
        with pytest.raises(InvalidScope):
            office.refresh_in(cx, issued.refresh_token, now, scope=administration)
        for token in (issued.access_token, "garbage", ""):
            with pytest.raises(InvalidGrant):
                office.refresh_in(cx, token, now)
        office.refresh_in(cx, issued.refresh_token, now, scope="resource:My API")


@pytest.mark.slow
@pytest.mark.parametrize("token", ["access_token", "refresh_token"])
def test_revoking_either_token_ends_the_whole_grant(office: Office, now: Instant, token: str) -> None:
    issued, other = office.issue(now), office.issue(now)
    second = office.refresh(issued, now)
    for _ in range(2):
        office.revoke(getattr(issued, token), now)
        for dead in (issued.access_token, second.access_token):
            with pytest.raises(DeadToken):
                office.info(dead, now)
        with pytest.raises(InvalidGrant):
            office.refresh(issued, now)
    office.info(other.access_token, now)


def test_an_expired_access_token_still_ends_its_grant(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    office.revoke(issued.access_token, now + HOUR)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now + HOUR)


def test_a_string_that_is_no_token_is_not_revoked(office: Office, now: Instant) -> None:
    with pytest.raises(UnparseableToken):
        office.revoke("garbage", now)


def test_tokeninfo_asks_in_the_order_that_the_interface_gives(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    token = issued.access_token
    assert isinstance(issued.refresh_token, str)
    with office.db.read() as cx:
        other = resources.administration(cx).id
    unknown = "00000000-0000-0000-0000-000000000000"
    with office.db.begin() as cx:
        memberships.remove_members(cx, office.group, [office.alice])

    def said(token: str, resource_id: str) -> type[Exception]:
        with office.db.read() as cx, pytest.raises(Exception) as refused:  # noqa: PT011 - the class is the answer
            tokeninfo.verify(cx, office.options, office.memory, token, resource_id, now)
        return refused.type

    assert said("garbage", unknown) is UnknownResource
    assert said("garbage", "garbage") is UnknownResource
    assert said("garbage", office.resource.id) is UnparseableToken
    assert said(issued.refresh_token, office.resource.id) is UnparseableToken
    assert said(token, office.resource.id) is AccessEnded
    office.revoke(token, now)
    assert said(token, other) is WrongResource
    assert said(token, office.resource.id) is DeadToken


def test_a_role_lost_ends_access_and_a_role_regained_revives_it(office: Office, now: Instant) -> None:
    """failures A6"""
    issued = office.issue(now)
    REASONS["not in the role"][0](office, now)
    with pytest.raises(AccessEnded):
        office.info(issued.access_token, now)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now)
    with office.db.begin() as cx:
        memberships.add_member(cx, office.group, office.alice)
    office.info(issued.access_token, now)
    office.refresh(issued, now)


def test_a_dead_token_of_another_resource_is_still_known_as_one_for_an_hour(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    office.revoke(issued.access_token, now)
    with office.db.begin() as cx:
        administration = resources.administration(cx)
        assert sessions.purge(cx, grant_purge.PURGE_START, now + HOUR, 100) == (0, grant_purge.PURGE_START)
        with pytest.raises(WrongResource):
            tokeninfo.verify(cx, office.options, office.memory, issued.access_token, administration.id, now + HOUR)
        assert sessions.purge(cx, grant_purge.PURGE_START, now + HOUR + 1, 100) == (2, grant_purge.PURGE_START)
        with pytest.raises(DeadToken):
            tokeninfo.verify(cx, office.options, office.memory, issued.access_token, administration.id, now + HOUR)


def test_tokeninfo_tells_the_user_the_resource_and_the_end(office: Office, now: Instant) -> None:
    info = office.info(office.issue(now).access_token, now)
    values = {attribute.name: attribute.values for attribute in info.user.values}
    assert (info.user.id, info.user.name, info.user.user_partition_id) == ("alice@People", "alice", "People")
    assert info.user.location == info.user.url_location == values["entryDN"][0]
    assert info.scopes == ["resource:My+API"]
    assert info.expiry_time == "2026-11-21T13:00:00.000Z"
    assert info.data_map == {"OTDS_HAS_PASSWORD": "true"}
    assert values["accountDisabled"] == values["accountLockedOut"] == ["false"]
    assert values["memberOf"] == [f"cn=staff,ou=Root,ou=People,{office.names.dn_suffix}"]


def test_tokeninfo_asks_who_a_user_is_once_in_a_generation(office: Office, now: Instant) -> None:
    token = office.issue(now).access_token
    for expected in (8, 1):
        with counted(office.db) as sent:
            office.info(token, now)
        assert len([statement for statement in sent if not statement.startswith("BEGIN")]) == expected, sent


def test_an_administrator_is_one_who_holds_a_live_token_for_the_administration(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        for user in (office.alice, office.bob):
            memberships.add_member(cx, entries.administrators(cx), user)
        held = resources.administration(cx)
    ordinary = office.issue(now).access_token
    outcome = office.finish(office.begin(now, scope=resources.scope(office.names, held)), True, now)
    assert isinstance(outcome, TokenResponse)

    remembered: AdministrationCache = Cache(10)

    def administers(token: str | None, later: Instant = 0) -> str:
        with office.db.read() as cx:
            shown = Presented((), token or "", "", "", is_foreign=False)
            asked = cx, office.names, shown, RequiredRight.ADMINISTRATOR, now + later
            caller = callers.require(*asked, memory=remembered, writes=True, tell=lambda _: None)
            assert caller is not None
            return caller.user.name

    assert administers(outcome.access_token) == "alice"
    for token in (None, "", "garbage"):
        with pytest.raises(NotSignedIn):
            administers(token)
    with pytest.raises(NotSignedIn):
        administers(outcome.access_token, HOUR)
    with pytest.raises(NotAdministrator):
        administers(ordinary)
    office.disable(office.alice, True, now)
    with pytest.raises(NotSignedIn):
        administers(outcome.access_token)
    office.disable(office.alice, False, now)
    outcome = office.finish(office.begin(now, scope=resources.scope(office.names, held)), True, now)
    assert isinstance(outcome, TokenResponse)
    with office.db.begin() as cx:
        administration.remove_members(cx, entries.administrators(cx), [office.alice], now)
    with pytest.raises(NotAdministrator):
        administers(outcome.access_token)


def test_the_form_signs_in_who_is_in_the_role(office: Office, now: Instant) -> None:
    def sign_in(username: str, resource_id: str | None, right: bool = True) -> tuple[str, bool]:
        with office.db.begin() as cx:
            attempt = form.begin(cx, office.options, resource_id, username, Origin(HOME), now)
            outcome = form.finish(cx, office.options, attempt, right, "", "", now)
            return outcome.ticket, outcome.opens

    ticket, opens = sign_in("alice@People", office.resource.id)
    assert opens
    for username, resource_id, right in (
        ("alice@People", None, False),
        ("bob@People", office.resource.id, True),
        ("alice@People", office.resource.id, False),
    ):
        with pytest.raises(SignInRefused):
            sign_in(username, resource_id, right)
    with pytest.raises(UnknownResource):
        sign_in("alice@People", "garbage")
    with office.db.read() as cx:
        holder = holders.of_sign_in(cx, office.names, ticket, now)
        user = holder.user
        assert (user.id, holder.resource_id, holder.opens) == (office.alice.id, office.resource.id, True)
        assert resources.require_access(cx, user.id, office.resource.id).id == user.id
        with pytest.raises(NotSignedIn):
            form.administrator_of(cx, office.names, ticket, now)
    office.disable(office.alice, True, now)
    with office.db.read() as cx, pytest.raises(AccessEnded):
        resources.require_access(cx, user.id, office.resource.id)


def test_a_revocation_looks_up_its_own_resource_however_many_there_are(office: Office, now: Instant) -> None:
    rows = []
    for _ in range(2):
        token = office.issue(now).access_token
        with cost(office.db) as spent, office.db.begin() as cx:
            ended = revocation.revoke(cx, office.names, token, now)
        assert ended == revocation.Revocation("alice@People", "app", "My API")
        rows.append(spent.rows)
        with office.db.begin() as cx:
            for number in range(10):
                resources.add(cx, office.names, f"other {len(rows)} {number}", now)
    assert rows[0] == rows[1]
