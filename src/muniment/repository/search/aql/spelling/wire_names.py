"""Which of the code's own (neutral) names stands for a name that a query uses on the wire?"""

from muniment.repository.folding import fold
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownType

BUILT_IN_TYPES = frozenset({"sysobject", "folder", "cabinet", "document"})
"""The built-in types. On the wire, their names have the prefix that the settings name."""

_SYSTEM_PREFIX = "r_"


def neutral_type(name: str, names: RepositoryNames) -> str:
    """Raises UnknownType for a built-in type without its prefix."""
    bare = name.removeprefix(names.type_prefix)
    if bare in BUILT_IN_TYPES and name != bare:
        return bare
    if names.type_prefix and name in BUILT_IN_TYPES:
        raise UnknownType(f"There is no object type {name!r}. Is {names.type_prefix + name!r} meant?")
    return name


def neutral_property(name: str, names: RepositoryNames) -> str:
    if names.system_property_prefix != _SYSTEM_PREFIX and name.startswith(names.system_property_prefix):
        return _SYSTEM_PREFIX + name.removeprefix(names.system_property_prefix)
    return name


def neutral_value(name: str, value: str, names: RepositoryNames) -> str:
    """Return a value of a query with neutral names.

    In ``r_object_type``, the name of a built-in type, or the beginning of such a name, loses the prefix, in any case.
    """
    if name != "r_object_type" or not fold(value).startswith(fold(names.type_prefix)):
        return value
    bare = value[len(names.type_prefix) :]
    return bare if bare and any(each.startswith(fold(bare)) for each in BUILT_IN_TYPES) else value
