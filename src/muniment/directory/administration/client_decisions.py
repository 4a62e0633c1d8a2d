"""What may an administrator decide about OAuth clients? Who loses a right to use one is signed out there."""

from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import oauth_clients
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import sessions
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant


def set_settings(cx: Connection, client: Entry, settings: ClientSettings, now: Instant) -> SessionCount:
    """If users of fewer partitions may sign in with it, the grants issued to the client end; if its impersonation is
    another, the tickets with which it acts for others. Raises BadAttribute.
    """
    version_stamps.lock_rights(cx)
    former = oauth_clients.read(cx, [client.id])[client.id]
    oauth_clients.write(cx, client, settings, now)
    before = former.auth_scopes
    if settings.auth_scopes and (not before or not set(before) <= set(settings.auth_scopes)):
        return sessions.end_of(cx, client, now)
    if oauth_clients.impersonation_of(former) == oauth_clients.impersonation_of(settings):
        return SessionCount()
    return SessionCount(0, tickets.end_acting(cx, now, client_id=client.id))
