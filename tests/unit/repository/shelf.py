"""A repository with nothing in it yet, and who works with it: what the tests of this folder begin with."""

from collections.abc import Mapping
from pathlib import Path

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository import repositories
from muniment.repository.content.contract import StoredContent
from muniment.repository.content.files import FileStore
from muniment.repository.objects import creation, object_types, objects
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.objects.properties import Given
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission, Principals

MARTA = Principals("Marta@demo", frozenset({"staff@demo"}))
JON = Principals("jon@demo", frozenset({"guests@demo"}))
ADMIN = Principals("root@demo", administrator=True)


class Shelf:
    """One repository in a database, with a content store."""

    def __init__(self, database: Database, folder: Path, now: Instant) -> None:
        self.database, self.now = database, now
        self.store = FileStore(folder)
        with database.begin() as cx:
            self.repository = repositories.add(cx, "demo", "11111111-1111-1111-1111-111111111111", "", now)
            acls.initialise(cx, self.repository.id, now)

    def catalogue(self) -> Catalogue:
        """The types as they are now."""
        with self.database.read() as cx:
            return object_types.catalogue(cx, self.repository.id)

    def view(self, principals: Principals) -> RepositoryView:
        """The repository as this caller works with it now."""
        with self.database.read() as cx:
            return RepositoryView.read(cx, self.repository, principals)

    def create(
        self,
        given: Mapping[str, Given],
        principals: Principals = MARTA,
        type_name: str = "document",
        folder_id: str | None = None,
        content: StoredContent | None = None,
    ) -> StoredObject:
        """Make an object."""
        view = self.view(principals)
        with self.database.begin() as cx:
            return creation.create(cx, view, type_name, given, folder_id, content, self.now)

    def change(self, object_id: str, given: Mapping[str, Given], principals: Principals = MARTA) -> StoredObject:
        """Change an object."""
        view = self.view(principals)
        with self.database.begin() as cx:
            return objects.change(cx, view, object_id, given, self.now + 1)

    def read(self, object_id: str, principals: Principals = MARTA) -> tuple[StoredObject, Permission]:
        """Read an object."""
        with self.database.read() as cx:
            return objects.read(cx, self.repository, object_id, principals)

    def delete(self, object_id: str, principals: Principals = MARTA) -> StoredObject:
        """Delete an object."""
        with self.database.begin() as cx:
            return objects.delete(cx, self.repository, principals, object_id, self.now)

    def acl(self, name: str, entries: Mapping[str, Permission], principals: Principals = MARTA) -> acls.Acl:
        """Make an ACL."""
        with self.database.begin() as cx:
            return acls.add(cx, self.repository.id, name, principals, entries, self.now)
