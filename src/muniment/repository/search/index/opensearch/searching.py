"""How does one point in time answer what searches ask of it?"""

import itertools
import time
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from muniment.database.connections import portions
from muniment.repository.search.index.contract import Order, SortedBy
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.client import Cluster, ClusterAway, Missing
from muniment.repository.search.index.opensearch.queries import Query, literal
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.engine import Extents, Ranked, ValueCounts

MOST_NUMBERS = 20_000
"""A search by meaning is compared with at most so many objects; with more, it goes by words alone."""

KEEP_SECONDS = 300
"""A point in time ends when nothing was asked of it for so long."""

_COUNTED = 100
_BROUGHT = {fields.SOURCE: 201, fields.TEXT: 25}
"""A page of at most so many hits brings what is stored of each; otherwise so many are fetched when one is read."""

_ALL = (fields.SOURCE, fields.TEXT)

_NUMBERS = (layout.NUMBER, layout.MODIFIED, layout.EMBEDDING)


class FoundDocument:
    """A document that was found (an Address), and what is stored of it (a StoredDocument), perhaps fetched later."""

    __slots__ = ("_point", "id", "numbers", "page", "sort", "stored", "version")

    def __init__(self, point: "PointInTime", page: "list[FoundDocument]", hit: Mapping[str, Any]) -> None:
        self._point, self.page = point, page
        self.id = str(hit["_id"])
        self.stored: dict[str, str | None] = hit.get("_source", {})
        self.numbers: Mapping[str, list[int]] = hit.get("fields", {})
        self.sort: list[Any] = hit.get("sort", [])
        self.version: int = hit.get("_version", 0)

    def found_by(self) -> layout.FoundBy:
        return layout.read_found_by(self.source_bytes())

    def source(self) -> layout.Source:
        return layout.read_source(self.source_bytes())

    def text(self) -> str:
        return self._held(fields.TEXT) or ""

    def source_bytes(self) -> bytes:
        """Raises KeyError."""
        source = self._held(fields.SOURCE)
        if source is None:
            raise KeyError(self.id)
        return source.encode()

    def number(self, field: str) -> int:
        return int(self.numbers[field][0]) if field in self.numbers else 0

    def _held(self, field: str) -> str | None:
        if field not in self.stored:
            self._point.fetch(self.page[self.page.index(self) :], field)
        return self.stored[field]


class PointInTime:
    """One state of an index (a Searcher and a Ranking); documents that are gone, and the position, are in no answer."""

    def __init__(self, cluster: Cluster, pit: str) -> None:
        self._cluster = cluster
        self._pit = pit
        self._count: int | None = None
        self.is_over = False
        self.asked = time.monotonic()
        """When it was kept alive last, at the earliest."""

    def search(
        self, query: Query, limit: int, *, count: bool = False, offset: int = 0
    ) -> tuple[Sequence[Ranked], int | None]:
        hits, total = self._page(
            query, [{"_score": "desc"}, {layout.NUMBER: "asc"}], offset, limit, count=count, stored=(fields.SOURCE,)
        )
        return [(float(hit.sort[0]), hit) for hit in hits], total

    def count(self, query: Query) -> int:
        return self._total(self.ask({"query": query, "size": 0, "track_total_hits": True}))

    @property
    def counts_together(self) -> bool:
        return True

    def count_all(self, queries: Sequence[Query]) -> list[int]:
        counts: list[int] = []
        for some in portions(queries, _COUNTED):
            filters = {str(at): {"filter": query} for at, query in enumerate(some)}
            answer = self._aggregate({"match_all": {}}, filters)
            counts += [int(answer[str(at)]["doc_count"]) for at in range(len(some))]
        return counts

    def documents(self) -> int:
        if self._count is None:
            self._count = self.count({"match_all": {}})
        return self._count

    def numbers(self, field: str, addresses: Sequence[FoundDocument]) -> list[int]:
        return [hit.number(field) for hit in addresses]

    def place(self, address: FoundDocument) -> Hashable:
        return address.id

    def read(self, address: FoundDocument) -> FoundDocument:
        return address

    def beginning(self, field: str, letters: str, query: Query) -> list[tuple[str, int]]:
        words = {"field": fields.LISTED[field], "include": literal(letters) + ".*"}
        answer = self._aggregate(query, {"words": {"terms": {**words, **_ALL_VALUES}}})
        return [(str(each["key"]), int(each["doc_count"])) for each in answer["words"]["buckets"]]

    def own_weight(self, _field: str, words: Sequence[str]) -> float:
        """The engine counts no documents, and a phrase as often as it has words."""
        return float(len(words))

    def is_held(self, _field: str, _word: str) -> bool:
        return True

    def values_and_extents(
        self, query: Query, properties: Mapping[str, tuple[str, str]], dates: Collection[str]
    ) -> tuple[dict[str, ValueCounts], Extents]:
        request: dict[str, object] = {
            f"values {each}": {"terms": {"field": fields.path(*of), **_ALL_VALUES}} for each, of in properties.items()
        }
        for name in dates:
            of_date = {"field": fields.path("i", name)}
            request |= {f"min {name}": {"min": of_date}, f"max {name}": {"max": of_date}}
        answer = self._aggregate(query, request)
        ends = {name: (answer[f"min {name}"]["value"], answer[f"max {name}"]["value"]) for name in dates}
        extents = {name: None if None in both else (int(both[0]), int(both[1])) for name, both in ends.items()}
        return {each: _value_counts(answer[f"values {each}"]) for each in properties}, extents

    def in_ranges(self, query: Query, name: str, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for some in portions(ranges, layout.MOST_RANGES):
            bounds = [{"key": str(low), "from": low, "to": high} for low, high in some]
            request = {"ranges": {"range": {"field": fields.path("i", name), "ranges": bounds}}}
            buckets = self._aggregate(query, request)["ranges"]["buckets"]
            counts |= {int(each["key"]): int(each["doc_count"]) for each in buckets}
        return counts

    def counters(self, query: Query, order: Order, offset: int, limit: int) -> list[int]:
        if limit < 1:
            return []
        hits, _ = self._page(query, _ORDERS[order], offset, limit, count=False, stored=())
        return [hit.number(layout.NUMBER) for hit in hits]

    def by_score(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        hits, number = self._page(query, _ORDERS["relevance"], offset, limit, count=total)
        return [(float(hit.sort[0]), hit) for hit in hits], number

    def by_modification(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]:
        hits, number = self._page(query, _ORDERS["newest"], offset, limit, count=total)
        return [(0.0, hit) for hit in hits], number

    def by_counter(
        self, query: Query, offset: int, limit: int, *, total: bool, descending: bool = False
    ) -> tuple[list[Ranked], int | None]:
        order = [{layout.NUMBER: "desc" if descending else "asc"}]
        hits, number = self._page(query, order, offset, limit, count=total)
        return [(0.0, hit) for hit in hits], number

    def by_values(
        self, query: Query, sorts: Sequence[SortedBy], offset: int, limit: int
    ) -> tuple[list[int], int] | None:
        """Return None if a value on the page is a long text, a hit has the number that the engine takes for none, or a
        property is the date of creation, which the index holds only to the millisecond.
        """
        if any(sort.name in layout.CUT for sort in sorts):
            return None
        order = [*map(_order, sorts), *_ORDERS["made"]]
        extremes = {str(at): {"filter": each} for at, each in enumerate(map(_extreme, sorts)) if each is not None}
        hits, total, aggregations = self._ask_page(query, order, offset, limit, count=True, aggregations=extremes)
        is_cut = any(isinstance(value, str) and len(value) > layout.SORTED for hit in hits for value in hit.sort)
        if is_cut or any(int(each["doc_count"]) for each in aggregations.values()):
            return None
        return [hit.number(layout.NUMBER) for hit in hits], total or 0

    def numbers_of_all(self, query: Query, field: str) -> list[int]:
        if self.count(query) > MOST_NUMBERS:
            return []
        return [int(hit.sort[0]) for hit in self.walk(query, [{field: "asc"}, *_ORDERS["made"]])]

    def with_counters(self, query: Query, counters: Sequence[int]) -> list[Ranked]:
        if not counters:
            return []
        places = {counter: place for place, counter in enumerate(counters)}
        among = {"bool": {"must": [query], "filter": [{"terms": {layout.NUMBER: list(counters)}}]}}
        hits, _ = self.by_score(among, 0, len(counters), total=False)
        return sorted(hits, key=lambda each: places[each[1].number(layout.NUMBER)])

    def walk(
        self, query: Query, order: Sequence[Mapping[str, object]], size: int = fields.WINDOW
    ) -> Iterator[FoundDocument]:
        """Read all hits, of which no two are equal in this order, without what is stored."""
        body = {"query": query, "sort": list(order), "size": size, "docvalue_fields": list(_NUMBERS), "_source": False}
        while True:
            hits = self._hits(self.ask(body))
            yield from hits
            if len(hits) < size:
                return
            body = {**body, "search_after": hits[-1].sort}

    def ask(self, body: Mapping[str, object]) -> Any:
        """Ask about what lives. Raises ClusterAway if a part of the index does not answer."""
        query: Any = body["query"]
        asked = {**body, "query": {"bool": {"must": [query], "filter": [_LIVES]}}}
        pit = {"id": self._pit, "keep_alive": f"{KEEP_SECONDS}s"}
        now = time.monotonic()
        try:
            answer = checked(
                self._cluster.post("/_search", {"pit": pit, **asked}, allow_partial_search_results="false")
            )
        except Missing as missing:
            self.is_over = True
            raise ClusterAway("It was restarted, or the index is gone: try again.") from missing
        self.asked = max(self.asked, now)
        return answer

    def fetch(self, page: Sequence[FoundDocument], field: str) -> None:
        """Fetch what is stored in SOURCE or TEXT of the first hits that lack it."""
        lacking = {hit.id: hit for hit in page if field not in hit.stored}
        some = list(itertools.islice(lacking, _BROUGHT[field]))
        body = {"query": {"ids": {"values": some}}, "size": len(some), "_source": [field]}
        found = {str(hit["_id"]): hit.get("_source", {}) for hit in self.ask(body)["hits"]["hits"]}
        for key in some:
            lacking[key].stored[field] = found.get(key, {}).get(field)

    def _page(
        self,
        query: Query,
        order: Sequence[Mapping[str, object]],
        offset: int,
        limit: int,
        *,
        count: bool,
        stored: Sequence[str] = _ALL,
    ) -> tuple[list[FoundDocument], int | None]:
        brought = [field for field in stored if limit <= _BROUGHT[field]]
        hits, total, _ = self._ask_page(query, order, offset, limit, count=count, stored=brought)
        return hits, total

    def _ask_page(
        self,
        query: Query,
        order: Sequence[Mapping[str, object]],
        offset: int,
        limit: int,
        *,
        count: bool,
        stored: Sequence[str] = (),
        aggregations: Mapping[str, object] = {},
    ) -> tuple[list[FoundDocument], int | None, Mapping[str, Any]]:
        is_deep = offset + limit > fields.WINDOW
        answer: Any = {"hits": {"hits": []}}
        if count or aggregations or not is_deep:
            body = {
                "query": query,
                "sort": list(order),
                "from": 0 if is_deep else offset,
                "size": 0 if is_deep else limit,
                "track_total_hits": count,
                "docvalue_fields": list(_NUMBERS),
                "_source": list(stored) or False,
            }
            answer = self.ask({**body, "aggs": aggregations} if aggregations else body)
        hits = self._hits(answer)
        if is_deep:
            hits = list(itertools.islice(self.walk(query, order), offset, offset + limit))
            for hit in hits:
                hit.page = hits  # what is stored is fetched for these alone
        return hits, self._total(answer) if count else None, answer.get("aggregations", {})

    def _hits(self, answer: Any) -> list[FoundDocument]:
        page: list[FoundDocument] = []
        page += [FoundDocument(self, page, hit) for hit in answer["hits"]["hits"]]
        return page

    def _total(self, answer: Any) -> int:
        return int(answer["hits"]["total"]["value"])

    def _aggregate(self, query: Query, aggregations: Mapping[str, object]) -> Any:
        return self.ask({"query": query, "size": 0, "track_total_hits": False, "aggs": aggregations})["aggregations"]


_LIVES: Query = {"term": {fields.LIVE: True}}
_ALL_VALUES = {"size": layout.MOST_VALUES, "shard_size": layout.MOST_VALUES}
_MADE = {layout.NUMBER: "asc"}
_ORDERS: Mapping[Order, Sequence[Mapping[str, object]]] = {
    "relevance": ({"_score": "desc"}, _MADE),
    "newest": ({layout.MODIFIED: "desc"}, _MADE),
    "oldest": ({layout.MODIFIED: "asc"}, _MADE),
    "made": (_MADE,),
}


def checked(answer: Any) -> Any:
    """Raises ClusterAway for an answer that does not speak of all shards."""
    shards = answer.get("_shards", {})
    if answer.get("timed_out") or shards.get("failed") or shards.get("successful") != shards.get("total"):
        raise ClusterAway("A part of the index does not answer.")
    return answer


def _value_counts(terms: Any) -> ValueCounts:
    return ValueCounts(
        [(bucket["key"], int(bucket["doc_count"])) for bucket in terms["buckets"]],
        complete=not (terms["sum_other_doc_count"] or terms["doc_count_error_upper_bound"]),
    )


def _order(sort: SortedBy) -> Mapping[str, object]:
    if sort.name == "r_modify_date":
        return {layout.MODIFIED: "desc" if sort.descending else "asc"}
    kind = layout.index_kind(sort.kind, folded=sort.folded)
    unmapped = "keyword" if kind in ("s", "v") else "long"
    direction = "desc" if sort.descending else "asc"
    return {fields.path(kind, sort.name): {"order": direction, "missing": "_last", "unmapped_type": unmapped}}


def _extreme(sort: SortedBy) -> Query | None:
    """Find the number that stands for no value in this order, or None for texts."""
    if sort.name == "r_modify_date" or sort.kind in ("string", "id"):
        return None
    extreme = layout.LEAST if sort.descending else layout.MOST
    return {"term": {fields.path(layout.index_kind(sort.kind, folded=False), sort.name): extreme}}
