"""What must an engine do, so that the questions of this room can be put to it?

It holds terms, and finds and counts documents by them; what words, variants, weights and excerpts are is decided here
(docs/decisions/0115).
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from muniment.repository.search.aql.conditions import Between, HasValue, Like, OneOf
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.index.contract import Order, SortedBy
from muniment.repository.search.index.questions.layout import FoundBy, Source

Query: TypeAlias = Any
"""A query of the engine, into which only the engine looks."""

Address: TypeAlias = Any
"""Where the engine keeps a document, as long as one snapshot."""

Ranked: TypeAlias = tuple[float, Address]
"""An address has its score, or the value by which it is ordered."""

Places: TypeAlias = Sequence[tuple[int, str]]


class Queries(Protocol):
    """Makes the engine's queries for one search, whose wildcards it limits together."""

    def every(self) -> Query: ...

    def nothing(self) -> Query: ...

    def term(self, field: str, value: str | int) -> Query: ...

    def terms(self, field: str, values: Collection[str | int]) -> Query: ...

    def with_acls(self, acls: Collection[int]) -> Query: ...

    def embedded(self) -> Query:
        """Find documents with an embedding."""

    def word(self, field: str, word: str) -> Query:
        """Score by how often the word stands there, and by the length."""

    def sequence(self, field: str, words: Places, slop: int = 0) -> Query:
        """Find words at these places from the first; score as ``word``, with the sum of their weights."""

    def pattern(self, field: str, pattern: Pattern) -> Query:
        """Each match scores 1.

        Raises BadQuery if the patterns of the search would take too long.
        """

    def patterns(self, field: str, places: Sequence[tuple[int, Pattern]]) -> Query:
        """Find words at these places from the first. Raises what ``pattern`` raises."""

    def similar(self, field: str, word: str, letters: int) -> Query:
        """Find words in which so many letters differ; two exchanged neighbours are one. Each match scores 1."""

    def comparison(self, comparison: OneOf | Between | Like | HasValue) -> Query:
        """Raises BadQuery for a name that no property can have, and what ``pattern`` raises."""

    def all_of(self, parts: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
        """Add the scores."""

    def any_of(self, parts: Sequence[Query]) -> Query:
        """Add the scores of those that match; without a part, find nothing."""

    def best_of(self, parts: Sequence[Query]) -> Query:
        """Score as the best match does."""

    def with_bonuses(self, needed: Sequence[Query], bonuses: Sequence[Query]) -> Query:
        """A match of a bonus adds its score, and is not needed."""

    def fixed(self, query: Query, score: float) -> Query:
        """Score every match alike."""

    def silent(self, query: Query) -> Query:
        """Score every match 0."""

    def times(self, query: Query, factor: float) -> Query:
        """Multiply the scores."""


class StoredDocument(Protocol):
    """What the index stores of one document; each method decodes only what it returns."""

    def found_by(self) -> FoundBy: ...

    def source(self) -> Source: ...

    def text(self) -> str: ...


class Searcher(Protocol):
    """Asks one snapshot. Each method may also raise TookTooLong."""

    def search(
        self, query: Query, limit: int, *, count: bool = False, offset: int = 0
    ) -> tuple[Sequence[Ranked], int | None]:
        """Return the best, and with ``count`` the number of all."""

    def count(self, query: Query) -> int: ...

    @property
    def counts_together(self) -> bool:
        """Say whether one question for several counts takes less than a question for each."""

    def count_all(self, queries: Sequence[Query]) -> list[int]: ...

    def documents(self) -> int:
        """Count all documents, to limit what a query may cost."""

    def numbers(self, field: str, addresses: Sequence[Address]) -> list[int]:
        """Read NUMBER, MODIFIED or EMBEDDING, 0 for none."""

    def place(self, address: Address) -> Hashable:
        """Equal addresses have the same."""

    def read(self, address: Address) -> StoredDocument: ...

    def beginning(self, field: str, letters: str, query: Query) -> list[tuple[str, int]]:
        """List the exact words that begin so, each with the number of documents that the query finds by it."""

    def own_weight(self, field: str, words: Sequence[str], /) -> float:
        """Return by what the engine's scores of a word or sequence are to be divided, so that they count nobody's
        documents.
        """

    def is_held(self, field: str, word: str, /) -> bool:
        """Return False only if no document has the word."""

    def values_and_extents(
        self, query: Query, properties: Mapping[str, tuple[str, str]], dates: Collection[str]
    ) -> tuple[dict[str, "ValueCounts"], "Extents"]:
        """Count hits by value of each property, given by its kind in the index and name. Beside this, return about the
        least and the greatest instant of each of ``dates``, or None without one.
        """

    def in_ranges(self, query: Query, name: str, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Count hits with an instant or whole number in each range, by its beginning; the end is not part of the range.

        Ranges ascend, and do not overlap; a double has to hold their ends exactly.
        """


Extents: TypeAlias = Mapping[str, tuple[int, int] | None]


class ValueCounts(NamedTuple):
    """``values`` as the index holds them; ``complete`` unless there are too many to be counted."""

    values: Sequence[tuple[str | int, int]]
    complete: bool = True


class Ranking(Protocol):
    """Orders hits; equal ones by counter, the lowest first."""

    def counters(self, query: Query, order: Order, offset: int, limit: int) -> list[int]: ...

    def numbers_of_all(self, query: Query, field: str) -> list[int]:
        """Return a number of every hit, in ascending order; nothing if there are more than the engine reads."""

    def by_score(self, query: Query, offset: int, limit: int, *, total: bool) -> tuple[list[Ranked], int | None]: ...

    def by_modification(
        self, query: Query, offset: int, limit: int, *, total: bool
    ) -> tuple[list[Ranked], int | None]: ...

    def by_counter(
        self, query: Query, offset: int, limit: int, *, total: bool, descending: bool = False
    ) -> tuple[list[Ranked], int | None]: ...

    def by_values(
        self, query: Query, sorts: Sequence[SortedBy], offset: int, limit: int
    ) -> tuple[list[int], int] | None:
        """Return counters and the total, or None where the index has no such order."""

    def with_counters(self, query: Query, counters: Sequence[int]) -> list[Ranked]:
        """Find these, in their order."""


QueryMaker: TypeAlias = Callable[[], Queries]
"""Makes Queries with an allowance of their own."""
