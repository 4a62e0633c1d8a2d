"""How does a search ask the engine?"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import tantivy
from tantivy import DocAddress, Query

from muniment.database import budgets

_REMEMBERED = 10_000
"""A question names a word several times, and questions have words in common."""


class WatchedSearcher:
    """The searcher of one commit, whose methods raise TookTooLong, too."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self.engine = self._searcher = searcher
        self.doc = searcher.doc
        self.doc_freq = lru_cache(_REMEMBERED)(searcher.doc_freq)
        self.num_docs = searcher.num_docs

    def search(self, query: Query, limit: int, **how: Any) -> tantivy.SearchResult:
        """``how`` is the engine's ``count``, ``offset``, ``order_by_field`` and ``order``."""
        budgets.check()
        return self._searcher.search(query, limit, **how)

    def aggregate(self, query: Query, aggregations: Mapping[str, Any]) -> dict[str, Any]:
        budgets.check()
        return self._searcher.aggregate(query, dict(aggregations))

    def count(self, query: Query) -> int:
        return count_of(self.search(query, 1)) or 0

    def numbers(self, field: str, addresses: Sequence[DocAddress]) -> list[int]:
        """Read a fast field, 0 for none."""
        budgets.check()
        return [int(value or 0) for value in self._searcher.fast_field_values(field, list(addresses))]

    def terms_with_prefix(self, field: str, prefix: str, query: Query) -> list[tuple[str, int]]:
        budgets.check()
        return self._searcher.terms_with_prefix(field, prefix, query)


def count_of(result: tantivy.SearchResult) -> int | None:
    """Return None if hits were not counted."""
    number: int | None = getattr(result, "count", None)  # the engine's stubs do not know it
    return number
