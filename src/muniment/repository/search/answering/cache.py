"""What does a process remember from one search to the next?

A search uses an answer only if its own read of the database finds the same mark: so the very next search in every
process obeys the commit (docs/decisions/0053).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.caches import Cache
from muniment.ground.clock import Instant
from muniment.repository import version_stamps
from muniment.repository.options import RepositoryNames
from muniment.repository.search.aql import bind
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.rewriting import joints
from muniment.repository.search.aql.rewriting.synonyms import Synonyms
from muniment.repository.search.aql.tree import Query, QueryLimits
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals

if TYPE_CHECKING:  # The libraries of ``meaning`` are an optional extra.
    from muniment.repository.search.meaning.nearness import Meaning

ReadsQuery: TypeAlias = Callable[[bytes, RepositoryNames, QueryLimits], Query]
"""Reads a query in one spelling: XML or JSON."""

_BYTES, _ACLS = 8_000_000, 1_000_000
_encoder = msgspec.json.Encoder()


class GrantedAcls(msgspec.Struct, frozen=True):
    """ACLs that let a caller browse, or also read, objects of others; the latter are in ``browse``, too."""

    browse: frozenset[int]
    read: frozenset[int]


class SearchCache:
    """Remembers queries and ACLs for one process; ``cx`` must read one snapshot of the database."""

    def __init__(
        self,
        synonyms: Synonyms | None = None,
        meaning: "Meaning | None" = None,
        meant: Callable[[str, str], str] = lambda _name, text: text,
    ) -> None:
        self.meaning = meaning
        self._synonyms = synonyms or Synonyms()
        self._meant = meant
        self._queries: Cache[tuple[ReadsQuery, bytes], Query] = Cache(_BYTES)
        self._bound_queries: Cache[tuple[int, bytes, tuple[tuple[str, int], ...]], BoundQuery] = Cache(_BYTES)
        self._granted_acls: Cache[tuple[int, frozenset[str]], GrantedAcls] = Cache(_ACLS)

    def read(self, reader: ReadsQuery, document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
        """Names and limits must be the same in all calls."""
        return self._queries.answer((reader, document), lambda: reader(document, names, limits), 2 * len(document))

    def bind(
        self, cx: Connection, repository_id: int, query: Query, acl_ids: Mapping[str, int], now: Instant
    ) -> BoundQuery:
        """A bound query that depends on ``now`` is not remembered.

        Raises what ``bind.bind`` raises.
        """
        # JSON, because in Python 1, 1.0 and True are equal, and two queries with them would be one.
        query_bytes = _encoder.encode(query)
        mark = version_stamps.read(cx).types
        question = repository_id, query_bytes, tuple(sorted(acl_ids.items()))
        bound_query = self._bound_queries.recall(question, mark)
        if bound_query is not None:
            return bound_query
        bound_query = bind.bind(
            self._synonyms.widen(joints.widen(query)),
            object_types.catalogue(cx, repository_id),
            acl_ids,
            now,
            self._meant,
        )
        return (
            bound_query
            if bind.has_ages(query.condition)
            else self._bound_queries.keep(question, bound_query, 2 * len(query_bytes), mark)
        )

    def granted_acls(self, cx: Connection, repository_id: int, principals: Principals) -> GrantedAcls:
        mark, question = version_stamps.read(cx).acls, (repository_id, principals.accessors)
        granted_acls = self._granted_acls.recall(question, mark)
        if granted_acls is not None:
            return granted_acls
        permissions = acls.permissions_by_acl(cx, repository_id, principals, Permission.BROWSE)
        readable = (acl_id for acl_id, permission in permissions.items() if permission >= Permission.READ)
        granted_acls = GrantedAcls(frozenset(permissions), frozenset(readable))
        if granted_acls.read == granted_acls.browse:
            granted_acls = GrantedAcls(granted_acls.browse, granted_acls.browse)
        weight = len(granted_acls.browse) + len(granted_acls.read) + len(principals.accessors)
        return self._granted_acls.keep(question, granted_acls, weight, mark)
