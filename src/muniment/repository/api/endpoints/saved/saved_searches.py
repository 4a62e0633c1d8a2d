"""Make, show, list and remove saved searches and search templates.

Source: docs/interface.md, ours 12 and 13.
"""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.saved import saved_bodies, saved_shapes
from muniment.repository.api.endpoints.saved.saved_bodies import SearchDraft
from muniment.repository.api.endpoints.saved.saved_shapes import PATHS, SearchRepresentation
from muniment.repository.api.endpoints.search import search
from muniment.repository.api.endpoints.search.search_requests import NamedQuery, QuerySource
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.wire import parameters
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownSavedSearch, WrongValue
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.filters.cursors import CursorBinding
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches, stored_results
from muniment.repository.store.saved.saved_searches import (
    Kind,
    SavedDocument,
    SavedSearch,
    SavedSearchQuota,
    SearchChange,
)

_DEFAULT_RESULTS = 1000


async def list_all(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """List every saved {kind} that the caller may see.

    Without a sort in the request, what the caller owns comes first, then what others own, each with the newest first.
    """
    feed = saved_shapes.feed_request(request, context, await enter(request, context), kind)
    return await collections.answer_with_list(
        feed, lambda cx, principals, feed: saved_shapes.list_page(cx, principals, feed, kind)
    )


@events.tells()
async def make(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Save a {kind}, which the caller owns."""
    caller, media_type = await enter_for_thing(request, context)
    repository = caller.repository
    body = await saved_bodies.receive(request, context, kind, repository.name)
    if body.change.document is None and body.reference is None:
        raise Malformed(f"The body has neither {saved_bodies.DOCUMENTS[kind]!r} nor 'search-reference'.")
    await _check(context, caller, kind, body.change.document)
    new_search = await caller.write(lambda cx, principals: _make(cx, context, repository, principals, kind, body))
    return saved_shapes.answer_with_saved(request, context, caller, media_type, new_search, 201)


async def read(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Show a saved {kind}."""
    caller, media_type = await enter_for_thing(request, context)
    repository_id, search_id = caller.repository.id, identifier(request, kind)

    def find_and_represent(cx: Connection, principals: Principals) -> SearchRepresentation:
        saved_search = saved_searches.find(cx, repository_id, kind, search_id, principals)
        return saved_shapes.represent(cx, repository_id, principals, kind, [saved_search])[0]

    return saved_shapes.answer_with_saved(request, context, caller, media_type, await caller.read(find_and_represent))


@events.tells()
async def remove(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Remove a saved {kind}, and the results that were stored."""
    caller = await enter(request, context)
    repository_id, search_id = caller.repository.id, identifier(request, kind)
    expected = representations.expected_version(request)
    await caller.write(
        lambda cx, principals: saved_searches.remove(cx, repository_id, kind, search_id, principals, expected)
    )
    return Response(status_code=204)


@events.tells()
async def change(request: Request, context: RepositoryContext) -> Response:
    """Change a saved search."""
    caller, media_type = await enter_for_thing(request, context)
    repository_id, search_id = caller.repository.id, identifier(request, "search")
    expected = representations.expected_version(request)
    body = await saved_bodies.receive(request, context, "search", caller.repository.name)
    if body.reference is not None:
        raise Malformed("A reference makes a new saved search; it changes none.")
    await _check(context, caller, "search", body.change.document)

    def decide(cx: Connection, principals: Principals) -> SearchRepresentation:
        now, quota = context.clock(), _quota(context)
        saved_search = saved_searches.change(
            cx, repository_id, search_id, body.change, principals, quota, now, expected
        )
        return saved_shapes.represent(cx, repository_id, principals, "search", [saved_search])[0]

    return saved_shapes.answer_with_saved(request, context, caller, media_type, await caller.write(decide))


async def execute(request: Request, context: RepositoryContext) -> Response:
    """Execute a saved search with the caller's own rights."""
    caller = await enter(request, context)
    search_id = identifier(request, "search")

    def find(cx: Connection, principals: Principals) -> NamedQuery:
        return _named_query(_find(cx, caller.repository, search_id, principals), context)

    path = f"{PATHS['search']}/{search_id}/execution"
    return await search.execute(request, context, caller, QuerySource(find, path))


@events.tells()
async def store(request: Request, context: RepositoryContext) -> Response:
    """Execute a saved search, and store the results for the caller."""
    caller = await enter(request, context)
    repository, search_id = caller.repository, identifier(request, "search")
    feed = _results_feed(request, context, caller, search_id)
    most = _most_results(parameters.read(request), context.options.max_stored_results)
    executed_searches: list[SavedSearch] = []

    def find(cx: Connection, principals: Principals) -> NamedQuery:
        executed_searches[:] = [_find(cx, repository, search_id, principals)]
        return _named_query(executed_searches[0], context)

    ids = await search.all_ids(request, context, caller, QuerySource(find), most)
    await caller.write(
        lambda cx, principals: saved_searches.store_results(
            cx, repository.id, executed_searches[0], ids, principals, _quota(context), context.clock()
        )
    )
    return await _answer_results(feed, search_id)


async def results(request: Request, context: RepositoryContext) -> Response:
    """Show the results that the caller has stored."""
    caller = await enter(request, context)
    search_id = identifier(request, "search")
    feed = _results_feed(request, context, caller, search_id)
    return await _answer_results(feed, search_id)


@events.tells()
async def remove_results(request: Request, context: RepositoryContext) -> Response:
    """Remove the results that the caller has stored."""
    caller = await enter(request, context)
    repository, search_id = caller.repository, identifier(request, "search")
    await caller.write(
        lambda cx, principals: stored_results.remove(
            cx, _find(cx, repository, search_id, principals).id, principals.key
        )
    )
    return Response(status_code=204)


def identifier(request: Request, kind: Kind) -> str:
    search_id: str = request.path_params[kind]
    return search_id.lower()[:40]


async def _check(context: RepositoryContext, caller: Caller, kind: Kind, document: SavedDocument | None) -> None:
    """Check in a read transaction, before the write begins: it takes long for a large document."""
    if document is None:
        return

    def check(cx: Connection, principals: Principals) -> None:
        view = RepositoryView.read(cx, caller.repository, principals)
        saved_documents.CHECKS[kind](cx, view, document, context.options, context.clock())

    await caller.read_long(check)


def _make(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    kind: Kind,
    body: SearchDraft,
) -> SearchRepresentation:
    now, document, change = context.clock(), body.change.document, body.change
    if body.reference is not None:
        original = _find_reference(cx, repository, principals, body)
        document = original.document
        view = RepositoryView.read(cx, repository, principals)
        saved_documents.CHECKS[kind](cx, view, document, context.options, now)
        name = original.name if change.name is None else change.name
        description = original.description if change.description is None else change.description
        change = SearchChange(name, description, change.public)
    if document is None:
        raise Malformed("The body has no document.")
    saved_search = saved_searches.add(cx, repository.id, kind, change, document, principals, _quota(context), now)
    return saved_shapes.represent(cx, repository.id, principals, kind, [saved_search])[0]


def _find_reference(cx: Connection, repository: Repository, principals: Principals, body: SearchDraft) -> SavedSearch:
    if body.reference is None:
        raise Malformed("The body has no reference.")
    try:
        return saved_searches.find(cx, repository.id, body.reference.kind, body.reference.id, principals)
    except UnknownSavedSearch as unknown:
        raise WrongValue(f"'search-reference': {unknown.sentence}") from unknown


def _find(cx: Connection, repository: Repository, search_id: str, principals: Principals) -> SavedSearch:
    return saved_searches.find(cx, repository.id, "search", search_id, principals)


def _named_query(saved_search: SavedSearch, context: RepositoryContext) -> NamedQuery:
    query = saved_documents.query(saved_search.document, QueryLimits.of(context.options))
    return NamedQuery(query, saved_search.name, saved_search.modified)


def _quota(context: RepositoryContext) -> SavedSearchQuota:
    return SavedSearchQuota(context.options.max_saved_searches, context.options.max_saved_search_bytes)


def _results_feed(request: Request, context: RepositoryContext, caller: Caller, search_id: str) -> FeedRequest:
    path = f"{PATHS['search']}/{search_id}/results"
    return collections.feed_request(request, context, caller, path, "Stored results")


def _most_results(values: Mapping[str, str], limit: int) -> int:
    text = values.get(parameters.MAX_RESULTS.name, "").strip()
    if text == "-1":
        return limit
    if not text:
        return min(_DEFAULT_RESULTS, limit)
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) > 0):
        raise Malformed(f"The parameter {parameters.MAX_RESULTS.name!r} is a number from 1 on, or -1.")
    return min(int(text), limit)


async def _answer_results(feed: FeedRequest, search_id: str) -> Response:
    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        repository = feed.repository
        _find(cx, repository, search_id, principals)
        results = stored_results.read(cx, search_id, principals.key)
        view = RepositoryView.read(cx, repository, principals)
        binding = CursorBinding(repository.id, principals.key, f"results {search_id} {results.stored}")
        return collections.list_page(
            cx,
            binding,
            feed.page,
            lambda stretch: lists.page_among(cx, view, results.object_ids, stretch),
            lambda members: feed.with_objects(cx, view, members, _entry),
            lambda: lists.count_among(cx, view, results.object_ids),
        )

    return await collections.answer_with_list(feed, question)


def _entry(here: str, stored: StoredObject, names: RepositoryNames) -> FeedEntry:
    """Its id is the object's, its summary title or name."""
    summary = str(next(iter(stored.properties.get("title", ())), stored.name))
    own = f"{here}/objects/{stored.id}"
    entry = collections.object_entry(here, stored, names)
    return msgspec.structs.replace(entry, id=stored.id, summary=summary, address=own)
