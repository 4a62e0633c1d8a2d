"""Activate a resource, and return its secret, which no later call returns (given 4.5)."""

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.administration import decisions
from muniment.directory.api import spelling
from muniment.directory.context import Directory
from muniment.directory.entries import entries, resources
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AlreadyActivated,
    NotAdministrator,
    NotSignedIn,
    UnknownResource,
)
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.web.answers.responses import ErrorCode, Table, json_response

ACTIVATION: Table = {
    NotSignedIn: ErrorCode(401, "not_signed_in"),
    NotAdministrator: ErrorCode(403, "not_administrator"),
    UnknownResource: ErrorCode(404, "unknown_resource"),
    AlreadyActivated: ErrorCode(409, "already_activated"),
}


class ResourceSecret(msgspec.Struct):
    """The secret of a resource, under two names. No later answer repeats it."""

    secret_key: str
    secretKey: str  # noqa: N815 - the name on the wire


@events.tells("activation")
async def activate(request: Request, directory: Directory) -> Response:
    """Activate a resource, which happens once."""
    event = events.begin(request.scope, "activation")
    token, resource_id = bearer(request), request.path_params["resource_id"]
    secret = await directory.transactions.write(
        _activate, directory.options.names, token, resource_id, event, directory.clock()
    )
    return json_response(ResourceSecret(secret, secret), headers=spelling.NEVER_STORED)


def bearer(request: Request) -> str:
    """From the Authorization header (RFC 6750 2.1). Raises NotSignedIn."""
    values = request.headers.getlist("authorization")
    scheme, _, token = (values[0] if len(values) == 1 else "").strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotSignedIn("Sign in first: this address needs the header 'Authorization: Bearer <access token>'.")
    return token.strip()


def _activate(
    cx: Connection, names: DirectoryNames, token: str, resource_id: str, event: events.Event, now: Instant
) -> str:
    event.who = entries.shown_id(names, decisions.administrator_of(cx, token, now))
    secret = resources.activate(cx, resource_id, now)
    event.on = resources.shown_name(names, resources.by_id(cx, resource_id))
    return secret
