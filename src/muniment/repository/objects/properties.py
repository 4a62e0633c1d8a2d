"""The kinds of property values: what may be given for each, and how it is written.

Sources: ISO 8601 and RFC 3339 for dates; given 2.9 for the form in which they go out.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from muniment.clock import Instant, read_timestamp
from muniment.naming import is_storable
from muniment.repository.refusals import WrongValue

PropertyKind = Literal["string", "integer", "double", "boolean", "date", "id"]

Value: TypeAlias = str | int | float | bool
"""One value of a property. A date is an Instant, a whole number of milliseconds."""

Given: TypeAlias = Value | Sequence["Given"] | None
"""What a caller may send for a property: one value, several, or none."""

MAX_CHARACTERS = 4000
"""Longest text of one value."""

MAX_VALUES = 1000
"""Most values of one multi-valued property."""

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_ID = re.compile(r"[0-9a-f]{16}")


class PropertyDefinition(msgspec.Struct, frozen=True):
    """One property of a type. ``writable`` ones may be set by whoever may change the object."""

    name: str
    kind: PropertyKind
    repeating: bool = False
    writable: bool = True


def read_values(definition: PropertyDefinition, given: Given) -> list[Value]:
    """Read what a caller gave for the property into its values; none for null, an empty text or an empty list.

    Raises WrongValue, with a sentence that names the property.
    """
    if given is None or given == "" or (isinstance(given, Sequence) and not given):
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        return [read_value(definition, given)]
    if not definition.repeating:
        raise WrongValue(f"The property {definition.name!r} has one value, not a list.")
    if len(given) > MAX_VALUES:
        raise WrongValue(f"The property {definition.name!r} has more than {MAX_VALUES} values.")
    return [read_value(definition, item) for item in given]


def read_value(definition: PropertyDefinition, given: Given) -> Value:
    """Read one value of the property; texts are read as its kind spells it. Raises WrongValue."""
    if isinstance(given, str):
        _check_text(definition.name, given)
    # Blanks as Python's texts know them: its numbers know fewer.
    bare = given.strip() if isinstance(given, str) and definition.kind != "string" else given
    read = _read(definition.kind, bare)
    if read is None:
        raise WrongValue(f"The property {definition.name!r} takes {_WANTED[definition.kind]}, not {_shown(given)}.")
    return read


def instant(text: str) -> Instant:
    """Read an ISO 8601 date or date and time, taken as UTC when it names no offset, to the millisecond.

    Raises WrongValue.
    """
    try:
        return milliseconds(read_timestamp(text))
    except ValueError as error:
        raise WrongValue(f"{_shown(text)} is not a date as ISO 8601 writes it.") from error


def milliseconds(moment: Instant) -> Instant:
    """Cut an instant to whole milliseconds, as dates are shown and compared."""
    return moment - moment % 1000


_WANTED = {
    "string": "text",
    "integer": "a whole number of 64 bits",
    "double": "a number",
    "boolean": "true or false",
    "date": "a date as ISO 8601 writes it",
    "id": "an id of 16 hexadecimal digits",
}


def _check_text(name: str, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise WrongValue(f"The value of {name!r} is longer than {MAX_CHARACTERS} characters.")
    if not is_storable(text):
        raise WrongValue(f"The value of {name!r} holds a character that is no Unicode text.")


def _read(kind: PropertyKind, given: Given) -> Value | None:
    match kind:
        case "integer":
            return _integer(given)
        case "double":
            return _double(given)
        case "boolean":
            read = _BOOLEANS.get(given.lower()) if isinstance(given, str) else given
            return read if isinstance(read, bool) else None
    if not isinstance(given, str):
        return None
    if kind == "id":
        return given.lower() if _ID.fullmatch(given.lower()) else None
    return given if kind == "string" else _date(given)


def _integer(given: Given) -> int | None:
    read: int | None = None
    if isinstance(given, str):
        read = int(given) if _WHOLE.fullmatch(given) else None
    elif isinstance(given, float):
        read = int(given) if given.is_integer() else None
    elif isinstance(given, int) and not isinstance(given, bool):
        read = given
    return read if read is not None and -(2**63) <= read < 2**63 else None


def _double(given: Given) -> float | None:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    if isinstance(given, str) and not _NUMBER.fullmatch(given):
        return None
    try:
        read = float(given)
    except OverflowError:
        return None
    return read if math.isfinite(read) else None


def _date(text: str) -> Instant | None:
    try:
        return instant(text)
    except WrongValue:
        return None


def _shown(given: Given) -> str:
    if isinstance(given, str):
        return repr(given if len(given) <= 60 else given[:60] + "…")
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return str(given)[:60] if not isinstance(given, int) or abs(given) < 10**60 else "such a long number"
    return "an empty value" if given is None else "a list or an object"
