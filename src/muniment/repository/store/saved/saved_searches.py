"""Saved searches and search templates: keep, find, change, remove, give, list.

Everybody who may enter sees a public search; only the owner and administrators see another, and change any. Who
executes one does so with their own rights. What the caller may not see is answered like what does not exist; ids are
random and names need not differ, so neither tells.

Source: docs/interface.md, ours 12.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, is_storable
from muniment.repository.refusals import (
    NotPermitted,
    QuotaExceeded,
    UnknownSavedSearch,
    VersionConflict,
    WrongValue,
)
from muniment.repository.store import named_locks
from muniment.repository.store.filters import cursors, listed, pages, tree
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.saved import stored_results
from muniment.repository.store.saved.table import saved_searches

FORMAT = 1
"""Another number is needed if old documents would mean something else."""

LONGEST_NAME, LONGEST_DESCRIPTION = 255, 1000

_DIGITS = {"search": "53", "template": "54"}

Kind = Literal["search", "template"]

Spelling = Literal["json", "xml"]


class WrittenNames(msgspec.Struct, frozen=True):
    """The meaning of a document depends on these names on the wire, when it was received."""

    vocab_namespace: str
    type_prefix: str
    system_property_prefix: str


class SavedDocument(msgspec.Struct, frozen=True):
    """A document as it was received.

    ``question`` is the address of the search page that asked it, as the page wrote it, or empty.
    """

    spelling: Spelling
    names: WrittenNames
    body: bytes
    format: int = FORMAT
    question: str = ""


class SearchSummary(msgspec.Struct, frozen=True):
    """A saved search without its document; ``description`` explains it."""

    id: str
    name: str
    description: str
    owner: str
    owner_key: str
    public: bool
    created: Instant
    modified: Instant
    revision: int


class SavedSearch(SearchSummary, frozen=True):
    """A saved search or search template with its document."""

    document: SavedDocument


class SavedSearchQuota(msgspec.Struct, frozen=True):
    """One caller may own so many, over all repositories; ``bytes`` includes the results that they stored."""

    searches: int
    bytes: int


class SearchChange(msgspec.Struct, frozen=True):
    """What to set; None leaves a value as it is."""

    name: str | None = None
    description: str | None = None
    public: bool | None = None
    document: SavedDocument | None = None


class ListedSearch(NamedTuple):
    """A saved search of a list."""

    search: SearchSummary
    place: cursors.Place


def add(
    cx: Connection,
    repository_id: int,
    kind: Kind,
    change: SearchChange,
    document: SavedDocument,
    principals: Principals,
    quota: SavedSearchQuota,
    now: Instant,
) -> SavedSearch:
    """Raises WrongValue, QuotaExceeded."""
    texts = _check(change)
    if not texts.get("name"):
        raise WrongValue("Name the search: its 'object_name' has at least one character.")
    columns: dict[str, Any] = {
        "id": _DIGITS[kind] + secrets.token_hex(7),
        "repository_id": repository_id,
        "is_template": kind == "template",
        "description": "",
        **texts,
        "owner": principals.id,
        "owner_name": fold_name(principals.id),
        "owner_key": principals.key,
        "public": bool(change.public),
        "created": now,
        "modified": now,
        "revision": 1,
        **_document_columns(document),
    }
    columns["size"] = _size(columns["name"], columns["description"], document)
    _check_quota(cx, principals.key, quota, searches=1, size=columns["size"])
    return _to_search(cx.execute(saved_searches.insert().values(columns).returning(saved_searches)).one())


def find(cx: Connection, repository_id: int, kind: Kind, search_id: str, principals: Principals) -> SavedSearch:
    """Return a search that the caller may see.

    Raises UnknownSavedSearch.
    """
    return _to_search(_row(cx, sa.select(saved_searches), repository_id, kind, search_id, principals))


def change(
    cx: Connection,
    repository_id: int,
    search_id: str,
    search_change: SearchChange,
    principals: Principals,
    quota: SavedSearchQuota,
    now: Instant,
    expected: int | None = None,
) -> SavedSearch:
    """``expected`` is the revision that the caller has seen.

    A new document removes all stored results; made private, a search loses those of others than the owner.

    Raises UnknownSavedSearch, NotPermitted, VersionConflict, WrongValue, QuotaExceeded (only if the search grows).
    """
    saved_search = _own(cx, repository_id, "search", search_id, principals, expected)
    columns: dict[str, Any] = {**_check(search_change), "modified": now, "revision": saved_search.revision + 1}
    if search_change.public is not None:
        columns["public"] = search_change.public
    document = saved_search.document
    if search_change.document is not None and search_change.document != document:
        document = search_change.document
        columns |= _document_columns(document)
        stored_results.remove_all(cx, search_id)
    if search_change.public is False:
        stored_results.remove_all(cx, search_id, but=saved_search.owner_key)
    name, description = columns.get("name", saved_search.name), columns.get("description", saved_search.description)
    columns["size"] = _size(name, description, document)
    growth = columns["size"] - _size(saved_search.name, saved_search.description, saved_search.document)
    if growth > 0:
        _check_quota(cx, saved_search.owner_key, quota, size=growth)
    update = saved_searches.update().where(saved_searches.c.id == search_id).values(columns)
    return _to_search(cx.execute(update.returning(saved_searches)).one())


def remove(
    cx: Connection,
    repository_id: int,
    kind: Kind,
    search_id: str,
    principals: Principals,
    expected: int | None = None,
) -> None:
    """Remove a search with all results.

    Raises UnknownSavedSearch, NotPermitted, VersionConflict.
    """
    _own(cx, repository_id, kind, search_id, principals, expected)
    stored_results.remove_all(cx, search_id)
    cx.execute(saved_searches.delete().where(saved_searches.c.id == search_id))


def store_results(
    cx: Connection,
    repository_id: int,
    search: SavedSearch,
    object_ids: list[str],
    principals: Principals,
    quota: SavedSearchQuota,
    now: Instant,
) -> None:
    """Replace the results that the caller stored before.

    Raises UnknownSavedSearch, QuotaExceeded, and VersionConflict if the search has changed since ``search`` was read.
    """
    query = sa.select(saved_searches).with_for_update()
    row = _row(cx, query, repository_id, "search", search.id, principals)
    if row.revision != search.revision:
        raise VersionConflict("The search was changed while it was executed: try again.")
    text = stored_results.write(object_ids)
    # What is replaced counts no more.
    stored_results.remove(cx, search.id, principals.key)
    _check_quota(cx, principals.key, quota, size=len(text))
    stored_results.keep_results(cx, search.id, principals.key, text, now)


def saved_page(
    cx: Connection,
    repository_id: int,
    kind: Kind,
    principals: Principals,
    stretch: cursors.Stretch,
    selection: tree.Selection = tree.EVERYTHING,
) -> list[ListedSearch]:
    """List the searches, the caller's own first unless sorted; each part begins with the newest. Documents are not
    read.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    own_first = pages.Order(
        (
            pages.OrderKey(sa.case((saved_searches.c.owner_key == principals.key, 0), else_=1), kind="integer"),
            pages.OrderKey(saved_searches.c.created, descending=True, kind="date"),
            pages.OrderKey(saved_searches.c.id),
        )
    )
    rows = pages.fetch(cx, _members(repository_id, kind, principals), _property_of(kind), own_first, stretch, selection)
    return [ListedSearch(_summary(row), place) for row, place in rows]


def count_saved(
    cx: Connection, repository_id: int, kind: Kind, principals: Principals, selection: tree.Selection = tree.EVERYTHING
) -> int:
    """Raises UnknownProperty, WrongValue."""
    return pages.count_members(cx, _members(repository_id, kind, principals), _property_of(kind), selection)


def with_documents(cx: Connection, summaries: Sequence[SearchSummary]) -> list[SavedSearch]:
    """Read the documents of one page in one statement."""
    ids = [each.id for each in summaries]
    query = sa.select(saved_searches.c.id, *_DOCUMENT_COLUMNS).where(saved_searches.c.id.in_(ids))
    by_id = {row.id: _document(row) for row in cx.execute(query)}
    return [SavedSearch(**msgspec.structs.asdict(each), document=by_id[each.id]) for each in summaries]


def may_change(search: SearchSummary, principals: Principals) -> bool:
    return principals.administrator or principals.is_(search.owner_key)


def count_by_owner(cx: Connection, owner_key: str) -> int:
    return count_where(cx, saved_searches.c.owner_key == owner_key)


def give(cx: Connection, repository_id: int, key: str, owner: str, owner_key: str, now: Instant) -> int:
    """Return how many were given.

    Results that the former owner stored, found with their rights, stay theirs; those of private searches are removed.
    """
    columns = {"owner": owner, "owner_name": fold_name(owner), "owner_key": owner_key, "modified": now}
    of_owner = sa.and_(saved_searches.c.repository_id == repository_id, saved_searches.c.owner_key == key)
    columns["revision"] = saved_searches.c.revision + 1
    hidden = sa.select(saved_searches.c.id).where(of_owner, sa.not_(saved_searches.c.public))
    stored_results.remove_among(cx, hidden, key)
    return cx.execute(saved_searches.update().where(of_owner).values(columns)).rowcount


def next_saved(cx: Connection, repository_id: int, after_id: str, limit: int) -> list[tuple[Kind, SavedSearch]]:
    """Return them in the order of ids, whoever may see them."""
    query = sa.select(saved_searches).where(saved_searches.c.repository_id == repository_id)
    rows = cx.execute(query.where(saved_searches.c.id > after_id).order_by(saved_searches.c.id).limit(limit))
    return [("template" if row.is_template else "search", _to_search(row)) for row in rows]


def put_back(cx: Connection, repository_id: int, some: Sequence[tuple[Kind, SavedSearch]]) -> None:
    """Store searches under the ids that they have.

    Raises WrongValue for a text that is not allowed, and IntegrityError if an id is taken.
    """
    rows = [
        {
            **{name: getattr(each, name) for name in SearchSummary.__struct_fields__},
            **_check(SearchChange(each.name, each.description)),
            **_document_columns(each.document),
            "repository_id": repository_id,
            "is_template": kind == "template",
            "owner_name": fold_name(each.owner),
            "size": _size(each.name, each.description, each.document),
        }
        for kind, each in some
    ]
    if rows:
        cx.execute(saved_searches.insert(), rows)


def _members(repository_id: int, kind: Kind, principals: Principals) -> sa.Select[Any]:
    conditions = saved_searches.c.repository_id == repository_id, saved_searches.c.is_template == (kind == "template")
    return sa.select(*_SUMMARY_COLUMNS).where(*conditions, _visible_to(principals))


def _visible_to(principals: Principals) -> sa.ColumnElement[bool]:
    if principals.administrator:
        return sa.true()
    return sa.or_(saved_searches.c.owner_key == principals.key, saved_searches.c.public)


def _row(
    cx: Connection, query: sa.Select[Any], repository_id: int, kind: Kind, search_id: str, principals: Principals
) -> sa.Row[*tuple[Any, ...]]:
    row = cx.execute(
        query.where(
            saved_searches.c.id == search_id,
            saved_searches.c.repository_id == repository_id,
            saved_searches.c.is_template == (kind == "template"),
            _visible_to(principals),
        )
    ).first()
    if row is None:
        what = "saved search" if kind == "search" else "search template"
        raise UnknownSavedSearch(f"There is no {what} {search_id[:40]!r}.")
    return row


def _own(
    cx: Connection, repository_id: int, kind: Kind, search_id: str, principals: Principals, expected: int | None
) -> SavedSearch:
    """Lock a search that the caller may change until the commit.

    Raises UnknownSavedSearch, NotPermitted, VersionConflict.
    """
    query = sa.select(saved_searches).with_for_update()
    saved_search = _to_search(_row(cx, query, repository_id, kind, search_id, principals))
    if not may_change(saved_search, principals):
        raise NotPermitted("Only its owner or an administrator may change this search.")
    if expected is not None and expected != saved_search.revision:
        raise VersionConflict(f"The search has changed: its revision is {saved_search.revision}, not {expected}.")
    return saved_search


def _check_quota(cx: Connection, key: str, quota: SavedSearchQuota, *, size: int, searches: int = 0) -> None:
    """Raise QuotaExceeded if ``searches`` more, or ``size`` more bytes, are too many.

    Until the commit, no other transaction that calls this can add for this owner.
    """
    named_locks.take(cx, f"saved searches {key}")
    count, byte_count = cx.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(saved_searches.c.size), 0)).where(
            saved_searches.c.owner_key == key
        )
    ).one()
    if count + searches > quota.searches and searches:
        raise QuotaExceeded(f"You own {count} saved searches and search templates; one user may own {quota.searches}.")
    if int(byte_count) + stored_results.size(cx, key) + size > quota.bytes:
        raise QuotaExceeded(
            f"Saved searches, search templates and stored results of one user may take {quota.bytes} bytes together."
        )


def _check(change: SearchChange) -> dict[str, str]:
    """Return the texts by column.

    Raises WrongValue.
    """
    texts = {"name": (change.name, LONGEST_NAME), "description": (change.description, LONGEST_DESCRIPTION)}
    for text, longest in texts.values():
        if text is not None and not (len(text) <= longest and is_storable(text)):
            raise WrongValue(f"A name has at most {LONGEST_NAME} characters, a description {LONGEST_DESCRIPTION}.")
    if change.name is not None and not change.name.strip():
        raise WrongValue("The name of a search has at least one character.")
    return {column: text for column, (text, _) in texts.items() if text is not None}


def _size(name: str, description: str, document: SavedDocument) -> int:
    return len(name.encode()) + len(description.encode()) + len(document.body) + len(document.question.encode())


class _Written(WrittenNames, frozen=True, omit_defaults=True):
    question: str = ""


def _document_columns(document: SavedDocument) -> dict[str, Any]:
    written = _Written(**msgspec.structs.asdict(document.names), question=document.question)
    return {
        "format": document.format,
        "spelling": document.spelling,
        "names": msgspec.json.encode(written).decode(),
        "document": document.body,
    }


def _summary(row: Any) -> SearchSummary:
    return SearchSummary(**_fields(row))


def _to_search(row: Any) -> SavedSearch:
    return SavedSearch(**_fields(row), document=_document(row))


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in SearchSummary.__struct_fields__}


def _document(row: Any) -> SavedDocument:
    names = msgspec.json.decode(row.names, type=WrittenNames)
    question = msgspec.json.decode(row.names, type=_Written).question
    return SavedDocument(row.spelling, names, bytes(row.document), row.format, question)


_SUMMARY_COLUMNS = tuple(saved_searches.c[name] for name in SearchSummary.__struct_fields__)
_DOCUMENT_COLUMNS = tuple(saved_searches.c[name] for name in ("format", "spelling", "names", "document"))

_PROPERTIES = {
    "object_name": listed.exact(saved_searches.c.name),
    "owner_name": listed.single("string", saved_searches.c.owner, compared=saved_searches.c.owner_name, fold=fold_name),
    "r_is_public": listed.single("boolean", sa.case((saved_searches.c.public, 1), else_=0)),
    "r_object_id": listed.single("id", saved_searches.c.id),
    "r_creation_date": listed.single("date", saved_searches.c.created),
    "r_modify_date": listed.single("date", saved_searches.c.modified),
}
_DESCRIPTION = {"search": "title", "template": "subject"}


def _property_of(kind: Kind) -> listed.PropertiesOf:
    return listed.among({**_PROPERTIES, _DESCRIPTION[kind]: listed.exact(saved_searches.c.description)})
