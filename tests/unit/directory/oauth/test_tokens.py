"""Is this string a token of ours?"""

import base64
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from muniment.database import connections
from muniment.database.connections import Database
from muniment.directory.oauth import assertions, grant_purge, grants, tokens
from muniment.directory.oauth.access import Question
from muniment.directory.oauth.assertions import Assertion
from muniment.directory.oauth.grant_purge import PurgeProgress
from muniment.directory.oauth.token_requests import JointRequest, TokenRequest, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import DeadToken, InvalidGrant, UnparseableToken
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded
from tests.office import Office, counted
from tests.plans import work


def test_a_token_is_parsed_to_its_kind(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    assert isinstance(issued.refresh_token, str)
    with office.db.read() as cx:
        assert tokens.parse(cx, issued.access_token).kind == "access"
        assert tokens.parse(cx, issued.refresh_token).kind == "refresh"


def test_a_token_changed_in_any_place_cannot_be_parsed(office: Office, now: Instant) -> None:
    """failures A13"""
    token = office.issue(now).access_token
    with office.db.read() as cx:
        for place in range(len(token)):
            for other in "Ab_":
                changed = token[:place] + other + token[place + 1 :]
                if changed != token:
                    with pytest.raises(UnparseableToken):
                        tokens.parse(cx, changed)


@pytest.mark.slow
@pytest.mark.parametrize("garbage", ["", "x", "A" * 54, "é" * 54, "=" * 54, "A" * 53 + "\n", "\x00" * 54, "A" * 10**6])
def test_garbage_cannot_be_parsed(office: Office, garbage: str) -> None:
    """failures A14: a token of any other length is refused before it is decoded."""
    with office.db.read() as cx, pytest.raises(UnparseableToken):
        tokens.parse(cx, garbage)


def test_another_directorys_token_cannot_be_parsed(office: Office, now: Instant) -> None:
    """failures A13"""
    token = office.issue(now).access_token
    with office.db.begin() as cx:
        cx.execute(sa.text("DELETE FROM keys WHERE purpose = 'tokens'"))
        with pytest.raises(UnparseableToken):
            tokens.parse(cx, token)


def test_neither_a_token_nor_its_bytes_are_kept(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    assert isinstance(issued.refresh_token, str)
    secrets = [base64.urlsafe_b64decode(token + "==") for token in (issued.access_token, issued.refresh_token)]
    with office.db.read() as cx:
        for table in ("grants", "access_tokens"):
            for row in cx.execute(sa.text(f"SELECT * FROM {table}")):
                kept = b"".join(bytes(value) if isinstance(value, bytes) else str(value).encode() for value in row)
                assert not any(secret[:32] in kept or secret in kept for secret in secrets)
                assert issued.access_token.encode() not in kept


def _rows(office: Office) -> dict[str, int]:
    with office.db.read() as cx:
        return {
            table: cx.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("grants", "access_tokens")
        }


def test_a_purge_takes_no_more_rows_at_a_time_than_it_is_told(office: Office, now: Instant) -> None:
    """failures A25: rows, not grants: one grant may have a million tokens."""
    first, second = office.issue(now), office.issue(now)
    for _ in range(7):
        office.refresh(first, now)
    for issued in (first, second):
        office.revoke(issued.access_token, now)
    counts = [sum(_rows(office).values())]
    assert counts == [11]
    taken = []
    for _ in range(5):
        with counted(office.db) as sent, office.db.begin() as cx:
            taken.append(grant_purge.purge(cx, now + 1, 3))
        counts.append(sum(_rows(office).values()))
        deleted = [statement for statement in sent if statement.startswith("DELETE FROM access_tokens")]
        assert len(deleted) <= 3
    assert taken == [3, 3, 3, 2, 0]
    assert counts == [11, 8, 5, 2, 0, 0]


def test_expired_grants_do_not_keep_revoked_ones_from_going(office: Office, now: Instant) -> None:
    end = now + office.options.refresh_token_seconds * SECOND
    office.issue(now)
    office.revoke(office.issue(end).access_token, end)
    with office.db.begin() as cx:
        assert grant_purge.purge(cx, end + 1, 100) == 4


def test_purging_forgets_the_dead_and_keeps_the_living(office: Office, now: Instant) -> None:
    dead, living = office.issue(now), office.issue(now)
    office.revoke(dead.access_token, now)
    with office.db.begin() as cx:
        assert grant_purge.purge(cx, now, 100) == 0
        assert grant_purge.purge(cx, now + 1, 100) == 2
        assert grant_purge.purge(cx, now + 1, 100) == 0
    office.info(living.access_token, now)
    with pytest.raises(DeadToken):
        office.info(dead.access_token, now)
    end = now + office.options.refresh_token_seconds * SECOND
    with office.db.begin() as cx:
        assert grant_purge.purge(cx, end, 100) == 0
        assert grant_purge.purge(cx, end + 1, 100) == 2
    assert _rows(office) == {"grants": 0, "access_tokens": 0}


def _sweep(
    office: Office, before: Instant, rows: int, swept: PurgeProgress = grant_purge.PURGE_START
) -> tuple[int, PurgeProgress]:
    with office.db.begin() as cx:
        return grant_purge.purge_expired(cx, swept, before, rows)


def test_expired_tokens_of_a_living_grant_go_and_its_newest_stays(office: Office, now: Instant) -> None:
    access = office.options.access_token_seconds * SECOND
    issued = office.issue(now)
    second = office.refresh(issued, now + 1)
    last = office.refresh(issued, now + 2)
    other = office.issue(now)
    assert _sweep(office, now + access, 100) == (0, grant_purge.PURGE_START)
    over = now + access + 3
    seen, swept = _sweep(office, over, 100)
    assert seen == 4
    assert _rows(office) == {"grants": 2, "access_tokens": 2}
    assert _sweep(office, over, 100, swept) == (0, swept), "what stays is not looked at again"
    for token in (issued.access_token, second.access_token, last.access_token, other.access_token):
        with pytest.raises(DeadToken):
            office.info(token, over)
    office.revoke(second.access_token, over)  # forgotten: nothing is left to end
    office.refresh(issued, over)
    office.revoke(last.access_token, over)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, over)
    office.revoke(other.access_token, over)
    with pytest.raises(InvalidGrant):
        office.refresh(other, over)


def test_a_sweep_looks_at_no_more_than_it_is_told_and_passes_over_nothing(office: Office, now: Instant) -> None:
    """failures A25: also where many tokens expire at one instant, and many of them stay."""
    access = office.options.access_token_seconds * SECOND
    for _ in range(5):
        office.issue(now)
    issued = office.issue(now)
    for _ in range(4):
        office.refresh(issued, now)
    office.refresh(issued, now + 1)
    swept, seen, left = grant_purge.PURGE_START, 3, [_rows(office)["access_tokens"]]
    while seen == 3:
        seen, swept = _sweep(office, now + access + 2, 3, swept)
        left.append(_rows(office)["access_tokens"])
    assert left[0] == 11
    assert left[-1] == 6, "the newest of each grant"
    assert all(before - after <= 3 for before, after in pairwise(left))


@pytest.mark.slow
@pytest.mark.parametrize("few", [1, 2, tokens.FEW])
def test_at_most_so_many_tokens_of_a_grant_live(
    directory_db: Database, now: Instant, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Beyond them a refresh is told when the oldest expires; expired ones do not count, purged or not."""
    monkeypatch.setattr(tokens, "FEW", few)
    office = Office(directory_db, now, DirectoryOptions(live_tokens=3, access_token_seconds=100))
    issued, other = office.issue(now), office.issue(now)
    for later in (10, 20):
        office.refresh(issued, now + later * SECOND)
    for at, seconds in ((30 * SECOND, 70), (30 * SECOND + 1, 70), (99 * SECOND + 1, 1)):
        with pytest.raises(Overloaded) as refused:
            office.refresh(issued, now + at)
        assert refused.value.retry_seconds == seconds
    office.refresh(other, now + 30 * SECOND)
    office.refresh(issued, now + 100 * SECOND)
    with pytest.raises(Overloaded) as refused:
        office.refresh(issued, now + 100 * SECOND)
    assert refused.value.retry_seconds == 10
    with pytest.raises(Overloaded) as refused:
        office.refresh(issued, now - 3600 * SECOND)
    assert refused.value.retry_seconds == 100, "bounded, though the clock went back"
    assert isinstance(office.sign_in(now), TokenResponse), "another sign-in is another grant"


def test_many_live_tokens_are_counted_once_and_again_where_the_limit_may_be_near(
    directory_db: Database, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "FEW", 3)
    office = Office(directory_db, now, DirectoryOptions(live_tokens=8, access_token_seconds=100))
    issued = office.issue(now)

    def counts(at: Instant) -> int:
        with counted(office.db) as sent:
            try:
                office.refresh(issued, at)
            except Overloaded:
                return -1
        return sum("count(*)" in statement for statement in sent)

    assert [counts(now + SECOND) for _ in range(9)] == [0, 0, 1, 0, 0, 0, 0, -1, -1]
    later = now + 101 * SECOND
    assert [counts(later) for _ in range(3)] == [0, 0, 0], "all but few have expired"
    assert [counts(later) for _ in range(3)] == [1, 0, 0], "the number was too high, so they are counted"
    office.options = DirectoryOptions(live_tokens=5, access_token_seconds=100)
    assert counts(later) == -1, "a lower limit holds at once"


def test_a_second_refresh_of_a_grant_and_a_locked_grant_are_decided_alone(office: Office, now: Instant) -> None:
    first, second = office.issue(now), office.issue(now)
    texts = [first.refresh_token, first.refresh_token, second.refresh_token, "unknown"]
    decide_each = grants.GRANTS["refresh_token"].decide_each
    assert decide_each is not None

    def together(cx: sa.Connection) -> list[object]:
        requests = [
            TokenRequest("refresh_token", "app", None, None, {"refresh_token": str(text)}, "::1") for text in texts
        ]
        asked = [JointRequest(request) for request in requests]
        return list(decide_each(cx, office.options, office.memory, office.clients, asked, now, False))

    with office.db.begin() as cx:
        outcomes = together(cx)
    assert [type(outcome) for outcome in outcomes] == [TokenResponse, type(None), TokenResponse, InvalidGrant]
    assert _rows(office)["access_tokens"] == 4
    if office.db.dialect == "postgresql":
        with office.db.begin() as holder, office.db.begin() as cx:
            holder.execute(sa.text("SELECT * FROM grants ORDER BY id LIMIT 1 FOR UPDATE"))
            outcomes = together(cx)
        assert [type(outcome) for outcome in outcomes] == [type(None), type(None), TokenResponse, InvalidGrant]


def test_counting_the_live_tokens_takes_no_statement_of_its_own(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    office.refresh(issued, now)
    with counted(office.db) as sent:
        office.refresh(issued, now)
    kinds = [statement.split()[0] for statement in sent if not statement.startswith("BEGIN")]
    assert kinds == ["SELECT"] * 3 + ["INSERT"], "the key, the grant, the key, the token"


def test_parallel_refreshes_stay_within_the_live_tokens_of_a_grant(directory_db: Database, now: Instant) -> None:
    """SQLite: exactly. PostgreSQL counts in the statement that waits for the grant: each one that waits may add one."""
    threads, most = 8, 20
    office = Office(directory_db, now, DirectoryOptions(live_tokens=most))
    issued = office.issue(now)

    def refresh(_number: int) -> bool:
        try:
            office.refresh(issued, now)
        except Overloaded:
            return False
        return True

    with ThreadPoolExecutor(threads) as pool:
        made = 1 + sum(pool.map(refresh, range(60)))
    assert made == _rows(office)["access_tokens"]
    assert most <= made <= most + (0 if office.db.dialect == "sqlite" else threads)
    assert not refresh(0)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["dead grants", "expired tokens", "a refresh"])
def test_what_is_over_is_found_along_an_index(office: Office, now: Instant, work: str) -> None:
    """Whatever lives is passed over: SQLite reads no table from its beginning, PostgreSQL needs no sorting."""
    issued = office.issue(now)
    assert isinstance(issued.refresh_token, str)
    with office.db.read() as cx:
        digest = tokens.parse(cx, issued.refresh_token).digest
    with office.db.begin() as cx:
        if office.db.dialect == "postgresql":
            cx.execute(
                sa.text(
                    "INSERT INTO grants (user_id, client_id, resource_id, refresh_digest, refresh_expires, created)"
                    " SELECT 1, 1, 'r', sha256(convert_to('g' || i, 'UTF8')), :far + i, 0"
                    " FROM generate_series(1, 5000) i"
                ),
                {"far": now * 2},
            )
            cx.execute(
                sa.text(
                    "INSERT INTO access_tokens (digest, id, grant_id, issued, expires)"
                    " SELECT sha256(convert_to('t' || i, 'UTF8')), 'i', (SELECT max(id) FROM grants), 0, :far + i"
                    " FROM generate_series(1, 20000) i"
                ),
                {"far": now * 2},
            )
            cx.execute(sa.text("ANALYZE grants, access_tokens"))
    sent: list[tuple[str, object]] = []

    def note(_cx: object, _cursor: object, statement: str, parameters: object, *_more: object) -> None:
        sent.append((statement, parameters))

    questions: dict[str, Callable[[sa.Connection], object]] = {
        "dead grants": lambda cx: grant_purge.purge(cx, now * 2, 10),
        "expired tokens": lambda cx: grant_purge.purge_expired(cx, grant_purge.PURGE_START, now * 2, 10),
        "a refresh": lambda cx: tokens.lock_grants(cx, [digest], 10_000, now, wait=True),
    }
    on_driver = connections.on_driver

    def note_too(cx: sa.Connection, sql: str, values: Mapping[str, object] | None = None, **how: Any) -> object:
        if values:
            sent.append((sql, dict(values)))
        return on_driver(cx, sql, values, **how)

    sa.event.listen(office.db.engine, "before_cursor_execute", note)
    with patch.object(connections, "on_driver", note_too), office.db.begin() as cx:
        questions[work](cx)
    sa.event.remove(office.db.engine, "before_cursor_execute", note)
    asked = [one for one in sent if "BEGIN" not in one[0]]
    assert asked
    explain = "EXPLAIN QUERY PLAN " if office.db.dialect == "sqlite" else "EXPLAIN "
    with office.db.begin() as cx:
        for statement, parameters in asked:
            plan = "\n".join(str(row[-1]) for row in on_driver(cx, explain + statement, parameters))
            assert not re.search(r"SCAN (grants|access_tokens)(?! USING)|Seq Scan on (grants|access_tokens)", plan), (
                statement,
                plan,
            )


def test_what_a_user_has_allowed_a_client_is_found_beside_any_number_of_other_grants(
    office: Office, now: Instant
) -> None:
    """The client's own grants, those by the user's password, and those that were revoked."""
    made = sa.text(
        "INSERT INTO grants (user_id, client_id, resource_id, refresh_digest, refresh_expires, created, revoked,"
        " scopes, made) VALUES (:user, 2, 'r', :digest, :far, 0, :revoked, 'all', :made)"
    )
    question = Question(2, 1, "r")
    others = ((2, None, "client_credentials"), (1, None, "password"), (1, now, "authorization_code"))
    rows = [
        {"user": user, "digest": b"%d %d" % (kind, number), "far": now * 2, "revoked": revoked, "made": how}
        for kind, (user, revoked, how) in enumerate(others)
        for number in range(1000)
    ]
    with office.db.begin() as cx:
        cx.execute(made, {"user": 1, "digest": b"", "far": now * 2, "revoked": None, "made": "authorization_code"})
        cx.execute(made, rows)
        if office.db.dialect == "postgresql":
            cx.exec_driver_sql("ANALYZE grants")
    assert work(office.db, lambda cx: tokens.allowed(cx, question, now)) < 100
    with office.db.read() as cx:
        assert tokens.allowed(cx, question, now) == {"all"}


@pytest.mark.only("sqlite", "PostgreSQL looks pairs up by their key.")
def test_the_purge_of_assertions_reads_none_that_is_kept(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        for number in range(1000):
            expires = now - 3600 * SECOND if number < 5 else now
            assertions.use(cx, 1, Assertion(b"%d" % number, expires))
    gone: list[int] = []
    assert work(office.db, lambda cx: gone.append(assertions.purge(cx, now, 100)), writes=True) < 500
    assert gone == [5]


def test_an_expired_access_token_is_kept_as_long_as_it_can_end_its_grant(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    later = now + office.options.access_token_seconds * SECOND + 1
    with office.db.begin() as cx:
        assert grant_purge.purge(cx, later, 100) == 0
    _sweep(office, later, 100)
    office.revoke(issued.access_token, later)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, later)
