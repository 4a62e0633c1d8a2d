"""What a property's value is to a query: how it is read, how it is compared, which values the keywords look at."""

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from muniment.clock import Instant
from muniment.repository.aql.tree import Value
from muniment.repository.objects import properties
from muniment.repository.refusals import WrongValue

Kind: TypeAlias = properties.PropertyKind
"""The kinds a property can be of; dates are instants, to the millisecond."""

COMPARED = 1000
"""Characters of a string that comparisons look at; the rest of a longer one is not compared."""

LONGEST_BOUND = 100
"""Characters that a bound of a range of strings may have."""

_NOT_KEYWORDS = frozenset({"owner_name", "acl_name"})
_SYSTEM = ("r_", "i_", "a_")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?")
_DAY_ALONE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}")
_DAY: Instant = 86_400_000_000
_TRUE = frozenset({"true", "t", "1"})
_FALSE = frozenset({"false", "f", "0"})


def fold(text: str) -> str:
    """Bring a string to the form in which strings are compared: case and compatibility forms aside, accents kept."""
    text = text[: COMPARED * 4]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", text.casefold()[:COMPARED])


def keyword_values(values: Mapping[str, Sequence[Value]], ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """List the metadata that keywords look at, in a fixed order: title, subject, object_name, then the others by name.

    These are all string values but those that the repository writes (``r_``, ``i_``, ``a_``), owner and ACL names, and
    the values of properties of kind id, which ``ids`` names: they are no words that a person wrote.
    """
    first = [name for name in ("title", "subject", "object_name") if name in values]
    for name in (*first, *sorted(set(values).difference(first))):
        if name in _NOT_KEYWORDS or name in ids or name.startswith(_SYSTEM):
            continue
        for value in values[name]:
            if isinstance(value, str) and value:
                yield name, value


def read(kind: Kind, name: str, text: str, end: bool = False) -> Value:
    """Read a value as the property's kind asks. ``end``: as the upper end of a range, where a bare date is a whole day.

    Raises WrongValue.
    """
    if kind in ("string", "id"):
        return text
    if kind == "integer":
        if not _WHOLE.fullmatch(text):
            raise _wrong(name, "a whole number", text)
        return int(text)
    if kind == "double":
        number = float(text) if _NUMBER.fullmatch(text) else math.inf
        if not math.isfinite(number):
            raise _wrong(name, "a number", text)
        return number
    if kind == "boolean":
        if text.lower() not in _TRUE | _FALSE:
            raise _wrong(name, "true or false", text)
        return text.lower() in _TRUE
    return _instant(name, text, end)


def _instant(name: str, text: str, end: bool) -> Instant:
    try:
        moment = properties.instant(text)
    except WrongValue as wrong:
        raise _wrong(name, "a date or time as ISO 8601 writes it", text) from wrong
    return moment + _DAY - 1 if end and _DAY_ALONE.fullmatch(text) else moment


def _wrong(name: str, wanted: str, text: str) -> WrongValue:
    return WrongValue(f"The property {name!r} is compared with {wanted}, not with {text[:100]!r}.")
