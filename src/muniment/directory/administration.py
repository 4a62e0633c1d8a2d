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
from muniment.directory import memberships, resources, sessions, system
from muniment.directory.entries import editing, entries
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.names import split_user_id, user_id
from muniment.directory.oauth import access, tokens
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    BadName,
    DeadToken,
    NobodyAdministers,
    NotAdministrator,
    NotSignedIn,
    UnknownEntry,
    UnknownPartition,
    UnknownResource,
    UnparseableToken,
    WrongPartition,
)
from muniment.directory.resources import Resource
from muniment.directory.sessions import SessionCount
from muniment.naming import fold_name

FIRST_ADMINISTRATOR = "admin"
"""The name of the user who administers a new directory."""


_KEYS = ("tokens", "csrf", "places")
_NO_ADMINISTRATOR = "A valid access token of an administrator is required."


class Dependents(NamedTuple):
    """What depended on a removed entry: its sessions, the groups it was in, its members, the resources it had."""

    ended: SessionCount
    groups: list[Entry]
    members: list[Entry]
    resources: list[Resource]


def initialise(cx: Connection, now: Instant) -> Resource:
    """Make what every directory has, and give the administration's resource. Once is enough.

    It makes the built-in partitions, the group of administrators, the administration's resource (activated), the keys.
    """
    editing.initialise(cx, now)
    for purpose in _KEYS:
        system.key(cx, purpose)
    return resources.initialise(cx, now)


def administrator_of(cx: Connection, token: str | None, now: Instant) -> Entry:
    """Return the administrator behind a bearer token for the administration's resource.

    Raises NotSignedIn when the token is none, or is dead, or its user is; NotAdministrator for any other user's.
    """
    try:
        standing = tokens.state_of(cx, token or "")
        standing.require_alive(now)
    except (UnparseableToken, DeadToken) as refusal:
        raise NotSignedIn(_NO_ADMINISTRATOR) from refusal
    user, client = (entries.by_id(cx, person) for person in (standing.grant.user_id, standing.grant.client_id))
    if user is None or not user.live or client is None or not client.live:
        raise NotSignedIn(_NO_ADMINISTRATOR)
    resource = resources.administration(cx)
    if standing.grant.resource_id != resource.id or not resources.admits(cx, resource.id, user.id):
        raise NotAdministrator("Only an administrator's token for the administration's resource may do this.")
    return user


def ensure_administrator(cx: Connection, names: DirectoryNames, password_hash: str, now: Instant) -> bool:
    """Make the first administrator, unless there is a user of that name; say whether they were made."""
    try:
        entries.find_user(cx, names, user_id(FIRST_ADMINISTRATOR, names.administration_partition))
    except UnknownEntry:
        user = editing.add_user(
            cx,
            entries.administration(cx),
            FIRST_ADMINISTRATOR,
            now,
            password_hash=password_hash,
            description="The first administrator.",
        )
        memberships.add_member(cx, entries.administrators(cx), user)
        return True
    return False


def ensure_resource(cx: Connection, names: DirectoryNames, name: str, now: Instant) -> Resource:
    """Return the resource of that name. If missing, make and activate it for the administrators."""
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        resource = resources.add(cx, names, name, now)
        # The repository in this process verifies tokens without the secret: nobody needs to know it.
        resources.activate(cx, resource.id, now)
        resources.add_to_role(cx, resource, entries.administrators(cx))
        return resources.by_id(cx, resource.id)


def add_user(
    cx: Connection,
    names: DirectoryNames,
    new_id: str,
    parent: Entry | None,
    now: Instant,
    *,
    password_hash: str | None,
    description: str = "",
) -> Entry:
    """Make a user (``name@partition``) in a unit of that partition, or in its root unit.

    Raises BadName, NameTaken, UnknownPartition, and WrongPartition where the unit lies elsewhere.
    """
    name, partition = split_user_id(new_id)
    parent = _place_in(cx, names, partition, parent)
    return editing.add_user(cx, parent, name, now, password_hash=password_hash, description=description)


def add_group(
    cx: Connection, names: DirectoryNames, new_id: str, parent: Entry | None, now: Instant, *, description: str = ""
) -> Entry:
    """Make a group (``name@partition``), as ``add_user`` makes a user."""
    name, partition = split_user_id(new_id)
    return editing.add_group(cx, _place_in(cx, names, partition, parent), name, now, description=description)


def members_of(cx: Connection, names: DirectoryNames, ids: Collection[str]) -> set[str]:
    """Return the ids of all users in the groups among these ids, however deep; what is no group is passed over."""
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


def remove_member(cx: Connection, group: Entry, member: Entry) -> None:
    """Take a member out of a group; one that is not there stays out. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        memberships.remove_member(cx, group, member)


def remove_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
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


def _place_in(cx: Connection, names: DirectoryNames, partition: str, parent: Entry | None) -> Entry:
    if parent is None:
        return entries.find_partition(cx, names, partition)
    shown = entries.shown_partition(names, parent)
    if fold_name(shown) != fold_name(partition):
        raise WrongPartition(f"That location lies in the partition {shown!r}, not in {partition!r}.")
    return parent


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
