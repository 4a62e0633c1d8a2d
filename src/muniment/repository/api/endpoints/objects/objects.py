"""Read, change, delete and list objects, folders and cabinets.

Source: docs/interface.md, ours 2. An update is a POST.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.events import Event
from muniment.ground.refusals import Malformed
from muniment.repository import bare_names
from muniment.repository.api import uploads
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody
from muniment.repository.api.wire import parameters
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import UnknownAccessor, WrongValue
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import subtrees, version_removal
from muniment.repository.store.objects.decisions.version_removal import Scope
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

ROOTS = {"cabinets": "cabinet", "folders": "folder", "documents": "document", "objects": "sysobject"}

_RIGHTS = {"acl_domain", "acl_name", "owner_name"}

_SCOPES: tuple[Scope, ...] = ("selected", "unused", "all")

FindObject: TypeAlias = Callable[[Connection, RepositoryView, str], StoredObject]


async def read(request: Request, context: RepositoryContext, kind: str) -> Response:
    """Show the {kind}."""

    def find(cx: Connection, view: RepositoryView, object_id: str) -> StoredObject:
        return objects.read(cx, view.repository, object_id, view.principals, kind)[0]

    return await show(request, context, find, as_object=kind == "object")


async def show(request: Request, context: RepositoryContext, find: FindObject, *, as_object: bool) -> Response:
    """Show the object that ``find`` finds."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    values = parameters.read(request)
    view = representations.read_view(values, context.names)
    links = parameters.truth(values, "links", default=True)

    def question(cx: Connection, principals: Principals) -> ObjectBody:
        seen = RepositoryView.read(cx, repository, principals)
        return complete(cx, find(cx, seen, object_id), seen)

    whole = await caller.read(question)
    return representations.object_answer(
        request, caller, media_type, whole, as_object=as_object, view=view, links=links
    )


@events.tells("object rights")
async def change(request: Request, context: RepositoryContext, kind: str) -> Response:
    """Change properties of the {kind}."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    expected = representations.expected_version(request)
    body = await object_body.read_body(request, context)
    if body.href:
        raise Malformed("A body with 'href' makes a copy when it is posted to a folder; it changes no object.")
    changes: dict[str, Given] = dict(body.properties)
    event = tell_rights(request, caller, changes)
    if body.type:
        changes.setdefault("r_object_type", body.type)
    whole, position = await caller.change(
        lambda cx, principals: _change(
            cx,
            writing_view(context, cx, repository, principals),
            object_id,
            whole_rights(changes, principals, context.options),
            context.clock(),
            expected,
            kind,
        ),
        lambda whole: whole.stored.position,
    )
    if event is not None:
        event.on = whole.stored.id
    return representations.object_answer(
        request, caller, media_type, whole, as_object=kind == "object", position=position
    )


@events.tells()
async def delete(request: Request, context: RepositoryContext, kind: str) -> Response:
    """Delete the {kind}."""
    caller = await enter(request, context)
    repository = caller.repository
    object_id, expected = representations.identifier(request), representations.expected_version(request)
    values = parameters.read(request)
    most = context.options.max_deleted_objects
    named = [parameters.truth(values, each.name) for each in (parameters.DEL_NON_EMPTY, parameters.DELETE_NON_EMPTY)]
    with_everything = any(named)
    scope = parameters.choice(values, "del-version", _SCOPES, default="selected")
    days = context.options.wastebasket_days
    all_links = parameters.truth(values, "del-all-links")

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

    deleted_objects, position = await caller.change(
        decide, lambda deleted_objects: deleted_objects[-1].position if deleted_objects else None
    )
    freed = [key for stored in deleted_objects for key in stored.freed]
    return Response(status_code=204, headers=position, background=uploads.after_commit(context, (), (), freed))


async def list_objects(request: Request, context: RepositoryContext, name: str) -> Response:
    """List the {name}, in a folder if the address names one."""
    caller = await enter(request, context)
    filed, root, title = "id" in request.path_params, ROOTS[name], name.capitalize()
    folder_id = representations.identifier(request) if filed else None
    path = f"folders/{folder_id}/{name}" if filed else name
    title = f"{title} under folder {folder_id}" if filed else title
    feed = collections.feed_request(request, context, caller, path, title)
    every = filed and parameters.truth(parameters.read(request), parameters.ALL_VERSIONS.name)
    return await collections.answer_with_list(
        feed, lambda cx, principals, feed: _list(cx, principals, folder_id, root, feed, every=every)
    )


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
    cx: Connection, principals: Principals, folder_id: str | None, root: str, feed: FeedRequest, *, every: bool
) -> ListPage:
    view, selection = RepositoryView.read(cx, feed.repository, principals), feed.page.selection
    prefix = feed.names.type_prefix
    type_name = feed.page.object_type or root
    check_root(view.catalogue, type_name, root)
    if folder_id is not None:
        objects.read(cx, feed.repository, folder_id, principals, "folder")
    folder = Folder(view, folder_id, type_name, every)
    return feed.listed(
        cx,
        principals,
        f"{folder_id or ''} {type_name}{' every' if every else ''}",
        lambda stretch: lists.object_page(cx, folder, stretch, selection, type_prefix=prefix),
        lambda members: feed.with_objects(cx, view, members, collections.object_entry),
        lambda: lists.count_objects(cx, folder, selection, type_prefix=prefix),
        in_portions=True,
    )


def writing_view(
    context: RepositoryContext, cx: Connection, repository: Repository, principals: Principals
) -> RepositoryView:
    return RepositoryView.read(cx, repository, principals, unique_names=context.options.unique_names)


def tell_rights(request: Request, caller: Caller, properties: Mapping[str, Given]) -> Event | None:
    rights = sorted(_RIGHTS & properties.keys())
    if not rights:
        return None
    event = events.begin(request.scope, "object rights", how=" and ".join(rights))
    caller.tell(event)
    return event


def whole_rights(
    properties: Mapping[str, Given], principals: Principals, options: RepositoryOptions
) -> dict[str, Given]:
    """Return the properties with the whole names of the owner and of the ACL, if these are among them.

    Raises WrongValue for a bare name that nobody bears.
    """
    whole = dict(properties)
    owner, acl_name, domain = (whole.get(name) for name in ("owner_name", "acl_name", "acl_domain"))
    if isinstance(owner, str):
        try:
            whole["owner_name"] = principals.whole_names([owner], options)[owner]
        except UnknownAccessor as unknown:
            raise WrongValue(unknown.sentence) from unknown
    if isinstance(acl_name, str):
        whole["acl_name"] = bare_names.full_acl_name(acl_name, options)
    if isinstance(domain, str):
        whole["acl_domain"] = bare_names.full_name(domain, options)
    return whole


def check_root(catalogue: object_types.Catalogue, type_name: str, root: str) -> None:
    """Raises WrongValue, UnknownType."""
    if not catalogue.is_a(type_name, root):
        raise WrongValue(f"This address is for the object type {root!r} and those below it, not {type_name!r}.")


def complete(cx: Connection, stored: StoredObject, view: RepositoryView) -> ObjectBody:
    return collections.object_bodies(cx, view, [stored])[0]
