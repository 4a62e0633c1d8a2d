"""Commands about partitions, organizational units, users, groups and sessions."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import belongings, terminal
from muniment.clock import timestamp
from muniment.data_folder import DataFolder
from muniment.directory import administration, attributes, memberships, resources, sessions
from muniment.directory.administration import Dependents
from muniment.directory.entries import credentials, editing, entries
from muniment.directory.entries.credentials import Credentials
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.refusals import UnknownEntry
from muniment.directory.sessions import Session, SessionCount
from muniment.directory.sign_in import passwords, pauses

partition = typer.Typer(no_args_is_help=True, help="Partitions: separate sets of users and groups.")
unit = typer.Typer(
    no_args_is_help=True, help="Organizational units: the folders of users and groups within a partition."
)
user = typer.Typer(no_args_is_help=True, help="Users.")
session = typer.Typer(no_args_is_help=True, help="Sessions: who is signed in where.")
group = typer.Typer(no_args_is_help=True, help="Groups, which may hold users and groups.")

COMMANDS = {
    "partition": partition,
    "unit": unit,
    "user": user,
    "group": group,
    "session": session,
}

Id = Annotated[str, typer.Argument(metavar="NAME@PARTITION")]
PartitionName = Annotated[str, typer.Argument(metavar="PARTITION")]
Description = Annotated[str, typer.Option(help="Free text.")]
Where = Annotated[
    str, typer.Option("--in", metavar="LOCATION", help="The unit to put it into; otherwise the root unit.")
]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
Random = Annotated[bool, typer.Option("--random", help="Generate a password and print it once.")]


@partition.command("add")
def add_partition(context: typer.Context, name: PartitionName, description: Description = "") -> None:
    """Make a partition."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        editing.add_partition(cx, data.settings.directory.names, name, data.now, description=description)


@partition.command("list")
def list_partitions(context: typer.Context) -> None:
    """List the partitions."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        show_entries(data, entries.partitions(cx))


@partition.command("remove")
def remove_partition(context: typer.Context, name: PartitionName) -> None:
    """Delete an empty partition."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        dependents = administration.remove(
            cx, entries.find_partition(cx, data.settings.directory.names, name), data.now
        )
    terminal.line(describe_removal(data, dependents))


@unit.command("add")
def add_unit(
    context: typer.Context,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="A partition, or the location of a unit.")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    description: Description = "",
) -> None:
    """Make an organizational unit and print its location."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        unit = editing.add_unit(cx, find_entry(data, cx, parent), name, data.now, description=description)
    terminal.line(entries.location(data.settings.directory.names, unit))


@unit.command("list")
def list_units(context: typer.Context, name: PartitionName) -> None:
    """List a partition's units."""
    _list(context, name, "unit")


@unit.command("remove")
def remove_unit(context: typer.Context, location: Annotated[str, typer.Argument(metavar="LOCATION")]) -> None:
    """Delete an empty unit."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        dependents = administration.remove(cx, entries.find_unit(cx, data.settings.directory.names, location), data.now)
    terminal.line(describe_removal(data, dependents))


@user.command("add")
def add_user(
    context: typer.Context,
    user_id: Id,
    where: Where = "",
    description: Description = "",
    from_stdin: FromStdin = False,
    random: Random = False,
) -> None:
    """Make a user with a password."""
    data: DataFolder = context.obj
    password, show = terminal.new_password(from_stdin=from_stdin, random=random)
    options = data.settings.directory
    password_hash = passwords.hash_new(password, options)
    with data.database("directory") as database, database.begin() as cx:
        parent = find_entry(data, cx, where) if where else None
        administration.add_user(
            cx, options.names, user_id, parent, data.now, password_hash=password_hash, description=description
        )
    if show:
        terminal.line(password)


@user.command("list")
def list_users(context: typer.Context, name: PartitionName) -> None:
    """List a partition's users."""
    _list(context, name, "user")


@user.command("show")
def show_user(context: typer.Context, user_id: Id) -> None:
    """Show a user, their state and their groups."""
    data: DataFolder = context.obj
    directory_names = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        user = entries.find_user(cx, directory_names, user_id)
        groups = memberships.groups_of(cx, user.id)
        stored_values = attributes.stored_values(cx, user.id)
        sign_in = credentials.find(cx, directory_names, user_id)
    rows = [
        ("id", entries.shown_id(directory_names, user)),
        ("location", entries.location(directory_names, user)),
        ("description", user.description),
        ("state", state_of(user)),
        ("password", "yes" if user.has_password else "no"),
        *_sign_ins(data, sign_in),
        *(("group", entries.shown_id(directory_names, group)) for group in groups),
        *((name, str(value)) for name, values in stored_values.items() for value in values),
    ]
    terminal.table(("Attribute", "Value"), rows)


@user.command("unpause")
def end_pauses(context: typer.Context, user_id: Id) -> None:
    """End the pauses that wrong passwords caused, so that a user may sign in at once. A lock stays."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        editing.end_pauses(cx, entries.find_user(cx, data.settings.directory.names, user_id))


@user.command("password")
def set_password(context: typer.Context, user_id: Id, from_stdin: FromStdin = False, random: Random = False) -> None:
    """Give a user a new password; their sessions end."""
    data: DataFolder = context.obj
    password, show = terminal.new_password(from_stdin=from_stdin, random=random)
    password_hash = passwords.hash_new(password, data.settings.directory)
    with data.database("directory") as database, database.begin() as cx:
        user = entries.find_user(cx, data.settings.directory.names, user_id)
        administration.set_password(cx, user, password_hash, data.now)
    if show:
        terminal.line(password)


@user.command("set")
def set_user(
    context: typer.Context,
    user_id: Id,
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
    description: Annotated[str | None, typer.Option(help="Free text.")] = None,
) -> None:
    """Disable, enable, lock, unlock, flag or describe a user; disabling or locking ends their sessions."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        user = entries.find_user(cx, data.settings.directory.names, user_id)
        if disabled is not None:
            administration.set_disabled(cx, user, disabled, data.now)
        if locked is not None:
            administration.set_locked(cx, user, locked, data.now)
        flags = {
            "password_never_expires": password_never_expires,
            "must_change_password": must_change_password,
            "cannot_change_password": cannot_change_password,
        }
        if changes := {name: flag for name, flag in flags.items() if flag is not None}:
            editing.set_flags(cx, user, data.now, **changes)
        if description is not None:
            editing.set_description(cx, user, description, data.now)


@user.command("sessions")
def list_sessions(context: typer.Context, user_id: Id) -> None:
    """List a user's sessions: the grants of clients that act for them, and the tickets of browsers."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        user = entries.find_user(cx, data.settings.directory.names, user_id)
        show_sessions(data, cx, sessions.of_user(cx, user, data.now))


@user.command("sign-out")
def sign_out_user(context: typer.Context, user_id: Id) -> None:
    """End every session of a user; they may sign in again."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        count = administration.sign_out(cx, entries.find_user(cx, data.settings.directory.names, user_id), data.now)
    terminal.line(describe_ended(count))


@user.command("attribute")
def set_attribute(
    context: typer.Context,
    user_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as mail, sn, displayName, or one of your own.")],
    values: Annotated[list[str] | None, typer.Argument(metavar="VALUE...", help="No value unsets it.")] = None,
) -> None:
    """Set a directory attribute of a user. APIs that verify their tokens are shown it."""
    data: DataFolder = context.obj
    directory_names = data.settings.directory.names
    with data.database("directory") as database, database.begin() as cx:
        attributes.put(cx, directory_names, entries.find_user(cx, directory_names, user_id).id, name, values or [])


@user.command("remove")
def remove_user(
    context: typer.Context,
    user_id: Id,
    give_to: Annotated[
        str, typer.Option("--give-to", metavar="NAME@PARTITION", help="Give what they own to this user first.")
    ] = "",
) -> None:
    """Delete a user; their sessions end. What they own keeps its owner unless it is given away."""
    data: DataFolder = context.obj
    directory_names = data.settings.directory.names
    if give_to:
        belongings.check_receiver(data, user_id, give_to)
        with data.database("directory") as database, database.begin() as cx:
            # So they make nothing more while what they own is given. A command stopped here can be run again.
            administration.set_disabled(cx, entries.find_user(cx, directory_names, user_id), True, data.now)
    with data.database("directory") as database, database.read() as cx:
        user = entries.find_user(cx, directory_names, user_id)
    finish = belongings.prepare_removal(data, entries.shown_id(directory_names, user), give_to)
    with data.database("directory") as database, database.begin() as cx:
        dependents = administration.remove(cx, user, data.now)
    terminal.line(describe_removal(data, dependents))
    finish()


@group.command("add")
def add_group(context: typer.Context, group_id: Id, where: Where = "", description: Description = "") -> None:
    """Make a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        parent = find_entry(data, cx, where) if where else None
        administration.add_group(cx, data.settings.directory.names, group_id, parent, data.now, description=description)


@group.command("list")
def list_groups(context: typer.Context, name: PartitionName) -> None:
    """List a partition's groups."""
    _list(context, name, "group")


@group.command("members")
def list_members(context: typer.Context, group_id: Id) -> None:
    """List a group's direct members."""
    data: DataFolder = context.obj
    directory_names = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        show_entries(data, memberships.members(cx, entries.find_group(cx, directory_names, group_id)))


@group.command("add-member")
@group.command("admit", hidden=True)
def add_member(
    context: typer.Context,
    group_id: Id,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")],
) -> None:
    """Add users and groups to a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        group_entry = entries.find_group(cx, data.settings.directory.names, group_id)
        for member in members:
            memberships.add_member(cx, group_entry, find_entry(data, cx, member))


@group.command("remove-member")
@group.command("expel", hidden=True)
def remove_member(
    context: typer.Context,
    group_id: Id,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")],
) -> None:
    """Remove users and groups from a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        group_entry = entries.find_group(cx, data.settings.directory.names, group_id)
        for member in members:
            administration.remove_member(cx, group_entry, find_entry(data, cx, member))


@group.command("remove")
def remove_group(context: typer.Context, group_id: Id) -> None:
    """Delete a group; its members stay. What ACLs permitted to it, they now permit to nobody."""
    data: DataFolder = context.obj
    directory_names = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        group_entry = entries.find_group(cx, directory_names, group_id)
    finish = belongings.prepare_removal(data, entries.shown_id(directory_names, group_entry))
    with data.database("directory") as database, database.begin() as cx:
        dependents = administration.remove(cx, group_entry, data.now)
    terminal.line(describe_removal(data, dependents))
    finish()


@session.command("end")
def end_session(
    context: typer.Context,
    session_ids: Annotated[list[str], typer.Argument(metavar="SESSION...", help="As 'user sessions' shows them.")],
) -> None:
    """End sessions by their ids."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        count = sum((sessions.end_one(cx, session_id, data.now) for session_id in session_ids), SessionCount())
    terminal.line(describe_ended(count))


def describe_removal(data: DataFolder, dependents: Dependents) -> str:
    """Describe what depended on a removed entry."""
    directory_names = data.settings.directory.names
    parts = {
        "It was in the groups": [entries.shown_id(directory_names, group) for group in dependents.groups],
        "It had the members": [entries.shown_id(directory_names, entry) for entry in dependents.members],
        "It was in the access roles of": [
            resources.shown_name(directory_names, resource) for resource in dependents.resources
        ],
    }
    sentences = [f"{beginning} {_first_ten(shown)}." for beginning, shown in parts.items() if shown]
    session_sentence = [describe_ended(dependents.ended)] if dependents.ended != SessionCount() else []
    return " ".join(["Removed.", *sentences, *session_sentence])


def _first_ten(shown: list[str]) -> str:
    remainder = f" and {len(shown) - 10} more" if len(shown) > 10 else ""
    return ", ".join(shown[:10]) + remainder


def describe_ended(count: SessionCount) -> str:
    """Describe how many sessions have ended."""
    return f"Ended: {count.grants} grants, {count.tickets} tickets."


def show_sessions(data: DataFolder, cx: Connection, listed: list[Session]) -> None:
    """Print sessions: who is signed in with which client to which resource, since when, and until when."""
    directory_names = data.settings.directory.names
    ids = {number for each in listed for number in (each.user_id, each.client_id or 0)}
    people = {number: entries.by_id(cx, number) for number in ids}
    resource_names = resources.names_of(cx, directory_names)

    def name(number: int) -> str:
        person = people[number]
        return "(removed)" if person is None else entries.shown_id(directory_names, person)

    rows = [
        (
            each.id,
            name(each.user_id),
            "(browser)" if each.client_id is None else name(each.client_id).partition("@")[0],
            resource_names.get(each.resource_id, "(removed)"),
            timestamp(each.since),
            timestamp(each.expires),
        )
        for each in listed
    ]
    terminal.table(("Session", "User", "Client", "Resource", "Since", "Expires"), rows)


def find_entry(data: DataFolder, cx: Connection, text: str) -> Entry:
    """Find the entry that an operator names: by a location, ``name@partition``, or a partition. Raises UnknownEntry."""
    directory_names = data.settings.directory.names
    if text.lower().endswith(directory_names.dn_suffix.lower()):
        return entries.find_location(cx, directory_names, text)
    if "@" not in text:
        return entries.find_partition(cx, directory_names, text)
    for find in (entries.find_user, entries.find_group):
        try:
            return find(cx, directory_names, text)
        except UnknownEntry:
            continue
    raise UnknownEntry(f"There is no user and no group {text[:200]!r}.")


def _list(context: typer.Context, name: str, kind: Kind) -> None:
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        partition_entry = entries.find_partition(cx, data.settings.directory.names, name)
        rows = entries.listing(cx, partition_entry, kind, limit=None)
    show_entries(data, rows)


def show_entries(data: DataFolder, listed: list[Entry]) -> None:
    """Print entries with their state, each by the name that commands accept."""
    directory_names = data.settings.directory.names
    spellings = {"partition": entries.shown_name, "unit": entries.location}
    rows = [
        (
            entry.kind,
            spellings.get(entry.kind, entries.shown_id)(directory_names, entry),
            state_of(entry) if entry.kind == "user" else "",
            entry.description,
        )
        for entry in listed
    ]
    terminal.table(("Kind", "Name", "State", "Description"), rows)


def _sign_ins(data: DataFolder, sign_in: Credentials | None) -> list[tuple[str, str]]:
    if sign_in is None:
        return []
    rows = [("known places", str(pauses.known_places(sign_in)))]
    for pause in pauses.pauses(data.settings.directory, sign_in, data.now):
        where = "elsewhere" if pause.elsewhere else "at a known place"
        until = f", paused until {timestamp(pause.until)}" if pause.until else ""
        rows.append(("wrong passwords", f"{pause.failures} {where}{until}"))
    return rows


def state_of(entry: Entry) -> str:
    """Say whether a user or client may act, and if not, why."""
    states = [name for name, holds in (("disabled", entry.disabled), ("locked", entry.locked)) if holds]
    return " and ".join(states) or "active"
