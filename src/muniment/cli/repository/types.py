"""Commands about object types and their properties."""

from pathlib import Path
from typing import Annotated, TypeVar, cast, get_args

import msgspec
import typer

from muniment import initialise
from muniment.cli import terminal
from muniment.cli.repository.repositories import RepositoryOption
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.exit_codes import Exit, Failure
from muniment.repository import removal, repositories
from muniment.repository.objects.properties.properties import PropertyDefinition, PropertyKind
from muniment.repository.objects.types import object_types, type_editing, types_file
from muniment.repository.objects.types.type_forms import AllowedForm, PropertyForm, TypeForm
from muniment.repository.refusals import NameTaken

T = TypeVar("T")

type_ = typer.Typer(no_args_is_help=True, help="Object types and their properties.")

COMMANDS = {"type": type_}

TypeName = Annotated[str, typer.Argument(metavar="TYPE")]
PropertyName = Annotated[str, typer.Argument(metavar="PROPERTY")]
Label = Annotated[str | None, typer.Option(help="The text that people read instead of the name.")]
Length = Annotated[int | None, typer.Option(help="The longest text, in characters: at most 4000.")]
Searchable = Annotated[
    bool | None,
    typer.Option(
        "--searchable/--not-searchable", help="Queries may use the property, because the index holds its values."
    ),
]
Default = Annotated[
    list[str] | None,
    typer.Option(help="The value that a new object gets; repeat the option for several values. Empty: none."),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(help="A value that the property may have; repeat the option for several. Empty: any value."),
]
IsOpen = Annotated[
    bool | None, typer.Option("--open/--closed", help="Open: values beside the allowed ones are taken, too.")
]


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
    label: Label = None,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Make a type."""
    data: DataFolder = context.obj
    form = TypeForm(name, parent, label=_set(label))
    with data.database("repository") as database, database.begin() as cx:
        type_editing.define_type(cx, repositories.find(cx, repository_name).id, form, data.now)


@type_.command("property")
def add_property(
    context: typer.Context,
    name: TypeName,
    property_name: PropertyName,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="string, integer, double, boolean, date or id.")],
    repeating: Annotated[bool, typer.Option("--repeating", help="It has several values.")] = False,
    length: Length = None,
    label: Label = None,
    searchable: Searchable = None,
    default: Default = None,
    allowed: Allowed = None,
    is_open: IsOpen = None,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Add a property to a type. Queries can use it at once, unless it is --not-searchable."""
    data: DataFolder = context.obj
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    form = _form(property_name, length, label, searchable, default, allowed, is_open)
    form = msgspec.structs.replace(form, kind=cast("PropertyKind", kind), repeating=repeating)
    with data.database("repository") as database, database.begin() as cx:
        repository_id = repositories.find(cx, repository_name).id
        if property_name in object_types.catalogue(cx, repository_id).properties_of(name):
            raise NameTaken(f"The object type {name!r} has a property {property_name!r} already: use 'type change'.")
        type_editing.change_type(cx, repository_id, TypeForm(name, properties=[form]), data.now)


@type_.command("change")
def change_type(
    context: typer.Context,
    name: TypeName,
    property_name: Annotated[str, typer.Argument(metavar="[PROPERTY]", show_default=False)] = "",
    length: Length = None,
    label: Label = None,
    searchable: Searchable = None,
    default: Default = None,
    allowed: Allowed = None,
    is_open: IsOpen = None,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Change the label of a type, or change one of the properties that it adds. The length can only be raised.

    Values that are only allowed under a condition need a types file.
    """
    data: DataFolder = context.obj
    property_form = _form(property_name, length, label, searchable, default, allowed, is_open)
    form = TypeForm(name, properties=[property_form]) if property_name else TypeForm(name, label=_set(label))
    if not property_name and property_form != PropertyForm("", label=_set(label)):
        raise Failure("These options belong to a property: name the property to change.", Exit.USAGE)
    with data.database("repository") as database, database.begin() as cx:
        repository_id = repositories.find(cx, repository_name).id
        if property_name:
            object_types.catalogue(cx, repository_id).property_of(name, property_name)
        type_editing.change_type(cx, repository_id, form, data.now)


@type_.command("load")
def load_types(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Give the repository the types and properties of a types file (TOML). Others stay as they are."""
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


def _form(
    name: str,
    length: int | None,
    label: str | None,
    searchable: bool | None,
    default: list[str] | None,
    allowed: list[str] | None,
    is_open: bool | None,
) -> PropertyForm:
    values = None if default is None else [value for value in default if value]
    return PropertyForm(
        name,
        length=_set(length),
        label=_set(label),
        searchable=_set(searchable),
        default=msgspec.UNSET if values is None else values[0] if len(values) == 1 else [*values],
        allowed=msgspec.UNSET if allowed is None else [AllowedForm(value) for value in allowed if value],
        is_open=_set(is_open),
    )


def _set(value: T | None) -> T | msgspec.UnsetType:
    return msgspec.UNSET if value is None else value


def _describe_property(definition: PropertyDefinition) -> str:
    described = f"{definition.name} {definition.kind}{'[]' if definition.repeating else ''}"
    return described if definition.searchable else f"{described} (not searchable)"
