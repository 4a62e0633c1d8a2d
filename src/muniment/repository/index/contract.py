"""The narrow interface of an index: the agent puts documents in, a search asks one snapshot of it.

It knows neither folders nor the built-in engine. A generation is one making of an index and has a name that the engine
chooses. Searches read the current one while a rebuild fills the next.

A search takes a snapshot first and asks the database second: every change the snapshot has not seen is then known as
pending, and what the answer says is true at the time of the database's read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from muniment.clock import Instant
from muniment.naming import fold_name
from muniment.repository.aql.tree import Query
from muniment.repository.change_log.changes import Position
from muniment.repository.index.document import Document


class IndexedObject(Protocol):
    """What an index keeps of an object that says who may see it."""

    @property
    def key(self) -> str:
        """The object's identifier."""

    @property
    def acl(self) -> int:
        """The id of its ACL."""

    @property
    def owner(self) -> str:
        """The key its owner's objects are stored under; an index of an earlier release holds the owner as shown."""


class Visible(msgspec.Struct, frozen=True):
    """What one caller may see, resolved from the database after the snapshot was taken.

    A match in metadata counts where the object may be browsed, one in content where it may be read; who may read may
    browse. ``hidden`` names objects with a change that the snapshot does not hold: they are left out. ``browse`` and
    ``read`` name objects whose permission the database has decided because their ACL has changed since; for these the
    ACL in the index is ignored. ``owner`` is the key that the caller's own objects are stored under.
    """

    everything: bool = False
    owner: str = ""
    browse_acls: frozenset[int] = frozenset()
    read_acls: frozenset[int] = frozenset()
    hidden: frozenset[str] = frozenset()
    decided: frozenset[str] = frozenset()
    browse: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()

    def may_read(self, kept: IndexedObject) -> bool:
        """Say whether an object that the index found may be read, by what the index keeps of it."""
        if self.everything:
            return True
        if kept.key in self.decided:
            return kept.key in self.read
        owned = bool(self.owner) and fold_name(kept.owner) == self.owner
        return owned or kept.acl in self.read_acls


class Statistics(msgspec.Struct, frozen=True):
    """Term statistics that a query brings along instead of the index's own: documents counted, and per term."""

    documents: int
    document_frequency: Mapping[tuple[str, str], int]


class Facet(msgspec.Struct, frozen=True):
    """A count of hits by the values of one property, the most frequent first."""

    name: str
    limit: int


class Search(msgspec.Struct, frozen=True):
    """One question to a snapshot. ``query`` is already checked against the catalogue, its types spelled out."""

    query: Query
    visible: Visible
    offset: int
    limit: int
    total: bool = False
    facets: tuple[Facet, ...] = ()
    statistics: Statistics | None = None


class IndexHit(msgspec.Struct, frozen=True):
    """One result: the object, how well it fits, an excerpt around the match, the words that matched."""

    object_id: str
    score: float
    excerpt: str
    terms: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True):
    """What a search found. ``total`` is exact, and None unless asked for."""

    hits: tuple[IndexHit, ...]
    total: int | None = None
    facets: Mapping[str, tuple[tuple[str, int], ...]] = {}


class Snapshot(Protocol):
    """The index as of one commit."""

    @property
    def position(self) -> Position:
        """The position of the change log that this snapshot is true to."""

    def search(self, search: Search) -> Answer:
        """Answer a search. Raises BadQuery for what the engine refuses (too many prefix words, too deep a page)."""

    def documents(self) -> Iterator[Document]:
        """Read every document as the index keeps it, for the checker; doubled keys come doubled."""


class Index(Protocol):
    """One repository's index, open for reading."""

    def snapshot(self) -> Snapshot:
        """Take the newest commit. Raises IndexUnavailable."""

    def close(self) -> None:
        """Close the files."""


class OtherFormat(Exception):
    """An index was written in another format than this release writes: it has to be made anew."""


class IndexWriter(Protocol):
    """One repository's index, open for writing; there is one writer at a time."""

    @property
    def position(self) -> Position:
        """The position of the last commit."""

    def apply(self, documents: Iterable[Document], gone: Collection[str], position: Position) -> None:
        """Replace these documents, drop those gone, and move to the position: all in one commit, or nothing."""

    def close(self) -> None:
        """Finish merges and let the lock go."""


class RepositoryIndex(Protocol):
    """One repository's index with its generations."""

    def reader(self) -> Index:
        """Open it for reading, whichever generation is the current one."""

    def current(self) -> str | None:
        """Name the current generation; None before the first."""

    def writer(self, generation: str) -> IndexWriter:
        """Open a generation for writing; a new one is empty. Raises OtherFormat, IndexUnavailable, OSError."""

    def rebuilding(self) -> AbstractContextManager[str]:
        """Hold this machine's only right to begin a generation while the block runs. Raises InUse.

        The right ends with the process that holds it. Gives the name of the place that has it, as for ``alone``.
        """

    def begin(self) -> str:
        """Begin the next generation, and name it."""

    def switch(self, generation: str) -> None:
        """Make this generation the current one; it survives a crash, and nobody sees half of it."""

    def remove(self) -> None:
        """Remove every generation, with what is said about them."""


class Engine(Protocol):
    """What keeps the indexes of all repositories."""

    def index(self, repository_id: int) -> RepositoryIndex:
        """Return the index of one repository, whether it has a generation or not."""

    def follower(self) -> str:
        """Name the agent that writes these indexes: the same name as long as they are there."""

    def alone(self) -> AbstractContextManager[str]:
        """Be this machine's only agent of these indexes while the block runs. Raises InUse when another one is.

        The right ends with the process that holds it. Gives the name of the place that has it: whoever has the right
        later has the same name, so they take over the lease of their predecessor at once.
        """

    def sweep(self, now: Instant) -> None:
        """Drop generations that are not current, once nobody can be reading them."""
