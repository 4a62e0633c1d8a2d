"""The page of results: the box, a page of hits, the values to narrow to, and the question as AQL.

Hits come as in every search (``search.results``): the page waits while too many run, and finds what the caller may see
now.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal
from muniment.ground.xml import Element
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.api.endpoints.search import search, typed_questions
from muniment.repository.api.endpoints.search.search_requests import AskedSearch
from muniment.repository.api.endpoints.search.typed_questions import Understood
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.page import frame, marking
from muniment.repository.page.asking import choices, editing, hints, sessions
from muniment.repository.page.asking.choices import CHOICES, Choice
from muniment.repository.page.asking.hints import Hint
from muniment.repository.page.asking.questions import ORDERS, PageQuestion
from muniment.repository.page.asking.sessions import PageSession
from muniment.repository.page.marking import Piece
from muniment.repository.refusals import BadQuery, BadSort, UnknownProperty, UnknownType, WrongValue
from muniment.repository.search.answering import paging, results
from muniment.repository.search.answering.inquiry import Inquiry, WordsNeeded
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.answering.related.suggestions import Suggestion, correct
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql.rewriting import relaxation
from muniment.repository.search.aql.spelling import as_json, as_xml, documents
from muniment.repository.search.aql.tree import ExpressionSet, Query, QueryLimits
from muniment.repository.search.index.contract import FacetCounts, Marker
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions import acl_entries
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches
from muniment.repository.store.saved.saved_searches import SavedSearch, SearchSummary
from muniment.web.requests import bodies

HITS = 20

_SAVED = 10
READABLE = (BadQuery, BadSort, UnknownProperty, UnknownType, WrongValue)
"""The page shows these above its box, because the person can ask another question there."""

DONE = {
    "saved": "The search is saved.",
    "changed": "The saved search is changed.",
    "removed": "The saved search is gone.",
}


class ShownHit(msgspec.Struct, frozen=True):
    """``folder``, an id and a name, is None unless the caller may see it; ``changed`` is the date of the content, or
    else of the last change.
    """

    id: str
    title: str
    name: str
    excerpt: list[Piece]
    type: str
    format: str
    owner: str
    changed: Instant
    size: int | None
    folder: tuple[str, str] | None


class ShownValue(msgspec.Struct, frozen=True):
    """``count`` is None for a chosen value that was not counted."""

    value: str
    label: str
    count: int | None
    chosen: bool


class ShownChoice(msgspec.Struct, frozen=True):
    """A choice with the values to narrow to."""

    id: str
    heading: str
    values: list[ShownValue]


class Results(msgspec.Struct, frozen=True):
    """Hits, and what is shown beside them.

    If ``may_relax``, the caller may ask for any one of the words. ``correction`` is for no hit, or hits without some
    words. ``hints`` say how the question was read.
    """

    user_id: str
    page: HitPage
    hits: list[ShownHit]
    choices: list[ShownChoice]
    saved: SearchSummary | None
    folder: str
    has_own_folders: bool
    may_relax: bool
    correction: Suggestion | None
    hints: list[Hint]
    query: Element | None


class PageQuery(msgspec.Struct, frozen=True):
    """``saved`` is the search to which the question adds, if any."""

    query: Query
    understood: Understood
    saved: SavedSearch | None


class Start(msgspec.Struct, frozen=True):
    """What the page shows before a search."""

    user_id: str
    saved: list[SearchSummary]


async def show(request: Request, context: RepositoryContext) -> Response:
    """Show the box, and the hits of what it asks."""
    asked, session, caller = await sessions.begin(request, context)
    told = done(request)
    if reopened := await editing.reopened(context, caller, asked):
        return frame.redirect(request, reopened.address() + (f"&done={told}" if told in DONE else ""))
    values = await around(request, context, session, caller, asked)
    values |= {"done": DONE.get(told, ""), "sentence": "", "results": None, "start": None}
    values |= {"edited": await editing.edited(caller, asked)}
    values |= {"section": "" if asked.asks else "search"}
    if not asked.asks:
        start = await caller.read_long(lambda cx, principals: _start(cx, caller.repository, principals))
        return frame.draw(request, "search.html", values | {"start": start, "user_id": start.user_id})
    try:
        found = await caller.search(lambda inquiry: answer_question(inquiry, asked))
    except READABLE as refusal:
        start = await caller.read_long(lambda cx, principals: _start(cx, caller.repository, principals))
        values |= {"sentence": refusal.sentence, "user_id": start.user_id}
        return frame.draw(request, "search.html", values, 400)
    values |= {
        "results": found,
        "user_id": found.user_id,
        "tried": _tried(asked, found),
        "in_folders": {folder_id: asked.address(folder=folder_id) for folder_id in _folder_ids(found.hits)},
        "aql": None if found.query is None else _as_aql(caller.here, asked, found, found.query),
        "pages": _pages(found.page, asked, context.options),
    }
    return frame.draw(request, "search.html", values)


def done(request: Request) -> str:
    return dict(bodies.pairs(request.scope["query_string"], "The address")).get("done", "")


async def around(
    request: Request, context: RepositoryContext, session: PageSession, caller: Caller, asked: PageQuestion
) -> dict[str, Any]:
    seal = await context.seal()
    return {
        "asked": asked,
        "form_mark": frame.form_mark(seal, frame.session_cookie(request)),
        "repository": caller.repository.name,
        "repositories": await sessions.names(request, context, session, caller.repository.name),
        "orders": ORDERS,
        "section": "",
    }


def question_query(cx: Connection, view: RepositoryView, options: RepositoryOptions, asked: PageQuestion) -> PageQuery:
    """Raises UnknownSavedSearch, BadQuery, UnknownType, WrongValue."""
    limits = QueryLimits.of(options)
    understood = typed_questions.understand(cx, view, options.names, asked.words or "")
    own = documents.read(asked.document(options.names, understood), options.names, limits)
    if not asked.saved:
        return PageQuery(own, understood, None)
    saved = saved_searches.find(cx, view.repository.id, "search", asked.saved, view.principals)
    base = saved_documents.query(saved.document, limits)
    if own.locations and base.locations:
        raise WrongValue("The saved search names its own folders: it cannot be narrowed to another one.")
    conditions = tuple(each for each in (base.condition, own.condition) if each is not None)
    query = replace(
        base,
        condition=ExpressionSet("AND", conditions) if conditions else None,
        sorts=own.sorts or base.sorts,
        locations=own.locations or base.locations,
        columns=(),
        facets=(),
        facet_hits=None,
    )
    return PageQuery(query, understood, saved)


def answer_question(inquiry: Inquiry, asked: PageQuestion) -> Results:
    """Call it off the event loop.

    Raises what ``question_query`` and ``results.search`` raise.
    """
    cx, view, options = inquiry.cx, inquiry.view(), inquiry.options
    page_query = question_query(cx, view, options, asked)
    query, saved = page_query.query, page_query.saved
    offered = _offered(options)
    counted = tuple(choice.definition for choice in offered if choice.id not in asked.chosen)
    together = replace(query, facets=counted)
    page = hits(inquiry, together, asked.needed, asked.page)
    if _is_to_be_relaxed(query, page, asked):
        page = hits(inquiry, together, "any", asked.page)
    counts = {counts.id: counts for counts in page.facets}
    for choice in offered:
        if choice.id in asked.chosen:
            # The values of this choice are counted as if none of them were chosen.
            others = question_query(cx, view, options, asked.without(choice.id)).query
            others = replace(others, facets=(choice.definition,), sorts=())
            apart = hits(inquiry, others, "any" if page.relaxed else "all", bare=True)
            counts |= {each.id: each for each in apart.facets}
    shown_folders = folder_names(cx, view, {asked.folder} - {""})
    return Results(
        user_id=view.principals.id,
        page=page,
        hits=_shown(cx, view, page),
        choices=[_choice(choice, counts.get(choice.id), asked, options.names) for choice in offered],
        saved=saved,
        folder=shown_folders.get(asked.folder, ""),
        has_own_folders=bool(query.locations and not asked.folder),
        may_relax=not page.relaxed and asked.needed != "any" and relaxation.relax(query) is not None,
        correction=correct(inquiry.changed(typed=True), asked.words)
        if asked.words and (not page.total or page.relaxed)
        else None,
        hints=hints.hints_of(page_query.understood, asked.words or "", page),
        query=document(options, asked, page_query),
    )


def _is_to_be_relaxed(query: Query, page: HitPage, asked: PageQuestion) -> bool:
    """Relax a search with sorts, which ``auto`` does not do (``results.WordsNeeded``), if it may be, and too few hits
    have all words.
    """
    few = bool(query.sorts) and (page.total or 0) < HITS and asked.needed is None
    return few and relaxation.relax(query) is not None


def hits(inquiry: Inquiry, query: Query, needed: WordsNeeded | None, number: int = 1, *, bare: bool = False) -> HitPage:
    """With ``bare``, the page has one hit at most, and no total.

    Raises what ``results.search`` raises.
    """
    return paging.by_number(_asking(inquiry, query, needed, number, bare=bare))


def marker(inquiry: Inquiry, query: Query, needed: WordsNeeded | None) -> Marker | None:
    """Mark what a query looks for; None without a hit.

    Raises what ``results.search`` raises.
    """
    inquiry = _asking(inquiry, query, needed, bare=True)
    return inquiry.snapshot.marker(results.prepare(inquiry)) if paging.by_number(inquiry).hits else None


def _asking(
    inquiry: Inquiry, query: Query, needed: WordsNeeded | None, number: int = 1, *, bare: bool = False
) -> Inquiry:
    wanted = AskedSearch(
        page=number,
        items_per_page=1 if bare else HITS,
        include_total=not bare,
        words=needed or "auto",
        typed=True,
        marks=not bare,
    )
    return inquiry.asking(search.question_of(inquiry, wanted, query)).changed(bare=bare)


def document(options: RepositoryOptions, asked: PageQuestion, page_query: PageQuery) -> Element | None:
    """Write one query document; None if the saved search was written with other names on the wire, or is unreadable."""
    names, understood, saved = options.names, page_query.understood, page_query.saved
    if saved is None:
        return asked.document(names, understood)
    written = saved_documents.names_of(saved.document)
    if (written.vocab_namespace, written.type_prefix, written.system_property_prefix) != (
        names.vocab_namespace,
        names.type_prefix,
        names.system_property_prefix,
    ):
        return None
    try:
        base = saved_documents.elements(saved.document, QueryLimits.of(options))
    except Refusal:
        return None
    parts = {child.name: child for child in base.children}
    document = asked.document(names, understood, parts.pop("expression-set", None))
    own = {child.name: child for child in document.children}
    return replace(base, children=[*({**parts, **own}).values()])


def _start(cx: Connection, repository: Repository, principals: Principals) -> Start:
    listed = saved_searches.saved_page(cx, repository.id, "search", principals, Stretch(None, 0, _SAVED))
    return Start(principals.id, [one.search for one in listed])


def _shown(cx: Connection, view: RepositoryView, page: HitPage) -> list[ShownHit]:
    """``cx`` is the read in which the hits were found."""
    stored = inventory.rows(cx, view.repository.id, [hit.object_id for hit in page.hits])
    names = folder_names(cx, view, {one.folder_id for one in stored.values() if one.folder_id})
    hits = []
    for hit in page.hits:
        one = stored[hit.object_id]
        title = str(next(iter(one.properties.get("title", ())), "")).strip()
        folder = (one.folder_id, names[one.folder_id]) if one.folder_id and one.folder_id in names else None
        hits.append(
            ShownHit(
                id=one.id,
                title=title or one.name,
                name=one.name if title and title != one.name else "",
                excerpt=marking.pieces(hit.summary, hit.marks or ()),
                type=one.type,
                format=choices.format_label(one.media_type) if one.content else "",
                owner=one.owner,
                changed=one.modified if one.content_date is None else one.content_date,
                size=one.content.size if one.content else None,
                folder=folder,
            )
        )
    return hits


def folder_names(cx: Connection, view: RepositoryView, ids: set[str]) -> dict[str, str]:
    """Leave out folders that the caller may not browse."""
    if not ids:
        return {}
    caller, types = view.principals, view.catalogue.with_subtypes(["folder"])
    stored = [one for one in inventory.rows(cx, view.repository.id, sorted(ids)).values() if one.type in types]
    permissions = acl_entries.permissions(cx, {(one.acl_id, one.owner_key) for one in stored}, caller)
    return {one.id: one.name for one in stored if permissions[one.acl_id, one.owner_key] >= Permission.BROWSE}


def _offered(options: RepositoryOptions) -> list[Choice]:
    offered: list[Choice] = []
    left = options.max_facet_values
    for choice in CHOICES[: options.max_facets]:
        left -= choice.definition.max_values
        if left >= 0:
            offered.append(choice)
    return offered


def _choice(choice: Choice, counts: FacetCounts | None, asked: PageQuestion, names: RepositoryNames) -> ShownChoice:
    chosen = asked.chosen.get(choice.id, ())
    counted = {choice.value(names, value): value.count for value in (counts.values if counts else ())}
    values = [
        ShownValue(value, choice.label(names, value), count, value in chosen)
        for value, count in counted.items()
        if count or value in chosen
    ]
    values += [
        ShownValue(value, choice.label(names, value), None, chosen=True) for value in chosen if value not in counted
    ]
    return ShownChoice(choice.id, choice.heading, values)


def _tried(asked: PageQuestion, found: Results) -> Sequence[tuple[str, str, str]]:
    tried: list[tuple[str, str, str]] = []
    if found.saved is not None:
        tried.append(("Saved search", found.saved.name, replace(asked, saved="").address()))
    if asked.folder:
        name = found.folder or "a folder"
        tried.append(("Folder", name, replace(asked, folder="").address()))
    for choice in found.choices:
        tried += [
            (choice.heading, value.label, asked.without(choice.id, value.value).address())
            for value in choice.values
            if value.chosen
        ]
    return tried


def _folder_ids(shown_hits: Sequence[ShownHit]) -> set[str]:
    return {hit.folder[0] for hit in shown_hits if hit.folder is not None}


def _pages(page: HitPage, asked: PageQuestion, options: RepositoryOptions) -> Mapping[str, str]:
    deepest = options.max_page_offset // HITS
    return {
        "previous": asked.address(page=min(page.page - 1, deepest)) if page.page > 1 else "",
        "next": asked.address(page=page.page + 1) if page.has_more and page.page < deepest else "",
    }


def _as_aql(here: str, asked: PageQuestion, found: Results, query: Element) -> Mapping[str, str]:
    parameters = {"include-total": "true", "items-per-page": str(HITS)}
    # A search with sorts is not relaxed by ``auto``.
    needed = "any" if found.page.relaxed else asked.needed or "auto"
    parameters |= {"typed": "true"} if needed == "all" else {"words": needed}
    parameters |= {"page": str(asked.page)} if asked.page > 1 else {}
    json = msgspec.json.format(as_json.write(query).encode(), indent=2).decode()
    # The words are a stranger's, and a shell is to read the command.
    command = (
        'curl -H "Authorization: Bearer $TOKEN" \\\n'
        "     -H 'Content-Type: application/json' -H 'Accept: application/json' \\\n"
        f"     {shlex.quote(f'{here}/search?{urlencode(parameters)}')} \\\n"
        f"     -d {shlex.quote(json)}"
    )
    return {"xml": as_xml.write(query, indented=True), "json": json, "curl": command}
