"""What may an administrator decide about OAuth clients? Who loses a right to use one is signed out there."""

from collections.abc import Collection
from typing import get_args

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, oauth_clients
from muniment.directory.entries.oauth_clients import ClientSettings, Made
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import assertions, codes, device_codes, sessions, tokens
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.refusals import BadAttribute
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant

_BY_ALLOWED_SCOPES: frozenset[Made] = frozenset(get_args(Made)) - {"password"}
"""How the grants are made that ``allowed_scopes`` bind."""


def set_settings(
    cx: Connection,
    client: Entry,
    settings: ClientSettings,
    now: Instant,
    *,
    secret_hash: str | msgspec.UnsetType | None = msgspec.UNSET,
) -> SessionCount:
    """With ``secret_hash`` the client has this secret from now on, with None it is public. One that authenticates by
    its key loses its secret, and one that does so no more must get a secret, or become public, in the same decision.

    If users of fewer partitions may sign in with it, or it authenticates otherwise, the grants issued to the client
    end; if it may ask for less, all but those by a password; if its impersonation is another, the tickets and grants
    with which it acts for others; those that were made in a way that is denied to it now, and those for the
    administration if it may no longer ask for them. Raises BadAttribute, NobodyAdministers.
    """
    assertions.check_keys(settings.jwks)
    if settings.by_key and not settings.jwks:
        raise BadAttribute("A client that authenticates by private_key_jwt needs its public keys (jwks).")
    version_stamps.lock_rights(cx)
    former = oauth_clients.settings_of(cx, client.id)
    if former.by_key and not settings.by_key and secret_hash is msgspec.UNSET:
        raise BadAttribute("The client has no secret: give it one, or say that it is public.")
    if settings != former:
        oauth_clients.write(cx, client, settings, now)
    present = entries.by_id(cx, client.id)
    has_secret = present is not None and present.has_password
    if settings.by_key and secret_hash is msgspec.UNSET:
        secret_hash = None
    ended = SessionCount()
    if isinstance(secret_hash, str) or (secret_hash is None and has_secret):
        ended = decisions.set_password(cx, client, secret_hash, now)
    return ended + _end(cx, client, former, settings, now)


def _end(cx: Connection, client: Entry, former: ClientSettings, settings: ClientSettings, now: Instant) -> SessionCount:
    authenticates_otherwise = (former.authentication, former.jwks) != (settings.authentication, settings.jwks)
    if authenticates_otherwise or _narrows(former.auth_scopes, settings.auth_scopes):
        return sessions.end_of(cx, client, now)
    denied = set(settings.denied_grants) - set(former.denied_grants)
    lost_default = settings.allowed_scopes and former.default_resource not in ("", settings.default_resource)
    if lost_default or _narrows(former.allowed_scopes, settings.allowed_scopes):
        denied |= _BY_ALLOWED_SCOPES
        codes.end_of(cx, client.id)
        device_codes.end_of(cx, client.id)
    ended = SessionCount(tokens.end_made(cx, client.id, denied, now) if denied else 0)
    if former.may_administer and not settings.may_administer:
        ended += sessions.end_unmarked(cx, client, settings, now)
    if oauth_clients.impersonation_of(former) == oauth_clients.impersonation_of(settings):
        return ended
    exchanged = tokens.end_exchanged(cx, "client", client.id, now)
    return ended + SessionCount(exchanged, tickets.end_acting(cx, now, client_id=client.id))


def _narrows(former: Collection[str | int], present: Collection[str | int]) -> bool:
    """An empty list means all."""
    return bool(present) and (not former or not set(former) <= set(present))
