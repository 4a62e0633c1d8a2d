"""Commands about users, and about their sessions."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.directory.entries import (
    ENTRY_HEADS,
    SESSION_HEADS,
    Description,
    EntryId,
    Force,
    NewDescription,
    NewName,
    PartitionName,
    Target,
    Where,
    describe_ended,
    entries_of_kind,
    find_entry,
    move_entry,
    remove_person,
    rename_person,
    session_rows,
    state_of,
)
from muniment.cli.running import Group, Rows
from muniment.directory.administration import decisions
from muniment.directory.entries import attributes, credentials, editing, entries, memberships, table
from muniment.directory.oauth import sessions
from muniment.directory.sign_in import passwords, pauses
from muniment.ground.clock import timestamp
from muniment.installation.data_folder import DataFolder

user_commands = Group("directory", help="Users.")
session_commands = Group("directory", help="Sessions: who is signed in where.")

FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
Random = Annotated[bool, typer.Option("--random", help="Generate a password and print it once.")]


@user_commands.acts("add")
def add_user(
    data: DataFolder,
    user_id: EntryId,
    where: Where = "",
    description: Description = "",
    from_stdin: FromStdin = False,
    random: Random = False,
) -> None:
    """Make a user with a password."""
    password = terminal.new_password(from_stdin=from_stdin, random=random)
    options = data.settings.directory
    password_hash = passwords.hash_new(password, options)
    with data.begin("directory") as cx:
        parent = find_entry(data, cx, where) if where else None
        decisions.add_user(
            cx, options.names, user_id, parent, data.now, password_hash=password_hash, description=description
        )
    if random:
        terminal.line(password)


@user_commands.reads("list", *ENTRY_HEADS)
def list_users(data: DataFolder, cx: Connection, name: PartitionName) -> Rows:
    """List a partition's users."""
    return entries_of_kind(data, cx, name, "user")


@user_commands.reads("show")
def show_user(data: DataFolder, cx: Connection, user_id: EntryId) -> dict[str, object]:
    """Show a user, their state and their groups."""
    directory_names = data.settings.directory.names
    user = entries.find_user(cx, directory_names, user_id)
    return {
        "id": entries.shown_id(directory_names, user),
        "location": entries.location(directory_names, user),
        "description": user.description,
        "state": state_of(user),
        "password": user.has_password,
        **_sign_ins(data, credentials.find(cx, data.settings.directory, user_id)),
        "group": [entries.shown_id(directory_names, group) for group in memberships.groups_of(cx, user.id)],
        **attributes.stored_values(cx, user.id),
    }


@user_commands.writes("unpause")
def end_pauses(data: DataFolder, cx: Connection, user_id: EntryId) -> None:
    """End the pauses that wrong passwords caused, so that a user may sign in at once. A lock stays."""
    editing.end_pauses(cx, _by_id(data, cx, user_id))


@user_commands.acts("password")
def set_password(data: DataFolder, user_id: EntryId, from_stdin: FromStdin = False, random: Random = False) -> None:
    """Give a user a new password; their sessions end."""
    password = terminal.new_password(from_stdin=from_stdin, random=random)
    password_hash = passwords.hash_new(password, data.settings.directory)
    with data.begin("directory") as cx:
        user = _by_id(data, cx, user_id)
        decisions.set_password(cx, user, password_hash, data.now)
    if random:
        terminal.line(password)


@user_commands.writes("set")
def set_user(
    data: DataFolder,
    cx: Connection,
    user_id: EntryId,
    disabled: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Forbid them to act, or allow it again.")
    ] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock them out, or let them in again.")] = None,
    password_never_expires: Annotated[
        bool | None,
        typer.Option("--password-never-expires/--password-expires", help="A flag shown to APIs that verify tokens."),
    ] = None,
    must_change_password: Annotated[
        bool | None,
        typer.Option("--must-change-password/--may-keep-password", help="A flag shown to APIs that verify tokens."),
    ] = None,
    cannot_change_password: Annotated[
        bool | None,
        typer.Option("--cannot-change-password/--can-change-password", help="A flag shown to APIs that verify tokens."),
    ] = None,
    description: NewDescription = None,
) -> None:
    """Disable, enable, lock, unlock, flag or describe a user; disabling or locking ends their sessions."""
    user = _by_id(data, cx, user_id)
    if disabled is not None:
        decisions.set_disabled(cx, user, disabled, data.now)
    if locked is not None:
        decisions.set_locked(cx, user, locked, data.now)
    flags = {
        "password_never_expires": password_never_expires,
        "must_change_password": must_change_password,
        "cannot_change_password": cannot_change_password,
    }
    if changes := {name: flag for name, flag in flags.items() if flag is not None}:
        editing.set_flags(cx, user, data.now, **changes)
    if description is not None:
        editing.set_description(cx, user, description, data.now)


@user_commands.writes("rename")
def rename_user(data: DataFolder, cx: Connection, user_id: EntryId, new_name: NewName, force: Force = False) -> str:
    """Rename a user. This is refused if a repository knows the user: objects and ACLs there show the present name."""
    return rename_person(data, cx, _by_id(data, cx, user_id), new_name, force=force)


@user_commands.writes("move")
def move_user(data: DataFolder, cx: Connection, user_id: EntryId, target: Target) -> str:
    """Move a user into another unit of their partition, and print their new location."""
    return move_entry(data, cx, _by_id(data, cx, user_id), target)


@user_commands.reads("sessions", *SESSION_HEADS)
def list_sessions(data: DataFolder, cx: Connection, user_id: EntryId) -> Rows:
    """List a user's sessions: the grants of clients that act for them, and the tickets of browsers."""
    user = _by_id(data, cx, user_id)
    return session_rows(data, cx, sessions.of_user(cx, user, data.now))


@user_commands.writes("sign-out")
def sign_out_user(data: DataFolder, cx: Connection, user_id: EntryId) -> str:
    """End every session of a user; they may sign in again."""
    count = decisions.sign_out(cx, _by_id(data, cx, user_id), data.now)
    return describe_ended(count)


@user_commands.writes("attribute")
def set_attribute(
    data: DataFolder,
    cx: Connection,
    user_id: EntryId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as mail, sn, displayName, or one of your own.")],
    values: Annotated[list[str] | None, typer.Argument(metavar="VALUE...", help="No value unsets it.")] = None,
) -> None:
    """Set a directory attribute of a user. APIs that verify the user's tokens see it."""
    directory_names = data.settings.directory.names
    user = entries.find_user(cx, directory_names, user_id)
    attributes.put(cx, directory_names, user, {name: values or []}, data.now)


@user_commands.acts("remove")
def remove_user(
    data: DataFolder,
    user_id: EntryId,
    give_to: Annotated[
        str, typer.Option("--give-to", metavar="NAME@PARTITION", help="Give what they own to this user first.")
    ] = "",
) -> None:
    """Delete a user; their sessions end. What they own keeps its owner unless it is given away."""
    remove_person(data, "user", user_id, give_to=give_to)


@session_commands.writes("end")
def end_session(
    data: DataFolder,
    cx: Connection,
    session_ids: Annotated[list[str], typer.Argument(metavar="SESSION...", help="As 'user sessions' shows them.")],
) -> str:
    """End sessions by their ids."""
    count = sum((sessions.end_one(cx, session_id, data.now) for session_id in session_ids), sessions.SessionCount())
    return describe_ended(count)


def _by_id(data: DataFolder, cx: Connection, user_id: str) -> table.Entry:
    return entries.find_user(cx, data.settings.directory.names, user_id)


def _sign_ins(data: DataFolder, sign_in: credentials.Credentials | None) -> dict[str, object]:
    if sign_in is None:
        return {}
    wrong = []
    for pause in pauses.pauses(data.settings.directory, sign_in, data.now):
        where = "elsewhere" if pause.elsewhere else "at a known place"
        until = f", paused until {timestamp(pause.until)}" if pause.until else ""
        wrong.append(f"{pause.failures} {where}{until}")
    return {"known places": pauses.known_places(sign_in, data.now), "wrong passwords": wrong}
