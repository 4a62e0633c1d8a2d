"""Commands about who is where: partitions, units, users and groups."""

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

partition = typer.Typer(no_args_is_help=True, help="Partitions: who belongs together.")
unit = typer.Typer(no_args_is_help=True, help="Organizational units: where users and groups lie in a partition.")
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
Where = Annotated[str, typer.Option("--in", metavar="LOCATION", help="The unit to lie in; otherwise the root unit.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
Random = Annotated[bool, typer.Option("--random", help="Make a password up and print it once.")]


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
        removed = administration.remove(cx, entries.find_partition(cx, data.settings.directory.names, name), data.now)
    terminal.line(removal(data, removed))


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
        made = editing.add_unit(cx, entry_named(data, cx, parent), name, data.now, description=description)
    terminal.line(entries.location(data.settings.directory.names, made))


@unit.command("list")
def list_units(context: typer.Context, name: PartitionName) -> None:
    """List a partition's units."""
    _list(context, name, "unit")


@unit.command("remove")
def remove_unit(context: typer.Context, location: Annotated[str, typer.Argument(metavar="LOCATION")]) -> None:
    """Delete an empty unit."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        removed = administration.remove(cx, entries.find_unit(cx, data.settings.directory.names, location), data.now)
    terminal.line(removal(data, removed))


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
        parent = entry_named(data, cx, where) if where else None
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
    """Show a user, his state and his groups."""
    data: DataFolder = context.obj
    named = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        found = entries.find_user(cx, named, user_id)
        groups = memberships.groups_of(cx, found.id)
        kept = attributes.stored_values(cx, found.id)
        known = credentials.find(cx, named, user_id)
    rows = [
        ("id", entries.shown_id(named, found)),
        ("location", entries.location(named, found)),
        ("description", found.description),
        ("state", state_of(found)),
        ("password", "yes" if found.has_password else "no"),
        *_sign_ins(data, known),
        *(("group", entries.shown_id(named, one)) for one in groups),
        *((name, str(value)) for name, values in kept.items() for value in values),
    ]
    terminal.table(("Attribute", "Value"), rows)


@user.command("unpause")
def end_pauses(context: typer.Context, user_id: Id) -> None:
    """Let a user sign in again at once from where wrong passwords have paused it. A lock stays."""
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
        found = entries.find_user(cx, data.settings.directory.names, user_id)
        administration.set_password(cx, found, password_hash, data.now)
    if show:
        terminal.line(password)


@user.command("set")
def set_user(
    context: typer.Context,
    user_id: Id,
    disabled: Annotated[bool | None, typer.Option("--disable/--enable", help="They may not, or may, act.")] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock them out, or let them in.")] = None,
    password_never_expires: Annotated[
        bool | None, typer.Option("--password-never-expires/--password-expires", help="Shown to whoever verifies.")
    ] = None,
    must_change_password: Annotated[
        bool | None, typer.Option("--must-change-password/--may-keep-password", help="Shown to whoever verifies.")
    ] = None,
    cannot_change_password: Annotated[
        bool | None, typer.Option("--cannot-change-password/--can-change-password", help="Shown to whoever verifies.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="Free text.")] = None,
) -> None:
    """Disable, enable, lock, unlock, flag or describe a user; disabling or locking ends their sessions."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        found = entries.find_user(cx, data.settings.directory.names, user_id)
        if disabled is not None:
            administration.set_disabled(cx, found, disabled, data.now)
        if locked is not None:
            administration.set_locked(cx, found, locked, data.now)
        flags = {
            "password_never_expires": password_never_expires,
            "must_change_password": must_change_password,
            "cannot_change_password": cannot_change_password,
        }
        if given := {name: flag for name, flag in flags.items() if flag is not None}:
            editing.set_flags(cx, found, data.now, **given)
        if description is not None:
            editing.set_description(cx, found, description, data.now)


@user.command("sessions")
def list_sessions(context: typer.Context, user_id: Id) -> None:
    """List a user's sessions: the grants of clients that act for them, and the tickets of browsers."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        found = entries.find_user(cx, data.settings.directory.names, user_id)
        show_sessions(data, cx, sessions.of_user(cx, found, data.now))


@user.command("sign-out")
def sign_out_user(context: typer.Context, user_id: Id) -> None:
    """End every session of a user; they may sign in again."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        ended = administration.sign_out(cx, entries.find_user(cx, data.settings.directory.names, user_id), data.now)
    terminal.line(ending(ended))


@user.command("attribute")
def set_attribute(
    context: typer.Context,
    user_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as mail, sn, displayName, or one of your own.")],
    values: Annotated[list[str] | None, typer.Argument(metavar="VALUE...", help="None unsets it.")] = None,
) -> None:
    """Set a directory attribute of a user, as whoever verifies his tokens is shown it."""
    data: DataFolder = context.obj
    named = data.settings.directory.names
    with data.database("directory") as database, database.begin() as cx:
        attributes.put(cx, named, entries.find_user(cx, named, user_id).id, name, values or [])


@user.command("remove")
def remove_user(
    context: typer.Context,
    user_id: Id,
    give_to: Annotated[
        str, typer.Option("--give-to", metavar="NAME@PARTITION", help="Who gets what they own, before they go.")
    ] = "",
) -> None:
    """Delete a user; their sessions end, and what they own stays theirs unless it is given away."""
    data: DataFolder = context.obj
    named = data.settings.directory.names
    if give_to:
        belongings.check_receiver(data, user_id, give_to)
        with data.database("directory") as database, database.begin() as cx:
            # They make nothing more while what they own is given, and whoever is stopped here begins again.
            administration.set_disabled(cx, entries.find_user(cx, named, user_id), True, data.now)
    with data.database("directory") as database, database.read() as cx:
        found = entries.find_user(cx, named, user_id)
    left = belongings.leaving(data, entries.shown_id(named, found), give_to)
    with data.database("directory") as database, database.begin() as cx:
        removed = administration.remove(cx, found, data.now)
    terminal.line(removal(data, removed))
    left()


@group.command("add")
def add_group(context: typer.Context, group_id: Id, where: Where = "", description: Description = "") -> None:
    """Make a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        parent = entry_named(data, cx, where) if where else None
        administration.add_group(cx, data.settings.directory.names, group_id, parent, data.now, description=description)


@group.command("list")
def list_groups(context: typer.Context, name: PartitionName) -> None:
    """List a partition's groups."""
    _list(context, name, "group")


@group.command("members")
def list_members(context: typer.Context, group_id: Id) -> None:
    """List a group's direct members."""
    data: DataFolder = context.obj
    named = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        show_entries(data, memberships.members(cx, entries.find_group(cx, named, group_id)))


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
        found = entries.find_group(cx, data.settings.directory.names, group_id)
        for member in members:
            memberships.add_member(cx, found, entry_named(data, cx, member))


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
        found = entries.find_group(cx, data.settings.directory.names, group_id)
        for member in members:
            administration.remove_member(cx, found, entry_named(data, cx, member))


@group.command("remove")
def remove_group(context: typer.Context, group_id: Id) -> None:
    """Delete a group; its members stay, and what was permitted to it is permitted to nobody."""
    data: DataFolder = context.obj
    named = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        found = entries.find_group(cx, named, group_id)
    left = belongings.leaving(data, entries.shown_id(named, found))
    with data.database("directory") as database, database.begin() as cx:
        removed = administration.remove(cx, found, data.now)
    terminal.line(removal(data, removed))
    left()


@session.command("end")
def end_session(
    context: typer.Context,
    session_ids: Annotated[list[str], typer.Argument(metavar="SESSION...", help="As 'user sessions' shows them.")],
) -> None:
    """End sessions by their ids."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        ended = sum((sessions.end_one(cx, one, data.now) for one in session_ids), SessionCount())
    terminal.line(ending(ended))


def removal(data: DataFolder, removed: Dependents) -> str:
    """Say what depended on a removed entry."""
    named = data.settings.directory.names
    parts = {
        "It was in the groups": [entries.shown_id(named, one) for one in removed.groups],
        "It had the members": [entries.shown_id(named, one) for one in removed.members],
        "It was in the access roles of": [resources.shown_name(named, one) for one in removed.resources],
    }
    sentences = [f"{beginning} {_some(names)}." for beginning, names in parts.items() if names]
    ended = [ending(removed.ended)] if removed.ended != SessionCount() else []
    return " ".join(["Removed.", *sentences, *ended])


def _some(named: list[str]) -> str:
    more = f" and {len(named) - 10} more" if len(named) > 10 else ""
    return ", ".join(named[:10]) + more


def ending(ended: SessionCount) -> str:
    """Say how many sessions have ended."""
    return f"Ended: {ended.grants} grants, {ended.tickets} tickets."


def show_sessions(data: DataFolder, cx: Connection, found: list[Session]) -> None:
    """Print sessions: who is signed in with which client to which resource, since when, and until when."""
    named = data.settings.directory.names
    people = {one: entries.by_id(cx, one) for session in found for one in (session.user_id, session.client_id or 0)}
    shown = resources.names_of(cx, named)

    def name(number: int) -> str:
        person = people[number]
        return "(removed)" if person is None else entries.shown_id(named, person)

    rows = [
        (
            one.id,
            name(one.user_id),
            "(browser)" if one.client_id is None else name(one.client_id).partition("@")[0],
            shown.get(one.resource_id, "(removed)"),
            timestamp(one.since),
            timestamp(one.expires),
        )
        for one in found
    ]
    terminal.table(("Session", "User", "Client", "Resource", "Since", "Expires"), rows)


def entry_named(data: DataFolder, cx: Connection, text: str) -> Entry:
    """Find an entry as a person writes it: a location, ``name@partition``, or a partition. Raises UnknownEntry."""
    named = data.settings.directory.names
    if text.lower().endswith(named.dn_suffix.lower()):
        return entries.find_location(cx, named, text)
    if "@" not in text:
        return entries.find_partition(cx, named, text)
    for find in (entries.find_user, entries.find_group):
        try:
            return find(cx, named, text)
        except UnknownEntry:
            continue
    raise UnknownEntry(f"There is no user and no group {text[:200]!r}.")


def _list(context: typer.Context, name: str, kind: Kind) -> None:
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        found = entries.find_partition(cx, data.settings.directory.names, name)
        rows = entries.listing(cx, found, kind, limit=None)
    show_entries(data, rows)


def show_entries(data: DataFolder, found: list[Entry]) -> None:
    """Print entries with their state, each named as a command takes it."""
    named = data.settings.directory.names
    spelled = {"partition": entries.shown_name, "unit": entries.location}
    rows = [
        (
            one.kind,
            spelled.get(one.kind, entries.shown_id)(named, one),
            state_of(one) if one.kind == "user" else "",
            one.description,
        )
        for one in found
    ]
    terminal.table(("Kind", "Name", "State", "Description"), rows)


def _sign_ins(data: DataFolder, found: Credentials | None) -> list[tuple[str, str]]:
    if found is None:
        return []
    rows = [("known places", str(pauses.known_places(found)))]
    for pause in pauses.pauses(data.settings.directory, found, data.now):
        where = "elsewhere" if pause.elsewhere else "at a known place"
        until = f", paused until {timestamp(pause.until)}" if pause.until else ""
        rows.append(("wrong passwords", f"{pause.failures} {where}{until}"))
    return rows


def state_of(found: Entry) -> str:
    """Say whether a user may act, and if not why."""
    states = [name for name, holds in (("disabled", found.disabled), ("locked", found.locked)) if holds]
    return " and ".join(states) or "active"
