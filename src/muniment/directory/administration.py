"""What may an administrator change, what ends with it, and what must hold afterwards?

The rules every surface keeps, because it calls these decisions: what takes a user's way in away ends every grant and
ticket they have (decision 0021), and somebody can always sign in to the administration.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.directory import memberships, resources, sessions
from muniment.directory.entries import editing, entries
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.oauth import access, tokens
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, NobodyAdministers, UnknownEntry, UnknownPartition
from muniment.directory.resources import Resource
from muniment.directory.sessions import SessionCount

FIRST_ADMINISTRATOR = "admin"
"""The name of the user who administers a new directory."""


class Dependents(NamedTuple):
    """What depended on a removed entry: its sessions, the groups it was in, its members, the resources it had."""

    ended: SessionCount
    groups: list[Entry]
    members: list[Entry]
    resources: list[Resource]


def members_of(cx: Connection, names: DirectoryNames, ids: Collection[str]) -> set[str]:
    """Give the ids of all users in the groups among these ids, however deep; what is no group is passed over."""
    waiting, seen, users = list[Entry](), set[int](), set[str]()
    for one in ids:
        with suppress(UnknownEntry, UnknownPartition, BadName):
            waiting.append(entries.find_group(cx, names, one))
    while waiting:
        group = waiting.pop()
        seen.add(group.id)
        for member in memberships.members(cx, group):
            if member.kind == "user":
                users.add(entries.shown_id(names, member))
            elif member.id not in seen:
                waiting.append(member)
    return users


def set_password(
    cx: Connection, user: Entry, password_hash: str | None, now: Instant, *, end_sessions: bool | None = None
) -> SessionCount:
    """Give a user a new password, which ends their sessions; or a client a new secret, which ends none.

    ``end_sessions`` says otherwise. Without a password nobody signs in as this user. Raises NobodyAdministers.
    """
    with _somebody_administers(cx):
        editing.set_password_hash(cx, user, password_hash, now)
        if end_sessions if end_sessions is not None else user.partition_built_in != CLIENTS:
            return sessions.end_of(cx, user, now)
        return SessionCount()


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> SessionCount:
    """Disable a user or client, which ends their sessions, or enable them again. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        editing.set_disabled(cx, user, disabled, now)
        return sessions.end_of(cx, user, now) if disabled else SessionCount()


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> SessionCount:
    """Lock a user or client out, which ends their sessions, or let them in again. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        editing.set_locked(cx, user, locked, now)
        return sessions.end_of(cx, user, now) if locked else SessionCount()


def sign_out(cx: Connection, user: Entry, now: Instant) -> SessionCount:
    """End every session of a user or client; they may sign in again."""
    access.one_at_a_time(cx)
    return sessions.end_of(cx, user, now)


def remove(cx: Connection, entry: Entry, now: Instant) -> Dependents:
    """Delete a user or client with their sessions, a group, an empty unit or an empty partition.

    Gives what depended on it. Raises BadName for built-in or filled ones, NobodyAdministers.
    """
    with _somebody_administers(cx):
        removed = Dependents(
            sessions.end_of(cx, entry, now) if entry.kind == "user" else SessionCount(),
            memberships.groups_of(cx, entry.id) if entry.kind in ("user", "group") else [],
            memberships.members(cx, entry) if entry.kind == "group" else [],
            resources.admitting(cx, entry),
        )
        editing.delete(cx, entry)
        return removed


def expel(cx: Connection, group: Entry, member: Entry) -> None:
    """Take a member out of a group; one that is not there stays out. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        memberships.remove_member(cx, group, member)


def expel_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    """Take an entry out of a resource's access role; one that is not there stays out. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        resources.remove_from_role(cx, resource, entry)


def remove_resource(cx: Connection, resource: Resource, now: Instant) -> SessionCount:
    """Delete a resource with its access role, and end its grants. Raises BadName for the built-in one."""
    access.one_at_a_time(cx)
    ended = SessionCount(tokens.end(cx, "resource", resource.id, now))
    resources.delete(cx, resource)
    return ended


@contextmanager
def _somebody_administers(cx: Connection) -> Iterator[None]:
    """Let a change be made in which the last user who can sign in to the administration stays one.

    Two such changes at one time follow each other, so each sees what the other left. Raises NobodyAdministers.
    """
    access.one_at_a_time(cx)
    before = _administered(cx)
    yield
    if before and not _administered(cx):
        raise NobodyAdministers(
            "Nobody could sign in to the administration any more, so nothing was changed: let another in first."
        )


def _administered(cx: Connection) -> bool:
    resource = resources.administration(cx)
    if resources.acting_in_role(cx, resource):
        return True
    containers = resources.role_containers(cx, resource)
    if memberships.acting_in(cx, [one.id for one in containers if one.kind == "group"]):
        return True
    return any(_acts_in(cx, one) for one in containers if one.kind != "group")


def _acts_in(cx: Connection, container: Entry) -> bool:
    """Say whether a user who can sign in lies in a unit or a partition, however deep: a question for each unit."""
    waiting = [container]
    while waiting:
        one = waiting.pop()
        if cx.execute(sa.select(entries.acting(sa.literal(one.id), "parent_id"))).scalar_one():
            return True
        waiting += entries.units_in(cx, one)
    return False
