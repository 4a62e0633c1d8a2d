"""What every page of the directory needs: templates, cookies, the mark against forged forms, and refusals."""

import base64
import hmac
import re
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.entries import system
from muniment.directory.options import DirectoryNames
from muniment.ground import clock
from muniment.web.answers import browser, pages
from muniment.web.answers.responses import ErrorCode, Shape
from muniment.web.requests import accept

_CONSOLE_PAGE = re.compile(r"/console(/[a-z0-9-]+)*")

Cookie = Literal["ticket", "form", "browser"]
"""``ticket`` holds the ticket of a sign-in. ``form`` holds a random value to which forms are bound while nobody is
signed in. ``browser`` holds a value by which the directory recognises a browser that signed in before."""


def _moment(instant: clock.Instant) -> str:
    return clock.to_datetime(instant).strftime("%Y-%m-%d %H:%MZ")


def _cookie_name(request: Request, names: DirectoryNames, what: Cookie) -> str:
    return (names.ticket_cookie or browser.cookie_name(request, "muniment_ticket")) + (
        "" if what == "ticket" else f"_{what}"
    )


_TEMPLATES = pages.templates("muniment.directory.console")
_TEMPLATES.filters["moment"] = _moment


def place(request: Request, names: DirectoryNames) -> str:
    """Return the path where the directory's addresses begin: the path of the base address, then the prefix."""
    return pages.base_path(request) + f"/{names.prefix}"


def draw(
    request: Request, names: DirectoryNames, template: str, values: Mapping[str, Any], status: int = 200
) -> Response:
    at = place(request, names)
    page_values = {"at": at, "prefix": names.form_prefix, **values}
    page_template = _TEMPLATES.get_template(template)
    return pages.draw(request, page_template, page_values, status, files=f"{at}/static", headers=browser.NEVER_STORED)


def redirect(request: Request, names: DirectoryNames, path: str) -> Response:
    return browser.redirect(request, f"/{names.prefix}{path}")


def page_shape(names: DirectoryNames) -> Shape:
    """A browser without a sign-in is led to the sign-in page."""

    def write(request: Request, error_code: ErrorCode, sentence: str) -> Response:
        if error_code.code == "not_signed_in":
            page = page_of_ours(request.scope["path"].removeprefix(f"/{names.prefix}"))
            return redirect(request, names, f"/login?RFA=&page={page}")
        base = request.scope.get("muniment.base", "")
        ways = [("Go to the sign-in page", f"{base}/{names.prefix}/login"), ("Go to the front page", f"{base}/")]
        return pages.problem(request, error_code, sentence, ways)

    return write


def wants_page(request: Request) -> bool:
    """The endpoint decides; if it does not, the caller's Accept does."""
    draws_page: bool | None = request.scope.get("muniment.page")
    return accept.prefers_page(request) if draws_page is None else draws_page


def cookie(request: Request, names: DirectoryNames, what: Cookie) -> str:
    return request.cookies.get(_cookie_name(request, names, what), "")


def ticket_header(names: DirectoryNames) -> str:
    """Return the name of the header in which a program may send its ticket instead of the cookie."""
    return names.ticket_cookie or "Muniment-Ticket"


def set_cookie(
    response: Response, request: Request, names: DirectoryNames, what: Cookie, value: str, seconds: int | None = None
) -> None:
    """Over TLS, the cookie's name begins with ``__Host-``, unless the settings give another name. A browser accepts
    such a cookie for all paths of this host. With any other name, the browser sends the ticket to all addresses below
    the base address, because a ticket opens repositories too. It sends the other two cookies to the directory only.
    """
    name = _cookie_name(request, names, what)
    path = (pages.base_path(request) or "/") if what == "ticket" else place(request, names)
    path = "/" if name.startswith("__Host-") else path
    browser.set_cookie(response, request, name, value, path=path, seconds=seconds)


def page_of_ours(path: str) -> str:
    """``path`` begins after the directory's prefix."""
    return path if _CONSOLE_PAGE.fullmatch(path) else ""


def csrf(cx: Connection, bound_to: str) -> str:
    """Make the value of the hidden field that proves that a form is ours.

    ``bound_to`` is the value of the cookie to which the form is bound: the ticket, or else the form cookie.
    """
    digest = hmac.digest(system.key(cx, "csrf"), bound_to.encode("utf-8", "surrogateescape"), "sha256")
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def form_mark(request: Request, names: DirectoryNames, form: Mapping[str, str]) -> browser.FormMark:
    return browser.form_mark(request, form.get(f"{names.form_prefix}csrf", ""))


def check_csrf(cx: Connection, mark: browser.FormMark, bound_to: str) -> None:
    """Raises Forged."""
    genuine = hmac.compare_digest(mark.text.encode("utf-8"), csrf(cx, bound_to).encode("utf-8"))
    browser.require_ours(mark, bool(bound_to) and genuine)
