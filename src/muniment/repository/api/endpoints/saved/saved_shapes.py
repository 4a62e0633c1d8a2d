"""Saved searches and search templates as the wire shows them, single and in lists.

Source: docs/interface.md, ours 12 and 13.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.clock import timestamp
from muniment.ground.refusals import Refusal
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.api.endpoints.saved.saved_bodies import DESCRIPTIONS, DOCUMENTS
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing, View
from muniment.repository.api.wire import parameters
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import UnknownProperty
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.search.answering.kept import saved_documents, search_templates
from muniment.repository.search.answering.kept.search_templates import SEVERAL, SINGLE, Variable
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.saved import saved_searches, stored_results
from muniment.repository.store.saved.saved_searches import Kind, ListedSearch, SavedSearch

PATHS: Mapping[Kind, str] = {"search": "saved-searches", "template": "search-templates"}

ROOTS: Mapping[Kind, str] = {"search": "saved-search", "template": "search-template"}

MOST_INLINED = 100

_ALWAYS_SHOWN = frozenset({"object_name", "r_object_id"})


class SearchRepresentation(msgspec.Struct, frozen=True):
    """What a representation needs, also beyond the row."""

    kind: Kind
    saved: SavedSearch
    may_change: bool
    has_results: bool
    catalogue: Catalogue


def represent(
    cx: Connection, repository_id: int, principals: Principals, kind: Kind, searches: Sequence[SavedSearch]
) -> list[SearchRepresentation]:
    """Read what the rows lack for all at once."""
    catalogue = object_types.catalogue(cx, repository_id)
    with_results = (
        stored_results.searches_with_results(cx, [saved_search.id for saved_search in searches], principals.key)
        if kind == "search"
        else frozenset()
    )
    return [
        SearchRepresentation(
            kind,
            saved_search,
            saved_searches.may_change(saved_search, principals),
            saved_search.id in with_results,
            catalogue,
        )
        for saved_search in searches
    ]


def answer_with_saved(
    request: Request,
    context: RepositoryContext,
    caller: Caller,
    media_type: str,
    of: SearchRepresentation,
    status: int = 200,
) -> Response:
    """Answer 200, 201 with its address, or 304. Raises Malformed, and UnknownProperty if the view names a property that
    it does not have.
    """
    parameter_values, names = parameters.read(request), context.names
    view = representations.read_view(parameter_values, names)
    links = parameters.truth(parameter_values, "links", default=True)
    here = caller.here
    shown, own = (
        thing(here, of, context.options, media_type, view, links=links),
        f"{here}/{PATHS[of.kind]}/{of.saved.id}",
    )
    return shown.tagged_reply(request, media_type, names, of.saved.revision, status, own)


def feed_request(request: Request, context: RepositoryContext, caller: Caller, kind: Kind) -> FeedRequest:
    """A page that shows documents has at most ``MOST_INLINED`` entries."""
    title = {"search": "Saved searches", "template": "Search templates"}[kind]
    feed = collections.feed_request(request, context, caller, PATHS[kind], title)
    if not feed.page.inline or feed.page.part.size <= MOST_INLINED:
        return feed
    part = msgspec.structs.replace(feed.page.part, size=MOST_INLINED)
    return dataclasses.replace(feed, page=msgspec.structs.replace(feed.page, part=part))


def list_page(cx: Connection, principals: Principals, feed: FeedRequest, kind: Kind) -> ListPage:
    repository_id, selection, options = feed.repository.id, feed.page.selection, feed.context.options

    def entries(members: Sequence[ListedSearch]) -> list[FeedEntry]:
        feed_entries = []
        for each, _ in members:
            own = f"{feed.own}/{each.id}"
            summary = each.description or each.name
            feed_entries.append(
                collections.plain_entry(own, each.name, each.owner, summary, each.modified, each.created)
            )
        if not feed.page.inline:
            return feed_entries
        searches = saved_searches.with_documents(cx, [each.search for each in members])
        shapes = represent(cx, repository_id, principals, kind, searches)
        return [
            feed.with_thing(entry, thing(feed.here, each, options, feed.media_type, feed.page.view))
            for entry, each in zip(feed_entries, shapes, strict=True)
        ]

    return feed.listed(
        cx,
        principals,
        PATHS[kind],
        lambda stretch: saved_searches.saved_page(cx, repository_id, kind, principals, stretch, selection),
        entries,
        lambda: saved_searches.count_saved(cx, repository_id, kind, principals, selection),
    )


def thing(
    here: str, of: SearchRepresentation, options: RepositoryOptions, media_type: str, view: View, *, links: bool = True
) -> Thing:
    """Raises UnknownProperty."""
    names, saved_search, is_xml = options.names, of.saved, media_type.endswith("xml")
    document: dict[str, Written] = {} if is_xml else {"name": ROOTS[of.kind]}
    document["properties"] = _properties(of, names, view)
    text = saved_documents.document_text(saved_search.document, "xml" if is_xml else "json", QueryLimits.of(options))
    document[DOCUMENTS[of.kind]] = text
    if of.kind == "template":
        document["external-variables"] = [_variable(variable, is_xml=is_xml) for variable in _variables(of, options)]
    if links:
        document["links"] = _links(here, of, names)
    return Thing(ROOTS[of.kind], document)


def _properties(of: SearchRepresentation, names: RepositoryNames, view: View) -> dict[str, Written]:
    saved_search = of.saved
    properties: dict[str, Written] = {
        "r_object_id": saved_search.id,
        "object_name": saved_search.name,
        DESCRIPTIONS[of.kind]: saved_search.description,
        "r_is_public": saved_search.public,
        "owner_name": saved_search.owner,
        "r_creation_date": timestamp(saved_search.created, utc="+00:00"),
        "r_modify_date": timestamp(saved_search.modified, utc="+00:00"),
    }
    if of.kind == "search":
        properties["has_results"] = of.has_results
    if view.properties is not None:
        if unknown := sorted(view.properties - properties.keys()):
            raise UnknownProperty(f"A {ROOTS[of.kind]} has no property {unknown[0][:100]!r}.")
        selection = view.properties | _ALWAYS_SHOWN
        properties = {name: value for name, value in properties.items() if name in selection}
    prefix = names.system_property_prefix
    return {prefix + name[2:] if name.startswith("r_") else name: value for name, value in properties.items()}


def _variables(of: SearchRepresentation, options: RepositoryOptions) -> list[Variable]:
    document = of.saved.document
    try:
        root = saved_documents.elements(document, QueryLimits.of(options))
    except Refusal:
        return []  # whoever executes it is told why
    return search_templates.variables(root, saved_documents.names_of(document), of.catalogue)


def _variable(variable: Variable, *, is_xml: bool) -> dict[str, Written]:
    members: dict[str, Written] = {
        "variable-type": variable.variable_type,
        "id": variable.id,
        "expression-type": variable.expression_type,
        "data-type": variable.data_type,
    }
    if variable.expression_type != "fulltext":
        members |= {"property-name": variable.property_name, "operator": variable.operator}
    match variable.expression_type:
        case "property-list":
            members[SINGLE if is_xml else SEVERAL] = list(variable.values)
        case "property-range":
            members |= dict(zip(search_templates.BOUNDS, variable.values, strict=True))
        case _:
            members[SINGLE] = variable.values[0]
    return members


def _links(here: str, of: SearchRepresentation, names: RepositoryNames) -> list[Written]:
    own, base = f"{here}/{PATHS[of.kind]}/{of.saved.id}", names.linkrel_base
    links = [("self", own)]
    if of.may_change:
        links += [("edit", own)] if of.kind == "search" else []
        links.append((f"{base}/delete", own))
    links.append((f"{base}/search-execution", f"{own}/execution"))
    if of.kind == "search":
        links.append((f"{base}/saved-search-results", f"{own}/results"))
        links.append((f"{base}/saved-search-as-template", f"{here}/{PATHS['template']}"))
    return [{"rel": rel, "href": href} for rel, href in links]
