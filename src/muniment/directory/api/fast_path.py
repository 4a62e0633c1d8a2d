"""Answer token requests, tokeninfo and introspection by the short ways of ``web.fast_path`` (given 4.1, 4.3, decision
0057).
"""

from collections.abc import Callable, Sequence
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
from muniment.web.fast_path import FastPath
from muniment.web.requests import bodies

_HEADERS = (
    (b"content-type", b"application/json"),
    *((name.lower().encode(), value.encode()) for name, value in spelling.NEVER_STORED.items()),
)

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


def _from_memory(digest: _Digest, media_type: bytes) -> FastPath[Directory]:
    return FastPath(partial(_answer, digest), media_type, _HEADERS, partial(_recall, digest))


async def _token(scope: Scope, body: bytes, directory: Directory) -> bytes | None:
    """Leaves forms of the sign-in page to the endpoint."""
    form = bodies.form_fields(body, "The form")
    return None if sign_in.is_form(form, directory) else await oauth.token(Request(scope), directory, form)


TOKENINFO = _from_memory(_tokeninfo, b"application/json")

INTROSPECTION = _from_memory(protocol.question_digest, _FORM)

TOKEN = FastPath(_token, _FORM, _HEADERS)
