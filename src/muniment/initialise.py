"""The first start: a data folder with its databases, an administrator, and a repository to begin with."""

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
    """What there is now; the password only when it was made just now."""

    made_folder: bool
    administrator: str = ""
    password: str = ""
    repository: str = ""
    resource: str = ""
    resource_id: str = ""


def run(data: DataFolder, password: str = "") -> Initialisation:
    """Initialise a data folder; what exists stays as it is. The administrator's password is made up unless given.

    Raises Failure when the folder is being served.
    """
    made = not data.path.exists()
    settings = data.settings
    data.make_folder()
    with data.held():
        data.migrate()
        if "directory" not in settings.halves:
            return Initialisation(made)
        with data.database("directory") as database:
            administrator, password = _administrator(data, database, password)
            if "repository" not in settings.halves:
                return Initialisation(made, administrator, password)
            name = resource_name(REPOSITORY)
            with database.begin() as cx:
                resource = administration.ensure_resource(cx, settings.directory.names, name, data.now)
        repository = ensure_repository(data, REPOSITORY, resource.id)
    return Initialisation(made, administrator, password, repository.name, name, resource.id)


def administrator(data: DataFolder) -> Principals:
    """Name who acts from the command line: the administrator, who holds every permission."""
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
    """Name the resource that guards a repository unless another is chosen."""
    return f"Documents of {repository}"


def ensure_repository(data: DataFolder, name: str, resource_id: str) -> Repository:
    """Give the repository of that name, made if it is not there."""
    with data.database("repository") as database, database.begin() as cx:
        for repository in repositories.every(cx):
            if repository.name == name:
                return repository
        made = repositories.add(cx, name, resource_id, "", data.now)
        acls.initialise(cx, made.id, data.now)
        return made


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
