"""Whose token is this, and in which groups are they? We ask the directory when a right is used (decision 0018).

There are two ways to ask: in this process, and by HTTP. Both read the same tokeninfo document, so a caller's
principals do not depend on the way. Nothing about a caller is remembered between two requests.

Source: given 2.5-2.7, 4.2, 4.3, section 7.
"""

import asyncio
import re
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import httpx
import msgspec
import structlog

from muniment.naming import MalformedName, fold_name, read_dn
from muniment.repository.permissions import bearers
from muniment.repository.permissions.bearers import Identify
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.repositories import Repository
from muniment.web.refusals import Refusal

Ask = Callable[[str, str], bytes]
"""Returns the tokeninfo document (JSON) of a token and a resource identifier, from a snapshot of the directory.

Any thread may call it. Raises NotSignedIn, DirectoryUnavailable.
"""

Fetch = Callable[[str, str], Awaitable[bytes]]
"""Fetches that document from a directory, and waits for its answer. Raises NotSignedIn, DirectoryUnavailable."""

OffLoop = Callable[[Ask, str, str], Awaitable[bytes]]
"""Asks in another thread, so that the event loop does not wait."""

log = structlog.get_logger("muniment.repository.callers")

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *")
_LARGEST_ANSWER = 8 * 1024 * 1024
_SECONDS = 10.0

FRESH_SECONDS = 1.0
"""How old the answer of a directory elsewhere may be when a right is used, in seconds (decision 0018)."""


class _Value(msgspec.Struct):
    name: str
    values: list[str | int | float | bool | None] = []


class _User(msgspec.Struct):
    id: str
    values: list[_Value] = []


class _Tokeninfo(msgspec.Struct):
    user: _User


_tokeninfo = msgspec.json.Decoder(_Tokeninfo)


class Attributes(NamedTuple):
    """The directory's names for the attributes of a caller that we read."""

    identity: str = "entryUUID"
    groups: str = "memberOf"
    group_identities: str = "memberOfUUID"


ATTRIBUTES = Attributes()


class StaleAnswer(Exception):
    """The last answer of a directory elsewhere is too old. Ask again before the right is used."""


class Callers:
    """Identifies callers by their bearer tokens.

    ``administrators`` are the users and groups (`name@partition`) who hold every permission. ``dn_suffix`` is the
    end of the directory's distinguished names. ``identify`` asks the directory who bears a name now.
    """

    def __init__(
        self,
        fetch: Fetch,
        administrators: Sequence[str],
        dn_suffix: str,
        attributes: Attributes = ATTRIBUTES,
        *,
        ask: Ask | None = None,
        identify: Identify = bearers.nobody,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.fetch = fetch
        self.ask = ask
        self._administrators = frozenset(fold_name(name) for name in administrators)
        self._suffix = dn_suffix
        self._attributes = attributes
        self._identify = identify
        self._close = close

    @classmethod
    def in_process(
        cls,
        ask: Ask,
        administrators: Sequence[str],
        dn_suffix: str,
        attributes: Attributes = ATTRIBUTES,
        off_loop: OffLoop | None = None,
        identify: Identify = bearers.nobody,
    ) -> "Callers":
        """Ask the directory in this process. Give ``off_loop`` if that takes too long for the event loop."""

        async def fetch(token: str, resource_id: str) -> bytes:
            return ask(token, resource_id) if off_loop is None else await off_loop(ask, token, resource_id)

        return cls(fetch, administrators, dn_suffix, attributes, ask=ask, identify=identify)

    @classmethod
    def over_http(
        cls,
        url: str,
        ca_file: str,
        administrators: Sequence[str],
        dn_suffix: str,
        attributes: Attributes = ATTRIBUTES,
    ) -> "Callers":
        """Ask the tokeninfo address of a directory elsewhere; an empty ``ca_file`` means the system's certificates."""
        trust = ssl.create_default_context(cafile=ca_file or None)
        client = httpx.AsyncClient(
            verify=trust,
            timeout=_SECONDS,
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
        )

        async def fetch(token: str, resource_id: str) -> bytes:
            return await _fetch_tokeninfo(client, url, token, resource_id)

        return cls(fetch, administrators, dn_suffix, attributes, close=client.aclose)

    async def identify(self, authorization: str | None, repository: Repository) -> "Bearer":
        """Read a request's Authorization header (RFC 6750 2.1), and refuse callers whom the directory does not know.

        Raises NotSignedIn, DirectoryUnavailable.
        """
        if not authorization:
            raise NotSignedIn("A bearer token is needed (Authorization: Bearer <token>).")
        match = _BEARER.fullmatch(authorization)
        if match is None:
            raise NotSignedIn("The Authorization header does not carry a bearer token.")
        bearer = Bearer(self, match[1], repository.resource_id)
        await bearer.ask()
        return bearer

    async def close(self) -> None:
        """Close the connections to the directory."""
        if self._close is not None:
            await self._close()

    def principals(self, document: bytes) -> Principals:
        """Read a tokeninfo document. Raises DirectoryUnavailable where it is none."""
        try:
            user = _tokeninfo.decode(document).user
        except msgspec.DecodeError as error:
            log.warning("tokeninfo unreadable", reason=str(error)[:200])
            raise DirectoryUnavailable("The directory's answer about the token cannot be read.") from error
        caller = fold_name(user.id)  # for comparison; the principals keep the directory's spelling
        values = {value.name: value.values for value in user.values}
        places = values.get(self._attributes.groups, [])
        of_groups = values.get(self._attributes.group_identities, [])
        # If the lists differ in length, no identity can be matched to its group: all are ignored.
        identified = zip(places, of_groups if len(of_groups) == len(places) else [""] * len(places), strict=True)
        groups = {
            group: identity
            for place, identity in identified
            if isinstance(place, str) and (group := _group(place, self._suffix)) is not None
        }
        own_identities = values.get(self._attributes.identity, [])
        borne = {**groups, caller: own_identities[0] if len(own_identities) == 1 else ""}
        return Principals(
            user.id,
            frozenset(groups),
            not self._administrators.isdisjoint(borne),
            {name: identity for name, identity in borne.items() if bearers.is_identity(identity)},
            identify=self._identify,
        )


class Bearer:
    """The sender of a token. The directory says who they are when a right is used, not when the token was sent.

    The last answer is valid during the same step of the event loop, because nobody else was served since. ``turn`` is
    the user's name for taking turns, as first answered; it grants no right.
    """

    def __init__(self, callers: Callers, token: str, resource_id: str) -> None:
        self._callers = callers
        self._token = token
        self._resource_id = resource_id
        self.turn = ""
        self._last_principals: Principals | None = None
        self._step: int | None = None
        self._answered_at = 0.0

    async def ask(self) -> None:
        """Ask the directory. Raises NotSignedIn, DirectoryUnavailable."""
        document = await self._callers.fetch(self._token, self._resource_id)
        self._last_principals = self._callers.principals(document)
        self.turn = fold_name(self._last_principals.id)
        self._answered_at = time.monotonic()
        self._step = threading.get_ident()
        asyncio.get_running_loop().call_soon(self._end_step)

    async def prepare(self) -> None:
        """Ask a directory elsewhere again, unless it has just answered. ``principals`` asks one in this process.

        Raises as ``ask`` does.
        """
        if self._callers.ask is None and self._step is None:
            await self.ask()

    def principals(self) -> Principals:
        """Return who they are now. Any thread may call it, at the moment when the right is used.

        Raises NotSignedIn, DirectoryUnavailable, and StaleAnswer if ``prepare`` was too long ago.
        """
        if self._last_principals is not None and self._step == threading.get_ident():
            return self._last_principals
        if self._callers.ask is not None:
            return self._callers.principals(self._callers.ask(self._token, self._resource_id))
        if self._last_principals is None or time.monotonic() - self._answered_at > FRESH_SECONDS:
            raise StaleAnswer
        return self._last_principals

    def _end_step(self) -> None:
        self._step = None


async def _fetch_tokeninfo(client: httpx.AsyncClient, url: str, token: str, resource_id: str) -> bytes:
    answer = bytearray()
    try:
        async with client.stream(
            "POST", url, json={"token": token, "resource_id": resource_id}, headers={"Accept": "application/json"}
        ) as response:
            status = response.status_code
            async for piece in response.aiter_bytes():
                answer += piece
                if len(answer) > _LARGEST_ANSWER:
                    raise DirectoryUnavailable("The directory's answer about the token is too large.")
    except (httpx.HTTPError, httpx.StreamError) as error:
        log.warning("directory unavailable", reason=f"{type(error).__name__}: {error}"[:200])
        raise DirectoryUnavailable("The directory that knows the callers cannot be reached.") from error
    if status == 200:
        return bytes(answer)
    raise refused(status)


def refused(status: int) -> Refusal:
    """Say what a refusal of tokeninfo means to a caller, by its status (given 7), wherever it came from."""
    if status == 410:
        return NotSignedIn("The token has expired or was revoked.")
    if status == 401:
        return NotSignedIn("The token does not give access to this repository.")
    log.warning("directory unavailable", status=status)
    return DirectoryUnavailable("The directory that knows the callers cannot say whose token this is.")


@lru_cache(maxsize=10_000)
def _group(location: str, suffix: str) -> str | None:
    """Return the folded id of the group at this location; None if no group can be there."""
    try:
        parts, ending = _folded_parts(location), _folded_parts(suffix)
    except MalformedName:
        return None
    cut = len(parts) - len(ending)
    if cut < 2 or parts[cut:] != ending:
        return None
    (group_kind, group), (partition_kind, partition) = parts[0], parts[cut - 1]
    if (group_kind, partition_kind) != ("cn", "ou"):
        return None
    return fold_name(f"{group}@{partition}")


def _folded_parts(location: str) -> list[tuple[str, str]]:
    return [(kind, fold_name(value)) for kind, value in read_dn(location)]
