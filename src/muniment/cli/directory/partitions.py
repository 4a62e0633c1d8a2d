"""Commands about partitions, and about the organizational units in them."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli.directory.entries import (
    ENTRY_HEADS,
    Description,
    Location,
    NewDescription,
    NewName,
    PartitionName,
    Target,
    describe_removal,
    entries_of_kind,
    entry_rows,
    find_entry,
    move_entry,
    rename_entry,
)
from muniment.cli.running import Group, Rows
from muniment.directory.administration import decisions
from muniment.directory.entries import editing, entries
from muniment.directory.entries.table import Entry
from muniment.installation.data_folder import DataFolder

partition_commands = Group("directory", help="Partitions: separate sets of users and groups.")
unit_commands = Group("directory", help="Organizational units: the folders of users and groups within a partition.")

Container = Annotated[str, typer.Argument(metavar="PARENT", help="A partition, or the location of a unit.")]


@partition_commands.writes("add")
def add_partition(data: DataFolder, cx: Connection, name: PartitionName, description: Description = "") -> None:
    """Make a partition."""
    editing.add_partition(cx, data.settings.directory.names, name, data.now, description=description)


@partition_commands.reads("list", *ENTRY_HEADS)
def list_partitions(data: DataFolder, cx: Connection) -> Rows:
    """List the partitions."""
    return entry_rows(data, entries.partitions(cx))


@partition_commands.writes("set")
def set_partition(data: DataFolder, cx: Connection, name: PartitionName, description: NewDescription = None) -> None:
    """Set the description of a partition."""
    if description is not None:
        editing.set_description(cx, _by_name(data, cx, name), description, data.now)


@partition_commands.writes("rename")
def rename_partition(data: DataFolder, cx: Connection, name: PartitionName, new_name: NewName) -> None:
    """Rename a partition. It must hold no users and no groups, because their ids end with its name."""
    rename_entry(data, cx, _by_name(data, cx, name), new_name)


@partition_commands.writes("remove")
def remove_partition(data: DataFolder, cx: Connection, name: PartitionName) -> str:
    """Delete an empty partition."""
    return describe_removal(data, decisions.remove(cx, _by_name(data, cx, name), data.now))


@unit_commands.writes("add")
def add_unit(
    data: DataFolder,
    cx: Connection,
    parent: Container,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    description: Description = "",
) -> str:
    """Make an organizational unit and print its location."""
    unit_entry = editing.add_unit(cx, find_entry(data, cx, parent), name, data.now, description=description)
    return entries.location(data.settings.directory.names, unit_entry)


@unit_commands.reads("list", *ENTRY_HEADS)
def list_units(data: DataFolder, cx: Connection, name: PartitionName) -> Rows:
    """List a partition's units."""
    return entries_of_kind(data, cx, name, "unit")


@unit_commands.reads("content", *ENTRY_HEADS)
def list_content(data: DataFolder, cx: Connection, container: Container) -> Rows:
    """List what lies directly in a unit, or in a partition's root unit: units, groups and users."""
    return entry_rows(data, entries.inside(cx, find_entry(data, cx, container)))


@unit_commands.writes("set")
def set_unit(data: DataFolder, cx: Connection, location: Location, description: NewDescription = None) -> None:
    """Set the description of a unit."""
    if description is not None:
        editing.set_description(cx, _by_location(data, cx, location), description, data.now)


@unit_commands.writes("rename")
def rename_unit(data: DataFolder, cx: Connection, location: Location, new_name: NewName) -> str:
    """Rename a unit and print its new location. The locations of all that lies in it change, their ids stay."""
    unit = rename_entry(data, cx, _by_location(data, cx, location), new_name)
    return entries.location(data.settings.directory.names, unit)


@unit_commands.writes("move")
def move_unit(data: DataFolder, cx: Connection, location: Location, target: Target) -> str:
    """Move a unit with all that lies in it into another unit of its partition, and print its new location."""
    return move_entry(data, cx, _by_location(data, cx, location), target)


@unit_commands.writes("remove")
def remove_unit(data: DataFolder, cx: Connection, location: Location) -> str:
    """Delete an empty unit."""
    return describe_removal(data, decisions.remove(cx, _by_location(data, cx, location), data.now))


def _by_name(data: DataFolder, cx: Connection, name: str) -> Entry:
    return entries.find_partition(cx, data.settings.directory.names, name)


def _by_location(data: DataFolder, cx: Connection, location: str) -> Entry:
    return entries.find_unit(cx, data.settings.directory.names, location)
