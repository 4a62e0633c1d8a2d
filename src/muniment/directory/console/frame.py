"""The frame every page is drawn in: templates, the stylesheet, the mark against forged forms, the page of a refusal."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import jinja2
import markupsafe
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from muniment import clock
from muniment.clock import Instant
from muniment.directory import system
from muniment.directory.context import Directory
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import Forged
from muniment.web.refusals import UnknownAddress
from muniment.web.responses import ErrorCode, Shape

_POLICY = (
    "default-src 'none'; style-src {style}; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADINGS = {
    400: "That cannot be read",
    403: "That is not allowed",
    404: "There is nothing here",
    405: "That is not offered here",
    500: "Something went wrong",
    503: "Too busy just now",
}
_MEDIA_TYPES = {".css": "text/css", ".svg": "image/svg+xml"}


_CONSOLE_PAGE = re.compile(r"/console(/[a-z0-9-]+)*")

Cookie = Literal["ticket", "form", "browser"]
"""A sign-in; what the form is bound to before anybody is signed in; by which a browser is known again."""


class FormMark(NamedTuple):
    """The text of a form's hidden field, and whether another site's page sent it."""

    text: str
    foreign: bool


def _files() -> dict[str, bytes]:
    folder = resources.files("muniment.directory.console") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _moment(instant: Instant) -> str:
    return clock.to_datetime(instant).strftime("%Y-%m-%d %H:%MZ")


def _cookie_name(request: Request, names: DirectoryNames, what: Cookie) -> str:
    ours = "__Host-muniment_ticket" if request.scope["scheme"] == "https" else "muniment_ticket"
    return (names.ticket_cookie or ours) + ("" if what == "ticket" else f"_{what}")


_STATIC = _files()
_VERSION = hashlib.sha256(b"".join(_STATIC[name] for name in sorted(_STATIC))).hexdigest()[:12]
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STATIC["style.css"]).digest()).decode("ascii")
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("muniment.directory.console"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)
_TEMPLATES.filters["moment"] = _moment


def place(request: Request, names: DirectoryNames) -> str:
    """Say where the directory's addresses begin, as a path: the base address's own path, then the prefix."""
    return urlsplit(request.scope.get("muniment.base", "")).path.rstrip("/") + f"/{names.prefix}"


def draw(
    request: Request,
    names: DirectoryNames,
    template: str,
    values: Mapping[str, Any],
    status: int = 200,
    *,
    alone: bool = False,
) -> Response:
    """Draw a page; one that stands ``alone`` carries its style, for where nothing else is answered (plain HTTP)."""
    at = place(request, names)
    text = _TEMPLATES.get_template(template).render(
        at=at,
        static=lambda name: f"{at}/static/{name}?{_VERSION}",
        style=markupsafe.Markup(_STATIC["style.css"].decode("utf-8")) if alone else None,  # noqa: S704 - our own file
        prefix=names.form_prefix,
        **values,
    )
    policy = _POLICY.format(style=f"'sha256-{_STYLE_HASH}'" if alone else "'self'")
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
    return Response(text, status, headers, media_type="text/html")


def redirect(request: Request, names: DirectoryNames, path: str) -> Response:
    """Lead the browser to another page of ours, to be fetched by GET."""
    return RedirectResponse(place(request, names) + path, 303, {"Cache-Control": "no-store"})


def page_shape(names: DirectoryNames) -> Shape:
    """Make the shape of a refusal that a person reads; who is not signed in is led to the sign-in page."""

    def write(request: Request, said: ErrorCode, sentence: str) -> Response:
        if said.code == "not_signed_in":
            page = page_of_ours(request.scope["path"].removeprefix(f"/{names.prefix}"))
            return redirect(request, names, f"/login?RFA=&page={page}")
        heading = _HEADINGS.get(said.status, "That did not work")
        # The whole address: over plain HTTP, where TLS is required, a path alone would lead back to this page.
        home = f"{request.scope.get('muniment.base', '')}/{names.prefix}/login"
        values = {"heading": heading, "sentence": sentence, "home": home}
        return draw(request, names, "problem.html", values, said.status, alone=True)

    return write


def wants_page(request: Request) -> bool:
    """Say whether a refusal had better be a page: a browser asks, or a page was begun."""
    return "muniment.page" in request.scope or "text/html" in request.headers.get("accept", "")


async def static(request: Request, _directory: Directory) -> Response:
    """GET /static/<name>: the stylesheet and the icon; their address changes with them, so they are kept for long."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise UnknownAddress("There is nothing at this address.")
    media_type = _MEDIA_TYPES["." + name.rpartition(".")[2]]
    return Response(_STATIC[name], 200, {"Cache-Control": "public, max-age=31536000, immutable"}, media_type)


def cookie(request: Request, names: DirectoryNames, what: Cookie) -> str:
    """Read one of our cookies; empty when the browser shows none."""
    return request.cookies.get(_cookie_name(request, names, what), "")


def set_cookie(
    response: Response, request: Request, names: DirectoryNames, what: Cookie, value: str, seconds: int | None = None
) -> None:
    """Set one of our cookies. ``seconds`` None: until the browser closes; 0: gone at once.

    It is Secure unless plain HTTP is permitted and was used: a browser would not keep it then. By our own name over TLS
    it begins with ``__Host-``: a browser takes it from this host alone, for all addresses (RFC 6265bis 4.1.3.2).
    """
    name = _cookie_name(request, names, what)
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path="/" if name.startswith("__Host-") else place(request, names),
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="Lax",  # type: ignore[arg-type] # as RFC 6265bis spells it
    )


def page_of_ours(path: str) -> str:
    """Return the path if it is that of a page of the console, below the directory's addresses; else nothing."""
    return path if _CONSOLE_PAGE.fullmatch(path) else ""


def new_mark() -> str:
    """Make a value for the form cookie."""
    return secrets.token_urlsafe(24)


def csrf(cx: Connection, bound_to: str) -> str:
    """Make the hidden field that shows a form to be ours; ``bound_to`` is the cookie the form goes with."""
    digest = hmac.digest(system.key(cx, "csrf"), bound_to.encode("utf-8", "surrogateescape"), "sha256")
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def form_mark(request: Request, names: DirectoryNames, form: Mapping[str, str]) -> FormMark:
    """Read which mark a form carries, and whether the browser says that another site's page sent it."""
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    return FormMark(form.get(f"{names.form_prefix}csrf", ""), foreign)


def check_csrf(cx: Connection, mark: FormMark, bound_to: str) -> None:
    """Check that a form is ours and was not sent by another site's page. Raises Forged."""
    genuine = hmac.compare_digest(mark.text.encode("utf-8"), csrf(cx, bound_to).encode("utf-8"))
    if mark.foreign or not bound_to or not genuine:
        raise Forged("This form has expired, or does not come from a page of this server. Open the page again.")
