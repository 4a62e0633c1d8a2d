"""When does an administrator change the keys that sign tokens, and what ends with them?"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from muniment.directory import audit
from muniment.directory.entries import system
from muniment.directory.oauth import sessions, signing_keys
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.oauth.signing_keys import NewKey, PublishedKey
from muniment.ground.clock import Instant

PURPOSES = ("tokens", "csrf")
"""Of the keys that mark tokens and tickets, forms, and places in lists as this directory's own."""


def prepare(cx: Connection) -> None:
    """Make the next keys of all purposes. Servers take them when they have read them (``system.remember_keys``)."""
    for purpose in PURPOSES:
        system.prepare_key(cx, purpose)


def rotate(
    cx: Connection, keys: Sequence[NewKey], now: Instant, *, at_once: bool = False
) -> tuple[list[PublishedKey], SessionCount]:
    """The next keys, which ``prepare`` made, are used from now on, and values of the former ones are taken until the
    next change. The new signing keys sign when every cached key set has them. ``at_once`` a former key may be in the
    wrong hands: then no value of it is taken, and every grant and every ticket ends.
    """
    with audit.decision(cx, "keys rotated", audit.Target("key", "signing keys")):
        for purpose in PURPOSES:
            system.promote_key(cx, purpose, keep_former=not at_once)
        made = signing_keys.rotate(cx, keys, now, at_once=at_once)
        return made, sessions.end_every(cx, now) if at_once else SessionCount()
