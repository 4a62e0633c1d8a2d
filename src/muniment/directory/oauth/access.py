"""May this client act for this user at this resource, and what does the resource learn of the user?

Sources: given 2.7, 5.2, 7. The answer is remembered under the directory's generation, which each request reads anew
(decision 0057).
"""

from typing import NamedTuple, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import attributes, entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AccessEnded
from muniment.ground.caches import Cache


class Question(NamedTuple):
    """``client_id`` is None for a ticket, which belongs to no client."""

    client_id: int | None
    user_id: int
    resource_id: str


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
    UnknownResource, and AccessEnded if the answer is no.
    """
    if (remembered := memory.recall(question, generation)) is not None:
        return remembered
    resource = resources.by_id(cx, question.resource_id)
    if resource.activated is None or not resource.authentication_enabled:
        raise AccessEnded("The resource lets nobody in now.")
    if question.client_id is not None:
        client = entries.by_id(cx, question.client_id)
        if client is None or not client.live:
            raise AccessEnded("The client of this token may not act any more.")
    user = resources.require_access(cx, question.user_id, resource.id)
    answer = Access(describe(cx, names, user), user.has_password, resources.scope(names, resource))
    return memory.keep(question, answer, len(msgspec.json.encode(answer)), generation)


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
