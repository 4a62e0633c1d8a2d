"""Does one object meet a query? This oracle answers slowly and simply; tests compare every index engine with it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, assert_never

from muniment.repository.aql.tree import (
    Both,
    Carries,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Phrase,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    Term,
    Value,
    Without,
)
from muniment.repository.aql.values import keyword_values
from muniment.repository.folding import fold

Words = list[tuple[int, str]]
"""Words with their places in a text."""


class Analyser(Protocol):
    """Splits text into words. The oracle uses the analyser of the index, so that both agree on what a word is."""

    def exact(self, text: str) -> Words:
        """Split text into words without case and accents, not reduced to stems."""

    def stemmed(self, text: str) -> Words:
        """Split text into stems."""


def evaluate(
    query: Query,
    type_name: str,
    acl: int,
    values: Mapping[str, Sequence[Value]],
    text: str,
    may_read: bool,
    analyser: Analyser,
    ids: Collection[str] = (),
) -> bool:
    """Say whether an object that the caller may browse meets a bound query.

    ``acl``, ``values`` and ``text`` are the object's; a match in the text counts only if the caller ``may_read`` it.
    ``ids`` names the properties of kind id: keywords do not look at their values.
    """
    if query.types and type_name not in query.types:
        return False
    if query.condition is None:
        return True
    return _Object(acl, values, text if may_read else "", analyser, ids).meets(query.condition)


class _Object:
    """The parts of one object that a caller may see."""

    def __init__(
        self, acl: int, values: Mapping[str, Sequence[Value]], text: str, analyser: Analyser, ids: Collection[str]
    ) -> None:
        self._acl = acl
        self._values = values
        self._analyser = analyser
        metadata = [value for _, value in keyword_values(values, ids)]
        self._exact = ([analyser.exact(value) for value in metadata], [analyser.exact(text)])
        self._stemmed = ([analyser.stemmed(value) for value in metadata], [analyser.stemmed(text)])

    def meets(self, expression: Expression) -> bool:
        match expression:
            case ExpressionSet():
                results = map(self.meets, expression.expressions)
                return all(results) if expression.operator == "AND" else any(results)
            case Carries():
                return self._acl in expression.acls
            case Fulltext():
                return expression.keywords is not None and self._matches(expression.keywords)
            case Property():
                beginning = fold(str(expression.value))
                values = self._folded_values(expression.name)
                return any(isinstance(value, str) and value.startswith(beginning) for value in values)
            case PropertyRange():
                values = self._folded_values(expression.name)
                return any(_between(expression.low, value, expression.high) for value in values)
            case PropertyList():
                sought = list(map(_fold, expression.values))
                return any(value in sought for value in self._folded_values(expression.name))
            case _:
                assert_never(expression)

    def _folded_values(self, name: str) -> list[Value]:
        return list(map(_fold, self._values.get(name, ())))

    def _matches(self, keywords: Keywords) -> bool:
        match keywords:
            case Both():
                return all(map(self._matches, keywords.parts))
            case Either():
                return any(map(self._matches, keywords.parts))
            case Without():
                return not self._matches(keywords.part)
            case Phrase():
                return _occur(self._analyser.exact(keywords.text), self._exact)
            case Term(prefix=True):
                return _occur(self._analyser.exact(keywords.text), self._exact, beginning=True)
            case Term():
                return _occur(self._analyser.stemmed(keywords.text), self._stemmed)
            case _:
                assert_never(keywords)


def _fold(value: Value) -> Value:
    return fold(value) if isinstance(value, str) else value


def _occur(sought: Words, parts: Sequence[Sequence[Words]], beginning: bool = False) -> bool:
    """Say whether the words occur in one of the texts, at the same distances as in the query.

    With ``beginning``, the last word matches any word that begins with it.
    """
    if not sought:
        return False
    first_place, (last_place, end) = sought[0][0], sought[-1]
    for texts in parts:
        for text in texts:
            places = set(text)
            ends = (
                {at for at, word in text if word.startswith(end)} if beginning else {at for at, w in text if w == end}
            )
            for start, _ in text:
                complete = all((start + at - first_place, word) in places for at, word in sought[:-1])
                if complete and start + last_place - first_place in ends:
                    return True
    return False


def _between(low: Value, value: Value, high: Value) -> bool:
    if isinstance(value, str):
        return isinstance(low, str) and isinstance(high, str) and fold(low) <= value <= fold(high)
    return not isinstance(low, str) and not isinstance(high, str) and low <= value <= high
