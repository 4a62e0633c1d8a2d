"""Which searches may be relaxed? Those of several words, as a question is typed.

A search for all of its words that finds too little is asked again for any of them. Operators, quotation marks and
wildcards say exactly what is wanted, so keywords that have one are never relaxed. In lower case, or where everything
is in capitals, "and", "or" and "not" may be words of a sentence: such keywords are relaxed, and what follows "not"
stays unwanted. What a query says beside its keywords stays, too. Source: docs/aql.md, "When not all words are found".
"""

from typing import NamedTuple, assert_never

import msgspec

from muniment.repository.aql import patterns
from muniment.repository.aql.tree import (
    AnyWord,
    Both,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    RelativeDate,
    Term,
    Wild,
    Without,
)

MOST_WORDS = 64
"""How many words keywords may have to be relaxed."""


def relax(query: Query) -> Query | None:
    """Return the query for any of its words instead of all of them; None if it cannot be relaxed."""
    if query.condition is None:
        return None
    condition = _relax(query.condition)
    return None if condition == query.condition else msgspec.structs.replace(query, condition=condition)


def _relax(expression: Expression) -> Expression:
    match expression:
        case ExpressionSet():
            return ExpressionSet(expression.operator, tuple(map(_relax, expression.expressions)))
        case Fulltext(keywords):
            plain = None if keywords is None else _plain(keywords)
            if keywords is None or plain is None or not 1 < len(plain.words) <= MOST_WORDS:
                return expression
            any_word = AnyWord(keywords, tuple(plain.words))
            return Fulltext(Both((any_word, *plain.unwanted)) if plain.unwanted else any_word)
        case Property() | PropertyList() | PropertyRange() | RelativeDate():
            return expression
        case _:
            assert_never(expression)


def plain_words(keywords: Keywords) -> tuple[Term, ...]:
    """Return the words of keywords that hold nothing else, each once; none of any other keywords."""
    plain = _plain(keywords)
    return () if plain is None or plain.unwanted else tuple(plain.words)


class _Plain(NamedTuple):
    """Keywords without an operator that stands out: their words, each once, and what must not match."""

    words: dict[Term, None]
    unwanted: tuple[Without, ...] = ()


def _plain(keywords: Keywords) -> _Plain | None:
    """Return what plain keywords hold; None for any other."""
    word = _word(keywords)
    if word is not None:
        return _Plain({word: None})
    match keywords:
        case Without(Term(), loose=True):
            return _Plain({}, (keywords,))
        case Both(loose=True) | Either(loose=True):
            words: dict[Term, None] = {}
            unwanted: tuple[Without, ...] = ()
            for part in keywords.parts:
                plain = _plain(part)
                if plain is None or (plain.unwanted and isinstance(keywords, Either)):
                    return None
                words |= plain.words
                unwanted += plain.unwanted
            return _Plain(words, unwanted)
        case _:
            return None


def _word(keywords: Keywords) -> Term | None:
    """Return the word that keywords consist of, with or without marks around it; else None."""
    match keywords:
        case Term():
            return keywords
        case Either(parts=(Term() as word, Wild(text))) if text == f"{word.text}?":
            return word  # It ends a question.
        case Wild(text) if not patterns.has_gaps(text.strip("?")):
            return Term(text.strip("?"))  # As where quotation marks were lost.
        case _:
            return None
