"""What does a request show to prove who calls?

Source: given 4.2; RFC 6750 2 (bearer tokens), RFC 7617 (HTTP Basic). docs/interface.md, ours 10, lists all ways.
"""

import base64
import re
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from muniment.repository.options import RepositoryOptions
from muniment.web.requests.transport import caller_address

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""They change nothing (RFC 9110 9.2.1)."""

TOKEN_PARAMETER = "access_token"  # noqa: S105 - a parameter's name
"""A setting may allow a token in this parameter of the address (RFC 6750 2.3)."""

CSRF_PARAMETER = "csrf-token"

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_BASIC = 4096
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, repr=False)
class Pair:
    """The name and the password that HTTP Basic carries."""

    account: str
    password: str


@dataclass(frozen=True, repr=False)
class TicketNames:
    """The header, and what reads the cookie, that may carry a ticket."""

    header: str
    cookie: Callable[[Request], str]


@dataclass(frozen=True, repr=False)
class RequestCredentials:
    """Everything that one request shows.

    A browser sends ``cookie_ticket`` by itself, so unless the method is ``safe``, it needs its CSRF token (``csrf``). A
    browser also repeats the pair, so that permits no ``foreign`` write, which a page of another site sends. ``trouble``
    says why the Authorization header cannot be used.
    """

    token: str = ""
    address_token: str = ""
    ticket: str = ""
    pair: Pair | None = None
    cookie_ticket: str = ""
    csrf: str = ""
    safe: bool = True
    foreign: bool = False
    address: str = ""
    trouble: str = ""
    scope: MutableMapping[str, Any] = field(default_factory=dict)

    @property
    def outlives_guards(self) -> bool:
        """A ticket and a pair, unlike a token, stay valid when another resource becomes the guard."""
        return bool(self.ticket or self.cookie_ticket or self.pair)


def read(request: Request, options: RepositoryOptions, tickets: TicketNames | None) -> RequestCredentials:
    token, pair, trouble = _authorization(request.headers.get("authorization", ""), options.default_partition)
    parameters: Mapping[str, str] = request.scope.get("muniment.credentials", {})
    address_token = parameters.get(TOKEN_PARAMETER, "") if options.token_in_address else ""
    return RequestCredentials(
        token=token,
        address_token=address_token if _TOKEN.fullmatch(address_token) else "",
        ticket="" if tickets is None else request.headers.get(tickets.header, "").strip(),
        pair=pair,
        cookie_ticket="" if tickets is None else tickets.cookie(request),
        csrf=request.headers.get(f"{options.names.csrf_prefix}-Token", "") or parameters.get(CSRF_PARAMETER, ""),
        safe=request.method in SAFE_METHODS,
        foreign=_is_foreign(request, options.cors_origins),
        address=caller_address(request),
        trouble=trouble,
        scope=request.scope,
    )


def parameters(options: RepositoryOptions) -> tuple[str, ...]:
    return (CSRF_PARAMETER, TOKEN_PARAMETER) if options.token_in_address else (CSRF_PARAMETER,)


def _is_foreign(request: Request, origins: Collection[str]) -> bool:
    """Return whether a browser says that a page of a site not in ``origins`` sends this.

    Programs that are no browsers send neither header. Source: the Fetch standard, section 3.2; Fetch Metadata, 2.3.
    """
    sent_origins, sites = request.headers.getlist("origin"), request.headers.getlist("sec-fetch-site")
    if sent_origins and all(origin in origins for origin in sent_origins):
        return False
    if sites:
        return not all(site in ("same-origin", "none") for site in sites)
    own = _origin(request.scope.get("muniment.base") or str(request.base_url))
    return any(_origin(origin) != own for origin in sent_origins)


def _origin(address: str) -> tuple[str, str, int | None] | None:
    try:
        url = urlsplit(address)
        return url.scheme, url.hostname or "", url.port or _PORTS.get(url.scheme)
    except ValueError:
        return None


def _authorization(header: str, default_partition: str) -> tuple[str, Pair | None, str]:
    """Return the token, the pair, and why it can be read as neither."""
    scheme, _, value = header.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        if not value or _TOKEN.fullmatch(value):
            return value, None, ""
        return "", None, "The Authorization header does not carry a bearer token."
    if scheme.lower() == "basic":
        pair = _pair(value, default_partition)
        return "", pair, "" if pair else "The Authorization header cannot be read as HTTP Basic (RFC 7617)."
    return "", None, "The Authorization header carries nothing that is known here." if header else ""


def _pair(encoded: str, default_partition: str) -> Pair | None:
    if len(encoded) > _LONGEST_BASIC:
        return None
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except ValueError:
        return None
    if not colon or not name or not password or _CONTROL.search(name + password):
        return None
    return Pair(account_of(name, default_partition), password)


def csrf_headers(token: str, options: RepositoryOptions) -> dict[str, str]:
    prefix = options.names.csrf_prefix
    if not token:
        return {}
    return {
        f"{prefix}-Header-Name": f"{prefix}-Token",
        f"{prefix}-Query-Name": CSRF_PARAMETER,
        f"{prefix}-Token": token,
    }


def account_of(name: str, default_partition: str) -> str:
    return name if "@" in name or not default_partition else f"{name}@{default_partition}"
