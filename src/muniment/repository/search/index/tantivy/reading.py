"""What does the built-in index hold?"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import msgspec
import tantivy
from tantivy import DocAddress, FieldType, Query

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.index.contract import DocumentDigest
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import digests, layout
from muniment.repository.search.index.tantivy import failures, fields
from muniment.repository.search.index.tantivy.combining import all_of, term, terms
from muniment.repository.search.index.tantivy.searching import WatchedSearcher

_AT_A_TIME = 500


class Reading:
    """Reads documents, whatever a caller may see."""

    def __init__(self, searcher: WatchedSearcher, analyser: Analyser) -> None:
        self._stored, self._splitting = searcher, analyser

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        query, offset = Query.all_query() if keys is None else self._with(keys), 0
        while True:
            with failures.as_refusals("the index could not be read"):
                addresses = self._in_order(query, _AT_A_TIME, offset)
                stored_documents = [self._stored.doc(address) for address in addresses]
            for stored in stored_documents:
                if stored.get_first(layout.KEY) != layout.POSITION:
                    yield fields.read_document(stored)
            if len(addresses) < _AT_A_TIME:
                return
            offset += len(addresses)

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        with failures.as_refusals("the index could not be read"):
            in_range = Query.range_query(
                *(fields.SCHEMA, layout.NUMBER, FieldType.Unsigned),
                lower_bound=max(after, 0),
                upper_bound=to,
                include_lower=after < 0,
            )
            # The document of the position has the counter 0.
            extra = 1 if after < 0 else 0
            return self._digests(in_range, self._in_order(in_range, limit + extra, 0))[:limit]

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        with failures.as_refusals("the index could not be read"):
            query = self._with(keys)
            number = self._stored.count(query)
            return self._digests(query, self._in_order(query, number, 0) if number else [])

    def digest(self, document: Document) -> DocumentDigest:
        return digests.digest(document, self._splitting)

    def _with(self, keys: Iterable[str]) -> Query:
        return terms(layout.KEY, [key for key in keys if key != layout.POSITION])

    def _in_order(self, query: Query, limit: int, offset: int) -> list[DocAddress]:
        result = self._stored.search(
            query, limit, count=False, order_by_field=layout.NUMBER, offset=offset, order=tantivy.Order.Asc
        )
        return [address for _, address in result.hits]

    def _digests(self, query: Query, addresses: list[DocAddress]) -> list[DocumentDigest]:
        numbers = self._stored.numbers(layout.NUMBER, addresses)
        modified = self._stored.numbers(layout.MODIFIED, addresses)
        stating: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
        stating[layout.FORMER, layout.IS_FORMER] = set()
        unreadable = set[tuple[int, int]]()
        parts = []
        for address, number, instant in zip(addresses, numbers, modified, strict=True):
            stored, place = self._stored.doc(address), (address.segment_ord, address.doc)
            key = fields.read_key(stored)
            if key == layout.POSITION:
                continue
            try:
                source = fields.read_source_bytes(stored)
                found_by = layout.read_found_by(source)
            except (LookupError, msgspec.MsgspecError):
                unreadable.add(place)
                parts.append((place, number, key, b""))
                continue
            stating[layout.TYPE, found_by.type].add(place)
            stating[layout.ACL, str(found_by.acl)].add(place)
            stating[layout.OWNER, found_by.owner].add(place)
            if found_by.former:
                stating[layout.FORMER, layout.IS_FORMER].add(place)
            hash_ = digests.of_stored(source, fields.read_text(stored), number, instant)
            parts.append((place, number, key, hash_))
        wrong = unreadable | self._inconsistent(query, stating, {place for place, *_ in parts})
        return sorted(DocumentDigest(number, key, hash_, place not in wrong) for place, number, key, hash_ in parts)

    def _inconsistent(
        self,
        query: Query,
        stating: dict[tuple[str, str], set[tuple[int, int]]],
        places: set[tuple[int, int]],
    ) -> set[tuple[int, int]]:
        """``stating`` has, by field and value, what a search for it should find."""
        wrong = set[tuple[int, int]]()
        for (field, value), expected in stating.items():
            stated = all_of([query, term(field, value)])
            hits = self._stored.search(stated, len(places) + 1, count=False).hits
            wrong |= expected ^ ({(address.segment_ord, address.doc) for _, address in hits} & places)
        return wrong
