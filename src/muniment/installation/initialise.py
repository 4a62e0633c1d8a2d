"""Initialise a data folder: make its databases, the first administrator, and a first repository."""

import secrets
from typing import NamedTuple

from muniment.database.connections import Database
from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import editing, entries, names, resources
from muniment.directory.oauth import signing_keys
from muniment.directory.refusals import UnknownClient
from muniment.directory.sign_in import passwords
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.integration import guards
from muniment.repository.store import repositories
from muniment.repository.store.permissions.principals import Principals

REPOSITORY = "main"
CLIENT = "muniment-cli"

BASIC_CLIENT = "muniment-basic"
"""The public client for HTTP Basic at a repository, if ``basic_client`` names it."""


SEARCH_CLIENT = "muniment-search"

CLIENTS = {
    CLIENT: "The command line's own client.",
    BASIC_CLIENT: "Signs in the callers who use HTTP Basic.",
    SEARCH_CLIENT: "Signs in the people who search from the page /search.",
}


class Initialisation(NamedTuple):
    """``password`` is empty unless the administrator is new."""

    is_new_folder: bool
    administrator: str = ""
    password: str = ""
    repository: str = ""
    resource: str = ""
    resource_id: str = ""


def run(data: DataFolder, password: str = "") -> Initialisation:
    """What the folder has already stays.

    With an empty ``password`` a new administrator gets a random one. Raises Failure when a server uses the folder.
    """
    is_new_folder = not data.path.exists()
    settings = data.settings
    data.make_folder()
    with data.lock():
        data.migrate()
        if "directory" not in settings.halves:
            return Initialisation(is_new_folder)
        with data.database("directory") as database:
            administrator, password = _administrator(data, database, password)
            if "repository" not in settings.halves:
                return Initialisation(is_new_folder, administrator, password)
            directory_names = settings.directory.names
            guard_id = _guard_of(data, REPOSITORY)
            with database.begin() as cx:
                # A repository that is there keeps its guard, whatever the guard is called by now.
                resource = next((each for each in resources.all_resources(cx) if each.id == guard_id), None)
                if resource is None:
                    resource = resource_decisions.ensure_resource(
                        cx, directory_names, resource_name(REPOSITORY), data.now
                    )
            name = resources.shown_name(directory_names, resource)
        repository = ensure_repository(data, REPOSITORY, resource.id)
    return Initialisation(is_new_folder, administrator, password, repository.name, name, resource.id)


def ensure_search_client(data: DataFolder) -> str:
    """Return the name of the search page's public client if it was missing, and made.

    Nothing is missing where no page is offered, its client has a secret, or its directory is elsewhere.
    """
    options = data.settings.repository
    if not (data.together and options.offers_search_page and not options.search_page_secret):
        return ""
    with data.begin("directory") as cx:
        try:
            entries.find_client(cx, options.search_page_client)
        except UnknownClient:
            description = CLIENTS[SEARCH_CLIENT]
            return editing.add_client(cx, options.search_page_client, data.now, description=description).name
    return ""


def ensure_signing_keys(data: DataFolder) -> None:
    """Who asks for the first signed token, or how to verify one, would wait for them."""
    if "directory" not in data.settings.halves:
        return
    with data.read("directory") as cx:
        missing = signing_keys.missing(cx)
    keys = [signing_keys.generate(algorithm) for algorithm in missing]
    if keys:
        with data.begin("directory") as cx:
            signing_keys.add_missing(cx, keys, data.now)


def administrator(data: DataFolder) -> Principals:
    partition = data.settings.directory.names.administration_partition
    return data.acting_as(names.user_id(decisions.FIRST_ADMINISTRATOR, partition))


def require_initialised(data: DataFolder) -> None:
    """Raises Failure if the folder is missing or half restored, or if a directory here has no tables."""
    data.must_exist()
    data.must_be_whole()
    if "directory" in data.settings.halves and not data.has_tables("directory"):
        raise Failure(
            f"{data.path} has not been initialised: run 'muniment --data {data.path} init' first.",
            Exit.NOT_READY,
        )


def resource_name(repository: str) -> str:
    return f"Documents of {repository}"


def ensure_repository(data: DataFolder, name: str, resource_id: str) -> repositories.Repository:
    """A missing one is made with its built-in ACLs, guarded by ``resource_id``."""
    with data.begin("repository") as cx:
        for repository in repositories.all_repositories(cx):
            if repository.name == name:
                return repository
        return guards.add_repository(None, cx, name, resource_id, data.now)


def _guard_of(data: DataFolder, name: str) -> str:
    with data.read("repository") as cx:
        return next(
            (repository.resource_id for repository in repositories.all_repositories(cx) if repository.name == name), ""
        )


def _administrator(data: DataFolder, database: Database, password: str) -> tuple[str, str]:
    options = data.settings.directory
    password = password or secrets.token_urlsafe(12)
    password_hash = passwords.hash_new(password, options)
    with database.begin() as cx:
        decisions.initialise(cx, data.now)
        is_new = decisions.ensure_administrator(cx, options.names, password_hash, data.now)
        if is_new:
            for client, description in CLIENTS.items():
                editing.add_client(cx, client, data.now, description=description)
    name = names.user_id(decisions.FIRST_ADMINISTRATOR, options.names.administration_partition)
    return name, password if is_new else ""
