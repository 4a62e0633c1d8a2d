"""Commands about groups and their members."""

from functools import partial
from typing import Annotated

import typer

from muniment import departures
from muniment.cli import terminal
from muniment.cli.directory.entries import (
    Description,
    EntryId,
    Find,
    Force,
    NewDescription,
    NewName,
    PartitionName,
    Target,
    Where,
    describe_entry,
    find_entry,
    list_kind,
    move_entry,
    remove_person,
    rename_person,
    show_entries,
)
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.directory import administration, memberships
from muniment.directory.entries import entries

group = typer.Typer(no_args_is_help=True, help="Groups, which may hold users and groups.")

COMMANDS = {"group": group}

Members = Annotated[list[str], typer.Argument(metavar="MEMBER...", help="Users or groups, name@partition.")]


@group.command("add")
def add_group(context: typer.Context, group_id: EntryId, where: Where = "", description: Description = "") -> None:
    """Make a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        parent = find_entry(data, cx, where) if where else None
        administration.add_group(cx, data.settings.directory.names, group_id, parent, data.now, description=description)


@group.command("list")
def list_groups(
    context: typer.Context, name: PartitionName, as_json: AsJson = False, header: WithHeader = None
) -> None:
    """List a partition's groups."""
    list_kind(context.obj, name, "group", as_json=as_json, header=header)


@group.command("members")
def list_members(context: typer.Context, group_id: EntryId, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List a group's direct members."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        members = memberships.members(cx, _by_id(data, group_id)(cx))
    show_entries(data, members, as_json=as_json, header=header)


@group.command("add-member")
def add_members(context: typer.Context, group_id: EntryId, members: Members) -> None:
    """Add users and groups to a group, and warn if groups then contain each other."""
    data: DataFolder = context.obj
    names = data.settings.directory.names
    with data.database("directory") as database, database.begin() as cx:
        group_entry = _by_id(data, group_id)(cx)
        loops = []
        for member in members:
            entry = find_entry(data, cx, member)
            memberships.add_member(cx, group_entry, entry)
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


@group.command("remove-member")
def remove_members(context: typer.Context, group_id: EntryId, members: Members) -> None:
    """Remove users and groups from a group."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        group_entry = _by_id(data, group_id)(cx)
        for member in members:
            administration.remove_member(cx, group_entry, find_entry(data, cx, member))


@group.command("set")
def set_group(context: typer.Context, group_id: EntryId, description: NewDescription = None) -> None:
    """Set the description of a group."""
    if description is not None:
        describe_entry(context.obj, _by_id(context.obj, group_id), description)


@group.command("rename")
def rename_group(context: typer.Context, group_id: EntryId, new_name: NewName, force: Force = False) -> None:
    """Rename a group. This is refused if a repository knows the group, because ACLs there show its present name."""
    rename_person(context.obj, _by_id(context.obj, group_id), new_name, force=force)


@group.command("move")
def move_group(context: typer.Context, group_id: EntryId, target: Target) -> None:
    """Move a group into another unit of its partition, and print its new location. Its members stay where they are."""
    move_entry(context.obj, _by_id(context.obj, group_id), target)


@group.command("remove")
def remove_group(context: typer.Context, group_id: EntryId) -> None:
    """Delete a group; its members stay. If the repository runs here, the ACL entries for it are removed."""
    data: DataFolder = context.obj
    remove_person(data, _by_id(data, group_id), partial(departures.remove_group, group_id=group_id))


def _by_id(data: DataFolder, group_id: str) -> Find:
    return partial(entries.find_group, names=data.settings.directory.names, group_id=group_id)
