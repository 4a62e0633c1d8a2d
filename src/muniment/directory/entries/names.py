"""Write and read names, user ids, locations (distinguished names) and scopes.

Source: given 2.2, 2.7, 4.1 (scope), 5.3; RFC 4514 for locations. What is built in has neutral names, which
DirectoryNames spells.
"""

import re
import unicodedata
from collections.abc import Sequence

from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, BadName, InvalidScope
from muniment.ground.naming import MalformedName, disguise, escape, fold_name, is_storable, make_storable, read_dn

MAX_LENGTH = 120
CLIENT_LENGTH = 255
"""An OAuth client's name may be a URL."""

_MAX_FOLDED = 400

_SCOPE = "resource:"
_UNESCAPED = re.compile(r'\\.|["+;<>]|(?<==)#|,(?!\s*[A-Za-z]+=)', re.DOTALL)


def check(name: str, *, partition: bool = False, longest: int = MAX_LENGTH) -> str:
    """Return the name in NFC. Raises BadName."""
    name = unicodedata.normalize("NFC", name)
    if not name:
        raise BadName("A name may not be empty.")
    if len(name) > longest or len(fold_name(name)) > _MAX_FOLDED:
        raise BadName(f"A name may have at most {longest} characters.")
    if name != name.strip():
        raise BadName("A name may not begin or end with a space.")
    if any(_unprintable(character) for character in name):
        raise BadName("A name may not hold control characters.")
    if what := disguise(name):
        raise BadName(f"A name may not hold {what}.")
    if partition and "@" in name:
        raise BadName("A partition's name may not hold '@'.")
    return name


def check_resource(name: str) -> str:
    """Return the name in NFC. Raises BadName, also for ``+``, a space in scopes (given 2.2)."""
    name = check(name)
    if "+" in name:
        raise BadName("A resource's name may not hold '+': in a scope it stands for a space.")
    return name


def check_description(text: str) -> str:
    """Raises BadAttribute for a text that databases cannot store."""
    if not is_storable(text):
        raise BadAttribute("A description is text without NUL characters, in UTF-8.")
    return text


def user_id(name: str, partition: str) -> str:
    """``<name>@<partition>`` (given 2.7)."""
    return f"{name}@{partition}"


def split_user_id(text: str) -> tuple[str, str]:
    """The last ``@`` separates: a user's name may contain one, a partition's may not. Raises BadName."""
    name, at, partition = text.rpartition("@")
    if not (at and name and partition):
        raise BadName("A user id has the form <name>@<partition>.")
    return name, partition


def location(
    names: DirectoryNames, partition: str, units: Sequence[str] = (), *, name: str | None = None, root: bool = True
) -> str:
    """``cn=<name>,ou=<unit>,...,ou=Root,ou=<partition>,<suffix>`` (given 2.7).

    ``units`` are those below the root unit, the innermost first. Without ``name`` it is the innermost unit's, with
    ``root=False`` the partition's.
    """
    parts = [f"cn={escape(name)}"] if name is not None else []
    parts += [f"ou={escape(unit)}" for unit in units]
    if root:
        parts.append(f"ou={escape(names.root_unit)}")
    parts.append(f"ou={escape(partition)}")
    return ",".join([*parts, names.dn_suffix])


def resource_location(names: DirectoryNames, name: str) -> str:
    """``cn=<name>,ou=Resources`` and the suffix without its unit."""
    unit, comma, rest = names.dn_suffix.partition(",")
    suffix = rest if comma and unit.lower().startswith("ou=") else names.dn_suffix
    return f"cn={escape(name)},ou=Resources,{suffix}"


def split_location(names: DirectoryNames, text: str) -> tuple[str | None, list[str] | None, str]:
    """Raises BadName. A unit or a partition has no name, a partition no units; these are those below the root unit, the
    innermost first.
    """
    try:
        parts = _read_leniently(text)
    except MalformedName as error:
        raise BadName(str(error)) from error
    suffix = [(kind, fold_name(value)) for kind, value in read_dn(names.dn_suffix)]
    if [(kind, fold_name(value)) for kind, value in parts[-len(suffix) :]] != suffix:
        raise BadName(f"A location ends with {names.dn_suffix}.")
    parts = parts[: -len(suffix)]
    name = parts.pop(0)[1] if parts and parts[0][0] == "cn" else None
    if not parts or any(kind != "ou" for kind, _ in parts):
        raise BadName("A location has the form cn=<name>,ou=<unit>,...,ou=<partition> before its suffix.")
    *units, partition = (value for _, value in parts)
    if not units:
        if name is not None:
            raise BadName("A location names a unit between the name and the partition.")
        return None, None, partition
    if fold_name(units[-1]) != fold_name(names.root_unit):
        raise BadName(f"The outermost unit of a location is {names.root_unit}.")
    return name, units[:-1], partition


def _read_leniently(text: str) -> list[tuple[str, str]]:
    """Clients leave out escapes, at a comma too, if what follows it is no further part."""
    try:
        return read_dn(text)
    except MalformedName:
        return read_dn(_UNESCAPED.sub(lambda found: found[0] if found[0][0] == "\\" else f"\\{found[0]}", text))


def scope(resource: str) -> str:
    """``resource:`` and its name, with ``+`` for each space (given 4.1)."""
    return _SCOPE + resource.replace(" ", "+")


def resource_name(text: str) -> str:
    """``+`` and a space both mean a space. Raises InvalidScope."""
    if not text.startswith(_SCOPE) or len(text) == len(_SCOPE):
        raise InvalidScope("The scope has the form resource:<resource+name>.")
    return unicodedata.normalize("NFC", make_storable(text[len(_SCOPE) :].replace("+", " ")))


def _unprintable(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cs", "Cn", "Zl", "Zp")
