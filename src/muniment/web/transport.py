"""Everything that happens before routing: request ids, the access log, proxies, TLS, base addresses, deadlines."""

import hashlib
import ipaddress
import re
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from urllib.parse import unquote_to_bytes, urlsplit

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.db import Busy
from muniment.web import pace
from muniment.web.options import WebOptions
from muniment.web.refusals import InsecureTransport, Malformed, Refusal, TimedOut
from muniment.web.responses import BUG, SHARED, Shape, refuse, trouble

log = structlog.get_logger("muniment.web")

# A UUID fits; a token is longer, and so never gets into the log this way.
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,40}")
_TOKEN_ADDRESS = re.compile(r"(/authentication/oauth/+)(?!tokeninfo/?$)(.+)", re.IGNORECASE | re.DOTALL)
_TOKEN_LIKE = re.compile(r"[A-Za-z0-9_-]{40,}")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_Origin = tuple[str, str, int | None]
_Pairs = tuple[tuple[bytes, bytes], ...]

_EVERY: _Pairs = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"same-origin"))
_SECURED: _Pairs = ((b"strict-transport-security", b"max-age=31536000"),)
_GUARDED: _Pairs = ((b"cache-control", b"no-store"),)
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
    """ASGI middleware around the whole app.

    ``guarded`` are path prefixes (``/dirws``) whose answers are not to be stored unless they say otherwise. While
    ``enforced`` returns true, plain HTTP does not reach them. It reaches no other address either if the request has
    credentials: an Authorization or Cookie header, or an access_token in the query (given 5.4). ``shape`` writes a
    refusal as the address's half would.

    It adds to the scope ``muniment.request_id`` and ``muniment.base``, the address with which every link of the answer
    begins (no slash at its end). Behind a trusted proxy, ``scheme`` and ``client`` become those of the caller.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: WebOptions,
        *,
        guarded: Sequence[str],
        enforced: Callable[[], Awaitable[bool]],
        shape: Shape,
    ) -> None:
        self._app = app
        self._guarded = tuple(prefix.rstrip("/") for prefix in guarded)
        self._enforced = enforced
        self._shape = shape
        self._options = options
        self._proxies = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in options.trusted_proxies)
        self._base = base_address(options)
        self._bases = {_origin(address): address.rstrip("/") for address in options.other_addresses}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        # The first of repeated headers counts.
        headers = dict(reversed(scope["headers"]))
        if self._proxies:
            self._believe_proxies(scope)
        scheme = scope["scheme"]
        origin = _origin(f"{scheme}://{headers.get(b'host', b'').decode('latin-1')}")
        scope["muniment.base"] = self._bases.get(origin, self._base) if self._bases else self._base
        scope["muniment.request_id"] = request_id = str(uuid.uuid4())
        body = pace.arriving_body(scope, receive, self._options)
        answer = _Answer(send, request_id, self._defaults(scope, origin))
        structlog.contextvars.bind_contextvars(request_id=request_id, **_caller_request_id(headers))
        try:
            await self._pass_on(scope, headers, body, answer)
        finally:
            log.info(
                "request",
                method=scope["method"],
                path=logged_path(scope["path"]),
                status=answer.status,
                bytes=answer.size,
                ms=round((time.perf_counter() - began) * 1000, 1),
                scheme=scheme,
                client=scope["client"][0] if scope.get("client") else None,
            )

    async def _pass_on(self, scope: Scope, headers: dict[bytes, bytes], body: Receive, answer: "_Answer") -> None:
        try:
            if len(headers) != len(scope["headers"]):
                _refuse_repeated(scope["headers"])
            if scope["scheme"] != "https" and self._must_be_safe(scope, headers) and await self._enforced():
                raise InsecureTransport("TLS is required here: use the https address.")
            await self._app(scope, body, answer)
        except Refusal as refusal:
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
            # The answer is under way: an error raised here makes the server cut it short, so that nobody takes a part
            # for the whole.
            raise CutShort("The answer could not be finished.")
        await response(scope, body, answer)

    def _must_be_safe(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        if self._is_guarded(scope["path"]) or b"authorization" in headers or b"cookie" in headers:
            return True
        names = (pair.partition(b"=")[0] for pair in scope["query_string"].split(b"&"))
        return any(unquote_to_bytes(name) == b"access_token" for name in names)

    def _is_guarded(self, path: str) -> bool:
        return any(path == prefix or path.startswith(prefix + "/") for prefix in self._guarded)

    def _defaults(self, scope: Scope, origin: _Origin) -> _Pairs:
        # On localhost this header would bind every other local program that a developer's browser talks to.
        secured = _SECURED if scope["scheme"] == "https" and origin[1] != "localhost" else ()
        return _EVERY + secured + (_GUARDED if self._is_guarded(scope["path"]) else ())

    def _believe_proxies(self, scope: Scope) -> None:
        client = scope.get("client")
        if client is None or not self._is_proxy(client[0]):
            return
        schemes = _list_values(scope["headers"], b"x-forwarded-proto")
        if schemes[-1].lower() in _DEFAULT_PORTS:
            scope["scheme"] = schemes[-1].lower()
        for hop in reversed(_list_values(scope["headers"], b"x-forwarded-for")):
            address = _address(hop)
            if address is None:
                return
            scope["client"] = (address, 0)
            if not self._is_proxy(address):
                return

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)


class CutShort(Exception):
    """An answer under way cannot be finished; the connection is to be closed."""


def base_address(options: WebOptions) -> str:
    """Return the address with which links begin, unless a request came to another address; no slash at the end."""
    if options.base_address:
        return options.base_address.rstrip("/")
    host = "localhost" if options.host in ("", "0.0.0.0", "::") else options.host  # noqa: S104 - compared, not bound
    host = f"[{host}]" if ":" in host else host
    return f"https://{host}" if options.port == _DEFAULT_PORTS["https"] else f"https://{host}:{options.port}"


def caller_address(request: Request) -> str:
    """Return the caller's network address. Only trusted proxies can change it; empty if there is no network."""
    return request.client.host if request.client else ""


def logged_path(path: str) -> str:
    """Write a path for the log: a part that may be a token is replaced by the beginning of its SHA-256."""
    path = _TOKEN_ADDRESS.sub(lambda found: found[1] + _fingerprint(found[2]), path)
    path = _TOKEN_LIKE.sub(lambda found: _fingerprint(found[0]), path)
    return path if path.isprintable() else ascii(path)[1:-1]


class _Answer:
    """Sends the answer: adds the headers that every answer has, and notes status and size for the access log."""

    def __init__(self, send: Send, request_id: str, defaults: _Pairs) -> None:
        self._send = send
        self._request_id = request_id
        self._defaults = defaults
        self.status: int | None = None
        self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self._request_id.encode())]
            brought = dict(headers)
            is_page = brought.get(b"content-type", b"").startswith(b"text/html")
            defaults = self._defaults + (_PAGE_POLICY if is_page else _DATA_POLICY)
            headers += [pair for pair in defaults if pair[0] not in brought]
            if self.status == SHARED[TimedOut].status:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)


def _caller_request_id(headers: dict[bytes, bytes]) -> dict[str, str]:
    """Return the caller's own request id for the log, beside ours; nothing if it cannot be a request id."""
    value = headers.get(b"x-request-id")
    return {"caller_request_id": value.decode()} if value is not None and _REQUEST_ID.fullmatch(value) else {}


def _refuse_repeated(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise Malformed for a repeated header of which a proxy and this server could each believe a different one.

    Source: RFC 9112 section 3.2 for Host; RFC 9110 section 5.3 for Authorization, which is no list.
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
