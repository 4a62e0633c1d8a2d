"""What does the index keep of an object?"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.search.analysis.text import whole
from muniment.repository.search.aql.tree import Value
from muniment.repository.store.objects.table import StoredObject


class Document(msgspec.Struct, frozen=True):
    """One object in the index: its searchable values, its text, its owner and its ACL.

    ``values`` holds every searchable property by its neutral name, which no setting changes. A double is held as a
    float, and a date as an instant. ``ids`` names the properties that hold ids, in which keywords are not sought.
    ``embedding`` is the id of the embedding of the object's heading and text, or 0 while there is none. A ``former``
    version is found only if a search asks for all versions.
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
    """Make the document of an object from its row, its searchable values and the text of its content.

    ``ids`` names all custom properties of kind id that the repository's types define.
    """
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
