"""A page of a search: hits of the index that the database confirms.

First a snapshot of the index is taken. Then one read of the database says what the caller may see, which changes the
snapshot has missed, and which properties the hits have now. So a page obeys every change that was answered before it,
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
"""How many missed changes a search takes into account; if the index is further behind, the search is refused."""

_CHANGED_WITH_THE_ACL = frozenset({bind.ACL_NAME, "r_modify_date", "r_modifier"})


class SearchQuestion(msgspec.Struct, frozen=True):
    """A caller's question: a query as they wrote it, and the page of hits that they want."""

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
    """One page of hits as of ``position`` in the change log. ``has_more`` says whether another page follows."""

    hits: tuple[Hit, ...]
    page: int
    items_per_page: int
    total: int | None
    has_more: bool
    position: Position


def search(
    database: Database,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    max_offset: int,
    max_pending: int = MAX_PENDING,
) -> HitPage:
    """Answer one page. ``max_offset`` is the deepest hit that a page may include.

    ``max_pending`` is how many changes that hide or show objects the snapshot may have missed. Raises BadQuery,
    UnknownType, UnknownProperty, WrongValue, IndexBehind.
    """
    offset = (question.page - 1) * question.items_per_page
    if offset + question.items_per_page > max_offset:
        raise BadQuery(f"Page {question.page} lies past hit {max_offset}, the deepest that paging reaches.")
    with database.read() as cx:
        catalogue = object_types.catalogue(cx, repository.id)
        texts = bind.acl_texts(question.query.condition)
        query = bind.bind(question.query, catalogue, acls.look_up(cx, repository.id, texts, principals))
        visible_objects = visible(cx, repository, principals, query, snapshot.position, max_pending)
        answer = snapshot.search(
            Search(query, visible_objects, offset, question.items_per_page + 1, total=question.include_total)
        )
        rows = objects.rows(cx, repository.id, [hit.object_id for hit in answer.hits])
    vouched = [(hit, rows.get(hit.object_id)) for hit in answer.hits]
    hits = [
        _to_hit(hit, row) for hit, row in vouched if row is not None and _may_browse(row, principals, visible_objects)
    ]
    total, unvouched = answer.total, len(vouched) - len(hits)
    if unvouched:
        log.error("hits without permission", repository=repository.name, hits=unvouched)
        total = None if total is None else total - unvouched
    return HitPage(
        hits=tuple(hits[: question.items_per_page]),
        page=question.page,
        items_per_page=question.items_per_page,
        total=total,
        has_more=len(answer.hits) > question.items_per_page,
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
    """Say what the caller may see of an index as of ``position``; ``query`` is bound.

    A change that the index has missed hides its object, except in two cases, in which the caller may see every value
    and all text that the index holds. In the first, only the ACL changed and they may see the object now. In the
    second, properties changed too and they are its owner, who saw the old values. An administrator may see old values.
    Raises IndexBehind.
    """
    behind = changes.hiding(cx, repository.id, position, max_pending)
    acl_matters = frozenset({"acl"}) if _names(query.condition) & _CHANGED_WITH_THE_ACL else frozenset()
    open_to_decision = {
        object_id: kinds
        for object_id, kinds in behind.items()
        if kinds <= {"acl", "properties"} and not kinds & acl_matters
    }
    hidden = behind.keys() - open_to_decision.keys()
    if principals.administrator:
        return Visible(everything=True, owner=principals.key, hidden=frozenset(hidden))
    permissions = acls.granted(cx, repository.id, principals, Permission.BROWSE)
    browse_acls = frozenset(permissions)
    read_acls = frozenset(acl_id for acl_id, permission in permissions.items() if permission >= Permission.READ)
    browsable, readable = set(), set()
    for object_id, row in objects.rows(cx, repository.id, list(open_to_decision)).items():
        is_owner = principals.is_(row.owner_key)
        if not is_owner and "properties" in open_to_decision[object_id]:
            continue
        if is_owner or row.acl_id in browse_acls:
            browsable.add(object_id)
        if is_owner or row.acl_id in read_acls:
            readable.add(object_id)
    return Visible(
        owner=principals.key,
        browse_acls=browse_acls,
        read_acls=read_acls,
        hidden=frozenset(hidden),
        decided=frozenset(open_to_decision),
        browse=frozenset(browsable),
        read=frozenset(readable),
    )


def _names(expression: Expression | None) -> frozenset[str]:
    if expression is None or isinstance(expression, Fulltext):
        return frozenset()
    if isinstance(expression, ExpressionSet):
        return frozenset().union(*(_names(part) for part in expression.expressions))
    if isinstance(expression, Carries):
        return frozenset({bind.ACL_NAME})
    return frozenset({expression.name})


def _may_browse(row: StoredObject, principals: Principals, visible_objects: Visible) -> bool:
    return principals.administrator or row.acl_id in visible_objects.browse_acls or principals.is_(row.owner_key)


def _to_hit(hit: IndexHit, row: StoredObject) -> Hit:
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
