"""Commands about OAuth clients."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.directory import client_settings
from muniment.cli.directory.entries import (
    SESSION_HEADS,
    Description,
    NewDescription,
    NewName,
    describe_ended,
    remove_person,
    rename_entry,
    session_rows,
    state_of,
)
from muniment.cli.running import Group, Rows
from muniment.directory.administration import client_decisions, client_documents, decisions
from muniment.directory.entries import editing, entries, names, oauth_clients
from muniment.directory.oauth import sessions
from muniment.directory.refusals import BadName
from muniment.directory.sign_in import passwords
from muniment.installation.data_folder import DataFolder

client_commands = Group("directory", help="OAuth clients.")

_ForceClient = Annotated[
    bool,
    typer.Option(
        "--force", help="Rename it even if a setting names it. Confirms that no repository elsewhere depends on it."
    ),
]
ClientName = Annotated[str, typer.Argument(metavar="NAME", help="The client_id.")]


@client_commands.acts("add")
def add_client(
    data: DataFolder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The client_id.")] = "",
    description: Description = "",
    document: Annotated[
        Path | None,
        typer.Option("--document", help="A Client ID Metadata Document, which says all of it. Nothing is fetched."),
    ] = None,
    confidential: Annotated[
        bool, typer.Option("--confidential", help="The client has a secret, which is generated and printed once.")
    ] = False,
) -> None:
    """Register an OAuth client: public, unless --confidential is given or its document names keys."""
    if document is not None:
        told = client_documents.read(document.read_bytes())
        if name not in ("", told.client_id):
            raise BadName(f"The client of this document is {told.client_id}.")
        with data.begin("directory") as cx:
            made = editing.add_client(cx, told.client_id, data.now, description=description or told.description)
            client_decisions.set_settings(cx, made, told.settings, data.now)
        terminal.line(told.client_id)
        return
    secret, password_hash = passwords.new_secret() if confidential else (None, None)
    with data.begin("directory") as cx:
        editing.add_client(cx, name, data.now, password_hash=password_hash, description=description)
    if secret:
        terminal.line(secret)


@client_commands.reads("list", "Client", "Kind", "State", "Allows", "Description")
def list_clients(cx: Connection) -> Rows:
    """List the clients, and which of them may sign people in by a password, or without PKCE and nonce."""
    listed = entries.listing(cx, entries.clients(cx), "user", limit=None)
    settings = oauth_clients.read(cx, [entry.id for entry in listed])
    rows = []
    for entry in listed:
        own = settings[entry.id]
        allowed = ", ".join(oauth_clients.laxities(own, has_secret=entry.has_password))
        kind = "confidential" if own.is_confidential(has_secret=entry.has_password) else "public"
        rows.append((entry.name, kind, state_of(entry), allowed, entry.description))
    return rows


@client_commands.writes("rename")
def rename_client(
    data: DataFolder, cx: Connection, name: ClientName, new_name: NewName, force: _ForceClient = False
) -> None:
    """Rename a client. It must have no living grants, because its installations send its name as client_id."""
    rename_entry(data, cx, entries.find_client(cx, name), new_name, force=force)


@client_commands.acts("remove")
def remove_client(
    data: DataFolder,
    name: ClientName,
    force: Annotated[bool, typer.Option("--force", help="Remove it even if a setting names it.")] = False,
) -> None:
    """Remove a client; every grant issued to it ends. If the repository runs here, its ACL entries are removed."""
    remove_person(data, "user", names.user_id(name, data.settings.directory.names.clients_partition), force=force)


@client_commands.writes("set")
def set_client(
    data: DataFolder,
    cx: Connection,
    name: ClientName,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Forbid it to act, or allow it again.")
    ] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock it out, or let it in.")] = None,
    description: NewDescription = None,
) -> None:
    """Disable, enable, lock, unlock or describe a client; disabling or locking ends every grant issued to it."""
    entry = entries.find_client(cx, name)
    if disabled is not None:
        decisions.set_disabled(cx, entry, disabled, data.now)
    if locked is not None:
        decisions.set_locked(cx, entry, locked, data.now)
    if description is not None:
        editing.set_description(cx, entry, description, data.now)


@client_commands.reads("show", "Setting", "Value")
def show_client(cx: Connection, name: ClientName) -> Rows:
    """Show what is set of a client, and how it authenticates."""
    entry = entries.find_client(cx, name)
    return client_settings.rows(oauth_clients.settings_of(cx, entry.id))


@client_commands.writes("configure")
def configure_client(
    data: DataFolder,
    cx: Connection,
    name: ClientName,
    redirects: client_settings.Redirects = None,
    allowed: client_settings.Allowed = None,
    denied: client_settings.Denied = None,
    pkce: client_settings.Pkce = None,
    keys: client_settings.Keys = None,
    takes_endpoint_audience: client_settings.EndpointAudience = None,
    default_resource: client_settings.DefaultResource = None,
    may_administer: client_settings.MayAdminister = None,
    rotate: client_settings.Rotate = None,
    allow_impersonation: client_settings.Impersonate = None,
) -> str:
    """Say how a client may get tokens, and for what. What it may no longer have ends."""
    entry = entries.find_client(cx, name)
    settings = oauth_clients.settings_of(cx, entry.id)
    changes = client_settings.changed(
        *(cx, data.settings.directory.names, settings),
        redirects=redirects,
        allowed=allowed,
        denied=denied,
        keys=keys,
        default_resource=default_resource,
        rotate=rotate,
        pkce=pkce,
        takes_endpoint_audience=takes_endpoint_audience,
        may_administer=may_administer,
        allow_impersonation=allow_impersonation,
    )
    return describe_ended(
        client_decisions.set_settings(cx, entry, msgspec.structs.replace(settings, **changes), data.now)
    )


@client_commands.acts("secret")
def set_secret(
    data: DataFolder,
    name: ClientName,
    end_sessions: Annotated[bool, typer.Option("--end-sessions", help="End every grant issued to it, too.")] = False,
) -> None:
    """Give a client a new secret, which is generated and printed once. The grants issued to it stay valid, unless it
    authenticated by its key, which it does no more.
    """
    secret, password_hash = passwords.new_secret()
    with data.begin("directory") as cx:
        entry = entries.find_client(cx, name)
        settings = msgspec.structs.replace(oauth_clients.settings_of(cx, entry.id), authentication="secret")
        client_decisions.set_settings(cx, entry, settings, data.now, secret_hash=password_hash)
        if end_sessions:
            decisions.sign_out(cx, entry, data.now)
    if not entry.has_password:
        terminal.errors.print(
            terminal.harmless(f"Warning: {name} had no secret. From now on its installations must send this one.")
        )
    terminal.line(secret)


@client_commands.reads("sessions", *SESSION_HEADS)
def list_client_sessions(data: DataFolder, cx: Connection, name: ClientName) -> Rows:
    """List the grants issued to a client."""
    return session_rows(data, cx, sessions.of_client(cx, entries.find_client(cx, name), data.now))


@client_commands.writes("sign-out")
def sign_out_client(data: DataFolder, cx: Connection, name: ClientName) -> str:
    """End every grant issued to a client."""
    return describe_ended(decisions.sign_out(cx, entries.find_client(cx, name), data.now))
