"""What does an index in OpenSearch hold?"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import msgspec

from muniment.database.connections import portions
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import DocumentDigest
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch.client import as_refusals
from muniment.repository.search.index.opensearch.queries import Query
from muniment.repository.search.index.opensearch.searching import FoundDocument, PointInTime
from muniment.repository.search.index.questions import digests, layout

_AT_A_TIME = 500
_CLAUSES = 500

_MADE = ({layout.NUMBER: "asc"}, {layout.KEY: "asc"})


class PointReading:
    """Reads documents, whatever a caller may see."""

    def __init__(self, point: PointInTime, analyser: Analyser) -> None:
        self._point, self._splitting = point, analyser

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        query: Query = {"match_all": {}} if keys is None else {"terms": {layout.KEY: list(keys)}}
        walk = self._point.walk(query, _MADE, _AT_A_TIME)
        while True:
            with as_refusals("the index could not be read"):
                hit = next(walk, None)
                if hit is None:
                    return
                made = layout.as_document(hit.source(), hit.text())
            yield made

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        bounds = {"gt": after} if to is None else {"gt": after, "lte": to}
        with as_refusals("the index could not be read"):
            query: Query = {"range": {layout.NUMBER: bounds}}
            found: list[DocumentDigest] = []
            for hit_page in self._pages(query, limit):
                found += self._digests(hit_page)
            return sorted(found)[:limit]

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        with as_refusals("the index could not be read"):
            pages = self._pages({"terms": {layout.KEY: list(keys)}}, len(keys))
            return sorted(each for page in pages for each in self._digests(page))

    def digest(self, document: Document) -> DocumentDigest:
        return digests.digest(document, self._splitting)

    def _pages(self, query: Query, limit: int) -> Iterator[Sequence[FoundDocument]]:
        page: list[FoundDocument] = []
        left = limit
        for hit in self._point.walk(query, _MADE, max(1, min(limit, _AT_A_TIME))):
            if left < 1:
                break
            page.append(hit)
            left -= 1
            if len(page) == _AT_A_TIME:
                yield page
                page = []
        if page:
            yield page

    def _digests(self, hits: Sequence[FoundDocument]) -> list[DocumentDigest]:
        stating: dict[tuple[str, str | int], set[str]] = defaultdict(set)
        stating[layout.FORMER, layout.IS_FORMER] = set()
        unreadable, parts = set[str](), []
        for hit in hits:
            number = hit.number(layout.NUMBER)
            try:
                source = hit.source_bytes()
                found_by = layout.read_found_by(source)
            except (LookupError, msgspec.MsgspecError):
                unreadable.add(hit.id)
                parts.append((number, hit.id, b""))
                continue
            stating[layout.TYPE, found_by.type].add(hit.id)
            stating[layout.ACL, found_by.acl].add(hit.id)
            stating[layout.OWNER, found_by.owner].add(hit.id)
            if found_by.former:
                stating[layout.FORMER, layout.IS_FORMER].add(hit.id)
            parts.append((number, hit.id, digests.of_stored(source, hit.text(), number, hit.number(layout.MODIFIED))))
        wrong = unreadable | self._inconsistent([hit.id for hit in hits], stating)
        return [DocumentDigest(number, key, hash_, key not in wrong) for number, key, hash_ in parts]

    def _inconsistent(self, ids: Sequence[str], stating: dict[tuple[str, str | int], set[str]]) -> set[str]:
        """``stating`` has, by field and value, what a search for it should find. Each search is a named clause."""
        wrong = set[str]()
        for some in portions(list(stating.items()), _CLAUSES):
            named = [{"term": {of[0]: {"value": of[1], "_name": str(at)}}} for at, (of, _) in enumerate(some)]
            among = {"bool": {"filter": [{"ids": {"values": list(ids)}}], "should": named, "minimum_should_match": 0}}
            answer = self._point.ask({"query": among, "size": len(ids), "_source": False})
            matched = {str(hit["_id"]): set(hit.get("matched_queries", ())) for hit in answer["hits"]["hits"]}
            for at, (_, expected) in enumerate(some):
                wrong |= expected ^ {key for key, names in matched.items() if str(at) in names}
        return wrong
