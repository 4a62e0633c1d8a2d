"""May this account sign in from there just now? Wrong passwords pause it by place, for a while (decision 0020).

A *place* is where an account signed in from before: a browser, known by a cookie, or an address with an OAuth client.
Wrong passwords count for the place they come from. All other places together are *elsewhere*, and count as one: so a
stranger pauses what is elsewhere, and whoever comes from a place of theirs gets through.
"""

import hashlib
import ipaddress
import re
import secrets

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant
from muniment.directory import system
from muniment.directory.entries.credentials import Credentials
from muniment.directory.options import DirectoryOptions

MOST_PLACES = 16
"""Places remembered of one account; a new one takes that of the one least lately used."""

PLACE_SECONDS = 180 * 86_400
"""How long a place is remembered after the last sign-in from it, and how long a browser keeps its cookie."""

_ELSEWHERE = ""
_COOKIE = re.compile(r"[A-Za-z0-9_-]{32}")
_NOBODY = -1


class Origin(msgspec.Struct, frozen=True):
    """Where a sign-in comes from: the caller's address, the client that asks (empty: the form), a browser's cookie."""

    address: str
    client: str = ""
    browser: str = ""


class Pause(msgspec.Struct, frozen=True):
    """Wrong passwords in a row from one place, or from elsewhere, and until when they pause it (0: they do not)."""

    elsewhere: bool
    failures: int
    until: Instant


class SignInState(msgspec.Struct, frozen=True):
    """What counts for one sign-in: the account's tries and places, and the place that decides.

    ``candidates`` are the places this origin would be, the surest first.
    """

    tries: dict[str, tuple[int, Instant]]
    places: dict[str, Instant]
    candidates: tuple[str, ...]
    place: str

    @property
    def by_cookie(self) -> bool:
        """Whether the browser's own cookie tells that this account signed in with it."""
        return self.place != _ELSEWHERE and self.place.startswith("b")

    def paused(self, options: DirectoryOptions, now: Instant) -> bool:
        """Whether sign-in pauses there."""
        return _pauses(options, self.tries.get(self.place, (0, 0))[1], now)


def state_of(cx: Connection, found: Credentials | None, origin: Origin, now: Instant) -> SignInState:
    """Say what counts for a sign-in from there; for a user that does not exist it costs the same."""
    key = system.key(cx, "places")
    user_id, stored = (found.user.id, found.stored or "") if found else (_NOBODY, "")
    # With a new password the cookies of the old one tell nothing any more; an address tells no less than before.
    browser = "b" + _digest(key, user_id, "browser", origin.browser, stored)
    address = "a" + _digest(key, user_id, "address", neighbourhood(origin.address), origin.client)
    candidates = (browser, address) if _COOKIE.fullmatch(origin.browser) else (address,)
    if found is None:
        return SignInState({}, {}, candidates, _ELSEWHERE)
    tries = msgspec.json.decode(found.tries, type=dict[str, tuple[int, Instant]])
    places = msgspec.json.decode(found.places, type=dict[str, Instant])
    place = next((one for one in candidates if now < places.get(one, 0) + PLACE_SECONDS * SECOND), _ELSEWHERE)
    return SignInState(tries, places, candidates, place)


def count(options: DirectoryOptions, standing: SignInState, right: bool, now: Instant) -> tuple[str, bool]:
    """Count one more wrong password at its place, or begin again at a right one: the tries to keep, whether it pauses.

    While sign-in pauses nothing counts and nothing succeeds. So of any number of guesses under way at one time no more
    than ``lockout_failures`` of one place are answered by whether they were right.
    """
    tries, begins = dict(standing.tries), False
    if not standing.paused(options, now):
        failures, until = tries.pop(standing.place, (0, 0))
        failures = 1 if until else failures + 1
        if not right:
            begins = bool(options.lockout_failures) and failures >= options.lockout_failures
            tries[standing.place] = failures, (now + options.lockout_seconds * SECOND if begins else 0)
    return _written({place: tries[place] for place in tries if place in standing.places or place == _ELSEWHERE}), begins


def remember(standing: SignInState, now: Instant) -> str:
    """Remember that the account signed in from there: the places to keep."""
    known = {place: last for place, last in standing.places.items() if now < last + PLACE_SECONDS * SECOND}
    for place in standing.candidates:
        known.pop(place, None)
        known[place] = now
    latest = sorted(known, key=lambda place: known[place])[-MOST_PLACES:]
    return _written({place: known[place] for place in latest})


def keep_places(standing: SignInState) -> str:
    """The places as they are."""
    return _written(standing.places)


def pauses(options: DirectoryOptions, found: Credentials, now: Instant) -> list[Pause]:
    """List the places of an account from which passwords were wrong last, for an administrator to see."""
    tries = msgspec.json.decode(found.tries, type=dict[str, tuple[int, Instant]])
    return [
        Pause(place == _ELSEWHERE, failures, until if _pauses(options, until, now) else 0)
        for place, (failures, until) in sorted(tries.items())
    ]


def known_places(found: Credentials) -> int:
    """Say from how many places an account is known to have signed in."""
    return len(msgspec.json.decode(found.places, type=dict[str, Instant]))


def browser_cookie(given: str) -> str:
    """Give the value by which a browser is known: the one it has, or a new one."""
    return given if _COOKIE.fullmatch(given) else secrets.token_urlsafe(24)


def neighbourhood(address: str) -> str:
    """Say what of an address tells callers apart: all of IPv4's, the network of IPv6's (RFC 6177: 64 bits at least)."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed.packed[:8] + bytes(8), 64)))


def _pauses(options: DirectoryOptions, until: Instant, now: Instant) -> bool:
    # A pause that would end later than one begun now is from before the clock went back.
    return now < until <= now + options.lockout_seconds * SECOND


def _digest(key: bytes, user_id: int, *words: str) -> str:
    spelled = "\x00".join((str(user_id), *words)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(spelled, digest_size=12, key=key).hexdigest()


def _written(values: dict[str, Instant] | dict[str, tuple[int, Instant]]) -> str:
    return msgspec.json.encode(values).decode()
