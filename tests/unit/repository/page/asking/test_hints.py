"""What the page says of how a question was read."""

import pytest

from muniment.repository.api.endpoints.search.typed_questions import Understood
from muniment.repository.page.asking import hints
from muniment.repository.page.asking.hints import Hint
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql import typed
from muniment.repository.store.change_log.changes import Position

_FIELDS = "name:, title:, type:, format:, owner:, in:, before:, after:"


def hints_of(question: str, *, left_out: int = 0) -> list[Hint]:
    """List the hints for a question in which no field can be read but types."""
    translation = typed.translate(question, lambda field: field.name == "type")
    page = HitPage((), 1, 20, 0, has_more=False, position=Position(0, 1), relaxed=True, left_out=left_out)
    return hints.hints_of(Understood(translation, [], [], {}), question, page)


@pytest.mark.parametrize(
    ("question", "told", "offered"),
    [
        ("from:john.smith a", "There is no field from:", "owner:john.smith a"),
        ("a Author:x", "There is no field author:", "a owner:x"),
        ("site:/a b", "There is no field site:", "in:/a b"),
        ("titel:a", f"The fields are {_FIELDS}.", ""),
        ("title:(a b)", "title: needs a word or a phrase", ""),
        ("type:a OR b", "“type:a” narrows a whole question", ""),
        ("ls -la", "Without what has “la”.", "ls la"),
        ('"annual a"~3', "A number after a phrase says nothing here", '"annual a"'),
        ("recepit~ a", "~ says nothing here", "recepit a"),
        ("recepit~0.8", "~ says nothing here", "recepit"),
        ("pump^4 a", "^ says nothing here", "pump a"),
        ('"red pump"^4', "^ says nothing here", '"red pump"'),
        ("+pump a", "+ says nothing here", '"pump" a'),
        ("pump || a", "OR stands between alternatives", "pump OR a"),
        ("pump && a", "&& says nothing here", "pump AND a"),
        ("pump NEAR/5 a", "There are no distances here", "pump a"),
        ("pump NEAR a", "There are no distances here", "pump a"),
        ("[1 TO 5] a", "There are no ranges here", "1 5 a"),
        ("%pump% a", "% says nothing here", "pump* a"),
    ],
)
def test_what_is_read_otherwise_than_it_may_be_meant_is_told(question: str, told: str, offered: str) -> None:
    (hint,) = hints_of(question)
    assert told in hint.sentence
    assert hint.question == offered


@pytest.mark.parametrize(
    "question",
    ["a+b C++ x^2", "~/a b~c", "50% off", "http://x.org 12:30", "type:a b", "a|b", "N W", "a - b"],
)
def test_a_question_that_is_read_as_it_stands_gets_no_hint(question: str) -> None:
    assert hints_of(question) == []


def test_words_that_are_left_out_are_counted() -> None:
    assert hints_of("a b", left_out=2)[-1].sentence.endswith("2 more are left out.")
    assert hints_of("a b", left_out=1)[-1].sentence.endswith("one more is left out.")
