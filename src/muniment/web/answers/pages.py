"""How does a page look, and what does a person read when a request is refused (decision 0101)?

The search page has a script, and so has the page that posts an answer to an application. No page loads anything from
elsewhere.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jinja2
import markupsafe
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.refusals import UnknownAddress
from muniment.web.answers.responses import ErrorCode

Way = tuple[str, str]

_POLICY = (
    "default-src 'none'; style-src {style}; {scripts}img-src 'self'; form-action {forms}; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_MEDIA_TYPES = {".css": "text/css", ".svg": "image/svg+xml", ".js": "text/javascript"}


class _Wording(NamedTuple):
    """An empty ``sentence`` stands for the refusal's own."""

    heading: str
    advice: str = ""
    sentence: str = ""


_WORDINGS: Mapping[int, _Wording] = {
    400: _Wording("This request cannot be read", "If you followed a link, a part of it may be missing."),
    403: _Wording("This is not allowed"),
    404: _Wording(
        "Page not found",
        "The address may have a typing error, or the page is gone.",
        "There is nothing at this address.",
    ),
    405: _Wording(
        "This page cannot do that",
        "Open the page from a link, and try again from there.",
        "Your browser sent something that this page does not take.",
    ),
    408: _Wording("That took too long", "Check your connection, and try again."),
    413: _Wording("That is too large"),
    500: _Wording(
        "Something went wrong",
        "Try again in a moment. If it happens again, tell the people who run this server.",
        "The server has made a mistake, not you.",
    ),
    503: _Wording("The server is busy", "Wait a moment, then load the page again."),
    507: _Wording("The server cannot store this", "Tell the people who run this server."),
}
_OTHERWISE = _Wording("That did not work")


def _files() -> dict[str, bytes]:
    folder = resources.files("muniment.web") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


_STATIC = _files()
_VERSION = hashlib.sha256(b"".join(_STATIC[name] for name in sorted(_STATIC))).hexdigest()[:12]
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STATIC["style.css"]).digest()).decode("ascii")
_STYLE = markupsafe.Markup(_STATIC["style.css"].decode("utf-8"))  # noqa: S704 - our own file
_MARK = markupsafe.Markup(_STATIC["icon.svg"].decode("utf-8"))  # noqa: S704 - our own file


def templates(package: str) -> jinja2.Environment:
    """These templates may extend ``frame.html``."""
    loaders = [jinja2.PackageLoader(name) for name in dict.fromkeys((package, "muniment.web"))]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def base_path(request: Request) -> str:
    """Without a slash at its end; it may be empty."""
    return urlsplit(request.scope.get("muniment.base", "")).path.rstrip("/")


def draw(
    request: Request,
    template: jinja2.Template,
    values: Mapping[str, Any],
    status: int = 200,
    *,
    files: str | None,
    headers: Mapping[str, str] | None = None,
    scripts: bool = False,
    forms: Sequence[str] = ("'self'",),
) -> Response:
    """The page's stylesheet and icon are below the address ``files``; with None the stylesheet is part of it.

    So it shows even if the server refuses the stylesheet, as over plain HTTP. ``forms`` are the places to which its
    forms may be sent, also by a redirect (CSP 3, ``form-action``).
    """
    text = template.render(
        home=f"{request.scope.get('muniment.base', '')}/",
        mark=_MARK,
        style=_STYLE if files is None else None,
        static=lambda name: f"{files}/{name}?{_VERSION}",
        **values,
    )
    policy = _POLICY.format(
        style="'self'" if files is not None else f"'sha256-{_STYLE_HASH}'",
        scripts="script-src 'self'; connect-src 'self'; " if scripts else "",
        forms=" ".join(forms),
    )
    return Response(text, status, {"Content-Security-Policy": policy, **(headers or {})}, media_type="text/html")


def problem(request: Request, code: ErrorCode, sentence: str, ways: Sequence[Way]) -> Response:
    """Links must be whole addresses: over plain HTTP, where TLS is required, a path leads back here."""
    wording = _WORDINGS.get(code.status, _OTHERWISE)
    values = {
        "heading": wording.heading,
        "sentence": wording.sentence or sentence,
        "advice": wording.advice,
        "ways": ways,
        "request_id": request.scope.get("muniment.request_id", "") if code.status >= 500 else "",
    }
    return draw(request, _PROBLEM, values, code.status, files=None, headers={"Cache-Control": "no-store"})


def file(name: str) -> Response:
    """Browsers may keep it for a year: a changed file gets a new address. Raises UnknownAddress."""
    if name not in _STATIC:
        raise UnknownAddress("There is nothing at this address.")
    media_type = _MEDIA_TYPES["." + name.rpartition(".")[2]]
    return Response(_STATIC[name], 200, {"Cache-Control": "max-age=31536000, immutable"}, media_type)


_PROBLEM = templates("muniment.web").get_template("problem.html")
