"""Which properties may a caller write, and which values do they send? Each value is read by its property's kind.

A property that the caller may not write is refused, unless its values are the present ones. Source: docs/interface.md,
ours 2.
"""

from collections.abc import Mapping

import msgspec

from muniment.repository.objects import properties
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.properties import Given, Value
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import NotWritable, UnknownProperty, WrongValue

MAX_NAME = 255
"""Longest object name, in characters."""

_COLUMNS = frozenset({"object_name", "a_content_type", "owner_name", "acl_name"})
_decoder = msgspec.json.Decoder(dict[str, list[str | int | float | bool]])


def read(
    catalogue: Catalogue,
    type_name: str,
    sent: Mapping[str, Given],
    current: Mapping[str, list[Value]],
    principals: Principals,
    *,
    owns: bool,
) -> dict[str, list[Value]]:
    """Read the properties that a caller sends for an object of this type, and return those to be written.

    Properties that are not the caller's to write are left out if they repeat the present values, ``current``. ``owns``
    says whether the caller is the owner, who may assign the ACL. Raises UnknownProperty, WrongValue, NotWritable.
    """
    definitions = catalogue.properties_of(type_name)
    values: dict[str, list[Value]] = {}
    for name, value in sent.items():
        if name not in definitions:
            raise UnknownProperty(f"The object type {type_name!r} has no property {name[:100]!r}.")
        definition = definitions[name]
        new_values = properties.read_values(definition, value)
        if definition.writable:
            values[name] = new_values
        elif new_values != current.get(name, []):
            is_allowed = principals.administrator or (name == "acl_name" and owns)
            if name not in ("acl_name", "owner_name") or not is_allowed:
                raise NotWritable(f"The property {name!r} is not yours to write.")
            values[name] = new_values
    if "owner_name" in values:
        _check_owner(text_of(values, "owner_name"))
    return values


def object_name(values: Mapping[str, list[Value]]) -> str:
    """Return the object's name. Raises WrongValue when there is none."""
    name = text_of(values, "object_name")
    if not name.strip():
        raise WrongValue("An object needs a name: give the property 'object_name'.")
    if len(name) > MAX_NAME:
        raise WrongValue(f"The value of 'object_name' is longer than {MAX_NAME} characters.")
    return name


def text_of(values: Mapping[str, list[Value]], name: str) -> str:
    """Return the text of a property that has one value; empty if it has none."""
    return str(values[name][0]) if values.get(name) else ""


def encode(values: Mapping[str, list[Value]]) -> str:
    """Return, as JSON, the properties with a value that have no column of their own."""
    without_column = {name: of_name for name, of_name in values.items() if of_name and name not in _COLUMNS}
    return msgspec.json.encode(without_column).decode()


def decode(text: str) -> dict[str, list[Value]]:
    """Read the properties that ``encode`` wrote."""
    return _decoder.decode(text)


def _check_owner(owner: str) -> None:
    name, _, partition = owner.rpartition("@")
    if not name or not partition or len(owner) > 320:
        raise WrongValue("An owner is a user, written name@partition.")
