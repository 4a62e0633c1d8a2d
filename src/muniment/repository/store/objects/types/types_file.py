"""Give a repository the types and properties of a file: add those that it lacks, change the others.

Source: docs/interface.md, ours 19.
"""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import BadTypesFile, WrongValue
from muniment.repository.store.objects.properties.properties import PropertyKind, Value
from muniment.repository.store.objects.types import object_types, type_editing
from muniment.repository.store.objects.types.type_forms import AllowedForm, PropertyForm, Several, TypeForm

MAX_BYTES = 10_000_000


class _FileProperty(msgspec.Struct, forbid_unknown_fields=True):
    kind: PropertyKind
    repeating: bool = False
    length: int | msgspec.UnsetType = msgspec.UNSET
    label: str | msgspec.UnsetType = msgspec.UNSET
    searchable: bool | msgspec.UnsetType = msgspec.UNSET
    default: Several | msgspec.UnsetType = msgspec.UNSET
    allowed: list[Value | AllowedForm] | msgspec.UnsetType = msgspec.UNSET
    open: bool | msgspec.UnsetType = msgspec.UNSET
    depends_on: str | msgspec.UnsetType = msgspec.UNSET


class _FileType(msgspec.Struct, forbid_unknown_fields=True):
    parent: str = "document"
    label: str | msgspec.UnsetType = msgspec.UNSET
    properties: dict[str, _FileProperty | PropertyKind] = {}


class _TypesFile(msgspec.Struct, forbid_unknown_fields=True):
    types: dict[str, _FileType]


def load(cx: Connection, repository_id: int, toml: bytes, now: Instant) -> list[str]:
    """Return a line of text for each type and property added or changed.

    ``[types.NAME]`` has ``parent``, ``label`` and a table ``properties``. A line of this table is ``name = "KIND"`` or
    ``name = { kind = "KIND", repeating = true, ... }``.

    ``parent`` is ``document`` if left out, ``repeating`` false; all else stays, so loading again changes nothing.

    Calls ``object_types.lock_all`` first. Raises BadTypesFile, UnknownType, NameTaken, InUse, VersionConflict,
    WrongValue. WrongValue also refuses to change a type's parent, a property's kind or ``repeating``, or an inherited
    property.
    """
    if len(toml) > MAX_BYTES:
        raise BadTypesFile(f"The types file has more than {MAX_BYTES} bytes.")
    try:
        file_types = msgspec.toml.decode(toml, type=_TypesFile).types
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise BadTypesFile(f"The types file cannot be read: {str(error)[:300]}.") from error
    lines: list[str] = []
    object_types.lock_all(cx, repository_id)
    for name in _parents_first(file_types):
        file_type, present = file_types[name], object_types.catalogue(cx, repository_id)
        if name not in present:
            type_editing.add_type(cx, repository_id, object_types.ObjectType(name, file_type.parent), now)
            lines.append(f"type {name}")
        elif present.get(name).parent != file_type.parent:
            raise WrongValue(f"The object type {name!r} is below {present.get(name).parent!r} already.")
        else:
            lines += _relabel(present, name, file_type)
        forms = [_form(each, what) for each, what in file_type.properties.items()]
        if name in present:  # a built-in type cannot be locked, but the file may repeat what it inherits
            forms = type_editing.without_inherited(present, name, forms)
        form = TypeForm(name, label=file_type.label, properties=forms)
        if form.properties or form.label is not msgspec.UNSET:
            if name in present:
                object_types.lock(cx, repository_id, name)
            lines += type_editing.apply(cx, repository_id, form, now)
    return lines


def _relabel(present: object_types.Catalogue, name: str, file_type: _FileType) -> list[str]:
    former = present.get(name).label or name
    return [] if file_type.label in (msgspec.UNSET, former) else [f"type {name} changed"]


def _form(name: str, what: _FileProperty | PropertyKind) -> PropertyForm:
    if not isinstance(what, _FileProperty):
        return PropertyForm(name, what, repeating=False)
    allowed: list[AllowedForm] | msgspec.UnsetType = msgspec.UNSET
    if what.allowed is not msgspec.UNSET:
        allowed = [each if isinstance(each, AllowedForm) else AllowedForm(each) for each in what.allowed]
    return PropertyForm(
        name,
        what.kind,
        what.repeating,
        length=what.length,
        label=what.label,
        searchable=what.searchable,
        default=what.default,
        allowed=allowed,
        is_open=what.open,
        depends_on=what.depends_on,
    )


def _parents_first(file_types: Mapping[str, _FileType]) -> list[str]:
    names_in_order: list[str] = []

    def place(name: str, children: tuple[str, ...]) -> None:
        if name in children:
            raise BadTypesFile(f"The object type {name!r} is its own ancestor.")
        if len(children) > type_editing.MOST_LEVELS:
            raise BadTypesFile(
                f"The object type {name!r} has types below it on more than {type_editing.MOST_LEVELS} levels."
            )
        if name in file_types and name not in placed:
            place(file_types[name].parent, (*children, name))
            placed.add(name)
            names_in_order.append(name)

    placed: set[str] = set()
    for name in file_types:
        place(name, ())
    return names_in_order
