"""How is a directory elsewhere asked?

Source: given 4.1, 4.3, 4.4, section 7.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
import structlog

from muniment.ground import renewal
from muniment.ground.refusals import Overloaded
from muniment.repository.api.callers.pairs import AccessToken, PairSignIn
from muniment.repository.api.callers.tokeninfo import refusal_of
from muniment.repository.options import TOKENINFO_ADDRESS
from muniment.repository.refusals import DirectoryUnavailable, NotOfferedYet, NotSignedIn

log = structlog.get_logger("muniment.repository.callers")

_LARGEST_ANSWER = 8 * 1024 * 1024
_LARGEST_FILE = 64 * 1024
_SECONDS, _LONGEST_SECONDS = 10.0, 30.0
"""For each step of a request, and for the whole of it."""

_LONGEST_RETRY = 30


class _TokenAnswer(msgspec.Struct):
    access_token: str
    expires_in: float = 0


class _Failure(msgspec.Struct):
    error: str = ""


_token_answer = msgspec.json.Decoder(_TokenAnswer)


class _ToResource(msgspec.Struct):
    answer: msgspec.Raw


_failure = msgspec.json.Decoder(_Failure)
_to_resource = msgspec.json.Decoder(_ToResource)


@dataclass
class _SharedClient:
    """``requests`` counts those under way."""

    http: httpx.AsyncClient
    requests: int = 0


class DirectoryElsewhere:
    """All addresses are derived from that of tokeninfo. An empty ``ca_file`` means the system's certificates.

    ``secrets_file`` has the secrets of the resources that guard repositories.
    """

    def __init__(
        self, tokeninfo_url: str, ca_file: str, client_id: str = "", client_secret: str = "", secrets_file: str = ""
    ) -> None:
        self._secrets_file = secrets_file
        self._tokeninfo_url = tokeninfo_url
        match = TOKENINFO_ADDRESS.fullmatch(tokeninfo_url)
        self._base = match[1] if match else ""
        self._client = {"client_id": client_id, **({"client_secret": client_secret} if client_secret else {})}
        self._trust = renewal.renewable_trust(ca_file)
        self._clients: dict[ssl.SSLContext, _SharedClient] = {}

    async def tokeninfo(self, token: str, resource_id: str) -> bytes:
        """Raises NotSignedIn, DirectoryUnavailable."""
        question = msgspec.json.encode({"token": token, "resource_id": resource_id})
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        answer = await self._send("POST", self._tokeninfo_url, question, headers)
        if answer.status_code == 200:
            return answer.content
        raise refusal_of(answer.status_code)

    async def sign_in(self, attempt: PairSignIn) -> AccessToken:
        """Name the caller's address, for a directory that trusts this server to do so.

        Raises NotSignedIn, DirectoryUnavailable, Overloaded.
        """
        form = {
            "grant_type": "password",
            **self._client,
            "username": attempt.pair.account,
            "password": attempt.pair.password,
            "scope": f"resource:{attempt.resource_id}",
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if attempt.address:
            headers["X-Forwarded-For"] = attempt.address
        answer = await self._send("POST", f"{self._base}/login", str(httpx.QueryParams(form)).encode(), headers)
        if answer.status_code == 200:
            try:
                issued = _token_answer.decode(answer.content)
            except (ValueError, RecursionError) as error:
                raise DirectoryUnavailable("The directory's answer to a sign-in cannot be read.") from error
            return AccessToken(issued.access_token, issued.expires_in)
        error_code = _error_of(answer.content)
        if (answer.status_code, error_code) == (400, "invalid_grant"):
            raise NotSignedIn("The user name or the password is wrong, or the user may not use this repository.")
        if answer.status_code == 503:
            raise Overloaded("Too many sign-ins are under way.", _retry_seconds(answer))
        log.error(
            "the directory refuses to sign callers in",
            client=self._client["client_id"],
            status=answer.status_code,
            error=error_code,
            to_do="check that the directory has this client, its secret in the settings, and the repository's resource",
        )
        raise DirectoryUnavailable("The directory that knows the callers does not sign them in for this repository.")

    async def people(self, resource_id: str, question: bytes) -> bytes:
        """Ask about the users and groups whom a resource lets in, by its secret; both texts are JSON.

        Raises NotOfferedYet if no secret is known, DirectoryUnavailable, Overloaded.
        """
        secret = _secret_of(self._secrets_file, resource_id)
        body = msgspec.json.encode({"secure_secret": secret, "question": msgspec.Raw(question)})
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        answer = await self._send("POST", f"{self._base}/v1/resources/{resource_id}/people", body, headers)
        if answer.status_code == 200:
            try:
                return bytes(_to_resource.decode(answer.content).answer)
            except (ValueError, RecursionError) as error:
                raise DirectoryUnavailable("The directory's answer about users and groups cannot be read.") from error
        if answer.status_code == 503:
            raise Overloaded("The directory answers too many questions now.", _retry_seconds(answer))
        log.error(
            "the directory does not tell whom a resource lets in",
            resource=resource_id,
            status=answer.status_code,
            error=_error_of(answer.content),
            to_do="check the secret of this resource in repository.resource_secrets_file, and that the directory is a "
            "Muniment of the same release",
        )
        raise DirectoryUnavailable("The directory does not tell this repository whom it lets in.")

    async def end(self, token: str) -> None:
        """Raises DirectoryUnavailable if the directory cannot be reached."""
        await self._send("DELETE", f"{self._base}/v1/authentication/oauth/{token}", b"", {})

    async def close(self) -> None:
        for client in [*self._clients.values()]:
            await client.http.aclose()

    async def _send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        content = bytearray()
        try:
            async with (
                asyncio.timeout(_LONGEST_SECONDS),
                self._http() as http,
                http.stream(method, url, content=body or None, headers=dict(headers)) as response,
            ):
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _LARGEST_ANSWER:
                        raise DirectoryUnavailable("The directory's answer is too large.")
        except (httpx.HTTPError, httpx.StreamError, TimeoutError) as error:
            log.warning("directory unavailable", reason=f"{type(error).__name__}: {error}"[:200])
            raise DirectoryUnavailable("The directory that knows the callers cannot be reached.") from error
        return httpx.Response(response.status_code, headers=_retry_after(response), content=bytes(content))

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[httpx.AsyncClient]:
        """That of the newest trust. One of a former trust is closed when the last request by it has ended."""
        trust = self._trust.newest()
        if trust not in self._clients:
            self._clients[trust] = _SharedClient(_open(trust))
        client = self._clients[trust]
        client.requests += 1
        try:
            yield client.http
        finally:
            client.requests -= 1
            newest = self._trust.newest()
            for each, idle in [*self._clients.items()]:
                if each is not newest and not idle.requests and each in self._clients:
                    del self._clients[each]
                    await idle.http.aclose()


def _open(trust: ssl.SSLContext) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=trust,
        timeout=_SECONDS,
        follow_redirects=False,
        trust_env=False,
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
    )


def _secret_of(file: str, resource_id: str) -> str:
    """Read the file at each question, so a new secret counts at once. Raises NotOfferedYet, DirectoryUnavailable."""
    try:
        with Path(file).open(encoding="utf-8") as lines:
            text = lines.read(_LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        log.error("secrets of resources unreadable", file=file, reason=type(error).__name__)  # noqa: TRY400 - no bug
        raise DirectoryUnavailable("The file with the secrets of the resources cannot be read.") from error
    for line in text.splitlines():
        match line.strip().split(maxsplit=1):
            case [known_id, secret] if known_id.lower() == resource_id.lower():
                return secret
    raise NotOfferedYet(
        "The users and groups of a directory that runs elsewhere are offered once 'repository.resource_secrets_file' "
        "has the secret of this repository's resource."
    )


def _retry_seconds(answer: httpx.Response) -> int:
    header = answer.headers.get("Retry-After", "")
    retry = int(header) if header.isascii() and header.isdecimal() and len(header) < 10 else 1
    return min(max(retry, 1), _LONGEST_RETRY)


def _retry_after(response: httpx.Response) -> dict[str, str]:
    return {"Retry-After": response.headers["Retry-After"]} if "Retry-After" in response.headers else {}


def _error_of(content: bytes) -> str:
    """Return an empty text for no OAuth error (RFC 6749 5.2)."""
    try:
        return _failure.decode(content).error[:100]
    except (ValueError, RecursionError):
        return ""
