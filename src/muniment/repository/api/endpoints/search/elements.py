"""How are expressions written as the elements of a query document? Names are those on the wire (given 2.8)."""

from collections.abc import Sequence
from typing import Literal

from muniment.ground.xml import Element
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.search.aql.tree import PropertyOperator


def fulltext(names: RepositoryNames, words: str) -> Element:
    return Element(names.vocab_namespace, "fulltext", {}, [], words, path="the words")


def compared(names: RepositoryNames, property_name: str, operator: PropertyOperator, value: str) -> Element:
    attributes = {"name": spelling.write_property(property_name, names), "operator": operator}
    return Element(names.vocab_namespace, "property", attributes, [], value)


def listed(
    names: RepositoryNames, property_name: str, values: Sequence[str], operator: Literal["IN", "NOT_IN"] = "IN"
) -> Element:
    space = names.vocab_namespace
    each = [Element(space, "value", {}, [], value) for value in values]
    attributes = {"name": spelling.write_property(property_name, names), "operator": operator}
    return Element(space, "property-list", attributes, [Element(space, "values", {}, each, "")], "")


def ranged(names: RepositoryNames, property_name: str, low: str, high: str) -> Element:
    """Both ends are included; without ``high``, it is open."""
    if not high:
        return compared(names, property_name, "GREATER_EQUAL", low)
    space = names.vocab_namespace
    ends = [Element(space, "from", {}, [], low), Element(space, "to", {}, [], high)]
    attributes = {"name": spelling.write_property(property_name, names), "operator": "BETWEEN"}
    return Element(space, "property-range", attributes, ends, "")


def together(names: RepositoryNames, operator: Literal["AND", "OR"], expressions: list[Element]) -> Element:
    """A single expression stays as it is."""
    return expressions[0] if len(expressions) == 1 else expression_set(names, operator, expressions)


def expression_set(names: RepositoryNames, operator: Literal["AND", "OR"], expressions: list[Element]) -> Element:
    space = names.vocab_namespace
    inner = Element(space, "expressions", {}, expressions, "")
    return Element(space, "expression-set", {"operator": operator}, [inner], "")


def in_folder(names: RepositoryNames, *, path: str = "", folder_id: str = "", place: str) -> Element:
    """Include everything below the folder. ``place`` names it in refusals."""
    space = names.vocab_namespace
    kind, name, text = ("path-location", "path", path) if path else ("id-location", "id", folder_id)
    return Element(space, kind, {"descendent": "true"}, [Element(space, name, {}, [], text)], "", path=place)


def search(names: RepositoryNames, expressions: list[Element], locations: list[Element]) -> Element:
    space = names.vocab_namespace
    parts = [expression_set(names, "AND", expressions)] if expressions else []
    parts += [Element(space, "locations", {}, locations, "")] if locations else []
    return Element(space, "search", {}, parts, "")
