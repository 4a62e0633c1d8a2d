"""Has anything changed since an answer was worked out? Two random marks tell. The database itself renews them.

Every write that may change who a user is or what they may do renews the mark *generation* (decision 0057). Every write
that may end a token renews the mark *endings*. Sign-ins, refreshes and the purge end no living token, so they do not
renew *endings* (decision 0057). One statement reads both marks. An answer that was worked out under marks is true
until a mark changes or its token expires.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import PreparedStatement, directory_tables

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_generation = sa.Table(
    "generation",
    directory_tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("mark", sa.String(36), nullable=False),
)

_endings = sa.Table(
    "endings",
    directory_tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("mark", sa.String(36), nullable=False),
)

BOTH = PreparedStatement(
    sa.select(_generation.c.mark, _endings.c.mark).select_from(_generation.join(_endings, sa.true()))
)
"""The statement that reads both marks. Its row has the columns of ``Marks``."""

_GENERATION = PreparedStatement(sa.select(_generation.c.mark))


class Marks(NamedTuple):
    """The directory's two marks, read in one snapshot."""

    generation: str
    endings: str


class MarkedMemory(Generic[K, V]):
    """What one process remembers for one purpose: values by key, each with the mark under which it was worked out.

    All values together have at most ``limit`` bytes, by the sizes that callers of ``keep`` give. Beyond that
    limit, the values that were kept first are dropped. Any thread may use the memory.
    """

    def __init__(self, limit: int) -> None:
        self._entries: OrderedDict[K, tuple[Hashable, V, int]] = OrderedDict()
        self._bytes_left = limit
        self._lock = threading.Lock()

    def recall(self, key: K, mark: Hashable) -> V | None:
        """Return the value if it was worked out under this mark, otherwise None."""
        entry = self._entries.get(key)
        return None if entry is None or entry[0] != mark else entry[1]

    def keep(self, key: K, mark: Hashable, value: V, size: int) -> None:
        """Remember a value. The mark must come from the snapshot from which the value was worked out."""
        with self._lock:
            former = self._entries.pop(key, None)
            self._bytes_left += 0 if former is None else former[2]
            self._entries[key] = mark, value, size
            self._bytes_left -= size
            while self._bytes_left < 0:
                _, (_, _, freed_bytes) = self._entries.popitem(last=False)
                self._bytes_left += freed_bytes


def generation() -> sa.ScalarSelect[str]:
    """Return a subquery for the generation, for the statements of other modules."""
    return sa.select(_generation.c.mark).scalar_subquery()


def endings() -> sa.ScalarSelect[str]:
    """Return a subquery for the mark of endings, for the statements of other modules."""
    return sa.select(_endings.c.mark).scalar_subquery()


def read_generation(cx: Connection) -> str:
    """Read the generation."""
    row = _GENERATION.first(cx)
    assert row is not None  # noqa: S101 - a migration makes the row, and nothing deletes it
    mark: str = row[0]
    return mark


def lock_rights(cx: Connection) -> None:
    """Lock all rights: other decisions that change a right wait until this one is committed.

    What the decision reads after the call is up to date. On SQLite no other write transaction runs anyway.
    """
    cx.execute(sa.select(_generation.c.mark).with_for_update())
