"""Which types and properties does a types file ask for? Those that the repository lacks are added."""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.objects import object_types
from muniment.repository.objects.object_types import ObjectType
from muniment.repository.objects.properties import PropertyDefinition, PropertyKind
from muniment.repository.refusals import BadTypesFile, WrongValue


class _FileProperty(msgspec.Struct, forbid_unknown_fields=True):
    kind: PropertyKind
    repeating: bool = False


class _FileType(msgspec.Struct, forbid_unknown_fields=True):
    parent: str = "document"
    properties: dict[str, _FileProperty | PropertyKind] = {}


class _TypesFile(msgspec.Struct, forbid_unknown_fields=True):
    types: dict[str, _FileType]


def load(cx: Connection, repository_id: int, toml: bytes, now: Instant) -> list[str]:
    """Add the types and properties of a types file that the repository lacks; return one line for each.

    ``[types.NAME]`` has ``parent`` and a table ``properties``: ``name = "KIND"`` or
    ``name = { kind = "KIND", repeating = true }``. Loading a file again adds nothing.
    Raises BadTypesFile, UnknownType, WrongValue (a property has another kind already).
    """
    try:
        file_types = msgspec.toml.decode(toml, type=_TypesFile).types
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadTypesFile(f"The types file cannot be read: {str(error)[:300]}.") from error
    lines: list[str] = []
    for name in _parents_first(file_types):
        present = object_types.catalogue(cx, repository_id)
        if name not in {kind.name for kind in present.types()}:
            object_types.add_type(cx, repository_id, ObjectType(name, file_types[name].parent), now)
            lines.append(f"type {name}")
            present = object_types.catalogue(cx, repository_id)
        elif present.get(name).parent != file_types[name].parent:
            raise WrongValue(f"The object type {name!r} is below {present.get(name).parent!r} already.")
        for property_name, property_form in file_types[name].properties.items():
            form = property_form if isinstance(property_form, _FileProperty) else _FileProperty(property_form)
            definition = PropertyDefinition(property_name, form.kind, form.repeating)
            if property_name in present.properties_of(name):
                object_types.check_same_kind(present, definition)
            else:
                object_types.add_property(cx, repository_id, name, definition, now)
                lines.append(f"property {name}.{property_name}")
    return lines


def _parents_first(file_types: Mapping[str, _FileType]) -> list[str]:
    names_in_order: list[str] = []

    def place(name: str, children: tuple[str, ...]) -> None:
        if name in children:
            raise BadTypesFile(f"The object type {name!r} is its own ancestor.")
        if name in file_types and name not in names_in_order:
            place(file_types[name].parent, (*children, name))
            names_in_order.append(name)

    for name in file_types:
        place(name, ())
    return names_in_order
