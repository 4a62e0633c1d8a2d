"""Variables of a template: which there are, and what their values become."""

import json
from typing import Any

import pytest

from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering.kept import search_templates
from muniment.repository.search.answering.kept.search_templates import SEVERAL, SINGLE, VariableValue
from muniment.repository.search.aql.spelling import as_json, as_xml, documents
from muniment.repository.search.aql.tree import Both, ExpressionSet, Fulltext, Property, PropertyList, QueryLimits, Term

NAMES, LIMITS = RepositoryNames(), QueryLimits()


def elements(*expressions: dict[str, Any]) -> Element:
    document = {"expression-set": {"expressions": list(expressions)}}
    return as_json.elements(json.dumps(document).encode(), NAMES, LIMITS)


def fulltext(value: str, **more: Any) -> dict[str, Any]:
    return {"expression-type": "fulltext", "value": value, "template": True, **more}


def filled(root: Element, *values: VariableValue) -> tuple[Any, ...]:
    condition = search_templates.fill(root, NAMES, LIMITS, values).condition
    assert isinstance(condition, ExpressionSet)
    return condition.expressions


def one(text: str, variable_id: str = "v1") -> VariableValue:
    return VariableValue(variable_id, {SINGLE: [text]})


def test_words_of_a_value_are_words() -> None:
    root = elements(fulltext("x"), fulltext("a OR b"))
    words = ("pump", "OR", "valve*", "NOT", "(x")
    assert filled(root, one(" ".join(words))) == (
        Fulltext(Both(tuple(Term(word.strip("(")) for word in words), loose=True)),
        *filled(root)[1:],
    )
    assert filled(root, one('"..."'))[0] == Fulltext(None)
    assert filled(root, one("one"))[0] == Fulltext(Term("one"))


def test_a_fuzzy_variable_stays_fuzzy() -> None:
    (expression,) = filled(elements(fulltext("x", fuzzy=True)), one("pump"))
    assert expression == Fulltext(Term("pump", fuzzy=True))


def test_a_wildcard_in_a_value_is_a_character() -> None:
    expression = {"expression-type": "property", "name": "title", "operator": "EQUAL", "value": "a*", "template": True}
    root = elements(expression)
    (written,) = filled(root)
    assert isinstance(written, Property)
    assert not written.exact
    for text in ("*", "a?c", "\uff0a"):
        (given,) = filled(root, one(text))
        assert (given.value, given.exact) == (text, True)
    assert not filled(root, one("plain"))[0].exact


def test_a_list_stays_a_list() -> None:
    expression = {"expression-type": "property-list", "name": "title", "values": ["x"], "template": True}
    (given,) = filled(elements(expression), VariableValue("v1", {SEVERAL: ["a, b", "</value><value>c"]}))
    assert isinstance(given, PropertyList)
    assert given.values == ("a, b", "</value><value>c")


def test_many_words_are_too_many() -> None:
    with pytest.raises(BadQuery):
        filled(elements(fulltext("x")), one("word " * 2000))


def test_the_document_is_not_changed_by_values() -> None:
    root = elements(fulltext("stays"), fulltext("too"))
    before = as_xml.write(root)
    filled(root, one("other"), one("more", "v2"))
    assert as_xml.write(root) == before
    assert documents.read(root, NAMES, LIMITS) == search_templates.fill(root, NAMES, LIMITS, [])


def test_a_flag_of_the_words_is_none_of_a_document() -> None:
    """Nobody can ask from outside that a text is read in another way."""
    for name in ("literal", "plain"):
        with pytest.raises(BadQuery):
            documents.read(elements(fulltext("x", **{name: True})), NAMES, LIMITS)
