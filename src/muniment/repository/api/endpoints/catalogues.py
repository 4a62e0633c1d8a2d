"""Lists of names that existing clients look up: the formats, where contents come from, and lists without members.

Source: docs/interface.md, ours 16.
"""

from collections.abc import Mapping

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import RepositoryContext, enter, enter_for_thing
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import format_names, spelling
from muniment.repository.api.wire.documents import Named
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import NotOfferedYet, UnknownFormat, UnknownObject
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects import objects
from muniment.repository.store.permissions.principals import Principals

EMPTY: Mapping[str, str] = {
    "aspect-types": "Aspect types",
    "lifecycles": "Lifecycles",
}
"""Lists without members, with their titles: some clients look them up first of all."""

_MEDIA_TYPE = "mime_type"
_HERE = "local"
"""The one network location: contents come from this server."""

Members = Mapping[str, Mapping[str, str]]


class LocationDocument(Named):
    """A network location: where contents come from."""


async def list_formats(request: Request, context: RepositoryContext) -> Response:
    """List the names of formats."""
    return await _list(request, context, "formats", "Formats", _formats(context.names))


async def list_nothing(request: Request, context: RepositoryContext, name: str) -> Response:
    """List the {name}, of which there are none."""
    return await _list(request, context, name, EMPTY[name], {})


async def list_aspects(request: Request, context: RepositoryContext) -> Response:
    """List the aspects of an object, of which there are none."""
    object_id = representations.identifier(request)

    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        objects.read(cx, feed.repository, object_id, principals)
        return _page(cx, principals, feed, f"aspects {object_id}", {})

    return await collections.answer_list(request, context, f"objects/{object_id}/aspects", "Aspects", question)


@events.tells()
async def refuse_aspects(request: Request, context: RepositoryContext) -> Response:
    """Refused: no aspects are offered."""
    caller = await enter(request, context)
    object_id = representations.identifier(request)
    context.thing_type(request)
    await caller.read(lambda cx, principals: objects.read(cx, caller.repository, object_id, principals))
    raise NotOfferedYet("Aspects are not offered: an object has none.")


async def read_format(request: Request, context: RepositoryContext) -> Response:
    """Show a format of contents."""
    caller, media_type = await enter_for_thing(request, context)
    names, name = context.names, request.path_params["format"]
    await caller.check()
    members = _formats(names)
    if name not in members:
        raise UnknownFormat(f"There is no format {name[:100]!r}.")
    thing = _thing(caller.here, name, members[name])
    return thing.reply(media_type, names)


async def list_locations(request: Request, context: RepositoryContext) -> Response:
    """List the network locations: this server."""
    name = "network-locations"

    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        def entry(location: str) -> FeedEntry:
            own, made = f"{feed.own}/{location}", feed.repository.created
            return feed.entry(own, location, "Muniment", location, made, lambda: _location(feed.here, feed.names))

        properties = {spelling.read_property(key, feed.names): value for key, value in _of_here(feed.names).items()}
        return feed.fixed(cx, principals, name, {_HERE: properties}, tuple(properties), entry)

    return await collections.answer_list(request, context, name, "Network locations", question)


async def read_location(request: Request, context: RepositoryContext) -> Response:
    """Show a network location."""
    caller, media_type = await enter_for_thing(request, context)
    await caller.check()
    if request.path_params["location"] != _HERE:
        raise UnknownObject(f"There is no network location {request.path_params['location'][:100]!r}.")
    return _location(caller.here, context.names).reply(media_type, context.names)


def _of_here(names: RepositoryNames) -> dict[str, str]:
    return {
        "object_name": _HERE,
        spelling.write_property("r_object_type", names): f"{names.type_prefix}network_location_map",
        "netloc_ident": _HERE,
        "netloc_display_name": "This server",
    }


def _location(here: str, names: RepositoryNames) -> Thing:
    links: Written = [{"rel": "self", "href": f"{here}/network-locations/{_HERE}"}, {"rel": "parent", "href": here}]
    return Thing("network-location", {"name": _HERE, "properties": _of_here(names), "links": links})


def _formats(names: RepositoryNames) -> Members:
    return {name: {_MEDIA_TYPE: media_type} for name, media_type in format_names.all_format_names(names).items()}


async def _list(request: Request, context: RepositoryContext, name: str, title: str, members: Members) -> Response:
    return await collections.answer_list(
        request, context, name, title, lambda cx, principals, feed: _page(cx, principals, feed, name, members)
    )


def _page(cx: Connection, principals: Principals, feed: FeedRequest, list_name: str, members: Members) -> ListPage:
    def entry(name: str) -> FeedEntry:
        own, of_name, made = f"{feed.own}/{name}", members[name], feed.repository.created
        return feed.entry(own, name, "Muniment", of_name[_MEDIA_TYPE], made, lambda: _thing(feed.here, name, of_name))

    return feed.fixed(cx, principals, list_name, members, (_MEDIA_TYPE,), entry)


def _thing(here: str, name: str, of_name: Mapping[str, str]) -> Thing:
    links: Written = [{"rel": "self", "href": f"{here}/formats/{name}"}, {"rel": "parent", "href": here}]
    properties: Written = {"name": name, **of_name}
    return Thing("format", {"name": name, "properties": properties, "links": links})
