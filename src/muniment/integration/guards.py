"""Enforce the rules that bind both halves.

The first one: only a resource of the directory guards a repository, and nobody can remove a resource that guards one.
The second one: a user or group that a repository knows cannot be renamed. The third one: a client by which the
repositories sign people in is neither renamed nor removed, unless ``force`` is set. If one half runs elsewhere, some
rules cannot be checked: each function says what happens then.

The halves have separate databases. So a change of guards first locks the directory's decisions about rights, and then
decides in the repository. If a resource is removed while it becomes a guard, the later of the two decisions waits, and
then sees the earlier one (docs/decisions/0081).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.administration import decisions
from muniment.directory.entries import credentials, entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Refusal
from muniment.repository.bulk.exports import progress as unfinished_imports
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import InUse
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acls, name_keys

Snapshot = Callable[[], AbstractContextManager[Connection]]
"""A function that opens a snapshot of the repository's database."""


class StillGuards(Refusal):
    """The resource guards a repository, which nobody could enter without it."""


class CannotKnow(Refusal):
    """The repository runs elsewhere, so nobody here knows whether it uses the resource, user or group."""


class SignsIn(Refusal):
    """The client is one by which the repositories sign people in. Without it, nobody could sign in there."""


def read_client_settings(options: RepositoryOptions) -> Mapping[str, str]:
    named_clients = {"repository.basic_client": options.basic_client}
    if options.offers_search_page:
        named_clients["repository.search_page_client"] = options.search_page_client
    return {setting: client for setting, client in named_clients.items() if client}


def check_client(directory: Connection, client_settings: Mapping[str, str], entry: Entry) -> None:
    """Raise SignsIn if one of these settings names the entry.

    ``client_settings`` is what ``read_client_settings`` returns. It is empty if no repository asks this directory.
    """
    for setting, client in client_settings.items():
        match = credentials.find_of_client(directory, client)
        if match is not None and match[0].user.id == entry.id:
            raise SignsIn(
                f"The setting {setting} names the client {entry.name!r}, by which people sign in to the repositories: "
                "first name another client there, or none, and start the server again."
            )


def remove_resource(
    directory: Connection, snapshot: Snapshot | None, resource: resources.Resource, now: Instant, *, force: bool = False
) -> SessionCount:
    """``snapshot`` is None if the repository runs elsewhere. Then this raises CannotKnow unless ``force`` is true.
    Raises StillGuards if the resource guards a repository, BadName if it is the built-in resource.
    """
    version_stamps.lock_rights(directory)
    if snapshot is not None:
        # From here on the directory's other decisions wait, so no guard changes after this look-up.
        with snapshot() as repository:
            dependents = repositories.guarded_by(repository, resource.id)
        if dependents:
            names = ", ".join(repr(each.name) for each in dependents)
            raise StillGuards(f"This resource guards {names}: nobody could enter without it.")
    elif not force:
        raise CannotKnow(
            "This directory runs apart from the repositories and cannot know whether one depends on this resource."
        )
    return decisions.remove_resource(directory, resource, now)


def rename(
    directory: Connection,
    snapshot: Snapshot | None,
    names: DirectoryNames,
    entry: Entry,
    name: str,
    now: Instant,
    client_settings: Mapping[str, str],
    *,
    force: bool = False,
) -> Entry:
    """``snapshot`` is None if the repository's half does not run here. Raises what ``administration.rename`` raises.
    Without ``force`` it also raises what ``check_client`` raises, if more than the case of the name changes, and
    CannotKnow if the halves run apart and the entry is a user or group.
    """
    if not force and fold_name(name) != fold_name(entry.name):
        check_client(directory, client_settings, entry)

    def is_known(identity: str) -> bool:
        if snapshot is not None:
            with snapshot() as repository:
                return bool(name_keys.bound_keys(repository, [identity]))
        if not force:
            raise CannotKnow(
                "This directory runs apart from the repositories and cannot know whether one knows "
                f"{entries.shown_id(names, entry)} by this name."
            )
        return False

    return decisions.rename(directory, names, entry, name, now, is_known=is_known)


def add_repository(
    directory: Connection | None, repository: Connection, name: str, resource_id: str, now: Instant, language: str = ""
) -> repositories.Repository:
    """``directory`` is None if the directory runs elsewhere; then nobody checks that the resource exists. An empty
    ``language`` stands for the settings' language. Raises UnknownResource, NameTaken, WrongValue.
    """
    guard_id = _guard_id(directory, resource_id)
    new_repository = repositories.add(repository, name, guard_id, "", now, language)
    acls.initialise(repository, new_repository.id, now)
    return new_repository


def guard(directory: Connection | None, repository: Connection, name: str, resource_id: str) -> str:
    """``directory`` is as in ``add_repository``. Raises UnknownResource, UnknownRepository, InUse (an import into the
    repository is not finished).
    """
    guard_id = _guard_id(directory, resource_id)
    guarded = repositories.find(repository, name)
    if unfinished_imports.is_begun(repository, guarded):
        raise InUse(f"The import into {name!r} is not finished: 'repository import' names its guard with --resource.")
    repositories.guard(repository, guarded, guard_id)
    return guard_id


def _guard_id(directory: Connection | None, resource_id: str) -> str:
    """Return an existing resource's identifier as the directory spells it; without a directory, return it unchanged.

    Raises UnknownResource.
    """
    if directory is None:
        return resource_id
    version_stamps.lock_rights(directory)
    return resources.by_id(directory, resource_id).id
