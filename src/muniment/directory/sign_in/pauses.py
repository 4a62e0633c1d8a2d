"""May this account sign in from this place now? Wrong passwords pause its sign-in there (decision 0025).

A *place* is a source from which an account signed in before: a browser, known by a cookie, or an address together with
an OAuth client or the sign-in form. All others are *elsewhere*, and count as one.
"""

import hashlib
import ipaddress
import re
import secrets
from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import system
from muniment.directory.entries.credentials import Credentials
from muniment.directory.options import DirectoryOptions
from muniment.ground.clock import SECOND, Instant

MOST_PLACES = 16
"""A further place of an account replaces the least recently used."""

PLACE_SECONDS = 180 * 86_400
"""So long a place is remembered after its last sign-in, and a browser keeps its cookie."""

_ELSEWHERE = ""
_COOKIE = re.compile(r"[A-Za-z0-9_-]{32}")
_NOBODY = -1

Tries: TypeAlias = dict[str, tuple[int, Instant]]
Places: TypeAlias = dict[str, Instant]


class Origin(msgspec.Struct, frozen=True):
    """``client`` is empty for the form."""

    address: str
    client: str = ""
    browser: str = ""


class Pause(msgspec.Struct, frozen=True):
    """Wrong passwords in a row from one place, or from elsewhere.

    After a pause the count begins anew. ``until`` is 0 without one.
    """

    elsewhere: bool
    failures: int
    until: Instant


class SignInState(msgspec.Struct, frozen=True):
    """An account's wrong passwords by place, its places, and the place of the sign-in.

    ``candidates`` are the browser if it sent a cookie, then the address. ``place`` is the first that is remembered, or
    else *elsewhere*.
    """

    tries: Tries
    places: Places
    candidates: tuple[str, ...]
    place: str

    @property
    def by_cookie(self) -> bool:
        return self.place.startswith("b")

    def paused(self, options: DirectoryOptions, now: Instant) -> bool:
        return _pauses(options, self.tries.get(self.place, (0, 0))[1], now)


def state_of(cx: Connection, credentials: Credentials | None, origin: Origin, now: Instant) -> SignInState:
    """An unknown user (None) takes as long as a known one."""
    key = system.key(cx, "places")
    user_id, password_hash = (credentials.user.id, credentials.password_hash or "") if credentials else (_NOBODY, "")
    # A new password makes old cookies worthless. Known addresses remain known.
    browser = "b" + _digest(key, user_id, "browser", origin.browser, password_hash)
    address = "a" + _digest(key, user_id, "address", neighbourhood(origin.address), origin.client)
    candidates = (browser, address) if _COOKIE.fullmatch(origin.browser) else (address,)
    if credentials is None:
        return SignInState({}, {}, candidates, _ELSEWHERE)
    tries = msgspec.json.decode(credentials.tries, type=Tries)
    places = msgspec.json.decode(credentials.places, type=Places)
    place = next((each for each in candidates if _is_remembered(places.get(each, 0), now)), _ELSEWHERE)
    return SignInState(tries, places, candidates, place)


def count_wrong_password(
    options: DirectoryOptions, state: SignInState, is_right: bool, now: Instant, *, was_checked: bool
) -> tuple[str, bool]:
    """Returns the new ``tries``, ready to store, and whether a pause begins. During a pause nothing is counted and no
    sign-in succeeds. A password that was not checked, as its sign-in began during a pause, is not counted even
    afterwards: of many guesses from one place at one time, at most ``lockout_failures`` get a true answer.
    """
    tries, begins_pause = dict(state.tries), False
    if was_checked and not state.paused(options, now):
        failures, until = tries.pop(state.place, (0, 0))
        failures = 1 if until else failures + 1
        if not is_right:
            begins_pause = bool(options.lockout_failures) and failures >= options.lockout_failures
            tries[state.place] = failures, (now + options.lockout_seconds * SECOND if begins_pause else 0)
    return encode(
        {place: tries[place] for place in tries if place in state.places or place == _ELSEWHERE}
    ), begins_pause


def remember(state: SignInState, now: Instant) -> str:
    places = {place: used_at for place, used_at in state.places.items() if _is_remembered(used_at, now)}
    for place in state.candidates:
        places.pop(place, None)
        places[place] = now
    latest = sorted(places, key=lambda place: places[place])[-MOST_PLACES:]
    return encode({place: places[place] for place in latest})


def pauses(options: DirectoryOptions, credentials: Credentials, now: Instant) -> list[Pause]:
    tries = msgspec.json.decode(credentials.tries, type=Tries)
    return [
        Pause(place == _ELSEWHERE, failures, until if _pauses(options, until, now) else 0)
        for place, (failures, until) in sorted(tries.items())
    ]


def known_places(credentials: Credentials, now: Instant) -> int:
    places = msgspec.json.decode(credentials.places, type=Places)
    return sum(_is_remembered(used_at, now) for used_at in places.values())


def browser_cookie(cookie: str) -> str:
    """Make a new random value unless ``cookie`` has the form of one."""
    return cookie if _COOKIE.fullmatch(cookie) else secrets.token_urlsafe(24)


def neighbourhood(address: str) -> str:
    """What tells callers apart: all of an IPv4 address, the /64 network of IPv6 (decision 0025).

    A text that is no address stays as it is.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed.packed[:8] + bytes(8), 64)))


def _is_remembered(used_at: Instant, now: Instant) -> bool:
    return now < used_at + PLACE_SECONDS * SECOND


def _pauses(options: DirectoryOptions, until: Instant, now: Instant) -> bool:
    # A pause that ends later than one that begins now comes from a clock that was set back.
    return now < until <= now + options.lockout_seconds * SECOND


def _digest(key: bytes, user_id: int, *words: str) -> str:
    text = "\x00".join((str(user_id), *words)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=12, key=key).hexdigest()


def encode(values: Places | Tries) -> str:
    return msgspec.json.encode(values).decode()
