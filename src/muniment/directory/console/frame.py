"""What every page of the directory needs: templates, cookies, the mark against forged forms, and refusals."""

import base64
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.entries import system
from muniment.directory.oauth.discovery import AUTHORIZE
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAuthorization, NotSignedIn
from muniment.ground import clock
from muniment.ground.refusals import Forged
from muniment.web.answers import browser, pages
from muniment.web.answers.responses import ErrorCode, Shape, Table
from muniment.web.requests import accept

DEVICE = "/oauth2/device"

_CONSOLE_PAGE = re.compile(r"/console(/[a-z0-9-]+)*")
_OAUTH_PAGE = re.compile(rf"({AUTHORIZE}|{DEVICE})(\?[A-Za-z0-9._~%=&+-]*)?")

AUTHORIZATION: Table = {
    BadAuthorization: ErrorCode(400, "invalid_request"),
    NotSignedIn: ErrorCode(303, "not_signed_in"),
    Forged: ErrorCode(403, "forged"),
}
"""For the pages of an authorization."""

Cookie = Literal["ticket", "form", "browser"]
"""``ticket`` is that of a sign-in, ``form`` a random value for forms while nobody is signed in, ``browser`` one that
shows who signed in with it before.
"""


def _moment(instant: clock.Instant) -> str:
    return clock.to_datetime(instant).strftime("%Y-%m-%d %H:%MZ")


def _cookie_name(request: Request, names: DirectoryNames, what: Cookie) -> str:
    return (names.ticket_cookie or browser.cookie_name(request, "muniment_ticket")) + (
        "" if what == "ticket" else f"_{what}"
    )


_TEMPLATES = pages.templates("muniment.directory.console")
_TEMPLATES.filters["moment"] = _moment


def place(request: Request, names: DirectoryNames) -> str:
    """Where the directory's addresses begin: the base address's path, then the prefix."""
    return pages.base_path(request) + f"/{names.prefix}"


def draw(
    request: Request,
    names: DirectoryNames,
    template: str,
    values: Mapping[str, Any],
    status: int = 200,
    *,
    scripts: bool = False,
    forms: Sequence[str] = ("'self'",),
) -> Response:
    at = place(request, names)
    page_values = {"at": at, "prefix": names.form_prefix, **values}
    return pages.draw(
        *(request, _TEMPLATES.get_template(template), page_values, status),
        files=f"{at}/static",
        headers=browser.NEVER_STORED,
        scripts=scripts,
        forms=forms,
    )


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
    """The endpoint decides, or else the caller's Accept."""
    draws_page: bool | None = request.scope.get("muniment.page")
    return accept.prefers_page(request) if draws_page is None else draws_page


def cookie(request: Request, names: DirectoryNames, what: Cookie) -> str:
    return request.cookies.get(_cookie_name(request, names, what), "")


def ticket_header(names: DirectoryNames) -> str:
    """For programs, which may send the ticket in it instead of the cookie."""
    return names.ticket_cookie or "Muniment-Ticket"


def set_cookie(
    response: Response, request: Request, names: DirectoryNames, what: Cookie, value: str, seconds: int | None = None
) -> None:
    """Over TLS, the default name begins with ``__Host-``: the cookie is for all paths of this host.

    With another name, the ticket is sent to all addresses below the base address, because it opens repositories too,
    the other cookies to the directory only.
    """
    name = _cookie_name(request, names, what)
    path = (pages.base_path(request) or "/") if what == "ticket" else place(request, names)
    path = "/" if name.startswith("__Host-") else path
    browser.set_cookie(response, request, name, value, path=path, seconds=seconds)


def page_of_ours(path: str) -> str:
    """To which a sign-in may lead; empty for any other. ``path`` begins after the directory's prefix."""
    return path if _CONSOLE_PAGE.fullmatch(path) or _OAUTH_PAGE.fullmatch(path) else ""


def is_of_console(page: str) -> bool:
    return _CONSOLE_PAGE.fullmatch(page) is not None


def csrf(cx: Connection, bound_to: str) -> str:
    """What the hidden field of our forms holds. ``bound_to`` is the ticket, or else the form cookie."""
    return _csrf(system.key(cx, "csrf"), bound_to)


def _csrf(key: bytes, bound_to: str) -> str:
    digest = hmac.digest(key, bound_to.encode("utf-8", "surrogateescape"), "sha256")
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def form_mark(request: Request, names: DirectoryNames, form: Mapping[str, str]) -> browser.FormMark:
    return browser.form_mark(request, form.get(f"{names.form_prefix}csrf", ""))


def check_csrf(cx: Connection, mark: browser.FormMark, bound_to: str) -> None:
    """Raises Forged."""
    sent = mark.text.encode("utf-8")
    genuine = any(hmac.compare_digest(sent, _csrf(key, bound_to).encode()) for key in system.accepted_keys(cx, "csrf"))
    browser.require_ours(mark, bool(bound_to) and genuine)
