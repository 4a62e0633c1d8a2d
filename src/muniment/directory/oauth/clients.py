"""Which OAuth client sends a request, and must it authenticate with a secret (RFC 6749 2.3, 3.2.1)?"""

from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials, oauth_clients
from muniment.directory.entries.oauth_clients import ClientSettings, Made
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import InvalidClient, UnauthorizedClient
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import neighbourhood
from muniment.ground.caches import Cache

REFUSED = "The client is unknown, or did not authenticate as it must."


_ENTRY = 500
"""About how many bytes a remembered client takes beside its client id."""


class ClientProof(msgspec.Struct, frozen=True):
    """What a request shows of its client: a secret, an assertion (RFC 7523), or neither.

    ``raw`` is a second reading, if the request can be read in two ways.
    """

    client_id: str
    secret: str | None = None
    assertion: str | None = None
    raw: "ClientProof | None" = None


class Client(msgspec.Struct, frozen=True):
    """``secret_hash`` is None for a client without a secret.

    The secret is checked at the gate, before the user's password.
    """

    id: int
    name: str
    secret_hash: str | None
    settings: ClientSettings

    @property
    def confidential(self) -> bool:
        """Whether it must authenticate, by a secret or a key."""
        return self.settings.is_confidential(has_secret=self.secret_hash is not None)

    def access_seconds(self, options: DirectoryOptions) -> int:
        return self.settings.access_seconds or options.access_token_seconds

    def refresh_seconds(self, options: DirectoryOptions) -> int:
        """The lifetime of a grant. One that cannot be refreshed needs to live no longer than its access token."""
        if not self.settings.allow_refresh_token:
            return self.access_seconds(options)
        return self.settings.refresh_seconds or options.refresh_token_seconds

    def rotates(self, made: Made) -> bool:
        """Whether the refresh token of a grant has successors: by default, if the client cannot prove who it is, and a
        password grant's answer to a refresh would have to show them (given 2.4).
        """
        if self.settings.rotates is not None:
            return self.settings.rotates
        return not self.confidential and made != "password"

    def lets_sign_in(self, user: Entry) -> bool:
        return not self.settings.auth_scopes or user.partition_id in self.settings.auth_scopes


PublicClientCache: TypeAlias = Cache[str, Client]
"""It keeps clients by client id, each with its generation."""


def find(cx: Connection, memory: PublicClientCache, proof: ClientProof) -> Client:
    """Only public clients are remembered: memory holds no secret's hash. What they show is not checked here. Raises
    InvalidClient if the client is unknown or may not act, or does not show what it must, or shows more.
    """
    client_id = proof.client_id
    known = credentials.find_of_client(cx, client_id)
    if known is None or not known.user.live or not _shows_what_it_must(known, proof):
        raise InvalidClient(REFUSED)
    client = Client(known.user.id, known.user.name, known.secret_hash, known.settings)
    if not client.confidential:
        memory.keep(client_id, client, _ENTRY + len(client_id) + len(msgspec.json.encode(client)), known.generation)
    return client


def _shows_what_it_must(known: credentials.ClientCredentials, proof: ClientProof) -> bool:
    if known.settings.by_key:
        return proof.assertion is not None and not proof.secret
    return proof.assertion is None and (known.secret_hash is None) == (not proof.secret)


def asker(client_id: str, address: str) -> Asker:
    return Asker(neighbourhood(address), f"client {client_id}")


def require_unchanged(cx: Connection, client: Client) -> ClientSettings:
    """Lock the client until the commit, and return its settings of now.

    Raises InvalidClient if it may no longer act, or has another secret or key now, or proves itself otherwise.
    """
    current = credentials.lock(cx, client.id, shared=True)
    if current is None or not current.user.live or current.password_hash != client.secret_hash:
        raise InvalidClient(REFUSED)
    settings = oauth_clients.settings_of(cx, client.id)
    shown = client.settings
    if (settings.authentication, settings.jwks) != (shown.authentication, shown.jwks):
        raise InvalidClient(REFUSED)
    return settings


def require_grant(settings: ClientSettings, made: Made) -> None:
    """Raises UnauthorizedClient if the client may not use this grant type."""
    if made in settings.denied_grants:
        raise UnauthorizedClient("The client may not use this grant type: an administrator has not allowed it.")
