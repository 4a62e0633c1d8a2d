"""Which OAuth client asks, and must it authenticate with a secret (RFC 6749 2.3, 3.2.1)?"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials
from muniment.directory.refusals import InvalidClient
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import neighbourhood

_REFUSED = "The client is unknown, or did not authenticate as it must."


class Client(msgspec.Struct, frozen=True):
    """An OAuth client that may ask.

    When ``stored`` is set it is confidential: the edge checks the secret presented against it at the gate, a check of
    its own, before anything else.
    """

    id: int
    stored: str | None


def find(cx: Connection, client_id: str, secret: str | None) -> Client:
    """Look up the client of a token request. Raises InvalidClient."""
    found = credentials.find_of_client(cx, client_id)
    # A public client that sends a secret, or a confidential one that sends none, did not authenticate as it must.
    if found is None or not found.user.live or (found.password_hash is None) != (not secret):
        raise InvalidClient(_REFUSED)
    return Client(found.user.id, found.password_hash)


def asker(client_id: str, address: str) -> Asker:
    """Say who waits at the gate while a client's secret is checked."""
    return Asker(neighbourhood(address), f"client {client_id}")


def require_authenticated(secret_ok: bool) -> None:
    """Let on only who sent the right secret. Raises InvalidClient."""
    if not secret_ok:
        raise InvalidClient(_REFUSED)


def require_unchanged(cx: Connection, client: Client) -> None:
    """Lock the client until the decision is committed; it may have been disabled, or given another secret, meanwhile.

    Raises InvalidClient.
    """
    known = credentials.lock(cx, client.id, shared=True)
    if known is None or not known.user.live or known.password_hash != client.stored:
        raise InvalidClient(_REFUSED)
