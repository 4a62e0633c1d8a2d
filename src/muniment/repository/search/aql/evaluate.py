"""Do an object's ACL and its values meet a condition without keywords?"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from muniment.repository.folding import COMPARED, fold
from muniment.repository.search.aql.conditions import (
    Between,
    Carries,
    Condition,
    ConditionSet,
    HasValue,
    Like,
    OneOf,
    Unless,
)
from muniment.repository.search.aql.tree import Fulltext, Value


class Properties:
    """The values of one object, whose text is not given: no keywords match."""

    def __init__(self, acl: int, values: Mapping[str, Sequence[Value]]) -> None:
        self._acl = acl
        self._values = values

    def meets(self, condition: Condition) -> bool:
        match condition:
            case ConditionSet():
                results = map(self.meets, condition.conditions)
                return all(results) if condition.operator == "AND" else any(results)
            case Unless():
                return not self.meets(condition.condition)
            case Carries():
                return self._acl in condition.acls
            case Fulltext():
                return self.finds(condition)
            case HasValue() | Like() | Between() | OneOf():
                return self._compares(condition)
            case _:
                assert_never(condition)

    def _compares(self, condition: HasValue | Like | Between | OneOf) -> bool:
        match condition:
            case HasValue():
                return bool(self._values.get(condition.name))
            case Like():
                texts = [value for value in self._folded_values(condition.name) if isinstance(value, str)]
                return any(pattern.matches(text) for text in texts for pattern in condition.patterns)
            case Between():
                return any(_between(condition, value) for value in self._folded_values(condition.name))
            case OneOf(written=True):
                return any(_as_written(value) in condition.values for value in self._values.get(condition.name, ()))
            case OneOf():
                sought = list(map(_fold, condition.values))
                return any(value in sought for value in self._folded_values(condition.name))
            case _:
                assert_never(condition)

    def _folded_values(self, name: str) -> list[Value]:
        return list(map(_fold, self._values.get(name, ())))

    def finds(self, _fulltext: Fulltext) -> bool:
        return False


def _as_written(value: Value) -> Value:
    return value[:COMPARED] if isinstance(value, str) else value


def _fold(value: Value) -> Value:
    return fold(value) if isinstance(value, str) else value


def _between(condition: Between, value: Value) -> bool:
    low, high = (None if bound is None else _fold(bound) for bound in (condition.low, condition.high))
    bounds = [bound for bound in (low, high) if bound is not None]
    if any(isinstance(bound, str) != isinstance(value, str) for bound in bounds):
        return False
    key = _sort_key(value)
    above = low is None or (key > _sort_key(low) if condition.low_open else key >= _sort_key(low))
    below = high is None or (key < _sort_key(high) if condition.high_open else key <= _sort_key(high))
    return above and below


def _sort_key(value: Value) -> tuple[str, float]:
    return (value, 0) if isinstance(value, str) else ("", value)
