"""Search templates: queries with variables.

Values are put into elements, never into text: nothing in them is an operator or a wildcard.

Source: docs/interface.md, ours 13.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownProperty
from muniment.repository.search.aql.bind import Catalogue
from muniment.repository.search.aql.spelling import documents
from muniment.repository.search.aql.spelling.wire_names import neutral_property
from muniment.repository.search.aql.tree import Expression, ExpressionSet, Query, QueryLimits

DataType = Literal["string", "integer", "double", "boolean", "date"]

SINGLE, SEVERAL, BOUNDS = "variable-value", "variable-values", ("from", "to")

_KINDS: Mapping[str, str] = {
    kind: f"{kind}-variable" for kind in ("fulltext", "property", "relative-date", "property-list", "property-range")
}
_TEXTLESS = ("IS_NULL", "IS_NOT_NULL")


class Variable(msgspec.Struct, frozen=True):
    """``property_name`` is spelled as in the document, and empty for full text."""

    id: str
    variable_type: str
    expression_type: str
    data_type: DataType
    property_name: str
    operator: str
    values: tuple[str, ...]


class VariableValue(msgspec.Struct, frozen=True):
    """``values`` go by the keys ``SINGLE``, ``SEVERAL``, ``BOUNDS``."""

    id: str
    values: Mapping[str, Sequence[str]]
    variable_type: str = ""


def variables(root: Element, names: RepositoryNames, catalogue: Catalogue) -> list[Variable]:
    """``names`` are the names with which it was written."""
    return [_variable(f"v{number}", element, names, catalogue) for number, element in enumerate(_open(root), 1)]


def check(root: Element, names: RepositoryNames, catalogue: Catalogue) -> None:
    """Check that each variable of a document stands for keywords or for values of a searchable property.

    Raises BadQuery, UnknownProperty.
    """
    for element in _open(root):
        if element.name not in _KINDS:
            raise BadQuery(f"The {element.name} has no value, so it is no variable of a template ({element.place}).")
        if element.attributes.get("operator", "").strip().upper() in _TEXTLESS:
            raise BadQuery(f"The comparison takes no value, so it is no variable of a template ({element.place}).")
        if element.name != "fulltext":
            catalogue.searchable(neutral_property(element.attributes.get("name", "").strip(), names))


def without_variables(query: Query, root: Element) -> Query:
    """The rest can be checked before values are known."""
    places = {element.place for element in _open(root)}
    return msgspec.structs.replace(query, condition=_without_open(query.condition, places))


def fill(root: Element, names: RepositoryNames, limits: QueryLimits, values: Sequence[VariableValue]) -> Query:
    """Put values in; other variables keep their own. Raises BadQuery for an id that is unknown or comes twice, or a
    wrong type or key, and what ``documents.read`` raises.
    """
    by_id: dict[str, VariableValue] = {}
    for one in values:
        if one.id in by_id:
            raise BadQuery(f"The variable {one.id[:40]!r} comes twice.")
        by_id[one.id] = one
    new_elements: dict[int, Element] = {}
    for number, element in enumerate(_open(root), 1):
        if (value := by_id.pop(f"v{number}", None)) is not None:
            new_elements[id(element)] = _with(element, value)
    if by_id:
        raise BadQuery(f"The template has no variable {next(iter(by_id))[:40]!r}.")
    whole = _rebuilt(root, new_elements)
    return documents.read(whole, names, limits, literal=tuple(new_elements.values()))


def _open(element: Element) -> Iterator[Element]:
    for child in element.children:
        if child.name in ("expression-set", "expressions") or element.name == "expressions":
            if documents.is_marked(child, "template"):
                yield child
            yield from _open(child)


def _variable(variable_id: str, element: Element, names: RepositoryNames, catalogue: Catalogue) -> Variable:
    name = element.attributes.get("name", "").strip()
    operator = element.attributes.get("operator", "").strip()
    match element.name:
        case "property-list":
            operator = operator or "IN"
            values = [value.text.strip() for inner in element.children for value in inner.children]
        case "property-range":
            operator = operator or "BETWEEN"
            ends = {end.name: end.text.strip() for end in element.children}
            values = [ends.get(end, "") for end in BOUNDS]
        case _:
            values = [element.text.strip()]
    data_type = _data_type(element.name, neutral_property(name, names), catalogue)
    kind = _KINDS.get(element.name, element.name)
    return Variable(variable_id, kind, element.name, data_type, name, operator.upper(), tuple(values))


def _data_type(expression: str, name: str, catalogue: Catalogue) -> DataType:
    if expression in ("fulltext", "relative-date"):
        return "string" if expression == "fulltext" else "integer"
    try:
        kind = catalogue.searchable(name).kind
    except UnknownProperty:
        return "string"
    return "string" if kind == "id" else kind


def _with(element: Element, value: VariableValue) -> Element:
    kind = _KINDS.get(element.name, element.name)
    if value.variable_type and value.variable_type != kind:
        raise BadQuery(f"The variable {value.id[:40]!r} is a {kind}, not a {value.variable_type[:40]!r}.")
    value_names = {"property-list": (SEVERAL,), "property-range": BOUNDS}.get(element.name, (SINGLE,))
    if value.values.keys() != set(value_names):
        raise BadQuery(
            f"The variable {value.id[:40]!r} takes {' and '.join(map(repr, value_names))}, and nothing else."
        )
    if element.name == "property-list":
        (inner,) = element.children
        texts = [_text_of(inner, "value", text) for text in value.values[SEVERAL]]
        return _copy_with(element, [_copy_with(inner, texts)])
    if element.name == "property-range":
        return _copy_with(element, [_text_of(element, end, value.values[end][0]) for end in BOUNDS])
    return _copy_with(element, [], value.values[SINGLE][0])


def _text_of(sibling: Element, name: str, text: str) -> Element:
    return Element(sibling.namespace, name, {}, [], text, sibling.line, sibling.column, sibling.path)


def _copy_with(element: Element, children: list[Element], text: str = "") -> Element:
    return msgspec.structs.replace(element, children=children, text=text)


def _rebuilt(element: Element, new_elements: Mapping[int, Element]) -> Element:
    if id(element) in new_elements:
        return new_elements[id(element)]
    if not element.children:
        return element
    return msgspec.structs.replace(element, children=[_rebuilt(child, new_elements) for child in element.children])


def _without_open(expression: Expression | None, places: set[str]) -> Expression | None:
    if isinstance(expression, ExpressionSet):
        inner = tuple(one for part in expression.expressions if (one := _without_open(part, places)) is not None)
        return ExpressionSet(expression.operator, inner) if inner else None
    return None if getattr(expression, "place", None) in places else expression
