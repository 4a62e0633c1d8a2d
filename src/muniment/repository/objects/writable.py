"""What a caller says about an object: the properties he may write, read by their kinds.

Source: docs/interface.md, ours 2: owner and ``r_`` properties are refused unless they repeat what is there.
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
    given: Mapping[str, Given],
    current: Mapping[str, list[Value]],
    principals: Principals,
    *,
    owns: bool,
) -> dict[str, list[Value]]:
    """Read what is given for an object of the type, less what only repeats what is the repository's to write.

    ``current`` is what the object says now, ``owns`` whether the caller is its owner, who may assign its ACL.
    Raises UnknownProperty, WrongValue, NotWritable.
    """
    known = catalogue.properties_of(type_name)
    wanted: dict[str, list[Value]] = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownProperty(f"The object type {type_name!r} has no property {name[:100]!r}.")
        definition = known[name]
        read_value = properties.read_values(definition, value)
        if definition.writable:
            wanted[name] = read_value
        elif read_value != current.get(name, []):
            allowed = principals.administrator or (name == "acl_name" and owns)
            if name not in ("acl_name", "owner_name") or not allowed:
                raise NotWritable(f"The property {name!r} is not yours to write.")
            wanted[name] = read_value
    if "owner_name" in wanted:
        _check_owner(text_of(wanted, "owner_name"))
    return wanted


def object_name(wanted: Mapping[str, list[Value]]) -> str:
    """Say the object's name. Raises WrongValue when there is none."""
    name = text_of(wanted, "object_name")
    if not name.strip():
        raise WrongValue("An object needs a name: give the property 'object_name'.")
    if len(name) > MAX_NAME:
        raise WrongValue(f"The value of 'object_name' is longer than {MAX_NAME} characters.")
    return name


def text_of(wanted: Mapping[str, list[Value]], name: str) -> str:
    """Say the one text of a property, empty when it has none."""
    return str(wanted[name][0]) if wanted.get(name) else ""


def encoded(wanted: Mapping[str, list[Value]]) -> str:
    """Write what is stored with the object, apart from what has a column of its own."""
    return msgspec.json.encode({name: some for name, some in wanted.items() if some and name not in _COLUMNS}).decode()


def decoded(text: str) -> dict[str, list[Value]]:
    """Read what ``encoded`` wrote."""
    return _decoder.decode(text)


def _check_owner(owner: str) -> None:
    name, _, partition = owner.rpartition("@")
    if not name or not partition or len(owner) > 320:
        raise WrongValue("An owner is a user, written name@partition.")
