"""What is an address, and which endpoint answers at it?

An open part of a path (``{name}``) stands for any text. ``web.openapi`` reads the same table.
"""

import enum
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.web.answers.responses import Endpoint, ErrorCode, Shape, Table
from muniment.web.fast_path import FastPath

H = TypeVar("H")

Schema: TypeAlias = Mapping[str, Any]
"""A JSON schema (draft 2020-12), as OpenAPI 3.1 takes it."""

Content: TypeAlias = Mapping[str, "type[Any] | tuple[type[Any], ...] | Schema"]
"""A body's form by media type: a msgspec type, one of several, or a JSON schema."""

Answering: TypeAlias = Callable[[Request, H], Awaitable[Response]]

Finder: TypeAlias = Callable[[Request, H], Awaitable[bool]]
"""Whether a thing has the path's whole last part, suffix included, as its name. It may raise a refusal."""

SUFFIXES = ("json", "xml")

_OPEN_END = re.compile(r"\{(\w+)\}\Z")

_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
_SLASH_IN_PART = "\udc2f"
"""A slash within a part while a route is sought. No decoded path holds it."""

TEXT: Schema = {"type": "string"}
BINARY: Schema = {"type": "string", "format": "binary"}


class CredentialKind(enum.Enum):
    """What an address expects of its callers."""

    NONE = "none"
    BEARER = "bearer"
    """A token in the header Authorization (RFC 6750)."""
    CLIENT = "client"
    """An OAuth client: HTTP Basic, or parameters of the body (RFC 6749 2.3)."""
    TICKET = "ticket"
    """The cookie of a browser that has signed in."""
    SEARCH_PAGE = "search_page"
    """The sealed cookie of a browser that has signed in to search."""
    DIRECTORY = "directory"
    """A token for the administration's resource, or a ticket in a header or a cookie."""
    CALLER = "caller"
    """A token, or other credentials that a repository's settings allow."""


@dataclass(frozen=True)
class Parameter:
    """``refused`` says, as the end of a sentence, why a method refuses what others take."""

    name: str
    meaning: str
    schema: Schema = field(default_factory=lambda: TEXT)
    place: Literal["query", "header", "path"] = "query"
    refused: str = ""


@dataclass(frozen=True)
class AnswerDescription:
    """An answer that is no refusal."""

    status: int
    meaning: str
    content: Content = field(default_factory=dict)
    headers: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Operation(Generic[H]):
    """The first sentence of the function's docstring says what the method does; braces stand for a partial function's
    arguments.

    Without ``credentials``, the address's count. ``refused`` has the parameters that only other methods take, with
    reasons. ``fast`` is a short way to answer a POST (``fast_path``), for tables without ``check`` and suffixes.
    """

    endpoint: Answering[H]
    _: KW_ONLY
    parameters: tuple[Parameter, ...] = ()
    body: Content = field(default_factory=dict)
    answers: tuple[AnswerDescription, ...] = ()
    credentials: CredentialKind | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    fast: FastPath[H] | None = None

    @property
    def sentence(self) -> str:
        if isinstance(self.endpoint, partial):
            return first_sentence(self.endpoint.func).format(**self.endpoint.keywords)
        return first_sentence(self.endpoint)


@dataclass(frozen=True)
class ErrorShape:
    """``code`` gives the body's code; empty if it has none."""

    name: str
    write: Shape
    content: Content
    code: Callable[[ErrorCode], str] = lambda _: ""


@dataclass(frozen=True)
class Address(Generic[H]):
    """Without ``shape`` or ``credentials``, those of the table count."""

    path: str
    operations: Mapping[str, Operation[H]]
    refusals: Table = field(default_factory=dict)
    shape: ErrorShape | None = None
    credentials: CredentialKind | None = None

    @property
    def answers_documents(self) -> bool:
        """Whether any answer is JSON or XML, and not only bytes."""
        answers = (answer for operation in self.operations.values() for answer in operation.answers)
        return any(media_type.endswith(SUFFIXES) for answer in answers for media_type in answer.content)


@dataclass(frozen=True)
class AddressTable(Generic[H]):
    """``prefix`` is empty or begins with a slash.

    ``check`` is called before each method and may refuse. With ``suffixed``, paths of documents may end in one of
    ``SUFFIXES``; ``finders`` has a function for each open part whose names may, too.
    """

    name: str
    prefix: str
    addresses: tuple[Address[H], ...]
    shape: ErrorShape
    credentials: CredentialKind
    parts: tuple[Parameter, ...] = ()
    _: KW_ONLY
    note: str = ""
    check: Callable[[Request, Operation[H], H], None] | None = None
    options: bool = False
    suffixed: bool = False
    finders: Mapping[str, Finder[H]] = field(default_factory=dict)

    def routes(self, half: H) -> list[Route]:
        """Those with a suffix (``.json``, ``.xml``) come last; a path that ends with an open part needs none."""
        endpoints = [(address, self._endpoint(address, half)) for address in self.addresses]
        return [Route(self.prefix + address.path, endpoint) for address, endpoint in endpoints] + [
            Route(f"{self.prefix}{address.path}.{suffix}", endpoint, include_in_schema=False)
            for address, endpoint in endpoints
            if self.takes_suffix(address) and not _OPEN_END.search(address.path)
            for suffix in SUFFIXES
        ]

    def fast_paths(self, half: H) -> dict[str, tuple[FastPath[Any], Any]]:
        posts = {self.prefix + address.path: address.operations.get("POST") for address in self.addresses}
        return {path: (post.fast, half) for path, post in posts.items() if post and post.fast}

    def takes_suffix(self, address: Address[H]) -> bool:
        return self.suffixed and address.answers_documents

    def shape_of(self, address: Address[H]) -> ErrorShape:
        return address.shape or self.shape

    def credentials_of(self, address: Address[H], operation: Operation[H]) -> CredentialKind:
        return operation.credentials or address.credentials or self.credentials

    def _endpoint(self, address: Address[H], half: H) -> Endpoint[H]:
        methods = {method: operation.endpoint for method, operation in address.operations.items()}

        takes_suffix, part = self.takes_suffix(address), _OPEN_END.search(address.path)

        async def prepare(request: Request, method: str) -> None:
            if takes_suffix:
                await self._take_suffix(request, half, part[1] if part else "")
            if self.check is not None:
                self.check(request, address.operations[method], half)

        return Endpoint(
            half,
            methods,
            address.refusals,
            self.shape_of(address).write,
            prepare=prepare if self.suffixed or self.check else None,
            options=self.options,
        )

    async def _take_suffix(self, request: Request, half: H, part: str) -> None:
        """Move the suffix into the scope (``muniment.suffix``).

        A refusal here skips the method, so the caller's password is not checked a second time.
        """
        suffix = request.scope["path"].rpartition(".")[2]
        if suffix not in SUFFIXES:
            return
        if part:
            if part in self.finders and await self.finders[part](request, half):
                return
            request.path_params[part] = request.path_params[part].removesuffix(f".{suffix}")
        request.scope["muniment.suffix"] = suffix


def first_sentence(described: object) -> str:
    paragraph = " ".join((described.__doc__ or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


class Addresses:
    """Routes without an open part (``/dirws/login``) win over others (``/dirws/{rest:path}``), of which only those are
    tried that begin with the path's first part, or with any.

    If none matches, the last one answers, even for ``*``, which is no path (RFC 9112, 3.2.4). ``%2F`` is a slash in a
    name and separates no parts (RFC 3986 2.2).
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = list(routes)
        self._endpoints_by_path = {route.path: route.app for route in reversed(routes) if not route.param_convertors}
        open_routes = [route for route in routes if route.param_convertors]
        self._any = [route for route in open_routes if "{" in _first_part(route.path)]
        self._open = {
            first: [route for route in open_routes if route in self._any or _first_part(route.path) == first]
            for first in {_first_part(route.path) for route in open_routes}
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _path_in_parts(scope)
        endpoint = self._endpoints_by_path.get(path) or self._match_open(scope, path)
        await endpoint(scope, receive, send)

    def _match_open(self, scope: Scope, path: str) -> ASGIApp:
        sought = scope if path is scope["path"] else {**scope, "path": path}
        for route in self._open.get(_first_part(path), self._any):
            match, path_scope = route.matches(sought)
            if match is Match.FULL:
                parts = path_scope["path_params"]
                path_scope["path_params"] = {name: part.replace(_SLASH_IN_PART, "/") for name, part in parts.items()}
                scope.update(path_scope)
                return route.app
        scope["path_params"] = {}
        return self._any[-1].app


def _first_part(path: str) -> str:
    return path.split("/", 2)[1] if path.startswith("/") else path


def _path_in_parts(scope: Scope) -> str:
    path: str = scope["path"]
    raw_path: bytes = scope.get("raw_path") or b""
    if b"%2" not in raw_path:
        return path
    marked = _SLASH_IN_PART.join(map(unquote, _ENCODED_SLASH.split(raw_path.decode("latin-1"))))
    # A server that mounts the application below a path of its own may give another path in ``raw_path``.
    return marked if marked.replace(_SLASH_IN_PART, "/") == path else path
