"""How does one snapshot of an index answer a search?"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec

from muniment.database import budgets
from muniment.database.connections import portions
from muniment.ground.caches import Cache
from muniment.repository.search.analysis import cutting, excerpts
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.values import keyword_values
from muniment.repository.search.index.contract import (
    Answer,
    Correction,
    Examination,
    FacetCounts,
    IndexHit,
    Marker,
    Order,
    Search,
    SortedBy,
    Visible,
    WordCount,
)
from muniment.repository.search.index.questions import costs, examining, layout, rarity
from muniment.repository.search.index.questions.compile import (
    MATCHES,
    Compiler,
    Outline,
    PermissionCache,
    reads_alike,
)
from muniment.repository.search.index.questions.engine import (
    Query,
    QueryMaker,
    Ranked,
    Ranking,
    Searcher,
)
from muniment.repository.search.index.questions.facets import FacetCounter
from muniment.repository.search.index.questions.rarity import CompiledQuery, Foresight, Rarity, SeenCounts
from muniment.repository.search.index.questions.vocabulary import Vocabulary

MOST_FED = 10_000
"""Facets that are to count more hits count all, which costs no more."""

_PLAN_BYTES, _PERMITTED_ACLS = 8_000_000, 200_000
_CALLERS, _CALLER = 500_000, 5_000
"""A caller counts as ``_CALLER`` in the memory, plus 1 for each ACL."""

_SIZES = 10

_encoder = msgspec.json.Encoder()


class _Plan(NamedTuple):
    """What does not depend on the caller.

    ``hits`` is None for a query with keywords, which are weighed for each caller. ``leaf_queries`` find each leaf
    anywhere, and then in metadata; the first excerpt that needs them adds them.
    """

    outline: Outline
    finder: excerpts.Finder
    terms: tuple[str, ...]
    hits: CompiledQuery | None
    leaf_queries: list[Query]


class _Compiled(NamedTuple):
    """A search as the engine is asked. ``hits`` are for any caller, ``query`` for this one."""

    compiler: Compiler
    plan: _Plan
    outline: Outline
    hits: CompiledQuery
    query: Query


class SnapshotCache:
    """Compiled queries, and those for what ACLs permit: neither depends on documents."""

    def __init__(self) -> None:
        self.plans: Cache[bytes, _Plan] = Cache(_PLAN_BYTES)
        self.permissions: PermissionCache = Cache(_PERMITTED_ACLS)


class EngineAccess(NamedTuple):
    """What one snapshot of an engine is asked with; ``as_refusals`` turns the engine's errors into refusals."""

    searcher: Searcher
    ranking: Ranking
    queries: QueryMaker
    as_refusals: Callable[[str], AbstractContextManager[None]]


class Answering:
    """The searches of a snapshot, for any thread. ``has_former`` says whether there may be former versions."""

    def __init__(
        self, access: EngineAccess, analyser: Analyser, memory: SnapshotCache, *, has_former: bool = True
    ) -> None:
        self._searcher, self._ranking, self._queries, self._as_refusals = access
        self._analyser = analyser
        self._memory = memory
        self._seen_counts: Cache[rarity.CallerKey, SeenCounts] = Cache(_CALLERS)
        self._has_former = has_former

    def search(self, search: Search) -> Answer:
        """Without keywords, the newest hits are first.

        Hits of equal score may come in the engine's order where it has no exact one. A commit between two pages may
        move hits.
        """
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            one_more = search.limit + 1 if search.limit > 0 else search.limit
            ranked_hits, total = self._page(compiled.query, search, one_more, compiled.outline)
            if search.few_bare and len(ranked_hits) < search.limit:
                return Answer(self._bare_hits(ranked_hits))
            on_page, more = ranked_hits[: search.limit], len(ranked_hits) > search.limit
            return self._answer(compiled, search, on_page, total, more=more)

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> Answer | None:
        """One question orders and counts, another scores the page."""
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            page = self._ranking.by_values(compiled.query, sorts, search.offset, search.limit)
            if page is None:
                return None
            counters, total = page
            # The caller may see these hits. To ask for their ACLs again would be most of the work.
            scoring = compiled.compiler.scoring(compiled.hits, search.visible)
            ranked_hits = self._ranking.with_counters(scoring, counters)
            if not compiled.outline.leaves:
                ranked_hits = [(0.0, address) for _, address in ranked_hits]
            more = total > search.offset + search.limit
            return self._answer(compiled, search, ranked_hits, total, more=more)

    def _answer(
        self,
        compiled: _Compiled,
        search: Search,
        ranked_hits: Sequence[Ranked],
        total: int | None,
        *,
        more: bool,
    ) -> Answer:
        hits = self._bare_hits(ranked_hits) if search.bare else ()
        if ranked_hits and not search.bare:
            hits = self._hits(compiled, search.visible, ranked_hits, marks=search.marks)
        counts, fed = self._facets(compiled, search) if search.facets else ((), None)
        return Answer(hits, total, counts, fed, more)

    def counters(self, search: Search, order: Order) -> list[int]:
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            if order == "relevance" and compiled.outline.level is not None:
                order = "made"
            elif order == "relevance" and not compiled.outline.leaves:
                order = "newest"
            return self._ranking.counters(compiled.query, order, search.offset, search.limit)

    def embeddings(self, search: Search) -> list[int]:
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            return self._ranking.numbers_of_all(compiled.compiler.embedded(compiled.query), layout.EMBEDDING)

    def examine(self, search: Search, key: str) -> Examination | None:
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            seen_counts = self._seen_by(compiled.compiler, search.visible)
            weighing = self._weighing(compiled.compiler, search, seen_counts, compiled.outline.ranked)
            plain, analyser = self._compiler(locale=search.query.locale), self._analyser.asking(search.query.locale)
            thing = examining.ObjectInIndex(self._searcher, self._queries(), plain, key)
            return examining.examine(thing, weighing, analyser, search, compiled.query)

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        with self._as_refusals("a search failed"):
            compiled = self._compile(search)
            remembered = self._seen_by(compiled.compiler, search.visible).completions
            vocabulary = self._vocabulary(compiled.compiler, search.visible)
            return remembered.answer(
                (_encoder.encode(search.query), beginning, limit),
                lambda: vocabulary.completions(compiled.query, beginning, limit),
                limit,
            )

    def corrections(self, visible: Visible, word: str) -> list[Correction]:
        with self._as_refusals("a search failed"):
            return self._vocabulary(self._compiler(), visible).corrections(word)

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        with self._as_refusals("a search failed"):
            compiler = self._compiler()
            rarity = self._rarity(compiler, visible, self._seen_by(compiler, visible))
            return self._vocabulary(compiler, visible).telling(text, key, rarity, limit)

    def marker(self, search: Search) -> Marker:
        with self._as_refusals("a search failed"):
            return self._compile(search).plan.finder.marks

    def _compile(self, search: Search) -> _Compiled:
        # The key is JSON, because 1, 1.0 and True are equal in Python, so queries with them would share a key.
        query_bytes = _encoder.encode(search.query)
        compiler = self._compiler(locale=search.query.locale)
        plan = self._plan(compiler, search, query_bytes)
        outline, hits = plan.outline, plan.hits
        if hits is None:
            seen_counts = self._seen_by(compiler, search.visible)
            alike = reads_alike(search.visible)
            hits = seen_counts.compiled.answer(
                (query_bytes, alike),
                lambda: self._weighed(compiler, search, seen_counts, outline.ranked),
                _SIZES * len(query_bytes) + len(outline.ranked) * rarity.MOST_FORMS * rarity.FORM_BYTES,
            )
        query = compiler.visible(hits, search.visible)
        if search.near.embeddings:
            query = compiler.nearing(query, search.visible, search.near)
            outline = outline._replace(needs_all=False, level=None)
        if search.among is not None:
            query = compiler.among(query, search.among)
        return _Compiled(compiler, plan, outline, hits, query)

    def _weighed(
        self, compiler: Compiler, search: Search, seen_counts: SeenCounts, ranked: Collection[Pattern]
    ) -> CompiledQuery:
        weights, alike = self._rarity(compiler, search.visible, seen_counts, ranked), reads_alike(search.visible)
        if self._searcher.counts_together:
            foresight = Foresight(ranked)
            self._compiler(foresight, search.query.locale).hits(search.query, anywhere_only=alike)
            weights.count_ahead(foresight.sought)
        return self._compiler(weights, search.query.locale).hits(search.query, anywhere_only=alike)

    def _compiler(self, rarity: Rarity | Foresight | None = None, locale: str = "") -> Compiler:
        analyser = self._analyser.asking(locale)
        return Compiler(self._queries(), analyser, self._memory.permissions, rarity, has_former=self._has_former)

    def _vocabulary(self, compiler: Compiler, visible: Visible) -> Vocabulary:
        engine = (self._searcher, self._ranking, self._queries())
        return Vocabulary(engine, compiler, self._analyser, visible)

    def _weighing(
        self, compiler: Compiler, search: Search, seen_counts: SeenCounts, ranked: Collection[Pattern]
    ) -> Compiler:
        return self._compiler(self._rarity(compiler, search.visible, seen_counts, ranked), search.query.locale)

    def _rarity(
        self, compiler: Compiler, visible: Visible, seen_counts: SeenCounts, ranked: Collection[Pattern] = ()
    ) -> Rarity:
        def holding(sought: str | Pattern, exact: bool) -> Query:
            # A new compiler has an allowance for regular expressions of its own, so this spends none of the search's.
            return self._compiler().holding(visible, sought, exact)

        findings = rarity.Findings(holding, compiler.browsable(visible), self._vocabulary(compiler, visible).beginning)
        return Rarity(self._searcher, findings, ranked, seen_counts)

    def _seen_by(self, compiler: Compiler, visible: Visible) -> SeenCounts:
        """Changed objects that the snapshot does not hold do not count."""
        missed_keys = visible.hidden | visible.decided
        if missed_keys and self._searcher.count(compiler.among(self._queries().every(), missed_keys)):
            return SeenCounts()
        key = rarity.caller_key(visible)
        return self._seen_counts.answer(key, SeenCounts, len(visible.browse_acls) + len(visible.read_acls) + _CALLER)

    def _plan(self, compiler: Compiler, search: Search, query_bytes: bytes) -> _Plan:
        plan = self._memory.plans.recall(query_bytes)
        if plan is not None:
            return plan
        costs.check(search.query.condition, self._analyser.asking(search.query.locale), self._searcher.documents())
        outline = compiler.outline(search.query)
        finder = excerpts.Finder(self._analyser.asking(search.query.locale), outline.leaves)
        hits = None if outline.leaves else compiler.hits(search.query)
        plan = _Plan(outline, finder, tuple(map(examining.shown_term, outline.leaves)), hits, [])
        return self._memory.plans.keep(query_bytes, plan, _SIZES * len(query_bytes))

    def _page(self, query: Query, search: Search, limit: int, outline: Outline) -> tuple[list[Ranked], int | None]:
        """With the limit 0, one hit is read, to show that hits follow. The order is any if the limit is above the
        number of possible hits.
        """
        has_scores, offset = bool(outline.leaves), search.offset
        if limit < 1 or (search.among is not None and len(search.among) < limit):
            hits, total = self._searcher.search(query, max(limit, 1), count=search.total, offset=offset)
            return [(score if has_scores else 0.0, address) for score, address in hits], total
        if outline.level is not None:
            ranked_hits, total = self._ranking.by_counter(query, offset, limit, total=search.total)
            return [(outline.level, address) for _, address in ranked_hits], total
        if has_scores:
            return self._ranking.by_score(query, offset, limit, total=search.total)
        return self._ranking.by_modification(query, offset, limit, total=search.total)

    def _bare_hits(self, ranked_hits: Sequence[Ranked]) -> tuple[IndexHit, ...]:
        numbers = self._searcher.numbers(layout.EMBEDDING, [address for _, address in ranked_hits])
        return tuple(
            IndexHit(self._searcher.read(address).found_by().key, float(score), "", (), embedding=number)
            for (score, address), number in zip(ranked_hits, numbers, strict=True)
        )

    def _hits(
        self, compiled: _Compiled, visible: Visible, ranked_hits: Sequence[Ranked], *, marks: bool
    ) -> tuple[IndexHit, ...]:
        plan = compiled.plan
        stored_documents = [self._searcher.read(address) for _, address in ranked_hits]
        sources = [stored.found_by() for stored in stored_documents]
        keys = [source.key for source in sources]
        readable = [visible.may_read(source.key, source.acl, source.owner) for source in sources]
        leaves, every_term = compiled.outline.leaves, tuple(dict.fromkeys(plan.terms))
        # These hits have matched every leaf, so an excerpt from the text is all that is missing.
        sure = [compiled.outline.needs_all and may_read for may_read in readable]
        texts = [stored.text() if may_read else "" for stored, may_read in zip(stored_documents, readable, strict=True)]
        has_others = bool(self._analyser.others)
        languages = [stored.source().language if has_others else "" for stored in stored_documents]
        excerpt_of_each = [
            plan.finder.excerpt(text, thorough=False, language=language) if is_sure else None
            for text, is_sure, language in zip(texts, sure, languages, strict=True)
        ]
        open_keys = [key for key, excerpt in zip(keys, excerpt_of_each, strict=True) if excerpt is None]
        matches = self._matches(compiled, open_keys) if open_keys else {}
        hits = []
        for at, (score, address) in enumerate(ranked_hits):
            excerpt, terms, text = excerpt_of_each[at], every_term, texts[at]
            if excerpt is None:
                budgets.check()
                leaf_matches = matches[self._searcher.place(address)]
                in_metadata = [leaf for leaf in range(len(leaves)) if leaf_matches[len(leaves) + leaf]]
                anywhere = [leaf for leaf in range(len(leaves)) if leaf_matches[leaf]] if readable[at] else in_metadata
                # A leaf that is not in the metadata must be in the text, so a thorough search will find it.
                thorough = len(anywhere) > len(in_metadata)
                if text and anywhere:
                    excerpt = plan.finder.excerpt(text, anywhere, thorough=thorough, language=languages[at])
                if excerpt is None and anywhere:
                    source = stored_documents[at].source()
                    language = languages[at] if readable[at] else self._analyser.language_of_metadata(source.values)
                    excerpt = _metadata_excerpt(plan.finder, source, anywhere, language)
                terms = tuple(dict.fromkeys([plan.terms[leaf] for leaf in anywhere]))
            if excerpt is None:
                excerpt = cutting.beginning(text)
            matching = plan.finder.marks(excerpt) if marks else None
            hits.append(IndexHit(keys[at], float(score), excerpt, terms, matching))
        return tuple(hits)

    def _matches(self, compiled: _Compiled, keys: Sequence[str]) -> Mapping[Hashable, list[bool]]:
        """Return, by the engine's address, whether each leaf matches anywhere, and then whether in metadata."""
        matches: dict[Hashable, list[bool]] = defaultdict(list)
        compiler, leaves, queries = compiled.compiler, compiled.outline.leaves, compiled.plan.leaf_queries
        if not queries:
            queries[:] = [compiler.leaf(leaf, readable) for readable in (True, False) for leaf in leaves]
        for some in portions(queries, MATCHES):
            for sum_, address in self._searcher.search(compiler.matching(keys, some), len(keys))[0]:
                matches[self._searcher.place(address)] += [bool(int(sum_) >> n & 1) for n in range(len(some))]
        return matches

    def _facets(self, compiled: _Compiled, search: Search) -> tuple[tuple[FacetCounts, ...], int | None]:
        fed, query, queries = search.facet_hits, compiled.query, self._queries()
        if fed is None or fed > MOST_FED or self._searcher.count(query) <= fed:
            fed = None
        elif fed == 0:
            query = queries.nothing()
        else:
            first = msgspec.structs.replace(search, offset=0, total=False)
            ranked_hits, _ = self._page(query, first, fed, compiled.outline)
            numbers = self._searcher.numbers(layout.NUMBER, [address for _, address in ranked_hits])
            query = queries.all_of([query, queries.terms(layout.NUMBER, numbers)])
        return FacetCounter(self._searcher, queries, compiled.compiler.comparison).count(query, search.facets), fed


def _metadata_excerpt(
    finder: excerpts.Finder, source: layout.Source, leaves: Sequence[int], language: str
) -> str | None:
    # A hit shows its name anyway.
    name = source.values.get("object_name", ())
    found_excerpts = (
        finder.excerpt(value, leaves, language=language)
        for _, value in keyword_values(source.values, source.ids)
        if value not in name
    )
    return next((excerpt for excerpt in found_excerpts if excerpt is not None), None)
