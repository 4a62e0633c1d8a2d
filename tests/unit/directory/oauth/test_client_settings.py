"""What an administrator says of an OAuth client, the token endpoint obeys: lifetimes, refreshing, and whose users."""

import time
from pathlib import Path

import msgspec
import pytest
from joserfc.jwk import ECKey

from muniment.directory.administration import client_decisions, decisions
from muniment.directory.entries import editing, oauth_clients
from muniment.directory.entries.oauth_clients import DEFAULTS, ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import clients
from muniment.directory.oauth.clients import ClientProof
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.refusals import BadAttribute, DeadToken, InvalidClient, InvalidGrant, SignInRefused
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.passwords import PasswordGate, new_secret
from muniment.ground.clock import SECOND, Instant
from tests.office import Office, counted

WHOLE = ClientSettings(
    redirect_urls=("https://app.example.org/",),
    allowed_scopes=("search",),
    default_scopes=("search",),
    impersonate_list=("alice@People",),
    access_seconds=1000,
    refresh_seconds=20_000,
    code_seconds=20_000,
    allow_refresh_token=False,
    allow_impersonation=True,
    use_session_refresh_seconds=True,
    logout_url="https://app.example.org/bye",
    logout_method="GET",
)


def settle(office: Office, settings: ClientSettings, now: Instant) -> SessionCount:
    with office.db.begin() as cx:
        return client_decisions.set_settings(cx, office.client, settings, now)


def test_settings_are_kept_and_a_client_without_any_has_the_defaults(office: Office, now: Instant) -> None:
    with office.db.read() as cx:
        assert oauth_clients.read(cx, [office.client.id]) == {office.client.id: DEFAULTS}
    for settings in (WHOLE, DEFAULTS):
        settle(office, settings, now)
        with office.db.read() as cx:
            assert oauth_clients.read(cx, [office.client.id]) == {office.client.id: settings}
    for wrong in ({"access_seconds": 0}, {"refresh_seconds": -1}, {"logout_url": "\x00"}, {"code_seconds": 10**9}):
        with pytest.raises(BadAttribute):
            settle(office, msgspec.structs.replace(WHOLE, **wrong), now)


def test_tokens_live_as_long_as_the_client_says(office: Office, now: Instant) -> None:
    settle(office, ClientSettings(access_seconds=100, refresh_seconds=250), now)
    issued = office.issue(now)
    assert issued.expires_in == 100
    office.info(issued.access_token, now + 99 * SECOND)
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now + 100 * SECOND)
    again = office.refresh(issued, now + 200 * SECOND)
    assert isinstance(again, TokenResponse)
    assert again.expires_in == 50, "no longer than the grant"
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now + 250 * SECOND)


def test_a_client_without_refresh_tokens_gets_none_and_can_use_none_that_it_has(office: Office, now: Instant) -> None:
    before = office.issue(now)
    settle(office, ClientSettings(allow_refresh_token=False, access_seconds=100), now)
    issued = office.issue(now)
    assert issued.refresh_token is msgspec.UNSET
    assert b"refresh_token" not in msgspec.json.encode(issued)
    with pytest.raises(InvalidGrant):
        office.refresh(before, now)
    office.info(before.access_token, now)


def test_users_of_other_partitions_are_refused_as_if_the_password_were_wrong(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    with office.db.begin() as cx:
        other = editing.add_partition(cx, office.names, "Others", now)
    assert settle(office, ClientSettings(auth_scopes=(office.partition.id,)), now) == SessionCount(1, 0)
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now)
    issued = office.issue(now)
    assert settle(office, ClientSettings(auth_scopes=(office.partition.id, other.id)), now) == SessionCount()
    office.info(issued.access_token, now)
    assert settle(office, ClientSettings(auth_scopes=(other.id,)), now) == SessionCount(1, 0)
    refusal = office.sign_in(now)
    wrong = office.sign_in(now, right=False)
    assert isinstance(refusal, SignInRefused)
    assert isinstance(wrong, SignInRefused)
    assert (refusal.sentence, refusal.reason) == (wrong.sentence, "client for other partitions")
    assert settle(office, DEFAULTS, now) == SessionCount()
    office.issue(now)


def test_settings_that_change_during_a_sign_in_count(office: Office, now: Instant) -> None:
    attempt = office.begin(now)
    settle(office, ClientSettings(auth_scopes=(office.client.id,)), now)
    assert isinstance(office.finish(attempt, True, now), SignInRefused)


def test_a_remembered_client_is_forgotten_when_its_settings_change(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    assert isinstance(office.refresh(issued, now), TokenResponse)
    settle(office, ClientSettings(access_seconds=7), now)
    again = office.refresh(issued, now)
    assert isinstance(again, TokenResponse)
    assert again.expires_in == 7


def test_a_client_and_its_settings_take_one_statement(office: Office, now: Instant) -> None:
    settle(office, WHOLE, now)
    with office.db.read() as cx, counted(office.db) as sent:
        assert clients.find(cx, office.clients, ClientProof("app")).settings == WHOLE
    assert len(sent) == 1, sent


def _confidential(office: Office, stored: str, now: Instant) -> Entry:
    with office.db.begin() as cx:
        return editing.add_client(cx, "safe", now, password_hash=stored)


def test_a_secret_that_we_made_is_right_at_once_and_no_other_is(office: Office, now: Instant, tmp_path: Path) -> None:
    secret, stored = new_secret()
    client = _confidential(office, stored, now)
    assert client.has_password
    assert len(secret) >= 43, "256 bits"
    assert secret not in stored
    assert len(stored) <= 255
    assert new_secret()[0] != secret
    gate = PasswordGate(tmp_path / "slots", slots=1, queue=1, memory_kib=65_536, passes=3)
    try:
        asker = Asker("192.0.2.1", "client safe")
        begin = time.perf_counter()
        assert gate.check(stored, secret, asker, now).done()
        assert gate.check(stored, secret, asker, now).result()
        for wrong in ("", secret[:-1], secret + "x", "\udcff", stored):
            assert not gate.check(stored, wrong, asker, now).result()
        assert time.perf_counter() - begin < 1
    finally:
        gate.close()


def test_a_client_with_another_secret_now_is_refused(office: Office, now: Instant) -> None:
    secret, stored = new_secret()
    client = _confidential(office, stored, now)
    with office.db.read() as cx:
        found = clients.find(cx, office.clients, ClientProof("safe", secret))
        with pytest.raises(InvalidClient):
            clients.find(cx, office.clients, ClientProof("safe"))
    with office.db.begin() as cx:
        assert clients.require_unchanged(cx, found) == DEFAULTS
        decisions.set_password(cx, client, new_secret()[1], now)
        with pytest.raises(InvalidClient):
            clients.require_unchanged(cx, found)


def test_a_client_with_another_key_now_or_none_is_refused(office: Office, now: Instant) -> None:
    """Its assertion was verified by the key that it had when the request came."""
    first, second = ({"keys": [ECKey.generate_key("P-256").as_dict(private=False)]} for _ in range(2))
    by_key = ClientSettings(authentication="private_key_jwt", jwks=msgspec.json.encode(first).decode())
    settle(office, by_key, now)
    with office.db.read() as cx:
        found = clients.find(cx, office.clients, ClientProof("app", assertion="x.y.z"))
    with office.db.begin() as cx:
        assert clients.require_unchanged(cx, found) == by_key
    others = (
        msgspec.structs.replace(by_key, jwks=msgspec.json.encode(second).decode()),
        msgspec.structs.replace(by_key, authentication="secret"),
    )
    for other in others:
        with office.db.begin() as cx:
            oauth_clients.write(cx, office.client, other, now)
            with pytest.raises(InvalidClient):
                clients.require_unchanged(cx, found)
