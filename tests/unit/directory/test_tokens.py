"""Is this string a token of ours?"""

import base64

import pytest
import sqlalchemy as sa

from muniment.db import SECOND, Database, Instant
from muniment.directory import tokens
from muniment.directory.refusals import DeadToken, InvalidGrant, UnparseableToken
from tests.unit.directory.office import Office


@pytest.fixture
def office(directory_db: Database, now: Instant) -> Office:
    return Office(directory_db, now)


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


def test_a_purge_takes_no_more_at_a_time_than_it_is_told(office: Office, now: Instant) -> None:
    """failures A25"""
    for _ in range(3):
        office.revoke(office.issue(now).access_token, now)
    with office.db.begin() as cx:
        assert [tokens.purge(cx, now + 1, 2) for _ in range(3)] == [2, 1, 0]


def test_purging_forgets_the_dead_and_keeps_the_living(office: Office, now: Instant) -> None:
    dead, living = office.issue(now), office.issue(now)
    office.revoke(dead.access_token, now)
    with office.db.begin() as cx:
        assert tokens.purge(cx, now, 100) == 0
        assert tokens.purge(cx, now + 1, 100) == 1
        assert tokens.purge(cx, now + 1, 100) == 0
    office.info(living.access_token, now)
    with pytest.raises(DeadToken):
        office.info(dead.access_token, now)
    end = now + office.options.refresh_token_seconds * SECOND
    with office.db.begin() as cx:
        assert tokens.purge(cx, end, 100) == 0
        assert tokens.purge(cx, end + 1, 100) == 1
        assert cx.execute(sa.text("SELECT count(*) FROM access_tokens")).scalar_one() == 0


def test_an_expired_access_token_is_kept_as_long_as_it_can_end_its_grant(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    later = now + office.options.access_token_seconds * SECOND + 1
    with office.db.begin() as cx:
        assert tokens.purge(cx, later, 100) == 0
    office.revoke(issued.access_token, later)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, later)
