"""What does a query document ask for?

An attribute with its default value, or an empty list such as ``types``, changes nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar, get_args

import msgspec

from muniment.ground.xml import Element
from muniment.repository.folding import fold
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownType
from muniment.repository.search.aql import keywords, patterns
from muniment.repository.search.aql.spelling.wire_names import neutral_property, neutral_type, neutral_value
from muniment.repository.search.aql.tree import (
    AgeOperator,
    Both,
    Either,
    Expression,
    ExpressionSet,
    FacetDefinition,
    FacetSort,
    Fulltext,
    Location,
    Property,
    PropertyList,
    PropertyOperator,
    PropertyRange,
    Query,
    QueryLimits,
    RelativeDate,
    SortCriterion,
    TimeUnit,
)

ROOT_FLAGS = ("all-versions", "include-hidden-objects")
ROOT_NUMBER = "max-results-for-facets"
LISTS = {
    "repositories": "repository",
    "types": "type",
    "columns": "column",
    "collections": "collection",
}

EXPRESSION_FLAGS = ("repeating", "case-sensitive", "exact-match", "fuzzy", "template")

PROPERTY_OPERATORS: tuple[PropertyOperator, ...] = get_args(PropertyOperator)
AGE_OPERATORS: tuple[AgeOperator, ...] = get_args(AgeOperator)
TIME_UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
FACET_SORTS: tuple[FacetSort, ...] = get_args(FacetSort)

_FACET_DEPTH = 4
_LONGEST_NUMBER = 9
_OPEN_OPERATORS = frozenset({"CONTAINS", "DOES_NOT_CONTAIN", "ENDS_WITH"})
_SCHEMA_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"

Word = TypeVar("Word", bound=str)


def read(root: Element, names: RepositoryNames, limits: QueryLimits, *, literal: Sequence[Element] = ()) -> Query:
    """An expression-set without expressions sets no condition.

    ``literal`` expressions are no language: their keywords are words that must all match, their values have no
    wildcards.

    Raises BadQuery with the place in the document, UnknownType for a built-in type without its prefix.
    """
    return _Reader(names, limits, literal).query(root)


def is_marked(element: Element, flag: str) -> bool:
    return _said(element, flag).lower() == "true"


def _said(element: Element, name: str) -> str:
    return element.attributes.get(name, "").strip()


class _Reader:
    def __init__(self, names: RepositoryNames, limits: QueryLimits, literal: Sequence[Element]) -> None:
        self._names = names
        self._literal = frozenset(map(id, literal))
        self._limits = limits
        self._clauses = 0
        self._expressions: dict[str, Callable[[Element, int], Expression | None]] = {
            "expression-set": self._expression_set,
            "fulltext": self._fulltext,
            "property": self._property,
            "property-list": self._property_list,
            "property-range": self._property_range,
            "relative-date": self._relative_date,
        }

    def query(self, root: Element) -> Query:
        self._check_namespace(root)
        if root.name != "search":
            _bad(root, f"A query's root element is 'search', not {root.name!r}")
        self._check_attributes(root, ROOT_FLAGS, {ROOT_NUMBER})
        parts = self._parts(root, "query", *LISTS, "sorts", "locations", "expression-set", "facet-definitions")
        types = parts.get("types")
        condition = parts.get("expression-set")
        self._list(parts.get("collections"), "collections")
        return Query(
            types=self._types(types) if types else (),
            condition=self._expression(condition, 1) if condition else None,
            types_place=types.place if types else "",
            columns=tuple(neutral_property(name, self._names) for name in self._list(parts.get("columns"), "columns")),
            sorts=tuple(map(self._sort, self._children(parts.get("sorts"), "sort"))),
            locations=tuple(
                map(self._location, self._children(parts.get("locations"), "id-location", "path-location"))
            ),
            repositories=tuple(self._list(parts.get("repositories"), "repositories")),
            facets=self._facets(parts.get("facet-definitions")),
            facet_hits=self._facet_hits(root),
            include_hidden=is_marked(root, "include-hidden-objects"),
            all_versions=is_marked(root, "all-versions"),
        )

    def _parts(self, element: Element, kind: str, *names: str) -> dict[str, Element]:
        self._no_text(element)
        parts: dict[str, Element] = {}
        for child in element.children:
            self._check_namespace(child)
            if child.name not in names:
                _bad(child, f"A {kind} has no element {child.name!r}")
            if child.name in parts:
                _bad(child, f"The {kind} has more than one {child.name!r}")
            parts[child.name] = child
        return parts

    def _types(self, element: Element) -> tuple[str, ...]:
        try:
            return tuple(neutral_type(name, self._names) for name in self._list(element, "types"))
        except UnknownType as unknown:
            raise UnknownType(f"{unknown.sentence} ({element.place}).") from unknown

    def _facet_hits(self, root: Element) -> int | None:
        if ROOT_NUMBER not in root.attributes:
            return None
        number = self._number(root, root.attributes[ROOT_NUMBER], ROOT_NUMBER)
        return None if number < 0 else number

    def _sort(self, element: Element) -> SortCriterion:
        self._check_text(element, ("ascending", "ascii"), {"lang"})
        name = element.text.strip()
        if not name:
            _bad(element, "The sort names no property")
        return SortCriterion(
            neutral_property(name, self._names),
            ascending=element.attributes.get("ascending", "true").strip().lower() != "false",
            lang=_said(element, "lang"),
            ascii=is_marked(element, "ascii"),
            place=element.place,
        )

    def _location(self, element: Element) -> Location:
        self._check_attributes(element, ("descendent",), {"repository"})
        inner = self._only(element, element.name.removesuffix("-location"))
        self._check_text(inner)
        text = inner.text.strip()
        if not text:
            _bad(inner, f"The {element.name} names no folder")
        path, folder_id = ("", text.lower()) if inner.name == "id" else (text, "")
        repository = _said(element, "repository")
        return Location(path, folder_id, is_marked(element, "descendent"), element.place, repository)

    def _facets(self, element: Element | None) -> tuple[FacetDefinition, ...]:
        facets = tuple(self._facet(child, 1) for child in self._children(element, "facet-definition"))
        ids = [facet.id for facet in facets]
        if element is not None and len(set(ids)) != len(ids):
            _bad(element, "Two facet-definitions have the same id")
        return facets

    def _facet(self, element: Element, depth: int) -> FacetDefinition:
        if depth > _FACET_DEPTH:
            _bad(element, f"The facet-definitions are nested deeper than {_FACET_DEPTH}")
        self._count(element, 1)
        self._check_attributes(element, (), {"id", "group-by", "max-values"})
        parts = self._parts(element, "facet-definition", "attributes", "sort", "properties", "facet-definition")
        nested = parts.get("facet-definition")
        attributes = self._texts(parts["attributes"], "attribute") if "attributes" in parts else []
        facet_id = _said(element, "id") or (attributes[0] if attributes else "")
        if not facet_id:
            _bad(element, "The facet-definition has neither an 'id' nor 'attributes'")
        return FacetDefinition(
            id=facet_id,
            attributes=tuple(neutral_property(name, self._names) for name in attributes or [facet_id]),
            group_by=_said(element, "group-by") or "string",
            sort=self._facet_sort(parts.get("sort")),
            properties=tuple(
                self._facet_property(child) for child in self._children(parts.get("properties"), "property")
            ),
            max_values=self._number(element, element.attributes.get("max-values", "10"), "max-values"),
            nested=None if nested is None else self._facet(nested, depth + 1),
            place=element.place,
        )

    def _facet_sort(self, element: Element | None) -> FacetSort | None:
        if element is None or not element.text.strip():
            return None
        self._check_text(element)
        return _word(element, element.text, FACET_SORTS, "A facet's sort")

    def _facet_property(self, element: Element) -> tuple[str, str]:
        self._check_text(element, (), {"name"})
        return _said(element, "name"), element.text.strip()

    def _expression(self, element: Element, depth: int) -> Expression | None:
        self._check_namespace(element)
        self._count(element, 1)
        reader = self._expressions.get(element.name)
        if reader is None:
            _bad(element, f"There is no expression {element.name!r}")
        return reader(element, depth)

    def _expression_set(self, element: Element, depth: int) -> Expression | None:
        if depth > self._limits.depth:
            _bad(element, f"The query's expression sets are nested deeper than {self._limits.depth}")
        self._check_attributes(element, EXPRESSION_FLAGS, {"operator"})
        text = _said(element, "operator") or "AND"
        operator = _word(element, text, ("AND", "OR"), "An expression-set's operator")
        self._no_text(element)
        inner = self._only(element, "expressions") if element.children else element
        self._check_attributes(inner, EXPRESSION_FLAGS, {"operator"})
        self._no_text(inner)
        expressions = tuple(
            expression for child in inner.children if (expression := self._expression(child, depth + 1)) is not None
        )
        return ExpressionSet("OR" if operator == "OR" else "AND", expressions) if expressions else None

    def _fulltext(self, element: Element, _depth: int) -> Expression:
        self._check_text(element, EXPRESSION_FLAGS)
        read = keywords.read_words if id(element) in self._literal else keywords.read
        try:
            expression = read(element.text, self._limits)
        except BadQuery as refused:
            raise BadQuery(f"{refused.sentence.rstrip('.')} ({element.place}).") from refused
        self._count(element, keywords.count_words(expression))
        if expression is not None and is_marked(element, "fuzzy"):
            expression = keywords.fuzzy(expression)
        if isinstance(expression, Both | Either) and is_marked(element, "exact-match"):
            expression = msgspec.structs.replace(expression, loose=False)
        return Fulltext(expression)

    def _property(self, element: Element, _depth: int) -> Expression:
        self._check_text(element, EXPRESSION_FLAGS, {"name", "operator"})
        text = _said(element, "operator")
        operator = _word(element, text, PROPERTY_OPERATORS, "The operator of a property")
        name, value = self._name(element), element.text.strip()
        normal = fold(value)
        exact = is_marked(element, "exact-match") or (id(element) in self._literal and patterns.has_gaps(normal))
        if operator in _OPEN_OPERATORS or (not exact and normal.startswith(("*", "?"))) or is_marked(element, "fuzzy"):
            self._count(element, patterns.OPEN_CLAUSES)
        value = neutral_value(name, value, self._names)
        return Property(name, operator, value, exact, is_marked(element, "fuzzy"), element.place)

    def _property_list(self, element: Element, _depth: int) -> Expression:
        self._check_attributes(element, EXPRESSION_FLAGS, {"name", "operator"})
        text = _said(element, "operator") or "IN"
        operator = _word(element, text, ("IN", "NOT_IN"), "The operator of a property-list")
        name = self._name(element)
        inner = self._only(element, "values")
        self._check_attributes(inner)
        texts = self._texts(inner, "value")
        if not texts:
            _bad(inner, "A property-list needs at least one value")
        self._count(element, len(texts))
        values = tuple(neutral_value(name, text, self._names) for text in texts)
        return PropertyList(name, "IN" if operator == "IN" else "NOT_IN", values, element.place)

    def _property_range(self, element: Element, _depth: int) -> Expression:
        self._check_attributes(element, EXPRESSION_FLAGS, {"name", "operator"})
        text = _said(element, "operator") or "BETWEEN"
        _word(element, text, ("BETWEEN",), "The operator of a property-range")
        self._no_text(element)
        name = self._name(element)
        ends: dict[str, str] = {}
        for child in element.children:
            self._check_namespace(child)
            if child.name not in ("from", "to") or child.name in ends:
                _bad(child, f"A property-range has one 'from' and one 'to', not this {child.name!r}")
            self._check_text(child)
            ends[child.name] = neutral_value(name, child.text.strip(), self._names)
        for end in ("from", "to"):
            if not ends.get(end):
                _bad(element, f"The property-range has no {end!r} value")
        return PropertyRange(name, "BETWEEN", ends["from"], ends["to"], element.place)

    def _relative_date(self, element: Element, _depth: int) -> Expression:
        self._check_text(element, EXPRESSION_FLAGS, {"name", "operator", "time-unit"})
        operator = _word(element, _said(element, "operator"), AGE_OPERATORS, "The operator of a relative-date")
        unit = _word(element, _said(element, "time-unit"), TIME_UNITS, "The time-unit of a relative-date")
        amount = self._number(element, element.text, "relative-date")
        return RelativeDate(self._name(element), operator, amount, unit, element.place)

    def _name(self, element: Element) -> str:
        name = _said(element, "name")
        if not name:
            _bad(element, f"The {element.name} has no attribute 'name'")
        return neutral_property(name, self._names)

    def _number(self, element: Element, text: str, what: str) -> int:
        digits = text.strip().removeprefix("-").removeprefix("+")
        if not digits.isascii() or not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
            _bad(element, f"The {what!r} is a whole number, not {text.strip()[:40]!r}")
        return int(text.strip())

    def _list(self, element: Element | None, kind: str) -> list[str]:
        if element is None:
            return []
        self._check_attributes(element)
        texts = self._texts(element, LISTS[kind])
        for child, text in zip(element.children, texts, strict=True):
            if not text:
                _bad(child, f"The {child.name} has no name")
        self._count(element, len(texts))
        return texts

    def _children(self, element: Element | None, *names: str) -> list[Element]:
        if element is None:
            return []
        self._check_attributes(element)
        self._count(element, len(self._named(element, *names)))
        return element.children

    def _named(self, element: Element, *names: str) -> list[Element]:
        self._no_text(element)
        for child in element.children:
            self._check_namespace(child)
            if child.name not in names:
                _bad(child, f"The {element.name} element has no element {child.name!r}")
        return element.children

    def _check_namespace(self, element: Element) -> None:
        if element.namespace != self._names.vocab_namespace:
            _bad(
                element,
                f"The element {element.name!r} is in the namespace {element.namespace[:200]!r}; "
                f"a query's elements are in {self._names.vocab_namespace!r}",
            )

    def _check_attributes(self, element: Element, flags: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        for name, value in element.attributes.items():
            if name in others or name.startswith(_SCHEMA_INSTANCE):
                continue
            if name not in flags:
                _bad(element, f"The element {element.name!r} has no attribute {name!r}")
            if value.strip().lower() not in ("true", "false"):
                _bad(element, f"The attribute {name!r} is true or false, not {value[:40]!r}")

    def _check_text(self, element: Element, flags: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        self._check_attributes(element, flags, others)
        if element.children:
            _bad(element.children[0], f"The {element.name} holds text, no element {element.children[0].name!r}")

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
        for child in self._named(element, name):
            self._check_text(child)
        return [child.text.strip() for child in element.children]

    def _no_text(self, element: Element) -> None:
        if element.text.strip():
            _bad(element, f"The element {element.name!r} holds elements, not the text {element.text.strip()[:40]!r}")

    def _count(self, element: Element, clauses: int) -> None:
        self._clauses += clauses
        if self._clauses > self._limits.clauses:
            _bad(element, f"The query has more than {self._limits.clauses} expressions, values and keywords")


def _word(element: Element, text: str, words: tuple[Word, ...], what: str) -> Word:
    upper_case = text.strip().upper()
    for word in words:
        if word == upper_case:
            return word
    word_list = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
    raise BadQuery(
        f"{what} is {word_list}, not {text.strip()[:40]!r} ({element.place})."
        if upper_case
        else f"{what} is missing: it is {word_list} ({element.place})."
    )


def _bad(element: Element, what: str) -> NoReturn:
    raise BadQuery(f"{what} ({element.place}).")
