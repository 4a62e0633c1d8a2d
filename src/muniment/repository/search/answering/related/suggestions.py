"""Suggestions while a caller types: the last word completed, or words that find nothing corrected, from what the caller
may see.

Source: docs/interface.md, ours 6; docs/aql.md, "While somebody types".
"""

from collections.abc import Sequence

import msgspec

from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.aql import keywords, typed
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.tree import Fulltext, Keywords, Query, QueryLimits
from muniment.repository.search.index.contract import Correction, Search

MOST_WORDS = 16
"""A longer question is neither completed nor corrected."""


class Suggestion(msgspec.Struct, frozen=True):
    """A question, and how many objects its words find together for the caller."""

    text: str
    hits: int


class Suggestions(msgspec.Struct, frozen=True):
    """Questions with the typed beginning; without any, perhaps a ``correction``."""

    completions: tuple[Suggestion, ...] = ()
    correction: Suggestion | None = None


def suggest(inquiry: Inquiry, text: str, limit: int) -> Suggestions:
    """Of the inquiry's question, only ``typed`` counts. A text of more than ``MOST_WORDS`` words, or of other than
    plain words (``relaxation.plain_words``), gets nothing; one that ends with a blank is not completed.

    Raises BadQuery, IndexBehind, IndexUnavailable.
    """
    words = _plain_words(inquiry, text)
    if not words:
        return Suggestions()
    *first_words, beginning = words
    search = _search_for(inquiry, " ".join(first_words))
    completions = [] if text[-1].isspace() else inquiry.snapshot.completions(search, beginning, limit)
    if completions:
        return Suggestions(tuple(Suggestion(" ".join((*first_words, each.word)), each.hits) for each in completions))
    return Suggestions(correction=_correct(inquiry, words))


def correct(inquiry: Inquiry, text: str) -> Suggestion | None:
    """Correct plain words only.

    Raises BadQuery, IndexBehind, IndexUnavailable.
    """
    words = _plain_words(inquiry, text)
    return _correct(inquiry, words) if words else None


def _keywords(inquiry: Inquiry, text: str) -> Keywords | None:
    limits = QueryLimits.of(inquiry.options)
    return keywords.read(typed.translate(text).text if inquiry.question.typed else text, limits)


def _search_for(inquiry: Inquiry, text: str) -> Search:
    query = Query(condition=Fulltext(_keywords(inquiry, text)) if text else None)
    return results.prepare(inquiry.asking(SearchQuestion(query, include_total=True, bare=True)))


def _plain_words(inquiry: Inquiry, text: str) -> list[str]:
    words = text.split()
    question = _keywords(inquiry, text) if 0 < len(words) <= MOST_WORDS else None
    return words if question is not None and relaxation.plain_words(question) else []


def _correct(inquiry: Inquiry, words: Sequence[str]) -> Suggestion | None:
    visible = _search_for(inquiry, "").visible
    corrections = [inquiry.snapshot.corrections(visible, word) for word in words]
    text = [word for word, others in zip(words, corrections, strict=True) if not others]
    chosen = list(words)
    for at, candidates in enumerate(corrections):
        if candidates:
            chosen[at] = _likeliest(inquiry, text, candidates)
            text.append(chosen[at])
    if chosen == list(words):
        return None
    hits = _count(inquiry, chosen)
    return Suggestion(" ".join(chosen), hits) if hits else None


def _likeliest(inquiry: Inquiry, others: Sequence[str], candidates: Sequence[Correction]) -> str:
    together = {each.word: _count(inquiry, [*others, each.word]) for each in candidates} if len(candidates) > 1 else {}

    def rank(each: Correction) -> tuple[bool, int, int, int]:
        hits = together.get(each.word, 0)
        return not hits, each.distance, -hits, -each.hits

    return min(candidates, key=rank).word


def _count(inquiry: Inquiry, words: Sequence[str]) -> int:
    return inquiry.snapshot.search(_search_for(inquiry, " ".join(words))).total or 0
