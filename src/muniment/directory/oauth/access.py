"""May this client act for this user at this resource, and how is the user shown there (given 2.7, 5.2, 7)?

The answer hangs on entries, memberships, attributes and access roles, which change seldom and are asked about all the
time. So it is remembered for as long as the directory's generation stands: a random mark, which triggers in the
database renew at every write to those tables, whoever writes (decision 0011). Each request reads it anew.
"""

import threading
from collections import OrderedDict
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import directory_tables
from muniment.directory import attributes, memberships, resources
from muniment.directory.attributes import Attribute
from muniment.directory.entries import entries
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AccessEnded

_generation = sa.Table(
    "generation",
    directory_tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("mark", sa.String(36), nullable=False),
)


class Question(NamedTuple):
    """May this client act for this user at this resource, asked of the directory as it is in this generation."""

    generation: str
    client_id: int
    user_id: int
    resource_id: str


class User(msgspec.Struct, frozen=True):
    """A user as the wire shows him (given 2.7)."""

    user_partition_id: str
    name: str
    location: str
    id: str
    description: str
    values: list[Attribute]
    object_class: str
    custom_attributes: None
    url_location: str
    url_id: str


class Access(msgspec.Struct, frozen=True):
    """What a client that may act for a user at a resource is told of them."""

    user: User
    has_password: bool
    scope: str


class AccessMemory:
    """One process's answers, of ``limit`` bytes at most as they are encoded: a new one takes the oldest ones' place.

    The generation is part of the question, so an answer of another generation is never given.
    """

    def __init__(self, limit: int = 16_777_216) -> None:
        self._answers: OrderedDict[Question, tuple[Access, int]] = OrderedDict()
        self._room = limit
        self._changing = threading.Lock()

    def recall(self, question: Question) -> Access | None:
        """Return the answer remembered, if there is one."""
        known = self._answers.get(question)
        return None if known is None else known[0]

    def keep(self, question: Question, answer: Access) -> None:
        """Remember an answer."""
        size = len(msgspec.json.encode(answer))
        with self._changing:
            if question in self._answers:
                return
            self._answers[question] = answer, size
            self._room -= size
            while self._room < 0:
                _, (_, freed) = self._answers.popitem(last=False)
                self._room += freed


def generation() -> sa.ScalarSelect[str]:
    """The directory's generation, for use in another noun's statement."""
    return sa.select(_generation.c.mark).scalar_subquery()


def one_at_a_time(cx: Connection) -> None:
    """Let other decisions that change who may do what wait until this one is committed.

    What it then reads is what they left. On SQLite a write transaction is alone anyway.
    """
    cx.execute(sa.select(_generation.c.mark).with_for_update())


def decide(cx: Connection, memory: AccessMemory, names: DirectoryNames, question: Question) -> Access:
    """Say what the client is told of the user at the resource; the generation was read in the same transaction.

    Raises UnknownResource, AccessEnded.
    """
    if (known := memory.recall(question)) is not None:
        return known
    resource = resources.by_id(cx, question.resource_id)
    client = entries.by_id(cx, question.client_id)
    if client is None or not client.live:
        raise AccessEnded("The client of this token may not act any more.")
    user = resources.require_access(cx, question.user_id, resource.id)
    answer = Access(_shown(cx, names, user), user.has_password, resources.scope(names, resource))
    memory.keep(question, answer)
    return answer


def _shown(cx: Connection, names: DirectoryNames, user: Entry) -> User:
    location, user_id = entries.location(names, user), entries.shown_id(names, user)
    partition = entries.shown_partition(names, user)
    groups = memberships.groups_of(cx, user.id)
    facts = attributes.Facts(
        name=user.name,
        partition=partition,
        location=location,
        uuid=user.uuid,
        disabled=user.disabled,
        locked=user.locked,
        password_never_expires=user.password_never_expires,
        must_change_password=user.must_change_password,
        cannot_change_password=user.cannot_change_password,
        created=user.created,
        modified=user.modified,
        groups=[entries.location(names, group) for group in groups],
        group_uuids=[group.uuid for group in groups],
    )
    return User(
        user_partition_id=partition,
        name=user.name,
        location=location,
        id=user_id,
        description=user.description,
        values=attributes.of_user(cx, names, user.id, facts),
        object_class=names.object_class,
        custom_attributes=None,
        url_location=location,
        url_id=user_id,
    )
