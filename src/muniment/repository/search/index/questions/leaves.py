"""Which words and phrases does a query look up in the index, and must a hit match all of them?"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from muniment.repository.search.aql.conditions import (
    Condition,
    ConditionSet,
    Unless,
    singles,
)
from muniment.repository.search.aql.tree import AnyWord, Both, Either, Fulltext, Keywords, Phrase, Term, Wild, Without
from muniment.repository.search.index.contract import Leaf

Chooser: TypeAlias = Callable[[Sequence[Term]], Sequence[Term]]


def leaves(
    condition: Condition | Keywords | None, *, denied: bool = False, choose: Chooser = lambda words: words
) -> Iterator[Leaf]:
    """List what may have found a hit; with ``denied`` also what is behind a NOT. Of an ``AnyWord``, ``choose`` takes
    the words.
    """
    match condition:
        case ConditionSet():
            for part in condition.conditions:
                yield from leaves(part, denied=denied, choose=choose)
        case Fulltext():
            yield from leaves(condition.keywords, denied=denied, choose=choose)
        case Both() | Either():
            for keywords in condition.parts:
                yield from leaves(keywords, denied=denied, choose=choose)
        case AnyWord():
            yield from choose(condition.words)
            yield from leaves(Both(condition.needed), denied=denied, choose=choose)
        case Term() | Wild() | Phrase():
            yield condition
        case Without(part=unwanted) | Unless(condition=unwanted):
            yield from leaves(unwanted, denied=True, choose=choose) if denied else ()


def needs_all(condition: Condition | Keywords | None) -> bool:
    match condition:
        case ConditionSet():
            parts, is_choice = condition.conditions, condition.operator == "OR"
            return all(map(needs_all, parts)) and not (is_choice and len(parts) > 1 and any(leaves(condition)))
        case Fulltext():
            return needs_all(condition.keywords)
        case Both():
            return all(map(needs_all, condition.parts))
        case AnyWord():
            return False
        case Either():
            return len(condition.parts) == 1 and needs_all(condition.parts[0])
        case _:
            return True


def has_keywords(condition: Condition) -> bool:
    return any(isinstance(each, Fulltext) for each in singles(condition))
