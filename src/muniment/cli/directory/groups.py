"""Commands about groups and their members."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.directory.entries import (
    ENTRY_HEADS,
    Description,
    EntryId,
    Force,
    NewDescription,
    NewName,
    PartitionName,
    Target,
    Where,
    entries_of_kind,
    entry_rows,
    find_entry,
    move_entry,
    remove_person,
    rename_person,
)
from muniment.cli.running import Group, Rows
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, entries, memberships, table
from muniment.installation.data_folder import DataFolder

group_commands = Group("directory", help="Groups, which may hold users and groups.")

Members = Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")]


@group_commands.writes("add")
def add_group(
    data: DataFolder, cx: Connection, group_id: EntryId, where: Where = "", description: Description = ""
) -> None:
    """Make a group."""
    parent = find_entry(data, cx, where) if where else None
    decisions.add_group(cx, data.settings.directory.names, group_id, parent, data.now, description=description)


@group_commands.reads("list", *ENTRY_HEADS)
def list_groups(data: DataFolder, cx: Connection, name: PartitionName) -> Rows:
    """List a partition's groups."""
    return entries_of_kind(data, cx, name, "group")


@group_commands.reads("members", *ENTRY_HEADS)
def list_members(data: DataFolder, cx: Connection, group_id: EntryId) -> Rows:
    """List a group's direct members."""
    return entry_rows(data, memberships.members(cx, _by_id(data, cx, group_id)))


@group_commands.acts("add-member")
def add_members(data: DataFolder, group_id: EntryId, members: Members) -> None:
    """Add users and groups to a group, and warn if groups then contain each other."""
    names = data.settings.directory.names
    with data.begin("directory") as cx:
        group_entry = _by_id(data, cx, group_id)
        loops = []
        for member in members:
            entry = find_entry(data, cx, member)
            decisions.add_members(cx, group_entry, [entry], data.now)
            if memberships.closes_loop(cx, group_entry, entry):
                loops.append(entries.shown_id(names, entry))
        shown_group = entries.shown_id(names, group_entry)
    for member in loops:
        whom = (
            f"{shown_group} now contains itself"
            if member == shown_group
            else f"{shown_group} and {member} now contain each other"
        )
        terminal.errors.print(f"{whom}: whoever is in one of such groups is in all of them.")


@group_commands.writes("remove-member")
def remove_members(data: DataFolder, cx: Connection, group_id: EntryId, members: Members) -> None:
    """Remove users and groups from a group."""
    group_entry = _by_id(data, cx, group_id)
    decisions.remove_members(cx, group_entry, [find_entry(data, cx, member) for member in members], data.now)


@group_commands.writes("set")
def set_group(data: DataFolder, cx: Connection, group_id: EntryId, description: NewDescription = None) -> None:
    """Set the description of a group."""
    if description is not None:
        editing.set_description(cx, _by_id(data, cx, group_id), description, data.now)


@group_commands.writes("rename")
def rename_group(data: DataFolder, cx: Connection, group_id: EntryId, new_name: NewName, force: Force = False) -> str:
    """Rename a group. This is refused if a repository knows the group, because ACLs there show its present name."""
    return rename_person(data, cx, _by_id(data, cx, group_id), new_name, force=force)


@group_commands.writes("move")
def move_group(data: DataFolder, cx: Connection, group_id: EntryId, target: Target) -> str:
    """Move a group into another unit of its partition, and print its new location. Its members stay where they are."""
    return move_entry(data, cx, _by_id(data, cx, group_id), target)


@group_commands.acts("remove")
def remove_group(data: DataFolder, group_id: EntryId) -> None:
    """Delete a group; its members stay. If the repository runs here, the ACL entries for it are removed."""
    remove_person(data, "group", group_id)


def _by_id(data: DataFolder, cx: Connection, group_id: str) -> table.Entry:
    return entries.find_group(cx, data.settings.directory.names, group_id)
