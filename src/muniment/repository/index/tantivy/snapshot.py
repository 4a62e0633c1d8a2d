"""How does one snapshot of the built-in index answer a search? With a page, a total, terms, excerpts and facets."""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, assert_never

import msgspec
import tantivy
from tantivy import DocAddress, FieldType, Occur, Order, Query

from muniment.clock import Instant
from muniment.memories import Memory
from muniment.repository.aql.tree import Phrase, Term, Wild
from muniment.repository.aql.values import keyword_values
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import Answer, FacetCounts, IndexHit, Search, Visible
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import excerpts, failures, fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.compile import (
    MATCHES,
    CompiledLeaf,
    CompiledQuery,
    Compiler,
    Leaf,
    PermissionMemory,
)
from muniment.repository.index.tantivy.facets import FacetCounter
from muniment.repository.index.text import normal

REACH = 2_000
"""The depth up to which hits of equal score are ordered by counter; deeper hits keep the engine's order."""

Ranked: TypeAlias = tuple[float, DocAddress]
"""The engine's address of a hit, with its score or the value by which it is ordered."""

_BESIDE = 200
"""How many hits beyond a page are read first, to find all hits whose score equals that of the last hit."""

_FURTHER = 4
"""The factor by which more hits are read when the first ones do not include all of them."""

MOST_FED = 10_000
"""A search for fewer hits to feed the facets than this is obeyed; more hits are counted as fast as all of them."""

_EVERY_BATCH = 500

_PLAN_BYTES, _PERMITTED_ACLS = 8_000_000, 200_000
_SIZES = 10
"""How many times the size of a query its plan may have."""

_encoder = msgspec.json.Encoder()


class _Plan(NamedTuple):
    """What answers a query, whoever asks it: its queries of the engine, what finds excerpts, and the terms to show."""

    compiled: CompiledQuery
    finder: excerpts.Finder
    terms: tuple[str, ...]


class SnapshotMemory:
    """What the snapshots of one index remember: queries as they were compiled, and the queries for what ACLs permit.

    Neither depends on the documents.
    """

    def __init__(self) -> None:
        self.plans: Memory[bytes, _Plan] = Memory(_PLAN_BYTES)
        self.permissions: PermissionMemory = Memory(_PERMITTED_ACLS)


class TantivySnapshot:
    """The index as of one commit (a Snapshot). Any thread may use it. ``dated``: its format has modification times."""

    def __init__(
        self,
        index: tantivy.Index,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        analyser: Analyser,
        memory: SnapshotMemory,
        *,
        dated: bool,
    ) -> None:
        self._index = index
        self._searcher = searcher
        self._schema = schema
        self._analyser = analyser
        self._memory = memory
        self._dated = dated
        self._position = fields.read_position(searcher, schema)

    @property
    def position(self) -> Position:
        """The position in the change log up to which this snapshot is complete."""
        return self._position

    def search(self, search: Search) -> Answer:
        """Answer a search: the best hits first, or without keywords the newest first; equal hits by counter.

        Each page has the order of its own snapshot, so a commit between two pages may move hits. Raises BadQuery for a
        name that no property can have, IndexUnavailable when the engine fails.
        """
        with failures.refused("a search failed"):
            compiler = Compiler(
                *(self._index, self._searcher, self._schema, self._analyser, self._memory.permissions),
                search.statistics,
            )
            plan = self._plan(compiler, search)
            query = compiler.visible(plan.compiled, search.visible)
            ranked, total = self._page(query, search, scored=bool(plan.compiled.leaves))
            hits = self._bare_hits(ranked) if search.bare else ()
            if ranked and not search.bare:
                hits = self._hits(compiler, search.visible, ranked, plan)
            counts, fed = self._facets(compiler, query, search, scored=bool(plan.compiled.leaves))
            return Answer(hits, total, counts, fed)

    def documents(self) -> Iterator[Document]:
        """Read every document of the index, for the checker; documents with the same key are all returned."""
        all_documents, offset = Query.all_query(), 0
        while True:
            with failures.refused("a search failed"):
                hits = self._searcher.search(
                    all_documents,
                    _EVERY_BATCH,
                    count=False,
                    order_by_field=fields.NUMBER,
                    offset=offset,
                    order=Order.Asc,
                ).hits
                stored_documents = [self._searcher.doc(address) for _, address in hits]
            for document in stored_documents:
                if document.get_first(fields.KEY) != fields.POSITION:
                    source = fields.read_source(document)
                    text = fields.read_text(document)
                    owner = fields.owner_key(source)
                    yield Document(
                        source.key,
                        source.seq,
                        source.modified,
                        source.type,
                        source.acl,
                        owner,
                        source.values,
                        text,
                        source.ids,
                    )
            if len(hits) < _EVERY_BATCH:
                return
            offset += len(hits)

    def _plan(self, compiler: Compiler, search: Search) -> _Plan:
        # Numbers and truth values of one size are equal in Python, and differ as JSON.
        written = _encoder.encode(search.query)
        plan = self._memory.plans.recall(written) if search.statistics is None else None
        if plan is not None:
            return plan
        compiled = compiler.compile(search.query)
        query_leaves = [each.leaf for each in compiled.leaves]
        finder = excerpts.Finder(self._analyser, query_leaves)
        plan = _Plan(compiled, finder, tuple(map(shown_term, query_leaves)))
        return plan if search.statistics is not None else self._memory.plans.keep(written, plan, _SIZES * len(written))

    def _page(self, query: Query, search: Search, scored: bool) -> tuple[list[Ranked], int | None]:
        """Return the hits of the page, and the total if the search wants it."""
        limit, offset = max(search.limit, 0), search.offset
        if limit == 0:
            return [], _count(self._searcher.search(query, 1, count=search.total))
        if not scored:
            order = self._newest if self._dated else self._by_number
            return order(query, offset, limit, total=search.total)
        if offset >= REACH:
            result = self._searcher.search(query, limit, count=search.total, offset=offset)
            return list(result.hits), _count(result)
        end = offset + limit
        count = end + _BESIDE
        result = self._searcher.search(query, count, count=search.total)
        ranked = list(result.hits)
        while len(ranked) == count <= REACH and ranked[end - 1][0] == ranked[-1][0]:
            count = min(_FURTHER * count, REACH + 1)
            ranked = list(self._searcher.search(query, count, count=False).hits)
        if end < len(ranked) <= REACH:
            ranked = [hit for hit in ranked if hit[0] >= ranked[end - 1][0]]
        return self._ties_ordered(ranked)[offset:end], _count(result)

    def _ties_ordered(self, ranked: list[Ranked]) -> list[Ranked]:
        """Order hits of equal score by counter, except a group across REACH, whose order would differ by page."""
        last_score = ranked[REACH][0] if len(ranked) > REACH else None
        complete = (
            len(ranked) if last_score is None else next(at for at, hit in enumerate(ranked) if hit[0] <= last_score)
        )
        head = ranked[:complete]
        return self._ordered(head) + ranked[complete:]

    def _newest(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        """Return a page of objects, the last modified first. The order is exact however deep the page is.

        The engine orders by one field only, so this method orders the objects of the same instant. If the objects of an
        instant lie on both sides of an edge of the page, a query of its own reads them by counter.
        """
        ahead = min(offset, 1)
        result = self._searcher.search(
            query,
            ahead + limit + 1,
            count=total,
            order_by_field=fields.MODIFIED,
            offset=offset - ahead,
            order=Order.Desc,
        )
        ranked = list(result.hits)
        before, page, after = ranked[:ahead], ranked[ahead : ahead + limit], ranked[ahead + limit :]
        beyond = {instant for instant, _ in (*before, *after)}
        in_order: list[Ranked] = []
        for instant, group in itertools.groupby(self._ordered(page), key=lambda hit: hit[0]):
            tied = list(group)
            if instant in beyond:
                skipped = offset - self._count_later(query, int(instant)) if offset and not in_order else 0
                tied = self._modified_at(query, int(instant), skipped, len(tied))
            in_order += tied
        return [(0.0, address) for _, address in in_order], _count(result)

    def _count_later(self, query: Query, instant: Instant) -> int:
        later = Query.range_query(self._schema, fields.MODIFIED, FieldType.Integer, instant, include_lower=False)
        return _count(self._searcher.search(_and(query, later), 1)) or 0

    def _modified_at(self, query: Query, instant: Instant, offset: int, limit: int) -> list[Ranked]:
        """Return the objects that were modified at one instant, ordered by counter."""
        at_instant = Query.term_query(self._schema, fields.MODIFIED, instant, "basic")
        return self._by_number(_and(query, at_instant), offset, limit, total=False)[0]

    def _by_number(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        result = self._searcher.search(
            query, limit, count=total, order_by_field=fields.NUMBER, offset=offset, order=Order.Asc
        )
        return [(0.0, address) for _, address in result.hits], _count(result)

    def _ordered(self, hits: list[Ranked]) -> list[Ranked]:
        """Order hits by their score (or instant), the greatest first, then by counter."""
        if all(hit[0] > lower[0] for hit, lower in itertools.pairwise(hits)):
            return hits
        numbers = self._searcher.fast_field_values(fields.NUMBER, [address for _, address in hits])
        in_order = sorted(zip(hits, numbers, strict=True), key=lambda each: (-each[0][0], each[1] or 0))
        return [hit for hit, _ in in_order]

    def _bare_hits(self, ranked: Sequence[Ranked]) -> tuple[IndexHit, ...]:
        return tuple(
            IndexHit(fields.read_key(self._searcher.doc(address)), float(score), "", ()) for score, address in ranked
        )

    def _hits(
        self,
        compiler: Compiler,
        visible: Visible,
        ranked: Sequence[Ranked],
        plan: _Plan,
    ) -> tuple[IndexHit, ...]:
        stored_documents = [self._searcher.doc(address) for _, address in ranked]
        keys = [fields.read_key(document) for document in stored_documents]
        readable = [visible.may_read(fields.read_right(document)) for document in stored_documents]
        leaves, every_term = plan.compiled.leaves, tuple(dict.fromkeys(plan.terms))
        # Where a hit has matched every leaf, and one is soon met in its text, there is no more to ask.
        sure = [plan.compiled.needs_all and may_read for may_read in readable]
        texts = [
            fields.read_text(document) if may_read else ""
            for document, may_read in zip(stored_documents, readable, strict=True)
        ]
        found = [
            plan.finder.excerpt(text, thorough=False) if is_sure else None
            for text, is_sure in zip(texts, sure, strict=True)
        ]
        open_keys = [key for key, excerpt in zip(keys, found, strict=True) if excerpt is None]
        matches = self._matches(compiler, open_keys, leaves)
        hits = []
        for at, (score, address) in enumerate(ranked):
            excerpt, terms, text = found[at], every_term, texts[at]
            if excerpt is None:
                matched = matches[_place(address)]
                in_text = [leaf for leaf in range(len(leaves)) if readable[at] and matched[leaf]]
                in_metadata = [leaf for leaf in range(len(leaves)) if matched[len(leaves) + leaf]]
                excerpt = plan.finder.excerpt(text, in_text) if text and in_text else None
                if excerpt is None and in_metadata:
                    excerpt = _metadata_excerpt(plan.finder, fields.read_source(stored_documents[at]), in_metadata)
                terms = tuple(dict.fromkeys([plan.terms[leaf] for leaf in sorted({*in_text, *in_metadata})]))
            hits.append(
                IndexHit(keys[at], float(score), excerpts.beginning(text) if excerpt is None else excerpt, terms)
            )
        return tuple(hits)

    def _matches(
        self, compiler: Compiler, keys: Sequence[str], leaves: Sequence[CompiledLeaf]
    ) -> Mapping[tuple[int, int], list[bool]]:
        """Return, for each of these objects, whether each leaf is in its content, then whether in its metadata."""
        matches: dict[tuple[int, int], list[bool]] = defaultdict(list)
        queries = [*(each.in_content for each in leaves), *(each.in_metadata for each in leaves)] if keys else []
        for start in range(0, len(queries), MATCHES):
            some = queries[start : start + MATCHES]
            for sum_, address in self._searcher.search(compiler.matching(keys, some), len(keys), count=False).hits:
                matches[_place(address)] += [bool(int(sum_) >> n & 1) for n in range(len(some))]
        return matches

    def _facets(
        self, compiler: Compiler, query: Query, search: Search, *, scored: bool
    ) -> tuple[tuple[FacetCounts, ...], int | None]:
        """Count the hits by facets; with how many hits fed them, where that was not all."""
        if not search.facets:
            return (), None
        fed, query = self._fed(query, search, scored=scored)
        counter = FacetCounter(self._searcher, compiler.comparison)
        return tuple(counter.count(query, facet) for facet in search.facets), fed

    def _fed(self, query: Query, search: Search, *, scored: bool) -> tuple[int | None, Query]:
        """Narrow a query to the first hits, where so few feed the facets."""
        fed = search.facet_hits
        if fed is None or fed > MOST_FED or (_count(self._searcher.search(query, 1)) or 0) <= fed:
            return None, query
        if fed == 0:
            return 0, Query.empty_query()
        first = msgspec.structs.replace(search, offset=0, limit=fed, total=False)
        ranked, _ = self._page(query, first, scored=scored)
        numbers = self._searcher.fast_field_values(fields.NUMBER, [address for _, address in ranked])
        return fed, _and(query, Query.term_set_query(self._schema, fields.NUMBER, [number or 0 for number in numbers]))


def shown_term(leaf: Leaf) -> str:
    """Return the text of a leaf as the hit's terms show it."""
    match leaf:
        case Phrase() | Wild():
            return leaf.text
        case Term():
            start = next((at for at, character in enumerate(leaf.text) if character.isalnum()), 0)
            return leaf.text[start:]
        case _:
            assert_never(leaf)


def _metadata_excerpt(finder: excerpts.Finder, source: fields.Source, leaves: Collection[int]) -> str | None:
    found_excerpts = (finder.excerpt(normal(value), leaves) for _, value in keyword_values(source.values, source.ids))
    return next((excerpt for excerpt in found_excerpts if excerpt is not None), None)


def _and(query: Query, other: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, other)])


def _count(result: tantivy.SearchResult) -> int | None:
    number: int | None = getattr(result, "count", None)  # the engine's stubs do not know it
    return number


def _place(address: DocAddress) -> tuple[int, int]:
    return address.segment_ord, address.doc
