"""Read a query document in XML (given 2.8), or write one."""

from xml.sax.saxutils import escape, quoteattr

from muniment.repository.aql import documents
from muniment.repository.aql.tree import Query, QueryLimits
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.web import xml
from muniment.web.refusals import Malformed
from muniment.web.xml import Element


def read(document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
    """Read a search document into a query with neutral names.

    White space around values is ignored. Raises BadQuery with line and column, and what ``documents.read`` raises.
    """
    return documents.read(elements(document, limits), names, limits)


def elements(document: bytes, limits: QueryLimits) -> Element:
    """Read XML into the elements of a search document. Raises BadQuery with line and column."""
    try:
        return xml.parse(document, 2 * limits.depth + 12, 4 * limits.clauses + 1000)
    except Malformed as malformed:
        raise BadQuery(malformed.sentence) from malformed


def write(element: Element) -> str:
    """Write the elements of a search document as XML."""
    return _written(element, f" xmlns={quoteattr(element.namespace)}")


def _written(element: Element, namespace: str) -> str:
    attributes = "".join(
        f" {name}={quoteattr(value)}" for name, value in element.attributes.items() if not name.startswith("{")
    )
    inside = escape(element.text if not element.children else "")
    inside += "".join(_written(child, "") for child in element.children)
    return f"<{element.name}{namespace}{attributes}>{inside}</{element.name}>"
