"""How are a pattern and a range of texts written as regular expressions of the built-in engine?

The engine applies them to whole terms of its dictionary; it has no named classes, such as digits, and no anchors. Every
character is written as its code, so that none has a special meaning.
"""

from collections.abc import Sequence

from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.patterns import Gap, Pattern

_LAST_CHARACTER = 0x10FFFF
_LONGEST_EXPRESSION = 1000

_BYTES_ANYWHERE = 120
"""Alternatives that share a gap at their beginning have so many bytes; a longer one has an expression of its own."""

MOST_COST = 150_000
"""All regular expressions of a query cost so much, which takes the engine a second or two."""


class Allowance:
    """What the regular expressions of a query may still cost; each counts once."""

    def __init__(self) -> None:
        self._spent = 0
        self._expressions = set[str]()

    def spend(self, expression: str, times: int = 1) -> str:
        """Count ``times`` the cost, and return the expression. Raises BadQuery beyond ``MOST_COST`` in all."""
        self._spent += 0 if expression in self._expressions else times * cost(expression)
        self._expressions.add(expression)
        if self._spent > MOST_COST:
            raise BadQuery(
                "The wildcards of the query and its ranges of texts are too long together: write less of them."
            )
        return expression


def of_range(low: str | None, high: str | None, low_open: bool = False, high_open: bool = False) -> list[str]:
    """Match exactly the strings between two bounds, or without one (None).

    A bound belongs to the range unless open. Strings, without control characters, are ordered by code points.
    """
    if low is None and high is None:
        return [".*"]
    if high is None:
        assert low is not None  # noqa: S101 - one of them is a bound
        return _from(low, low_open, 0)
    if low is None:
        return _up_to(high, high_open, 0)
    common = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    if common == len(high):
        return [_exactly(high)] if low == high and not (low_open or high_open) else []
    if common < len(low) and low[common] > high[common]:
        return []
    expressions = _up_to(high, high_open, common + 1)
    if common == len(low):
        expressions += [] if low_open else [_exactly(low)]
        expressions += _beyond(low, 0x20, ord(high[common]) - 1)
    else:
        expressions += _beyond(low[:common], ord(low[common]) + 1, ord(high[common]) - 1)
        expressions += _from(low, low_open, common + 1)
    return expressions


def _from(low: str, is_open: bool, begin: int) -> list[str]:
    above = [each for at in range(begin, len(low)) for each in _beyond(low[:at], ord(low[at]) + 1, _LAST_CHARACTER)]
    return [_exactly(low) + (".+" if is_open else ".*"), *above]


def _up_to(high: str, is_open: bool, begin: int) -> list[str]:
    beginnings = [_exactly(high[:at]) for at in range(begin, len(high))]
    smaller = [each for at in range(begin, len(high)) for each in _beyond(high[:at], 0x20, ord(high[at]) - 1)]
    return [*([] if is_open else [_exactly(high)]), *beginnings, *smaller]


def join(expressions: Sequence[str]) -> list[str]:
    """Join into few: the engine refuses more than a thousand states."""
    alternatives = [""]
    for part in expressions:
        if alternatives[-1] and len(alternatives[-1]) + len(part) > _LONGEST_EXPRESSION:
            alternatives.append("")
        alternatives[-1] += f"|{part}" if alternatives[-1] else part
    return alternatives if expressions else []


def cost(expression: str) -> int:
    """Add the length, twice if alternatives share a gap at their beginning, and 12 times the square of the gaps of
    each.
    """
    gaps = [each.count(".*") + each.count(".?") for each in expression.split("|")]
    return len(expression) * (2 if expression.startswith(".*(") else 1) + 12 * sum(number * number for number in gaps)


def of_pattern(pattern: Pattern) -> str:
    return pattern.expression(_exactly)


def of_patterns(alternatives: Sequence[Pattern]) -> list[str]:
    """Write a gap of any length, at the beginning or end of all, once: in each alternative, it would need more states
    than the engine permits.
    """
    if len(alternatives) == 1:
        return [of_pattern(alternatives[0])]
    begins, ends = (all(each.pieces[at : at + 1 or None] == (Gap.RUN,) for each in alternatives) for at in (0, -1))
    inner = [of_pattern(Pattern(each.pieces[int(begins) : len(each.pieces) - int(ends)])) for each in alternatives]
    if not begins:
        return [f"(?:{each}).*" if ends else each for each in join(inner)]
    longest = max(sum(len(piece.encode()) for piece in each.pieces if isinstance(piece, str)) for each in alternatives)
    several = max(1, _BYTES_ANYWHERE // max(1, longest))
    some = ["|".join(inner[at : at + several]) for at in range(0, len(inner), several)]
    return [f".*(?:{each}){'.*' if ends else ''}" for each in some]


def _exactly(text: str) -> str:
    if not text:
        return "()"
    return "".join(_character(ord(character)) for character in text)


def _beyond(beginning: str, low: int, high: int) -> list[str]:
    """Return nothing for an empty range, or one of surrogates."""
    low = 0xE000 if 0xD800 <= low <= 0xDFFF else low
    high = 0xD7FF if 0xD800 <= high <= 0xDFFF else high
    return [f"{_exactly(beginning)}[{_character(low)}-{_character(high)}].*"] if low <= high else []


def _character(code: int) -> str:
    return f"\\x{{{code:X}}}"
