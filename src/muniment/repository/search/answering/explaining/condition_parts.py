"""Which parts of a condition does one object meet?

The index decides words and phrases, this module comparisons. An outcome is unknown if a comparison would take too long,
and for words if the index lacks the object, or has missed a change that hides it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec

from muniment.repository.search.aql.conditions import Between, Condition, ConditionSet, Like, OneOf, singles
from muniment.repository.search.aql.evaluate import Properties
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Phrase,
    Property,
    PropertyList,
    PropertyRange,
    RelativeDate,
    Term,
    Value,
    Wild,
    Without,
)
from muniment.repository.search.index.contract import Leaf, LeafWeight

Outcome: TypeAlias = Literal["met", "not-met", "unknown"]

MOST_COMPARISONS = 200_000
"""Further comparisons have unknown outcomes."""

_SHOWN_VALUES = 20
_LEAVES = {"word", "wildcards", "phrase"}


class ConditionPart(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """An expression of the query, or a part of its keywords. ``kind`` is the element, or ``all``, ``any``, ``not``,
    ``word``, ``wildcards`` or ``phrase``. ``looked_in`` and ``found_in`` are of ``text`` and ``metadata``.
    """

    kind: str
    outcome: Outcome
    operator: str = ""
    name: str = ""
    values: tuple[str, ...] = ()
    place: str = ""
    looked_in: tuple[str, ...] = ()
    found_in: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    parts: tuple["ConditionPart", ...] = ()

    def has_keywords(self) -> bool:
        return self.kind == "fulltext" or any(part.has_keywords() for part in self.parts)

    def failures(self) -> list[tuple[str, str]]:
        """List sentences that say why the part is not met, each with the failing part's place in the query, empty in
        keywords.
        """
        if self.kind in ("expression-set", "all", "any", "fulltext") and self.parts:
            failing_parts = [part for part in self.parts if part.outcome == "not-met"]
            return [failure for part in failing_parts for failure in part.failures()]
        return [(self._sentence(), self.place)]

    def _sentence(self) -> str:
        text = self.values[0][:100] if self.values else ""
        if self.kind in _LEAVES:
            what = {"word": "word", "wildcards": "word with wildcards", "phrase": "phrase"}[self.kind]
            return f"The {what} {text!r} is not in the {' or the '.join(self.looked_in)}."
        if self.kind == "not":
            inner = self.parts[0]
            name_of_part = f" {inner.values[0][:100]!r}" if inner.kind in _LEAVES else " what stands behind it"
            return f"NOT excludes{name_of_part}, which matches."
        if self.kind == "fulltext":
            return "The keywords hold no word."
        return f"The {self.kind} of {self.name!r} with {self.operator} is not met."


class Examiner:
    """Decides which parts of a condition one object meets.

    ``leaves`` is None if the index lacks the object, or has missed a change that hides it.
    """

    def __init__(
        self,
        values: Mapping[str, Sequence[Value]],
        acl: int,
        leaves: Mapping[Leaf, LeafWeight] | None,
        *,
        may_read: bool,
    ) -> None:
        self._values = values
        self._acl = acl
        self._leaves = leaves
        self._fields = ("text", "metadata") if may_read else ("metadata",)
        self._comparisons_left = MOST_COMPARISONS
        self._weights: dict[Leaf, float] = {}

    def part(self, expression: Expression, condition: Condition) -> ConditionPart:
        """``condition`` is what ``bind`` made of the expression.

        Words and phrases that match are added to ``contributions``.
        """
        condition_part, leaves = self._part(expression, condition)
        for leaf in leaves:
            self._weights[leaf] += self._weight(leaf) or 0.0
        return condition_part

    def compared(self, condition: Condition) -> Outcome:
        self._comparisons_left -= _cost(condition, self._values)
        return (
            "unknown"
            if self._comparisons_left < 0
            else outcome_of(Properties(self._acl, self._values).meets(condition))
        )

    def contributions(self) -> list[tuple[LeafWeight, tuple[str, ...], float]]:
        """List the words and phrases that match, where each does, and what it adds. Words behind a NOT are left out; a
        word adds 0 if the part around it is not met.
        """
        leaves = self._leaves or {}
        return [(leaves[leaf], self._found_in(leaves[leaf]), weight) for leaf, weight in self._weights.items()]

    def _part(self, expression: Expression, condition: Condition) -> "_Decided":
        match expression:
            case ExpressionSet():
                assert isinstance(condition, ConditionSet)  # noqa: S101 - what ``bind`` makes of an ExpressionSet
                pairs = zip(expression.expressions, condition.conditions, strict=True)
                inner = [self._part(one, bound) for one, bound in pairs]
                return _join("expression-set", expression.operator, inner)
            case Fulltext():
                # The condition's keywords also have synonyms and other spellings.
                assert isinstance(condition, Fulltext)  # noqa: S101 - what ``bind`` makes of a Fulltext
                if condition.keywords is None:
                    return ConditionPart("fulltext", "not-met"), []
                keyword_part, leaves = self._keywords(condition.keywords, offered=True)
                return ConditionPart("fulltext", keyword_part.outcome, parts=(keyword_part,)), leaves
            case Property():
                values: tuple[str, ...] = (expression.value,)
            case PropertyList():
                values = expression.values[:_SHOWN_VALUES]
            case PropertyRange():
                values = (expression.low, expression.high)
            case RelativeDate():
                values = (f"{expression.amount} {expression.unit}",)
            case _:
                assert_never(expression)
        kind = _KINDS[type(expression)]
        outcome = self.compared(condition)
        return ConditionPart(kind, outcome, expression.operator, expression.name, values, expression.place), []

    def _keywords(self, keywords: Keywords, *, offered: bool) -> "_Decided":
        match keywords:
            case Both():
                return _join("all", "AND", [self._keywords(part, offered=offered) for part in keywords.parts])
            case Either():
                return _join("any", "OR", [self._keywords(part, offered=offered) for part in keywords.parts])
            case AnyWord():
                # Stop words do not count, so the index has not looked for them.
                words = [word for word in keywords.words if self._leaves is None or word in self._leaves]
                any_word = _join("any", "OR", [self._leaf(word, offered=offered) for word in words])
                if not keywords.needed:
                    return any_word
                needed = [self._keywords(part, offered=offered) for part in keywords.needed]
                return _join("all", "AND", [*needed, any_word] if any_word[0].outcome == "met" else needed)
            case Without():
                inner, _ = self._keywords(keywords.part, offered=False)
                return ConditionPart("not", _OPPOSITES[inner.outcome], parts=(inner,)), []
            case Term() | Wild() | Phrase():
                return self._leaf(keywords, offered=offered)
            case _:
                assert_never(keywords)

    def _leaf(self, leaf: Leaf, *, offered: bool) -> "_Decided":
        kind, values = _LEAF_KINDS[type(leaf)], (leaf.text,)
        if self._leaves is None:
            return ConditionPart(kind, "unknown", values=values, looked_in=self._fields, found_in=()), []
        matches = self._weight(leaf) is not None
        if offered and matches:
            self._weights.setdefault(leaf, 0.0)
        fields = self._found_in(self._leaves[leaf])
        part = ConditionPart(kind, outcome_of(matches), values=values, looked_in=self._fields, found_in=fields)
        return part, [leaf] if matches else []

    def _found_in(self, leaf_weight: LeafWeight) -> tuple[str, ...]:
        places = {"text": leaf_weight.in_text, "metadata": leaf_weight.in_metadata is not None}
        return tuple(field for field in self._fields if places[field])

    def _weight(self, leaf: Leaf) -> float | None:
        assert self._leaves is not None  # noqa: S101 - nothing is weighed otherwise
        leaf_weight = self._leaves[leaf]
        return leaf_weight.anywhere if "text" in self._fields else leaf_weight.in_metadata


_Decided: TypeAlias = tuple[ConditionPart, list[Leaf]]
"""A part, with what adds to its score; what adds twice is listed twice."""

_KINDS = {
    Property: "property",
    PropertyList: "property-list",
    PropertyRange: "property-range",
    RelativeDate: "relative-date",
}
_LEAF_KINDS = {Term: "word", Wild: "wildcards", Phrase: "phrase"}
_OPPOSITES: Mapping[Outcome, Outcome] = {"met": "not-met", "not-met": "met", "unknown": "unknown"}


def outcome_of(met: bool) -> Outcome:
    return "met" if met else "not-met"


def _join(kind: str, operator: str, inner: Sequence[_Decided]) -> _Decided:
    parts = tuple(part for part, _ in inner)
    deciding: Outcome = "not-met" if operator == "AND" else "met"
    outcomes = {part.outcome for part in parts}
    outcome = _OPPOSITES[deciding]
    if deciding in outcomes:
        outcome = deciding
    elif "unknown" in outcomes:
        outcome = "unknown"
    leaves = [each for part, several in inner if part.outcome == "met" for each in several]
    return ConditionPart(kind, outcome, operator, parts=parts), leaves if outcome == "met" else []


def _cost(condition: Condition, values: Mapping[str, Sequence[Value]]) -> int:
    cost = 0
    for single in singles(condition):
        cost += 1
        match single:
            case Like(name, sought) | OneOf(name, sought):
                cost += len(values.get(name, ())) * len(sought)
            case Between(name):
                cost += len(values.get(name, ()))
    return cost
