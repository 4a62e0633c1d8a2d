"""End the grant of a token, at the request of the token's holder (given 3, 4.4)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.oauth import tokens
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownResource, UnparseableToken
from muniment.ground.clock import Instant


class Revocation(msgspec.Struct, frozen=True):
    """None stands for the name of what was deleted."""

    user: str | None
    client: str | None
    resource: str | None


def revoke(cx: Connection, names: DirectoryNames, token: str, now: Instant) -> Revocation | None:
    """None if the grant had ended before or the token was purged. Raises UnparseableToken."""
    grant = tokens.revoke(cx, tokens.parse(cx, token), now)
    return None if grant is None else _told(cx, names, grant)


def revoke_own(cx: Connection, names: DirectoryNames, token: str, client_id: int, now: Instant) -> Revocation | None:
    """For the client that holds the token alone (RFC 7009 2.1). None, and no change, for any other text."""
    try:
        parsed = tokens.parse(cx, token)
    except UnparseableToken:
        return None
    grant = tokens.revoke_own(cx, parsed, client_id, now)
    return None if grant is None else _told(cx, names, grant)


def _told(cx: Connection, names: DirectoryNames, grant: tokens.Grant) -> Revocation:
    user, client = entries.by_id(cx, grant.user_id), entries.by_id(cx, grant.client_id)
    return Revocation(
        None if user is None else entries.shown_id(names, user),
        None if client is None else client.name,
        _resource_name(cx, names, grant.resource_id),
    )


def _resource_name(cx: Connection, names: DirectoryNames, resource_id: str) -> str | None:
    try:
        return resources.shown_name(names, resources.by_id(cx, resource_id))
    except UnknownResource:
        return None
