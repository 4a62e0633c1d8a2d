"""Enforce the rules that bind both halves (decision 0081).

Only a resource of the directory guards a repository, and one that does stays. A user or group that a repository knows
keeps its name. A client by which the repositories sign people in is neither renamed nor removed without ``force``. If
one half runs elsewhere, each function says what cannot be checked.

The directory's decisions about rights are locked first: of two changes at one time, the later one sees the earlier one.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from urllib.parse import quote, unquote

from sqlalchemy.engine import Connection

from muniment.directory import version_stamps
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import credentials, entries, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import signed_tokens
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import CannotKnow, SignsIn, SignsTokens, StillGuards
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.bulk.exports import progress as unfinished_imports
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import InUse, UnknownRepository
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acls, name_keys

Snapshot = Callable[[], AbstractContextManager[Connection]]


def read_client_settings(options: RepositoryOptions) -> Mapping[str, str]:
    named_clients = {"repository.basic_client": options.basic_client}
    if options.offers_search_page:
        named_clients["repository.search_page_client"] = options.search_page_client
    return {setting: client for setting, client in named_clients.items() if client}


def check_client(directory: Connection, client_settings: Mapping[str, str], entry: Entry) -> None:
    """Raises SignsIn.

    ``client_settings`` come from ``read_client_settings``: empty if no repository asks this directory.
    """
    for setting, client in client_settings.items():
        match = credentials.find_of_client(directory, client)
        if match is not None and match.user.id == entry.id:
            raise SignsIn(
                f"The setting {setting} names the client {entry.name!r}, by which people sign in to the repositories: "
                "first name another client there, or none, and start the server again."
            )


def remove_resource(
    directory: Connection, snapshot: Snapshot | None, resource: resources.Resource, now: Instant, *, force: bool = False
) -> SessionCount:
    """Raises CannotKnow without a ``snapshot`` unless ``force``, StillGuards, and BadName for the built-in resource."""
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
    return resource_decisions.remove_resource(directory, resource, now)


def check_tokens(directory: Connection, snapshot: Snapshot | None, resource: resources.Resource) -> None:
    """Who enters a repository is asked at each request, so its tokens are opaque. Raises StillGuards."""
    version_stamps.lock_rights(directory)
    if snapshot is None:
        return
    with snapshot() as repository:
        dependents = repositories.guarded_by(repository, resource.id)
    if dependents:
        names = ", ".join(repr(each.name) for each in dependents)
        raise StillGuards(f"This resource guards {names}: its access tokens stay opaque.")


def guard_at(snapshot: Snapshot, encoded_name: str) -> str | None:
    """Which resource guards the repository of this name, as addresses spell it."""
    name = unquote(encoded_name)
    if quote(name, safe="") != encoded_name:
        return None
    try:
        with snapshot() as repository:
            return repositories.find_open(repository, name).resource_id
    except UnknownRepository:
        return None


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
    """Raises what ``administration.rename`` raises. Without ``force`` also what ``check_client`` raises, if more than
    the name's case changes, and CannotKnow for a user or group if the halves run apart.
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
    """Without the ``directory``, nobody checks that the resource exists. An empty ``language`` stands for the
    settings'. Raises UnknownResource, SignsTokens, NameTaken, WrongValue.
    """
    guard_id = _guard_id(directory, resource_id)
    new_repository = repositories.add(repository, name, guard_id, "", now, language)
    acls.initialise(repository, new_repository.id, now)
    return new_repository


def guard(directory: Connection | None, repository: Connection, name: str, resource_id: str) -> str:
    """As ``add_repository``. Raises UnknownResource, SignsTokens, UnknownRepository, and InUse while an import is not
    finished.
    """
    guard_id = _guard_id(directory, resource_id)
    guarded = repositories.find(repository, name)
    if unfinished_imports.is_begun(repository, guarded):
        raise InUse(f"The import into {name!r} is not finished: 'repository import' names its guard with --resource.")
    repositories.guard(repository, guarded, guard_id)
    return guard_id


def _guard_id(directory: Connection | None, resource_id: str) -> str:
    """Spelt as in the directory; without it, as it is. Raises UnknownResource, and SignsTokens, as ``check_tokens``
    raises StillGuards.
    """
    if directory is None:
        return resource_id
    version_stamps.lock_rights(directory)
    resource = resources.by_id(directory, resource_id)
    if signed_tokens.signs(resource):
        raise SignsTokens(
            "This resource issues signed tokens, which live on until they expire: make them opaque, then let it guard."
        )
    return resource.id
