"""What does a process remember from one search for the next? Queries, types, and what ACLs grant.

What the database says is remembered under the marks of the search's own snapshot (``marks``). So the very next search
after a commit obeys it, in every process (docs/decisions/0039).
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.memories import Memory
from muniment.repository import marks
from muniment.repository.aql import bind
from muniment.repository.aql.conditions import BoundQuery
from muniment.repository.aql.tree import Query, QueryLimits
from muniment.repository.objects import object_types
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.options import RepositoryNames
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission, Principals

ReadsQuery: TypeAlias = Callable[[bytes, RepositoryNames, QueryLimits], Query]
"""Reads the query of a document in one spelling."""

_BYTES, _ACLS, _CATALOGUES = 8_000_000, 1_000_000, 100
_encoder = msgspec.json.Encoder()


class GrantedAcls(msgspec.Struct, frozen=True):
    """The ids of the ACLs by which a caller may browse objects of other owners, and of those by which they may read."""

    browse: frozenset[int]
    read: frozenset[int]


class SearchMemory:
    """Remembers queries, types and ACLs for the searches of one process. ``cx`` must be a snapshot."""

    def __init__(self) -> None:
        self._read: Memory[tuple[ReadsQuery, bytes], Query] = Memory(_BYTES)
        self._bound: Memory[tuple[int, str, bytes, tuple[tuple[str, int], ...]], BoundQuery] = Memory(_BYTES)
        self._catalogues: Memory[tuple[int, str], Catalogue] = Memory(_CATALOGUES)
        self._granted: Memory[tuple[int, str, frozenset[str]], GrantedAcls] = Memory(_ACLS)

    def read(self, reader: ReadsQuery, document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
        """Return the query of a document in one spelling. Names and limits must be those of the process."""
        return self._read.answer((reader, document), lambda: reader(document, names, limits), 2 * len(document))

    def bind(
        self, cx: Connection, repository_id: int, query: Query, acl_ids: Mapping[str, int], now: Instant
    ) -> BoundQuery:
        """Bind a query to the repository's types. What depends on ``now`` is not remembered.

        Raises as ``bind.bind`` does.
        """
        # Numbers and truth values of one size are equal in Python, and differ as JSON.
        written = _encoder.encode(query)
        of_types = repository_id, marks.read(cx).types
        question = (*of_types, written, tuple(sorted(acl_ids.items())))
        bound = self._bound.recall(question)
        if bound is not None:
            return bound
        bound = bind.bind(query, self.catalogue(cx, repository_id), acl_ids, now)
        return bound if bind.has_ages(query.condition) else self._bound.keep(question, bound, 2 * len(written))

    def catalogue(self, cx: Connection, repository_id: int) -> Catalogue:
        """Return a repository's types."""
        of_types = repository_id, marks.read(cx).types
        return self._catalogues.answer(of_types, lambda: object_types.catalogue(cx, repository_id))

    def granted(self, cx: Connection, repository_id: int, principals: Principals) -> GrantedAcls:
        """Return which ACLs let the caller browse and read."""
        question = (repository_id, marks.read(cx).acls, principals.accessors)
        granted = self._granted.recall(question)
        if granted is not None:
            return granted
        permissions = acls.granted(cx, repository_id, principals, Permission.BROWSE)
        readable = (acl_id for acl_id, permission in permissions.items() if permission >= Permission.READ)
        granted = GrantedAcls(frozenset(permissions), frozenset(readable))
        if granted.read == granted.browse:
            granted = GrantedAcls(granted.browse, granted.browse)
        weight = len(granted.browse) + len(granted.read) + len(question[2])
        return self._granted.keep(question, granted, weight)
