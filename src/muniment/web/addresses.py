"""What is an address, and which endpoint answers at it? Each half declares all of its addresses in one table.

The table is looked up in one step where an address has no open part. ``web.openapi`` describes the same table.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.web.responses import Endpoint, ErrorCode, Shape, Table

H = TypeVar("H")

Schema: TypeAlias = Mapping[str, Any]
"""A JSON schema (draft 2020-12), as OpenAPI 3.1 takes it."""

Content: TypeAlias = Mapping[str, "type[Any] | Schema"]
"""What a body may be, by media type: a msgspec type, or a JSON schema."""

Answering: TypeAlias = Callable[[Request, H], Awaitable[Response]]
"""A function that answers one method of an address."""

TEXT: Schema = {"type": "string"}
BINARY: Schema = {"type": "string", "format": "binary"}


class CredentialKind(enum.Enum):
    """What a caller shows to an address."""

    NONE = "none"
    BEARER = "bearer"
    """A token in the header Authorization (RFC 6750)."""
    CLIENT = "client"
    """An OAuth client: HTTP Basic, or parameters of the body (RFC 6749 2.3)."""
    TICKET = "ticket"
    """The cookie of a browser that has signed in."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query, a header, or an open part of a path, with its meaning in plain English."""

    name: str
    meaning: str
    schema: Schema = field(default_factory=lambda: TEXT)
    place: Literal["query", "header", "path"] = "query"


@dataclass(frozen=True)
class AnswerDescription:
    """One answer that is no refusal: its status, what it means, its body by media type, and its own headers."""

    status: int
    meaning: str
    content: Content = field(default_factory=dict)
    headers: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Operation(Generic[H]):
    """One method of an address: the function that answers it, and what that takes and gives.

    Without a ``summary`` of its own it has the first sentence of the function's docstring. ``credentials`` are those of
    the address unless the method has others.
    """

    endpoint: Answering[H]
    summary: str = ""
    parameters: tuple[Parameter, ...] = field(default=(), kw_only=True)
    body: Content = field(default_factory=dict, kw_only=True)
    answers: tuple[AnswerDescription, ...] = field(default=(), kw_only=True)
    credentials: CredentialKind | None = field(default=None, kw_only=True)

    @property
    def sentence(self) -> str:
        """Say in one sentence what the method does."""
        return self.summary or " ".join((self.endpoint.__doc__ or "").partition("\n\n")[0].split())


@dataclass(frozen=True)
class ErrorShape:
    """How errors are written, and as what: the name of the shape, the function, and the body by media type.

    ``code`` spells the code that the body has; it gives nothing where the body has none.
    """

    name: str
    write: Shape
    content: Content
    code: Callable[[ErrorCode], str] = lambda _: ""


@dataclass(frozen=True)
class Address(Generic[H]):
    """One address: its path below the table's prefix, its methods, and the refusals it answers.

    ``shape`` and ``credentials`` are those of the table unless the address has its own.
    """

    path: str
    operations: Mapping[str, Operation[H]]
    refusals: Table = field(default_factory=dict)
    shape: ErrorShape | None = None
    credentials: CredentialKind | None = None


@dataclass(frozen=True)
class AddressTable(Generic[H]):
    """All addresses of one half, or of the front door.

    ``prefix`` is empty or begins with a slash. ``parts`` are the open parts of the paths.
    """

    name: str
    prefix: str
    addresses: tuple[Address[H], ...]
    shape: ErrorShape
    credentials: CredentialKind
    parts: tuple[Parameter, ...] = ()

    def routes(self, half: H) -> list[Route]:
        """Have every address answered, with what the half's endpoints need."""
        return [Route(self.prefix + address.path, self._endpoint(address, half)) for address in self.addresses]

    def shape_of(self, address: Address[H]) -> ErrorShape:
        """Say how an address of this table writes its errors."""
        return address.shape or self.shape

    def credentials_of(self, address: Address[H], operation: Operation[H]) -> CredentialKind:
        """Say what a caller shows for a method of an address of this table."""
        return operation.credentials or address.credentials or self.credentials

    def _endpoint(self, address: Address[H], half: H) -> Endpoint[H]:
        methods = {method: operation.endpoint for method, operation in address.operations.items()}
        return Endpoint(half, methods, address.refusals, self.shape_of(address).write)


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
