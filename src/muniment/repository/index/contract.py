"""What does an index engine do? The agent writes documents, and a search asks one snapshot.

The contract names neither folders nor the built-in engine. A generation is an index that was made in one go; the engine
chooses its name. Searches read the current generation while a rebuild fills the next one.

A search takes a snapshot of the index first, and then opens a read of the database. So the read knows every change that
the snapshot has missed, and the answer is true as of the read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

import msgspec

from muniment.clock import Instant
from muniment.naming import fold_name
from muniment.repository.aql.conditions import BoundQuery
from muniment.repository.aql.facets import BoundFacet
from muniment.repository.aql.tree import Phrase, Term, Wild
from muniment.repository.aql.values import Kind
from muniment.repository.change_log.changes import Position
from muniment.repository.index.document import Document
from muniment.repository.repositories import Repository

Leaf: TypeAlias = Term | Wild | Phrase
"""A word or phrase of the keywords, which is looked up in the index."""

Order: TypeAlias = Literal["relevance", "newest", "oldest", "made"]
"""An order of hits: by score, by the last modification, or by counter. Equal hits are in the order of counters."""

MOST_FACET_QUESTIONS = 1000
"""The most questions that the facets of one search may put to an engine.

Each range is one question, and so is each value within which a nested facet counts.
"""


class IndexedObject(Protocol):
    """The part of an indexed object that decides who may see it."""

    @property
    def key(self) -> str:
        """The object's identifier."""

    @property
    def acl(self) -> int:
        """The id of its ACL."""

    @property
    def owner(self) -> str:
        """The key of its owner; an index of an earlier release holds the owner as callers see them."""


class Visible(msgspec.Struct, frozen=True):
    """What one caller may see, as the database says after the snapshot was taken.

    A match in the metadata counts if the caller may browse the object, a match in the content if they may read it.
    ``browse_acls`` and ``read_acls`` are the ids of the ACLs that permit this; ``owner`` is the caller's key, under
    which their own objects are stored. ``hidden`` names objects with a change that the snapshot has missed; they are
    left out. ``decided`` names objects whose ACL has changed since the snapshot. The index ignores their old ACLs: the
    caller may browse those that are also in ``browse``, and read those that are also in ``read``. Former versions are
    left out unless the search asks for ``all_versions``.
    """

    everything: bool = False
    owner: str = ""
    browse_acls: frozenset[int] = frozenset()
    read_acls: frozenset[int] = frozenset()
    hidden: frozenset[str] = frozenset()
    decided: frozenset[str] = frozenset()
    browse: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    all_versions: bool = False

    def may_read(self, indexed: IndexedObject) -> bool:
        """Say whether the caller may read an object that the index has found."""
        if self.everything:
            return True
        if indexed.key in self.decided:
            return indexed.key in self.read
        return indexed.acl in self.read_acls or (bool(self.owner) and fold_name(indexed.owner) == self.owner)


class FacetValue(msgspec.Struct, frozen=True):
    """A value of a facet with its number of hits. ``constraint`` narrows a search to these hits (``aql.narrowing``)."""

    name: str
    constraint: str
    count: int
    nested: "FacetCounts | None" = None


class FacetCounts(msgspec.Struct, frozen=True):
    """The values of the facet with this id, in its order. ``partial``: there were too many values to return all."""

    id: str
    name: str
    values: tuple[FacetValue, ...]
    partial: bool = False


LEAD = 4096.0
"""How much more an object scores if it meets the keywords of a relaxed search as they were written.

It is more than words score by themselves. Among a million objects a word scores at most 33, with all that its form and
its neighbours add, and a relaxed search has few words (``relaxation.MOST_WORDS``).
"""


class Near(msgspec.Struct, frozen=True):
    """Objects that are near a question in meaning, the nearest first: their embeddings, and what each adds to a score.

    The caller may read these objects, and they meet all conditions of the search but its words. The first ``added`` of
    them are hits even if they hold none of the words.
    """

    embeddings: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    added: int = 0


class Search(msgspec.Struct, frozen=True):
    """One question to a snapshot. ``offset`` and ``limit`` count hits.

    ``facet_hits`` is how many of the first hits the facets count; None for all. If ``among`` is not None, only the
    objects that it names count; if the limit is large enough for all of them, hits come in any order. ``bare``: the
    hits have neither excerpts nor terms. ``marks``: the hits say where their excerpts match. ``near`` lists objects
    that are near the question in meaning.
    """

    query: BoundQuery
    visible: Visible
    offset: int
    limit: int
    total: bool = False
    facets: tuple[BoundFacet, ...] = ()
    facet_hits: int | None = None
    among: frozenset[str] | None = None
    bare: bool = False
    marks: bool = False
    near: Near = Near()


class SortedBy(msgspec.Struct, frozen=True):
    """A property by which hits are ordered; it has at most one value. Hits without a value come last.

    Texts are ordered by code points: those of the text, or with ``folded`` those of its folded form. Only the first 255
    characters count.
    """

    name: str
    kind: Kind
    descending: bool = False
    folded: bool = False


class IndexHit(msgspec.Struct, frozen=True):
    """One result: the object's id, its score, an excerpt around the match, and the terms that matched.

    ``embedding`` is the id of the object's embedding, 0 without one; only bare hits have it. ``marks`` are the places
    in the excerpt that match: the first character of each match, and the character after its last. They are None
    unless the search asks for them.
    """

    object_id: str
    score: float
    excerpt: str
    terms: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] | None = None
    embedding: int = 0


class Answer(msgspec.Struct, frozen=True):
    """The answer to a search. ``total`` is exact; it is None unless the search asks for it.

    ``facet_hits`` is how many hits the facets count; None if they count all. ``more``: further hits follow.
    """

    hits: tuple[IndexHit, ...]
    total: int | None = None
    facets: tuple[FacetCounts, ...] = ()
    facet_hits: int | None = None
    more: bool = False


class WordCount(msgspec.Struct, frozen=True):
    """A folded word, and the number of objects in which the caller finds it."""

    word: str
    hits: int


class LeafWeight(msgspec.Struct, frozen=True):
    """What one word or phrase of a query adds to the score of one object, in all of the object and in its metadata.

    ``anywhere`` counts for callers who may read the object, ``in_metadata`` for callers who may only browse it. Each is
    None if the word or phrase does not match there. ``in_text`` says whether it is in the text. ``term`` is its text as
    the terms of a hit show it. ``properties`` names the properties that hold it. It is None if they were too long to
    look through.
    """

    leaf: Leaf
    term: str
    anywhere: float | None
    in_metadata: float | None
    in_text: bool
    properties: tuple[str, ...] | None = ()


class Examination(msgspec.Struct, frozen=True):
    """What the index knows of one object in one search, for a caller who may know all of the object.

    ``score`` is None if the object is no hit of the search. ``may_read`` says whether the search's caller may read it.
    ``leaves`` are all words and phrases of the query, also those behind a NOT. ``by_meaning`` is what the object's
    nearness in meaning adds to the score.
    """

    document: Document
    may_read: bool
    score: float | None
    leaves: tuple[LeafWeight, ...]
    by_meaning: float = 0.0


class DocumentDigest(msgspec.Struct, frozen=True, order=True):
    """What the index holds of one object: its counter, its key, and a digest of 16 bytes of the whole document.

    ``consistent``: searches find the document by the type, the ACL and the owner that it states, and by no others.
    """

    counter: int
    key: str
    digest: bytes
    consistent: bool = True


Marker: TypeAlias = Callable[[str], tuple[tuple[int, int], ...]]
"""Says where a text matches: the first character of each match, and the character behind it. Matches do not overlap."""


class Snapshot(Protocol):
    """The index as of one commit."""

    @property
    def position(self) -> Position:
        """The position in the change log up to which this snapshot is complete."""

    @property
    def numbered(self) -> bool:
        """Whether ``counters`` works. An index of an earlier release may not hold counters."""

    def search(self, search: Search) -> Answer:
        """Answer a search. Raises BadQuery if the engine refuses the query, for example a prefix of too many words."""

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> Answer | None:
        """Answer a search in the order of these properties, equal hits by counter; None if the index has no such order.

        The answer always has the total. Facets count the same hits as with ``search``. Raises as ``search``.
        """

    def counters(self, search: Search, order: Order) -> Sequence[int]:
        """Return the counters of a search's hits in this order. Without keywords, the most relevant are the newest.

        Raises as ``search``, and IndexUnavailable if the index does not know them.
        """

    def embeddings(self, search: Search) -> Sequence[int]:
        """Return the ids of the embeddings of a search's hits, in ascending order. Raises as ``search``."""

    def examine(self, search: Search, key: str) -> Examination | None:
        """Look at one object in the light of a search; None if the index does not hold it. Raises as ``search``.

        The weights of the words by which the object is found add up to its score.
        """

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        """List the words that begin like this in the hits of a search, the most common first.

        Equally common words are in alphabetical order. A word counts only in objects that the caller may read. There
        are no words for a beginning of one letter, or while an index of an earlier release is being made anew. Raises
        as ``search``.
        """

    def correction(self, visible: Visible, word: str) -> str | None:
        """Return the likeliest correction of a word by which the caller finds nothing; None if there is none.

        The correction differs from the word in a letter or two, and stands in a part of an object that the caller may
        see. Raises IndexUnavailable.
        """

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        """Return the words that say most about a text, in the order in which they stand in it.

        A word says much if it stands in the text several times, and in few of the objects that the caller finds. By
        each word the caller finds at least one object besides the one with this key. Of several forms of a word, the
        most common one of the text is returned. Stop words are left out. Raises IndexUnavailable.
        """

    def marker(self, search: Search) -> Marker:
        """Return the function that marks words of a text, as in the excerpts of this search. Raises as ``search``.

        The function depends on the search alone, and can be used after the snapshot.
        """

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        """Read the documents with these keys, or every document. Documents with the same key are all returned."""

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        """Read the digests of the first ``limit`` documents with counters above ``after`` and up to ``to`` (None: all).

        The digests are in order. Raises IndexUnavailable, also if the index does not know the counters.
        """

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        """Read the digests of the documents with these keys, in order, as ``digests`` does."""

    def digest(self, document: Document) -> DocumentDigest:
        """Return the digest that ``digests`` would return if this release had written the document.

        An index that an earlier release has filled may give another digest of an equal document.
        """


class Index(Protocol):
    """One repository's index, open for reading."""

    def snapshot(self) -> Snapshot:
        """Take the newest commit. Raises IndexUnavailable."""

    def close(self) -> None:
        """Close the files."""


class OtherFormat(Exception):
    """The index has another format than this release writes: it must be rebuilt."""


class IndexWriter(Protocol):
    """One repository's index, open for writing; there is one writer at a time."""

    @property
    def position(self) -> Position:
        """The position of the last commit."""

    def apply(self, documents: Iterable[Document], keys_to_remove: Collection[str], position: Position) -> None:
        """Write these documents, delete those with the ``keys_to_remove``, and move to the position, all in one commit.

        A document replaces the one with the same key. If the call raises, nothing has changed.
        """

    def close(self) -> None:
        """Finish the work in the background, and release the lock."""


class RepositoryIndex(Protocol):
    """One repository's index with its generations."""

    def reader(self) -> Index:
        """Open the index for reading. The reader follows when another generation becomes the current one."""

    def current(self) -> str | None:
        """Return the name of the current generation; None before the first."""

    def writer(self, generation: str) -> IndexWriter:
        """Open a generation for writing; a new one is empty. Raises OtherFormat, IndexUnavailable, OSError."""

    def rebuilding(self) -> AbstractContextManager[str]:
        """Hold the right to begin a generation while the block runs; only one process of this machine can have it.

        Raises InUse. The right ends with the process. The block gets the name of the holder, as with
        ``Engine.sole_agent``.
        """

    def begin(self) -> str:
        """Begin the next generation, and return its name."""

    def switch(self, generation: str) -> None:
        """Make this generation the current one. The switch is atomic, and survives a crash."""

    def remove(self) -> None:
        """Remove every generation, and all that the engine keeps about the repository."""


class Engine(Protocol):
    """An index engine, with the indexes of all repositories."""

    def languages(self) -> Sequence[str]:
        """List the languages whose stems an index may hold, as English names."""

    def index(self, repository: Repository) -> RepositoryIndex:
        """Return the index of one repository, whether it has a generation or not."""

    def follower(self) -> str:
        """Return the name of the agent that writes these indexes. The name stays as long as the indexes exist."""

    def sole_agent(self) -> AbstractContextManager[str]:
        """Hold the right to be the agent of these indexes while the block runs; one process of this machine has it.

        The right ends with the process. The block gets the name of the holder. A later process gets the same name, so
        it takes over the lease of its predecessor at once. Raises InUse when another process has the right.
        """

    def sweep(self, now: Instant) -> None:
        """Remove generations that are not current, as soon as no process can still read them."""
