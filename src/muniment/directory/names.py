"""How names, user ids, locations (distinguished names) and scopes are written and read.

given 2.2, 2.7, 4.1 (scope), 5.3; RFC 4514 for locations. Built-in entries and resources are stored under neutral names;
what they are called is told by DirectoryNames alone.
"""

import unicodedata
from collections.abc import Sequence

from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadName, InvalidScope

MAX_LENGTH = 120
MAX_LOCATION = 32_768

_SCOPE = "resource:"
_ESCAPED = frozenset('"+,;<>\\=')
_HEX = frozenset("0123456789abcdefABCDEF")


def key(name: str) -> str:
    """Fold a name to what it is compared by: names that differ in case or in Unicode composition only are the same.

    What no database can store (NUL, lone surrogates) becomes U+FFFD, which no name holds.
    """
    return unicodedata.normalize("NFC", _storable(unicodedata.normalize("NFC", name).casefold()))


def check(name: str, *, partition: bool = False) -> str:
    """Normalise a new name to NFC, or raise BadName saying what it may not be."""
    name = unicodedata.normalize("NFC", name)
    if not name:
        raise BadName("A name may not be empty.")
    if len(name) > MAX_LENGTH:
        raise BadName(f"A name may have at most {MAX_LENGTH} characters.")
    if name != name.strip():
        raise BadName("A name may not begin or end with a space.")
    if any(_unprintable(character) for character in name):
        raise BadName("A name may not hold control characters.")
    if partition and "@" in name:
        raise BadName("A partition's name may not hold '@'.")
    return name


def check_resource(name: str) -> str:
    """Normalise a new resource's name, or raise BadName: ``+`` stands for a space in scopes (given 2.2)."""
    name = check(name)
    if "+" in name:
        raise BadName("A resource's name may not hold '+': in a scope it stands for a space.")
    return name


def user_id(name: str, partition: str) -> str:
    """Write a user id, ``<name>@<partition>`` (given 2.7)."""
    return f"{name}@{partition}"


def split_user_id(text: str) -> tuple[str, str]:
    """Read a user id at its last ``@``: a user's name may hold one, a partition's may not. Raises BadName."""
    name, at, partition = text.rpartition("@")
    if not (at and name and partition):
        raise BadName("A user id has the form <name>@<partition>.")
    return name, partition


def location(
    names: DirectoryNames, partition: str, units: Sequence[str] = (), *, name: str | None = None, root: bool = True
) -> str:
    """Write a location: ``cn=<name>,ou=<unit>,...,ou=Root,ou=<partition>,<suffix>`` (given 2.7).

    ``units`` lie below the root unit, innermost first; without ``name`` it is the location of the innermost unit, and
    with ``root=False`` that of the partition.
    """
    parts = [f"cn={escape(name)}"] if name is not None else []
    parts += [f"ou={escape(unit)}" for unit in units]
    if root:
        parts.append(f"ou={escape(names.root_unit)}")
    parts.append(f"ou={escape(partition)}")
    return ",".join([*parts, names.dn_suffix])


def split_location(names: DirectoryNames, text: str) -> tuple[str | None, list[str] | None, str]:
    """Read what ``location`` wrote: name or None, units innermost first (None: the partition itself), partition.

    Raises BadName.
    """
    parts = read_dn(text)
    suffix = [(kind, key(value)) for kind, value in read_dn(names.dn_suffix)]
    if [(kind, key(value)) for kind, value in parts[-len(suffix) :]] != suffix:
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
    if key(units[-1]) != key(names.root_unit):
        raise BadName(f"The outermost unit of a location is {names.root_unit}.")
    return name, units[:-1], partition


def read_dn(text: str) -> list[tuple[str, str]]:
    """Read a distinguished name into (type in lower case, value) pairs, in its order (RFC 4514 3). Raises BadName."""
    if len(text) > MAX_LOCATION:
        raise BadName(f"A location may have at most {MAX_LOCATION} characters.")
    return [_read_rdn(part) for part in _split_unescaped(text)]


def escape(value: str) -> str:
    """Escape a value for a distinguished name (RFC 4514 2.4)."""
    escaped = "".join(f"\\{character}" if character in _ESCAPED else character for character in value)
    escaped = escaped.replace("\x00", "\\00")
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    if escaped.startswith((" ", "#")):
        escaped = "\\" + escaped
    return escaped


def scope(resource: str) -> str:
    """Write the scope of a resource: ``resource:`` and its name, each space as ``+`` (given 4.1)."""
    return _SCOPE + resource.replace(" ", "+")


def resource_name(text: str) -> str:
    """Read a scope: the resource's name; ``+`` and a space both stand for a space. Raises InvalidScope."""
    if not text.startswith(_SCOPE) or len(text) == len(_SCOPE):
        raise InvalidScope("The scope has the form resource:<resource+name>.")
    return unicodedata.normalize("NFC", _storable(text[len(_SCOPE) :].replace("+", " ")))


def _storable(text: str) -> str:
    return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in text)


def _unprintable(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cs", "Cn", "Zl", "Zp")


def _split_unescaped(text: str) -> list[str]:
    parts, part, escaped = [], "", False
    for character in text:
        if character == "," and not escaped:
            parts.append(part)
            part = ""
            continue
        part += character
        escaped = character == "\\" and not escaped
    return [*parts, part]


def _read_rdn(part: str) -> tuple[str, str]:
    kind, equals, value = part.partition("=")
    if not (equals and kind.strip()):
        raise BadName("A location is made of <type>=<value> parts.")
    return kind.strip().lower(), _unescape(value)


def _unescape(value: str) -> str:
    value = _trimmed(value)
    out, at = bytearray(), 0
    while at < len(value):
        if value[at] != "\\":
            out += value[at].encode("utf-8", "replace")
            at += 1
        elif len(value) > at + 2 and value[at + 1] in _HEX and value[at + 2] in _HEX:
            out.append(int(value[at + 1 : at + 3], 16))
            at += 3
        elif len(value) > at + 1:
            out += value[at + 1].encode("utf-8", "replace")
            at += 2
        else:
            raise BadName("A location ends in the middle of an escape.")
    try:
        return out.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadName("A location holds escapes that are no UTF-8.") from error


def _trimmed(value: str) -> str:
    value = value.lstrip(" ")
    bare = value.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(value) else bare
