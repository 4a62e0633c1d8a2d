"""What may an administrator change, and by which rules?

A new password, disabling, locking and removal end all of the user's sessions (decision 0021). After every change,
somebody can still sign in to the administration.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.entries import editing, entries, memberships, resources, system
from muniment.directory.entries.names import split_user_id, user_id
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.oauth import sessions, tokens
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    NameInUse,
    NobodyAdministers,
    NotAdministrator,
    NotSignedIn,
    UnknownEntry,
    UnknownResource,
    UnparseableToken,
    WrongPartition,
)
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

FIRST_ADMINISTRATOR = "admin"


_KEYS = ("tokens", "csrf", "places")
_COUNTED = 1000
"""Living grants are counted up to this number: "1000 or more"."""
_NO_ADMINISTRATOR = "A valid access token of an administrator is required."


class Dependents(NamedTuple):
    """What depended on a removed entry: its sessions (``ended``), and others.

    ``groups`` contained it, however deep; ``members`` were a group's direct ones; ``resources`` had it as a direct
    member of their access role.
    """

    ended: SessionCount
    groups: list[Entry]
    members: list[Entry]
    resources: list[Resource]


def initialise(cx: Connection, now: Instant) -> Resource:
    """Make what is missing: built-in partitions, administrators, keys and the administration's resource."""
    editing.initialise(cx, now)
    for purpose in _KEYS:
        system.key(cx, purpose)
    return resources.initialise(cx, now)


def administrator_of(cx: Connection, token: str | None, now: Instant) -> Entry:
    """Raises NotSignedIn when the token is not living, or its user or client may not act, and NotAdministrator for
    another user's token, or one for another resource.
    """
    try:
        state = tokens.state_of(cx, token or "")
        state.require_alive(now)
    except (UnparseableToken, DeadToken) as refusal:
        raise NotSignedIn(_NO_ADMINISTRATOR) from refusal
    user, client = (entries.by_id(cx, person) for person in (state.grant.user_id, state.grant.client_id))
    if user is None or not user.live or client is None or not client.live:
        raise NotSignedIn(_NO_ADMINISTRATOR)
    resource = resources.administration(cx)
    if state.grant.resource_id != resource.id or not resources.admits(cx, resource.id, user.id):
        raise NotAdministrator("Only an administrator's token for the administration's resource may do this.")
    return user


def require_administrator(cx: Connection, names: DirectoryNames, caller_id: str) -> None:
    """Raises NotAdministrator unless the user (``name@partition``) may act and administers the directory."""
    try:
        user = entries.find_user(cx, names, caller_id)
        resources.require_access(cx, user.id, resources.administration(cx).id)
    except (UnknownEntry, AccessEnded) as refusal:
        raise NotAdministrator("Only an administrator of the directory may change users and groups.") from refusal


def ensure_administrator(cx: Connection, names: DirectoryNames, password_hash: str, now: Instant) -> bool:
    """Return whether the user was made."""
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
    """A missing one is made and activated, with the administrators in its role."""
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        resource = resources.add(cx, names, name, now)
        # The repository in this process verifies tokens without the secret, so nobody needs it.
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
    """By default in the root unit. Raises BadName, NameTaken, BadAttribute, UnknownPartition, and WrongPartition if
    ``parent`` lies in another partition.
    """
    name, partition = split_user_id(new_id)
    parent = _place_in(cx, names, partition, parent)
    return editing.add_user(cx, parent, name, now, password_hash=password_hash, description=description)


def add_group(
    cx: Connection, names: DirectoryNames, new_id: str, parent: Entry | None, now: Instant, *, description: str = ""
) -> Entry:
    """``parent`` and the refusals are as in ``add_user``."""
    name, partition = split_user_id(new_id)
    return editing.add_group(cx, _place_in(cx, names, partition, parent), name, now, description=description)


def rename(
    cx: Connection,
    names: DirectoryNames,
    entry: Entry,
    name: str,
    now: Instant,
    *,
    is_known: Callable[[str], bool],
) -> Entry:
    """``is_known``: a repository has stored this identity. Raises BadName, NameTaken, and NameInUse for a partition
    with users or groups, a client with living grants, and a known user, client or group.
    """
    version_stamps.lock_rights(cx)
    if entry.kind == "partition" and (counts := editing.count_members(cx, entry)):
        contents = " and ".join(f"{count} {kind}s" for kind, count in counts)
        raise NameInUse(f"The ids of {contents} end with this partition's name, so it stays.")
    is_client = entry.kind == "user" and entry.partition_built_in == CLIENTS
    if is_client and (count := len(tokens.live_grants(cx, "client", entry.id, now, _COUNTED))):
        raise NameInUse(f"{_so_many(count)} were issued to the client under this name: end its sessions first.")
    if entry.kind in ("user", "group") and is_known(entry.uuid):
        raise NameInUse(
            f"A repository knows {entries.shown_id(names, entry)} by this name: it shows what they own, and what ACLs "
            "permit to them, under it."
        )
    return editing.rename(cx, names, entry, name, now)


def move(cx: Connection, names: DirectoryNames, entry: Entry, parent: Entry, now: Instant) -> Entry:
    """Into a partition's root unit if that is the ``parent``. Units' rights change from the next request on. Raises
    BadName, NameTaken, WrongPartition, NobodyAdministers.
    """
    if parent.id != entry.partition_id and parent.partition_id != entry.partition_id:
        raise WrongPartition(
            f"That location lies in the partition {entries.shown_partition(names, parent)!r}. An entry stays in its "
            "partition, whose name is a part of its id."
        )
    with _somebody_administers(cx):
        return editing.move(cx, entry, parent, now)


def rename_resource(cx: Connection, names: DirectoryNames, resource: Resource, name: str, now: Instant) -> None:
    """Raises BadName, NameTaken, and NameInUse while grants for its present scope live."""
    version_stamps.lock_rights(cx)
    if count := len(tokens.live_grants(cx, "resource", resource.id, now, _COUNTED)):
        raise NameInUse(
            f"{_so_many(count)} for the scope {resources.scope(names, resource)} live, and their clients ask for it by "
            "this name: end them first."
        )
    resources.rename(cx, names, resource, name)


def set_password(
    cx: Connection, user: Entry, password_hash: str | None, now: Instant, *, end_sessions: bool | None = None
) -> SessionCount:
    """By default a user's sessions end, and a client's go on. Without a hash nobody can sign in, and a client becomes
    public. Raises NobodyAdministers.
    """
    with _somebody_administers(cx):
        editing.set_password_hash(cx, user, password_hash, now)
        if end_sessions if end_sessions is not None else user.partition_built_in != CLIENTS:
            return sessions.end_of(cx, user, now)
        return SessionCount()


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> SessionCount:
    """Only disabling ends the sessions. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        editing.set_disabled(cx, user, disabled, now)
        return sessions.end_of(cx, user, now) if disabled else SessionCount()


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> SessionCount:
    """Only locking ends the sessions. Raises NobodyAdministers."""
    with _somebody_administers(cx):
        editing.set_locked(cx, user, locked, now)
        return sessions.end_of(cx, user, now) if locked else SessionCount()


def sign_out(cx: Connection, user: Entry, now: Instant) -> SessionCount:
    version_stamps.lock_rights(cx)
    return sessions.end_of(cx, user, now)


def remove(cx: Connection, entry: Entry, now: Instant) -> Dependents:
    """Raises NobodyAdministers, and BadName for what is built in, or not empty."""
    with _somebody_administers(cx):
        dependents = Dependents(
            sessions.end_of(cx, entry, now) if entry.kind == "user" else SessionCount(),
            memberships.groups_of(cx, entry.id) if entry.kind in ("user", "group") else [],
            memberships.members(cx, entry) if entry.kind == "group" else [],
            resources.with_role_member(cx, entry),
        )
        editing.delete(cx, entry)
        return dependents


def remove_member(cx: Connection, group: Entry, member: Entry) -> bool:
    """Raises NobodyAdministers."""
    with _somebody_administers(cx):
        return memberships.remove_member(cx, group, member)


def remove_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    """Raises NobodyAdministers."""
    with _somebody_administers(cx):
        resources.remove_from_role(cx, resource, entry)


def remove_resource(cx: Connection, resource: Resource, now: Instant) -> SessionCount:
    """Raises BadName for the administration's resource."""
    version_stamps.lock_rights(cx)
    count = sessions.end_at(cx, resource.id, now)
    resources.delete(cx, resource)
    return count


@contextmanager
def _somebody_administers(cx: Connection) -> Iterator[None]:
    """Raises NobodyAdministers if after the block nobody can sign in to the administration.

    All rights are locked first: of two changes at one time, the later one sees the earlier one.
    """
    version_stamps.lock_rights(cx)
    could_administer = _can_administer(cx)
    yield
    if could_administer and not _can_administer(cx):
        raise NobodyAdministers(
            "Nobody could sign in to the administration any more. Nothing was changed: first add an administrator."
        )


def _so_many(count: int) -> str:
    many = f"{count} or more" if count == _COUNTED else str(count)
    return f"{many} grants"


def _place_in(cx: Connection, names: DirectoryNames, partition: str, parent: Entry | None) -> Entry:
    if parent is None:
        return entries.find_partition(cx, names, partition)
    parents_partition = entries.shown_partition(names, parent)
    if fold_name(parents_partition) != fold_name(partition):
        raise WrongPartition(f"That location lies in the partition {parents_partition!r}, not in {partition!r}.")
    return parent


def _can_administer(cx: Connection) -> bool:
    resource = resources.administration(cx)
    if resources.acting_in_role(cx, resource):
        return True
    containers = resources.role_containers(cx, resource)
    if memberships.acting_in(cx, [container.id for container in containers if container.kind == "group"]):
        return True
    return any(_acts_in(cx, container) for container in containers if container.kind != "group")


def _acts_in(cx: Connection, container: Entry) -> bool:
    queue = [container]
    while queue:
        unit = queue.pop()
        if cx.execute(sa.select(entries.acting(sa.literal(unit.id), "parent_id"))).scalar_one():
            return True
        queue += entries.units_in(cx, unit)
    return False
