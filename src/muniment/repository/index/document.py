"""An object as the index keeps it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import msgspec

from muniment.clock import Instant
from muniment.repository.aql.tree import Value
from muniment.repository.index.text import normal, whole


class Stored(Protocol):
    """What of an object its document is made from."""

    @property
    def id(self) -> str:
        """The object's identifier, 16 hexadecimal digits."""

    @property
    def seq(self) -> int:
        """The object's counter: which object was made first."""

    @property
    def modified(self) -> Instant:
        """When the object was changed last."""

    @property
    def type(self) -> str:
        """The object's own type, in neutral spelling."""

    @property
    def owner_key(self) -> str:
        """What the owner's objects are stored under."""

    @property
    def acl_id(self) -> int:
        """The ACL the object carries."""


class Document(msgspec.Struct, frozen=True):
    """One object: what it is found by, who may find it, and what it says.

    ``owner`` is the key that the owner's objects are stored under. ``values`` holds every searchable property in
    neutral spelling; a double is a float, a date an instant. ``seq`` is the object's counter and ``modified`` its last
    change, which hits are ordered by. ``text`` is in the form that is split into words
    (``text.normal``). ``ids`` names the values that are ids, not words: keywords do not look at them.
    """

    key: str
    seq: int
    modified: Instant
    type: str
    acl: int
    owner: str
    values: dict[str, tuple[Value, ...]]
    text: str
    ids: tuple[str, ...] = ()


def document(
    stored: Stored, values: Mapping[str, Sequence[Value]], text: str, ids: AbstractSet[str] = frozenset()
) -> Document:
    """Make the document of an object from its row, its searchable values and the text of its content.

    ``ids`` names the custom properties of kind id, whether the object has them or not.
    """
    kept = {
        name: tuple(whole(value) if isinstance(value, str) else value for value in several)
        for name, several in values.items()
        if several
    }
    return Document(
        stored.id,
        stored.seq,
        stored.modified,
        stored.type,
        stored.acl_id,
        stored.owner_key,
        kept,
        normal(text),
        tuple(sorted(ids & kept.keys())),
    )
