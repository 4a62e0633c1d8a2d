"""A page of a search: hits of the index that the database vouches for, at the time of its own read.

The snapshot of the index comes first, then one read of the database that says what the caller may see, which changes
the snapshot has not seen, and what the hits are called now. So a page obeys every change that was answered before,
however far the index agent is behind. Source: given 2.9; docs/decisions/0004.
"""

import msgspec
import structlog
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import Database
from muniment.repository.aql import bind
from muniment.repository.aql.tree import Carries, Expression, ExpressionSet, Fulltext, Query
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import IndexHit, Search, Snapshot, Visible
from muniment.repository.objects import object_types, objects
from muniment.repository.objects.objects import StoredObject
from muniment.repository.permissions import acls
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import BadQuery
from muniment.repository.repositories import Repository

log = structlog.get_logger("muniment.repository.search.results")

MAX_PENDING = 2000
"""Changes that a search may have to take into account because the index is behind; it answers no search beyond."""

_MOVED_WITH_THE_ACL = frozenset({bind.ACL_NAME, "r_modify_date", "r_modifier"})


class Question(msgspec.Struct, frozen=True):
    """What a caller asks: a query as he spelled it, and which page of its hits."""

    query: Query
    page: int
    items_per_page: int
    include_total: bool = False


class Hit(msgspec.Struct, frozen=True):
    """One hit, with what the database says about the object."""

    object_id: str
    type: str
    title: str
    owner: str
    summary: str
    updated: Instant
    score: float
    terms: tuple[str, ...]


class HitPage(msgspec.Struct, frozen=True):
    """One page of hits, true to ``position`` of the change log. ``more`` says whether another page follows."""

    found: tuple[Hit, ...]
    page: int
    items_per_page: int
    total: int | None
    more: bool
    position: Position


def search(
    database: Database,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: Question,
    max_offset: int,
    max_pending: int = MAX_PENDING,
) -> HitPage:
    """Answer one page. ``max_offset`` is the deepest hit that paging reaches.

    ``max_pending`` is how many changes that hide or show objects the snapshot may be behind. Raises BadQuery,
    UnknownType, UnknownProperty, WrongValue, IndexBehind.
    """
    offset = (question.page - 1) * question.items_per_page
    if offset + question.items_per_page > max_offset:
        raise BadQuery(f"Page {question.page} lies past hit {max_offset}, the deepest that paging reaches.")
    with database.read() as cx:
        catalogue = object_types.catalogue(cx, repository.id)
        texts = bind.acl_texts(question.query.condition)
        query = bind.bind(question.query, catalogue, acls.look_up(cx, repository.id, texts, principals))
        seen = visible(cx, repository, principals, query, snapshot.position, max_pending)
        answer = snapshot.search(Search(query, seen, offset, question.items_per_page + 1, total=question.include_total))
        rows = objects.rows(cx, repository.id, [hit.object_id for hit in answer.hits])
    vouched = [(hit, rows.get(hit.object_id)) for hit in answer.hits]
    found = [_found(hit, row) for hit, row in vouched if row is not None and _may_browse(row, principals, seen)]
    total, unvouched = answer.total, len(vouched) - len(found)
    if unvouched:
        log.error("hits without permission", repository=repository.name, hits=unvouched)
        total = None if total is None else total - unvouched
    return HitPage(
        found=tuple(found[: question.items_per_page]),
        page=question.page,
        items_per_page=question.items_per_page,
        total=total,
        more=len(answer.hits) > question.items_per_page,
        position=snapshot.position,
    )


def visible(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    query: Query,
    position: Position,
    max_pending: int = MAX_PENDING,
) -> Visible:
    """Say what the caller may see of an index that is true to ``position``; ``query`` is bound.

    A change that the index has not seen hides its object, save in two cases where the caller may see, together, every
    value and all text that the index holds: only the ACL changed and he may see the object now, or properties changed
    too and he is its owner, who saw the old ones. An administrator may see old values. Raises IndexBehind.
    """
    behind = changes.hiding(cx, repository.id, position, max_pending)
    moved = frozenset({"acl"}) if _names(query.condition) & _MOVED_WITH_THE_ACL else frozenset()
    open_to_decision = {
        object_id: kinds for object_id, kinds in behind.items() if kinds <= {"acl", "properties"} and not kinds & moved
    }
    hidden = behind.keys() - open_to_decision.keys()
    if principals.administrator:
        return Visible(everything=True, owner=principals.key, hidden=frozenset(hidden))
    granted = acls.granted(cx, repository.id, principals, Permission.BROWSE)
    browse_acls = frozenset(granted)
    read_acls = frozenset(acl_id for acl_id, permission in granted.items() if permission >= Permission.READ)
    browse, read = set(), set()
    for object_id, row in objects.rows(cx, repository.id, list(open_to_decision)).items():
        owned = principals.is_(row.owner_key)
        if not owned and "properties" in open_to_decision[object_id]:
            continue
        if owned or row.acl_id in browse_acls:
            browse.add(object_id)
        if owned or row.acl_id in read_acls:
            read.add(object_id)
    return Visible(
        owner=principals.key,
        browse_acls=browse_acls,
        read_acls=read_acls,
        hidden=frozenset(hidden),
        decided=frozenset(open_to_decision),
        browse=frozenset(browse),
        read=frozenset(read),
    )


def _names(expression: Expression | None) -> frozenset[str]:
    if expression is None or isinstance(expression, Fulltext):
        return frozenset()
    if isinstance(expression, ExpressionSet):
        return frozenset().union(*(_names(part) for part in expression.expressions))
    if isinstance(expression, Carries):
        return frozenset({bind.ACL_NAME})
    return frozenset({expression.name})


def _may_browse(row: StoredObject, principals: Principals, seen: Visible) -> bool:
    return principals.administrator or row.acl_id in seen.browse_acls or principals.is_(row.owner_key)


def _found(hit: IndexHit, row: StoredObject) -> Hit:
    title = str(row.properties.get("title", [""])[0]) if row.properties.get("title") else ""
    return Hit(
        object_id=row.id,
        type=row.type,
        title=row.name,
        owner=row.owner,
        summary=hit.excerpt or title or row.name,
        updated=row.modified,
        score=hit.score,
        terms=hit.terms,
    )
