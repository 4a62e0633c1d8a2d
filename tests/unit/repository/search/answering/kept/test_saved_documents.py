"""Documents of saved searches: received in either spelling, shown in either."""

import json

import pytest

from muniment.ground import xml
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.aql.tree import ExpressionSet, QueryLimits
from muniment.repository.store.saved.saved_searches import SavedDocument, WrittenNames

NAMES, LIMITS = RepositoryNames(), QueryLimits()
XML = b'<search xmlns="urn:muniment:vocab"><expression-set><expressions><fulltext>a &amp; b</fulltext></expressions>'
XML += b"</expression-set></search>"


def test_the_first_character_tells_the_spelling() -> None:
    assert saved_documents.from_body(b"  <search/>", NAMES).spelling == "xml"
    assert saved_documents.from_body(b" {}", NAMES).spelling == "json"


def test_a_document_is_shown_as_it_came_and_converted() -> None:
    document = saved_documents.from_body(XML, NAMES)
    assert saved_documents.document_text(document, "xml", LIMITS) == XML.decode()
    converted = saved_documents.document_text(document, "json", LIMITS)
    (expression,) = json.loads(converted)["expression-set"]["expressions"]
    assert expression["value"] == "a & b"
    back = saved_documents.from_body(converted.encode(), NAMES)
    assert saved_documents.query(back, LIMITS) == saved_documents.query(document, LIMITS)


def test_an_element_in_another_namespace_is_not_taken_for_ours() -> None:
    """Writing it again would put it into our namespace."""
    foreign = XML.replace(b"<fulltext>", b'<fulltext xmlns="urn:other">')
    with pytest.raises(BadQuery):
        saved_documents.nested(xml.parse(foreign), NAMES, LIMITS)
    assert saved_documents.nested(xml.parse(XML), NAMES, LIMITS).body == XML


def test_it_is_read_with_the_names_that_it_was_written_in() -> None:
    former = WrittenNames("urn:former", "former_", "f_")
    document = SavedDocument("json", former, b'{"types": ["former_document"]}')
    assert saved_documents.query(document, LIMITS).types == ("document",)
    older = SavedDocument("xml", former, XML.replace(b"urn:muniment:vocab", b"urn:former"))
    assert isinstance(saved_documents.query(older, LIMITS).condition, ExpressionSet)


def test_another_format_is_refused_and_shown() -> None:
    document = SavedDocument("json", WrittenNames("urn:x", "", "r_"), b'{"types": []}', format=7)
    with pytest.raises(BadQuery, match="format 7"):
        saved_documents.elements(document, LIMITS)
    assert saved_documents.document_text(document, "xml", LIMITS) == '{"types": []}'


def test_a_document_that_cannot_be_read_any_more_is_shown_as_it_came() -> None:
    deep = b'{"expression-set": {"expressions": [{"expression-type": "expression-set", "expressions": []}]}}'
    document = saved_documents.from_body(deep, NAMES)
    assert saved_documents.document_text(document, "xml", QueryLimits(depth=0)) == deep.decode()
