"""How does one snapshot of the built-in index answer a search? With a page, a total, terms, excerpts and facets."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, assert_never

import msgspec
import tantivy
from tantivy import DocAddress, Query

from muniment.memories import Memory
from muniment.repository.aql.tree import Phrase, Term, Wild
from muniment.repository.aql.values import keyword_values
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import Answer, Facet, IndexHit, Order, Search, Visible
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import excerpts, failures, fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.compile import MARKS, CompiledQuery, Compiler, Leaf, PermissionMemory
from muniment.repository.index.tantivy.order import Ranked, Ranking, count_of
from muniment.repository.index.text import normal
from muniment.repository.refusals import IndexUnavailable

_FacetKind = Literal["v", "i", "f", "b"]
_FACET_KINDS: tuple[_FacetKind, ...] = ("v", "i", "f", "b")

_SEGMENT_BUCKETS = 65_000
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
        self._ranking = Ranking(searcher, schema)
        self._dated = dated
        self._position = fields.read_position(searcher, schema)

    @property
    def position(self) -> Position:
        """The position in the change log up to which this snapshot is complete."""
        return self._position

    @property
    def numbered(self) -> bool:
        """Whether the index knows the counters of its objects; only the former formats do not."""
        return self._dated

    def search(self, search: Search) -> Answer:
        """Answer a search: the best hits first, or without keywords the newest first; equal hits by counter.

        Each page has the order of its own snapshot, so a commit between two pages may move hits. Raises BadQuery for a
        name that no property can have, IndexUnavailable when the engine fails.
        """
        with failures.refused("a search failed"):
            compiler, plan, query = self._compiled(search)
            ranked, total = self._page(query, search, scored=bool(plan.compiled.leaves))
            hits = self._hits(compiler, search.visible, ranked, plan) if ranked else ()
            return Answer(hits, total, {facet.name: self._facet(query, facet) for facet in search.facets})

    def counters(self, search: Search, order: Order) -> list[int]:
        """Return the counters of a search's hits in this order. Without keywords, the most relevant are the newest.

        Raises as ``search``, and IndexUnavailable if the index does not know them.
        """
        if not self.numbered:
            raise IndexUnavailable("The index is being made anew for this release: try again in a while.")
        with failures.refused("a search failed"):
            _, plan, query = self._compiled(search)
            if order == "relevance" and not plan.compiled.leaves:
                order = "newest"
            return self._ranking.counters(query, order, search.offset, search.limit)

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
                    order=tantivy.Order.Asc,
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

    def _compiled(self, search: Search) -> tuple[Compiler, _Plan, Query]:
        compiler = Compiler(
            *(self._index, self._searcher, self._schema, self._analyser, self._memory.permissions),
            search.statistics,
        )
        plan = self._plan(compiler, search)
        query = compiler.visible(plan.compiled, search.visible)
        return compiler, plan, query if search.among is None else compiler.among(query, search.among)

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
            return [], count_of(self._searcher.search(query, 1, count=search.total))
        if search.among is not None and len(search.among) <= limit:
            result = self._searcher.search(query, limit, count=search.total)
            return [(score if scored else 0.0, address) for score, address in result.hits], count_of(result)
        by_score, by_modification = self._ranking.by_score, self._ranking.by_modification
        rank = by_score if scored else by_modification if self._dated else self._ranking.by_counter
        return rank(query, offset, limit, total=search.total)

    def _hits(
        self,
        compiler: Compiler,
        visible: Visible,
        ranked: Sequence[Ranked],
        plan: _Plan,
    ) -> tuple[IndexHit, ...]:
        stored_documents = [self._searcher.doc(address) for _, address in ranked]
        keys = [fields.read_key(document) for document in stored_documents]
        leaves = plan.compiled.leaves
        queries = [*(each.in_content for each in leaves), *(each.in_metadata for each in leaves)]
        marks = self._marks(compiler, keys, queries)
        hits = []
        for (score, address), key, document in zip(ranked, keys, stored_documents, strict=True):
            matched, readable = marks[_place(address)], visible.may_read(fields.read_right(document))
            in_text = [at for at in range(len(leaves)) if readable and matched[at]]
            in_metadata = [at for at in range(len(leaves)) if matched[len(leaves) + at]]
            text = fields.read_text(document) if readable else ""
            excerpt = plan.finder.excerpt(text, in_text) if text and in_text else None
            if excerpt is None and in_metadata:
                excerpt = _metadata_excerpt(plan.finder, fields.read_source(document), in_metadata)
            terms = dict.fromkeys([plan.terms[at] for at in sorted({*in_text, *in_metadata})])
            hits.append(
                IndexHit(key, float(score), excerpts.beginning(text) if excerpt is None else excerpt, tuple(terms))
            )
        return tuple(hits)

    def _marks(
        self, compiler: Compiler, keys: Sequence[str], queries: Sequence[Query]
    ) -> Mapping[tuple[int, int], list[bool]]:
        """Return, for each object of a page, whether each of the queries finds it."""
        marks: dict[tuple[int, int], list[bool]] = defaultdict(list)
        for start in range(0, len(queries), MARKS):
            some = queries[start : start + MARKS]
            for sum_, address in self._searcher.search(compiler.marking(keys, some), len(keys), count=False).hits:
                marks[_place(address)] += [bool(int(sum_) >> n & 1) for n in range(len(some))]
        return marks

    def _facet(self, query: Query, facet: Facet) -> tuple[tuple[str, int], ...]:
        """Return the values of the property with exact counts.

        With the engine's default segment size, counts over several segments would be wrong.
        """
        if facet.limit < 1:
            return ()
        request: dict[_FacetKind, object] = {
            kind: {
                "terms": {
                    "field": f"{fields.PROPERTIES}.{kind}.{facet.name}",
                    "size": min(facet.limit, _SEGMENT_BUCKETS),
                    "segment_size": _SEGMENT_BUCKETS,
                }
            }
            for kind in _FACET_KINDS
        }
        aggregation = self._searcher.aggregate(query, request)
        buckets_by_kind = msgspec.convert(aggregation, dict[_FacetKind, _Buckets], strict=False)
        counts = [
            (_bucket_label(kind, bucket.key), bucket.doc_count)
            for kind, of_kind in buckets_by_kind.items()
            for bucket in of_kind.buckets
        ]
        return tuple(sorted(counts, key=lambda each: (-each[1], each[0]))[: facet.limit])


class _Bucket(msgspec.Struct):
    key: str | int | float
    doc_count: int


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]


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


def _bucket_label(kind: _FacetKind, key: str | float) -> str:
    match kind:
        case "v":
            return str(key).removeprefix(fields.MARKER)
        case "b":
            return "true" if float(key) else "false"
        case "f":
            return str(fields.double(int(key)))
        case "i":
            return str(int(key))
        case _:
            assert_never(kind)


def _place(address: DocAddress) -> tuple[int, int]:
    return address.segment_ord, address.doc
