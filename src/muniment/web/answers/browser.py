"""What do our pages keep in a browser, and does a form that comes back belong to one of them?"""

import secrets
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from muniment.ground.refusals import Forged
from muniment.web.answers import pages

NEVER_STORED = {"Cache-Control": "no-store"}

REFUSED = "That did not work. Check the user name and the password; if they are right, an administrator can help."


class FormMark(NamedTuple):
    """A form's hidden field, and whether another site's page sent it."""

    text: str
    foreign: bool


def redirect(request: Request, path: str) -> Response:
    return RedirectResponse(pages.base_path(request) + path, 303, NEVER_STORED)


def cookie_name(request: Request, name: str) -> str:
    """Over TLS, only this host can set it (RFC 6265bis 4.1.3.2)."""
    return f"__Host-{name}" if request.scope["scheme"] == "https" else name


def set_cookie(
    response: Response, request: Request, name: str, value: str, *, path: str = "/", seconds: int | None = None
) -> None:
    """With None it lasts until the browser closes, with 0 it ends at once.

    Over plain HTTP a browser would not keep a Secure one.
    """
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="Lax",  # type: ignore[arg-type] # as RFC 6265bis spells it
    )


def new_mark() -> str:
    return secrets.token_urlsafe(24)


def form_mark(request: Request, text: str) -> FormMark:
    """``text`` is its hidden field's value."""
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    return FormMark(text, foreign)


def require_ours(mark: FormMark, genuine: bool) -> None:
    """Raise Forged if the mark is not ``genuine``, or the browser says that another site sent the form."""
    if mark.foreign or not genuine:
        raise Forged("This form has expired, or does not come from a page of this server. Open the page again.")


async def static(request: Request, _context: object) -> Response:
    """Fetch a file that the pages use."""
    return pages.file(request.path_params["name"])
