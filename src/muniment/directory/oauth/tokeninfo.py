"""Verify an access token or a ticket, and say whose it is (given 2.6, 4.3, 7)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant, timestamp
from muniment.directory import resources
from muniment.directory.oauth import access, tokens
from muniment.directory.oauth.access import AccessMemory, Question, User
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import AccessEnded, WrongResource
from muniment.directory.sign_in import tickets
from muniment.web.refusals import Refusal


class TokenInfo(msgspec.Struct, frozen=True):
    """The answer of tokeninfo (given 2.6)."""

    user: User
    expiry_time: str
    token_id: str
    scopes: list[str]
    data_map: dict[str, str]


def verify(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    """Return whose access token this is. ``resource_id`` must be the resource for which it was issued.

    Raises UnknownResource, UnparseableToken, WrongResource, DeadToken, AccessEnded. The first reason in this order
    counts.
    """
    try:
        return _verify(cx, options, memory, token, resource_id, now)
    except Refusal:
        # If the resource is unknown too, that is the refusal.
        resources.by_id(cx, resource_id)
        raise


class TicketInfo(msgspec.Struct, frozen=True):
    """What a repository learns of a ticket, ready to encode: its user, as tokeninfo shows them."""

    user: User


def verify_ticket(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, ticket: str, resource_id: str, now: Instant
) -> TicketInfo:
    """Return whose ticket this is, at any resource in whose access role they are (given 5.2).

    Raises UnknownResource, NotSignedIn when the ticket is over, AccessEnded.
    """
    resource = resources.by_id(cx, resource_id)
    held = tickets.read(cx, ticket, now)
    if resource.activated is None:
        raise AccessEnded("This resource has not been activated yet.")
    question = Question(access.read_generation(cx), None, held.user_id, resource.id)
    return TicketInfo(access.decide(cx, memory, options.names, question).user)


def _verify(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    state = tokens.state_of(cx, token)
    if not resources.is_same_id(resource_id, state.grant.resource_id):
        raise WrongResource("The token was issued for another resource.")
    state.require_alive(now)
    answer = access.decide(cx, memory, options.names, state.grant.question(state.generation))
    return TokenInfo(
        user=answer.user,
        expiry_time=timestamp(state.expires),
        token_id=state.token_id,
        scopes=[answer.scope],
        data_map={options.names.has_password: "true" if answer.has_password else "false"},
    )
