"""Suggestions for a caller who types a question: its last word is completed, or words that find nothing are corrected.

Words come from what the caller may see. Each suggestion counts the hits of the search that it suggests. Source:
docs/interface.md, ours 6; docs/aql.md, "While somebody types".
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.aql import keywords, relaxation, typed
from muniment.repository.aql.tree import Fulltext, Keywords, Query, QueryLimits
from muniment.repository.index.contract import Correction, Search, Snapshot
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search import results
from muniment.repository.search.memory import SearchMemory
from muniment.repository.search.results import SearchQuestion
from muniment.repository.search.visibility import MAX_PENDING

MOST_WORDS = 16
"""The most words of a question that is completed or corrected."""


class Suggestion(msgspec.Struct, frozen=True):
    """A question, and how many objects the caller finds by all of its words."""

    text: str
    hits: int


class Suggestions(msgspec.Struct, frozen=True):
    """Questions that begin with what the caller has typed.

    If there are none, there may be a ``correction``: a question that the caller may have meant.
    """

    completions: tuple[Suggestion, ...] = ()
    correction: Suggestion | None = None


class Typist(msgspec.Struct, frozen=True):
    """Who types, and in which repository: what every search of one request needs.

    The transaction of ``cx`` must have begun after ``snapshot`` was taken. ``typed`` says whether the search that
    follows reads the question as people type.
    """

    cx: Connection
    snapshot: Snapshot
    repository: Repository
    principals: Principals
    now: Instant
    limits: QueryLimits
    max_pending: int = MAX_PENDING
    memory: SearchMemory = msgspec.field(default_factory=SearchMemory)
    typed: bool = True

    def keywords(self, text: str) -> Keywords | None:
        """Read keywords. Raises BadQuery."""
        return keywords.read(typed.translate(text).text if self.typed else text, self.limits)

    def search_for(self, text: str) -> Search:
        """Prepare the search for a text; no text means every object. Raises BadQuery, IndexBehind, IndexUnavailable."""
        query = Query(condition=Fulltext(self.keywords(text)) if text else None)
        question = SearchQuestion(query, 1, 1, include_total=True, bare=True)
        who = (self.repository, self.principals, question, self.now, self.max_pending, self.memory)
        return results.prepare(self.cx, self.snapshot, *who)


def suggest(typist: Typist, text: str, limit: int) -> Suggestions:
    """Suggest at most ``limit`` completions of what has been typed, or else a correction.

    A text with more than ``MOST_WORDS`` words, or with anything but plain words (``relaxation.plain_words``), gets
    neither. A text that ends with a blank is not completed. Raises BadQuery, IndexBehind, IndexUnavailable.
    """
    words = _plain_words(typist, text)
    if not words:
        return Suggestions()
    *first_words, beginning = words
    search = typist.search_for(" ".join(first_words))
    completions = [] if text[-1].isspace() else typist.snapshot.completions(search, beginning, limit)
    if completions:
        return Suggestions(tuple(Suggestion(" ".join((*first_words, each.word)), each.hits) for each in completions))
    return Suggestions(correction=_correct(typist, words))


def correct(typist: Typist, text: str) -> Suggestion | None:
    """Correct those words of a question that find nothing; None if there is no correction that finds a hit.

    A question that holds anything but plain words is not corrected. Raises BadQuery, IndexBehind, IndexUnavailable.
    """
    words = _plain_words(typist, text)
    return _correct(typist, words) if words else None


def _plain_words(typist: Typist, text: str) -> list[str]:
    words = text.split()
    question = typist.keywords(text) if 0 < len(words) <= MOST_WORDS else None
    return words if question is not None and relaxation.plain_words(question) else []


def _correct(typist: Typist, words: Sequence[str]) -> Suggestion | None:
    visible = typist.search_for("").visible
    corrections = [typist.snapshot.corrections(visible, word) for word in words]
    text = [word for word, others in zip(words, corrections, strict=True) if not others]
    chosen = list(words)
    for at, candidates in enumerate(corrections):
        if candidates:
            chosen[at] = _likeliest(typist, text, candidates)
            text.append(chosen[at])
    if chosen == list(words):
        return None
    hits = _count(typist, chosen)
    return Suggestion(" ".join(chosen), hits) if hits else None


def _likeliest(typist: Typist, others: Sequence[str], candidates: Sequence[Correction]) -> str:
    """Choose a correction of a word: one found with the other words, then the nearest, then the commonest."""
    together = {each.word: _count(typist, [*others, each.word]) for each in candidates} if len(candidates) > 1 else {}

    def rank(each: Correction) -> tuple[bool, int, int, int]:
        hits = together.get(each.word, 0)
        return not hits, each.distance, -hits, -each.hits

    return min(candidates, key=rank).word


def _count(typist: Typist, words: Sequence[str]) -> int:
    """Return how many objects the caller finds by all of these words."""
    return typist.snapshot.search(typist.search_for(" ".join(words))).total or 0
