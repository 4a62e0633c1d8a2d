"""May this account sign in from there just now?"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from muniment.directory.entries import credentials, editing
from muniment.directory.entries.credentials import Credentials
from muniment.directory.entries.table import Entry
from muniment.directory.oauth.token_requests import TokenAttempt
from muniment.directory.refusals import InvalidGrant, SignInRefused
from muniment.directory.sign_in import attempts as sign_in_attempts
from muniment.directory.sign_in import form as form_sign_in
from muniment.directory.sign_in import pauses
from muniment.directory.sign_in.attempts import SignInAttempt
from muniment.directory.sign_in.passwords import hash_password
from muniment.directory.sign_in.pauses import Origin, Pause
from muniment.ground.clock import SECOND, Instant
from tests.office import HASH, HOME, Office

STRANGE = "203.0.113.9"
COOKIE = "c" * 32


def attack(office: Office, now: Instant, *, address: str = STRANGE, times: int = 0) -> None:
    """Guess until sign-in from there pauses."""
    for _ in range(times or office.options.lockout_failures):
        assert isinstance(office.sign_in(now, right=False, address=address), InvalidGrant)


def form(office: Office, now: Instant, origin: Origin, *, right: bool = True) -> Entry | InvalidGrant:
    """Sign in with a browser."""
    with office.db.read() as cx:
        attempt = form_sign_in.begin(cx, office.options, office.resource.id, "alice@People", origin, now)
    with office.db.begin() as cx:
        try:
            return sign_in_attempts.finish(cx, office.options, attempt, right, now)
        except SignInRefused as refusal:
            return refusal


def row(office: Office) -> Credentials:
    with office.db.read() as cx:
        found = credentials.find(cx, office.options, "alice@People")
    assert found is not None
    return found


def test_a_stranger_pauses_what_is_elsewhere_and_not_the_owner(office: Office, now: Instant) -> None:
    """failures A5: from the address and client of an earlier sign-in the owner gets through, again and again."""
    office.issue(now)
    for _ in range(3):
        attack(office, now)
        assert isinstance(office.sign_in(now, address=STRANGE), InvalidGrant)
        assert isinstance(office.sign_in(now, address="198.51.100.1"), InvalidGrant), "elsewhere is one"
        office.issue(now)
        now += office.options.lockout_seconds * SECOND


def test_another_client_at_the_same_address_is_another_place(office: Office, now: Instant) -> None:
    office.issue(now)
    attack(office, now)
    assert isinstance(form(office, now, Origin(HOME)), InvalidGrant)
    office.issue(now)


def test_the_cookie_of_an_earlier_sign_in_gets_through_from_anywhere(office: Office, now: Instant) -> None:
    """failures A5: and a cookie that the account never signed in with does not."""
    assert isinstance(form(office, now, Origin(HOME, browser=COOKIE)), Entry)
    attack(office, now)
    attack(office, now)
    assert isinstance(form(office, now, Origin(STRANGE, browser=COOKIE)), Entry)
    assert isinstance(form(office, now, Origin("198.51.100.1", browser="d" * 32)), InvalidGrant)
    assert isinstance(form(office, now, Origin("198.51.100.1", browser="not a cookie")), InvalidGrant)


def test_a_known_place_has_a_count_of_its_own(office: Office, now: Instant) -> None:
    """failures A3: whoever guesses at the owner's own place pauses that place, and no other."""
    office.issue(now)
    attack(office, now, address=HOME)
    assert isinstance(office.sign_in(now), InvalidGrant)
    assert office.begin(now).basis.password_hash is None, "the real password is not even looked at"
    office.issue_from("198.51.100.1", now)
    over = now + office.options.lockout_seconds * SECOND
    office.issue(over)


def test_success_at_a_known_place_does_not_reset_the_count_elsewhere(office: Office, now: Instant) -> None:
    """failures A3: else each sign-in of the owner would give the stranger another ten guesses."""
    office.issue(now)
    attack(office, now, times=office.options.lockout_failures - 1)
    office.issue(now)
    last = office.sign_in(now, right=False, address=STRANGE)
    assert isinstance(last, InvalidGrant)
    assert last.pauses
    assert isinstance(office.sign_in(now, address=STRANGE), InvalidGrant)


@pytest.mark.slow
def test_of_many_guesses_at_one_time_from_many_places_no_more_than_the_limit_of_each_count(
    office: Office, now: Instant
) -> None:
    """failures A3: elsewhere is one place, however many addresses it has; a known place adds its own ten."""
    office.issue(now)
    limit = office.options.lockout_failures
    attempts = [office.begin(now, address=f"203.0.113.{number}") for number in range(60)]
    attempts += [office.begin(now) for _ in range(60)]
    assert all(attempt.basis.password_hash for attempt in attempts)

    def finish(attempt: TokenAttempt[SignInAttempt]) -> bool:
        outcome = office.finish(attempt, False, now)
        return isinstance(outcome, InvalidGrant) and outcome.pauses

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(finish, attempts)) == 2, "each is paused once"
    assert [isinstance(office.finish(attempt, True, now), InvalidGrant) for attempt in attempts] == [True] * 120
    told = pauses.pauses(office.options, row(office), now)
    assert [pause.failures for pause in told] == [limit, limit]


def test_places_are_bounded_and_the_one_least_lately_used_goes(office: Office, now: Instant) -> None:
    for number in range(pauses.MOST_PLACES + 5):
        office.issue_from(f"198.51.100.{number}", now + number)
    assert pauses.known_places(row(office), now + pauses.MOST_PLACES) == pauses.MOST_PLACES
    later = now + 1000
    attack(office, later, address=STRANGE)
    assert isinstance(office.sign_in(later, address="198.51.100.4"), InvalidGrant)
    office.issue_from("198.51.100.5", later)


@pytest.mark.slow
def test_a_stranger_makes_no_row_grow(office: Office, now: Instant) -> None:
    for number in range(300):
        office.sign_in(now + number * 1000 * SECOND, right=False, address=f"203.0.113.{number % 250}")
    found = row(office)
    assert (len(found.tries), found.places) == (len(found.tries), "{}")
    assert len(found.tries) < 60


def test_a_place_is_forgotten_half_a_year_after_its_last_sign_in(office: Office, now: Instant) -> None:
    office.issue(now)
    last = now + pauses.PLACE_SECONDS * SECOND
    assert [pauses.known_places(row(office), at) for at in (last - 1, last)] == [1, 0]
    attack(office, last - 1)
    assert isinstance(office.sign_in(last), InvalidGrant)
    office.issue(last - 1)


def test_no_address_and_no_cookie_is_kept(office: Office, now: Instant) -> None:
    form(office, now, Origin(HOME, browser=COOKIE))
    office.issue(now)
    with office.db.read() as cx:
        kept = "\n".join(str(value) for one in cx.execute(sa.text("SELECT * FROM entries")) for value in one)
    assert HOME not in kept
    assert COOKIE not in kept
    assert '{"b' in row(office).places


def test_a_new_password_ends_the_cookies_and_every_pause(office: Office, now: Instant) -> None:
    form(office, now, Origin(HOME, browser=COOKIE))
    attack(office, now)
    with office.db.begin() as cx:
        editing.set_password_hash(cx, office.alice, hash_password("new", memory_kib=8192, passes=1), now)
    assert pauses.pauses(office.options, row(office), now) == []
    attack(office, now)
    assert isinstance(form(office, now, Origin(STRANGE, browser=COOKIE)), InvalidGrant)
    assert isinstance(form(office, now, Origin(HOME)), Entry), "an address is no secret: it stays known"


LIFTS: dict[str, Callable[[sa.Connection, Entry, Instant], object]] = {
    "unpause": lambda cx, user, _now: editing.end_pauses(cx, user),
    "unlock": lambda cx, user, now: editing.set_locked(cx, user, False, now),
    "a new password": lambda cx, user, now: editing.set_password_hash(cx, user, HASH, now),
}


@pytest.mark.slow
@pytest.mark.parametrize("lift", LIFTS)
def test_an_administrator_lifts_a_pause(office: Office, now: Instant, lift: str) -> None:
    attack(office, now)
    until = now + office.options.lockout_seconds * SECOND
    assert pauses.pauses(office.options, row(office), now) == [Pause(True, office.options.lockout_failures, until)]
    with office.db.begin() as cx:
        LIFTS[lift](cx, office.alice, now)
    assert pauses.pauses(office.options, row(office), now) == []
    office.issue(now)


def test_a_password_that_was_not_checked_because_of_a_pause_counts_not_even_after_the_pause(
    office: Office, now: Instant
) -> None:
    attack(office, now)
    attempt = office.begin(now)
    over = now + office.options.lockout_seconds * SECOND
    attack(office, over, times=office.options.lockout_failures - 1)
    before = row(office).tries
    refusal = office.finish(attempt, False, over)
    assert isinstance(refusal, SignInRefused)
    assert (refusal.pauses, row(office).tries) == (False, before)
    office.issue(over)


def test_an_account_that_never_signed_in_is_paused_everywhere(office: Office, now: Instant) -> None:
    """What the decision record says of an account without places: nothing tells its owner from a stranger."""
    attack(office, now)
    assert isinstance(office.sign_in(now), InvalidGrant)


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("192.0.2.7", "::ffff:192.0.2.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
        ("fe80::1%eth0", "fe80::2%eth1"),
        ("somewhere", "somewhere"),
        ("", ""),
    ],
)
def test_an_ipv6_caller_is_known_by_its_network(address: str, same: str) -> None:
    assert pauses.neighbourhood(address) == pauses.neighbourhood(same)
    assert pauses.neighbourhood("2001:db8:1:2::1") != pauses.neighbourhood("2001:db8:1:3::1")
