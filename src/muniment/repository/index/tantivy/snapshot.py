"""One snapshot of the embedded index, and how it answers: the page, the total, terms, excerpts, facets."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import tantivy
from tantivy import DocAddress, FieldType, Occur, Order, Query

from muniment.clock import Instant
from muniment.repository.aql.tree import Phrase
from muniment.repository.aql.values import keyword_values
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import Answer, Facet, IndexHit, Search, Visible
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import excerpts, failures, fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.index.tantivy.compile import MARKS, Compiler, Leaf, leaves
from muniment.repository.index.text import normal

REACH = 2_000
"""Hits whose ties of score are ordered by counter; deeper pages take ties as the engine keeps them."""

Ranked: TypeAlias = tuple[float, DocAddress]
"""A hit as the engine names it, with its score, or with the value that it is ordered by."""

_BESIDE = 200
"""Hits asked for beyond a page, to see whether it ends among equals, and who they all are."""

_FURTHER = 4
"""How many times as many are asked for when that was not all of them."""

_SEGMENT_BUCKETS = 65_000
_EVERY_BATCH = 500


class TantivySnapshot:
    """The index as of one commit; any thread may ask it. ``dated`` says whether its format knows modifications."""

    def __init__(
        self,
        index: tantivy.Index,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        analyser: Analyser,
        *,
        dated: bool,
    ) -> None:
        self._index = index
        self._searcher = searcher
        self._schema = schema
        self._analyser = analyser
        self._dated = dated
        self._position = fields.read_position(searcher, schema)

    @property
    def position(self) -> Position:
        """The position of the change log that this snapshot is true to."""
        return self._position

    def search(self, search: Search) -> Answer:
        """Answer a search: the best first, without keywords the one modified last; equals by counter.

        A page's order is that of one snapshot; a commit between two pages may move hits. Raises BadQuery for a
        property that cannot be one, IndexUnavailable when the engine fails.
        """
        with failures.refused("a search failed"):
            compiler = Compiler(self._index, self._searcher, self._schema, self._analyser, search.statistics)
            query = compiler.search(search.query.types, search.query.condition, search.visible)
            wanted = list(dict.fromkeys(leaves(search.query.condition)))
            found, total = self._page(query, search, scored=bool(wanted))
            hits = self._hits(compiler, search.visible, found, wanted) if found else ()
            return Answer(hits, total, {facet.name: self._facet(query, facet) for facet in search.facets})

    def documents(self) -> Iterator[Document]:
        """Read every document as the index keeps it, for the checker; doubled keys come doubled."""
        everything, seen = Query.all_query(), 0
        while True:
            with failures.refused("a search failed"):
                hits = self._searcher.search(
                    everything, _EVERY_BATCH, count=False, order_by_field=fields.NUMBER, offset=seen, order=Order.Asc
                ).hits
                stored = [self._searcher.doc(address) for _, address in hits]
            for document in stored:
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
            seen += len(hits)

    def _page(self, query: Query, search: Search, scored: bool) -> tuple[list[Ranked], int | None]:
        """Find the page's hits, and with them the total where it is asked for."""
        limit, offset = max(search.limit, 0), search.offset
        if limit == 0:
            return [], _count(self._searcher.search(query, 1, count=search.total))
        if not scored:
            order = self._newest if self._dated else self._by_number
            return order(query, offset, limit, total=search.total)
        if offset >= REACH:
            found = self._searcher.search(query, limit, count=search.total, offset=offset)
            return list(found.hits), _count(found)
        end = offset + limit
        asked = end + _BESIDE
        found = self._searcher.search(query, asked, count=search.total)
        ranked = list(found.hits)
        while len(ranked) == asked <= REACH and ranked[end - 1][0] == ranked[-1][0]:
            asked = min(_FURTHER * asked, REACH + 1)
            ranked = list(self._searcher.search(query, asked, count=False).hits)
        if end < len(ranked) <= REACH:
            ranked = [hit for hit in ranked if hit[0] >= ranked[end - 1][0]]
        return self._ties_ordered(ranked)[offset:end], _count(found)

    def _ties_ordered(self, ranked: list[Ranked]) -> list[Ranked]:
        """Order ties by counter, save those that reach over REACH: they would differ from page to page."""
        last = ranked[REACH][0] if len(ranked) > REACH else None
        whole = len(ranked) if last is None else next(at for at, hit in enumerate(ranked) if hit[0] <= last)
        head = ranked[:whole]
        return self._ordered(head) + ranked[whole:]

    def _newest(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        """Find a page of what was modified last, in the exact order however deep it is.

        The engine orders by one field. So objects of one instant within the page are ordered here, and those of an
        instant that reaches over an edge of the page are asked for apart, by counter.
        """
        ahead = min(offset, 1)
        found = self._searcher.search(
            query,
            ahead + limit + 1,
            count=total,
            order_by_field=fields.MODIFIED,
            offset=offset - ahead,
            order=Order.Desc,
        )
        ranked = list(found.hits)
        before, page, after = ranked[:ahead], ranked[ahead : ahead + limit], ranked[ahead + limit :]
        beyond = {instant for instant, _ in (*before, *after)}
        in_order: list[Ranked] = []
        for instant, group in itertools.groupby(self._ordered(page), key=lambda hit: hit[0]):
            some = list(group)
            if instant in beyond:
                passed = offset - self._count_later(query, int(instant)) if offset and not in_order else 0
                some = self._modified_at(query, int(instant), passed, len(some))
            in_order += some
        return [(0.0, address) for _, address in in_order], _count(found)

    def _count_later(self, query: Query, instant: Instant) -> int:
        later = Query.range_query(self._schema, fields.MODIFIED, FieldType.Integer, instant, include_lower=False)
        return _count(self._searcher.search(_both(query, later), 1)) or 0

    def _modified_at(self, query: Query, instant: Instant, passed: int, limit: int) -> list[Ranked]:
        """Find what was modified at one instant, by counter."""
        then = Query.term_query(self._schema, fields.MODIFIED, instant, "basic")
        return self._by_number(_both(query, then), passed, limit, total=False)[0]

    def _by_number(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        found = self._searcher.search(
            query, limit, count=total, order_by_field=fields.NUMBER, offset=offset, order=Order.Asc
        )
        return [(0.0, address) for _, address in found.hits], _count(found)

    def _ordered(self, hits: list[Ranked]) -> list[Ranked]:
        """Order hits by their score (or instant), the greatest first, then by counter."""
        numbers = self._searcher.fast_field_values(fields.NUMBER, [address for _, address in hits])
        in_order = sorted(zip(hits, numbers, strict=True), key=lambda each: (-each[0][0], each[1] or 0))
        return [hit for hit, _ in in_order]

    def _hits(
        self,
        compiler: Compiler,
        visible: Visible,
        found: Sequence[Ranked],
        wanted: Sequence[Leaf],
    ) -> tuple[IndexHit, ...]:
        stored = [self._searcher.doc(address) for _, address in found]
        keys = [fields.read_key(document) for document in stored]
        content, metadata = ([compiler.leaf(leaf, where) for leaf in wanted] for where in (True, False))
        marks = self._marks(compiler, keys, [*content, *metadata])
        finder = excerpts.Finder(self._analyser, wanted)
        spellings = [(leaf, spelled(leaf)) for leaf in wanted]
        hits = []
        for (score, address), key, document in zip(found, keys, stored, strict=True):
            matched, readable = marks[_place(address)], visible.may_read(fields.read_kept(document))
            said = [leaf for leaf, here in zip(wanted, matched, strict=False) if here and readable]
            named = [leaf for leaf, here in zip(wanted, matched[len(wanted) :], strict=True) if here]
            text = fields.read_text(document) if readable else ""
            excerpt = finder.excerpt(text, said) if text and said else None
            if excerpt is None and named:
                excerpt = _metadata_excerpt(finder, fields.read_source(document), named)
            terms = dict.fromkeys([spelling for leaf, spelling in spellings if leaf in said or leaf in named])
            hits.append(
                IndexHit(key, float(score), excerpts.beginning(text) if excerpt is None else excerpt, tuple(terms))
            )
        return tuple(hits)

    def _marks(
        self, compiler: Compiler, keys: Sequence[str], queries: Sequence[Query]
    ) -> Mapping[tuple[int, int], list[bool]]:
        """Say of each object of a page which of the queries find it."""
        marks: dict[tuple[int, int], list[bool]] = defaultdict(list)
        for start in range(0, len(queries), MARKS):
            some = queries[start : start + MARKS]
            for sum_, address in self._searcher.search(compiler.marking(keys, some), len(keys), count=False).hits:
                marks[_place(address)] += [bool(int(sum_) >> n & 1) for n in range(len(some))]
        return marks

    def _facet(self, query: Query, facet: Facet) -> tuple[tuple[str, int], ...]:
        """Count exactly: with the engine's own segment size the counts of several segments are wrong."""
        if facet.limit < 1:
            return ()
        asked = {
            kind: {
                "terms": {
                    "field": f"{fields.PROPERTIES}.{kind}.{facet.name}",
                    "size": min(facet.limit, _SEGMENT_BUCKETS),
                    "segment_size": _SEGMENT_BUCKETS,
                }
            }
            for kind in "vifb"
        }
        answered = msgspec.convert(self._searcher.aggregate(query, asked), dict[str, _Buckets], strict=False)
        counted = [
            (_shown(kind, bucket.key), bucket.doc_count)
            for kind, of_kind in answered.items()
            for bucket in of_kind.buckets
        ]
        return tuple(sorted(counted, key=lambda each: (-each[1], each[0]))[: facet.limit])


class _Bucket(msgspec.Struct):
    key: str | int | float
    doc_count: int


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]


def spelled(leaf: Leaf) -> str:
    """Write a leaf as it is shown among the matched terms."""
    if isinstance(leaf, Phrase):
        return leaf.text
    first = next((at for at, character in enumerate(leaf.text) if character.isalnum()), 0)
    return leaf.text[first:] + ("*" if leaf.prefix else "")


def _metadata_excerpt(finder: excerpts.Finder, source: fields.Source, named: Sequence[Leaf]) -> str | None:
    found = (finder.excerpt(normal(value), named) for _, value in keyword_values(source.values, source.ids))
    return next((excerpt for excerpt in found if excerpt is not None), None)


def _shown(kind: str, key: str | float) -> str:
    if kind == "v":
        return str(key).removeprefix(fields.MARKER)
    if kind == "b":
        return "true" if float(key) else "false"
    return str(fields.double(int(key))) if kind == "f" else str(int(key))


def _both(query: Query, other: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, other)])


def _count(found: tantivy.SearchResult) -> int | None:
    counted: int | None = getattr(found, "count", None)  # the engine's stubs do not know it
    return counted


def _place(address: DocAddress) -> tuple[int, int]:
    return address.segment_ord, address.doc
