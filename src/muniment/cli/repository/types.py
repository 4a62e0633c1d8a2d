"""Commands about object types and their properties."""

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from muniment import initialise
from muniment.cli import terminal
from muniment.cli.repository.repositories import RepositoryOption
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.exit_codes import Exit, Failure
from muniment.repository import removal, repositories
from muniment.repository.objects import object_types, types_file
from muniment.repository.objects.object_types import ObjectType
from muniment.repository.objects.properties import PropertyDefinition, PropertyKind

type_ = typer.Typer(no_args_is_help=True, help="Object types and their properties.")

COMMANDS = {"type": type_}

TypeName = Annotated[str, typer.Argument(metavar="TYPE")]
PropertyName = Annotated[str, typer.Argument(metavar="PROPERTY")]


@type_.command("list")
def list_types(
    context: typer.Context,
    repository_name: RepositoryOption = initialise.REPOSITORY,
    as_json: AsJson = False,
    header: WithHeader = None,
) -> None:
    """List the types, each with the properties it adds to its parent's."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        catalogue = object_types.catalogue(cx, repositories.find(cx, repository_name).id)
        rows = [
            (kind.name, kind.parent, [_describe_property(definition) for definition in kind.properties])
            for kind in catalogue.types()
        ]
    terminal.table(("Type", "Parent", "Properties"), rows, as_json=as_json, header=header)


@type_.command("add")
def add_type(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    parent: Annotated[str, typer.Option(help="The type it refines.")] = "document",
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Make a type."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_type(cx, repositories.find(cx, repository_name).id, ObjectType(name, parent), data.now)


@type_.command("property")
def add_property(
    context: typer.Context,
    name: TypeName,
    property_name: PropertyName,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="string, integer, double, boolean, date or id.")],
    repeating: Annotated[bool, typer.Option("--repeating", help="It has several values.")] = False,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Add a property to a type; it is searchable at once."""
    data: DataFolder = context.obj
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    definition = PropertyDefinition(property_name, cast("PropertyKind", kind), repeating)
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_property(cx, repositories.find(cx, repository_name).id, name, definition, data.now)


@type_.command("load")
def load_types(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Add the types and properties of a types file (TOML) that the repository does not have yet."""
    data: DataFolder = context.obj
    content = file.read_bytes()
    with data.database("repository") as database, database.begin() as cx:
        additions = types_file.load(cx, repositories.find(cx, repository_name).id, content, data.now)
    for what in additions or ["nothing new"]:
        terminal.line(what)


@type_.command("remove")
def remove_type(
    context: typer.Context, name: TypeName, repository_name: RepositoryOption = initialise.REPOSITORY
) -> None:
    """Remove a type that no object has and no other type refines."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.begin() as cx:
        removal.remove_type(cx, repositories.find(cx, repository_name), name)


@type_.command("remove-property")
def remove_property(
    context: typer.Context,
    name: TypeName,
    property_name: PropertyName,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Remove a property from a type when no object has a value for it."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.begin() as cx:
        removal.remove_property(cx, repositories.find(cx, repository_name), name, property_name)


def _describe_property(definition: PropertyDefinition) -> str:
    return f"{definition.name} {definition.kind}{'[]' if definition.repeating else ''}"
