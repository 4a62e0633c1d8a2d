"""What does the index keep of an object?"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.search.analysis.text import whole
from muniment.repository.search.aql.tree import Value
from muniment.repository.store.objects.table import StoredObject


class Document(msgspec.Struct, frozen=True):
    """One object in the index.

    ``values`` have neutral names; doubles are floats, dates instants. Keywords are not sought in ``ids``. ``embedding``
    is an id, or 0. A ``former`` version is found only if all versions are sought.
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
    embedding: int = 0
    former: bool = False


def document(
    stored: StoredObject,
    values: Mapping[str, Sequence[Value]],
    text: str,
    ids: AbstractSet[str] = frozenset(),
    embedding: int = 0,
) -> Document:
    """``ids`` are all custom properties of kind id."""
    storable = {
        name: tuple([whole(value) if isinstance(value, str) else value for value in of_name])
        for name, of_name in values.items()
        if of_name
    }
    return Document(
        stored.id,
        stored.seq,
        stored.modified,
        stored.type,
        stored.acl_id,
        stored.owner_key,
        storable,
        whole(text),
        tuple(sorted(ids & storable.keys())),
        embedding,
        stored.former,
    )
