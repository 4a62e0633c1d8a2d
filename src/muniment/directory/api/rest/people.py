"""Whom does a resource let in? It asks itself, by its own secret: so does a repository whose directory runs elsewhere
(decision 0113).
"""

from contextlib import suppress
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory.api.rest import identifiers
from muniment.directory.api.rest.callers import Caller, RequiredRight
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.resources import OwnSecret
from muniment.directory.entries.resources import Resource
from muniment.directory.refusals import NotSignedIn, UnknownResource
from muniment.directory.sign_in import programs
from muniment.ground import events
from muniment.web.answers.responses import ErrorCode


class QuestionOfResource(OwnSecret, kw_only=True):
    """The resource's own secret, and what it asks about the users and groups whom it lets in."""

    question: dict[str, Any] = msgspec.field(default_factory=dict)


class AnswerToResource(msgspec.Struct):
    """The answer, as repositories read it."""

    answer: dict[str, Any]


@events.tells()
async def tell(call: Call) -> Response:
    """Tell a resource whom it lets in, by its own secret."""
    body = await call.body(QuestionOfResource)
    # Who shows no secret takes no turn from others.
    resource = await call.read(_resource, call, body)
    return call.answer(await call.read_long(resource.id, _answer, call, body))


def _resource(cx: Connection, _: Caller, call: Call, body: QuestionOfResource) -> Resource:
    named, secret = call.part("resource"), next(filter(None, body.secrets), "")
    with suppress(UnknownResource):
        named = identifiers.find_resource(cx, call.names, named).id
    return programs.resource_by_secret(cx, named, secret)


def _answer(cx: Connection, caller: Caller, call: Call, body: QuestionOfResource) -> AnswerToResource:
    resource = _resource(cx, caller, call, body)
    return AnswerToResource(call.directory.dependencies.whom_it_lets_in(cx, resource, body.question))


ROWS = (
    Row(
        "/resources/{resource}/people",
        {"POST": Method(tell, AnswerToResource, right=RequiredRight.OPEN, body=QuestionOfResource)},
        {NotSignedIn: ErrorCode(401, "not_signed_in")},
    ),
)
