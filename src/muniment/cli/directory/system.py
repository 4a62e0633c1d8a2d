"""Commands about system attributes: settings that are stored in the directory itself."""

import sys
from typing import Annotated

import typer

from muniment.cli import terminal
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.directory import system as attributes
from muniment.exit_codes import Exit, Failure

system = typer.Typer(no_args_is_help=True, help="System attributes: settings that are stored in the directory itself.")

COMMANDS = {"system": system}

Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as directory.auth.EnforceSSL, in any case.")]


@system.command("list")
def list_attributes(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List the attributes that are set, and those that this release reads."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        values = {attribute.name: attribute.value for attribute in attributes.every(cx)}
    unset = [each.name for each in attributes.KNOWN if each.name not in values]
    rows = []
    for name in (*values, *unset):
        definition = attributes.known_attribute(name)
        values_taken, meaning = (
            (" or ".join(definition.values), definition.meaning) if definition else (None, "Nothing here reads it.")
        )
        rows.append((name, values.get(name), values_taken, meaning))
    terminal.table(("Name", "Value", "Values", "Meaning"), rows, as_json=as_json, header=header)


@system.command("set")
def set_attribute(
    context: typer.Context,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE")],
    free: Annotated[
        bool, typer.Option("--free", help="Set it even if no part of this release reads an attribute of this name.")
    ] = False,
) -> None:
    """Set a system attribute; servers obey it from the next request on."""
    data: DataFolder = context.obj
    if not free and attributes.known_attribute(name) is None and sys.stdin.isatty():
        free = typer.confirm(f"No part of this release reads a system attribute {name!r}. Set it all the same?")
    with data.database("directory") as database, database.begin() as cx:
        attributes.put(cx, name, value, data.now, free=free)
    if warning := attributes.warning(name, value):
        terminal.errors.print(f"Warning: {warning}")


@system.command("remove")
def remove_attribute(context: typer.Context, name: Name) -> None:
    """Unset a system attribute."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        was_set = attributes.remove(cx, name)
    if not was_set:
        raise Failure(f"The system attribute {name!r} is not set.", Exit.REFUSED)
