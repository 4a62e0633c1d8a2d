"""Commands about who is where: partitions, units, users and groups."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import initial, said
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, Failure
from muniment.directory import attributes, entries, memberships, names
from muniment.directory.entries import Entry
from muniment.directory.refusals import UnknownEntry

partition = typer.Typer(no_args_is_help=True, help="Partitions: who belongs together.")
unit = typer.Typer(no_args_is_help=True, help="Organizational units: where users and groups lie in a partition.")
user = typer.Typer(no_args_is_help=True, help="Users.")
group = typer.Typer(no_args_is_help=True, help="Groups, which may hold users and groups.")

COMMANDS = {
    "partition": partition,
    "unit": unit,
    "user": user,
    "group": group,
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
    opened: Opened = context.obj
    with opened.database("directory") as database, database.begin() as cx:
        entries.add_partition(cx, opened.settings.directory.names, name, opened.now, description=description)


@partition.command("list")
def list_partitions(context: typer.Context) -> None:
    """List the partitions."""
    opened: Opened = context.obj
    with opened.database("directory") as database, database.read() as cx:
        show_entries(opened, entries.partitions(cx))


@partition.command("remove")
def remove_partition(context: typer.Context, name: PartitionName) -> None:
    """Delete an empty partition."""
    opened: Opened = context.obj
    with opened.database("directory") as database, database.begin() as cx:
        entries.delete(cx, entries.find_partition(cx, opened.settings.directory.names, name))


@unit.command("add")
def add_unit(
    context: typer.Context,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="A partition, or the location of a unit.")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    description: Description = "",
) -> None:
    """Make an organizational unit and print its location."""
    opened: Opened = context.obj
    with opened.database("directory") as database, database.begin() as cx:
        made = entries.add_unit(cx, entry_named(opened, cx, parent), name, opened.now, description=description)
    said.line(entries.location(opened.settings.directory.names, made))


@unit.command("list")
def list_units(context: typer.Context, name: PartitionName) -> None:
    """List a partition's units."""
    _list(context, name, "unit")


@unit.command("remove")
def remove_unit(context: typer.Context, location: Annotated[str, typer.Argument(metavar="LOCATION")]) -> None:
    """Delete an empty unit."""
    opened: Opened = context.obj
    with opened.database("directory") as database, database.begin() as cx:
        entries.delete(cx, entries.find_unit(cx, opened.settings.directory.names, location))


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
    opened: Opened = context.obj
    password, show = said.new_password(from_stdin=from_stdin, random=random)
    password_hash = initial.hashed(opened, password)
    name, partition_name = names.split_user_id(user_id)
    with opened.database("directory") as database, database.begin() as cx:
        parent = entry_named(opened, cx, where or partition_name)
        _check_lies_in(opened, parent, partition_name)
        entries.add_user(cx, parent, name, opened.now, password_hash=password_hash, description=description)
    if show:
        said.line(password)


@user.command("list")
def list_users(context: typer.Context, name: PartitionName) -> None:
    """List a partition's users."""
    _list(context, name, "user")


@user.command("show")
def show_user(context: typer.Context, user_id: Id) -> None:
    """Show a user, his state and his groups."""
    opened: Opened = context.obj
    named = opened.settings.directory.names
    with opened.database("directory") as database, database.read() as cx:
        found = entries.find_user(cx, named, user_id)
        groups = memberships.groups_of(cx, found.id)
        kept = attributes.kept(cx, found.id)
    rows = [
        ("id", entries.shown_id(named, found)),
        ("location", entries.location(named, found)),
        ("description", found.description),
        ("state", state_of(found)),
        ("password", "yes" if found.has_password else "no"),
        *(("group", entries.shown_id(named, one)) for one in groups),
        *((name, str(value)) for name, values in kept.items() for value in values),
    ]
    said.table(("Attribute", "Value"), rows)


@user.command("password")
def set_password(context: typer.Context, user_id: Id, from_stdin: FromStdin = False, random: Random = False) -> None:
    """Give a user a new password."""
    opened: Opened = context.obj
    password, show = said.new_password(from_stdin=from_stdin, random=random)
    password_hash = initial.hashed(opened, password)
    with opened.database("directory") as database, database.begin() as cx:
        found = entries.find_user(cx, opened.settings.directory.names, user_id)
        entries.set_password_hash(cx, found, password_hash, opened.now)
    if show:
        said.line(password)


@user.command("set")
def set_user(
    context: typer.Context,
    user_id: Id,
    disabled: Annotated[bool | None, typer.Option("--disable/--enable", help="He may not, or may, act.")] = None,
    locked: Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock him out, or let him in.")] = None,
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
    """Disable, enable, lock, unlock, flag or describe a user; his tokens obey at once."""
    opened: Opened = context.obj
    with initial.keeping_an_administrator(opened) as cx:
        found = entries.find_user(cx, opened.settings.directory.names, user_id)
        if disabled is not None:
            entries.set_disabled(cx, found, disabled, opened.now)
        if locked is not None:
            entries.set_locked(cx, found, locked, opened.now)
        flags = {
            "password_never_expires": password_never_expires,
            "must_change_password": must_change_password,
            "cannot_change_password": cannot_change_password,
        }
        if given := {name: flag for name, flag in flags.items() if flag is not None}:
            entries.set_flags(cx, found, opened.now, **given)
        if description is not None:
            entries.set_description(cx, found, description, opened.now)


@user.command("attribute")
def set_attribute(
    context: typer.Context,
    user_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as mail, sn, displayName, or one of your own.")],
    values: Annotated[list[str] | None, typer.Argument(metavar="VALUE...", help="None unsets it.")] = None,
) -> None:
    """Set a directory attribute of a user, as whoever verifies his tokens is shown it."""
    opened: Opened = context.obj
    named = opened.settings.directory.names
    with opened.database("directory") as database, database.begin() as cx:
        attributes.put(cx, named, entries.find_user(cx, named, user_id).id, name, values or [])


@user.command("remove")
def remove_user(context: typer.Context, user_id: Id) -> None:
    """Delete a user; his tokens end."""
    opened: Opened = context.obj
    with initial.keeping_an_administrator(opened) as cx:
        entries.delete(cx, entries.find_user(cx, opened.settings.directory.names, user_id))


@group.command("add")
def add_group(context: typer.Context, group_id: Id, where: Where = "", description: Description = "") -> None:
    """Make a group."""
    opened: Opened = context.obj
    name, partition_name = names.split_user_id(group_id)
    with opened.database("directory") as database, database.begin() as cx:
        parent = entry_named(opened, cx, where or partition_name)
        _check_lies_in(opened, parent, partition_name)
        entries.add_group(cx, parent, name, opened.now, description=description)


@group.command("list")
def list_groups(context: typer.Context, name: PartitionName) -> None:
    """List a partition's groups."""
    _list(context, name, "group")


@group.command("members")
def list_members(context: typer.Context, group_id: Id) -> None:
    """List a group's direct members."""
    opened: Opened = context.obj
    named = opened.settings.directory.names
    with opened.database("directory") as database, database.read() as cx:
        show_entries(opened, memberships.members(cx, entries.find_group(cx, named, group_id)))


@group.command("admit")
def add_member(
    context: typer.Context,
    group_id: Id,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")],
) -> None:
    """Put users and groups into a group."""
    opened: Opened = context.obj
    with opened.database("directory") as database, database.begin() as cx:
        found = entries.find_group(cx, opened.settings.directory.names, group_id)
        for member in members:
            memberships.add_member(cx, found, entry_named(opened, cx, member))


@group.command("expel")
def remove_member(
    context: typer.Context,
    group_id: Id,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")],
) -> None:
    """Take users and groups out of a group."""
    opened: Opened = context.obj
    with initial.keeping_an_administrator(opened) as cx:
        found = entries.find_group(cx, opened.settings.directory.names, group_id)
        for member in members:
            memberships.remove_member(cx, found, entry_named(opened, cx, member))


@group.command("remove")
def remove_group(context: typer.Context, group_id: Id) -> None:
    """Delete a group; its members stay."""
    opened: Opened = context.obj
    with initial.keeping_an_administrator(opened) as cx:
        entries.delete(cx, entries.find_group(cx, opened.settings.directory.names, group_id))


def entry_named(opened: Opened, cx: Connection, text: str) -> Entry:
    """Find an entry as a person writes it: a location, ``name@partition``, or a partition. Raises UnknownEntry."""
    named = opened.settings.directory.names
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


def _check_lies_in(opened: Opened, parent: Entry, partition_name: str) -> None:
    shown = entries.shown_partition(opened.settings.directory.names, parent)
    if names.key(shown) != names.key(partition_name):
        raise Failure(f"That location lies in the partition {shown!r}, not in {partition_name!r}.", Exit.REFUSED)


def _list(context: typer.Context, name: str, kind: entries.Kind) -> None:
    opened: Opened = context.obj
    with opened.database("directory") as database, database.read() as cx:
        found = entries.find_partition(cx, opened.settings.directory.names, name)
        rows = entries.listing(cx, found, kind, limit=None)
    show_entries(opened, rows)


def show_entries(opened: Opened, found: list[Entry]) -> None:
    """Print entries with their state, each named as a command takes it."""
    named = opened.settings.directory.names
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
    said.table(("Kind", "Name", "State", "Description"), rows)


def state_of(found: Entry) -> str:
    """Say whether a user may act, and if not why."""
    states = [name for name, holds in (("disabled", found.disabled), ("locked", found.locked)) if holds]
    return " and ".join(states) or "active"
