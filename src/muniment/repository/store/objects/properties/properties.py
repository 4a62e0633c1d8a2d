"""Which kinds of property values are there, and what may callers send for each?

Sources: ISO 8601 and RFC 3339; given 2.9 for the form in which dates are sent.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec

from muniment.ground.clock import EARLIEST, LATEST, Instant, read_timestamp, timestamp
from muniment.ground.naming import is_storable
from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties.assistance import ANY, Assistance

PropertyKind = Literal["string", "integer", "double", "boolean", "date", "id"]

Value: TypeAlias = str | int | float | bool
"""A date is an Instant, cut to whole milliseconds."""

Given: TypeAlias = Value | Sequence["Given"] | None
"""The JSON of a property: a value, a list, or null."""

MAX_CHARACTERS = 4000

MAX_VALUES = 1000

_STORED: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "id": str,
    "integer": int,
    "date": int,
    "double": (int, float),
    "boolean": bool,
}
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_ID = re.compile(r"[0-9a-f]{16}")


class PropertyDefinition(msgspec.Struct, frozen=True):
    """Who may change an object may set its ``writable`` properties.

    ``length`` is in characters. An empty ``label`` means the name. A new object gets the ``default`` if its maker
    leaves the property out. Queries may use a ``searchable`` property, but not while ``awaiting_index``: its objects
    are being indexed again.
    """

    name: str
    kind: PropertyKind
    repeating: bool = False
    writable: bool = True
    length: int = MAX_CHARACTERS
    label: str = ""
    searchable: bool = True
    awaiting_index: bool = False
    default: tuple[Value, ...] = ()
    assistance: Assistance = ANY


def read_values(definition: PropertyDefinition, json_value: Given) -> list[Value]:
    """Read a caller's JSON: null, empty texts and lists of only these give no value. Raises WrongValue, which names the
    property.
    """
    if json_value is None or (isinstance(json_value, Sequence) and all(each in (None, "") for each in json_value)):
        return []
    if isinstance(json_value, str) or not isinstance(json_value, Sequence):
        return [read_value(definition, json_value)]
    if not definition.repeating:
        raise WrongValue(f"The property {definition.name!r} has one value, not a list.")
    if len(json_value) > MAX_VALUES:
        raise WrongValue(f"The property {definition.name!r} has more than {MAX_VALUES} values.")
    return [read_value(definition, item) for item in json_value]


def read_value(definition: PropertyDefinition, json_value: Given) -> Value:
    """Read a value, or convert a text to it.

    Raises WrongValue.
    """
    if isinstance(json_value, str):
        _check_text(definition, json_value)
    # Blanks around a text that stands for another kind of value are allowed. Texts of the kind "string" keep them.
    bare = json_value.strip() if isinstance(json_value, str) and definition.kind != "string" else json_value
    value = _read(definition.kind, bare)
    if value is None:
        raise WrongValue(
            f"The property {definition.name!r} takes {_EXPECTED[definition.kind]}, not {_describe(json_value)}."
        )
    return value


def fit(definition: PropertyDefinition, values: Sequence[Value]) -> bool:
    most = MAX_VALUES if definition.repeating else 1
    return len(values) <= most and all(_fits(definition, value) for value in values)


def as_sent(definition: PropertyDefinition, values: Sequence[Value]) -> list[Value]:
    if definition.kind != "date":
        return list(values)
    return [timestamp(value) for value in values if isinstance(value, int)]


def shown_length(definition: PropertyDefinition) -> int:
    """Return the most characters, 0 if the values are no texts."""
    return {"string": definition.length, "id": 16}.get(definition.kind, 0)


def instant(text: str) -> Instant:
    """Read ISO 8601, in UTC without an offset, and cut it to milliseconds.

    Raises WrongValue.
    """
    try:
        return milliseconds(read_timestamp(text))
    except ValueError as error:
        raise WrongValue(f"{_describe(text)} is not a date as ISO 8601 writes it.") from error


def milliseconds(moment: Instant) -> Instant:
    """Cut to the precision in which dates are sent and compared."""
    return moment - moment % 1000


_EXPECTED = {
    "string": "text",
    "integer": "a whole number of 64 bits",
    "double": "a number",
    "boolean": "true or false",
    "date": "a date as ISO 8601 writes it",
    "id": "an id of 16 hexadecimal digits",
}


def _check_text(definition: PropertyDefinition, text: str) -> None:
    longest = definition.length if definition.kind == "string" else MAX_CHARACTERS
    if len(text) > longest:
        raise WrongValue(f"The value of {definition.name!r} is longer than {longest} characters.")
    if not is_storable(text):
        raise WrongValue(f"The value of {definition.name!r} holds a character that is no Unicode text.")


def _fits(definition: PropertyDefinition, value: Value) -> bool:
    kind = definition.kind
    if not isinstance(value, _STORED[kind]) or isinstance(value, bool) != (kind == "boolean"):
        return False
    if isinstance(value, str):
        return len(value) <= definition.length if kind == "string" else _ID.fullmatch(value) is not None
    if kind == "date":
        return EARLIEST <= value <= LATEST
    return isinstance(value, float) or -(2**63) <= value < 2**63


def _read(kind: PropertyKind, json_value: Given) -> Value | None:
    match kind:
        case "integer":
            return _integer(json_value)
        case "double":
            return _double(json_value)
        case "boolean":
            truth = _BOOLEANS.get(json_value.lower()) if isinstance(json_value, str) else json_value
            return truth if isinstance(truth, bool) else None
        case "string":
            return json_value if isinstance(json_value, str) else None
        case "id":
            return json_value.lower() if isinstance(json_value, str) and _ID.fullmatch(json_value.lower()) else None
        case "date":
            return _date(json_value) if isinstance(json_value, str) else None
        case _:
            assert_never(kind)


def _integer(json_value: Given) -> int | None:
    value: int | None = None
    if isinstance(json_value, str):
        value = int(json_value) if _WHOLE.fullmatch(json_value) else None
    elif isinstance(json_value, float):
        value = int(json_value) if json_value.is_integer() else None
    elif isinstance(json_value, int) and not isinstance(json_value, bool):
        value = json_value
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _double(json_value: Given) -> float | None:
    if isinstance(json_value, bool) or not isinstance(json_value, str | int | float):
        return None
    if isinstance(json_value, str) and not _NUMBER.fullmatch(json_value):
        return None
    try:
        value = float(json_value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _date(text: str) -> Instant | None:
    try:
        return instant(text)
    except WrongValue:
        return None


def _describe(json_value: Given) -> str:
    if isinstance(json_value, str):
        return repr(json_value if len(json_value) <= 60 else json_value[:60] + "…")
    if isinstance(json_value, bool):
        return "true" if json_value else "false"
    if isinstance(json_value, int | float):
        return (
            str(json_value)[:60]
            if not isinstance(json_value, int) or abs(json_value) < 10**60
            else "such a long number"
        )
    return "an empty value" if json_value is None else "a list or an object"
