"""To which values of its facets is a search narrowed?

``facet-value-constraints`` has values of one facet, with ``+`` for AND, which binds more tightly than ``|`` for OR;
``facet-id-constraints`` has pairs ``id=values`` between ``,`` or ``;``, which must all be met. A backslash escapes the
sign after it: ``read`` returns exactly what ``write`` was given.

Source: docs/aql.md, "Facets".
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from muniment.repository.refusals import BadQuery

NO_VALUE, EMPTY = "\\N", "\\E"

Alternatives: TypeAlias = tuple[tuple[str, ...], ...]
"""Groups of constraints as written; a hit must meet all of at least one group."""

_SIGNS = frozenset("\\+|,;=")


class Narrowing(msgspec.Struct, frozen=True):
    """A facet narrows a search to these values."""

    facet_id: str
    alternatives: Alternatives


def write(value: str | None) -> str:
    """None narrows to hits without a value."""
    if value is None:
        return NO_VALUE
    if _SIGNS.isdisjoint(value):
        return value or EMPTY
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in value)


def read(constraint: str) -> str | None:
    """Read what ``write`` wrote.

    Raises BadQuery.
    """
    if constraint in (NO_VALUE, EMPTY):
        return None if constraint == NO_VALUE else ""
    if "\\" not in constraint:
        return constraint
    signs = iter(constraint)
    return "".join(_take_sign(signs, constraint) if sign == "\\" else sign for sign in signs)


def read_values(text: str, most: int) -> Alternatives:
    """Raises BadQuery for another form, or more than ``most`` values."""
    groups = tuple(tuple(_parts(group, "+")) for group in _parts(text, "|"))
    if sum(map(len, groups)) > most:
        raise BadQuery(f"A search is narrowed by at most {most} values.")
    for constraint in (each for group in groups for each in group):
        if not constraint:
            raise BadQuery("A constraint is empty: a value stands on both sides of '+' and '|'.")
        read(constraint)
    return groups


def read_pairs(text: str, most: int) -> tuple[Narrowing, ...]:
    """Raises BadQuery for another form, or more than ``most`` values."""
    narrowings = []
    for pair in (pair for part in _parts(text, ";") for pair in _parts(part, ",")):
        facet_id, *values = _parts(pair, "=")
        if len(values) != 1 or not facet_id:
            raise BadQuery(f"A constraint has the form id=value, not {pair[:100]!r}.")
        narrowings.append(Narrowing(read(facet_id.strip()) or "", read_values(values[0], most)))
    if sum(len(group) for each in narrowings for group in each.alternatives) > most:
        raise BadQuery(f"A search is narrowed by at most {most} values.")
    return tuple(narrowings)


def write_values(alternatives: Alternatives) -> str:
    return "|".join("+".join(group) for group in alternatives)


def write_pairs(narrowings: Sequence[Narrowing]) -> str:
    return ";".join(f"{write(each.facet_id)}={write_values(each.alternatives)}" for each in narrowings)


def narrower(alternatives: Alternatives, constraint: str) -> Alternatives:
    """Add a constraint that every hit must meet."""
    return tuple(
        group if constraint in group else (*group, constraint) for group in dict.fromkeys(alternatives or ((),))
    )


def _parts(text: str, separator: str) -> Iterator[str]:
    start, at = 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == separator:
            yield text[start:at]
            start = at + 1
        at += 1
    yield text[start:]


def _take_sign(signs: Iterator[str], constraint: str) -> str:
    sign = next(signs, "")
    if sign not in _SIGNS or not sign:
        raise BadQuery(f"A backslash stands before one of {' '.join(sorted(_SIGNS))}, not in {constraint[:100]!r}.")
    return sign
