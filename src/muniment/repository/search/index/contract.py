"""What does an index engine do?

A search takes a snapshot of the index first, and then opens a read of the database. So the read knows every change that
the snapshot has missed, and the answer is true as of the read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

import msgspec

from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.spelling.facets import BoundFacet
from muniment.repository.search.aql.tree import Phrase, Term, Wild
from muniment.repository.search.aql.values import Kind
from muniment.repository.search.index.document import Document
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.repositories import Repository

Leaf: TypeAlias = Term | Wild | Phrase
"""A word or phrase of the keywords, which is looked up in the index."""

Order: TypeAlias = Literal["relevance", "newest", "oldest", "made"]
"""An order of hits: by score, by the last modification (the newest or the oldest first), or with ``made`` by counter.

Hits that are equal in this order are ordered by counter, the lowest first.
"""

MOST_FACET_QUESTIONS = 1000
"""The most questions that the facets of one search may put to an engine.

For example, each range of a facet is one question. A nested facet asks anew for each value of its outer facet.
"""


class Visible(msgspec.Struct, frozen=True):
    """What one caller may see, as the database says after the snapshot was taken.

    A match in the metadata counts if the caller may browse the object. A match in the content counts if they may read
    the object. With ``everything`` they may read every object. ``browse_acls`` are the ids of the ACLs that let them
    browse objects, and ``read_acls`` the ids of the ACLs that let them read objects. ``owner`` is the caller's key,
    under which their own objects are stored. ``hidden`` names objects that are left out, because of a change that the
    snapshot has missed. ``decided`` names objects of which only the ACL or the properties have changed since the
    snapshot, so the ACL in the index does not count. The caller may browse a decided object if it is also in
    ``browse``, and read it if it is also in ``read``. Former versions are left out unless the search asks for
    ``all_versions``.
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

    def may_read(self, key: str, acl: int, owner: str) -> bool:
        if self.everything:
            return True
        if key in self.decided:
            return key in self.read
        return acl in self.read_acls or (bool(self.owner) and fold_name(owner) == self.owner)


class FacetValue(msgspec.Struct, frozen=True):
    """A value of a facet with its number of hits. ``constraint`` narrows a search to these hits (``aql.narrowing``)."""

    name: str
    constraint: str
    count: int
    nested: "FacetCounts | None" = None


class FacetCounts(msgspec.Struct, frozen=True):
    """The values of one facet, in the facet's order. ``partial`` says whether the server's limit left values out."""

    id: str
    name: str
    values: tuple[FacetValue, ...]
    partial: bool = False


LEAD = 4096.0
"""How much more an object scores if it meets the keywords of a relaxed search as they were written.

An object that holds the words of a question as a sequence (``Fulltext.sequence``) scores once more so much. It is more
than all words of a relaxed search score together. Among a million objects a word scores at most 33, including what is
added for its exact form and for words near it. A relaxed search has at most ``relaxation.MOST_WORDS`` words.
"""


class Near(msgspec.Struct, frozen=True):
    """Objects that are near a question in meaning: first the added ones, then others, in each part the nearest first.

    ``embeddings`` are the ids of the objects' embeddings. ``scores`` say how much nearness adds to the score of each
    object. The caller may read these objects, and they meet all conditions of the search except its keywords. The first
    ``added`` objects are hits even if they hold none of the search's words.
    """

    embeddings: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    added: int = 0


class Search(msgspec.Struct, frozen=True):
    """One question to a snapshot, which returns at most ``limit`` hits after the first ``offset`` ones.

    ``facet_hits`` is how many of the first hits the facets count, or None if they count all hits. If ``among`` is not
    None, only the objects that it names can be hits; if ``limit`` is at least their number, the hits come in any order.
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
    """A property by which hits are ordered. Each object has at most one value of it. Hits without a value come last.

    Texts are ordered by their code points; with ``folded``, by the code points of their folded forms. Only the first
    255 characters count.
    """

    name: str
    kind: Kind
    descending: bool = False
    folded: bool = False


class IndexHit(msgspec.Struct, frozen=True):
    """One result: the object's id, its score, an excerpt around the match, and the terms that matched.

    In a bare hit, ``embedding`` is the id of the object's embedding, or 0 if the object has none. ``marks`` are the
    matches in the excerpt, each with the index of its first character and the index after its last. They are None
    unless the search asks for them.
    """

    object_id: str
    score: float
    excerpt: str
    terms: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] | None = None
    embedding: int = 0


class Answer(msgspec.Struct, frozen=True):
    """The answer to a search.

    ``total`` is exact. If the search does not ask for the total, it may be None. ``facet_hits`` is the number of hits
    that the facets count, or None if they count all. ``more`` says whether further hits follow.
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


class Correction(msgspec.Struct, frozen=True):
    """A word that the caller may have meant: how many letters differ, and how many objects hold it for the caller."""

    word: str
    distance: int
    hits: int


class LeafWeight(msgspec.Struct, frozen=True):
    """What one word or phrase of a query adds to the score of one object.

    ``anywhere`` is what a match anywhere in the object adds; it counts for callers who may read the object.
    ``in_metadata`` is what a match in the metadata adds; it counts for callers who may only browse the object. Each is
    None if there is no match. ``in_text`` says whether the word or phrase is in the text. ``term`` is the word or
    phrase as the terms of a hit show it. ``properties`` names the properties that hold the word or phrase, or is None
    if their values were too long to look through.
    """

    leaf: Leaf
    term: str
    anywhere: float | None
    in_metadata: float | None
    in_text: bool
    properties: tuple[str, ...] | None = ()


class Examination(msgspec.Struct, frozen=True):
    """What the index knows of one object in one search, including what the search's caller may not see.

    ``score`` is None if the object is no hit of the search. ``leaves`` are the words and phrases that the query looks
    up, including those under a NOT.
    """

    document: Document
    may_read: bool
    score: float | None
    leaves: tuple[LeafWeight, ...]
    by_meaning: float = 0.0


class DocumentDigest(msgspec.Struct, frozen=True, order=True):
    """What the index holds of one object: its counter, its key, and a 16-byte digest of the whole document.

    ``consistent`` says whether searches find the document by its own type, ACL and owner, and by none of the types,
    ACLs and owners that only other documents in the same list of digests have. It is also False if a search for former
    versions finds the document wrongly, or misses it, or if the document cannot be read.
    """

    counter: int
    key: str
    digest: bytes
    consistent: bool = True


Marker: TypeAlias = Callable[[str], tuple[tuple[int, int], ...]]
"""Returns the matches in a text, each with the index of its first character and the index after its last.

Matches do not overlap.
"""


class Snapshot(Protocol):
    """The index as of one commit."""

    @property
    def position(self) -> Position:
        """The position in the change log up to which this snapshot is complete."""

    def search(self, search: Search) -> Answer:
        """Answer a search. Raises IndexUnavailable, and BadQuery if the engine refuses the query.

        For example, an engine may refuse a prefix with which too many words begin.
        """

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> Answer | None:
        """Answer a search in the order of these properties, or return None if the index has no such order.

        Hits that are equal in this order are ordered by counter. The answer always has the total. Facets count the same
        hits as with ``search``. Raises what ``search`` raises.
        """

    def counters(self, search: Search, order: Order) -> Sequence[int]:
        """Return the counters of a search's hits in this order.

        Without keywords, the order ``relevance`` is the same as ``newest``. Raises what ``search`` raises.
        """

    def embeddings(self, search: Search) -> Sequence[int]:
        """Return the ids of the embeddings of a search's hits, in ascending order. Raises what ``search`` raises."""

    def examine(self, search: Search, key: str) -> Examination | None:
        """Return what the index knows of one object in a search, or None if the index does not hold the object.

        The object's score is the sum of ``by_meaning`` and the weights of the words by which the object is found. If
        any of several words is enough for a match, the score may be higher than this sum, for example because words
        near each other add to it. Raises what ``search`` raises.
        """

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        """List the words with this beginning in the hits of a search, the most common first.

        Equally common words are in alphabetical order. In an object that the caller may only browse, only the words of
        the metadata count. Stop words are left out. The list is empty if the beginning is not one word of 2 to 60
        letters. Raises what ``search`` raises.
        """

    def corrections(self, visible: Visible, word: str) -> list[Correction]:
        """List likely corrections of a word by which the caller finds nothing, the likeliest first.

        Fewer letters that differ come first, and then the words of more objects. Each correction is a word in a part of
        an object that the caller may see. Raises IndexUnavailable.
        """

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        """Return the words that say most about a text, in the order in which they appear in the text.

        A word says much if it appears in the text several times, but in few of the objects that the caller may see.
        With each returned word, the caller finds at least one object besides the object ``key``. Of several forms of a
        word, the one that the text uses most is returned. Stop words are left out. Raises IndexUnavailable.
        """

    def marker(self, search: Search) -> Marker:
        """Return a function that finds matches in a text as this search does in its excerpts.

        The function depends on the search alone, so it can be used when the snapshot is no longer in use. Raises what
        ``search`` raises.
        """

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        """Read the documents with these keys, or every document. Documents with the same key are all returned.

        The iterator raises IndexUnavailable, perhaps only after some documents.
        """

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        """Read the digests of the first ``limit`` documents whose counters are above ``after`` and at most ``to``.

        If ``to`` is None, there is no highest counter. The digests are ordered by counter. Raises IndexUnavailable,
        also if the index does not hold counters.
        """

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        """Read the digests of all documents with these keys, ordered by counter. Raises what ``digests`` raises."""

    def digest(self, document: Document) -> DocumentDigest:
        """Return the digest that ``digests`` would return if this release had written the document.

        An index that an earlier release has filled may give another digest of an equal document.
        """


class Index(Protocol):
    """One repository's index, open for reading."""

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the newest commit. Raises IndexUnavailable."""

    def close(self) -> None:
        """Close the files."""


class OtherFormat(Exception):
    """The index lacks the format, languages or rules that this writer would give it, so it must be rebuilt."""


class IndexWriter(Protocol):
    """One generation of an index, open for writing; it has one writer at a time."""

    @property
    def position(self) -> Position:
        """The position of the last commit."""

    def apply(self, documents: Iterable[Document], keys_to_remove: Collection[str], position: Position) -> None:
        """Write these documents, delete those with the ``keys_to_remove``, and move to the position, all in one commit.

        A document replaces the one with the same key. If the call raises, nothing has changed.
        """

    def close(self) -> None:
        """Wait until the engine's work in the background is done, and release the lock."""


class RepositoryIndex(Protocol):
    """One repository's index with its generations."""

    def reader(self) -> Index:
        """Open the index for reading. When another generation becomes the current one, the reader uses that one."""

    def current(self) -> str | None:
        """Return the name of the current generation, or None if there is none yet."""

    def writer(self, generation: str) -> IndexWriter:
        """Open a generation for writing; a new one is empty. Raises OtherFormat, IndexUnavailable, OSError."""

    def rebuilding(self) -> AbstractContextManager[str]:
        """Hold the right to begin a generation while the block runs; only one process of this machine can have it.

        Raises InUse. The right also ends when the process ends. The block gets the name under which this
        machine holds leases for its indexes, as with ``Engine.sole_agent``.
        """

    def begin(self) -> str:
        """Begin the next generation, and return its name."""

    def switch(self, generation: str) -> None:
        """Make this generation the current one. The switch is atomic, and survives a crash."""

    def remove(self) -> None:
        """Remove every generation, and everything else that the engine has stored about the repository."""


class Engine(Protocol):
    """An index engine, with the indexes of all repositories."""

    def languages(self) -> Sequence[str]:
        """List the languages whose stems an index may hold, as English names."""

    def index(self, repository: Repository) -> RepositoryIndex:
        """Return the index of one repository, even if the index has no generation yet."""

    def follower(self) -> str:
        """Return the name of the agent that writes these indexes. It stays the same as long as the indexes exist."""

    def sole_agent(self) -> AbstractContextManager[str]:
        """Hold the right to be the agent of these indexes while the block runs; only one process of a machine has it.

        The right also ends when the process ends. The block gets the name under which this machine holds leases for its
        indexes. The next process that has the right gets the same name, so it can take over the lease at once. Raises
        InUse when another process has the right.
        """

    def sweep(self, now: Instant) -> None:
        """Remove the generations that are not current and that no process can still be reading."""
