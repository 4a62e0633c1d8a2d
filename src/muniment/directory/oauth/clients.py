"""Which OAuth client sends a request, and must it authenticate with a secret (RFC 6749 2.3, 3.2.1)?"""

from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials
from muniment.directory.refusals import InvalidClient
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import neighbourhood
from muniment.ground.caches import Cache

REFUSED = "The client is unknown, or did not authenticate as it must."


_ENTRY = 500
"""About how many bytes a remembered client takes beside its client id."""


class Client(msgspec.Struct, frozen=True):
    """``secret_hash`` is None for a public client.

    The secret is checked at the gate, before the user's password.
    """

    id: int
    secret_hash: str | None


PublicClientCache: TypeAlias = Cache[str, Client]
"""It keeps clients by client id, each with its generation."""


def find(cx: Connection, memory: PublicClientCache, client_id: str, secret: str | None) -> Client:
    """Only public clients are remembered: memory holds no secret's hash. The secret is not checked here. Raises
    InvalidClient if the client is unknown or may not act, or a confidential one sends no secret or a public one does.
    """
    known, generation = credentials.find_of_client(cx, client_id) or (None, "")
    # A public client must send no secret, and a confidential client must send one.
    if known is None or not known.user.live or (known.password_hash is None) != (not secret):
        raise InvalidClient(REFUSED)
    client = Client(known.user.id, known.password_hash)
    if client.secret_hash is None:
        memory.keep(client_id, client, _ENTRY + len(client_id), generation)
    return client


def asker(client_id: str, address: str) -> Asker:
    return Asker(neighbourhood(address), f"client {client_id}")


def require_unchanged(cx: Connection, client: Client) -> None:
    """Lock the client until the commit.

    Raises InvalidClient if it may no longer act or has another secret now.
    """
    current = credentials.lock(cx, client.id, shared=True)
    if current is None or not current.user.live or current.password_hash != client.secret_hash:
        raise InvalidClient(REFUSED)
