"""Whatever values a caller puts into a template, the query keeps its form, and the values are all that differs."""

import json
from collections.abc import Collection
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames
from muniment.repository.search.answering.kept import search_templates
from muniment.repository.search.answering.kept.search_templates import SEVERAL, SINGLE, VariableValue
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import (
    Both,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    QueryLimits,
    RelativeDate,
    Term,
)
from muniment.repository.store.objects.properties.properties import PropertyDefinition

NAMES, LIMITS = RepositoryNames(), QueryLimits()

HOSTILE = st.sampled_from(
    [
        'a" OR b',
        "NOT x",
        "(a) AND (b",
        "pum*",
        "?",
        "*",
        "</fulltext></expressions>",
        "&lt;x/&gt;",
        '"}, {"expression-type": "fulltext", "value": "b',
        "]]>",
        "\uff0a\uff1f",
    ]
)
VALUES = HOSTILE | st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)


def expressions() -> st.SearchStrategy[dict[str, Any]]:
    is_open = st.booleans()
    leaves = st.one_of(
        st.builds(
            lambda template, fuzzy: {"expression-type": "fulltext", "value": "x", "template": template, "fuzzy": fuzzy},
            is_open,
            st.booleans(),
        ),
        st.builds(
            lambda template, operator: {
                "expression-type": "property",
                "name": "title",
                "operator": operator,
                "value": "x",
                "template": template,
            },
            is_open,
            st.sampled_from(["EQUAL", "NOT_EQUAL", "CONTAINS", "BEGINS_WITH", "GREATER_THAN"]),
        ),
        st.builds(
            lambda template: {
                "expression-type": "property-list",
                "name": "title",
                "values": ["x", "y"],
                "template": template,
            },
            is_open,
        ),
        st.builds(
            lambda template: {
                "expression-type": "property-range",
                "name": "title",
                "from": "a",
                "to": "b",
                "template": template,
            },
            is_open,
        ),
    )
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            lambda operator, parts: {"expression-type": "expression-set", "operator": operator, "expressions": parts},
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=8,
    )


def roots() -> st.SearchStrategy[Element]:
    """Documents of one to eight expressions, as elements that came from JSON or from XML."""
    written = st.lists(expressions(), min_size=1, max_size=3).map(
        lambda parts: json.dumps({"expression-set": {"expressions": parts}}).encode()
    )
    of_json = written.map(lambda body: as_json.elements(body, NAMES, LIMITS))
    return of_json | of_json.map(lambda root: as_xml.elements(as_xml.write(root).encode(), LIMITS))


def form(expression: Expression) -> object:
    """An expression without its values."""
    match expression:
        case ExpressionSet():
            return (expression.operator, tuple(map(form, expression.expressions)))
        case Fulltext():
            return "fulltext"
        case Property():
            return (expression.name, expression.operator, expression.fuzzy)
        case PropertyList() | PropertyRange() | RelativeDate():
            return (type(expression), expression.name, expression.operator)


def leaves(expression: Expression | None) -> list[Expression]:
    if isinstance(expression, ExpressionSet):
        return [leaf for part in expression.expressions for leaf in leaves(part)]
    return [] if expression is None else [expression]


def words(keywords: Keywords | None) -> list[str]:
    """The words of keywords that are words alone: nothing else may come of a value."""
    parts = keywords.parts if isinstance(keywords, Both) else () if keywords is None else (keywords,)
    assert all(isinstance(part, Term) for part in parts)
    return [part.text for part in parts if isinstance(part, Term)]


@given(roots(), st.data())
def test_values_change_nothing_but_values(root: Element, data: st.DataObject) -> None:
    original = search_templates.fill(root, NAMES, LIMITS, [])
    variables = search_templates.variables(root, NAMES, _Catalogue())
    chosen: dict[str, list[str]] = {}
    given_values = []
    for variable in variables:
        if data.draw(st.booleans()):
            most = {"property-list": data.draw(st.integers(1, 4)), "property-range": 2}
            count = most.get(variable.expression_type, 1)
            texts = [data.draw(VALUES.filter(str.strip)) for _ in range(count)]
            chosen[variable.id] = texts
            given_values.append(VariableValue(variable.id, _named(variable.expression_type, texts)))
    query = search_templates.fill(root, NAMES, LIMITS, given_values)
    assert query.condition is not None
    assert original.condition is not None
    assert form(query.condition) == form(original.condition)
    assert msgspec.structs.replace(query, condition=None) == msgspec.structs.replace(original, condition=None)
    _check_leaves(root, query, original, chosen)


def _check_leaves(root: Element, query: Query, original: Query, chosen: dict[str, list[str]]) -> None:
    ids = iter(f"v{number}" for number in range(1, 100))
    open_places = {element.place for element in search_templates._open(root)}
    now_and_before = zip(leaves(query.condition), leaves(original.condition), strict=True)
    for element, (now, before) in zip(_all_leaves(root), now_and_before, strict=True):
        texts = chosen.get(next(ids)) if element.place in open_places else None
        if texts is None:
            assert now == before
            continue
        stripped = tuple(text.strip() for text in texts)
        match now:
            case Fulltext():
                for word in words(now.keywords):
                    assert word in texts[0]
            case Property():
                assert now.value == stripped[0]
            case PropertyList():
                assert now.values == stripped
            case PropertyRange():
                assert (now.low, now.high) == stripped


def _all_leaves(element: Element) -> list[Element]:
    found = []
    for child in element.children:
        if child.name in ("expression-set", "expressions"):
            found += _all_leaves(child)
        else:
            found.append(child)
    return found


def _named(expression_type: str, texts: list[str]) -> dict[str, list[str]]:
    if expression_type == "property-range":
        return {"from": texts[:1], "to": texts[1:]}
    return {SEVERAL if expression_type == "property-list" else SINGLE: texts}


class _Catalogue:
    """The types of a repository in which every property is a text."""

    def searchable(self, name: str) -> PropertyDefinition:
        return PropertyDefinition(name, "string")

    def with_subtypes(self, names: Collection[str]) -> Collection[str]:
        return names
