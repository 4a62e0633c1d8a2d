"""Which of the code's own (neutral) names stands for a name that a query uses on the wire?"""

from muniment.repository.folding import fold
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownType

BUILT_IN_TYPES = frozenset({"sysobject", "folder", "cabinet", "document"})
"""On the wire, they have the prefix of the settings."""

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
    """Take the prefix from a built-in type, or its beginning, in ``r_object_type``, in any case."""
    if name != "r_object_type" or not fold(value).startswith(fold(names.type_prefix)):
        return value
    bare = value[len(names.type_prefix) :]
    return bare if bare and any(each.startswith(fold(bare)) for each in BUILT_IN_TYPES) else value
