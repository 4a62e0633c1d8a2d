"""The front page, the documentation, and the answer for unknown addresses."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from muniment.front.halves import Halves
from muniment.repository import repositories
from muniment.web.refusals import UnknownAddress
from muniment.web.responses import Endpoint, ErrorCode, Shape, json_response

_DOCUMENT = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*\.md")
_HERE = Path(__file__).parent
_ASSETS = {"style.css": "text/css", "icon.svg": "image/svg+xml"}


def unknown_addresses(halves: Halves, shape: Shape) -> Route:
    """Make the last route, which refuses every address that no other route takes."""
    methods: dict[str, Callable[[Request, Halves], Awaitable[Response]]] = dict.fromkeys(
        ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), _unknown
    )
    return Route("/{rest:path}", Endpoint(halves, methods, {}, shape))


def plain(request: Request, code: ErrorCode, sentence: str) -> Response:
    """Write an error for an address of neither half: a page for a browser, else JSON."""
    if "text/html" in request.headers.get("accept", ""):
        return _render(request, "problem.html", {"sentence": sentence}, code.status)
    return json_response({"status": code.status, "code": code.code, "message": sentence}, code.status)


async def front_page(request: Request, halves: Halves) -> Response:
    """Show a page that links everything there is."""
    settings = halves.installation.settings
    stored = await halves.repository.transactions.read(repositories.every) if halves.repository else []
    values = {
        "directory": settings.directory.names if halves.directory else None,
        "repository": settings.repository.names if halves.repository else None,
        "repositories": [repository.name for repository in stored],
        "documents": _documents(),
    }
    return _render(request, "index.html", values)


def _render(request: Request, template: str, values: Mapping[str, object], status: int = 200) -> Response:
    base = request.scope["muniment.base"]
    # A page over plain HTTP loads its style from its own address, not from the https address.
    text = _templates().get_template(template).render(base=base, at=urlsplit(base).path.rstrip("/"), **values)
    return HTMLResponse(text, status)


async def asset(request: Request, _halves: Halves) -> Response:
    """Give out a file that the pages use."""
    name = request.scope["path"].rpartition("/")[2]
    return Response((_HERE / name).read_bytes(), media_type=_ASSETS[name])


async def document(request: Request, _halves: Halves) -> Response:
    """Show a page of the documentation, as it is written."""
    page = request.path_params["page"]
    folder = _documents_folder()
    if folder is None or not _DOCUMENT.fullmatch(page) or not (folder / page).is_file():
        raise UnknownAddress("There is no such page; / links those there are.")
    return PlainTextResponse((folder / page).read_text("utf-8"))


def _templates() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True, trim_blocks=True)


def _documents_folder() -> Path | None:
    for folder in (_HERE.parent / "docs", _HERE.parents[2] / "docs"):
        if (folder / "settings.md").is_file():
            return folder
    return None


def _documents() -> dict[str, str]:
    """Return the heading of every page of the documentation; the decisions come last."""
    folder = _documents_folder()
    if folder is None:
        return {}
    pages = {
        str(page.relative_to(folder)): page for page in sorted(folder.rglob("*.md"), key=lambda p: (len(p.parts), p))
    }
    return {
        name: page.read_text("utf-8").partition("\n")[0].lstrip("# ")
        for name, page in pages.items()
        if _DOCUMENT.fullmatch(name)
    }


async def _unknown(_request: Request, _halves: Halves) -> Response:
    raise UnknownAddress("Nothing answers at this address; / links what does.")
