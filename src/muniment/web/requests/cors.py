"""Pages of which other sites may read this server's answers in a browser?

Source: the Fetch standard, section 3.3. Starlette's middleware lets every origin send credentials with `*`, and answers
preflights itself, with the same methods for every address.
"""

import re
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'+.^_|~-]{1,100}")
_MOST_HEADERS = 50
_PREFLIGHT = "Access-Control-Request-Method", "Access-Control-Request-Headers"


class Cors:
    """Wraps the whole app. ``*`` in ``origins`` stands for all, but for none with ``credentials`` (cookies).

    A preflight's answer allows the methods in its header Allow.
    """

    def __init__(
        self,
        app: ASGIApp,
        prefix: str,
        origins: Collection[str],
        *,
        credentials: bool,
        exposed_headers: Sequence[str],
        seconds: int,
    ) -> None:
        self._app = app
        self._prefix = prefix
        self._origins = frozenset(origins)
        self._credentials = credentials
        self._exposed_headers = ", ".join(exposed_headers)
        self._seconds = str(seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (scope["path"] + "/").startswith(self._prefix + "/"):
            await self._app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = list(message.get("headers", ()))
                self._add(Headers(scope=scope), scope["method"], MutableHeaders(raw=message["headers"]))
            await send(message)

        await self._app(scope, receive, add)

    def _add(self, request: Headers, method: str, answer: MutableHeaders) -> None:
        is_preflight = method == "OPTIONS" and _PREFLIGHT[0] in request
        # A cache must not give one origin an answer for another origin, or for a request without an origin.
        answer.append("Vary", ", ".join(("Origin", *_PREFLIGHT) if is_preflight else ("Origin",)))
        allowed_origin = self._origin_allowed(request.getlist("origin"))
        if allowed_origin is None:
            return
        answer["Access-Control-Allow-Origin"] = allowed_origin
        if self._credentials:
            answer["Access-Control-Allow-Credentials"] = "true"
        if not is_preflight:
            answer["Access-Control-Expose-Headers"] = self._exposed_headers
        elif "allow" in answer:
            answer["Access-Control-Allow-Methods"] = answer["allow"]
            names = ",".join(request.getlist(_PREFLIGHT[1])).split(",")[:_MOST_HEADERS]
            # Every header is allowed, because no header gives a page a right.
            if headers := [name.strip() for name in names if _HEADER_NAME.fullmatch(name.strip())]:
                answer["Access-Control-Allow-Headers"] = ", ".join(headers)
            answer["Access-Control-Max-Age"] = self._seconds

    def _origin_allowed(self, origins: Sequence[str]) -> str | None:
        if len(origins) != 1:
            return None
        if origins[0] in self._origins:
            return origins[0]
        return "*" if "*" in self._origins and not self._credentials else None
