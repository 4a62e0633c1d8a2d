"""Which repository does a decision work on, with which object types, and for which caller?"""

from typing import Self

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository


class RepositoryView(msgspec.Struct, frozen=True):
    """A repository as one caller works with it, with its types as of one read. With ``unique_names``, a folder has each
    name once.
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
