"""The values of properties in queries: how they are read and compared, and which of them keywords look at."""

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
"""The kinds of properties; dates are instants, to the millisecond."""

COMPARED = 1000
"""How many characters of a string are compared."""

LONGEST_BOUND = 100
"""The longest bound of a range of strings, in characters."""

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
    """Fold a string for comparison: case and compatibility forms go, accents stay."""
    text = text[: COMPARED * 4]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", text.casefold()[:COMPARED])


def keyword_values(values: Mapping[str, Sequence[Value]], ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """List the metadata that keywords look at, in a fixed order: title, subject, object_name, then the others by name.

    These are all string values except those that no person wrote: values that the repository writes (``r_``, ``i_``,
    ``a_``), owner and ACL names, and values of properties of kind id, which ``ids`` names.
    """
    leading = [name for name in ("title", "subject", "object_name") if name in values]
    for name in (*leading, *sorted(set(values).difference(leading))):
        if name in _NOT_KEYWORDS or name in ids or name.startswith(_SYSTEM):
            continue
        for value in values[name]:
            if isinstance(value, str) and value:
                yield name, value


def read(kind: Kind, name: str, text: str, end: bool = False) -> Value:
    """Read a value by the property's kind. ``end``: an upper end, where a bare date means the whole day.

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


def _wrong(name: str, expected: str, text: str) -> WrongValue:
    return WrongValue(f"The property {name!r} is compared with {expected}, not with {text[:100]!r}.")
