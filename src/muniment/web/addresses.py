"""Which address is answered by which endpoint? One table, looked up in one step where an address has no open part."""

from collections.abc import Iterable

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Addresses:
    """The table of addresses as an ASGI application.

    An address without an open part (``/dirws/login``) comes before those that have one (``/dirws/{rest:path}``); among
    the latter the first that fits answers. The last one answers whatever is left, also what is no path, as ``*`` (RFC
    9112, 3.2.4).
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = list(routes)
        self._whole: dict[str, ASGIApp] = {}
        for route in routes:
            if not route.param_convertors:
                self._whole.setdefault(route.path, route.app)
        self._open = [route for route in routes if route.param_convertors]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have one request answered (ASGI)."""
        endpoint = self._whole.get(scope["path"]) or self._fitting(scope)
        await endpoint(scope, receive, send)

    def _fitting(self, scope: Scope) -> ASGIApp:
        for route in self._open:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                return route.app
        scope["path_params"] = {}
        return self._open[-1].app
