"""Commands about OAuth clients."""

from functools import partial
from typing import Annotated

import typer

from muniment import departures
from muniment.cli import terminal
from muniment.cli.directory.entries import (
    Description,
    NewDescription,
    NewName,
    describe_ended,
    remove_person,
    rename_entry,
    show_sessions,
    state_of,
)
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.directory import administration, sessions
from muniment.directory.entries import editing, entries
from muniment.directory.names import user_id
from muniment.directory.sign_in import passwords

client = typer.Typer(no_args_is_help=True, help="OAuth clients.")

COMMANDS = {"client": client}

_ForceClient = Annotated[
    bool,
    typer.Option(
        "--force", help="Rename it even if a setting names it. Confirms that no repository elsewhere depends on it."
    ),
]
ClientName = Annotated[str, typer.Argument(metavar="NAME", help="The client_id.")]


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
def list_clients(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List the clients."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        rows = [
            (entry.name, "confidential" if entry.has_password else "public", state_of(entry), entry.description)
            for entry in entries.listing(cx, entries.clients(cx), "user", limit=None)
        ]
    terminal.table(("Client", "Kind", "State", "Description"), rows, as_json=as_json, header=header)


@client.command("rename")
def rename_client(context: typer.Context, name: ClientName, new_name: NewName, force: _ForceClient = False) -> None:
    """Rename a client. It must have no living grants, because its installations send its name as client_id."""
    rename_entry(context.obj, partial(entries.find_client, name=name), new_name, force=force)


@client.command("remove")
def remove_client(
    context: typer.Context,
    name: ClientName,
    force: Annotated[bool, typer.Option("--force", help="Remove it even if a setting names it.")] = False,
) -> None:
    """Remove a client; every grant issued to it ends. If the repository runs here, its ACL entries are removed."""
    data: DataFolder = context.obj
    client_id = user_id(name, data.settings.directory.names.clients_partition)
    remove = partial(departures.remove_user, user_id=client_id, force=force)
    remove_person(data, partial(entries.find_client, name=name), remove)


@client.command("set")
def set_client(
    context: typer.Context,
    name: ClientName,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Forbid it to act, or allow it again.")
    ] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock it out, or let it in.")] = None,
    description: NewDescription = None,
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
    if not entry.has_password:
        terminal.errors.print(
            terminal.harmless(f"Warning: {name} had no secret. From now on its installations must send this one.")
        )
    terminal.line(secret)


@client.command("sessions")
def list_client_sessions(
    context: typer.Context, name: ClientName, as_json: AsJson = False, header: WithHeader = None
) -> None:
    """List the grants issued to a client."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        client_sessions = sessions.of_client(cx, entries.find_client(cx, name), data.now)
        show_sessions(data, cx, client_sessions, as_json=as_json, header=header)


@client.command("sign-out")
def sign_out_client(context: typer.Context, name: ClientName) -> None:
    """End every grant issued to a client."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        count = administration.sign_out(cx, entries.find_client(cx, name), data.now)
    terminal.line(describe_ended(count))
