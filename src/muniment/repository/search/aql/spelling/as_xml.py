"""Read a query document in XML (given 2.8), or write one."""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from muniment.ground import xml
from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.spelling import documents
from muniment.repository.search.aql.tree import Query, QueryLimits


def read(document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
    """Ignore white space around values.

    Raises BadQuery with line and column, and what ``documents.read`` raises.
    """
    return documents.read(elements(document, limits), names, limits)


def elements(document: bytes, limits: QueryLimits) -> Element:
    """Raises BadQuery with line and column."""
    if not document.strip():
        raise BadQuery("The search document is empty: it must hold the XML element 'search'.")
    try:
        return xml.parse(document, 2 * limits.depth + 12, 4 * limits.clauses + 1000)
    except Malformed as malformed:
        raise BadQuery(malformed.sentence) from malformed


def write(element: Element, *, indented: bool = False) -> str:
    """Write one line, or ``indented`` as people read it."""
    return "".join(_written(element, f" xmlns={quoteattr(element.namespace)}", "\n" if indented else ""))


def _written(element: Element, namespace: str, margin: str) -> Iterator[str]:
    """``margin`` is the line break and blanks before the end tag; if empty, all is on one line."""
    attributes = "".join(
        f" {name}={quoteattr(value)}" for name, value in element.attributes.items() if not name.startswith("{")
    )
    yield f"<{element.name}{namespace}{attributes}>"
    if not element.children:
        yield escape(element.text)
    for child in element.children:
        yield margin and f"{margin}  "
        yield from _written(child, "", margin and f"{margin}  ")
    yield f"{margin if element.children else ''}</{element.name}>"
