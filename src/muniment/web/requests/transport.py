"""Handle what every request needs before its address is looked up: request id, access log, proxies, TLS, deadline."""

import hashlib
import ipaddress
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.database.connections import Busy
from muniment.ground.refusals import InsecureTransport, Malformed, Refusal, TimedOut
from muniment.web.answers.responses import BUG, SHARED, Shape, refuse, trouble
from muniment.web.answers.unsent import UNSENT, Unsent
from muniment.web.options import TrustedProxies, WebOptions, base_address
from muniment.web.requests import pace
from muniment.web.requests.access_log import AccessLine, AccessLog

log = structlog.get_logger("muniment.web")

# A UUID fits. A token is longer, so no token gets into the log as a request id.
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,40}")
_TOKEN_ADDRESS = re.compile(r"(/authentication/oauth/+)(?!tokeninfo/?$)(.+)", re.IGNORECASE | re.DOTALL)
_TOKEN_LIKE = re.compile(r"[A-Za-z0-9_-]{40,}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
STARTED = "muniment.started"
"""``FastFront`` sets it on a request that it passes on because its decision failed."""

_LONGEST_HOST = 300
"""No address of this server is longer."""

_Origin = tuple[str, str, int | None]
_Pairs = tuple[tuple[bytes, bytes], ...]

_EVERY_ANSWER: _Pairs = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"same-origin"))
_TRANSPORT_SECURITY: _Pairs = ((b"strict-transport-security", b"max-age=31536000"),)
_NEVER_STORED: _Pairs = ((b"cache-control", b"no-store"),)
_POLICY = b"content-security-policy"
_PAGE_POLICY: _Pairs = (
    (
        _POLICY,
        (
            b"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
            b"base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-frame-options", b"DENY"),
)
_DATA_POLICY: _Pairs = ((_POLICY, b"default-src 'none'; frame-ancestors 'none'"),)


class Transport:
    """An answer below one of ``sensitive_prefixes`` (``/dirws``) may not be stored, unless the endpoint says otherwise.

    While ``requires_tls`` returns true, plain HTTP is refused there, and with credentials: an Authorization or Cookie
    header, one of ``credential_headers``, or an access_token in the query (given 5.4). The scope gets
    ``muniment.request_id``, and ``muniment.base``, with which links begin (no slash at its end).
    ``credential_parameters`` move from the query to ``muniment.credentials``, so that no answer repeats them.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: WebOptions,
        *,
        sensitive_prefixes: Sequence[str],
        requires_tls: Callable[[], Awaitable[bool]],
        shape: Shape,
        credential_headers: Iterable[str] = (),
        credential_parameters: Iterable[str] = (),
        access_log: AccessLog | None = None,
    ) -> None:
        self._app = app
        self._sensitive_paths = {prefix.rstrip("/") for prefix in sensitive_prefixes}
        self._sensitive_beginnings = tuple(f"{path}/" for path in self._sensitive_paths)
        self._requires_tls = requires_tls
        self._shape = shape
        self._credential_headers = {b"authorization", b"cookie"}.union(
            name.lower().encode("latin-1") for name in credential_headers
        )
        self._credential_parameters = frozenset(credential_parameters)
        self.access_log = access_log or AccessLog()
        self._options = options
        self._proxies = TrustedProxies(options)
        self._unsent = Unsent(options.max_unsent_bytes)
        self._base = base_address(options)
        self._bases = {_origin(address): address.rstrip("/") for address in options.other_addresses}
        self._way = lru_cache(maxsize=256)(self._find_way)

    def way(self, scope: Scope, host: bytes) -> "_Way":
        return self._way(scope["scheme"], host[:_LONGEST_HOST], self._has_sensitive_path(scope["path"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = scope.get(STARTED) or time.perf_counter()
        # Of repeated headers, the first counts.
        headers = dict(reversed(scope["headers"]))
        self.apply_proxy_headers(scope)
        scheme = scope["scheme"]
        way = self.way(scope, headers.get(b"host", b""))
        scope["muniment.base"] = way.base
        scope["muniment.request_id"] = request_id = new_request_id()
        scope[UNSENT] = self._unsent
        body = pace.ArrivingBody(scope, receive, self._options)
        answer = _Answer(scope, send, request_id, way)
        caller_request_id = _caller_request_id(headers)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        if caller_request_id is not None:
            structlog.contextvars.bind_contextvars(caller_request_id=caller_request_id)
        try:
            await self._pass_on(scope, headers, body, answer)
        finally:
            client = scope["client"][0] if scope.get("client") else None
            self.access_log.note(
                AccessLine(
                    request_id,
                    caller_request_id,
                    scope["method"],
                    logged_path(scope["path"]),
                    answer.status,
                    answer.size,
                    start,
                    time.perf_counter(),
                    scheme,
                    client,
                )
            )

    async def _pass_on(self, scope: Scope, headers: dict[bytes, bytes], body: Receive, answer: "_Answer") -> None:
        try:
            if len(headers) != len(scope["headers"]):
                _refuse_repeated(scope["headers"])
            if scope["scheme"] != "https" and self._is_sensitive(scope, headers) and await self._requires_tls():
                raise InsecureTransport("TLS is required here: use the https address.")
            if self._credential_parameters and scope["query_string"]:
                self._take_credentials(scope)
            await self._app(scope, body, answer)
        except Refusal as refusal:
            if answer.status is not None:
                # No status can be sent any more. A right that ends during a download is no bug, so this is no error.
                path = logged_path(scope["path"])
                log.warning("cut short", refusal=type(refusal).__name__, reason=refusal.sentence, path=path)
                raise CutShort("The answer could not be finished.") from refusal
            response = refuse(Request(scope, body), refusal, SHARED, self._shape)
        except Busy as busy:
            response = refuse(Request(scope, body), trouble(busy), SHARED, self._shape)
        except Exception:
            log.exception("bug", method=scope["method"], path=logged_path(scope["path"]))
            sentence = "Something went wrong in the server; the log has the details."
            response = self._shape(Request(scope, body), BUG, sentence)
        else:
            return
        if answer.status is not None:
            # A part of the answer was sent. This error makes the server close the connection, so that the caller does
            # not mistake the part for the whole.
            raise CutShort("The answer could not be finished.")
        await response(scope, body, answer)

    def _is_sensitive(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        if self._has_sensitive_path(scope["path"]) or not self._credential_headers.isdisjoint(headers):
            return True
        names = (pair.partition(b"=")[0] for pair in scope["query_string"].split(b"&"))
        return any(unquote_to_bytes(name) == b"access_token" for name in names)

    def _take_credentials(self, scope: Scope) -> None:
        pairs_left, credentials = [], dict[str, str]()
        for pair in scope["query_string"].split(b"&"):
            name, _, value = (
                unquote_to_bytes(part.replace(b"+", b" ")).decode("latin-1") for part in pair.partition(b"=")
            )
            if name not in self._credential_parameters:
                pairs_left.append(pair)
            elif name in credentials:
                raise Malformed(f"The query has the parameter {name!r} more than once.")
            else:
                credentials[name] = value
        scope["query_string"], scope["muniment.credentials"] = b"&".join(pairs_left), credentials

    def _has_sensitive_path(self, path: str) -> bool:
        return path.startswith(self._sensitive_beginnings) or path in self._sensitive_paths

    def _find_way(self, scheme: str, host: bytes, is_sensitive: bool) -> "_Way":
        origin = _origin(f"{scheme}://{host.decode('latin-1')}")
        # On localhost this header would force TLS on every other local program that a developer's browser talks to.
        transport_security = _TRANSPORT_SECURITY if scheme == "https" and origin[1] != "localhost" else ()
        headers = _EVERY_ANSWER + transport_security + (_NEVER_STORED if is_sensitive else ())
        return _Way(self._bases.get(origin, self._base), headers + _PAGE_POLICY, headers + _DATA_POLICY)

    def apply_proxy_headers(self, scope: Scope) -> None:
        client = scope.get("client")
        if client is None or not self._proxies.has(client[0]):
            return
        schemes = _list_values(scope["headers"], b"x-forwarded-proto")
        if schemes[-1].lower() in _DEFAULT_PORTS:
            scope["scheme"] = schemes[-1].lower()
        for hop in reversed(_list_values(scope["headers"], b"x-forwarded-for")):
            address = _address(hop)
            if address is None:
                return
            scope["client"] = (address, 0)
            if not self._proxies.has(address):
                return


class CutShort(Exception):
    """An answer cannot be finished: the server must close the connection."""


def caller_address(request: Request) -> str:
    """A trusted proxy may have named it."""
    return request.client.host if request.client else ""


def logged_path(path: str) -> str:
    """The beginning of a SHA-256 digest stands for each part that may be a token."""
    path = _TOKEN_ADDRESS.sub(lambda match: match[1] + _fingerprint(match[2]), path)
    path = _TOKEN_LIKE.sub(lambda match: _fingerprint(match[0]), path)
    return path if path.isprintable() else ascii(path)[1:-1]


class _Way:
    """Adds headers that an answer lacks: ``page`` to a page, ``data`` to others."""

    def __init__(self, base: str, page: _Pairs, data: _Pairs) -> None:
        self.base = base
        self.page = page
        self.data = data
        self._complete_headers: dict[_Pairs, _Pairs] = {}
        self._lines: dict[_Pairs, bytes] = {}

    def complete(self, headers: _Pairs) -> _Pairs:
        if headers not in self._complete_headers:
            names = {name for name, _ in headers}
            self._complete_headers[headers] = headers + tuple(pair for pair in self.data if pair[0] not in names)
        return self._complete_headers[headers]

    def header_lines(self, headers: _Pairs) -> bytes:
        """Complete the headers, and write them as lines (RFC 9112 section 5)."""
        if headers not in self._lines:
            self._lines[headers] = b"".join(b"%b: %b\r\n" % pair for pair in self.complete(headers))
        return self._lines[headers]


class _Answer:
    """Puts the status into the scope (``muniment.status``) once the answer begins."""

    __slots__ = ("_request_id", "_scope", "_send", "_way", "size", "status")

    def __init__(self, scope: Scope, send: Send, request_id: str, way: _Way) -> None:
        self._scope = scope
        self._send = send
        self._request_id = request_id
        self._way = way
        self.status: int | None = None
        self.size = 0

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.body":
            self.size += len(message.get("body", b""))
        elif kind == "http.response.start":
            self.status = self._scope["muniment.status"] = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self._request_id.encode())]
            own_headers = dict(headers)
            is_page = own_headers.get(b"content-type", b"").startswith(b"text/html")
            defaults = self._way.page if is_page else self._way.data
            headers += [pair for pair in defaults if pair[0] not in own_headers]
            if self.status == SHARED[TimedOut].status:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        await self._send(message)


def new_request_id() -> str:
    """A random UUID (RFC 9562 5.4), no secret, in a fifth of the time of ``uuid``."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _caller_request_id(headers: Mapping[bytes, bytes]) -> str | None:
    value = headers.get(b"x-request-id")
    return value.decode() if value is not None and _REQUEST_ID.fullmatch(value) else None


def _refuse_repeated(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise Malformed for a repeated Host or Authorization: a proxy could use one and this server the other.

    Source: RFC 9112 section 3.2; RFC 9110 section 5.3 (Authorization is no list).
    """
    counts = Counter(name for name, _ in headers)
    for name in (b"authorization", b"host"):
        if counts[name] > 1:
            raise Malformed(f"The request has {counts[name]} {name.decode().title()} headers; one is allowed.")


def _list_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    values = b",".join(value for header, value in headers if header == name)
    return [word.strip() for word in values.decode("latin-1").split(",")]


def _fingerprint(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


@lru_cache(maxsize=256)
def _origin(address: str) -> _Origin:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None


def _address(hop: str) -> str | None:
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
