"""Which rules bind both halves? A repository always has a resource that guards it.

Whose ACLs go on for everybody in a migrated repository is asked of the directory, too.

The halves have separate databases. So whoever changes what guards what holds the directory's decisions about rights
while the repository's are made: of a removal and a new guard at one time, the later one sees the earlier one.
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
    """The resource guards a repository, which nobody could enter without it."""


class CannotKnow(Refusal):
    """The directory runs apart: it does not know what the resource guards elsewhere."""


def remove_resource(
    directory: Connection, snapshot: Snapshot | None, resource: Resource, now: Instant, *, force: bool = False
) -> SessionCount:
    """Delete a resource that guards no repository here. ``snapshot`` is None where that half does not run here.

    Raises StillGuards; CannotKnow without ``force`` where the halves run apart; BadName for the built-in resource.
    """
    access.one_at_a_time(directory)
    if snapshot is not None:
        # Read only once the directory's decisions wait: what guards what does not change in between.
        with snapshot() as repository:
            guarded = repositories.guarded_by(repository, resource.id)
        if guarded:
            names = ", ".join(repr(one.name) for one in guarded)
            raise StillGuards(f"This resource guards {names}: without it nobody could enter there.")
    elif not force:
        raise CannotKnow(
            "This directory runs apart from the repositories and cannot know whether one depends on this resource."
        )
    return administration.remove_resource(directory, resource, now)


def add_repository(
    directory: Connection | None, repository: Connection, name: str, resource_id: str, now: Instant
) -> Repository:
    """Make a repository that a resource guards; of another directory, where ``directory`` is None.

    Raises UnknownResource, NameTaken.
    """
    _must_be(directory, resource_id)
    made = repositories.add(repository, name, resource_id, "", now)
    acls.initialise(repository, made.id, now)
    return made


def guard(directory: Connection | None, repository: Connection, name: str, resource_id: str) -> None:
    """Let another resource guard a repository. Raises UnknownResource, UnknownRepository."""
    _must_be(directory, resource_id)
    repositories.guard(repository, repositories.find(repository, name), resource_id)


def settle_acls(
    directory: Connection | None, repository: Connection, names: DirectoryNames, administrators: Collection[str]
) -> list[tuple[str, AclSummary]]:
    """Give, each with its repository, the ACLs whose bare names mean them to their owners alone from now on.

    It gives them once, after a migration. ACLs that administrators made go on for everybody: the first administrator
    and the users and groups in ``administrators``. Where ``directory`` is None, members of a group are not known.
    """
    if not acls.unsettled(repository):
        return []
    users = {user_id(administration.FIRST_ADMINISTRATOR, names.administration_partition), *administrators}
    if directory is not None:
        users |= administration.members_of(directory, names, administrators)
    return [(one.name, acl) for one in repositories.every(repository) for acl in acls.settle(repository, one.id, users)]


def _must_be(directory: Connection | None, resource_id: str) -> None:
    if directory is not None:
        access.one_at_a_time(directory)
        resources.by_id(directory, resource_id)
