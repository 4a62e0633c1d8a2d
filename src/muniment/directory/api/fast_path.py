"""Answer token requests, tokeninfo and introspection by the short ways of ``web.fast_path`` (given 4.1, 4.3, decision
0057).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from starlette.requests import Request
from starlette.types import Scope

from muniment.directory.api import oauth, protocol, spelling
from muniment.directory.console import sign_in
from muniment.directory.context import Directory
from muniment.directory.oauth import tokeninfo as token_verification
from muniment.directory.oauth.tokeninfo import QuestionDigest
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

_Digest: TypeAlias = Callable[[Scope, bytes], QuestionDigest]


def _tokeninfo(_scope: Scope, body: bytes) -> QuestionDigest:
    return token_verification.question_digest(body)


def _recall(digest: _Digest, requests: Sequence[tuple[Scope, bytes]], directory: Directory) -> Sequence[bytes | None]:
    present = directory.transactions.glance_without_waiting(BOTH)
    if present is None:
        return [None] * len(requests)
    marks, now = VersionStamps(*present), directory.clock()
    return [token_verification.recall(directory.answers, marks, digest(*each), now) for each in requests]


async def _answer(digest: _Digest, scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    present = await oauth.read_marks(directory)
    return token_verification.recall(directory.answers, present, digest(scope, body), directory.clock())


def _from_memory(digest: _Digest, media_type: bytes) -> FastPathAtOnce[Directory]:
    return FastPathAtOnce(partial(_answer, digest), media_type, _HEADERS, partial(_recall, digest))


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


TOKENINFO = _from_memory(_tokeninfo, b"application/json")

INTROSPECTION = _from_memory(protocol.question_digest, _FORM)

REFRESH = FastPathAtOnce(_refresh, _FORM, _HEADERS)
"""A refresh leaves no security event: nobody signs in."""

LOGIN = FastPath(_token, _FORM, _HEADERS)
"""Not for forms of the sign-in page."""
