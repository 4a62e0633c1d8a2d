"""What does an index engine do?

A search takes a snapshot of the index, then opens a read of the database: the read knows every change that the snapshot
has missed, so the answer is true as of the read.
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

Order: TypeAlias = Literal["relevance", "newest", "oldest", "made"]
"""Hits come by score, last modification (newest or oldest first), or counter (``made``).

Equal hits are ordered by counter, the lowest first.
"""

MOST_FACET_QUESTIONS = 1000
"""The facets of one search put at most so many questions, such as each range, or a nested facet for each value."""


class Visible(msgspec.Struct, frozen=True):
    """What one caller may see, as the database says after the snapshot was taken.

    Matches in metadata count if the caller may browse the object, in content if they may read it; with ``everything``,
    they may read all. ``browse_acls`` and ``read_acls`` are ids, ``owner`` is the caller's key.

    ``hidden`` objects are left out, for a change that the snapshot has missed. Of ``decided`` ones only the ACL or
    properties changed since, so the indexed ACL does not count: the caller may browse or read them if they are also in
    ``browse`` or ``read``.

    Former versions are left out unless the search asks for ``all_versions``.
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
    """``constraint`` narrows a search to these hits (``aql.narrowing``)."""

    name: str
    constraint: str
    count: int
    nested: "FacetCounts | None" = None


class FacetCounts(msgspec.Struct, frozen=True):
    """Values in the facet's order; ``partial`` if the server's limit left some out."""

    id: str
    name: str
    values: tuple[FacetValue, ...]
    partial: bool = False


LEAD = 4096.0
"""An object scores so much more if it meets a relaxed search as written, and again with the words as a sequence
(``Fulltext.sequence``).

It is more than all words score together: at most ``relaxation.MOST_WORDS``, among a million objects at most 33 each,
with what exact forms and near words add.
"""


class Near(msgspec.Struct, frozen=True):
    """Objects near a question in meaning: the added, then others, each nearest first.

    ``embeddings`` are ids, ``scores`` what nearness adds. The caller may read these objects, and all conditions but
    keywords are met. The first ``added`` are hits even without the words.
    """

    embeddings: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    added: int = 0


class Search(msgspec.Struct, frozen=True):
    """One question to a snapshot, for ``limit`` hits after ``offset``.

    Facets count the first ``facet_hits``, or all. Only objects ``among`` these can be hits; if ``limit`` is at least
    their number, the order is any. With ``few_bare``, fewer hits than ``limit`` may come bare, and without total and
    facets.
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
    few_bare: bool = False
    marks: bool = False
    near: Near = Near()


class SortedBy(msgspec.Struct, frozen=True):
    """A property by which hits are ordered; an object has one value at most, and comes last without.

    Texts are ordered by code points, or with ``folded`` by those of folded forms; only 255 characters count.
    """

    name: str
    kind: Kind
    descending: bool = False
    folded: bool = False


class IndexHit(msgspec.Struct, frozen=True):
    """One result.

    ``embedding``, of a bare hit, is an id, or 0. ``marks``, if asked for, have the index of the first character and the
    one after the last in the excerpt.
    """

    object_id: str
    score: float
    excerpt: str
    terms: tuple[str, ...]
    marks: tuple[tuple[int, int], ...] | None = None
    embedding: int = 0


class Answer(msgspec.Struct, frozen=True):
    """``total`` is exact, or None if not asked for.

    Facets count ``facet_hits``, or all. With ``more``, further hits follow.
    """

    hits: tuple[IndexHit, ...]
    total: int | None = None
    facets: tuple[FacetCounts, ...] = ()
    facet_hits: int | None = None
    more: bool = False


class WordCount(msgspec.Struct, frozen=True):
    """The word is folded; the caller finds it in so many objects."""

    word: str
    hits: int


class Correction(msgspec.Struct, frozen=True):
    """A word that the caller may have meant, ``distance`` letters away, in ``hits`` objects."""

    word: str
    distance: int
    hits: int


class LeafWeight(msgspec.Struct, frozen=True):
    """What a word or phrase adds to the score of one object.

    A match ``anywhere`` counts for who may read the object, ``in_metadata`` for who may only browse it; None is no
    match. ``term`` is as hits show it. ``properties`` hold it, None if their values are too long to look through.
    """

    leaf: Leaf
    term: str
    anywhere: float | None
    in_metadata: float | None
    in_text: bool
    properties: tuple[str, ...] | None = ()


class Examination(msgspec.Struct, frozen=True):
    """What the index knows of one object in a search, also what the caller may not see. ``score`` is None for no hit.
    ``leaves`` are all that the query looks up, under a NOT, too.
    """

    document: Document
    may_read: bool
    score: float | None
    leaves: tuple[LeafWeight, ...]
    by_meaning: float = 0.0


class DocumentDigest(msgspec.Struct, frozen=True, order=True):
    """What the index holds of one object, with a 16-byte digest.

    It is ``consistent`` if searches find it by its own type, ACL and owner, and by none that only others of the same
    list have, if searches for former versions do not err, and if it can be read.
    """

    counter: int
    key: str
    digest: bytes
    consistent: bool = True


Marker: TypeAlias = Callable[[str], tuple[tuple[int, int], ...]]
"""Returns the matches in a text, which do not overlap, each with its first index and the index after its last."""


class Snapshot(Protocol):
    """The index as of one commit."""

    @property
    def position(self) -> Position:
        """The snapshot is complete up to here, and may hold newer documents."""

    def search(self, search: Search) -> Answer:
        """Raises IndexUnavailable, and BadQuery if the engine refuses the query, such as a prefix with which too many
        words begin.
        """

    def search_sorted(self, search: Search, sorts: Sequence[SortedBy]) -> Answer | None:
        """Search in this order, then by counter, always with the total; None if the index has no such order.

        Raises what ``search`` raises.
        """

    def counters(self, search: Search, order: Order) -> Sequence[int]:
        """Without keywords, ``relevance`` is ``newest``.

        Raises what ``search`` raises.
        """

    def embeddings(self, search: Search) -> Sequence[int]:
        """Return ids in ascending order, or none if there are more than the engine reads.

        Raises what ``search`` raises.
        """

    def examine(self, search: Search, key: str) -> Examination | None:
        """Return None if the index does not hold the object.

        Its score is ``by_meaning`` plus the weights of the words that find it, or more if any word is enough, as words
        near each other add to it.

        Raises what ``search`` raises.
        """

    def completions(self, search: Search, beginning: str, limit: int) -> list[WordCount]:
        """List words with this beginning in the hits, the most common first, then by alphabet.

        Of objects that the caller may only browse, only metadata count. Stop words are left out; without one word of 2
        to 60 letters, the list is empty.

        Raises what ``search`` raises.
        """

    def corrections(self, visible: Visible, word: str) -> list[Correction]:
        """List what a word may be that finds nothing for the caller, the likeliest first: by letters that differ, then
        by objects. Each is in a part of an object that the caller may see.

        Raises IndexUnavailable.
        """

    def telling_words(self, visible: Visible, key: str, text: str, limit: int) -> list[str]:
        """Return the words that say most about a text, in its order.

        They are often in the text, and in few of the objects that the caller may see, but at least one besides ``key``.
        Of several forms, the commonest in the text is taken; stop words are not.

        Raises IndexUnavailable.
        """

    def marker(self, search: Search) -> Marker:
        """Return a function that finds matches as excerpts do, and outlives the snapshot.

        Raises what ``search`` raises.
        """

    def documents(self, keys: Collection[str] | None = None) -> Iterator[Document]:
        """Read documents, all with one key. The iterator raises IndexUnavailable, perhaps only after some."""

    def digests(self, after: int, to: int | None, limit: int) -> list[DocumentDigest]:
        """Read digests by counter, above ``after``, and at most ``to`` if given. Raises IndexUnavailable, also if the
        index does not hold counters.
        """

    def digests_of(self, keys: Collection[str]) -> list[DocumentDigest]:
        """Read all with these keys, by counter.

        Raises what ``digests`` raises.
        """

    def digest(self, document: Document) -> DocumentDigest:
        """Return what ``digests`` would for a document that this release wrote.

        An index that an earlier release has filled may give another digest of an equal document.
        """


class Index(Protocol):
    """One repository's index, open for reading."""

    def snapshot(self) -> Snapshot:
        """Take the newest commit.

        Raises IndexUnavailable.
        """

    def close(self) -> None:
        """Let go what is open; snapshots may go on."""


class OtherFormat(Exception):
    """A writer would give the index another format, other languages or rules, so it must be rebuilt."""


class EngineAway(OSError):
    """The engine's server does not do the work now; the message says why. Trying again may help."""


class IndexWriter(Protocol):
    """One generation, which has one writer at a time."""

    @property
    def position(self) -> Position:
        """The position of the last commit."""

    def apply(self, documents: Iterable[Document], keys_to_remove: Collection[str], position: Position) -> None:
        """Write and delete, and then move to the position. A document replaces the one with its key.

        If this raises, the position has not moved, unless all is written; the index may hold some documents that are
        newer than its position. Raises EngineAway.
        """

    def close(self) -> None:
        """Wait for the engine's work in the background, and release the lock."""


class RepositoryIndex(Protocol):
    """One repository's index with its generations."""

    def reader(self) -> Index:
        """Follow the current generation when it changes."""

    def current(self) -> str | None:
        """Return None if there is none yet."""

    def writer(self, generation: str) -> IndexWriter:
        """A new generation is empty.

        Raises OtherFormat, IndexUnavailable, OSError.
        """

    def rebuilding(self) -> AbstractContextManager[str]:
        """Hold the right to begin a generation, of one process of this machine.

        Raises InUse. The right also ends with the process. The block gets the name of this machine's leases, as in
        ``Engine.sole_agent``.
        """

    def begin(self) -> str:
        """Return the next generation's name."""

    def switch(self, generation: str) -> None:
        """Make it current, atomically, and through a crash."""

    def remove(self) -> None:
        """Remove all that the engine has stored about the repository."""


class Engine(Protocol):
    """The indexes of all repositories."""

    def languages(self) -> Sequence[str]:
        """List English names of the languages whose stems an index may hold."""

    def index(self, repository: Repository) -> RepositoryIndex:
        """Return the index, even without a generation."""

    def follower(self) -> str:
        """Name the agent of these indexes, the same as long as they exist."""

    def sole_agent(self) -> AbstractContextManager[str]:
        """Hold the right to be their agent, of one process of this machine.

        It also ends with the process. The block gets the name of this machine's leases: the next process gets the same,
        and so takes them over at once.

        Raises InUse when another process has the right.
        """

    def sweep(self, now: Instant) -> None:
        """Remove what is not current, and which no process can still be reading."""
