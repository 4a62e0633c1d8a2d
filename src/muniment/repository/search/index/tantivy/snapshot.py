"""How does one snapshot of the built-in index answer a search?"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import tantivy
from tantivy import DocAddress, Query

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
    DocumentDigest,
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
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.tantivy import examining, failures, fields, reading
from muniment.repository.search.index.tantivy.compiling import costs, rarity
from muniment.repository.search.index.tantivy.compiling.combining import all_of, terms
from muniment.repository.search.index.tantivy.compiling.compile import (
    MATCHES,
    CompiledLeaf,
    CompiledQuery,
    Compiler,
    PermissionCache,
    reads_alike,
)
from muniment.repository.search.index.tantivy.compiling.order import Ranked, Ranking
from muniment.repository.search.index.tantivy.compiling.rarity import Rarity, SeenCounts
from muniment.repository.search.index.tantivy.facets import FacetCounter
from muniment.repository.search.index.tantivy.searching import WatchedSearcher, count_of
from muniment.repository.search.index.tantivy.vocabulary import Vocabulary
from muniment.repository.store.change_log.changes import Position

MOST_FED = 10_000
"""Facets that are to count more hits count all, which costs no more."""

_PLAN_BYTES, _PERMITTED_ACLS = 8_000_000, 200_000
_CALLERS, _CALLER = 500_000, 5_000
"""A caller counts as ``_CALLER`` in the memory, plus 1 for each ACL."""

_SIZES = 10

_encoder = msgspec.json.Encoder()


class _Plan(NamedTuple):
    compiled: CompiledQuery
    finder: excerpts.Finder
    terms: tuple[str, ...]


class SnapshotCache:
    """Compiled queries, and those for what ACLs permit: neither depends on documents."""

    def __init__(self) -> None:
        self.plans: Cache[bytes, _Plan] = Cache(_PLAN_BYTES)
        self.permissions: PermissionCache = Cache(_PERMITTED_ACLS)


class TantivySnapshot(reading.Reading):
    """One commit (a Snapshot), for any thread."""

    def __init__(
        self,
        index: tantivy.Index,
        searcher: tantivy.Searcher,
        analyser: Analyser,
        memory: SnapshotCache,
    ) -> None:
        self._index = index
        watched = WatchedSearcher(searcher)
        super().__init__(watched)
        self._analyser = analyser
        self._memory = memory
        self._seen_counts: Cache[rarity.CallerKey, SeenCounts] = Cache(_CALLERS)
        self._ranking = Ranking(watched)
        self._has_former = searcher.doc_freq(fields.FORMER, fields.IS_FORMER) > 0
        self._position = fields.read_position(searcher)
        self._documents = rarity.documents(searcher)

    @property
    def position(self) -> Position:
        return self._position

    def search(self, search: Search) -> Answer:
        """Without keywords, the newest hits are first.

        Hits of equal score keep the engine's order if some lie deeper than ``order.REACH``. A commit between two pages
        may move hits.
        """
        with failures.as_refusals("a search failed"):
            compiler, plan, query = self._compile(search)
            one_more = msgspec.structs.replace(search, limit=search.limit + 1) if search.limit > 0 else search
            ranked_hits, total = self._page(query, one_more, plan.compiled)
            on_page, more = ranked_hits[: search.limit], len(ranked_hits) > search.limit
            return self._answer((compiler, plan, query), search, on_page, total, more=more)

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> Answer | None:
        """One question orders and counts, another scores the page."""
        with failures.as_refusals("a search failed"):
            compiler, plan, query = self._compile(search)
            page = self._ranking.by_values(query, sorts, search.offset, search.limit)
            if page is None:
                return None
            counters, total = page
            # The caller may see these hits. To ask for their ACLs again would be most of the work.
            ranked_hits = self._ranking.with_counters(compiler.scoring(plan.compiled, search.visible), counters)
            if not plan.compiled.leaves:
                ranked_hits = [(0.0, address) for _, address in ranked_hits]
            more = total > search.offset + search.limit
            return self._answer((compiler, plan, query), search, ranked_hits, total, more=more)

    def _answer(
        self,
        compiled: tuple[Compiler, _Plan, Query],
        search: Search,
        ranked_hits: Sequence[Ranked],
        total: int | None,
        *,
        more: bool,
    ) -> Answer:
        compiler, plan, query = compiled
        hits = self._bare_hits(ranked_hits) if search.bare else ()
        if ranked_hits and not search.bare:
            hits = self._hits(compiler, search.visible, ranked_hits, plan, marks=search.marks)
        counts, fed = self._facets(compiler, query, search, plan.compiled)
        return Answer(hits, total, counts, fed, more)

    def counters(self, search: Search, order: Order) -> list[int]:
        with failures.as_refusals("a search failed"):
            _, plan, query = self._compile(search)
            if order == "relevance" and plan.compiled.level is not None:
                order = "made"
            elif order == "relevance" and not plan.compiled.leaves:
                order = "newest"
            return self._ranking.counters(query, order, search.offset, search.limit)

    def embeddings(self, search: Search) -> list[int]:
        with failures.as_refusals("a search failed"):
            compiler, _, query = self._compile(search)
            return self._ranking.values(compiler.embedded(query), fields.EMBEDDING)

    def examine(self, search: Search, key: str) -> Examination | None:
        with failures.as_refusals("a search failed"):
            compiler, plan, query = self._compile(search)
            seen_counts = self._seen_by(compiler, search.visible)
            weighing = self._weighing(compiler, search, seen_counts, plan.compiled.ranked)
            plain, analyser = self._compiler(locale=search.query.locale), self._analyser.asking(search.query.locale)
            thing = examining.ObjectInIndex(self._searcher, plain, key)
            return examining.examine(thing, weighing, analyser, search, query)

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        with failures.as_refusals("a search failed"):
            compiler, _, query = self._compile(search)
            remembered = self._seen_by(compiler, search.visible).completions
            return remembered.answer(
                (_encoder.encode(search.query), beginning, limit),
                lambda: self._vocabulary(compiler, search.visible).completions(query, beginning, limit),
                limit,
            )

    def corrections(self, visible: Visible, word: str) -> list[Correction]:
        with failures.as_refusals("a search failed"):
            return self._vocabulary(self._compiler(), visible).corrections(word)

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        with failures.as_refusals("a search failed"):
            compiler = self._compiler()
            rarity = self._rarity(compiler, visible, self._seen_by(compiler, visible))
            return self._vocabulary(compiler, visible).telling(text, key, rarity, limit)

    def marker(self, search: Search) -> Marker:
        with failures.as_refusals("a search failed"):
            _, plan, _ = self._compile(search)
            return plan.finder.marks

    def digest(self, document: Document) -> DocumentDigest:
        return reading.digest(document, self._analyser)

    def _compile(self, search: Search) -> tuple[Compiler, _Plan, Query]:
        # The key is JSON, because 1, 1.0 and True are equal in Python, so queries with them would share a key.
        query_bytes = _encoder.encode(search.query)
        compiler = self._compiler(locale=search.query.locale)
        plan = self._plan(compiler, search, query_bytes)
        compiled_query = plan.compiled
        if compiled_query.leaves:
            seen_counts = self._seen_by(compiler, search.visible)
            alike = reads_alike(search.visible)
            hits = seen_counts.compiled.answer(
                (query_bytes, alike),
                lambda: self._weighing(compiler, search, seen_counts, compiled_query.ranked).hits(
                    search.query, anywhere_only=alike
                ),
                _SIZES * len(query_bytes) + len(compiled_query.ranked) * rarity.MOST_FORMS * rarity.FORM_BYTES,
            )
            compiled_query = compiled_query._replace(anywhere=hits[0], in_metadata=hits[1])
            plan = plan._replace(compiled=compiled_query)
        query = compiler.visible(compiled_query, search.visible)
        if search.near.embeddings:
            query = compiler.nearing(query, search.visible, search.near)
            plan = plan._replace(compiled=compiled_query._replace(needs_all=False, level=None))
        return compiler, plan, query if search.among is None else compiler.among(query, search.among)

    def _compiler(self, rarity: Rarity | None = None, locale: str = "") -> Compiler:
        analyser = self._analyser.asking(locale)
        return Compiler(self._index, analyser, self._memory.permissions, rarity, has_former=self._has_former)

    def _vocabulary(self, compiler: Compiler, visible: Visible) -> Vocabulary:
        return Vocabulary(self._searcher, compiler, self._analyser, visible)

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
        return Rarity((self._searcher, self._documents), findings, ranked, seen_counts)

    def _seen_by(self, compiler: Compiler, visible: Visible) -> SeenCounts:
        """Changed objects that the snapshot does not hold do not count."""
        missed_keys = visible.hidden | visible.decided
        if missed_keys and self._searcher.count(compiler.among(Query.all_query(), missed_keys)):
            return SeenCounts()
        key = rarity.caller_key(visible)
        return self._seen_counts.answer(key, SeenCounts, len(visible.browse_acls) + len(visible.read_acls) + _CALLER)

    def _plan(self, compiler: Compiler, search: Search, query_bytes: bytes) -> _Plan:
        plan = self._memory.plans.recall(query_bytes)
        if plan is not None:
            return plan
        costs.check(search.query.condition, self._analyser.asking(search.query.locale), self._searcher.num_docs)
        compiled_query = compiler.compile(search.query)
        query_leaves = [each.leaf for each in compiled_query.leaves]
        finder = excerpts.Finder(self._analyser.asking(search.query.locale), query_leaves)
        plan = _Plan(compiled_query, finder, tuple(map(examining.shown_term, query_leaves)))
        return self._memory.plans.keep(query_bytes, plan, _SIZES * len(query_bytes))

    def _page(self, query: Query, search: Search, compiled_query: CompiledQuery) -> tuple[list[Ranked], int | None]:
        """With the limit 0, one hit is read, to show that hits follow. The order is any if the limit is above the
        number of possible hits.
        """
        has_scores = bool(compiled_query.leaves)
        limit, offset = search.limit, search.offset
        if limit < 1 or (search.among is not None and len(search.among) < limit):
            result = self._searcher.search(query, max(limit, 1), count=search.total, offset=offset)
            return [(score if has_scores else 0.0, address) for score, address in result.hits], count_of(result)
        if compiled_query.level is not None:
            ranked_hits, total = self._ranking.by_counter(query, offset, limit, total=search.total)
            return [(compiled_query.level, address) for _, address in ranked_hits], total
        rank = self._ranking.by_score if has_scores else self._ranking.by_modification
        return rank(query, offset, limit, total=search.total)

    def _bare_hits(self, ranked_hits: Sequence[Ranked]) -> tuple[IndexHit, ...]:
        numbers = self._searcher.numbers(fields.EMBEDDING, [address for _, address in ranked_hits])
        return tuple(
            IndexHit(fields.read_key(self._searcher.doc(address)), float(score), "", (), embedding=number)
            for (score, address), number in zip(ranked_hits, numbers, strict=True)
        )

    def _hits(
        self,
        compiler: Compiler,
        visible: Visible,
        ranked_hits: Sequence[Ranked],
        plan: _Plan,
        *,
        marks: bool,
    ) -> tuple[IndexHit, ...]:
        stored_documents = [self._searcher.doc(address) for _, address in ranked_hits]
        sources = [fields.read_found_by(fields.read_source_bytes(document)) for document in stored_documents]
        keys = [source.key for source in sources]
        readable = [visible.may_read(source.key, source.acl, source.owner) for source in sources]
        leaves, every_term = plan.compiled.leaves, tuple(dict.fromkeys(plan.terms))
        # These hits have matched every leaf, so an excerpt from the text is all that is missing.
        sure = [plan.compiled.needs_all and may_read for may_read in readable]
        texts = [
            fields.read_text(document) if may_read else ""
            for document, may_read in zip(stored_documents, readable, strict=True)
        ]
        has_others = bool(self._analyser.others)
        languages = [fields.read_source(document).language if has_others else "" for document in stored_documents]
        excerpt_of_each = [
            plan.finder.excerpt(text, thorough=False, language=language) if is_sure else None
            for text, is_sure, language in zip(texts, sure, languages, strict=True)
        ]
        open_keys = [key for key, excerpt in zip(keys, excerpt_of_each, strict=True) if excerpt is None]
        matches = self._matches(compiler, open_keys, leaves)
        hits = []
        for at, (score, address) in enumerate(ranked_hits):
            excerpt, terms, text = excerpt_of_each[at], every_term, texts[at]
            if excerpt is None:
                budgets.check()
                leaf_matches = matches[_place(address)]
                in_metadata = [leaf for leaf in range(len(leaves)) if leaf_matches[len(leaves) + leaf]]
                anywhere = [leaf for leaf in range(len(leaves)) if leaf_matches[leaf]] if readable[at] else in_metadata
                # A leaf that is not in the metadata must be in the text, so a thorough search will find it.
                thorough = len(anywhere) > len(in_metadata)
                if text and anywhere:
                    excerpt = plan.finder.excerpt(text, anywhere, thorough=thorough, language=languages[at])
                if excerpt is None and anywhere:
                    source = fields.read_source(stored_documents[at])
                    language = languages[at] if readable[at] else self._analyser.language_of_metadata(source.values)
                    excerpt = _metadata_excerpt(plan.finder, source, anywhere, language)
                terms = tuple(dict.fromkeys([plan.terms[leaf] for leaf in anywhere]))
            if excerpt is None:
                excerpt = cutting.beginning(text)
            matching = plan.finder.marks(excerpt) if marks else None
            hits.append(IndexHit(keys[at], float(score), excerpt, terms, matching))
        return tuple(hits)

    def _matches(
        self, compiler: Compiler, keys: Sequence[str], leaves: Sequence[CompiledLeaf]
    ) -> Mapping[tuple[int, int], list[bool]]:
        """Return, by the engine's address, whether each leaf matches anywhere, and then whether in metadata."""
        matches: dict[tuple[int, int], list[bool]] = defaultdict(list)
        queries = [*(each.anywhere for each in leaves), *(each.in_metadata for each in leaves)] if keys else []
        for some in portions(queries, MATCHES):
            for sum_, address in self._searcher.search(compiler.matching(keys, some), len(keys), count=False).hits:
                matches[_place(address)] += [bool(int(sum_) >> n & 1) for n in range(len(some))]
        return matches

    def _facets(
        self, compiler: Compiler, query: Query, search: Search, compiled_query: CompiledQuery
    ) -> tuple[tuple[FacetCounts, ...], int | None]:
        fed = search.facet_hits
        if not search.facets:
            return (), None
        if fed is None or fed > MOST_FED or self._searcher.count(query) <= fed:
            fed = None
        elif fed == 0:
            query = Query.empty_query()
        else:
            first = msgspec.structs.replace(search, offset=0, limit=fed, total=False)
            ranked_hits, _ = self._page(query, first, compiled_query)
            numbers = self._searcher.numbers(fields.NUMBER, [address for _, address in ranked_hits])
            query = all_of([query, terms(fields.NUMBER, numbers)])
        return FacetCounter(self._searcher, compiler.comparison).count(query, search.facets), fed


def _metadata_excerpt(
    finder: excerpts.Finder, source: fields.Source, leaves: Collection[int], language: str
) -> str | None:
    # A hit shows its name anyway.
    name = source.values.get("object_name", ())
    found_excerpts = (
        finder.excerpt(value, leaves, language=language)
        for _, value in keyword_values(source.values, source.ids)
        if value not in name
    )
    return next((excerpt for excerpt in found_excerpts if excerpt is not None), None)


def _place(address: DocAddress) -> tuple[int, int]:
    return address.segment_ord, address.doc
