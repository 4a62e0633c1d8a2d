"""What may an administrator decide about OAuth clients? Who loses a right to use one is signed out there."""

from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import oauth_clients
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import assertions, sessions, tokens
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.refusals import BadAttribute
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant


def set_settings(cx: Connection, client: Entry, settings: ClientSettings, now: Instant) -> SessionCount:
    """If users of fewer partitions may sign in with it, or it authenticates otherwise, the grants issued to the client
    end; if its impersonation is another, the tickets and grants with which it acts for others; those that were made in
    a way that is denied to it now, and those for the administration if it may no longer ask for them. Raises
    BadAttribute.
    """
    assertions.check_keys(settings.jwks)
    if settings.by_key and not settings.jwks:
        raise BadAttribute("A client that authenticates by private_key_jwt needs its public keys (jwks).")
    version_stamps.lock_rights(cx)
    former = oauth_clients.read(cx, [client.id])[client.id]
    oauth_clients.write(cx, client, settings, now)
    before = former.auth_scopes
    if settings.auth_scopes and (not before or not set(before) <= set(settings.auth_scopes)):
        return sessions.end_of(cx, client, now)
    if (former.authentication, former.jwks) != (settings.authentication, settings.jwks):
        return sessions.end_of(cx, client, now)
    denied = set(settings.denied_grants) - set(former.denied_grants)
    ended = SessionCount(tokens.end_made(cx, client.id, denied, now) if denied else 0)
    if oauth_clients.impersonation_of(former) == oauth_clients.impersonation_of(settings):
        return ended
    exchanged = tokens.end_exchanged(cx, "client", client.id, now)
    return ended + SessionCount(exchanged, tickets.end_acting(cx, now, client_id=client.id))
