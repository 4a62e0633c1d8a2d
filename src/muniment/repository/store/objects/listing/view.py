"""Which repository does a decision work on, with which object types, and for which caller?"""

from typing import Self

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository


class RepositoryView(msgspec.Struct, frozen=True):
    """A repository as one caller works with it: its object types as of one read, and the caller's principals.

    ``unique_names`` says whether the names in a folder must be unique.
    """

    repository: Repository
    catalogue: object_types.Catalogue
    principals: Principals
    unique_names: bool = False

    @classmethod
    def read(
        cls, cx: Connection, repository: Repository, principals: Principals, *, unique_names: bool = False
    ) -> Self:
        return cls(repository, object_types.catalogue(cx, repository.id), principals, unique_names)
