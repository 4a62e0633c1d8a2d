"""What the three token servers have in common: where they issue, refresh and introspect, and tokens to begin with."""

import base64
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

import httpx

from bench.load import Request
from bench.processes import Program

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class TokenServer:
    """A running token server. ``programs`` are its processes and those of its database.

    ``scope`` is what a client asks for by itself, where it must ask.
    """

    name: str
    about: str
    programs: list[Program]
    token_url: str
    introspection_url: str
    authorization: str
    sign_in: dict[str, str]
    seed: str = ""
    scope: str = ""
    authorization_url: str = ""

    ACTIVE: ClassVar = ('"active":true', '"active": true')
    """One of these is in the answer to an introspection."""

    def access_token(self) -> str:
        """Get one access token."""
        return str(self._signed_in()["access_token"])

    def refresh_tokens(self, count: int) -> list[str]:
        """Get so many refresh tokens, each of a grant of its own."""
        if self.seed:
            made: list[str] = httpx.get(f"{self.seed}{count}", timeout=60).raise_for_status().json()
            return made
        return [str(self._signed_in()["refresh_token"]) for _ in range(count)]

    def introspection(self) -> Request:
        """Prepare to introspect a fresh access token. Raises RuntimeError when the server does not know it."""
        token = self.access_token()
        body = f"token={quote(token)}&token_type_hint=access_token"
        headers = {"Authorization": self.authorization, "Content-Type": FORM}
        if not httpx.post(self.introspection_url, content=body, headers=headers, timeout=60).json().get("active"):
            raise RuntimeError(f"{self.name} does not know its own token")
        return Request("POST", self.introspection_url, body, tuple(headers.items()))

    def client_credentials(self) -> Request:
        """Prepare to get an access token for the client itself."""
        body = "grant_type=client_credentials" + (f"&scope={self.scope}" if self.scope else "")
        return Request("POST", self.token_url, body, (("Authorization", self.authorization), ("Content-Type", FORM)))

    def _signed_in(self) -> dict[str, object]:
        headers = {"Authorization": self.authorization}
        answer = httpx.post(self.token_url, data=self.sign_in, headers=headers, timeout=60)
        if answer.status_code != 200:
            raise RuntimeError(f"{self.name} answers {answer.status_code}: {answer.text[:300]}")
        found: dict[str, object] = answer.json()
        return found


def basic(name: str, secret: str) -> str:
    """Write an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()
