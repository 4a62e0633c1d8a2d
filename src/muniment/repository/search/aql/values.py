"""How are the values in queries read, and which values of an object do keywords look at?"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from muniment.ground.clock import Instant
from muniment.repository.refusals import WrongValue
from muniment.repository.search.aql.tree import Value
from muniment.repository.store.objects.properties import properties

Kind: TypeAlias = properties.PropertyKind
"""A date is an ``Instant``, exact to the millisecond."""

LONGEST_BOUND = 100

_NOT_KEYWORDS = frozenset({"owner_name", "acl_name", "language_code"})
_SYSTEM = ("r_", "i_", "a_")
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?")
_DAY_ALONE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}")
_DAY: Instant = 86_400_000_000
_TRUE = frozenset({"true", "t", "1"})
_FALSE = frozenset({"false", "f", "0"})


def keyword_values(values: Mapping[str, Sequence[Value]], ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """List what keywords look at: title, subject, object_name, then others by name.

    Left out are values that are no strings, what the repository writes (``r_``, ``i_``, ``a_``), names of owners and
    ACLs, codes of languages, and properties of kind id (``ids``).
    """
    leading = [name for name in ("title", "subject", "object_name") if name in values]
    for name in (*leading, *sorted(set(values).difference(leading))):
        if name in _NOT_KEYWORDS or name in ids or name.startswith(_SYSTEM):
            continue
        for value in values[name]:
            if isinstance(value, str) and value:
                yield name, value


def read(kind: Kind, name: str, text: str, end: bool = False) -> Value:
    """With ``end``, a date without a time is the last moment of the day.

    Raises WrongValue.
    """
    match kind:
        case "string" | "id":
            return text
        case "integer":
            if not _WHOLE.fullmatch(text):
                raise _wrong(name, "a whole number", text)
            return int(text)
        case "double":
            number = float(text) if _NUMBER.fullmatch(text) else math.inf
            if not math.isfinite(number):
                raise _wrong(name, "a number", text)
            return number
        case "boolean":
            if text.lower() not in _TRUE | _FALSE:
                raise _wrong(name, "true or false", text)
            return text.lower() in _TRUE
        case "date":
            return _instant(name, text, end)
        case _:
            assert_never(kind)


def is_day(text: str) -> bool:
    return _DAY_ALONE.fullmatch(text) is not None


def _instant(name: str, text: str, end: bool) -> Instant:
    try:
        moment = properties.instant(text)
    except WrongValue as wrong:
        raise _wrong(name, "a date or time as ISO 8601 writes it", text) from wrong
    return moment + _DAY - 1 if end and is_day(text) else moment


def _wrong(name: str, expected: str, text: str) -> WrongValue:
    return WrongValue(f"The property {name!r} is compared with {expected}, not with {text[:100]!r}.")
