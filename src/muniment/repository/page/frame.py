"""What every page needs: templates, cookies, the mark against forged forms, refusals."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import clock
from muniment.ground.clock import Instant
from muniment.repository.keys import BadSeal, Seal
from muniment.web.answers import browser, pages
from muniment.web.answers.responses import ErrorCode

PREFIX = "/search"

_COOKIE = "muniment-search"
COOKIE = f"__Host-{_COOKIE}"

_FORM = "search page form"
_MOST_FORM_COOKIES = 20


def _day(instant: Instant) -> str:
    moment = clock.to_datetime(instant)
    return f"{moment.day} {moment:%b %Y}"


def amount(size: int) -> str:
    """Write bytes as people read them, in decimal units."""
    number, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(number) < 1000:
            break
        number, unit = number / 1000, larger
    if unit == "bytes":
        return "1 byte" if size == 1 else f"{size} bytes"
    return f"{number:.1f} {unit}" if round(number, 1) < 10 else f"{number:.0f} {unit}"


_TEMPLATES = pages.templates("muniment.repository.page")
_TEMPLATES.filters |= {"day": _day, "moment": clock.timestamp, "amount": amount, "grouped": "{:,}".format}


def place(request: Request) -> str:
    return pages.base_path(request) + PREFIX


def draw(
    request: Request, template: str, values: Mapping[str, Any], status: int = 200, *, scripts: bool = True
) -> Response:
    """Without ``scripts``, none may run, as where a password is typed."""
    at = place(request)
    drawn = _TEMPLATES.get_template(template)
    return pages.draw(
        request,
        drawn,
        {"at": at, **values},
        status,
        files=f"{at}/static",
        headers=browser.NEVER_STORED,
        scripts=scripts,
    )


def redirect(request: Request, path: str) -> Response:
    return browser.redirect(request, PREFIX + path)


def shape(request: Request, error: ErrorCode, sentence: str) -> Response:
    """Show a refusal; or lead who is not signed in to the sign-in page, and then back."""
    if error.code == "not_signed_in":
        return redirect(request, f"/sign-in?to={quote(requested_page(request), safe='')}")
    base = request.scope.get("muniment.base", "")
    return pages.problem(
        request, error, sentence, [("Search", f"{base}{PREFIX}"), ("Go to the front page", f"{base}/")]
    )


def requested_page(request: Request) -> str:
    """Return path and query of the page below the prefix; for a form, the page to go back to that the endpoint has put
    into the request's scope, or an empty text.
    """
    if request.method != "GET":
        here: str = request.scope.get("muniment.search_page", "")
        return here
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["path"]
    return path.removeprefix(PREFIX) + (f"?{query}" if query else "")


def session_cookie(request: Request) -> str:
    return request.cookies.get(_cookie_name(request), "")


def set_session_cookie(response: Response, request: Request, value: str, *, gone: bool = False) -> None:
    """Set it until the browser closes; with ``gone``, remove it."""
    browser.set_cookie(response, request, _cookie_name(request), value, seconds=0 if gone else None)


def form_cookies(request: Request) -> list[str]:
    """Read the cookies that bind forms before a sign-in: two pages opened at once give two."""
    return [request.cookies[name] for name in _form_cookie_names(request)]


def set_form_cookie(response: Response, request: Request, value: str) -> None:
    browser.set_cookie(response, request, f"{_cookie_name(request)}-form-{value[:6]}", value)


def remove_form_cookies(response: Response, request: Request) -> None:
    for name in _form_cookie_names(request):
        browser.set_cookie(response, request, name, "", seconds=0)


def _form_cookie_names(request: Request) -> list[str]:
    beginning = f"{_cookie_name(request)}-form-"
    return [name for name in request.cookies if name.startswith(beginning)][:_MOST_FORM_COOKIES]


def form_mark(seal: Seal, bound_to: str) -> str:
    """Make the hidden field that proves a form ours, bound to a cookie's value."""
    return seal.seal(b"", _FORM, bound_to)


def check_form(request: Request, seal: Seal, mark: str, cookies: Sequence[str]) -> None:
    """Check that a form is ours, bound to one of the cookies, and not sent by another site.

    Raises Forged.
    """
    genuine = any(bound_to and _is_bound(seal, mark, bound_to) for bound_to in cookies)
    browser.require_ours(browser.form_mark(request, mark), genuine)


def _is_bound(seal: Seal, mark: str, bound_to: str) -> bool:
    try:
        seal.open(mark, _FORM, bound_to)
    except BadSeal:
        return False
    return True


def _cookie_name(request: Request) -> str:
    return browser.cookie_name(request, _COOKIE)
