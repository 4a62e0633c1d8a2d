"""Relations between objects, and the types of relations.

Source: docs/interface.md, ours 20.
"""

from urllib.parse import quote

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.object_body import Metadata
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.documents import Named, Tagged
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownProperty, WrongValue
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.relations import relation_types, relations
from muniment.repository.store.relations.relation_types import RelationType
from muniment.repository.store.relations.relations import Relation, RelationDraft, RelationFilter

_ROLES: tuple[relations.Role, ...] = ("any", "parent", "child")
_SHOWN_ONLY = {"r_object_id", "r_object_type", "r_creator_name", "r_creation_date"}


class RelationDocument(Tagged, Named):
    """A relation, its ends, and who made it."""

    type: str


class RelationTypeDocument(Tagged, Named):
    """A type of relations, and what it means."""


async def list_relations(request: Request, context: RepositoryContext) -> Response:
    """List the relations between objects that the caller may see."""
    caller = await enter(request, context)
    names, values = context.names, parameters.read(request)
    name = values.get(parameters.RELATION_NAME.name)
    which = RelationFilter(
        (values.get(parameters.RELATED_OBJECT.name) or "").lower()[:40] or None,
        parameters.choice(values, parameters.RELATED_ROLE.name, _ROLES, default="any"),
        spelling.read_relation_type(name, names) if name else None,
    )
    feed = collections.feed_request(request, context, caller, "relations", "Relations")
    return await collections.answer_with_list(feed, lambda cx, principals, feed: _list(cx, principals, which, feed))


@events.tells()
async def make(request: Request, context: RepositoryContext) -> Response:
    """Relate two objects."""
    caller, media_type = await enter_for_thing(request, context)
    repository, options = caller.repository, context.options
    draft = _draft(await object_body.read_body(request, context), options.names)
    relation = await caller.write(
        lambda cx, principals: relations.add(cx, repository, draft, principals, context.clock(), options.max_relations)
    )
    return _answer(request, caller, media_type, relation, 201)


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show a relation."""
    caller, media_type = await enter_for_thing(request, context)
    relation_id = representations.identifier(request)
    relation = await caller.read(lambda cx, principals: relations.find(cx, caller.repository, relation_id, principals))
    return _answer(request, caller, media_type, relation)


@events.tells()
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove a relation."""
    caller = await enter(request, context)
    relation_id = representations.identifier(request)
    await caller.write(lambda cx, principals: relations.remove(cx, caller.repository, relation_id, principals))
    return Response(status_code=204)


async def list_types(request: Request, context: RepositoryContext) -> Response:
    """List the types of relations."""
    return await collections.answer_list(request, context, "relation-types", "Relation types", _list_types)


@events.tells()
async def add_type(request: Request, context: RepositoryContext) -> Response:
    """Add a type of relations, as an administrator."""
    caller, media_type = await enter_for_thing(request, context)
    repository, names = caller.repository, context.names
    body = await object_body.read_body(request, context)
    name = spelling.read_relation_type(_text(body, "relation_name"), names)
    new = RelationType(name, _text(body, "description", default=""))
    _check_names(body, {"relation_name", "description"})
    kind = await caller.write(
        lambda cx, principals: relation_types.add(cx, repository.id, new, principals, context.clock())
    )
    return _type_answer(request, caller, media_type, kind, 201)


async def read_type(request: Request, context: RepositoryContext) -> Response:
    """Show a type of relations."""
    caller, media_type = await enter_for_thing(request, context)
    name = spelling.read_relation_type(request.path_params["relation_type"], context.names)
    kind = await caller.read(lambda cx, _principals: relation_types.find(cx, caller.repository.id, name))
    return _type_answer(request, caller, media_type, kind)


@events.tells()
async def remove_type(request: Request, context: RepositoryContext) -> Response:
    """Remove a type of relations, as an administrator."""
    caller = await enter(request, context)
    name = spelling.read_relation_type(request.path_params["relation_type"], context.names)
    await caller.write(lambda cx, principals: relations.remove_type(cx, caller.repository, name, principals))
    return Response(status_code=204)


def _draft(body: Metadata, names: RepositoryNames) -> RelationDraft:
    if body.type not in ("", "relation", f"{names.type_prefix}relation"):
        raise WrongValue(f"This address makes relations, not {body.type[:100]!r}.")
    ends = {name: _text(body, name) for name in ("parent_id", "child_id")}
    name = spelling.read_relation_type(_text(body, "relation_name"), names)
    _check_names(body, {"relation_name", *ends, *_SHOWN_ONLY})
    return RelationDraft(name, ends["parent_id"].lower(), ends["child_id"].lower())


def _text(body: Metadata, name: str, default: str | None = None) -> str:
    value = body.properties.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        raise WrongValue(f"The property {name!r} is a text.")
    return value


def _check_names(body: Metadata, known_names: set[str]) -> None:
    if unknown := sorted(body.properties.keys() - known_names):
        raise UnknownProperty(f"There is no property {unknown[0][:100]!r} here.")


def _list(cx: Connection, principals: Principals, which: RelationFilter, feed: FeedRequest) -> ListPage:
    repository, selection = feed.repository, feed.page.selection
    return feed.listed(
        cx,
        principals,
        f"relations {which.object_id} {which.role} {which.name}",
        lambda stretch: relations.relation_page(cx, repository, principals, which, stretch, selection),
        lambda members: [_entry(feed, relation) for relation, _ in members],
        lambda: relations.count_relations(cx, repository, principals, which, selection),
    )


def _entry(feed: FeedRequest, relation: Relation) -> FeedEntry:
    return feed.entry(
        f"{feed.here}/relations/{relation.id}",
        relation.id,
        relation.maker,
        f"{relation.parent_id} {relation.name} {relation.child_id}",
        relation.created,
        lambda: _thing(feed.here, relation, feed.names),
    )


def _answer(
    request: Request,
    caller: Caller,
    media_type: str,
    relation: Relation,
    status: int = 200,
) -> Response:
    names, here = caller.names, caller.here
    own = f"{here}/relations/{relation.id}"
    return _write(request, media_type, _thing(here, relation, names), names, own, status)


def _thing(here: str, relation: Relation, names: RepositoryNames) -> Thing:
    type_name, own = f"{names.type_prefix}relation", f"{here}/relations/{relation.id}"
    document: dict[str, Written] = {
        "name": "relation",
        "type": type_name,
        "properties": {
            spelling.write_property(each, names): read(relation)
            for each, read in representations.RELATION_PROPERTIES.items()
        },
        "links": [
            {"rel": "self", "href": own},
            {"rel": f"{names.linkrel_base}/delete", "href": own},
            {"rel": "parent", "href": f"{here}/objects/{relation.parent_id}", "title": relation.parent_id},
            {
                "rel": f"{names.own_linkrel_base}/child",
                "href": f"{here}/objects/{relation.child_id}",
                "title": relation.child_id,
            },
            {"rel": f"{names.linkrel_base}/relation-type", "href": f"{here}/relation-types/{quote(relation.name)}"},
        ],
    }
    return Thing(
        "relation", document, {"": {"xsi:type": type_name}, "properties": {"xsi:type": f"{type_name}-properties"}}
    )


def _list_types(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
    repository, names = feed.repository, feed.names
    by_name = {kind.name: kind for kind in relation_types.all_relation_types(cx, repository.id)}
    members = {name: {"description": kind.description} for name, kind in by_name.items()}

    def entry(name: str) -> FeedEntry:
        own, kind = f"{feed.own}/{name}", by_name[name]
        return feed.entry(
            own, name, "Muniment", kind.description, repository.created, lambda: _type_thing(feed.here, kind, names)
        )

    return feed.fixed(cx, principals, "relation types", members, ("description",), entry)


def _type_answer(
    request: Request,
    caller: Caller,
    media_type: str,
    kind: RelationType,
    status: int = 200,
) -> Response:
    names, here = caller.names, caller.here
    own = f"{here}/relation-types/{kind.name}"
    return _write(request, media_type, _type_thing(here, kind, names), names, own, status)


def _type_thing(here: str, kind: RelationType, names: RepositoryNames) -> Thing:
    own = f"{here}/relation-types/{kind.name}"
    links: list[Written] = [{"rel": "self", "href": own}]
    if kind.name not in relation_types.BUILT_IN:
        links.append({"rel": f"{names.linkrel_base}/delete", "href": own})
    properties: Written = {"relation_name": kind.name, "description": kind.description}
    return Thing("relation-type", {"name": kind.name, "properties": properties, "links": links})


def _write(request: Request, media_type: str, thing: Thing, names: RepositoryNames, own: str, status: int) -> Response:
    return thing.without(media_type, "name", "type").tagged_reply(request, media_type, names, 1, status, own)
