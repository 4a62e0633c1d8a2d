"""The front page, the documentation, and the answer for unknown addresses."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from muniment.front import documentation
from muniment.front.halves import Halves
from muniment.ground.refusals import UnknownAddress
from muniment.repository.page import frame as search_page_frame
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Stretch
from muniment.web.answers import pages
from muniment.web.answers.responses import Endpoint, ErrorCode, Shape, json_response
from muniment.web.requests import accept

_SHOWN_REPOSITORIES = 20
_MARKDOWN = "text/markdown"
_CHANGES_WITH_ACCEPT = {"Vary": "Accept"}
_TEMPLATES = pages.templates("muniment.front")

_SHELVES: Mapping[str, Mapping[str, str]] = {
    "Use it": {
        "search-page": "Search, narrow, read and save searches with a browser.",
    },
    "Run a server": {
        "first-day": "From an empty folder to users, rights and documents, command by command.",
        "operations": "systemd, TLS, a proxy, logs, backup and restore, and what to do when something is wrong.",
        "postgresql": "PostgreSQL as the database: role, password, TLS, backup.",
        "export": "A whole repository in a folder, and back: the commands, and what each file holds.",
        "settings": "Every setting with its default.",
    },
    "Build on it": {
        "sign-people-in": "A web application whose people sign in here, and what happens when a right ends.",
        "call-as-a-service": "A program that acts for itself: tokens, keys, what refusals mean, and your own API.",
        "interface": "Every address, what it takes and what it answers, clause by clause.",
        "requests": "A request for every address, with the answer that it gets.",
        "filters": "How every list is filtered, sorted and shown.",
        "dql": "The read-only statements that the repository answers.",
        "aql": "The two query languages, with examples; what a search finds, and in which order.",
    },
    "How it is made": {
        "benchmarks": "Speed and memory beside other servers, how good the hits are, and how both were measured.",
        "campaign": "The long tests, and known failures of other systems with the tests against them.",
        "openid-plans": "The OpenID Foundation's basic and config plans, and the test for each of their cases.",
        "vocabulary": "The words that the product uses, each with one meaning.",
    },
}
"""By the reader's purpose. The text after a name says what the page is about."""


def unknown_addresses(halves: Halves, shape: Shape) -> Route:
    methods: dict[str, Callable[[Request, Halves], Awaitable[Response]]] = dict.fromkeys(
        ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), _unknown
    )
    return Route("/{rest:path}", Endpoint(halves, methods, {}, shape))


class PlainError(msgspec.Struct):
    """An error of the front door."""

    status: int
    code: str
    message: str


def plain(request: Request, code: ErrorCode, sentence: str) -> Response:
    if accept.prefers_page(request):
        base = request.scope.get("muniment.base", "")
        ways = [("Go to the front page", f"{base}/"), ("Read the documentation", f"{base}/docs")]
        return pages.problem(request, code, sentence, ways)
    return json_response(PlainError(code.status, code.code, sentence), code.status)


async def front_page(request: Request, halves: Halves) -> Response:
    """Say what this server is, and where users, administrators and developers go next."""
    settings = halves.installation.settings
    names: list[str] = []
    if halves.repository is not None:
        stretch = Stretch(None, 0, _SHOWN_REPOSITORIES + 1)
        page = await halves.repository.transactions.read(repositories.repository_page, stretch)
        names = [repository.name for repository, _ in page]
    values = {
        "directory": settings.directory.names if halves.directory else None,
        "repository": settings.repository.names if halves.repository else None,
        "repositories": names[:_SHOWN_REPOSITORIES],
        "more_repositories": len(names) > _SHOWN_REPOSITORIES,
        "documented": bool(documentation.names()),
    }
    return _draw(request, halves, "front.html", values)


async def asset(request: Request, _halves: Halves) -> Response:
    """Fetch a file that the pages use."""
    return pages.file(request.scope["path"].rpartition("/")[2])


async def contents(request: Request, halves: Halves) -> Response:
    """List the pages of the documentation."""
    there = documentation.names()
    shelves = {
        heading: [(name, documentation.title(name), about) for name, about in shelf.items() if name in there]
        for heading, shelf in _SHELVES.items()
    }
    records = sum(name.startswith(documentation.DECISIONS) for name in there)
    return _draw(request, halves, "contents.html", {"shelves": shelves, "records": records})


async def document(request: Request, halves: Halves) -> Response:
    """Show a page of the documentation.

    HTML, or Markdown if the caller prefers that, or has no preference at an address in ``.md``; a picture at a
    picture's.
    """
    path = request.path_params["page"].rstrip("/")
    picture = documentation.picture(path)
    if picture is not None:
        return Response(picture, media_type="image/png")
    if path == "":
        return await contents(request, halves)
    if path == documentation.DECISIONS.rstrip("/"):
        return _decisions(request, halves)
    name = path.removesuffix(".md")
    as_text = ("text/plain", _MARKDOWN)
    offered = (*as_text, "text/html") if path.endswith(".md") else ("text/html", *as_text)
    media_type = accept.best_media_type(request, offered) or offered[0]
    text = documentation.source(name)
    rendered = documentation.documentation_page(name)
    if text is None or rendered is None:
        raise UnknownAddress("There is no such page; /docs links those there are.")
    if media_type != "text/html":
        return PlainTextResponse(text, headers=_CHANGES_WITH_ACCEPT, media_type=media_type)
    values = {"name": name, "page": rendered, "is_record": name.startswith(documentation.DECISIONS)}
    return _draw(request, halves, "document.html", values, _CHANGES_WITH_ACCEPT)


def _decisions(request: Request, halves: Halves) -> Response:
    there = [name for name in documentation.names() if name.startswith(documentation.DECISIONS)]
    if not there:
        raise UnknownAddress("There is no such page; /docs links those there are.")
    records = [(name, *documentation.title(name).split(" ", 1)) for name in there]
    return _draw(request, halves, "decisions.html", {"records": records})


def _draw(
    request: Request,
    halves: Halves,
    template: str,
    values: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> Response:
    base = request.scope["muniment.base"]
    prefix = halves.installation.settings.directory.names.prefix
    # A page over plain HTTP loads its style from its own address, not from the https address.
    files = urlsplit(base).path.rstrip("/")
    searches = halves.repository is not None and halves.repository.callers.page is not None
    search = f"{base}{search_page_frame.PREFIX}" if searches else ""
    # Whoever uses this server comes to search, if it has a page for that. The console asks administrators by itself.
    sign_in = f"{search}/sign-in" if search else f"{base}/{prefix}/login" if halves.directory else ""
    values = {"base": base, "sign_in": sign_in, "search": search, "path": request.scope["path"], **values}
    return pages.draw(request, _TEMPLATES.get_template(template), values, files=files, headers=headers)


async def _unknown(_request: Request, _halves: Halves) -> Response:
    raise UnknownAddress("Nothing answers at this address; / links what does.")
