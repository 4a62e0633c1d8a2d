"""What ends a user's sessions, and a client's; what leaves them alone; the list of them."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from muniment.database.connections import directory_tables
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import credentials, editing, entries, memberships
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import grant_purge, revocation, sessions
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.refusals import DeadToken, InvalidClient, InvalidGrant, NotSignedIn, UnknownSession
from muniment.directory.sign_in import pauses, tickets
from muniment.ground.clock import SECOND, Instant
from tests.office import HASH, Office, counted, page_ticket
from tests.plans import steps

Way = Callable[[Office, Instant], SessionCount]


def _decided(office: Office, decision: Callable[..., SessionCount], *what: object) -> SessionCount:
    with office.db.begin() as cx:
        return decision(cx, *what)


def _removed(office: Office, person: Entry, now: Instant) -> SessionCount:
    with office.db.begin() as cx:
        return decisions.remove(cx, person, now).ended


ENDS_A_USER: dict[str, Way] = {
    "a new password": lambda office, now: _decided(office, decisions.set_password, office.alice, "new", now),
    "disabled": lambda office, now: _decided(office, decisions.set_disabled, office.alice, True, now),
    "locked": lambda office, now: _decided(office, decisions.set_locked, office.alice, True, now),
    "signed out": lambda office, now: _decided(office, decisions.sign_out, office.alice, now),
    "removed": lambda office, now: _removed(office, office.alice, now),
}
ENDS_A_CLIENT: dict[str, Way] = {
    "disabled": lambda office, now: _decided(office, decisions.set_disabled, office.client, True, now),
    "locked": lambda office, now: _decided(office, decisions.set_locked, office.client, True, now),
    "signed out": lambda office, now: _decided(office, decisions.sign_out, office.client, now),
    "removed": lambda office, now: _removed(office, office.client, now),
}


def ticket(office: Office, user: Entry, now: Instant) -> str:
    with office.db.begin() as cx:
        return page_ticket(cx, office.names, user.id, office.resource.id, now, 600)


def is_dead(office: Office, issued: TokenResponse, now: Instant) -> bool:
    """Ask of every use a grant has: tokeninfo and refresh. They agree."""
    try:
        office.info(issued.access_token, now)
    except DeadToken:
        with pytest.raises(InvalidGrant):
            office.refresh(issued, now)
        return True
    office.refresh(issued, now)
    return False


def live_again(office: Office, now: Instant) -> None:
    """Enable, unlock and admit everybody who is still there."""
    with office.db.begin() as cx:
        for one in (office.alice, office.client):
            if entries.by_id(cx, one.id):
                decisions.set_disabled(cx, one, False, now)
                decisions.set_locked(cx, one, False, now)


@pytest.mark.slow
@pytest.mark.parametrize("way", ENDS_A_USER)
def test_it_ends_every_grant_and_ticket_of_the_user_and_nothing_revives_them(
    office: Office, now: Instant, way: str
) -> None:
    """failures A6, C4"""
    with office.db.begin() as cx:
        memberships.add_member(cx, office.group, office.bob)
    first, second, other = office.issue(now), office.issue(now), office.issue(now, "bob@People")
    refreshed = office.refresh(first, now)
    browser, others = ticket(office, office.alice, now), ticket(office, office.bob, now)
    assert ENDS_A_USER[way](office, now) == SessionCount(2, 1)
    for _ in range(2):
        assert is_dead(office, first, now)
        assert is_dead(office, second, now)
        with pytest.raises(DeadToken):
            office.info(refreshed.access_token, now)
        with office.db.read() as cx, pytest.raises(NotSignedIn):
            tickets.read(cx, office.names, browser, now)
        live_again(office, now)
    assert not is_dead(office, other, now)
    with office.db.read() as cx:
        assert tickets.read(cx, office.names, others, now).user_id == office.bob.id


@pytest.mark.slow
@pytest.mark.parametrize("way", ENDS_A_CLIENT)
def test_it_ends_every_grant_issued_to_the_client_and_no_other(office: Office, now: Instant, way: str) -> None:
    """failures C4"""
    with office.db.begin() as cx:
        editing.add_client(cx, "other", now)
    attempt = office.begin(now, client="other")
    other, issued, browser = office.finish(attempt, True, now), office.issue(now), ticket(office, office.alice, now)
    assert isinstance(other, TokenResponse)
    assert ENDS_A_CLIENT[way](office, now) == SessionCount(1, 0)
    for _ in range(2):
        with pytest.raises(DeadToken):
            office.info(issued.access_token, now)
        live_again(office, now)
    office.info(other.access_token, now)
    with office.db.read() as cx:
        assert tickets.read(cx, office.names, browser, now).user_id == office.alice.id


def test_a_clients_new_secret_ends_no_grant(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    assert _decided(office, decisions.set_password, office.client, HASH, now) == SessionCount()
    office.info(issued.access_token, now)


def test_enabling_unlocking_flags_and_a_pause_end_nothing(office: Office, now: Instant) -> None:
    issued, browser = office.issue(now), ticket(office, office.alice, now)
    for _ in range(office.options.lockout_failures + 1):
        office.sign_in(now, right=False)
    with office.db.begin() as cx:
        found = credentials.lock(cx, office.alice.id)
        assert found is not None
        assert pauses.pauses(office.options, found, now)[0].until > now
        assert decisions.set_disabled(cx, office.alice, False, now) == SessionCount()
        assert decisions.set_locked(cx, office.alice, False, now) == SessionCount()
        editing.set_flags(cx, office.alice, now, must_change_password=True)
        tickets.read(cx, office.names, browser, now)
    assert not is_dead(office, issued, now)


def test_a_client_that_was_disabled_while_the_check_waited_gets_no_token(office: Office, now: Instant) -> None:
    """Its grants have ended by then; a grant begun after it would revive with the client."""
    attempt = office.begin(now)
    office.disable(office.client, True, now)
    with pytest.raises(InvalidClient):
        office.finish(attempt, True, now)
    office.disable(office.client, False, now)
    assert isinstance(office.finish(attempt, True, now), TokenResponse)


def test_sessions_are_listed_with_who_where_and_when_and_ended_by_their_id(office: Office, now: Instant) -> None:
    issued, browser = office.issue(now), ticket(office, office.alice, now + SECOND)
    with office.db.read() as cx:
        by_ticket, by_grant = sessions.of_user(cx, office.alice, now)
        assert sessions.of_client(cx, office.client, now) == [by_grant]
        assert sessions.of_user(cx, office.bob, now) == []
    assert (by_grant.kind, by_grant.user_id, by_grant.client_id) == ("grant", office.alice.id, office.client.id)
    assert (by_grant.since, by_grant.resource_id) == (now, office.resource.id)
    assert by_grant.expires == now + office.options.refresh_token_seconds * SECOND
    assert (by_ticket.kind, by_ticket.user_id, by_ticket.client_id) == ("ticket", office.alice.id, None)
    assert (by_ticket.since, by_ticket.expires) == (now + SECOND, now + 601 * SECOND)
    with office.db.begin() as cx:
        assert sessions.end_one(cx, by_grant.id, now) == SessionCount(1, 0)
        tickets.read(cx, office.names, browser, now)
        assert sessions.end_one(cx, by_ticket.id, now) == SessionCount(0, 1)
        assert sessions.of_user(cx, office.alice, now) == []
        for gone in (by_grant.id, by_ticket.id, "0" * 16, "", "zz", issued.access_token, browser):
            with pytest.raises(UnknownSession):
                sessions.end_one(cx, gone, now)
    assert is_dead(office, issued, now)


def test_what_is_over_is_not_listed_and_a_list_is_bounded(office: Office, now: Instant) -> None:
    for _ in range(3):
        office.issue(now)
        ticket(office, office.alice, now)
    office.revoke(office.issue(now).access_token, now)
    with office.db.read() as cx:
        assert len(sessions.of_user(cx, office.alice, now)) == 6
        assert len(sessions.of_user(cx, office.alice, now, limit=2)) == 4
        assert len(sessions.of_client(cx, office.client, now, limit=2)) == 2
        late = now + office.options.refresh_token_seconds * SECOND
        assert sessions.of_user(cx, office.alice, late) == []
        assert sessions.of_client(cx, office.client, late) == []


def test_a_removed_resource_takes_its_sessions_along(office: Office, now: Instant) -> None:
    issued, browser = office.issue(now), ticket(office, office.alice, now)
    with office.db.begin() as cx:
        elsewhere = page_ticket(cx, office.names, office.alice.id, office.administration.id, now, 600)
    assert _decided(office, resource_decisions.remove_resource, office.resource, now) == SessionCount(1, 1)
    with office.db.read() as cx:
        assert [session.resource_id for session in sessions.of_user(cx, office.alice, now)] == [
            office.administration.id
        ]
        assert tickets.read(cx, office.names, elsewhere, now).user_id == office.alice.id
        with pytest.raises(NotSignedIn):
            tickets.read(cx, office.names, browser, now)
    with pytest.raises(InvalidGrant):
        office.refresh(issued, now)


def test_what_has_expired_is_over_and_is_not_ended_or_counted(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    ticket(office, office.alice, now)
    with office.db.read() as cx:
        ids = [session.id for session in sessions.of_user(cx, office.alice, now)]
    assert len(ids) == 2
    late = now + office.options.refresh_token_seconds * SECOND
    with office.db.begin() as cx:
        for session_id in ids:
            with pytest.raises(UnknownSession):
                sessions.end_one(cx, session_id, late)
        assert sessions.end_of(cx, office.alice, late) == SessionCount()
        assert sessions.end_of(cx, office.client, late) == SessionCount()
        assert resource_decisions.remove_resource(cx, office.resource, late) == SessionCount()
        assert sessions.end_every(cx, late) == SessionCount()
        for token in (issued.access_token, issued.refresh_token):
            assert isinstance(token, str)
            assert revocation.revoke(cx, office.names, token, late) is None
        assert sessions.end_every(cx, late - SECOND) == SessionCount(1, 0), "it has one second left"


def test_all_sessions_of_everybody_can_be_ended(office: Office, now: Instant) -> None:
    issued = office.issue(now)
    ticket(office, office.bob, now)
    assert _decided(office, sessions.end_every, now) == SessionCount(1, 1)
    assert is_dead(office, issued, now)
    assert _decided(office, sessions.end_every, now) == SessionCount()


def test_tokens_of_a_grant_that_is_seldom_refreshed_are_purged_too(office: Office, now: Instant) -> None:
    """Each of them was its grant's newest when the purge looked at it first. Other tokens expire all the time."""
    issued, progress, counts = office.issue(now), grant_purge.PURGE_START, []
    access_tokens = directory_tables.tables["access_tokens"]
    with office.db.read() as cx:
        seldom = sa.select(sa.func.count()).where(
            access_tokens.c.grant_id == cx.execute(sa.select(access_tokens.c.grant_id)).scalar_one()
        )
    often = office.issue(now)
    for hour in range(1, 12):
        office.refresh(often, now + hour * 3600 * SECOND)
        if hour % 3 == 0:
            office.refresh(issued, now + hour * 3600 * SECOND)
        with office.db.begin() as cx:
            row_count = 100
            while row_count >= 100:
                row_count, progress = sessions.purge(cx, progress, now + hour * 3600 * SECOND + 1, 100)
            counts.append(cx.execute(seldom).scalar_one())
    assert max(counts) == 2, counts
    assert counts[-2:] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("way", sorted(ENDS_A_USER.keys() - {"removed"}))
def test_the_statements_are_as_many_whatever_there_is_to_end(office: Office, now: Instant, way: str) -> None:
    sent = []
    for many in (1, 40):
        live_again(office, now)
        for _ in range(many):
            office.refresh(office.issue(now), now)
        with counted(office.db) as statements:
            assert ENDS_A_USER[way](office, now).grants == many
        sent.append(len(statements))
    assert sent[0] == sent[1] <= 15
    with office.db.read() as cx:
        rows = cx.execute(sa.select(sa.func.count()).select_from(directory_tables.tables["access_tokens"])).scalar_one()
    assert rows == 82, "the rows are left to the purge"


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_all_grants_of_a_user_or_client_are_found_by_an_index(office: Office, now: Instant) -> None:

    def sign_both_out(_cx: object) -> None:
        for person in (office.alice, office.client):
            _decided(office, decisions.sign_out, person, now)

    plans = steps(office.db, sign_both_out)
    assert sum("UPDATE grants" in statement for statement, _ in plans) == 3
    for statement, looked_up in plans:
        for step in looked_up:
            assert not (step.startswith("SCAN") and ("grants" in step or "tickets" in step)), (statement, step)
