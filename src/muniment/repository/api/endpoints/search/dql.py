"""Answer a statement in DQL with a feed of rows. Nothing is written.

Source: docs/interface.md, ours 22; docs/dql.md. A statement selects from a type of objects, or from the
users or groups whom the repository lets in.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.clock import timestamp
from muniment.repository.api.context import Answering, RepositoryContext, enter
from muniment.repository.api.dql import reader, resolution
from muniment.repository.api.dql.reader import NameTranslation
from muniment.repository.api.dql.tree import Column, Statement
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody, Thing, View
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownProperty
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Extent, ListedObject
from muniment.repository.store.objects.listing.object_ids import kind_of
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.people import Kind, People, Person
from muniment.repository.store.permissions.principals import Principals

_PEOPLE: Mapping[str, Kind] = {"user": "user", "group": "group"}

Row = dict[str, Written]


class _Question(NamedTuple):
    """``kind`` is None for objects."""

    statement: Statement
    text: str
    kind: Kind | None


async def show_repository(request: Request, context: RepositoryContext, otherwise: Answering) -> Response:
    """Show a repository, and where its services are; or the rows that a statement in DQL selects.

    A request without a statement goes to ``otherwise``.
    """
    text = parameters.read(request).get(parameters.DQL.name, "")
    return await _answer(request, context, text) if text.strip() else await otherwise(request, context)


async def _answer(request: Request, context: RepositoryContext, text: str) -> Response:
    caller = await enter(request, context)
    question = _read(text, context.names)
    feed = collections.feed_request(request, context, caller, "", "Query results")
    if question.kind is not None:
        directory = people.of_directory(context)
        return await collections.answer_with_list(
            feed, lambda cx, principals, feed: _people_rows(cx, principals, question, directory, feed), heavy=True
        )
    if not question.statement.fulltext:
        return await collections.answer_with_list(
            feed, lambda cx, principals, feed: _object_rows(cx, principals, question, None, feed), heavy=True
        )

    def search(inquiry: Inquiry) -> bytes:
        counters = resolution.counters(inquiry, question.statement)
        return feed.write(_object_rows(inquiry.cx, inquiry.principals, question, counters, feed))

    return feed.answer(await caller.search(search))


def _read(text: str, names: RepositoryNames) -> _Question:
    def read_type(name: str) -> str:
        bare = name.lower()
        if bare.removeprefix(names.type_prefix) in _PEOPLE and bare.startswith(names.type_prefix):
            return bare.removeprefix(names.type_prefix)
        return spelling.read_type(bare, names)

    def read_property(name: str) -> str:
        return spelling.read_property(name.lower(), names)

    statement = reader.read(text, NameTranslation(read_type, read_property, f"{names.type_prefix}attr_0001"))
    kind = _PEOPLE.get(statement.type)
    if kind is not None and (statement.fulltext or statement.all_versions):
        raise BadQuery(f"A {kind} has neither content nor versions.")
    return _Question(statement, text, kind)


def _object_rows(
    cx: Connection, principals: Principals, question: _Question, counters: Sequence[int] | None, feed: FeedRequest
) -> ListPage:
    statement, names = question.statement, feed.names
    view = RepositoryView.read(cx, feed.repository, principals)
    definitions = view.catalogue.properties_of(statement.type)
    columns = statement.columns
    if columns is None:
        columns = tuple(Column(name, spelling.write_property(name, names), 0) for name in definitions)
    for column in columns:
        if column.name not in definitions:
            name = spelling.write_type(statement.type, names)
            raise UnknownProperty(
                f"The type {name!r} has no property {column.name[:100]!r} (character {column.place})."
            )
    selection = resolution.selection(cx, view, statement, feed.context.clock(), question.text)
    extent, prefix = Extent(view, statement.type, counters, statement.all_versions), names.type_prefix

    def count() -> int:
        return lists.count_of_extent(cx, extent, selection, type_prefix=prefix)

    def entries(members: Sequence[ListedObject]) -> list[FeedEntry]:
        bodies = collections.object_bodies(cx, view, [each.stored for each in members])
        return [_object_entry(feed, body, columns) for body in bodies]

    if statement.count is not None:
        return _counted(feed, statement.count, count())
    return feed.listed(
        cx,
        principals,
        "dql",
        lambda stretch: lists.page_of_extent(cx, extent, stretch, selection, type_prefix=prefix),
        entries,
        count,
        in_portions=not statement.order and counters is None,
    )


def _object_entry(feed: FeedRequest, body: ObjectBody, columns: Sequence[Column]) -> FeedEntry:
    values = representations.object_properties(body, feed.names, View(every=True))
    row = {each.shown_as: values[spelling.write_property(each.name, feed.names)] for each in columns}
    own = f"{feed.here}/{kind_of(body.stored.id)}s/{body.stored.id}"
    has_id = any(each.name == "r_object_id" for each in columns)
    entry = collections.object_entry(feed.here, body.stored, feed.names)
    return feed.with_thing(entry, _row(row, own if has_id else None, feed.media_type))


def _people_rows(
    cx: Connection, principals: Principals, question: _Question, directory: People, feed: FeedRequest
) -> ListPage:
    statement, names, kind = question.statement, feed.names, question.kind
    assert kind is not None  # noqa: S101 - the caller asked for people
    view, resource_id = RepositoryView.read(cx, feed.repository, principals), feed.repository.resource_id
    selection = resolution.selection(cx, view, statement, feed.context.clock(), question.text, of_objects=False)

    def row(person: Person) -> FeedEntry:
        modified = timestamp(person.modified, utc="+00:00")
        properties = {
            **people.person_properties(person, names),
            spelling.write_property("r_modify_date", names): modified,
        }
        columns = statement.columns
        if columns is None:
            columns = tuple(Column(name, name, 0) for name in properties)
        by_name = {spelling.read_property(name, names): value for name, value in properties.items()}
        for column in columns:
            if column.name not in by_name:
                raise UnknownProperty(
                    f"A {kind} has no property {column.name[:100]!r}: it has {', '.join(properties)} "
                    f"(character {column.place})."
                )
        own = people.address_of(feed.here, person)
        entry = collections.plain_entry(own, person.id, "Muniment", person.description or person.id, person.modified)
        return feed.with_thing(
            entry, _row({each.shown_as: by_name[each.name] for each in columns}, own, feed.media_type)
        )

    def count() -> int:
        return directory.count(resource_id, kind, None, selection)

    if statement.count is not None:
        return _counted(feed, statement.count, count())
    return feed.listed(
        cx,
        principals,
        f"dql {kind}",
        lambda stretch: directory.page(resource_id, kind, None, stretch, selection),
        lambda members: [row(each.person) for each in members],
        count,
    )


def _counted(feed: FeedRequest, shown_as: str, number: int) -> ListPage:
    """The one row says how many there are; further pages are empty."""
    now = feed.context.clock()
    entry = collections.plain_entry(feed.own, str(number), "Muniment", shown_as, now)
    entries = [feed.with_thing(entry, _row({shown_as: number}, None, feed.media_type))]
    return ListPage(entries if feed.page.part.number == 1 else [], None, 1 if feed.page.include_total else None)


def _row(values: Row, own: str | None, media_type: str) -> Thing:
    document: dict[str, Written] = {} if media_type.endswith("xml") else {"name": "query-result"}
    document["properties"] = values
    if own is not None:
        document["links"] = [{"rel": "self", "href": own}]
    return Thing("query-result", document)
