"""Which words mean the same?

Quotation marks, wildcards and ``fuzzy`` choose how a text is matched, so such a text gets none.

Source: docs/aql.md, "Synonyms".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from muniment.repository.search.aql.tree import (
    AnyWord,
    Either,
    Fulltext,
    Keywords,
    Phrase,
    Query,
    Term,
    with_fulltexts,
    with_parts,
)

MOST_ADDED = 200

Stem: TypeAlias = Callable[[str], Sequence[str]]


class Synonyms:
    """Each of ``groups`` has ``=`` between words or phrases of one meaning.

    Words are alike if ``stem`` returns the same. A word finds the phrases of its group, but a phrase no words.
    """

    def __init__(self, groups: Iterable[str] = (), stem: Stem = lambda text: [text.lower()]) -> None:
        self._stem = stem
        self._others: dict[str, dict[Term | Phrase, None]] = {}
        for group in groups:
            members = [self._member(text.strip()) for text in group.split("=") if text.strip()]
            for member in members:
                if isinstance(member, Term):
                    others = self._others.setdefault(self._stem(member.text)[0], {})
                    others |= dict.fromkeys(other for other in members if other != member)

    def widen(self, query: Query) -> Query:
        return with_fulltexts(query, _Widening(self).fulltext) if self._others else query

    def of(self, word: Term) -> list[Term | Phrase]:
        stems = [] if word.fuzzy or not self._others else self._stem(word.text)
        return list(self._others.get(stems[0], ())) if len(stems) == 1 else []

    def _member(self, text: str) -> Term | Phrase:
        return Term(text) if len(self._stem(text)) == 1 else Phrase(text)


class _Widening:
    def __init__(self, synonyms: Synonyms) -> None:
        self._synonyms = synonyms
        self._left = MOST_ADDED

    def fulltext(self, fulltext: Fulltext) -> Fulltext:
        keywords = fulltext.keywords
        return fulltext if keywords is None else msgspec.structs.replace(fulltext, keywords=self._keywords(keywords))

    def _keywords(self, keywords: Keywords) -> Keywords:
        match keywords:
            case Term():
                others = self._take(keywords)
                return Either((keywords, *others)) if others else keywords
            case AnyWord():
                others = [other for word in keywords.words for other in self._take(word)]
                words = dict.fromkeys([*keywords.words, *(other for other in others if isinstance(other, Term))])
                return AnyWord(self._keywords(keywords.first), tuple(words), keywords.needed)
            case _:
                return with_parts(keywords, self._keywords)

    def _take(self, word: Term) -> list[Term | Phrase]:
        others = self._synonyms.of(word)[: self._left]
        self._left -= len(others)
        return others
