"""May this client act for this user at this resource, and what does the resource learn of the user?

Sources: given 2.7, 5.2, 7. The answer is remembered under the directory's generation, which each request reads anew
(decision 0057).
"""

from typing import NamedTuple, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import attributes, entries, memberships, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AccessEnded, CannotImpersonate, WrongResource
from muniment.directory.sign_in import impersonation
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.caches import Cache


class Question(NamedTuple):
    """``client_id`` is None for a ticket, which belongs to no client. With ``exchanged`` the client got its token by an
    exchange, perhaps for an actor.
    """

    client_id: int | None
    user_id: int
    resource_id: str
    exchanged: bool = False
    actor_id: int | None = None


class User(msgspec.Struct, frozen=True):
    """A user on the wire (given 2.7)."""

    user_partition_id: str
    name: str
    location: str
    id: str
    description: str
    values: list[attributes.Attribute]
    object_class: str
    custom_attributes: None
    url_location: str
    url_id: str


class Access(msgspec.Struct, frozen=True):
    """The user, whether they have a password, and the scope."""

    user: User
    has_password: bool
    scope: str


AccessCache: TypeAlias = Cache[Question, Access]


def decide(cx: Connection, memory: AccessCache, names: DirectoryNames, question: Question, generation: str) -> Access:
    """Without a client, about the user's access only. ``generation`` must come from the same transaction. Raises
    WrongResource for a token without a resource, UnknownResource, and AccessEnded if the answer is no.
    """
    if (remembered := memory.recall(question, generation)) is not None:
        return remembered
    require_some_resource(question)
    resource, user = require(cx, question, names)
    assert resource is not None  # noqa: S101 - the question names one
    answer = Access(describe(cx, names, user), user.has_password, resources.scope(names, resource))
    return memory.keep(question, answer, len(msgspec.json.encode(answer)), generation)


class Allowed(NamedTuple):
    """A question's resource, if it has one, and its user, who may act there."""

    resource: Resource | None
    user: Entry


def require(cx: Connection, question: Question, names: DirectoryNames) -> Allowed:
    """Without a resource, the user need only be there. Raises UnknownResource, and AccessEnded if the answer is no."""
    resource = resources.by_id(cx, question.resource_id) if question.resource_id else None
    if resource is not None and (resource.activated is None or not resource.authentication_enabled):
        raise AccessEnded("The resource lets nobody in now.")
    if question.client_id is not None:
        client = entries.by_id(cx, question.client_id)
        if client is None or not client.live:
            raise AccessEnded("The client of this token may not act any more.")
    if question.exchanged:
        _require_exchange(cx, question, resource, names)
    if resource is not None:
        return Allowed(resource, resources.require_access(cx, question.user_id, resource.id))
    user = entries.by_id(cx, question.user_id)
    if user is None or not user.live:
        raise AccessEnded("The user may not act any more.")
    return Allowed(None, user)


def _require_exchange(cx: Connection, question: Question, resource: Resource | None, names: DirectoryNames) -> None:
    """The client may still act as this user, and its actor still act at all. Raises AccessEnded."""
    by_client = Ticket(
        user_id=question.user_id,
        resource_id=question.resource_id,
        expires=0,
        made="for_user",
        by_client_id=question.client_id,
    )
    try:
        impersonation.require(cx, names, by_client, resource)
    except CannotImpersonate as refusal:
        raise AccessEnded(refusal.sentence) from refusal
    actor = None if question.actor_id is None else entries.by_id(cx, question.actor_id)
    if question.actor_id is not None and (actor is None or not actor.live):
        raise AccessEnded("The actor of this token may not act any more.")


def require_some_resource(question: Question) -> None:
    """Raises WrongResource for a token that is good for userinfo alone."""
    if not question.resource_id:
        raise WrongResource("The token was issued for no resource. It is good for userinfo alone.")


def describe(cx: Connection, names: DirectoryNames, user: Entry) -> User:
    location, user_id = entries.location(names, user), entries.shown_id(names, user)
    partition = entries.shown_partition(names, user)
    groups = {entries.location(names, group): group.uuid for group in memberships.groups_of(cx, user.id)}
    return User(
        user_partition_id=partition,
        name=user.name,
        location=location,
        id=user_id,
        description=user.description,
        values=attributes.of_user(cx, names, user, partition, location, groups),
        object_class=names.object_class,
        custom_attributes=None,
        url_location=location,
        url_id=user_id,
    )
