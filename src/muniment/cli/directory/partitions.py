"""Commands about partitions, and about the organizational units in them."""

from functools import partial
from typing import Annotated

import typer

from muniment.cli.directory.entries import (
    Description,
    Find,
    Location,
    NewDescription,
    NewName,
    PartitionName,
    Target,
    describe_entry,
    find_entry,
    list_kind,
    move_entry,
    remove_entry,
    rename_entry,
    show_entries,
)
from muniment.cli.terminal import AsJson, WithHeader, line
from muniment.data_folder import DataFolder
from muniment.directory.entries import editing, entries

partition = typer.Typer(no_args_is_help=True, help="Partitions: separate sets of users and groups.")
unit = typer.Typer(
    no_args_is_help=True, help="Organizational units: the folders of users and groups within a partition."
)

COMMANDS = {"partition": partition, "unit": unit}

Container = Annotated[str, typer.Argument(metavar="PARENT", help="A partition, or the location of a unit.")]


@partition.command("add")
def add_partition(context: typer.Context, name: PartitionName, description: Description = "") -> None:
    """Make a partition."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        editing.add_partition(cx, data.settings.directory.names, name, data.now, description=description)


@partition.command("list")
def list_partitions(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List the partitions."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        show_entries(data, entries.partitions(cx), as_json=as_json, header=header)


@partition.command("set")
def set_partition(context: typer.Context, name: PartitionName, description: NewDescription = None) -> None:
    """Set the description of a partition."""
    data: DataFolder = context.obj
    if description is not None:
        describe_entry(data, _by_name(data, name), description)


@partition.command("rename")
def rename_partition(context: typer.Context, name: PartitionName, new_name: NewName) -> None:
    """Rename a partition. It must hold no users and no groups, because their ids end with its name."""
    data: DataFolder = context.obj
    rename_entry(data, _by_name(data, name), new_name)


@partition.command("remove")
def remove_partition(context: typer.Context, name: PartitionName) -> None:
    """Delete an empty partition."""
    data: DataFolder = context.obj
    remove_entry(data, _by_name(data, name))


@unit.command("add")
def add_unit(
    context: typer.Context,
    parent: Container,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    description: Description = "",
) -> None:
    """Make an organizational unit and print its location."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        unit_entry = editing.add_unit(cx, find_entry(data, cx, parent), name, data.now, description=description)
    line(entries.location(data.settings.directory.names, unit_entry))


@unit.command("list")
def list_units(context: typer.Context, name: PartitionName, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List a partition's units."""
    list_kind(context.obj, name, "unit", as_json=as_json, header=header)


@unit.command("content")
def list_content(
    context: typer.Context, container: Container, as_json: AsJson = False, header: WithHeader = None
) -> None:
    """List what lies directly in a unit, or in a partition's root unit: units, groups and users."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        content = entries.inside(cx, find_entry(data, cx, container))
    show_entries(data, content, as_json=as_json, header=header)


@unit.command("set")
def set_unit(context: typer.Context, location: Location, description: NewDescription = None) -> None:
    """Set the description of a unit."""
    data: DataFolder = context.obj
    if description is not None:
        describe_entry(data, _by_location(data, location), description)


@unit.command("rename")
def rename_unit(context: typer.Context, location: Location, new_name: NewName) -> None:
    """Rename a unit and print its new location. The locations of all that lies in it change, their ids stay."""
    data: DataFolder = context.obj
    unit = rename_entry(data, _by_location(data, location), new_name)
    line(entries.location(data.settings.directory.names, unit))


@unit.command("move")
def move_unit(context: typer.Context, location: Location, target: Target) -> None:
    """Move a unit with all that lies in it into another unit of its partition, and print its new location."""
    data: DataFolder = context.obj
    move_entry(data, _by_location(data, location), target)


@unit.command("remove")
def remove_unit(context: typer.Context, location: Location) -> None:
    """Delete an empty unit."""
    data: DataFolder = context.obj
    remove_entry(data, _by_location(data, location))


def _by_name(data: DataFolder, name: str) -> Find:
    return partial(entries.find_partition, names=data.settings.directory.names, name=name)


def _by_location(data: DataFolder, location: str) -> Find:
    return partial(entries.find_unit, names=data.settings.directory.names, location=location)
