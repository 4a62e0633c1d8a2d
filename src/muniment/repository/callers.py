"""Whose token is this, and in which groups is he? The directory is asked each time, in this process or by HTTP.

Both ways read the same tokeninfo document, so a caller's principals do not depend on the way. Nothing about a caller is
kept between two requests: a revocation that was answered is obeyed by the next one. Source: given 2.5-2.7, 4.2, 4.3,
section 7.
"""

import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import httpx
import msgspec
import structlog

from muniment.repository.acls import Principals, accessor_key
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.repositories import Repository

Verify = Callable[[str, str], Awaitable[bytes]]
"""Asks for the tokeninfo document (JSON) of a token and a resource identifier; raises NotSignedIn."""

log = structlog.get_logger("muniment.repository.callers")

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *")
_LARGEST_ANSWER = 8 * 1024 * 1024
_SECONDS = 10.0


class _Value(msgspec.Struct):
    name: str
    values: list[str | int | float | bool | None] = []


class _User(msgspec.Struct):
    id: str
    values: list[_Value] = []


class _Tokeninfo(msgspec.Struct):
    user: _User


class _Component(NamedTuple):
    kind: str
    value: str

    @property
    def compared(self) -> tuple[str, str]:
        return self.kind, self.value.casefold()


_tokeninfo = msgspec.json.Decoder(_Tokeninfo)


class Callers:
    """Knows callers by their bearer tokens.

    ``administrators`` are the users and groups (`name@partition`) who hold every permission. ``dn_suffix`` is what the
    directory's distinguished names end with, ``member_of`` what it calls the attribute that lists a user's groups.
    """

    def __init__(
        self,
        verify: Verify,
        administrators: Sequence[str],
        dn_suffix: str,
        member_of: str = "memberOf",
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._verify = verify
        self._administrators = frozenset(accessor_key(name) for name in administrators)
        self._suffix = dn_suffix
        self._member_of = member_of
        self._close = close

    @classmethod
    def in_process(
        cls, verify: Verify, administrators: Sequence[str], dn_suffix: str, member_of: str = "memberOf"
    ) -> "Callers":
        """Ask the directory in this process."""
        return cls(verify, administrators, dn_suffix, member_of)

    @classmethod
    def over_http(
        cls, url: str, ca_file: str, administrators: Sequence[str], dn_suffix: str, member_of: str = "memberOf"
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

        async def verify(token: str, resource_id: str) -> bytes:
            return await _asked(client, url, token, resource_id)

        return cls(verify, administrators, dn_suffix, member_of, client.aclose)

    async def identify(self, authorization: str | None, repository: Repository) -> Principals:
        """Name the caller behind a request's Authorization header (RFC 6750 2.1) and his groups.

        Raises NotSignedIn, DirectoryUnavailable.
        """
        if not authorization:
            raise NotSignedIn("A bearer token is needed (Authorization: Bearer <token>).")
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise NotSignedIn("The Authorization header does not carry a bearer token.")
        document = await self._verify(bearer[1], repository.resource_id)
        try:
            user = _tokeninfo.decode(document).user
        except msgspec.DecodeError as error:
            log.warning("tokeninfo unreadable", reason=str(error)[:200])
            raise DirectoryUnavailable("The directory's answer about the token cannot be read.") from error
        return self._principals(user)

    async def close(self) -> None:
        """Let go of the connections to the directory."""
        if self._close is not None:
            await self._close()

    def _principals(self, user: _User) -> Principals:
        caller = accessor_key(user.id)  # compared; the principals keep the directory's own spelling
        names = (text for value in user.values if value.name == self._member_of for text in value.values)
        read = (_group(name, self._suffix) for name in names if isinstance(name, str))
        groups = frozenset(group for group in read if group is not None)
        return Principals(user.id, groups, bool(self._administrators & (groups | {caller})))


async def _asked(client: httpx.AsyncClient, url: str, token: str, resource_id: str) -> bytes:
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
    if status == 410:
        raise NotSignedIn("The token has expired or was revoked.")
    if status == 401:
        raise NotSignedIn("The token does not give access to this repository.")
    log.warning("directory unavailable", status=status)
    raise DirectoryUnavailable("The directory that knows the callers cannot say whose token this is.")


@lru_cache(maxsize=10_000)
def _group(location: str, suffix: str) -> str | None:
    """Read the key of the group at this place of the tree; what it is called is said by its name alone."""
    components, last = list(_components(location)), [part.compared for part in _components(suffix)]
    cut = len(components) - len(last)
    if cut < 2 or [part.compared for part in components[cut:]] != last:
        return None
    group, partition = components[0], components[cut - 1]
    if (group.kind, partition.kind) != ("cn", "ou"):
        return None
    return accessor_key(f"{group.value}@{partition.value}")


def _components(name: str) -> Iterator[_Component]:
    """Read a distinguished name (RFC 4514), its nearest component first."""
    for written in _split(name):
        kind, _, value = written.partition("=")
        value = _unescaped(value.strip(" ") if not value.endswith("\\ ") else value.lstrip(" "))
        yield _Component(kind.strip().lower(), value)


def _split(name: str) -> Iterator[str]:
    start = position = 0
    while position < len(name):
        if name[position] == "\\":
            position += 2
            continue
        if name[position] == ",":
            yield name[start:position]
            start = position + 1
        position += 1
    if start < len(name):
        yield name[start:]


def _unescaped(value: str) -> str:
    read = bytearray()
    position = 0
    while position < len(value):
        character = value[position]
        position += 1
        if character == "\\" and position < len(value):
            pair = value[position : position + 2]
            if re.fullmatch(r"[0-9A-Fa-f]{2}", pair):
                read += bytes.fromhex(pair)
                position += 2
                continue
            character = value[position]
            position += 1
        read += character.encode("utf-8", "surrogatepass")
    return read.decode("utf-8", "replace")
