"""In which folders does an object lie, and which objects lie in a folder?

Source: docs/interface.md, ours 2.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.objects.objects import writing_view
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import moving
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.listing.object_ids import kind_of
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

End: TypeAlias = Literal["parent", "child"]

_Decision: TypeAlias = Callable[[Connection, Principals], StoredObject]


async def list_parents(request: Request, context: RepositoryContext) -> Response:
    """List the folders in which an object lies."""
    object_id = representations.identifier(request)
    return await collections.answer_list(
        request,
        context,
        f"objects/{object_id}/parent-links",
        "Parent links",
        lambda cx, principals, feed: _parents(cx, principals, object_id, feed),
    )


async def list_children(request: Request, context: RepositoryContext) -> Response:
    """List the links of a folder to the objects in it."""
    folder_id = representations.identifier(request)
    return await collections.answer_list(
        request,
        context,
        f"folders/{folder_id}/child-links",
        "Child links",
        lambda cx, principals, feed: _children(cx, principals, folder_id, feed),
    )


@events.tells()
async def link(request: Request, context: RepositoryContext, end: End) -> Response:
    """Put an object into a folder."""
    caller, media_type = await enter_for_thing(request, context)
    repository = caller.repository
    own_id, other_id = representations.identifier(request), await _read_reference(request, context, repository)
    object_id, folder_id = (own_id, other_id) if end == "parent" else (other_id, own_id)
    return await _change(
        caller,
        media_type,
        end,
        folder_id,
        lambda cx, principals: moving.link(
            cx, writing_view(context, cx, repository, principals), object_id, folder_id, context.clock()
        ),
        201,
    )


async def read(request: Request, context: RepositoryContext, end: End) -> Response:
    """Show a link."""
    caller, media_type = await enter_for_thing(request, context)
    object_id, folder_id = _ends(request, end)
    stored = await caller.read(
        lambda cx, principals: moving.read_member(cx, caller.repository, principals, object_id, folder_id)
    )
    return _answer(caller, media_type, end, stored, folder_id, 200)


@events.tells()
async def move(request: Request, context: RepositoryContext) -> Response:
    """Move an object to another folder."""
    caller, media_type = await enter_for_thing(request, context)
    repository = caller.repository
    (object_id, folder_id), to_folder_id = _ends(request, "parent"), await _read_reference(request, context, repository)
    return await _change(
        caller,
        media_type,
        "parent",
        to_folder_id,
        lambda cx, principals: moving.move(
            cx, writing_view(context, cx, repository, principals), object_id, folder_id, to_folder_id, context.clock()
        ),
        200,
    )


@events.tells()
async def unlink(request: Request, context: RepositoryContext, end: End) -> Response:
    """Take an object out of a folder."""
    caller = await enter(request, context)
    object_id, folder_id = _ends(request, end)
    _, position = await caller.change(
        lambda cx, principals: moving.unlink(cx, caller.repository, principals, object_id, folder_id, context.clock()),
        lambda stored: stored.position,
    )
    return Response(status_code=204, headers=position)


def _ends(request: Request, end: End) -> tuple[str, str]:
    own_id, other_id = representations.identifier(request), request.path_params["other"].lower()[:40]
    return (own_id, other_id) if end == "parent" else (other_id, own_id)


async def _read_reference(request: Request, context: RepositoryContext, repository: Repository) -> str:
    return object_body.referenced_id(await object_body.read_body(request, context), repository.name)


async def _change(
    caller: Caller,
    media_type: str,
    end: End,
    folder_id: str,
    decision: _Decision,
    status: int,
) -> Response:
    stored, position = await caller.change(decision, lambda stored: stored.position)
    answer = _answer(caller, media_type, end, stored, folder_id, status)
    answer.headers.update(position)
    return answer


def _parents(cx: Connection, principals: Principals, object_id: str, feed: FeedRequest) -> ListPage:
    stored, selection = objects.read(cx, feed.repository, object_id, principals)[0], feed.page.selection
    return feed.listed(
        cx,
        principals,
        f"parent links {object_id}",
        lambda stretch: lists.parents(cx, stored, stretch, selection),
        lambda members: [_entry(feed, "parent", stored, each.folder_id) for each in members],
        lambda: lists.count_parents(cx, stored, selection),
    )


def _children(cx: Connection, principals: Principals, folder_id: str, feed: FeedRequest) -> ListPage:
    view, selection = RepositoryView.read(cx, feed.repository, principals), feed.page.selection
    objects.read(cx, feed.repository, folder_id, principals, "folder")
    folder, prefix = Folder(view, folder_id, "sysobject"), feed.names.type_prefix
    return feed.listed(
        cx,
        principals,
        f"child links {folder_id}",
        lambda stretch: lists.object_page(cx, folder, stretch, selection, type_prefix=prefix),
        lambda members: [_entry(feed, "child", each.stored, folder_id) for each in members],
        lambda: lists.count_objects(cx, folder, selection, type_prefix=prefix),
    )


def _entry(feed: FeedRequest, end: End, stored: StoredObject, folder_id: str) -> FeedEntry:
    return feed.entry(
        _address(feed.here, end, stored, folder_id),
        folder_id if end == "parent" else stored.name,
        stored.owner,
        folder_id if end == "parent" else f"{folder_id} {stored.id}",
        stored.modified,
        lambda: Thing("folder-link", _document(feed.names, feed.here, end, stored, folder_id)),
        published=stored.created,
    )


def _address(here: str, end: End, stored: StoredObject, folder_id: str) -> str:
    if end == "parent":
        return f"{here}/objects/{stored.id}/parent-links/{folder_id}"
    return f"{here}/folders/{folder_id}/child-links/{stored.id}"


def _answer(caller: Caller, media_type: str, end: End, stored: StoredObject, folder_id: str, status: int) -> Response:
    names, here = caller.names, caller.here
    document = _document(names, here, end, stored, folder_id)
    return spelling.reply(media_type, "folder-link", document, names, status, _address(here, end, stored, folder_id))


def _document(names: RepositoryNames, here: str, end: End, stored: StoredObject, folder_id: str) -> dict[str, Written]:
    own = _address(here, end, stored, folder_id)
    folder, thing = f"{here}/{kind_of(folder_id)}s/{folder_id}", f"{here}/objects/{stored.id}"
    return {
        "href": folder if end == "parent" else thing,
        "parent-id": folder_id,
        "child-id": stored.id,
        "links": [
            {"rel": "self", "href": own},
            {"rel": f"{names.linkrel_base}/delete", "href": own},
            {"rel": "parent", "href": folder},
            {"rel": f"{names.linkrel_base}/object", "href": thing},
        ],
    }
