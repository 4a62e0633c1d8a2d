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
    """An OAuth client that may send token requests.

    ``secret_hash`` is the hash of a confidential client's secret, and None for a public client. The endpoint checks the
    secret at the gate, before the user's password.
    """

    id: int
    secret_hash: str | None


PublicClientCache: TypeAlias = Cache[str, Client]
"""The public clients that one process remembers by client id, each with the generation in which it was read."""


def find(cx: Connection, memory: PublicClientCache, client_id: str, secret: str | None) -> Client:
    """Only a public client is remembered, so the memory holds no secret's hash. The client's secret is not checked
    here. Raises InvalidClient if the client is unknown or may not act, if a confidential client sends no secret, or if
    a public client sends one.
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
    """Lock the client until the decision is committed.

    Raises InvalidClient if the client may no longer act or has another secret now.
    """
    current = credentials.lock(cx, client.id, shared=True)
    if current is None or not current.user.live or current.password_hash != client.secret_hash:
        raise InvalidClient(REFUSED)
