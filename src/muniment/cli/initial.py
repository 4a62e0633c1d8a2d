"""The first start: a data folder with its databases, an administrator, and a repository to begin with."""

import secrets
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, Failure
from muniment.db import Database, Instant
from muniment.directory import entries, grants, memberships, names, passwords, resources
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry, UnknownResource
from muniment.directory.resources import Resource
from muniment.repository import acls, repositories
from muniment.repository.principals import Principals
from muniment.repository.repositories import Repository

ADMINISTRATOR = "admin"
REPOSITORY = "main"
CLIENT = "muniment-cli"
"""The public client that ``muniment search`` signs in with."""


class Begun(NamedTuple):
    """What there is now; the password only when it was made just now."""

    made_folder: bool
    administrator: str = ""
    password: str = ""
    repository: str = ""
    resource: str = ""
    resource_id: str = ""


def begin(opened: Opened, password: str = "") -> Begun:
    """Initialise a data folder; what exists stays as it is. The administrator's password is made up unless given.

    Raises Failure when the folder is being served.
    """
    made = not opened.data.exists()
    settings = opened.settings
    opened.make_folder()
    with opened.held():
        opened.migrate()
        if "directory" not in settings.halves:
            return Begun(made)
        with opened.database("directory") as database:
            administrator, password = _administrator(opened, database, password)
            if "repository" not in settings.halves:
                return Begun(made, administrator, password)
            name = resource_name(REPOSITORY)
            resource = guarding_resource(opened, database, name)
        repository = repository_named(opened, REPOSITORY, resource.id)
    return Begun(made, administrator, password, repository.name, name, resource.id)


def administrator(opened: Opened) -> Principals:
    """Name who acts from the command line: the administrator, who holds every permission."""
    partition = opened.settings.directory.names.administration_partition
    return opened.acting_as(names.user_id(ADMINISTRATOR, partition))


def must_be_done(opened: Opened) -> None:
    """Raise Failure unless the data folder was initialised: nobody serves a directory without an administrator."""
    opened.must_exist()
    database_file = opened.data / "directory.db"
    if "directory" in opened.settings.halves and not opened.settings.directory_database and not database_file.exists():
        raise Failure(
            f"{opened.data} has not been initialised: run 'muniment --data {opened.data} init' first.", Exit.NOT_READY
        )


def resource_name(repository: str) -> str:
    """Name the resource that guards a repository unless another is chosen."""
    return f"Documents of {repository}"


def hashed(opened: Opened, password: str) -> str:
    """Hash a new password as the settings say."""
    options = opened.settings.directory
    return passwords.hash_now(password, memory_kib=options.hash_memory_kib, passes=options.hash_passes)


def guarding_resource(opened: Opened, database: Database, name: str) -> Resource:
    """Give the resource of that name, made and activated if it is not there; its access role admits administrators."""
    with database.begin() as cx:
        try:
            return resources.named(cx, opened.settings.directory.names, name)
        except UnknownResource:
            made = resources.add(cx, opened.settings.directory.names, name, opened.now)
            # The repository in this process verifies tokens without the secret: nobody needs to know it.
            resources.activate(cx, made.id, opened.now)
            resources.add_to_role(cx, made, entries.administrators(cx))
            return resources.by_id(cx, made.id)


def repository_named(opened: Opened, name: str, resource_id: str) -> Repository:
    """Give the repository of that name, made if it is not there."""
    with opened.database("repository") as database, database.begin() as cx:
        for repository in repositories.every(cx):
            if repository.name == name:
                return repository
        made = repositories.add(cx, name, resource_id, "", opened.now)
        acls.initialise(cx, made.id, opened.now)
        return made


def _administrator(opened: Opened, database: Database, password: str) -> tuple[str, str]:
    named = opened.settings.directory.names
    administrator = names.user_id(ADMINISTRATOR, named.administration_partition)
    password = password or secrets.token_urlsafe(12)
    password_hash = hashed(opened, password)
    with database.begin() as cx:
        grants.initialise(cx, opened.now)
        if _has(cx, named, administrator):
            return administrator, ""
        _add(cx, password_hash, opened.now)
    return administrator, password


def _has(cx: Connection, named: DirectoryNames, administrator: str) -> bool:
    try:
        entries.find_user(cx, named, administrator)
    except UnknownEntry:
        return False
    return True


def _add(cx: Connection, password_hash: str, now: Instant) -> None:
    partition = entries.administration(cx)
    user = entries.add_user(
        cx, partition, ADMINISTRATOR, now, password_hash=password_hash, description="The first administrator."
    )
    memberships.add_member(cx, entries.administrators(cx), user)
    entries.add_client(cx, CLIENT, now, description="The command line's own client.")
