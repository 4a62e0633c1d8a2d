"""Which definition of a property or a type does a form ask for? Source: docs/interface.md, ours 19."""

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from muniment.ground.naming import is_storable
from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties import assistance, properties
from muniment.repository.store.objects.properties.properties import (
    MAX_CHARACTERS,
    PropertyDefinition,
    PropertyKind,
    Value,
)

RESERVED = ("r_", "i_", "a_", "dm_")
"""Prefixes of built-in names. In other systems, built-in types begin with ``dm_`` (examples/names-of-the-field.toml).
"""

MOST_PROPERTIES = 1000

MOST_ALLOWED = 1000

MAX_LABEL = 255

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


Several = Value | list[Value] | None


class AllowedForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``when`` are values of the property on which the list depends."""

    value: Value
    label: str = ""
    when: Several = None


class PropertyForm(msgspec.Struct, frozen=True):
    """An unset field keeps its value, or in a new property, which needs a ``kind``, gets the default of
    ``PropertyDefinition``.
    """

    name: str
    kind: PropertyKind | msgspec.UnsetType = msgspec.UNSET
    repeating: bool | msgspec.UnsetType = msgspec.UNSET
    length: int | msgspec.UnsetType = msgspec.UNSET
    label: str | msgspec.UnsetType = msgspec.UNSET
    searchable: bool | msgspec.UnsetType = msgspec.UNSET
    default: Several | msgspec.UnsetType = msgspec.UNSET
    allowed: Sequence[AllowedForm] | msgspec.UnsetType = msgspec.UNSET
    is_open: bool | msgspec.UnsetType = msgspec.UNSET
    depends_on: str | msgspec.UnsetType = msgspec.UNSET


class TypeForm(msgspec.Struct, frozen=True):
    """An unset label stays. Properties are added or changed. With an empty ``parent``, a new type gets ``document``."""

    name: str
    parent: str = ""
    label: str | msgspec.UnsetType = msgspec.UNSET
    properties: Sequence[PropertyForm] = ()


def check_name(name: str, what: str) -> None:
    """``what`` is type or property.

    Raises WrongValue.
    """
    if not _NAME.fullmatch(name):
        raise WrongValue(
            f"A {what} name has at most 64 letters a-z, digits and _, and begins with a letter, unlike {name[:64]!r}."
        )
    if name.startswith(RESERVED):
        raise WrongValue(
            f"A {what} name may not begin with {', '.join(RESERVED)}, as {name!r} does: those are the repository's own."
        )


def check_label(label: str) -> None:
    if len(label) > MAX_LABEL or not is_storable(label):
        raise WrongValue(f"A label is Unicode text of at most {MAX_LABEL} characters.")


def new_definition(form: PropertyForm, siblings: Mapping[str, PropertyDefinition]) -> PropertyDefinition:
    """Raises WrongValue."""
    check_name(form.name, "property")
    if form.kind is msgspec.UNSET:
        raise WrongValue(f"The new property {form.name!r} needs a kind, such as 'string'.")
    return change_definition(bare_definition(form), form, siblings)


def bare_definition(form: PropertyForm) -> PropertyDefinition:
    """Use only name, kind (``string`` if unset) and ``repeating``."""
    kind = "string" if form.kind is msgspec.UNSET else form.kind
    return PropertyDefinition(form.name, kind, repeating=form.repeating is True)


def change_definition(
    former: PropertyDefinition, form: PropertyForm, siblings: Mapping[str, PropertyDefinition]
) -> PropertyDefinition:
    """``siblings`` are of the same type. Raises WrongValue, also for another kind or ``repeating``."""
    name = former.name
    if form.kind not in (msgspec.UNSET, former.kind) or form.repeating not in (msgspec.UNSET, former.repeating):
        values = "several values" if former.repeating else "one value"
        raise WrongValue(f"The property {name!r} is of kind {former.kind} with {values}, which cannot change.")
    definition = former
    if form.length is not msgspec.UNSET:
        definition = msgspec.structs.replace(definition, length=_length(definition, form.length))
    if form.label is not msgspec.UNSET:
        check_label(form.label)
        definition = msgspec.structs.replace(definition, label="" if form.label == name else form.label)
    if form.searchable is not msgspec.UNSET:
        definition = msgspec.structs.replace(definition, searchable=form.searchable)
    definition = msgspec.structs.replace(definition, assistance=_assistance(definition, form, siblings))
    if form.default is not msgspec.UNSET:
        default = tuple(properties.read_values(definition, form.default))
        definition = msgspec.structs.replace(definition, default=default)
    _check_default(definition)
    return definition


def _length(definition: PropertyDefinition, length: int) -> int:
    if definition.kind != "string":
        if length == properties.shown_length(definition):  # a caller may send back the length that was shown
            return definition.length
        raise WrongValue(f"The property {definition.name!r} is of kind {definition.kind}: only strings have a length.")
    if not 1 <= length <= MAX_CHARACTERS:
        raise WrongValue(f"The length of {definition.name!r} is a number from 1 to {MAX_CHARACTERS}.")
    return length


def _assistance(
    definition: PropertyDefinition, form: PropertyForm, siblings: Mapping[str, PropertyDefinition]
) -> assistance.Assistance:
    former = definition.assistance
    depends_on = former.depends_on if form.depends_on is msgspec.UNSET else form.depends_on
    if depends_on and (depends_on == definition.name or depends_on not in siblings):
        raise WrongValue(
            f"The property {definition.name!r} depends on {depends_on[:64]!r}, which is no other property of its type."
        )
    values = former.values if form.allowed is msgspec.UNSET else None
    if values is None:
        values = _allowed(definition, form.allowed or (), siblings.get(depends_on))
    if not depends_on and any(each.when for each in values):
        raise WrongValue(f"Say on which property the values of {definition.name!r} depend.")
    if depends_on != former.depends_on and form.allowed is msgspec.UNSET and values:
        raise WrongValue(f"Give the values of {definition.name!r} with the property on which they depend.")
    return assistance.Assistance(values, former.is_open if form.is_open is msgspec.UNSET else form.is_open, depends_on)


def _allowed(
    definition: PropertyDefinition, forms: Sequence[AllowedForm], other: PropertyDefinition | None
) -> tuple[assistance.AllowedValue, ...]:
    if len(forms) > MOST_ALLOWED:
        raise WrongValue(f"The property {definition.name!r} has more than {MOST_ALLOWED} allowed values.")
    values: list[assistance.AllowedValue] = []
    conditions: set[tuple[Value, Value | None]] = set()
    for form in forms:
        if form.value == "":
            raise WrongValue(f"An allowed value of {definition.name!r} is empty.")
        check_label(form.label)
        value = properties.read_value(definition, form.value)
        when = _when(definition, form.when, other)
        conditions_of_value: Collection[tuple[Value, Value | None]] = [(value, each) for each in when or (None,)]
        if not conditions.isdisjoint(conditions_of_value):
            raise WrongValue(f"The property {definition.name!r} allows the value {str(form.value)[:60]!r} twice.")
        conditions.update(conditions_of_value)
        values.append(assistance.AllowedValue(value, form.label, when))
    return tuple(values)


def _when(definition: PropertyDefinition, when: Several, other: PropertyDefinition | None) -> tuple[Value, ...]:
    if when is None:
        return ()
    if other is None:
        raise WrongValue(f"Say on which property the values of {definition.name!r} depend.")
    several = when if isinstance(when, list) else [when]
    if len(several) > MOST_ALLOWED:
        raise WrongValue(f"A value of {definition.name!r} depends on more than {MOST_ALLOWED} values.")
    return tuple([properties.read_value(other, each) for each in several])


def _check_default(definition: PropertyDefinition) -> None:
    """Check a default, whatever values other properties have.

    Raises WrongValue.
    """
    if any(isinstance(value, str) and len(value) > definition.length for value in definition.default):
        raise WrongValue(f"The default of {definition.name!r} is longer than its length.")
    if forbidden := definition.assistance.list_forbidden(definition.default, {}):
        raise WrongValue(f"The default of {definition.name!r} is not always allowed: {str(forbidden[0])[:60]!r}.")
