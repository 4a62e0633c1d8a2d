"""The object types of a repository, with their properties. Source: docs/interface.md, ours 19."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.types import type_bodies, type_shapes
from muniment.repository.api.shapes import collections
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.bulk import removal
from muniment.repository.refusals import NotPermitted, UnknownType, WrongValue
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects.types import object_types, offers, type_editing, type_lists
from muniment.repository.store.objects.types.object_types import Catalogue, ObjectType
from muniment.repository.store.objects.types.type_lists import ListedType, TypesBelow
from muniment.repository.store.permissions.principals import Principals


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """List the object types."""
    caller, values = await enter(request, context), parameters.read(request)
    parent = values.get(parameters.PARENT_TYPE.name)
    above = TypesBelow(
        spelling.read_type(parent, context.names) if parent else None,
        parameters.truth(values, parameters.RECURSIVE.name),
    )
    inherited = parameters.truth(values, parameters.INHERITED.name, default=True)
    feed = collections.feed_request(request, context, caller, "types", "Types")
    return feed.answer(
        await caller.read_long(
            lambda cx, principals: feed.write(_type_page(cx, principals, feed, above, inherited=inherited))
        )
    )


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show an object type with its properties."""
    caller, media_type = await enter_for_thing(request, context)
    repository = caller.repository
    names = context.names
    catalogue = await caller.read(lambda cx, _: object_types.catalogue(cx, repository.id))
    kind = catalogue.get(_name(request, context))
    inherited = parameters.truth(parameters.read(request), parameters.INHERITED.name, default=True)
    thing = type_shapes.type_thing(caller.here, kind, catalogue, names, media_type, inherited=inherited)
    return thing.reply(media_type, names)


@events.tells("object type")
async def make(request: Request, context: RepositoryContext) -> Response:
    """Make an object type."""
    event = events.begin(request.scope, "object type", how="made")
    caller, media_type = await enter_for_thing(request, context, event)
    repository = caller.repository
    form = await type_bodies.read_new_type(request, context)

    def decide(cx: Connection, principals: Principals) -> tuple[ObjectType, Catalogue]:
        _require_administrator(principals)
        try:
            kind = type_editing.define_type(cx, repository.id, form, context.clock())
        except UnknownType as refusal:
            raise WrongValue(refusal.sentence) from refusal
        return kind, object_types.catalogue(cx, repository.id)

    made = await caller.write(decide)
    event.on = made[0].name
    return _answer(caller, media_type, made, 201)


@events.tells("object type")
async def change(request: Request, context: RepositoryContext) -> Response:
    """Add properties to an object type, or change some."""
    event = events.begin(request.scope, "object type", how="changed")
    caller = await enter(request, context, event)
    repository, name = caller.repository, _name(request, context)
    media_type = context.thing_type(request)
    form = await type_bodies.read_changes(request, context, name)

    def decide(cx: Connection, principals: Principals) -> tuple[ObjectType, Catalogue]:
        _require_administrator(principals)
        kind = type_editing.change_type(cx, repository.id, form, context.clock())
        return kind, object_types.catalogue(cx, repository.id)

    changed = await caller.write(decide)
    event.on = changed[0].name
    return _answer(caller, media_type, changed, 200)


@events.tells("object type")
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove an object type that no object has."""
    event = events.begin(request.scope, "object type", how="removed")
    caller = await enter(request, context, event)
    repository, name = caller.repository, _name(request, context)

    def decide(cx: Connection, principals: Principals) -> None:
        _require_administrator(principals)
        removal.remove_type(cx, repository, name)

    await caller.write(decide)
    event.on = name
    return Response(status_code=204)


@events.tells()
async def assist(request: Request, context: RepositoryContext) -> Response:
    """Ask which values a form offers for properties of a type."""
    caller = await enter(request, context)
    names, name, repository = context.names, _name(request, context), caller.repository
    media_type = context.thing_type(request)
    included, of_object = await type_bodies.read_wanted_values(request, context)
    catalogue = await caller.read(lambda cx, _: object_types.catalogue(cx, repository.id))
    offered = offers.of_type(catalogue, name, included, of_object)
    thing = type_shapes.offers_thing(caller.here, name, offered, names, media_type)
    return thing.reply(media_type, names)


def _require_administrator(principals: Principals) -> None:
    if not principals.administrator:
        raise NotPermitted("Only an administrator may make, change or remove object types.")


def _name(request: Request, context: RepositoryContext) -> str:
    return spelling.read_type(request.path_params["name"], context.names)


def _answer(caller: Caller, media_type: str, answer: tuple[ObjectType, Catalogue], status: int) -> Response:
    here, names = caller.here, caller.names
    thing = type_shapes.type_thing(here, *answer, names, media_type)
    return thing.reply(media_type, names, status, type_shapes.type_address(here, answer[0].name, names))


def _type_page(
    cx: Connection, principals: Principals, feed: FeedRequest, above: TypesBelow, *, inherited: bool
) -> ListPage:
    repository, names, root, selection = feed.repository, feed.names, feed.page.object_type, feed.page.selection

    def entries(members: Sequence[ListedType]) -> list[FeedEntry]:
        catalogue = object_types.catalogue(cx, repository.id) if feed.page.inline else None
        feed_entries = []
        for kind in members:
            name = spelling.write_type(kind.name, names)
            parent = spelling.write_type(kind.parent, names) if kind.parent else ""
            entry = collections.plain_entry(f"{feed.own}/{name}", name, "Muniment", parent, repository.created)
            if catalogue is not None:
                thing = type_shapes.type_thing(
                    feed.here, catalogue.get(kind.name), catalogue, names, feed.media_type, inherited=inherited
                )
                entry = feed.with_thing(entry, thing)
            feed_entries.append(entry)
        return feed_entries

    return feed.listed(
        cx,
        principals,
        f"types {root or ''} {above.parent or ''} {above.recursive}",
        lambda stretch: type_lists.type_page(
            cx, repository.id, root, stretch, selection, type_prefix=names.type_prefix, above=above
        ),
        entries,
        lambda: type_lists.count_types(cx, repository.id, root, selection, type_prefix=names.type_prefix, above=above),
    )
