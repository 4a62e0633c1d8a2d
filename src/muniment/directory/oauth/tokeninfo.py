"""Whose token is this (given 2.6, 4.3, 7)?"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant, timestamp
from muniment.directory import resources
from muniment.directory.oauth import access, tokens
from muniment.directory.oauth.access import AccessMemory, User
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import WrongResource
from muniment.web.refusals import Refusal


class TokenInfo(msgspec.Struct, frozen=True):
    """What tokeninfo replies (given 2.6), ready to encode."""

    user: User
    expiry_time: str
    token_id: str
    scopes: list[str]
    data_map: dict[str, str]


def verify(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    """Say whose token this is, for the resource it was issued for.

    Raises, in this order, UnknownResource, UnparseableToken, WrongResource, DeadToken, AccessEnded.
    """
    try:
        return _verified(cx, options, memory, token, resource_id, now)
    except Refusal:
        # Whatever else is wrong, an unknown resource is said first.
        resources.by_id(cx, resource_id)
        raise


def _verified(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    standing = tokens.state_of(cx, token)
    if not resources.same(resource_id, standing.grant.resource_id):
        raise WrongResource("The token was issued for another resource.")
    standing.require_alive(now)
    found = access.decide(cx, memory, options.names, standing.grant.question(standing.generation))
    return TokenInfo(
        user=found.user,
        expiry_time=timestamp(standing.expires),
        token_id=standing.token_id,
        scopes=[found.scope],
        data_map={options.names.has_password: "true" if found.has_password else "false"},
    )
