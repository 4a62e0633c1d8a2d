"""Answer token requests, tokeninfo and introspection by the short ways of ``web.fast_path`` (given 4.1, 4.3, decision
0057).
"""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.types import Scope

from muniment.directory.api import oauth, protocol, spelling
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.oauth import introspection
from muniment.directory.oauth import tokeninfo as token_verification
from muniment.directory.version_stamps import BOTH, VersionStamps
from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.web.fast_path import FastPath, FastPathAtOnce
from muniment.web.requests import bodies

_HEADERS = (
    (b"content-type", b"application/json"),
    *((name.lower().encode(), value.encode()) for name, value in spelling.NEVER_STORED.items()),
)

_REFRESH = b"refresh_token"


_FORM = b"application/x-www-form-urlencoded"


def _recall(requests: Sequence[tuple[Scope, bytes]], directory: Directory) -> Sequence[bytes | None]:
    present = directory.transactions.glance_without_waiting(BOTH)
    if present is None:
        return [None] * len(requests)
    marks, now = VersionStamps(*present), directory.clock()
    return [token_verification.recall(directory.answers, marks, body, now) for _, body in requests]


def _recall_introspections(requests: Sequence[tuple[Scope, bytes]], directory: Directory) -> Sequence[bytes | None]:
    present = directory.transactions.glance_without_waiting(BOTH)
    if present is None:
        return [None] * len(requests)
    marks, now = VersionStamps(*present), directory.clock()
    questions = (protocol.question_of(*each) for each in requests)
    return [introspection.recall(directory.answers, marks, question, now) for question in questions]


async def _tokeninfo(_scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    present = await oauth.read_marks(directory)
    return token_verification.recall(directory.answers, present, body, directory.clock())


async def _introspection(scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    present = await oauth.read_marks(directory)
    return introspection.recall(directory.answers, present, protocol.question_of(scope, body), directory.clock())


@events.tells("sign-in", "pause", "impersonation")
async def _token(scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    form = _form(body, directory)
    return None if form is None else await oauth.token(Request(scope), directory, form)


async def _refresh(scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    if _REFRESH not in body:
        return None
    form = _form(body, directory)
    if form is None or form.get("grant_type") != "refresh_token":
        return None
    return await oauth.token(Request(scope), directory, form)


def _form(body: bytes, directory: Directory) -> Mapping[str, str] | None:
    try:
        form = bodies.form_fields(body, "The form")
    except Malformed:
        return None
    return None if sign_in.is_form(form, directory) else form


TOKENINFO = FastPathAtOnce(_tokeninfo, b"application/json", _HEADERS, _recall)

INTROSPECTION = FastPathAtOnce(_introspection, _FORM, _HEADERS, _recall_introspections)

REFRESH = FastPathAtOnce(_refresh, _FORM, _HEADERS)
"""A refresh leaves no security event: nobody signs in."""

LOGIN = FastPath(_token, _FORM, _HEADERS)
"""Not for forms of the sign-in page."""
