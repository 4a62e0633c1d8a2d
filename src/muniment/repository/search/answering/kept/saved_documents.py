"""The documents of saved searches.

A document within other XML is written anew. It is read with the names on the wire with which it was written, so it
keeps its meaning when an operator changes them.

Source: docs/interface.md, ours 12.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal
from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering import results
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.kept import search_templates
from muniment.repository.search.answering.ordering import sorting
from muniment.repository.search.aql.spelling import as_json, as_xml, documents
from muniment.repository.search.aql.spelling.facets import FacetBinder, FacetLimits
from muniment.repository.search.aql.tree import Query, QueryLimits
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.saved.saved_searches import FORMAT, SavedDocument, Spelling, WrittenNames


def from_body(body: bytes, names: RepositoryNames) -> SavedDocument:
    """A text that begins with ``<`` is XML, any other is JSON."""
    spelling: Spelling = "xml" if body.lstrip()[:1] == b"<" else "json"
    return SavedDocument(spelling, _written_in(names), body)


def nested(element: Element, names: RepositoryNames, limits: QueryLimits) -> SavedDocument:
    """Raises what ``documents.read`` raises."""
    # ``as_xml.write`` writes only one namespace, so an element with others must be refused here.
    documents.read(element, names, limits)
    return SavedDocument("xml", _written_in(names), as_xml.write(element).encode())


def elements(document: SavedDocument, limits: QueryLimits) -> Element:
    """Raises BadQuery, also for a document in the format of another release."""
    if document.format != FORMAT:
        raise BadQuery(f"Another release has kept this search, in format {document.format}: save it again.")
    if document.spelling == "xml":
        return as_xml.elements(document.body, limits)
    return as_json.elements(document.body, names_of(document), limits)


def check(
    cx: Connection, view: RepositoryView, document: SavedDocument, options: RepositoryOptions, now: Instant
) -> None:
    """Do not check folders, whose existence depends on the caller who executes the document.

    Raises BadQuery, BadSort, UnknownType, UnknownProperty, NotSearchable, WrongValue.
    """
    _check(cx, view, query(document, QueryLimits.of(options)), options, now)


def check_template(
    cx: Connection, view: RepositoryView, document: SavedDocument, options: RepositoryOptions, now: Instant
) -> None:
    """Check as ``check`` does, and the variables without their values."""
    limits = QueryLimits.of(options)
    root, whole = elements(document, limits), query(document, limits)
    search_templates.check(root, names_of(document), view.catalogue)
    _check(cx, view, search_templates.without_variables(whole, root), options, now)


CHECKS = {"search": check, "template": check_template}


def _check(cx: Connection, view: RepositoryView, query: Query, options: RepositoryOptions, now: Instant) -> None:
    plain_query = msgspec.structs.replace(query, locations=())
    results.check_offered(plain_query, view.repository)
    results.bind_query(cx, view, plain_query, now, SearchCache())
    FacetBinder(view.catalogue, now, FacetLimits.of(options)).bind(plain_query.facets)
    sorting.order_of(cx, view, plain_query.sorts)


def query(document: SavedDocument, limits: QueryLimits) -> Query:
    """The values of variables count as ordinary values.

    Raises BadQuery, UnknownType.
    """
    return documents.read(elements(document, limits), names_of(document), limits)


def document_text(document: SavedDocument, spelling: Spelling, limits: QueryLimits) -> str:
    """Write it as received in its own spelling, even if it cannot be read any more."""
    if document.spelling != spelling:
        try:
            element = elements(document, limits)
            return as_xml.write(element) if spelling == "xml" else as_json.write(element)
        except (Refusal, ValueError):
            pass
    return document.body.decode("utf-8", "replace")


def names_of(document: SavedDocument) -> RepositoryNames:
    """Return the names to read a document with: three stored ones (``WrittenNames``), else the defaults."""
    return RepositoryNames(**msgspec.structs.asdict(document.names))


def _written_in(names: RepositoryNames) -> WrittenNames:
    return WrittenNames(names.vocab_namespace, names.type_prefix, names.system_property_prefix)
