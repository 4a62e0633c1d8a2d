"""What may an administrator change, and by which rules?

A new password, disabling, locking and removal end all of the user's sessions (decision 0021). After every change,
somebody can still sign in to the administration.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.database.snapshots import of_snapshot
from muniment.directory import audit, version_stamps
from muniment.directory.administration.rules import living_grants, somebody_administers
from muniment.directory.entries import (
    attributes,
    changes,
    editing,
    entries,
    memberships,
    oauth_clients,
    resources,
    system,
)
from muniment.directory.entries.names import split_user_id, user_id
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import CLIENTS, Entry
from muniment.directory.oauth import sessions
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    BadAttribute,
    ClosesLoop,
    NameInUse,
    UnknownEntry,
    WrongPartition,
)
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

FIRST_ADMINISTRATOR = "admin"


_KEYS = ("tokens", "csrf", "places")


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


def add_user(
    cx: Connection,
    names: DirectoryNames,
    new_id: str,
    parent: Entry | None,
    now: Instant,
    *,
    password_hash: str | None,
    description: str = "",
    external_id: str | None = None,
    flags: Mapping[str, bool] | None = None,
    values: Mapping[str, Sequence[str | int]] | None = None,
) -> Entry:
    """By default in the root unit, with some of the ``flags`` and with attributes. Raises BadName, NameTaken,
    BadAttribute, UnknownPartition, and WrongPartition if ``parent`` lies in another partition.
    """
    name, partition = split_user_id(new_id)
    parent = _place_in(cx, names, name, partition, parent)
    with audit.decision(cx):
        user = editing.add_user(
            *(cx, parent, name, now),
            password_hash=password_hash,
            description=description,
            external_id=external_id,
            flags=flags,
        )
        attributes.add(cx, names, user, values or {})
    return user


def add_group(
    cx: Connection, names: DirectoryNames, new_id: str, parent: Entry | None, now: Instant, *, description: str = ""
) -> Entry:
    """``parent`` and the refusals are as in ``add_user``."""
    name, partition = split_user_id(new_id)
    return editing.add_group(cx, _place_in(cx, names, name, partition, parent), name, now, description=description)


def add_role(
    cx: Connection, names: DirectoryNames, new_id: str, parent: Entry | None, now: Instant, *, description: str = ""
) -> Entry:
    """``parent`` and the refusals are as in ``add_user``."""
    name, partition = split_user_id(new_id)
    return editing.add_role(cx, _place_in(cx, names, name, partition, parent), name, now, description=description)


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
    with users or groups, a client with living grants, a known user, client or group, and who stands for a resource.
    """
    version_stamps.lock_rights(cx)
    resources.require_no_stand_in(cx, entry)
    if entry.kind == "partition" and (counts := editing.count_members(cx, entry)):
        contents = " and ".join(f"{count} {kind}s" for kind, count in counts)
        raise NameInUse(f"The ids of {contents} end with this partition's name, so it stays.")
    is_client = entry.kind == "user" and entry.partition_built_in == CLIENTS
    if is_client and (many := living_grants(cx, "client", entry.id, now)):
        raise NameInUse(f"{many} were issued to the client under this name: end its sessions first.")
    if entry.kind in ("user", "group") and is_known(entry.uuid):
        raise NameInUse(
            f"A repository knows {entries.shown_id(names, entry)} by this name: it shows what they own, and what ACLs "
            "permit to them, under it."
        )
    if entry.kind in ("user", "group", "role") and entry.built_in is None:
        entries.check_name(names, entry, name)
    return editing.rename(cx, names, entry, name, now)


def move(cx: Connection, names: DirectoryNames, entry: Entry, parent: Entry, now: Instant) -> Entry:
    """Into a partition's root unit if that is the ``parent``. Units' rights change from the next request on. Raises
    BadName, NameTaken, WrongPartition.
    """
    if parent.id != entry.partition_id and parent.partition_id != entry.partition_id:
        raise WrongPartition(
            f"That location lies in the partition {entries.shown_partition(names, parent)!r}. An entry stays in its "
            "partition, whose name is a part of its id."
        )
    version_stamps.lock_rights(cx)
    return editing.move(cx, entry, parent, now)


def set_password(cx: Connection, user: Entry, password_hash: str | None, now: Instant) -> SessionCount:
    """A user's sessions end. A client's go on, but not its own tickets, which the former secret made.
    Without a hash nobody can sign in, and a client becomes public. Raises NobodyAdministers, and BadAttribute for a
    client that authenticates by its key (``client_decisions.set_settings``).
    """
    is_client = user.partition_built_in == CLIENTS
    with somebody_administers(cx), audit.decision(cx, "password set", user.target):
        if is_client and password_hash is not None and oauth_clients.settings_of(cx, user.id).by_key:
            raise BadAttribute("The client authenticates by private_key_jwt, so it has no secret.")
        editing.set_password_hash(cx, user, password_hash, now)
        return SessionCount(0, tickets.end_of(cx, user.id, now)) if is_client else sessions.end_of(cx, user, now)


def set_disabled(cx: Connection, user: Entry, disabled: bool, now: Instant) -> SessionCount:
    """Only disabling ends the sessions. Raises NobodyAdministers."""
    with somebody_administers(cx), audit.decision(cx, f"{user.target.kind} changed", user.target):
        editing.set_disabled(cx, user, disabled, now)
        return sessions.end_of(cx, user, now) if disabled else SessionCount()


def set_locked(cx: Connection, user: Entry, locked: bool, now: Instant) -> SessionCount:
    """Only locking ends the sessions. Raises NobodyAdministers."""
    with somebody_administers(cx), audit.decision(cx, f"{user.target.kind} changed", user.target):
        editing.set_locked(cx, user, locked, now)
        return sessions.end_of(cx, user, now) if locked else SessionCount()


def sign_out(cx: Connection, user: Entry, now: Instant) -> SessionCount:
    version_stamps.lock_rights(cx)
    return sessions.end_of(cx, user, now)


def remove(cx: Connection, entry: Entry, now: Instant) -> Dependents:
    """Raises NobodyAdministers, BadName for what is built in, or not empty, and NameInUse for who stands for a
    resource.
    """
    with somebody_administers(cx), audit.decision(cx, f"{entry.target.kind} removed", entry.target):
        resources.require_no_stand_in(cx, entry)
        dependents = Dependents(
            sessions.end_of(cx, entry, now) if entry.kind == "user" else SessionCount(),
            memberships.groups_of(cx, entry.id) if entry.kind in ("user", "group") else [],
            memberships.members(cx, entry) if entry.kind in ("group", "role") else [],
            resources.with_role_member(cx, entry),
        )
        editing.delete(cx, entry, now, [memberships.rights_of(entry), resources.rights_of(entry)])
        return dependents


def add_members(
    cx: Connection, group: Entry, members: Sequence[Entry], now: Instant, *, refuse_loops: bool = False
) -> None:
    """To a group or role; who is one stays one. With ``refuse_loops``, raises ClosesLoop. Raises BadName."""
    inner = [member for member in members if member.kind != "user"]
    if inner and refuse_loops:
        version_stamps.lock_rights(cx)
        above = memberships.ids_above(cx, group)
        for member in inner:
            if member.id in above:
                raise ClosesLoop(f"{member.name[:100]!r} contains {group.name[:100]!r}, or is the same.")
    memberships.add_members(cx, group, members)
    changes.note(cx, group.id, "members", now)


def remove_members(cx: Connection, group: Entry, members: Sequence[Entry], now: Instant) -> int:
    """Return how many were members. Raises NobodyAdministers."""
    with somebody_administers(cx):
        count = memberships.remove_members(cx, group, members)
        changes.note(cx, group.id, "members", now)
        return count


def _place_in(cx: Connection, names: DirectoryNames, name: str, partition: str, parent: Entry | None) -> Entry:
    place = parent or of_snapshot(cx, (_place_in, partition), lambda cx: entries.find_partition(cx, names, partition))
    parents_partition = entries.shown_partition(names, place)
    if fold_name(parents_partition) != fold_name(partition):
        raise WrongPartition(f"That location lies in the partition {parents_partition!r}, not in {partition!r}.")
    entries.check_name(names, place, name)
    return place
