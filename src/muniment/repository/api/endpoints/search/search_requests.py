"""What does a request to search ask?

Source: given 2.8, 2.10; docs/interface.md, ours 6.
"""

import re
from collections.abc import Callable, Mapping

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request

from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.endpoints.search import facets, typed_questions
from muniment.repository.api.endpoints.search.facets import AskedFacets
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.representations import View
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import WrongValue
from muniment.repository.search.answering.inquiry import WordsNeeded
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql import typed as typed_language
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import Fulltext, Location, Query, QueryLimits, SortCriterion
from muniment.repository.store.filters import reader
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from muniment.web.requests import bodies

_SHORT = 4096
"""A query of so many bytes or characters is read in the event loop."""

_LONGEST_LOCALE = 40
_EVERYTHING = re.compile(r"\*+")
_LISTED_PATH = re.compile(r"(?:\\[\\/,]|[^,])+")


FINDING = ("q", "object-type", "sort", "link", "locations", "facet", "timezone", "facet-value-constraints")
"""These say what a search finds; a ``link`` stands for all the others."""

SHOWING = ("include-total", "inline", "links", "marks", "view")
"""These say how hits are shown. A cursor is not bound to them, but to the others that links repeat."""


class AskedSearch(msgspec.Struct, frozen=True):
    """The query, the page, and what links repeat.

    ``query`` is None if a link or ``kept`` finds it. A ``posted`` one must be kept for `next`. With ``typed``, hits
    with the words as they follow each other come first. ``fields`` is a typed text with fields: read with the
    repository's types and folders, it replaces the words. Of several repositories, ``start`` hits of each are skipped.
    """

    page: int = 1
    items_per_page: int = 1
    start: int = 0
    include_total: bool = False
    wait_for: str | None = None
    media_type: str = ""
    inline: bool = False
    links: bool = True
    view: View = View()
    repeated: dict[str, str] = {}
    facets: AskedFacets = AskedFacets()
    cursor: str | None = None
    query: Query | None = None
    posted: bool = False
    kept: "QuerySource | None" = None
    words: WordsNeeded = "all"
    marks: bool = False
    collapse: bool = False
    meaning: bool | None = None
    typed: bool = False
    fields: str = ""


class NamedQuery(msgspec.Struct, frozen=True):
    """``modified`` is the last change of the saved query."""

    query: Query
    title: str
    modified: Instant


class QuerySource(msgspec.Struct, frozen=True):
    """Where to find a saved query.

    ``find`` is called in the transaction that finds the hits, so nobody executes what they may not see any more. A GET
    of ``path``, below the repository's address, executes it; if empty, the query is kept for ``next`` like a posted
    one.
    """

    find: Callable[[Connection, Principals], NamedQuery]
    path: str = ""


async def read_keywords(request: Request, context: RepositoryContext) -> AskedSearch:
    """Raises BadQuery, BadSort, UnknownType, Malformed, NotAcceptable."""
    asked = read_parameters(request, parameters.read(request), context.options, FINDING)
    return asked if "link" in asked.repeated else await with_words(context, asked)


async def with_words(context: RepositoryContext, asked: AskedSearch) -> AskedSearch:
    """Fields of a typed text are words in the query.

    Raises BadQuery, BadSort, UnknownType, Malformed.
    """
    values, text = asked.repeated, asked.repeated.get("q", "")
    words = words_needed(values, default_words(context.options))
    typed = typed_wanted(values, words)
    query = await _read(context, len(text), lambda: _by_words(context.options, text, values, typed=typed))
    fields = text if typed and typed_language.has_fields(text) else ""
    return msgspec.structs.replace(asked, query=query, words=words, typed=typed, fields=fields)


async def read_document(request: Request, context: RepositoryContext) -> AskedSearch:
    """Raises NotAcceptable, Malformed, and what ``query_of_body`` raises."""
    asked = read_parameters(request, parameters.read(request), context.options, ())
    return msgspec.structs.replace(asked, query=await query_of_body(request, context), posted=True)


def with_fields(
    cx: Connection, view: RepositoryView, options: RepositoryOptions, query: Query, text: str, *, sure: bool = False
) -> Query:
    """Replace the words of ``query`` by a typed text with fields.

    With ``sure``, a field that cannot be read is refused, not searched as words.

    Raises BadQuery, WrongValue.
    """
    understood = typed_questions.understand(cx, view, options.names, text)
    if sure and understood.reasons:
        raise WrongValue(next(iter(understood.reasons.values())))
    if query.locations and understood.locations:
        raise WrongValue("Folders are named with in: or in the parameter 'locations', not in both.")
    typed_query = typed_questions.query(understood, options.names, QueryLimits.of(options))
    locations = query.locations or typed_query.locations
    return msgspec.structs.replace(query, condition=typed_query.condition, locations=locations)


async def query_of_body(request: Request, context: RepositoryContext) -> Query:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, BadQuery, UnknownType."""
    bodies.check_encoding(request)
    document = await bodies.raw(request, context.options.max_metadata_bytes)
    read = as_json.read if bodies.media_type(request).endswith("json") else as_xml.read
    names, most = context.names, QueryLimits.of(context.options)
    return await _read(context, len(document), lambda: context.memory.read(read, document, names, most))


async def _read(context: RepositoryContext, length: int, reading: Callable[[], Query]) -> Query:
    """Refuse a bad query here, even without an index."""
    return reading() if length <= _SHORT else await context.transactions.off_loop(reading)


def locale(repeated: Mapping[str, str]) -> str:
    return repeated.get("query-locale", "")[:_LONGEST_LOCALE]


def _by_words(options: RepositoryOptions, text: str, repeated: Mapping[str, str], *, typed: bool) -> Query:
    type_name, names = repeated.get("object-type"), options.names
    if typed:
        text = typed_language.translate(text).text
    elif _EVERYTHING.fullmatch(text.strip()):
        text = ""
    sort = reader.read_sort(repeated.get("sort", ""), lambda name: spelling.read_property(name, names))
    return Query(
        types=(spelling.read_type(type_name, names),) if type_name else (),
        condition=Fulltext(keywords.read(text, QueryLimits.of(options))) if text.strip() else None,
        sorts=tuple(SortCriterion(key.name, not key.descending, "", not key.folded, key.place) for key in sort),
        locations=_locations(repeated.get("locations", "")),
    )


def _locations(text: str) -> tuple[Location, ...]:
    r"""Split at commas; ``\,`` is one within a path."""
    paths = [path.replace(r"\,", ",") for part in _LISTED_PATH.findall(text) if (path := part.strip())]
    return tuple(Location(path, descendants=True, place=f"locations[{number}]") for number, path in enumerate(paths))


def read_parameters(
    request: Request, query: Mapping[str, str], options: RepositoryOptions, own: tuple[str, ...]
) -> AskedSearch:
    """``own`` say what the search finds.

    Raises BadQuery, Malformed, NotAcceptable.
    """
    query_names = [name for name in own if name != "link" and name in query]
    if "link" in query and query_names:
        raise Malformed(f"The parameter 'link' stands for a whole query: {query_names[0]!r} cannot go with it.")
    link_parameters = (*own, "facet-id-constraints", "query-locale", "words", "typed", "meaning", "collapse", *SHOWING)
    words = words_needed(query, "all")
    repeated = {name: query[name] for name in link_parameters if name in query}
    return AskedSearch(
        page=collections.read_number(query),
        items_per_page=collections.read_size(query, options),
        include_total=parameters.truth(query, "include-total"),
        wait_for=query.get("wait-for"),
        media_type=feed_type(request, options),
        inline=parameters.truth(query, "inline"),
        links=parameters.truth(query, "links", default=True),
        view=representations.read_view(query, options.names),
        repeated=repeated,
        facets=facets.read_request(query, options),
        cursor=query.get("cursor") or None,
        words=words,
        typed=typed_wanted(query, words),
        marks=parameters.truth(query, "marks"),
        collapse=parameters.choice(query, "collapse", ("none", "content"), default="none") == "content",
        meaning=meaning_wanted(query, options),
    )


def meaning_wanted(query: Mapping[str, str], options: RepositoryOptions) -> bool | None:
    """Return None for ``auto``. Raises Malformed."""
    choice = parameters.choice(query, "meaning", ("auto", "true", "false"), default="auto")
    if choice == "true" and not options.meaning:
        raise Malformed("This server does not search by meaning; its setting repository.meaning is false.")
    return None if choice == "auto" else choice == "true"


def words_needed(query: Mapping[str, str], default: WordsNeeded) -> WordsNeeded:
    """Raises Malformed."""
    return parameters.choice(query, "words", ("all", "any", "auto"), default=default)


def typed_wanted(query: Mapping[str, str], words: WordsNeeded) -> bool:
    """Where not all words are needed, the question was typed. Raises Malformed."""
    return parameters.truth(query, "typed", default=words != "all")


def default_words(options: RepositoryOptions) -> WordsNeeded:
    return "auto" if options.relax_searches else "all"


def feed_type(request: Request, options: RepositoryOptions) -> str:
    """Choose the media type of a search's feed. If the caller likes none better, a query in XML gets Atom, and any
    other one JSON. Raises NotAcceptable."""
    if not object_body.is_xml(bodies.media_type(request)):
        return collections.feed_type(request, options.names)
    json, xml, *others = spelling.both(options.names)
    return spelling.negotiate(request, (spelling.ATOM, "application/xml", xml, json, *others))
