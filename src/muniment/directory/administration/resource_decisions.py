"""What may an administrator change about a resource and its access role? Who loses their right there is signed out."""

from collections.abc import Callable, Collection, Sequence
from typing import get_args

from sqlalchemy.engine import Connection

from muniment.directory import audit, version_stamps
from muniment.directory.administration.rules import living_grants, somebody_administers
from muniment.directory.entries import editing, entries, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import ADMINISTRATORS, Entry, Kind
from muniment.directory.oauth import sessions, tokens
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, NameInUse, NobodyAdministers, UnknownResource
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant


def ensure_resource(cx: Connection, names: DirectoryNames, name: str, now: Instant) -> Resource:
    """A missing one is made and activated, with the administrators in its role."""
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        resource = add_resource(cx, names, name, now)
        # The repository in this process verifies tokens without the secret, so nobody needs it.
        resources.activate(cx, resource.id, now)
        resources.add_to_role(cx, resource, entries.administrators(cx))
        return resources.by_id(cx, resource.id)


def add_resource(
    cx: Connection,
    names: DirectoryNames,
    name: str,
    now: Instant,
    *,
    description: str = "",
    resource_id: str | None = None,
    secret: str | None = None,
) -> Resource:
    """With its access role, and with a user who stands for it: named by its UUID, in the administration's partition,
    without a password. Programs of the field put that user into groups. Raises BadName, NameTaken, BadAttribute.
    """
    resource = resources.add(cx, names, name, now, description=description, resource_id=resource_id, secret=secret)
    described = f"Stands for the resource {resource.name!r}."
    editing.add_user(cx, entries.administration(cx), resource.id, now, description=described)
    return resource


def rename_resource(cx: Connection, names: DirectoryNames, resource: Resource, name: str, now: Instant) -> None:
    """Raises BadName, NameTaken, and NameInUse while grants for its present scope live."""
    version_stamps.lock_rights(cx)
    if many := living_grants(cx, "resource", resource.id, now):
        raise NameInUse(
            f"{many} for the scope {resources.scope(names, resource)} live, and their clients ask for it by "
            "this name: end them first."
        )
    resources.rename(cx, names, resource, name)


def remove_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    """Raises NobodyAdministers for the administrators' group and the administration's resource."""
    version_stamps.lock_rights(cx)
    if resource.built_in is not None and entry.built_in == ADMINISTRATORS:
        raise NobodyAdministers("The administrators stay in the access role of the administration's resource.")
    resources.remove_from_role(cx, resource, entry)


def set_role_members(
    cx: Connection, resource: Resource, members: Sequence[Entry], kinds: Collection[Kind] = get_args(Kind)
) -> None:
    """Of these kinds of entry, ``members`` and nobody else. Raises NobodyAdministers."""
    version_stamps.lock_rights(cx)
    wanted = {member.id for member in members}
    present = {member.id: member for member in resources.role_members(cx, resource)}
    with audit.decision(cx, "access role changed", resource.target):
        for member in members:
            if member.id not in present:
                resources.add_to_role(cx, resource, member)
        for entry_id, member in present.items():
            if entry_id not in wanted and member.kind in kinds:
                remove_from_role(cx, resource, member)


def set_status(
    cx: Connection,
    resource: Resource,
    now: Instant,
    *,
    activated: bool | None = None,
    authentication: bool | None = None,
    synchronization: bool | None = None,
) -> SessionCount:
    """What is None stays. A resource that is deactivated, or at which nobody may sign in, has no sessions; one that is
    activated so has no secret. Raises BadName for the administration's resource.
    """
    version_stamps.lock_rights(cx)
    if resource.built_in is not None and False in (activated, authentication):
        raise BadName("Everybody can sign in to the administration's resource who is in its access role.")
    with audit.decision(cx, "resource changed", resource.target):
        if authentication is not None:
            resources.change(cx, resource, authentication_enabled=authentication)
        if synchronization is not None:
            resources.change(cx, resource, synchronization_enabled=synchronization)
        if activated is False:
            resources.deactivate(cx, resource)
        elif activated and resource.activated is None:
            resources.activate(cx, resource.id, now)
        return sessions.end_at(cx, resource, now) if False in (activated, authentication) else SessionCount()


def deactivate(cx: Connection, resource_id: str, secret: str, now: Instant) -> tuple[Resource, SessionCount]:
    """By the resource's own secret, which is no secret then. Raises UnknownResource, WrongSecret."""
    resource = resources.with_secret(cx, resource_id, secret)
    return resource, set_status(cx, resource, now, activated=False)


def set_tokens(
    cx: Connection,
    resource: Resource,
    now: Instant,
    *,
    address: str | None,
    token_format: str,
    token_seconds: int | None,
    check: Callable[[Connection, Resource], None],
) -> SessionCount:
    """By which address clients may ask for a resource, and what its access tokens are. With another format its grants
    end, so that no token is of a form that its API does not take. Raises BadAttribute, NameTaken, and what ``check``
    raises for a resource that guards a repository.
    """
    version_stamps.lock_rights(cx)
    if token_format != "opaque":  # noqa: S105 - no password
        check(cx, resource)
    resources.change(cx, resource, address=address or None, token_format=token_format, token_seconds=token_seconds)
    if token_format == resource.token_format:
        return SessionCount()
    return SessionCount(tokens.end(cx, "resource", resource.id, now))


def set_impersonation(
    cx: Connection, resource: Resource, allowed: bool, only: Sequence[str], now: Instant
) -> SessionCount:
    """Whether callers may act for others at a resource, and it for others elsewhere. What it does so ends with every
    change; at it, the switch is asked at each use. Raises BadAttribute.
    """
    version_stamps.lock_rights(cx)
    resources.change(cx, resource, allow_impersonation=allowed, impersonate_list=tuple(only))
    exchanged = tokens.end_exchanged(cx, "resource", resource.id, now)
    return SessionCount(exchanged, tickets.end_acting(cx, now, resource_id=resource.id))


def remove_resource(cx: Connection, resource: Resource, now: Instant) -> SessionCount:
    """With the user who stands for it. Raises BadName for the administration's resource, and NobodyAdministers."""
    with somebody_administers(cx), audit.decision(cx, "resource removed", resource.target):
        count = sessions.end_at(cx, resource, now)
        resources.delete(cx, resource)
        user = entries.stand_in(cx, resource.id)
        if user is not None and not user.has_password:
            editing.delete(cx, user, now)
        return count
