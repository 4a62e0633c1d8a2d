"""Answer a statement in DQL with a feed of rows. Nothing is written.

Source: docs/interface.md, ours 22; docs/dql.md. A statement selects from a type of objects, or from
one of ``dql_tables``.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import Answering, RepositoryContext, enter
from muniment.repository.api.dql import reader, resolution
from muniment.repository.api.dql.reader import NameTranslation
from muniment.repository.api.dql.tree import Column, Statement
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.endpoints.search import dql_tables
from muniment.repository.api.endpoints.search.dql_tables import TableQuestion
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody, Thing, View
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownProperty
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.store.filters.tree import Selection, with_texts
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Extent, ListedObject
from muniment.repository.store.objects.listing.object_ids import kind_of
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.people import People
from muniment.repository.store.permissions.principals import Principals

Row = dict[str, Written]

_TELLING_APART = frozenset({"r_object_id", "r_folder_path", "i_ancestor_id"})
"""Columns by which no two rows are equal."""


class _Question(NamedTuple):
    """With ``is_table``, the statement selects from one of ``dql_tables`` unless an object type has that name."""

    statement: Statement
    text: str
    is_table: bool


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
    if question.is_table:
        directory = people.of_directory(context) if question.statement.type in dql_tables.PEOPLE else None
        return await collections.answer_with_list(
            feed, lambda cx, principals, feed: _table_rows(cx, principals, question, directory, feed), heavy=True
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
    tables = list[str]()

    def read_type(name: str) -> str:
        bare = name.lower()
        if bare.removeprefix(names.type_prefix) in dql_tables.TABLES and bare.startswith(names.type_prefix):
            tables.append(bare.removeprefix(names.type_prefix))
            return tables[0]
        return spelling.read_type(bare, names)

    def read_property(name: str) -> str:
        return spelling.read_property(name.lower(), names)

    statement = reader.read(text, NameTranslation(read_type, read_property, f"{names.type_prefix}attr_0001"))
    if tables and (statement.fulltext or statement.all_versions):
        raise BadQuery(f"A {tables[0]} has neither content nor versions.")
    return _Question(statement, text, bool(tables))


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
    selection = _selection(cx, view, question, feed)
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


def _selection(
    cx: Connection, view: RepositoryView, question: _Question, feed: FeedRequest, *, of_objects: bool = True
) -> Selection:
    now = feed.context.clock()
    statement, write_type = question.statement, partial(spelling.write_type, names=feed.names)
    selection = resolution.selection(cx, view, statement, now, question.text, write_type, of_objects=of_objects)
    if statement.distinct and statement.columns and not {each.name for each in statement.columns} & _TELLING_APART:
        selection = msgspec.structs.replace(selection, distinct=tuple(each.name for each in statement.columns))
    return with_texts(selection, partial(spelling.meant_text, options=feed.context.options))


def _object_entry(feed: FeedRequest, body: ObjectBody, columns: Sequence[Column]) -> FeedEntry:
    values = representations.object_properties(body, feed.names, View(every=True))
    row = {each.shown_as: values[spelling.write_property(each.name, feed.names)] for each in columns}
    own = f"{feed.here}/{kind_of(body.stored.id)}s/{body.stored.id}"
    has_id = any(each.name == "r_object_id" for each in columns)
    entry = collections.object_entry(feed.here, body.stored, feed.names)
    return feed.with_thing(entry, _row(row, own if has_id else None, feed.media_type))


def _table_rows(
    cx: Connection, principals: Principals, question: _Question, directory: People | None, feed: FeedRequest
) -> ListPage:
    statement, names = question.statement, feed.names
    view = RepositoryView.read(cx, feed.repository, principals)
    if not names.type_prefix and statement.type in view.catalogue:
        return _object_rows(cx, principals, question, None, feed)
    table = dql_tables.TABLES[statement.type](TableQuestion(cx, principals, feed, directory))
    columns = statement.columns
    if columns is None:
        columns = tuple(Column(name, spelling.write_property(name, names), 0) for name in table.columns)
    for column in columns:
        if column.name not in table.columns:
            shown = ", ".join(spelling.write_property(name, names) for name in table.columns)
            raise UnknownProperty(
                f"{names.type_prefix + statement.type!r} has no property {column.name[:100]!r}: it has {shown} "
                f"(character {column.place})."
            )
    selection = _selection(cx, view, question, feed, of_objects=False)

    def entry(member: Any) -> FeedEntry:
        row = table.row(member)
        entry = collections.plain_entry(row.own, row.title, "Muniment", row.title, row.updated)
        values = {each.shown_as: row.values[each.name] for each in columns}
        return feed.with_thing(entry, _row(values, row.own, feed.media_type))

    if statement.count is not None:
        return _counted(feed, statement.count, table.count(selection))
    return feed.listed(
        cx,
        principals,
        f"dql {statement.type}",
        lambda stretch: table.page(stretch, selection),
        lambda members: [entry(each) for each in members],
        lambda: table.count(selection),
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
