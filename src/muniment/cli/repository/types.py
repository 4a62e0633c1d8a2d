"""Commands about object types and their properties."""

from pathlib import Path
from typing import Annotated, TypeVar, cast, get_args

import msgspec
import typer
from sqlalchemy.engine import Connection

from muniment.cli.running import Group, Rows
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.bulk import removal
from muniment.repository.refusals import NameTaken
from muniment.repository.store.objects.properties.properties import PropertyDefinition, PropertyKind
from muniment.repository.store.objects.types import object_types, type_editing, types_file
from muniment.repository.store.objects.types.type_forms import AllowedForm, PropertyForm, TypeForm
from muniment.repository.store.repositories import Repository

T = TypeVar("T")

type_commands = Group(help="Object types and their properties.")

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


@type_commands.reads("list", "Type", "Parent", "Properties")
def list_types(cx: Connection, repository: Repository) -> Rows:
    """List the types, each with the properties it adds to its parent's."""
    for kind in object_types.catalogue(cx, repository.id).types():
        yield kind.name, kind.parent, [_describe_property(definition) for definition in kind.properties]


@type_commands.writes("add")
def add_type(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    parent: Annotated[str, typer.Option(help="The type it refines.")] = "document",
    label: Label = None,
) -> None:
    """Make a type."""
    form = TypeForm(name, parent, label=_set(label))
    type_editing.define_type(cx, repository.id, form, data.now)


@type_commands.writes("property")
def add_property(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
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
) -> None:
    """Add a property to a type. Queries can use it at once, unless it is --not-searchable."""
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    form = _form(property_name, length, label, searchable, default, allowed, is_open)
    form = msgspec.structs.replace(form, kind=cast("PropertyKind", kind), repeating=repeating)
    if property_name in object_types.catalogue(cx, repository.id).properties_of(name):
        raise NameTaken(f"The object type {name!r} has a property {property_name!r} already: use 'type change'.")
    type_editing.change_type(cx, repository.id, TypeForm(name, properties=[form]), data.now)


@type_commands.writes("change")
def change_type(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    name: TypeName,
    property_name: Annotated[str, typer.Argument(metavar="[PROPERTY]", show_default=False)] = "",
    length: Length = None,
    label: Label = None,
    searchable: Searchable = None,
    default: Default = None,
    allowed: Allowed = None,
    is_open: IsOpen = None,
) -> None:
    """Change the label of a type, or change one of the properties that it adds. The length can only be raised.

    Values that are only allowed under a condition need a types file.
    """
    property_form = _form(property_name, length, label, searchable, default, allowed, is_open)
    form = TypeForm(name, properties=[property_form]) if property_name else TypeForm(name, label=_set(label))
    if not property_name and property_form != PropertyForm("", label=_set(label)):
        raise Failure("These options belong to a property: name the property to change.", Exit.USAGE)
    if property_name:
        object_types.catalogue(cx, repository.id).property_of(name, property_name)
    type_editing.change_type(cx, repository.id, form, data.now)


@type_commands.writes("load")
def load_types(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
) -> str:
    """Give the repository the types and properties of a types file (TOML). Others stay as they are."""
    return "\n".join(types_file.load(cx, repository.id, file.read_bytes(), data.now) or ["nothing new"])


@type_commands.writes("remove")
def remove_type(cx: Connection, repository: Repository, name: TypeName) -> None:
    """Remove a type that no object has and no other type refines."""
    removal.remove_type(cx, repository, name)


@type_commands.writes("remove-property")
def remove_property(cx: Connection, repository: Repository, name: TypeName, property_name: PropertyName) -> None:
    """Remove a property from a type when no object has a value for it."""
    removal.remove_property(cx, repository, name, property_name)


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
