"""Initialise a data folder: its databases, the first administrator, and a first repository."""

import secrets
from typing import NamedTuple

from muniment.data_folder import DataFolder
from muniment.db import Database
from muniment.directory import administration, names
from muniment.directory.entries import editing
from muniment.directory.sign_in import passwords
from muniment.exit_codes import Exit, Failure
from muniment.repository import repositories
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository

REPOSITORY = "main"
CLIENT = "muniment-cli"
"""The public client that ``muniment search`` signs in with."""


class Initialisation(NamedTuple):
    """What a data folder holds after its initialisation; the password only if it was generated just now."""

    is_new_folder: bool
    administrator: str = ""
    password: str = ""
    repository: str = ""
    resource: str = ""
    resource_id: str = ""


def run(data: DataFolder, password: str = "") -> Initialisation:
    """Initialise a data folder; whatever exists stays as it is. Without a ``password``, one is generated.

    Raises Failure when the folder is being served.
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
            name = resource_name(REPOSITORY)
            with database.begin() as cx:
                resource = administration.ensure_resource(cx, settings.directory.names, name, data.now)
        repository = ensure_repository(data, REPOSITORY, resource.id)
    return Initialisation(is_new_folder, administrator, password, repository.name, name, resource.id)


def administrator(data: DataFolder) -> Principals:
    """Return the principals that commands act as: the administrator, who has every permission."""
    partition = data.settings.directory.names.administration_partition
    return data.acting_as(names.user_id(administration.FIRST_ADMINISTRATOR, partition))


def require_initialised(data: DataFolder) -> None:
    """Raise Failure unless the data folder was initialised: nobody serves a directory without an administrator."""
    data.must_exist()
    database_file = data.path / "directory.db"
    if "directory" in data.settings.halves and not data.settings.directory_database and not database_file.exists():
        raise Failure(
            f"{data.path} has not been initialised: run 'muniment --data {data.path} init' first.",
            Exit.NOT_READY,
        )


def resource_name(repository: str) -> str:
    """Name the resource that guards a repository by default."""
    return f"Documents of {repository}"


def ensure_repository(data: DataFolder, name: str, resource_id: str) -> Repository:
    """Return the repository of that name; make it if it is missing."""
    with data.database("repository") as database, database.begin() as cx:
        for repository in repositories.every(cx):
            if repository.name == name:
                return repository
        added = repositories.add(cx, name, resource_id, "", data.now)
        acls.initialise(cx, added.id, data.now)
        return added


def _administrator(data: DataFolder, database: Database, password: str) -> tuple[str, str]:
    options = data.settings.directory
    password = password or secrets.token_urlsafe(12)
    password_hash = passwords.hash_new(password, options)
    with database.begin() as cx:
        administration.initialise(cx, data.now)
        made = administration.ensure_administrator(cx, options.names, password_hash, data.now)
        if made:
            editing.add_client(cx, CLIENT, data.now, description="The command line's own client.")
    name = names.user_id(administration.FIRST_ADMINISTRATOR, options.names.administration_partition)
    return name, password if made else ""
