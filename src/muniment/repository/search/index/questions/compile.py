"""How is a query tree compiled into a query of the engine?"""

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias, assert_never

from muniment.ground.caches import Cache
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.conditions import (
    Between,
    BoundQuery,
    Carries,
    Condition,
    ConditionSet,
    HasValue,
    Like,
    OneOf,
    Unless,
)
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.rewriting import joints
from muniment.repository.search.aql.tree import AnyWord, Both, Either, Fulltext, Keywords, Phrase, Term, Wild, Without
from muniment.repository.search.index.contract import LEAD, Leaf, Near, Visible
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Queries, Query
from muniment.repository.search.index.questions.leaves import has_keywords, leaves, needs_all
from muniment.repository.search.index.questions.rarity import CompiledQuery, Foresight, Rarity, may_rank

_NEIGHBOURS, _SLOP = 0.25, 2
"""In a query for any of several words, neighbours near each other (``_SLOP``) add this fraction of their phrase score.
"""

_AS_WRITTEN = 0.3
"""In a query for any of several words, a word exactly as written adds this fraction of its score."""

_APART = 0.01
"""If a number is all that is asked, its groups apart score this fraction, so that they come last."""

_MOST_RANKED = 8
"""The words in a hit that match a ranked pattern decide its score; a further pattern scores all its hits alike."""

MATCHES = 24
"""Each query of ``Compiler.matching`` is a bit of a score, and a score holds 24 bits exactly."""


PermissionCache: TypeAlias = Cache[tuple[frozenset[int], frozenset[int] | None, str], Query]
"""Remembers the query for objects with these ACLs or this owner, or with the first ACLs without the second ones and not
of the owner; its limit counts ACLs.
"""


class Outline(NamedTuple):
    """What a bound query looks up.

    With ``needs_all``, a hit has matched all ``leaves``. ``level`` is every hit's score, None if scores differ or there
    are no leaves. ``ranked`` patterns rank by the words that hits hold.
    """

    leaves: tuple[Leaf, ...]
    needs_all: bool
    level: float | None
    ranked: tuple[Pattern, ...]


class Compiler:
    """Compiles one search; ``rarity`` weighs words for the caller.

    ``permissions`` depends on the schema, not on documents. ``has_former`` says whether there are former versions.
    """

    def __init__(
        self,
        queries: Queries,
        analyser: Analyser,
        permissions: PermissionCache,
        rarity: Rarity | Foresight | None = None,
        *,
        has_former: bool = False,
    ) -> None:
        self._has_former = has_former
        self._analyser = analyser
        self._permissions = permissions
        self._rarity = rarity
        self._queries = queries
        self._leaves: dict[tuple[Leaf, bool], Query] = {}

    def outline(self, query: BoundQuery) -> Outline:
        every_leaf = list(leaves(query.condition, choose=self._analyser.content_words))
        all_needed = needs_all(query.condition)
        level = float(len(every_leaf)) if all_needed and every_leaf and all(map(self._is_level, every_leaf)) else None
        return Outline(tuple(dict.fromkeys(every_leaf)), all_needed, level, self._ranked(every_leaf))

    def hits(self, query: BoundQuery, *, anywhere_only: bool = False) -> CompiledQuery:
        """Find matches anywhere, and in metadata, too, unless ``anywhere_only``. Only keywords give a score.

        Raises BadQuery for a name that no property can have, and for regular expressions that would take too long.
        """
        of_types = [self._silent(self._queries.terms(layout.TYPE, query.types))] if query.types else []

        def query_of(readable: bool) -> Query:
            condition = query.condition
            return self._all_of([*of_types, *([] if condition is None else [self._condition(condition, readable)])])

        anywhere = query_of(readable=True)
        by_keywords = not anywhere_only and query.condition is not None and has_keywords(query.condition)
        return CompiledQuery(anywhere, query_of(readable=False) if by_keywords else anywhere)

    def comparison(self, condition: Condition) -> Query:
        return self._silent(self._condition(condition, readable=False))

    def visible(self, query: CompiledQuery, visible: Visible) -> Query:
        """Let what the caller may read match anywhere, what they may only browse in metadata."""
        if _is_one(query, visible):
            return self._all_of([self._silent(self.browsable(visible)), query.anywhere])
        found_anywhere = self._all_of([self._silent(self.readable(visible)), query.anywhere])
        only_browsable = self.only_browsable(visible)
        if only_browsable is None:
            return found_anywhere
        return self._any_of([found_anywhere, self._all_of([self._silent(only_browsable), query.in_metadata])])

    def nearing(self, query: Query, visible: Visible, near: Near) -> Query:
        """Add nearness to each hit's score; the first ``near.added`` become hits if the caller may read them."""
        nearest = [self._queries.term(layout.EMBEDDING, each) for each in near.embeddings]
        added = self._all_of([self._silent(self.readable(visible)), self._silent(self._any_of(nearest[: near.added]))])
        scores = [self._queries.fixed(each, score) for each, score in zip(nearest, near.scores, strict=True)]
        return self._queries.with_bonuses([self._any_of([query, added])], scores)

    def embedded(self, query: Query) -> Query:
        return self._all_of([self._silent(query), self._silent(self._queries.embedded())])

    def scoring(self, query: CompiledQuery, visible: Visible) -> Query:
        """Score as ``visible`` does, perhaps with further objects."""
        return query.anywhere if _is_one(query, visible) else self.visible(query, visible)

    def holding(self, visible: Visible, sought: str | Pattern, exact: bool) -> Query:
        """Search exact words with ``exact``, otherwise stems."""

        def holding(readable: bool) -> Query:
            pair = _searched(readable)
            field = pair.words if exact else pair.stems
            return self._one_wild(field, sought) if isinstance(sought, Pattern) else self._queries.term(field, sought)

        return self._finding(visible, holding)

    def matching_term(self, visible: Visible, term: Term) -> Query:
        return self._finding(visible, lambda readable: self.leaf(term, readable))

    def _finding(self, visible: Visible, query_of: Callable[[bool], Query]) -> Query:
        anywhere = self._silent(query_of(True))
        in_metadata = anywhere if reads_alike(visible) else self._silent(query_of(False))
        return self.visible(CompiledQuery(anywhere, in_metadata), visible)

    def among(self, query: Query, keys: Collection[str]) -> Query:
        return self._all_of([query, self._silent(self._queries.terms(layout.KEY, keys))])

    def browsable(self, visible: Visible) -> Query:
        return self._permitted_query(visible, visible.browse_acls, visible.browse)

    def readable(self, visible: Visible) -> Query:
        return self._permitted_query(visible, visible.read_acls, visible.read)

    def only_browsable(self, visible: Visible) -> Query | None:
        """Return None if browsing and reading are the same for the caller."""
        if reads_alike(visible):
            return None
        permitted_query = self._permissions.answer(
            (visible.browse_acls, visible.read_acls, visible.owner),
            lambda: self._all_of(
                [self._queries.with_acls(visible.browse_acls - visible.read_acls)], self._owner(visible)
            ),
            len(visible.browse_acls) + 1,
        )
        return self._apply_decisions(visible, permitted_query, visible.browse - visible.read)

    def matching(self, keys: Collection[str], queries: Sequence[Query]) -> Query:
        """Add 2**n for query number n, from 0: exact up to ``MATCHES``."""
        few = self._silent(self._queries.terms(layout.KEY, keys))
        bits = [self._queries.fixed(query, float(1 << n)) for n, query in enumerate(queries)]
        return self._queries.with_bonuses([few], bits)

    def leaf(self, leaf: Leaf, readable: bool) -> Query:
        """If ``readable``, find a leaf anywhere, otherwise in metadata."""
        query = self._leaves.get((leaf, readable))
        if query is None:
            query = self._leaves[leaf, readable] = self._leaf(leaf, *_searched(readable))
        return query

    def _leaf(self, leaf: Leaf, stems: str, words: str) -> Query:
        match leaf:
            case Phrase():
                return self._words(words, self._analyser.exact(leaf.text))
            case Wild():
                return self._wild(words, self._analyser.wild(leaf.text))
            case Term(fuzzy=True):
                similar = self._similar(words, self._analyser.exact(leaf.text))
                return self._any_of([self._term_of(leaf, stems, words), *similar])
            case Term():
                return self._term_of(leaf, stems, words)
            case _:
                assert_never(leaf)

    def _term_of(self, term: Term, stems: str, words: str) -> Query:
        ways = [
            self._words(stems if way.stems else words, way.words, way.counted_as)
            for way in self._analyser.ways(term.text)
        ]
        return self._any_of(ways) if len(ways) < 2 else self._queries.best_of(ways)

    def _permitted_query(self, visible: Visible, acls: frozenset[int], decided_keys: frozenset[str]) -> Query:
        if visible.everything:
            hidden_query = self._queries.terms(layout.KEY, {layout.POSITION, *visible.hidden})
            return self._all_of([self._queries.every()], [hidden_query, *self._not_former(visible)])
        permitted_query = self._permissions.answer(
            (acls, None, visible.owner),
            lambda: self._any_of([self._queries.with_acls(acls), *self._owner(visible)]),
            len(acls) + 1,
        )
        return self._apply_decisions(visible, permitted_query, decided_keys)

    def _owner(self, visible: Visible) -> list[Query]:
        return [self._queries.term(layout.OWNER, visible.owner)] if visible.owner else []

    def _apply_decisions(self, visible: Visible, permitted_query: Query, decided_keys: frozenset[str]) -> Query:
        """The document with the index's position has neither ACL nor owner, so it is not found."""
        if visible.decided:
            undecided = self._all_of([permitted_query], [self._queries.terms(layout.KEY, visible.decided)])
            newly_permitted = self._queries.terms(layout.KEY, decided_keys & visible.decided)
            permitted_query = self._any_of([undecided, newly_permitted])
        exclusions = self._not_former(visible)
        if visible.hidden:
            exclusions.append(self._queries.terms(layout.KEY, visible.hidden))
        return self._all_of([permitted_query], exclusions)

    def _not_former(self, visible: Visible) -> list[Query]:
        if visible.all_versions or not self._has_former:
            return []
        return [self._queries.term(layout.FORMER, layout.IS_FORMER)]

    def _condition(self, condition: Condition, readable: bool) -> Query:
        match condition:
            case ConditionSet():
                parts = [self._condition(part, readable) for part in condition.conditions]
                return self._all_of(parts) if condition.operator == "AND" else self._any_of(parts)
            case Unless():
                return self._all_of([], [self._condition(condition.condition, readable)])
            case Fulltext():
                return self._fulltext(condition, readable)
            case Carries():
                return self._silent(self._queries.with_acls(condition.acls))
            case OneOf() | Between() | Like() | HasValue():
                return self._silent(self._queries.comparison(condition))
            case _:
                assert_never(condition)

    def _fulltext(self, fulltext: Fulltext, readable: bool) -> Query:
        keywords = fulltext.keywords
        if keywords is None:
            return self._queries.nothing()
        if isinstance(keywords, Either) and joints.is_number(keywords):
            return self._number(keywords, readable, _APART)
        found = self._keywords(keywords, readable)
        if fulltext.sequence is None:
            return found
        spellings = self._analyser.sequences(fulltext.sequence.text)
        sequence = self._any_of([self._words(_searched(readable).words, words) for words in spellings])
        return self._queries.with_bonuses([found], [self._queries.fixed(sequence, LEAD)])

    def _keywords(self, keywords: Keywords, readable: bool) -> Query:
        match keywords:
            case Both():
                parts = [self._keywords(part, readable) for part in keywords.parts if not isinstance(part, Without)]
                exclusions = [
                    self._keywords(part.part, readable) for part in keywords.parts if isinstance(part, Without)
                ]
                return self._all_of(parts, exclusions)
            case Either() if joints.is_number(keywords):
                return self._number(keywords, readable)
            case Either():
                words = [part for part in keywords.parts if isinstance(part, Term)]
                closer = self._closer(words, readable) if len(words) == len(keywords.parts) > 1 else []
                return self._any_of([*(self._keywords(part, readable) for part in keywords.parts), *closer])
            case AnyWord():
                return self._any_word(keywords, readable)
            case Without():
                return self._all_of([], [self._keywords(keywords.part, readable)])
            case Term() | Wild() | Phrase():
                return self.leaf(keywords, readable)
            case _:
                assert_never(keywords)

    def _number(self, sought: Either, readable: bool, apart: float = 1) -> Query:
        """Score a number as one word, and its groups elsewhere as words, so that either spelling gives the same."""
        groups, number = (self._keywords(part, readable) for part in sought.parts)
        return self._any_of([self._queries.times(self._all_of([groups], [number]), apart), number])

    def _any_word(self, sought: AnyWord, readable: bool) -> Query:
        """Find any of ``sought.words``, or ``sought.first``, or else all ``sought.needed``.

        A match of ``sought.first`` adds ``LEAD`` to an object's score.
        """
        words = self._analyser.content_words(sought.words)
        first = self._queries.fixed(self._keywords(sought.first, readable), LEAD)
        scored = [*(self.leaf(word, readable) for word in words), first, *self._closer(sought.words, readable)]
        if not sought.needed:
            return self._any_of(scored)
        return self._queries.with_bonuses([self._keywords(part, readable) for part in sought.needed], scored)

    def _closer(self, words: Sequence[Term], readable: bool) -> list[Query]:
        """Each finds objects with at least one of the words."""
        queries = []
        pairs = [
            [*word, *following]
            for language in ("", *self._analyser.others)
            for word, following in itertools.pairwise(
                [stem for _, stem in self._analyser.stem(word.text, language)]
                for word in self._analyser.without_stop_words(words)
            )
        ]
        field = _searched(readable)
        for word in self._analyser.content_words(words):
            written = self._analyser.as_written(word.text)
            weights = [[each] for _, each in written[0]] if len(written) > 1 else ()
            as_written = [self._words(field.words, words, weights) for words in written]
            queries.append(self._queries.times(self._queries.best_of(as_written), _AS_WRITTEN))
        for pair in pairs:
            if len(pair) > 1:
                near = self._queries.sequence(field.stems, list(enumerate(pair)), _SLOP)
                queries.append(self._queries.times(self._weigh(near, field.stems, pair), _NEIGHBOURS))
        return queries

    def _words(self, field: str, words: list[tuple[int, str]], counted_as: Sequence[Sequence[str]] = ()) -> Query:
        if not words:
            return self._queries.nothing()
        if len(words) == 1:
            return self._word(field, words[0][1], counted_as)
        phrase = self._queries.sequence(field, words)
        return self._weigh(phrase, field, [word for _, word in words], counted_as)

    def _is_level(self, leaf: Leaf) -> bool:
        words = self._analyser.wild(leaf.text) if isinstance(leaf, Wild) else []
        return [len(each.pieces) > 1 and not may_rank(each) for _, each in words] == [True]

    def _ranked(self, every_leaf: Sequence[Leaf]) -> tuple[Pattern, ...]:
        wild = [word for leaf in every_leaf if isinstance(leaf, Wild) for _, word in self._analyser.wild(leaf.text)]
        return tuple(dict.fromkeys(filter(may_rank, wild)))[:_MOST_RANKED]

    def _wild(self, field: str, words: Sequence[tuple[int, Pattern]]) -> Query:
        if not words:
            return self._queries.nothing()
        parts = [self._one_wild(field, pattern) for _, pattern in words]
        if len(words) > 1:
            parts.append(self._silent(self._queries.patterns(field, words)))
        return self._all_of(parts)

    def _one_wild(self, field: str, pattern: Pattern) -> Query:
        match pattern.pieces:
            case (str(word),):
                return self._word(field, word)
        unranked = self._queries.pattern(field, pattern)
        return unranked if self._rarity is None else self._rarity.by_forms(self._queries, field, pattern, unranked)

    def _similar(self, field: str, words: Sequence[tuple[int, str]]) -> list[Query]:
        """Count two exchanged neighbours as one letter; return nothing for more words than one, or one too short or too
        long.
        """
        if len(words) != 1 or not patterns.SIMILAR_FROM <= len(words[0][1]) <= patterns.LONGEST_SIMILAR:
            return []
        return [self._queries.similar(field, words[0][1], 1)]

    def _word(self, field: str, word: str, counted_as: Sequence[Sequence[str]] = ()) -> Query:
        return self._weigh(self._queries.word(field, word), field, [word], counted_as)

    def _weigh(self, query: Query, field: str, words: Sequence[str], counted_as: Sequence[Sequence[str]] = ()) -> Query:
        if self._rarity is None:
            return query
        return self._queries.times(query, self._rarity.factor(field, words, counted_as))

    def _all_of(self, parts: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
        return self._queries.all_of(parts, exclusions)

    def _any_of(self, parts: Sequence[Query]) -> Query:
        return self._queries.any_of(parts)

    def _silent(self, query: Query) -> Query:
        return self._queries.silent(query)


def _is_one(query: CompiledQuery, visible: Visible) -> bool:
    return reads_alike(visible) or query.in_metadata is query.anywhere


def _searched(readable: bool) -> layout.WordFields:
    return layout.ANYWHERE if readable else layout.METADATA


def reads_alike(visible: Visible) -> bool:
    """Return whether the caller may read all that they may browse: then nothing is sought in metadata alone."""
    return visible.everything or (visible.browse_acls, visible.browse) == (visible.read_acls, visible.read)
