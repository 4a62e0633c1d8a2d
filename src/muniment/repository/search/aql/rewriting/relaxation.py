"""Which searches may be relaxed?

Question marks around a word count as punctuation. "and", "or" and "not" count as words of a sentence if they are not in
capitals, or if all keywords are in capitals. Even then, no hit of the relaxed search matches what follows "not".
A number is right or wrong, so words with digits are relaxed only in a sentence, or if nothing that the caller may see
has them. A name and its number are then words apart. Source: docs/aql.md, "When not all words are found".
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.rewriting import joints
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Phrase,
    Query,
    Single,
    Term,
    Wild,
    Without,
    singles,
    with_fulltexts,
)

MOST_WORDS = 64
"""Only the first words are relaxed; the others find nothing."""

MOST_NUMBERS = 8
"""Of keywords with more words with digits than this, the first ones alone must hold. The others are any words."""

_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"(?:.*\d){5}|(?=.*[^\W\d_])(?:.*\d){3}")
"""A word with digits that names one thing: it has five digits, or letters and three digits."""

Holds: TypeAlias = Callable[[Keywords], bool]
"""Says whether the caller may see anything that meets keywords."""


def relax(query: Query, holds: Holds = lambda _keywords: False) -> Query | None:
    """Let any one word be enough; None if that cannot be."""
    relaxed = with_fulltexts(query, lambda fulltext: _relax(fulltext, holds))
    return None if relaxed.condition == query.condition else relaxed


def proves_each_word(query: Query) -> bool:
    """Return whether a hit of the query as written, unrelaxed, holds each of its words."""
    return query.condition is None or _proves_each_word(query.condition)


def left_out(query: Query) -> int:
    """Count the words beyond ``MOST_WORDS``, which find nothing in the relaxed query."""
    counts = [len(plain.words) for plain in map(_plain_of, singles(query.condition)) if plain is not None]
    return sum(max(0, count - MOST_WORDS) for count in counts)


def with_sequence(query: Query) -> Query:
    """Put objects first that hold the words in their sequence."""
    return query if query.condition is None else msgspec.structs.replace(query, condition=_sequenced(query.condition))


def is_relaxed(keywords: Keywords | None) -> bool:
    return isinstance(keywords, AnyWord) or (isinstance(keywords, Both) and any(map(is_relaxed, keywords.parts)))


def _proves_each_word(expression: Expression) -> bool:
    match expression:
        case ExpressionSet("AND", parts):
            return all(map(_proves_each_word, parts))
        case ExpressionSet():
            return not any(isinstance(one, Fulltext) for one in singles(expression))
        case Fulltext(keywords):
            return not _has_choice(keywords)
        case _:
            return True


def _has_choice(keywords: Keywords | None) -> bool:
    return isinstance(keywords, Either) or (isinstance(keywords, Both) and any(map(_has_choice, keywords.parts)))


def _relax(fulltext: Fulltext, holds: Holds) -> Fulltext:
    keywords, plain = fulltext.keywords, _plain_of(fulltext)
    plain = None if plain is None else _with_words_apart(plain, holds)
    if keywords is None or plain is None or not plain.words or len(plain.words) + len(plain.needed) < 2:
        return fulltext
    numbers = _numbers(plain, holds)
    needed = (*plain.needed, *numbers.needed)
    words = tuple(word for word in plain.words if word not in numbers.words)
    if not words and len(numbers.needed) == len(numbers.words):
        return fulltext
    # What is needed holds for every hit, so the engine need not look for it once more.
    first = keywords if not needed or not words else Both(words, loose=True) if len(words) > 1 else words[0]
    any_word = AnyWord(first, words[: MOST_WORDS - len(numbers.words)], needed)
    relaxed = Both((any_word, *plain.unwanted)) if plain.unwanted else any_word
    return msgspec.structs.replace(fulltext, keywords=relaxed)


class _Numbers(NamedTuple):
    """The words with digits that a hit needs: all of them, or if nothing has all of them, any one that something has.

    ``needed`` says so.
    """

    words: Sequence[Term] = ()
    needed: tuple[Keywords, ...] = ()


def _numbers(plain: "_Plain", holds: Holds) -> _Numbers:
    words = [word for word in list(plain.words)[:MOST_WORDS] if _DIGIT.search(word.text)]
    if len(plain.words) > joints.FEW_WORDS:
        words = [word for word in words if _NAME.match(word.text)]
    groups = {word: _in_groups(word) for word in words[:MOST_NUMBERS]}
    needed = tuple(groups.values())
    if needed and holds(needed[0] if len(needed) == 1 else Both(needed)):
        return _Numbers(list(groups), needed)
    held = {word: of_word for word, of_word in groups.items() if len(groups) > 1 and holds(of_word)}
    return _Numbers(list(held), tuple(held.values()) if len(held) < 2 else (Either(tuple(held.values())),))


def _with_words_apart(plain: "_Plain", holds: Holds) -> "_Plain":
    apart = {word for word in plain.words if joints.may_be_apart(word.text) and not holds(_in_groups(word))}
    if not apart:
        return plain
    words = [part for word in plain.words for part in (map(Term, word.text.split(" ")) if word in apart else (word,))]
    return plain._replace(words=dict.fromkeys(words))


def _in_groups(number: Term) -> Keywords:
    groups = tuple(map(Term, number.text.split(" ")))
    return Both(groups, loose=True) if len(groups) > 1 else number


def _sequenced(expression: Expression) -> Expression:
    match expression:
        case ExpressionSet("AND", parts):
            return ExpressionSet("AND", tuple(map(_sequenced, parts)))
        case Fulltext(keywords):
            plain = _plain_of(expression)
            runs = [] if keywords is None or plain is None else [run for run in _runs(keywords) if len(run) > 1]
            if len(runs) != 1 or len(runs[0]) > MOST_WORDS:
                return expression
            return msgspec.structs.replace(expression, sequence=Phrase(" ".join(word.text for word in runs[0])))
        case _:
            return expression


def _runs(keywords: Keywords) -> list[list[Term]]:
    runs: list[list[Term]] = [[]]
    for part in keywords.parts if isinstance(keywords, Both | Either) else (keywords,):
        word = _word(part)
        if word is not None:
            runs[-1].append(word)
        elif isinstance(part, Both | Either) and part.loose:
            first, *others = _runs(part)
            runs[-1] += first
            runs += others
        else:
            runs.append([])
    return runs


def plain_words(keywords: Keywords) -> tuple[Term, ...]:
    """Return each word once if there are only words, else none."""
    plain = _plain(keywords)
    return () if plain is None or plain.unwanted or plain.needed else tuple(plain.words)


class WordQuestion(NamedTuple):
    """The words of a query, and the query without them, facets and sorts. An object near in meaning is a hit only if
    ``anything`` finds it.
    """

    text: str
    anything: Query


def question(query: Query, holds: Holds = lambda _word: False) -> WordQuestion | None:
    """Return what a query asks in words; None if nothing, or exactly what is wanted.

    The words are those of the one expression that every hit must match, plain (``_Plain``) or joined by OR,
    ``MOST_WORDS`` at most.
    """
    if query.condition is None:
        return None
    words, condition = _without_words(query.condition, holds)
    if not words:
        return None
    text = " ".join(word.text for word in words)
    return WordQuestion(text, msgspec.structs.replace(query, condition=condition, facets=(), sorts=()))


def _without_words(expression: Expression, holds: Holds) -> tuple[tuple[Term, ...], Expression | None]:
    """Return the words that every hit must match, and what else it must meet; without such words, the second means
    nothing.
    """
    match expression:
        case Fulltext(keywords) if keywords is not None:
            plain = _plain(keywords)
            if plain is None or plain.needed or not plain.words or len(plain.words) > MOST_WORDS:
                return _joined(keywords), None
            plain = _with_words_apart(plain, holds)
            held = (*_numbers(plain, holds).needed, *plain.unwanted)
            return tuple(plain.words), Fulltext(Both(held)) if held else None
        case ExpressionSet("AND", parts):
            words: tuple[Term, ...] = ()
            others = []
            for part in parts:
                of_part, rest = _without_words(part, holds)
                if of_part and words:
                    return (), expression
                words = words or of_part
                others += [part] if not of_part else [] if rest is None else [rest]
            return words, ExpressionSet("AND", tuple(others)) if others else None
        case _:
            return (), expression


def _joined(keywords: Keywords) -> tuple[Term, ...]:
    if not isinstance(keywords, Either) or len(keywords.parts) > MOST_WORDS:
        return ()
    words = [word for part in keywords.parts if (word := _word(part)) is not None]
    return tuple(dict.fromkeys(words)) if len(words) == len(keywords.parts) else ()


class _Plain(NamedTuple):
    """Words, and "and", "or" and "not" where these may be words; ``needed`` are phrases and words with wildcards."""

    words: dict[Term, None]
    needed: tuple[Keywords, ...] = ()
    unwanted: tuple[Without, ...] = ()


def _plain_of(expression: Single) -> _Plain | None:
    if not isinstance(expression, Fulltext) or expression.keywords is None:
        return None
    return _plain(expression.keywords)


def _plain(keywords: Keywords) -> _Plain | None:
    word = _word(keywords)
    if word is not None:
        return _Plain({word: None})
    match keywords:
        case Without(part, loose=True):
            return _Plain({}, unwanted=(Without(_word(part) or part, loose=True),))
        case Phrase() | Wild() | Either(parts=(Term(), Wild())):
            return _Plain({}, (keywords,))
        case Both(loose=True) | Either(loose=True):
            words: dict[Term, None] = {}
            needed: tuple[Keywords, ...] = ()
            unwanted: tuple[Without, ...] = ()
            for part in joints.with_grouped_numbers(keywords.parts) if isinstance(keywords, Both) else keywords.parts:
                plain = _plain(part)
                if plain is None or ((plain.needed or plain.unwanted) and isinstance(keywords, Either)):
                    return None
                words |= plain.words
                needed += plain.needed
                unwanted += plain.unwanted
            return _Plain(words, needed, unwanted)
        case _:
            return None


def _word(keywords: Keywords) -> Term | None:
    match keywords:
        case Term():
            return keywords
        case Either(parts=(_, Term() as number)) if joints.is_number(keywords):
            return number
        case Either(parts=(Term(bare) as word, Wild(text))) if bare == text.strip("?") and not patterns.has_gaps(bare):
            return word  # A question mark ends a question, or stands beside a word with punctuation.
        case Wild(text) if not patterns.has_gaps(text.strip("?")):
            return Term(text.strip("?"))  # A broken encoding turns quotation marks into question marks.
        case _:
            return None
