"""Copy an object with its content into a folder.

Source: docs/interface.md, ours 2 (a body with `href`).
"""

from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.content.contract import StoredContent
from muniment.repository.objects import creation, object_ids, objects, properties
from muniment.repository.objects.creation import NewObject
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.properties import Given
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.usage import StorageQuota
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import NotOfferedYet, VersionConflict
from muniment.repository.repositories import Repository


def original(cx: Connection, repository: Repository, principals: Principals, object_id: str) -> StoredObject:
    """Read the object that is to be copied. Raises UnknownObject, NotPermitted (without Read), NotOfferedYet."""
    stored = objects.readable(cx, repository, object_id, principals)
    if object_ids.holds_objects(stored.id):
        raise NotOfferedYet("Copying a folder is not offered yet.")
    return stored


def copy(
    cx: Connection,
    view: RepositoryView,
    source: StoredObject,
    folder_id: str | None,
    content: StoredContent | None,
    now: Instant,
    quota: StorageQuota,
) -> StoredObject:
    """Make a copy of ``source`` in a folder, owned by the caller, with a copy of its content.

    Raises as ``creation.create`` and ``original`` do, and VersionConflict if the original has changed since it was
    read.
    """
    current = original(cx, view.repository, view.principals, source.id)
    if current.revision != source.revision:
        raise VersionConflict("The object was changed while it was copied: try again.")
    new = NewObject(source.type, _writable(source, view.catalogue), folder_id, content)
    return creation.create_all(cx, view, [new], now, quota)[0]


def _writable(source: StoredObject, catalogue: Catalogue) -> dict[str, Given]:
    """Return the properties that a caller may write, as a caller sends them."""
    values_to_copy: dict[str, Given] = {}
    for name, values in objects.values(source, catalogue, "").items():
        definition = catalogue.properties_of(source.type)[name]
        if definition.writable:
            json_value = properties.as_sent(definition, values)
            values_to_copy[name] = json_value if definition.repeating else json_value[0]
    return values_to_copy
