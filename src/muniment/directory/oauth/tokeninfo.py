"""Verify an access token or a ticket, and say whose it is (given 2.6, 4.3, 7).

The bytes of an answer are remembered under both of the directory's marks, refusals never (decision 0057).
"""

import hashlib
from typing import NamedTuple, NewType, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import resources
from muniment.directory.oauth import access, tokens
from muniment.directory.oauth.access import AccessCache, Question, User
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import WrongResource
from muniment.directory.sign_in import holders
from muniment.ground.caches import Cache
from muniment.ground.clock import Instant, timestamp
from muniment.ground.refusals import Refusal

_ENTRY_BYTES = 400
"""About how many bytes a remembered answer takes beside its document."""


class TokenInfo(msgspec.Struct, frozen=True):
    """The answer of tokeninfo (given 2.6)."""

    user: User
    expiry_time: str
    token_id: str
    scopes: list[str]
    data_map: dict[str, str]


class TokenAnswer(NamedTuple):
    """As JSON, and when the token expires."""

    document: bytes
    expires: Instant


QuestionDigest = NewType("QuestionDigest", bytes)
"""A digest of the bytes of a question, and no question itself."""

AnswerCache: TypeAlias = Cache[QuestionDigest, TokenAnswer]
"""By digests, so that memory holds no token, each with its two marks.

The same bytes always ask the same question.
"""


def recall(
    answers: AnswerCache, present: version_stamps.VersionStamps, digest: QuestionDigest, now: Instant
) -> bytes | None:
    """None if the answer must be worked out: once the token has expired or a mark differs from ``present``."""
    remembered = answers.recall(digest, present)
    return remembered.document if remembered is not None and now < remembered.expires else None


def remember(answers: AnswerCache, digest: QuestionDigest, document: bytes, state: tokens.TokenState) -> None:
    """Keep what has been answered about a living token, until it expires or one of its marks changes."""
    answer = TokenAnswer(document, min(state.expires, state.grant.expires))
    answers.keep(digest, answer, len(document) + _ENTRY_BYTES, state.marks)


def question_digest(question: bytes) -> QuestionDigest:
    """Under which the answer to these bytes is remembered."""
    return QuestionDigest(hashlib.sha256(question).digest())


def tokeninfo_answer(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessCache,
    answers: AnswerCache,
    question: bytes,
    token: str,
    resource_id: str,
    now: Instant,
) -> bytes:
    """Remember it under ``question``, whose bytes never ask anything else. Raises what ``verify`` raises."""
    info, state = verify(cx, options, memory, token, resource_id, now)
    document = msgspec.json.encode(info)
    remember(answers, question_digest(question), document, state)
    return document


def verify(
    cx: Connection, options: DirectoryOptions, memory: AccessCache, token: str, resource_id: str | None, now: Instant
) -> tuple[TokenInfo, tokens.TokenState]:
    """The token must have been issued for ``resource_id``, unless that is None. Raises, the first in this order:
    UnknownResource, UnparseableToken, WrongResource, DeadToken, AccessEnded. Of a purged token the resource is not
    known: never WrongResource.
    """
    try:
        state = tokens.state_of(cx, token)
        if resource_id is not None and not resources.is_same_id(resource_id, state.grant.resource_id):
            raise WrongResource("The token was issued for another resource.")
        state.require_alive(now)
        access_of_user = access.decide(cx, memory, options.names, state.grant.question, state.marks.generation)
    except Refusal:
        # If the resource is unknown too, UnknownResource is raised instead.
        if resource_id is not None:
            resources.by_id(cx, resource_id)
        raise
    info = TokenInfo(
        user=access_of_user.user,
        expiry_time=timestamp(state.expires),
        token_id=state.token_id,
        scopes=[access_of_user.scope],
        data_map={options.names.has_password: "true" if access_of_user.has_password else "false"},
    )
    return info, state


class TicketInfo(msgspec.Struct, frozen=True):
    """What a repository learns of a ticket: its user, in the form in which tokeninfo shows users."""

    user: User


def verify_ticket(
    cx: Connection, options: DirectoryOptions, memory: AccessCache, ticket: str, resource_id: str, now: Instant
) -> TicketInfo:
    """A ticket is valid wherever the user is in the access role, or at its target alone (ours 10). Raises
    UnknownResource; NotSignedIn if it has ended; AccessEnded without access, or if the resource is not activated.
    """
    resource = resources.by_id(cx, resource_id)
    user_id = holders.at_resource(cx, options.names, ticket, resource, now).user_id
    question = Question(None, user_id, resource.id)
    generation = version_stamps.read_generation(cx)
    return TicketInfo(access.decide(cx, memory, options.names, question, generation).user)


def verify_elsewhere(
    cx: Connection, options: DirectoryOptions, memory: AccessCache, token: str, resource_id: str, now: Instant
) -> TicketInfo:
    """Verify an access token for another resource, whose user has access to this one too.

    Only who gave it out after a sign-in of theirs may ask so: the search page (decision 0101). Raises UnknownResource,
    UnparseableToken, DeadToken; AccessEnded without access, or if the resource is not activated.
    """
    resource = resources.by_id(cx, resource_id)
    state = tokens.state_of(cx, token)
    state.require_alive(now)
    access.require_some_resource(state.grant.question)
    question = state.grant.question._replace(resource_id=resource.id)
    return TicketInfo(access.decide(cx, memory, options.names, question, state.marks.generation).user)
