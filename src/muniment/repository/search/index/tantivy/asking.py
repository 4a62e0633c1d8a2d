"""How does one searcher of the engine answer what searches ask of it?

A terms aggregation counts wrongly over several segments unless each reports every term: a property with more values is
refused.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import tantivy
from tantivy import DocAddress, Query

from muniment.database.connections import portions
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Extents, Ranked, ValueCounts
from muniment.repository.search.index.questions.rarity import idf
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.combining import term
from muniment.repository.search.index.tantivy.order import Metric
from muniment.repository.search.index.tantivy.searching import WatchedSearcher, count_of


class HeldDocument(NamedTuple):
    """What is stored of one document (a StoredDocument)."""

    stored: tantivy.Document

    def found_by(self) -> layout.FoundBy:
        return layout.read_found_by(fields.read_source_bytes(self.stored))

    def source(self) -> layout.Source:
        return layout.read_source(fields.read_source_bytes(self.stored))

    def text(self) -> str:
        return fields.read_text(self.stored)


class TantivySearcher:
    """Asks one commit (a Searcher)."""

    def __init__(self, searcher: WatchedSearcher) -> None:
        self._searcher = searcher
        self.count = searcher.count
        self.numbers = searcher.numbers
        self.beginning = searcher.terms_with_prefix
        self._documents = _counted_documents(searcher)

    def search(
        self, query: Query, limit: int, *, count: bool = False, offset: int = 0
    ) -> tuple[Sequence[Ranked], int | None]:
        result = self._searcher.search(query, limit, count=count, offset=offset)
        return result.hits, count_of(result)

    @property
    def counts_together(self) -> bool:
        return False

    def count_all(self, queries: Sequence[Query]) -> list[int]:
        return list(map(self.count, queries))

    def documents(self) -> int:
        return self._searcher.num_docs

    def place(self, address: DocAddress) -> tuple[int, int]:
        return address.segment_ord, address.doc

    def read(self, address: DocAddress) -> HeldDocument:
        return HeldDocument(self._searcher.doc(address))

    def own_weight(self, field: str, words: Sequence[str]) -> float:
        return math.fsum(idf(self._searcher.doc_freq(field, word), self._documents) for word in words)

    def is_held(self, field: str, word: str) -> bool:
        return self._searcher.doc_freq(field, word) > 0

    def values_and_extents(
        self, query: Query, properties: Mapping[str, tuple[str, str]], dates: Collection[str]
    ) -> tuple[dict[str, ValueCounts], Extents]:
        size = {"size": layout.MOST_VALUES, "segment_size": layout.MOST_VALUES}
        request: dict[str, object] = {
            f"values {each}": {"terms": {"field": fields.path(*of), **size}} for each, of in properties.items()
        }
        for name in dates:
            of_date = {"field": fields.path("i", name)}
            request |= {f"min {name}": {"min": of_date}, f"max {name}": {"max": of_date}}
        answer = self._searcher.aggregate(query, request)
        extents: dict[str, tuple[int, int] | None] = {}
        for name in dates:
            low, high = (msgspec.convert(answer[f"{end} {name}"], Metric).value for end in ("min", "max"))
            extents[name] = None if low is None or high is None else (int(low), int(high))
        return {
            each: msgspec.convert(answer[f"values {each}"], _Terms, strict=False).counts() for each in properties
        }, extents

    def in_ranges(self, query: Query, name: str, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for some in portions(ranges, layout.MOST_RANGES):
            bounds = [{"from": low, "to": high} for low, high in some]
            request = {"ranges": {"range": {"field": fields.path("i", name), "ranges": bounds}}}
            answer = msgspec.convert(self._searcher.aggregate(query, request)["ranges"], _Ranges, strict=False)
            counts |= {
                int(each.from_): each.doc_count
                for each in answer.buckets
                if each.from_ is not None and each.to is not None
            }
        return counts


class _Term(msgspec.Struct):
    key: str | int | float
    doc_count: int


class _Terms(msgspec.Struct):
    buckets: list[_Term]
    sum_other_doc_count: int = 0
    doc_count_error_upper_bound: int | None = 0

    def counts(self) -> ValueCounts:
        values = [
            (each.key.removeprefix(fields.MARKER) if isinstance(each.key, str) else int(each.key), each.doc_count)
            for each in self.buckets
        ]
        return ValueCounts(values, complete=not (self.sum_other_doc_count or self.doc_count_error_upper_bound))


class _Range(msgspec.Struct, rename={"from_": "from"}):
    doc_count: int
    from_: float | None = None
    to: float | None = None


class _Ranges(msgspec.Struct):
    buckets: list[_Range]


def _counted_documents(searcher: WatchedSearcher) -> int:
    """Count documents as the engine's weights do: deleted ones, too, until a merge."""
    position = term(layout.KEY, layout.POSITION)
    hits = searcher.search(position, 1, count=False).hits
    if not hits:
        return searcher.num_docs
    explained = json.loads(position.explain(searcher.engine, hits[0][1]).to_json())["details"][1]
    return int(explained["details"][1]["value"])
