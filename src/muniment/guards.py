"""Which rules bind both halves? A repository always has a resource that guards it.

After a migration, the directory also says which users are administrators, whose ACLs stay common to everybody.

The halves have separate databases. So a change of guards first locks the directory's decisions about rights, then
decides in the repository. Thus, when a removal and a new guard come at one time, the later one sees the earlier one.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.directory import administration, resources
from muniment.directory.names import user_id
from muniment.directory.oauth import access
from muniment.directory.options import DirectoryNames
from muniment.directory.resources import Resource
from muniment.directory.sessions import SessionCount
from muniment.repository import repositories
from muniment.repository.permissions import acls
from muniment.repository.permissions.acls import AclSummary
from muniment.repository.repositories import Repository
from muniment.web.refusals import Refusal

Snapshot = Callable[[], AbstractContextManager[Connection]]
"""Opens a snapshot of the repository's database."""


class StillGuards(Refusal):
    """The resource guards a repository. Without the resource nobody could enter it."""


class CannotKnow(Refusal):
    """The directory runs apart, and does not know whether the resource guards a repository elsewhere."""


def remove_resource(
    directory: Connection, snapshot: Snapshot | None, resource: Resource, now: Instant, *, force: bool = False
) -> SessionCount:
    """Delete a resource that guards no repository here. ``snapshot`` is None where that half does not run here.

    Raises StillGuards; CannotKnow without ``force`` where the halves run apart; BadName for the built-in resource.
    """
    access.one_at_a_time(directory)
    if snapshot is not None:
        # Read only after the directory's other decisions wait: so no guard changes in between.
        with snapshot() as repository:
            guarded = repositories.guarded_by(repository, resource.id)
        if guarded:
            names = ", ".join(repr(each.name) for each in guarded)
            raise StillGuards(f"This resource guards {names}: without it nobody could enter there.")
    elif not force:
        raise CannotKnow(
            "This directory runs apart from the repositories and cannot know whether one depends on this resource."
        )
    return administration.remove_resource(directory, resource, now)


def add_repository(
    directory: Connection | None, repository: Connection, name: str, resource_id: str, now: Instant
) -> Repository:
    """Make a repository that a resource guards. With ``directory`` None, the resource is in another directory.

    Raises UnknownResource, NameTaken.
    """
    _require_resource(directory, resource_id)
    added = repositories.add(repository, name, resource_id, "", now)
    acls.initialise(repository, added.id, now)
    return added


def guard(directory: Connection | None, repository: Connection, name: str, resource_id: str) -> None:
    """Let another resource guard a repository. Raises UnknownResource, UnknownRepository."""
    _require_resource(directory, resource_id)
    repositories.guard(repository, repositories.find(repository, name), resource_id)


def settle_acls(
    directory: Connection | None, repository: Connection, names: DirectoryNames, administrators: Collection[str]
) -> list[tuple[str, AclSummary]]:
    """List, each with its repository, the ACLs that only their owners may call by the bare name from now on.

    It lists them once, after a migration. ACLs that administrators made stay common to everybody. Administrators are
    the first administrator and the users and groups in ``administrators``; with ``directory`` None, group members are
    not known.
    """
    if not acls.unsettled(repository):
        return []
    users = {user_id(administration.FIRST_ADMINISTRATOR, names.administration_partition), *administrators}
    if directory is not None:
        users |= administration.members_of(directory, names, administrators)
    return [
        (each.name, acl) for each in repositories.every(repository) for acl in acls.settle(repository, each.id, users)
    ]


def _require_resource(directory: Connection | None, resource_id: str) -> None:
    if directory is not None:
        access.one_at_a_time(directory)
        resources.by_id(directory, resource_id)
