"""Commands about OAuth clients, and about protected resources with their access roles."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment import guards
from muniment.cli import terminal
from muniment.cli.directory import (
    Description,
    describe_ended,
    describe_removal,
    find_entry,
    show_entries,
    show_sessions,
    state_of,
)
from muniment.data_folder import DataFolder
from muniment.directory import administration, resources, sessions
from muniment.directory.entries import editing, entries
from muniment.directory.resources import Resource
from muniment.directory.sign_in import passwords

client = typer.Typer(no_args_is_help=True, help="OAuth clients.")
resource = typer.Typer(no_args_is_help=True, help="Protected APIs and who is in their access roles.")

COMMANDS = {"client": client, "resource": resource}

ClientName = Annotated[str, typer.Argument(metavar="NAME", help="The client_id.")]
ResourceName = Annotated[str, typer.Argument(metavar="NAME", help="The resource's name or its identifier.")]
Members = Annotated[list[str], typer.Argument(metavar="ENTRY...", help="name@partition, a partition, or a location.")]


@client.command("add")
def add_client(
    context: typer.Context,
    name: ClientName,
    description: Description = "",
    confidential: Annotated[
        bool, typer.Option("--confidential", help="The client has a secret, which is generated and printed once.")
    ] = False,
) -> None:
    """Register an OAuth client: public, unless --confidential is given."""
    data: DataFolder = context.obj
    secret = terminal.new_password(from_stdin=False, random=True)[0] if confidential else None
    password_hash = passwords.hash_new(secret, data.settings.directory) if secret else None
    with data.database("directory") as database, database.begin() as cx:
        editing.add_client(cx, name, data.now, password_hash=password_hash, description=description)
    if secret:
        terminal.line(secret)


@client.command("list")
def list_clients(context: typer.Context) -> None:
    """List the clients."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        rows = [
            (entry.name, "confidential" if entry.has_password else "public", state_of(entry), entry.description)
            for entry in entries.listing(cx, entries.clients(cx), "user", limit=None)
        ]
    terminal.table(("Client", "Kind", "State", "Description"), rows)


@client.command("remove")
def remove_client(context: typer.Context, name: ClientName) -> None:
    """Remove a client; every grant issued to it ends."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        dependents = administration.remove(cx, entries.find_client(cx, name), data.now)
    terminal.line(describe_removal(data, dependents))


@client.command("set")
def set_client(
    context: typer.Context,
    name: ClientName,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Forbid it to act, or allow it again.")
    ] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock it out, or let it in.")] = None,
    description: Annotated[str | None, typer.Option(help="Free text.")] = None,
) -> None:
    """Disable, enable, lock, unlock or describe a client; disabling or locking ends every grant issued to it."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        entry = entries.find_client(cx, name)
        if disabled is not None:
            administration.set_disabled(cx, entry, disabled, data.now)
        if locked is not None:
            administration.set_locked(cx, entry, locked, data.now)
        if description is not None:
            editing.set_description(cx, entry, description, data.now)


@client.command("secret")
def set_secret(
    context: typer.Context,
    name: ClientName,
    end_sessions: Annotated[bool, typer.Option("--end-sessions", help="End every grant issued to it, too.")] = False,
) -> None:
    """Give a client a new secret, which is generated and printed once. The grants issued to it stay valid."""
    data: DataFolder = context.obj
    secret = terminal.new_password(from_stdin=False, random=True)[0]
    password_hash = passwords.hash_new(secret, data.settings.directory)
    with data.database("directory") as database, database.begin() as cx:
        entry = entries.find_client(cx, name)
        administration.set_password(cx, entry, password_hash, data.now, end_sessions=end_sessions)
    terminal.line(secret)


@client.command("sessions")
def list_client_sessions(context: typer.Context, name: ClientName) -> None:
    """List the grants issued to a client."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        show_sessions(data, cx, sessions.of_client(cx, entries.find_client(cx, name), data.now))


@client.command("sign-out")
def sign_out_client(context: typer.Context, name: ClientName) -> None:
    """End every grant issued to a client."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        count = administration.sign_out(cx, entries.find_client(cx, name), data.now)
    terminal.line(describe_ended(count))


@resource.command("add")
def add_resource(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")], description: Description = ""
) -> None:
    """Register a protected API with its access role, and print its identifier."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        resource = resources.add(cx, data.settings.directory.names, name, data.now, description=description)
    terminal.line(resource.id)


@resource.command("activate")
def activate_resource(context: typer.Context, name: ResourceName) -> None:
    """Activate a resource and print its secret key. A resource is activated once, and its key is shown once."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        secret = resources.activate(cx, _resource(data, cx, name).id, data.now)
    terminal.line(secret)


@resource.command("list")
def list_resources(context: typer.Context) -> None:
    """List the resources."""
    data: DataFolder = context.obj
    names = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        rows = [
            (resources.shown_name(names, resource), resource.id, "activated" if resource.activated else "created")
            for resource in resources.every(cx)
        ]
    terminal.table(("Resource", "Identifier", "State"), rows)


@resource.command("members")
def list_role(context: typer.Context, name: ResourceName) -> None:
    """List who is in a resource's access role."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        show_entries(data, resources.role_members(cx, _resource(data, cx, name)))


@resource.command("add-member")
@resource.command("admit", hidden=True)
def add_to_role(context: typer.Context, name: ResourceName, members: Members) -> None:
    """Add users, groups, units or partitions to a resource's access role."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        resource = _resource(data, cx, name)
        for member in members:
            resources.add_to_role(cx, resource, find_entry(data, cx, member))


@resource.command("remove-member")
@resource.command("expel", hidden=True)
def remove_from_role(context: typer.Context, name: ResourceName, members: Members) -> None:
    """Remove entries from a resource's access role; tokens that rest on them give no access from then on."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        resource = _resource(data, cx, name)
        for member in members:
            administration.remove_from_role(cx, resource, find_entry(data, cx, member))


@resource.command("remove")
def remove_resource(
    context: typer.Context,
    name: ResourceName,
    force: Annotated[
        bool,
        typer.Option("--force", help="Where the directory runs apart: say that no repository elsewhere depends on it."),
    ] = False,
) -> None:
    """Remove a resource that guards no repository; its tokens end."""
    data: DataFolder = context.obj
    snapshot = partial(_repository, data) if "repository" in data.settings.halves else None
    with data.database("directory") as database, database.begin() as cx:
        resource = _resource(data, cx, name)
        members = resources.role_members(cx, resource)
        sessions_ended = guards.remove_resource(cx, snapshot, resource, data.now, force=force)
    terminal.line(f"Its access role had {len(members)} members. {describe_ended(sessions_ended)}")


@contextmanager
def _repository(data: DataFolder) -> Iterator[Connection]:
    with data.database("repository") as database, database.read() as cx:
        yield cx


def _resource(data: DataFolder, cx: Connection, text: str) -> Resource:
    for resource in resources.every(cx):
        if resource.id == text.lower():
            return resource
    return resources.find(cx, data.settings.directory.names, text)
