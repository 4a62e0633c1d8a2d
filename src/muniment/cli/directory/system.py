"""Commands about system attributes: settings that are stored in the directory itself."""

import sys
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.running import Group, Rows
from muniment.directory.entries import system as attributes
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure

system_commands = Group("directory", help="System attributes: settings that are stored in the directory itself.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as directory.auth.EnforceSSL, in any case.")]


@system_commands.reads("list", "Name", "Value", "Values", "Meaning")
def list_attributes(cx: Connection) -> Rows:
    """List the attributes that are set, and those that this release reads."""
    values = {attribute.name: attribute.value for attribute in attributes.all_system_attributes(cx)}
    unset = [each.name for each in attributes.KNOWN if each.name not in values]
    for name in (*values, *unset):
        definition = attributes.known_attribute(name)
        values_taken, meaning = (
            (" or ".join(definition.values), definition.meaning) if definition else (None, "Nothing here reads it.")
        )
        yield name, values.get(name), values_taken, meaning


@system_commands.acts("set")
def set_attribute(
    data: DataFolder,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE")],
    free: Annotated[
        bool, typer.Option("--free", help="Set it even if no part of this release reads an attribute of this name.")
    ] = False,
) -> None:
    """Set a system attribute; servers obey it from the next request on."""
    if not free and attributes.known_attribute(name) is None and sys.stdin.isatty():
        free = typer.confirm(f"No part of this release reads a system attribute {name!r}. Set it all the same?")
    with data.begin("directory") as cx:
        attributes.put(cx, name, value, data.now, free=free)
    if warning := attributes.warning(name, value):
        terminal.errors.print(f"Warning: {warning}")


@system_commands.writes("remove")
def remove_attribute(cx: Connection, name: Name) -> None:
    """Unset a system attribute."""
    if not attributes.remove(cx, name):
        raise Failure(f"The system attribute {name!r} is not set.", Exit.REFUSED)
