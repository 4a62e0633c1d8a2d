"""What does a query document in XML ask for? Source: given 2.8; the rest of the field's AQL is not offered yet."""

from collections.abc import Callable
from typing import NoReturn

from muniment.repository.aql import keywords
from muniment.repository.aql.tree import (
    Expression,
    ExpressionSet,
    Fulltext,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    QueryLimits,
)
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, NotOfferedYet, UnknownType
from muniment.web import xml
from muniment.web.refusals import Malformed
from muniment.web.xml import Element

BUILT_IN_TYPES = frozenset({"sysobject", "folder", "cabinet", "document"})
"""The built-in types. On the wire, their names have the prefix that the settings name."""

_SYSTEM_PREFIX = "r_"

_LATER_PARTS = frozenset({"repositories", "columns", "sorts", "locations", "collections", "facet-definitions"})
_LATER_EXPRESSIONS = frozenset({"relative-date"})
_LATER_OPERATORS = frozenset(
    {"UNDEFINED", "EQUAL", "NOT_EQUAL", "GREATER_THAN", "LESS_THAN", "GREATER_EQUAL", "LESS_EQUAL", "CONTAINS"}
    | {"DOES_NOT_CONTAIN", "ENDS_WITH", "IS_NULL", "IS_NOT_NULL", "NOT_IN"}
)
_HARMLESS = frozenset({"repeating"})
_LATER_FLAGS = frozenset({"case-sensitive", "exact-match", "fuzzy", "template"})
_SCHEMA_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"


def read(document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
    """Read a search document into a query with neutral names.

    A document without an expression-set asks for every object of its types. An expression-set needs at least one
    expression. White space around values is ignored. Raises BadQuery with line and column, NotOfferedYet for a feature
    of the interface that this release does not offer, UnknownType for a built-in type without its prefix.
    """
    try:
        root = xml.parse(document, 2 * limits.depth + 8, 4 * limits.clauses + 1000)
    except Malformed as malformed:
        raise BadQuery(malformed.sentence) from malformed
    return _Reader(names, limits).query(root)


def neutral_type(name: str, names: RepositoryNames) -> str:
    """Translate the name of a type on the wire. Raises UnknownType for a built-in type without its prefix."""
    bare = name.removeprefix(names.type_prefix)
    if bare in BUILT_IN_TYPES and name != bare:
        return bare
    if names.type_prefix and name in BUILT_IN_TYPES:
        raise UnknownType(f"There is no object type {name!r}. Is {names.type_prefix + name!r} meant?")
    return name


def neutral_property(name: str, names: RepositoryNames) -> str:
    """Translate the name of a property on the wire."""
    if names.system_property_prefix != _SYSTEM_PREFIX and name.startswith(names.system_property_prefix):
        return _SYSTEM_PREFIX + name.removeprefix(names.system_property_prefix)
    return name


class _Reader:
    def __init__(self, names: RepositoryNames, limits: QueryLimits) -> None:
        self._names = names
        self._limits = limits
        self._clauses = 0
        self._expressions: dict[str, Callable[[Element, int], Expression]] = {
            "expression-set": self._expression_set,
            "fulltext": self._fulltext,
            "property": self._property,
            "property-list": self._property_list,
            "property-range": self._property_range,
        }

    def query(self, root: Element) -> Query:
        self._check_namespace(root)
        if root.name != "search":
            _bad(root, f"A query's root element is 'search', not {root.name!r}")
        if "max-results-for-facets" in root.attributes:
            _later(root, "The attribute 'max-results-for-facets'")
        self._check_attributes(root, later=frozenset({"all-versions", "include-hidden-objects"}))
        self._no_text(root)
        types: tuple[str, ...] | None = None
        types_place = ""
        condition: Expression | None = None
        for part in root.children:
            self._check_namespace(part)
            if part.name == "types" and types is None:
                types, types_place = self._types(part), part.place
            elif part.name == "expression-set" and condition is None:
                condition = self._expression(part, 1)
            elif part.name in _LATER_PARTS:
                _later(part, f"The element {part.name!r}")
            elif part.name in ("types", "expression-set"):
                _bad(part, f"The query has more than one {part.name!r}")
            else:
                _bad(part, f"A query has no element {part.name!r}")
        return Query(types or (), condition, types_place)

    def _types(self, element: Element) -> tuple[str, ...]:
        self._check_attributes(element)
        names = self._texts(element, "type")
        if not names:
            _bad(element, "The types element names no type; leave it out to ask for every type")
        for child, name in zip(element.children, names, strict=True):
            if not name:
                _bad(child, "The type has no name")
        try:
            return tuple(neutral_type(name, self._names) for name in names)
        except UnknownType as unknown:
            raise UnknownType(f"{unknown.sentence} ({element.place}).") from unknown

    def _expression(self, element: Element, depth: int) -> Expression:
        self._check_namespace(element)
        self._count(element, 1)
        reader = self._expressions.get(element.name)
        if element.name in _LATER_EXPRESSIONS:
            _later(element, f"The expression {element.name!r}")
        if reader is None:
            _bad(element, f"There is no expression {element.name!r}")
        return reader(element, depth)

    def _expression_set(self, element: Element, depth: int) -> Expression:
        if depth > self._limits.depth:
            _bad(element, f"The query's expression sets are nested deeper than {self._limits.depth}")
        self._check_attributes(element, known=frozenset({"operator"}))
        operator = element.attributes.get("operator", "AND").strip().upper()
        if operator not in ("AND", "OR"):
            _bad(element, f"An expression-set's operator is AND or OR, not {operator[:40]!r}")
        inner = self._only(element, "expressions")
        self._check_attributes(inner)
        self._no_text(inner)
        expressions = tuple(self._expression(child, depth + 1) for child in inner.children)
        if not expressions:
            _bad(inner, "An expression-set needs at least one expression")
        return ExpressionSet("OR" if operator == "OR" else "AND", expressions)

    def _fulltext(self, element: Element, _depth: int) -> Expression:
        self._check_attributes(element)
        self._no_children(element)
        try:
            expression = keywords.read(element.text, self._limits)
        except BadQuery as refused:
            raise BadQuery(f"{refused.sentence.rstrip('.')} ({element.place}).") from refused
        self._count(element, keywords.count(expression))
        return Fulltext(expression)

    def _property(self, element: Element, _depth: int) -> Expression:
        self._operator(element, "BEGINS_WITH", "")
        self._no_children(element)
        name = self._name(element)
        return Property(name, "BEGINS_WITH", self._value(name, element.text), element.place)

    def _property_list(self, element: Element, _depth: int) -> Expression:
        self._operator(element, "IN", "IN")
        name = self._name(element)
        inner = self._only(element, "values")
        self._check_attributes(inner)
        values = tuple(self._value(name, text) for text in self._texts(inner, "value"))
        if not values:
            _bad(inner, "A property-list needs at least one value")
        self._count(element, len(values))
        return PropertyList(name, "IN", values, element.place)

    def _property_range(self, element: Element, _depth: int) -> Expression:
        self._operator(element, "BETWEEN", "BETWEEN")
        self._no_text(element)
        name = self._name(element)
        ends: dict[str, str] = {}
        for child in element.children:
            self._check_namespace(child)
            if child.name not in ("from", "to") or child.name in ends:
                _bad(child, f"A property-range has one 'from' and one 'to', not this {child.name!r}")
            self._check_attributes(child)
            self._no_children(child)
            ends[child.name] = child.text.strip()
        for end in ("from", "to"):
            if not ends.get(end):
                _bad(element, f"The property-range has no {end!r} value")
        low, high = self._value(name, ends["from"]), self._value(name, ends["to"])
        return PropertyRange(name, "BETWEEN", low, high, element.place)

    def _name(self, element: Element) -> str:
        name = element.attributes.get("name", "").strip()
        if not name:
            _bad(element, f"The {element.name} has no attribute 'name'")
        return neutral_property(name, self._names)

    def _value(self, name: str, text: str) -> str:
        """Trim a value. Values of ``r_object_type`` are names of types, and lose their prefix."""
        value = text.strip()
        bare = value.removeprefix(self._names.type_prefix)
        if name == "r_object_type" and bare and any(type_name.startswith(bare) for type_name in BUILT_IN_TYPES):
            return bare
        return value

    def _operator(self, element: Element, offered: str, default: str) -> None:
        self._check_attributes(element, known=frozenset({"name", "operator"}))
        operator = element.attributes.get("operator", default).strip().upper()
        if operator == offered:
            return
        if operator in _LATER_OPERATORS:
            _later(element, f"The operator {operator}")
        if not operator:
            _bad(element, f"The {element.name} has no attribute 'operator'")
        _bad(element, f"The operator of a {element.name} is {offered}, not {operator[:40]!r}")

    def _check_namespace(self, element: Element) -> None:
        if element.namespace != self._names.vocab_namespace:
            _bad(
                element,
                f"The element {element.name!r} is in the namespace {element.namespace[:200]!r}; "
                f"a query's elements are in {self._names.vocab_namespace!r}",
            )

    def _check_attributes(
        self, element: Element, known: frozenset[str] = frozenset(), later: frozenset[str] = _LATER_FLAGS
    ) -> None:
        for name, value in element.attributes.items():
            if name in known or name.startswith(_SCHEMA_INSTANCE):
                continue
            if name not in _HARMLESS | later:
                _bad(element, f"The element {element.name!r} has no attribute {name!r}")
            if value.strip().lower() not in ("true", "false"):
                _bad(element, f"The attribute {name!r} is true or false, not {value[:40]!r}")
            if name in later and value.strip().lower() == "true":
                _later(element, f'{name}="true"')

    def _only(self, element: Element, name: str) -> Element:
        self._no_text(element)
        for child in element.children:
            self._check_namespace(child)
            if child.name != name:
                _bad(child, f"The {element.name} has no element {child.name!r}")
        if len(element.children) != 1:
            _bad(element, f"The {element.name} has one element {name!r}, not {len(element.children)}")
        return element.children[0]

    def _texts(self, element: Element, name: str) -> list[str]:
        self._no_text(element)
        for child in element.children:
            self._check_namespace(child)
            if child.name != name:
                _bad(child, f"The {element.name} element has no element {child.name!r}")
            self._check_attributes(child)
            self._no_children(child)
        return [child.text.strip() for child in element.children]

    def _no_children(self, element: Element) -> None:
        if element.children:
            _bad(element.children[0], f"The {element.name} holds text, no element {element.children[0].name!r}")

    def _no_text(self, element: Element) -> None:
        if element.text.strip():
            _bad(element, f"The element {element.name!r} holds elements, not the text {element.text.strip()[:40]!r}")

    def _count(self, element: Element, clauses: int) -> None:
        self._clauses += clauses
        if self._clauses > self._limits.clauses:
            _bad(element, f"The query has more than {self._limits.clauses} expressions, values and keywords")


def _bad(element: Element, what: str) -> NoReturn:
    raise BadQuery(f"{what} ({element.place}).")


def _later(element: Element, what: str) -> NoReturn:
    raise NotOfferedYet(f"{what} is not offered yet ({element.place}).")
