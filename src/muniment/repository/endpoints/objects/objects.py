"""Read, change, delete and list objects, folders and cabinets.

Source: docs/interface.md, ours 2. An update is a POST.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.repository.change_log.changes import Position
from muniment.repository.cursors import CursorBinding
from muniment.repository.endpoints import collections, object_body, parameters, representations, spelling, uploads
from muniment.repository.endpoints.collections import FeedRequest, ListPage
from muniment.repository.endpoints.context import (
    ENTERING,
    Answering,
    RepositoryContext,
    address,
    enter,
)
from muniment.repository.endpoints.representations import ObjectBody
from muniment.repository.objects import lists, objects
from muniment.repository.objects.decisions import subtrees, version_removal
from muniment.repository.objects.decisions.version_removal import Scope
from muniment.repository.objects.lists import Folder
from muniment.repository.objects.properties.properties import Given
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.types import object_types
from muniment.repository.objects.view import RepositoryView
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import (
    CheckedOut,
    ContentDamaged,
    InUse,
    NameTaken,
    NotCheckedOut,
    NotPermitted,
    NotWritable,
    QuotaExceeded,
    StoreUnavailable,
    Superseded,
    UnknownAcl,
    UnknownObject,
    UnknownProperty,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository
from muniment.web.refusals import Malformed
from muniment.web.responses import ErrorCode, Table

TABLE: Table = {
    **ENTERING,
    **collections.SELECTING,
    UnknownObject: ErrorCode(404, "E_UNKNOWN_OBJECT"),
    ContentDamaged: ErrorCode(500, "E_CONTENT_DAMAGED"),
    StoreUnavailable: ErrorCode(503, "E_STORE_UNAVAILABLE"),
    NotPermitted: ErrorCode(403, "E_NOT_PERMITTED"),
    UnknownType: ErrorCode(400, "E_UNKNOWN_TYPE"),
    UnknownProperty: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    UnknownAcl: ErrorCode(400, "E_UNKNOWN_ACL"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
    NotWritable: ErrorCode(400, "E_NOT_WRITABLE"),
    InUse: ErrorCode(409, "E_IN_USE"),
    CheckedOut: ErrorCode(409, "E_LOCKED"),
    NotCheckedOut: ErrorCode(409, "E_NOT_LOCKED"),
    Superseded: ErrorCode(409, "E_NOT_LATEST_VERSION"),
    NameTaken: ErrorCode(409, "E_NAME_TAKEN"),
    VersionConflict: ErrorCode(412, "E_VERSION_CONFLICT"),
    QuotaExceeded: ErrorCode(403, "E_QUOTA_EXCEEDED"),
}

RIGHTS = {"acl_name", "owner_name"}
"""Properties that say who may do what with an object."""

_SCOPES: tuple[Scope, ...] = ("selected", "unused", "all")

FindObject: TypeAlias = Callable[[Connection, RepositoryView, str], StoredObject]
"""Finds the object that an address shows. It gets the caller's view of the repository, and the id in the address."""


def reading(kind: str) -> Answering:
    """Return the endpoint for the GET of an object of this kind."""

    def find(cx: Connection, view: RepositoryView, object_id: str) -> StoredObject:
        return objects.read(cx, view.repository, object_id, view.principals, kind)[0]

    return showing(find, as_object=kind == "object")


def showing(find: FindObject, *, as_object: bool) -> Answering:
    """Return the endpoint for a GET that shows the object that ``find`` finds.

    ``as_object`` is as in ``representations.object_answer``.
    """

    async def read(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.negotiate(request, spelling.both(context.options.names))
        values = parameters.read(request)
        view = representations.read_view(values, context.options.names)
        links = parameters.truth(values, "links", default=True)

        def question(cx: Connection, principals: Principals) -> ObjectBody:
            seen = RepositoryView.read(cx, repository, principals)
            return complete(cx, find(cx, seen, object_id), seen)

        whole, here = await caller.read(question), address(request, context, repository)
        return representations.object_answer(
            request, context, media_type, here, whole, as_object=as_object, view=view, links=links
        )

    return read


def changing(kind: str) -> Answering:
    """Return the endpoint for the POST that changes properties of an object of this kind."""

    @events.tells("object rights")
    async def change(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository, object_id = caller.repository, representations.identifier(request)
        media_type = spelling.negotiate(request, spelling.both(context.options.names))
        expected = representations.expected_version(request)
        body = await object_body.read_body(request, context)
        if body.href:
            raise Malformed("A body with 'href' makes a copy when it is posted to a folder; it changes no object.")
        changes: dict[str, Given] = dict(body.properties)
        rights = sorted(RIGHTS & changes.keys())
        event = events.begin(request.scope, "object rights", how=" and ".join(rights)) if rights else None
        if event is not None:
            caller.tell(event)
        if body.type:
            changes.setdefault("r_object_type", body.type)
        whole, position = await caller.change(
            lambda cx, principals: _change(
                cx,
                writing_view(context, cx, repository, principals),
                object_id,
                changes,
                context.clock(),
                expected,
                kind,
            ),
            lambda whole: whole.stored.position,
        )
        if event is not None:
            event.on = whole.stored.id
        here = address(request, context, repository)
        answer = representations.object_answer(request, context, media_type, here, whole, as_object=kind == "object")
        answer.headers.update(position)
        return answer

    return change


def deleting(kind: str) -> Answering:
    """Return the endpoint for the DELETE of an object of this kind."""

    @events.tells()
    async def delete(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository = caller.repository
        object_id, expected = representations.identifier(request), representations.expected_version(request)
        values = parameters.read(request)
        most = context.options.max_deleted_objects
        with_everything = parameters.truth(values, "del-non-empty", default=False)
        scope = parameters.choice(values, "del-version", _SCOPES, default="selected")
        days = context.options.wastebasket_days
        all_links = parameters.truth(values, "del-all-links", default=False)

        def decide(cx: Connection, principals: Principals) -> list[StoredObject]:
            now = context.clock()
            if scope != "selected":
                return version_removal.delete(
                    cx,
                    repository,
                    principals,
                    object_id,
                    scope,
                    now,
                    most,
                    expected=expected,
                    kind=kind,
                    keep_days=days,
                )
            if with_everything:
                return subtrees.delete(
                    cx,
                    repository,
                    principals,
                    object_id,
                    now,
                    most,
                    all_links=all_links,
                    expected=expected,
                    kind=kind,
                    keep_days=days,
                )
            return [
                objects.delete(cx, repository, principals, object_id, now, expected=expected, kind=kind, keep_days=days)
            ]

        deleted_objects, position = await caller.change(decide, _last_position)
        freed = [key for stored in deleted_objects for key in stored.freed]
        return Response(status_code=204, headers=position, background=uploads.after_commit(context, (), (), freed))

    return delete


def _last_position(deleted_objects: Sequence[StoredObject]) -> Position | None:
    return deleted_objects[-1].position if deleted_objects else None


def listing(root: str, name: str, title: str, *, filed: bool) -> Answering:
    """Return the endpoint for the GET that lists objects of the type ``root`` and of the types below it.

    If ``filed``, it lists only the objects in the folder that the address names.
    """

    async def list_objects(request: Request, context: RepositoryContext) -> Response:
        caller = await enter(request, context)
        repository, here = caller.repository, address(request, context, caller.repository)
        folder_id = representations.identifier(request) if filed else None
        own = f"{here}/folders/{folder_id}/{name}" if filed else f"{here}/{name}"
        feed = collections.feed_request(request, context, own, f"{title} {folder_id}" if filed else title)
        every = filed and parameters.truth(parameters.read(request), parameters.ALL_VERSIONS.name, default=False)
        return await collections.answer(
            caller,
            feed,
            lambda cx, principals, part: _list(cx, repository, principals, folder_id, root, part, here, every=every),
        )

    return list_objects


def _change(
    cx: Connection,
    view: RepositoryView,
    object_id: str,
    changes: dict[str, Given],
    now: int,
    expected: int | None,
    kind: str,
) -> ObjectBody:
    stored = objects.change(cx, view, object_id, changes, now, expected=expected, kind=kind)
    return complete(cx, stored, view)


def _list(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    folder_id: str | None,
    root: str,
    feed: FeedRequest,
    here: str,
    *,
    every: bool,
) -> ListPage:
    view, selection = RepositoryView.read(cx, repository, principals), feed.page.selection
    prefix = feed.names.type_prefix
    type_name = feed.page.object_type or root
    check_root(view.catalogue, type_name, root)
    if folder_id is not None:
        objects.read(cx, repository, folder_id, principals, "folder")
    folder = Folder(view, folder_id, type_name, every)
    return collections.page(
        cx,
        CursorBinding(
            repository.id, principals.key, f"{folder_id or ''} {type_name}{' every' if every else ''}", selection.text
        ),
        feed.page,
        lambda stretch: lists.page(cx, folder, stretch, selection, type_prefix=prefix),
        partial(collections.object_entries, cx, view, feed, here),
        lambda: lists.count(cx, folder, selection, type_prefix=prefix),
        in_portions=True,
    )


def writing_view(
    context: RepositoryContext, cx: Connection, repository: Repository, principals: Principals
) -> RepositoryView:
    """Make the caller's view of a repository for a decision that writes."""
    return RepositoryView.read(cx, repository, principals, unique_names=context.options.unique_names)


def check_root(catalogue: object_types.Catalogue, type_name: str, root: str) -> None:
    """Check that a type is ``root`` or below it, as an address requires. Raises WrongValue, UnknownType."""
    if not catalogue.is_a(type_name, root):
        raise WrongValue(f"This address is for the object type {root!r} and those below it, not {type_name!r}.")


def complete(cx: Connection, stored: StoredObject, view: RepositoryView) -> ObjectBody:
    """Return an object with all that its representation shows, also what the object's row does not hold."""
    return collections.object_bodies(cx, view, [stored])[0]
