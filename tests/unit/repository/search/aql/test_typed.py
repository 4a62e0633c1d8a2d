"""What a person means who types a question, in the language of keywords; docs/aql.md, "As people type"."""

import pytest

from muniment.repository.search.aql import keywords, typed
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.search.aql.typed import Translation, TypedField


def translate(text: str) -> Translation:
    """Translate a question in which every value but "unreadable" can be read."""
    return typed.translate(text, lambda field: field.value != "unreadable")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("command not found", "command 'not' found"),
        ("to be or not to be", "to be 'or' 'not' to be"),
        ("Supply And Demand", "Supply 'And' Demand"),
        ("COMMAND NOT FOUND", "COMMAND 'NOT' FOUND"),
        ("SUPPLY AND DEMAND 2024", "SUPPLY 'AND' DEMAND 2024"),
        ("pump OR valve", "pump OR valve"),
        ("pump AND NOT valve", "pump AND NOT valve"),
        ("2024 OR 2025", "2024 OR 2025"),
        ("報告 NOT 書", "報告 NOT 書"),
        ("smith -resume", "smith not resume"),
        ("!gasket impeller", "impeller not gasket"),
        ('smith -"curriculum vitae" jones', 'smith jones not "curriculum vitae"'),
        ("smith -(cv OR resume)", "smith not ( cv OR resume )"),
        ("a OR b -c", "( a OR b ) not c"),
        ("-c OR b", "not c OR b"),
        ("a AND -b", "a AND not b"),
        ("(a -b) OR c", "( a not b ) OR c"),
        ("a ) OR b -c", "( a OR b ) not c"),
        ("-and x", "x not 'and'"),
        ("git --amend - well-known a!", "git --amend - well-known a!"),
        ("at 12:30 http://x.org/a?b=c std::vector C:\\dir", "at 12:30 http://x.org/a?b=c std::vector C:\\dir"),
        ("title: pump", "title: pump"),
        ("*", ""),
        ("**", ""),
        ("*:*", ""),
        ("...", "..."),
        ("party 🎉", "party 🎉"),
        ("🎉", "🎉"),
        ("", ""),
    ],
)
def test_a_question_is_translated(question: str, text: str) -> None:
    assert translate(question).text == text
    assert translate(question)._replace(text="", left_out=()) == Translation("")


@pytest.mark.parametrize(
    ("question", "text", "fields"),
    [
        ("pump type:invoice", "pump", [("type", "invoice", False)]),
        ('Title:"annual report"', "", [("title", "annual report", False)]),
        ("in:/A/B, pump before:2024.", "pump", [("in", "/A/B", False), ("before", "2024", False)]),
        ("-type:a pump", "pump", [("type", "a", True)]),
        ("pump AND NOT type:a", "pump", [("type", "a", True)]),
        ("type:a AND pump AND owner:b AND valve", "pump AND valve", [("type", "a", False), ("owner", "b", False)]),
        ("* name:x*", "", [("name", "x*", False)]),
        ("a OR b type:c", "a OR b", [("type", "c", False)]),
    ],
)
def test_a_field_narrows_the_whole_question(question: str, text: str, fields: list[tuple[str, str, bool]]) -> None:
    found = translate(question)
    assert found.text == text
    assert [(field.name, field.value, field.unwanted) for field in found.fields] == fields
    assert not found.words


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("filetype:csv pump", "filetype:csv pump", ["filetype:csv"]),
        ('foo:"bar baz"', 'foo "bar baz"', ['foo:"bar baz"']),
        ('-foo:"bar baz" x', 'x not ( foo "bar baz" )', ['-foo:"bar baz"']),
        ("type:unreadable", "type:unreadable", ["type:unreadable"]),
        ("title:(a b)", "title ( a b )", ["title:("]),
        ('title:""', 'title ""', ['title:""']),
    ],
)
def test_what_cannot_be_read_as_a_field_is_words(question: str, text: str, words: list[str]) -> None:
    found = translate(question)
    assert (found.text, [field.written for field in found.words], found.fields) == (text, words, ())


@pytest.mark.parametrize("question", ["type:a OR type:b", "pump OR type:a", "(type:a pump)", "type:a OR pump"])
def test_a_field_beside_an_or_or_in_parentheses_narrows_nothing(question: str) -> None:
    found = translate(question)
    assert found.fields == ()
    assert {field.written for field in found.misplaced} <= {"type:a", "type:b"}
    assert found.misplaced


def test_what_is_left_out_is_offered_as_a_word() -> None:
    (left_out,) = translate("ls -la /tmp").left_out
    assert left_out == ("la", "ls la /tmp")
    group, phrase = translate('x -(a b) -"c d"').left_out
    assert group == ("(a b)", 'x (a b) -"c d"')
    assert phrase == ('"c d"', 'x -(a b) "c d"')


def test_without_a_reader_of_values_fields_are_words() -> None:
    assert typed.translate("type:a pump").words == (TypedField("type", "a", False, "type:a"),)
    assert typed.has_fields("pump Type:a")
    assert not typed.has_fields("http://type/ 12:30 xtype:a")


def test_a_term_that_was_an_operator_is_a_word_of_the_language() -> None:
    read = keywords.read("command 'not' found", QueryLimits())
    assert read == keywords.read("command not, found", QueryLimits())
