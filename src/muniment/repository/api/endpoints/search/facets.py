"""The facets of a search: which facets a GET asks for, and how a feed shows their counts, with links to narrower
searches.

Source: docs/aql.md, "Facets"; docs/interface.md, ours 6.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote_plus, urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.refusals import Malformed
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.shapes import collections
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import format_names, parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering import atom
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.rewriting.narrowing import Narrowing
from muniment.repository.search.aql.spelling.facets import NOT_FACETS
from muniment.repository.search.aql.spelling.wire_names import neutral_value
from muniment.repository.search.aql.tree import FacetDefinition, Query
from muniment.repository.search.index.contract import FacetCounts, FacetValue
from muniment.repository.store.objects.types import listed_properties
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions.principals import Principals

_TYPE, _FORMAT = "r_object_type", "a_content_type"
_VALUES, _PAIRS = parameters.FACET_VALUES.name, parameters.FACET_IDS.name
_LONGEST_ADDRESS = 8000
"""The link of each facet's value repeats the address, of so many characters."""


class AskedFacets(msgspec.Struct, frozen=True):
    """``wire_name`` is the property of ``facet`` as in the address, which ``values`` narrow; each of ``pairs`` narrows
    another.
    """

    wire_name: str = ""
    timezone: str = ""
    values: narrowing.Alternatives = ()
    pairs: tuple[Narrowing, ...] = ()

    def definitions(self, catalogue: Catalogue, names: RepositoryNames) -> tuple[FacetDefinition, ...]:
        """Dates are counted by month, other values one by one.

        Raises UnknownProperty.
        """
        if not self.wire_name:
            return ()
        name = spelling.read_property(self.wire_name, names)
        is_date = catalogue.property(name).kind == "date"
        group_by, zone = ("month", (("timezone", self.timezone),)) if is_date else ("string", ())
        return (FacetDefinition(self.wire_name, (name,), group_by, properties=zone),)

    def narrowings(self, query: Query, names: RepositoryNames) -> tuple[Narrowing, ...]:
        """Raises BadQuery."""
        of_values = (Narrowing(self.wire_name, self.values),) if self.values else ()
        attributes = _translated_facets(query.facets)
        return tuple(
            _neutral(each, attributes[each.facet_id], names) if each.facet_id in attributes else each
            for each in (*of_values, *self.pairs)
        )


def read_request(query: Mapping[str, str], options: RepositoryOptions) -> AskedFacets:
    """Raises BadQuery, Malformed."""
    query = {name: text for name, text in query.items() if text}
    facet, most = query.get(parameters.FACET.name, "").strip(), options.max_query_clauses
    for name in (_VALUES, parameters.TIMEZONE.name):
        if name in query and not facet:
            raise Malformed(f"The parameter {name!r} goes with 'facet'.")
    return AskedFacets(
        facet,
        query.get(parameters.TIMEZONE.name, ""),
        narrowing.read_values(query[_VALUES], most) if _VALUES in query else (),
        narrowing.read_pairs(query[_PAIRS], most) if _PAIRS in query else (),
    )


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """List the properties by whose values hits can be counted."""
    return await collections.answer_list(request, context, "supported-facets", "Supported facets", _facet_page)


def _facet_page(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
    repository, selection, prefix = feed.repository, feed.page.selection, feed.names.system_property_prefix

    def entry(name: str, kind: str) -> atom.FeedEntry:
        own = f"{feed.here}/search?{urlencode({'facet': name})}"
        links: Written = [{"rel": f"{feed.names.linkrel_base}/search", "href": own}]
        document: dict[str, Written] = {"name": name, "label": name, "kind": kind, "links": links}
        return feed.entry(own, name, "Muniment", kind, repository.created, lambda: Thing("supported-facet", document))

    return feed.listed(
        cx,
        principals,
        "supported-facets",
        lambda stretch: listed_properties.property_page(
            cx, repository.id, NOT_FACETS, stretch, selection, system_prefix=prefix
        ),
        lambda properties: [entry(each.name, each.kind) for each in properties],
        lambda: listed_properties.count_properties(cx, repository.id, NOT_FACETS, selection, system_prefix=prefix),
    )


class FacetWriter:
    """Links each value to the search at ``service``, narrowed to it.

    ``facet_hits`` were counted, or all. ``repeated`` are parameters of every link, ``size`` that for the length of a
    page.
    """

    def __init__(
        self,
        facet_hits: int | None,
        request: AskedFacets,
        repeated: Mapping[str, str],
        size: tuple[str, int],
        service: str,
        names: RepositoryNames,
    ) -> None:
        self._facet_hits = facet_hits
        self._request = request
        self._size = urlencode([size])
        parameters = {name: text for name, text in repeated.items() if name not in (_VALUES, _PAIRS, size[0])}
        self._prefix = f"{service}?{urlencode(parameters)}&" if parameters else f"{service}?"
        self._names = names

    def facets(self, several: Sequence[FacetCounts]) -> tuple[atom.FeedFacet, ...]:
        """Raises BadQuery if what all their links repeat is too long."""
        if several and len(self._address(())) > _LONGEST_ADDRESS:
            raise BadQuery(
                f"The address of a search with facets has at most {_LONGEST_ADDRESS} characters, because each value "
                "repeats it: post the query as a document."
            )
        return tuple(self._facet(counts, ()) for counts in several)

    def _facet(self, counts: FacetCounts, narrowings: tuple[Narrowing, ...]) -> atom.FeedFacet:
        return atom.FeedFacet(
            counts.id,
            spelling.write_property(counts.name, self._names),
            tuple(self._value(counts, value, narrowings) for value in counts.values),
            self._facet_hits,
            counts.partial,
        )

    def _value(self, counts: FacetCounts, value: FacetValue, narrowings: tuple[Narrowing, ...]) -> atom.FeedFacetValue:
        name, constraint = value.name, value.constraint
        if counts.name == _TYPE and constraint != narrowing.NO_VALUE:
            name = spelling.write_type(name, self._names)
            constraint = narrowing.write(name)
        elif counts.name == _FORMAT and constraint != narrowing.NO_VALUE:
            name = format_names.name(name, self._names)
        path = (*narrowings, Narrowing(counts.id, ((constraint,),)))
        nested = None if value.nested is None else self._facet(value.nested, path)
        link = atom.Link(f"{self._names.linkrel_base}/search", self._address(path))
        return atom.FeedFacetValue(name, value.count, constraint, link, nested)

    def _address(self, path: tuple[Narrowing, ...]) -> str:
        values, pairs, constraints = self._request.values, self._request.pairs, ""
        if self._request.wire_name:
            for step in path:
                values = narrowing.narrower(values, step.alternatives[0][0])
        else:
            pairs = tuple(dict.fromkeys((*pairs, *path)))
        if values:
            constraints = f"{_VALUES}={quote_plus(narrowing.write_values(values))}&"
        if pairs:
            constraints += f"{_PAIRS}={quote_plus(narrowing.write_pairs(pairs))}&"
        return f"{self._prefix}{constraints}{self._size}"


def _translated_facets(definitions: Sequence[FacetDefinition]) -> dict[str, str]:
    """Return the property of each facet whose values have other names on the wire, by the facet's id."""
    attributes: dict[str, str] = {}
    for definition in definitions:
        level: FacetDefinition | None = definition
        while level is not None:
            if level.attributes in ((_TYPE,), (_FORMAT,)):
                attributes[level.id] = level.attributes[0]
            level = level.nested
    return attributes


def _neutral(each: Narrowing, attribute: str, names: RepositoryNames) -> Narrowing:
    def neutral(constraint: str) -> str:
        name = narrowing.read(constraint)
        if name is None:
            return constraint
        is_format = attribute == _FORMAT
        return narrowing.write(
            format_names.media_type_or_same(name, names) if is_format else neutral_value(_TYPE, name, names)
        )

    return Narrowing(each.facet_id, tuple(tuple(map(neutral, group)) for group in each.alternatives))
