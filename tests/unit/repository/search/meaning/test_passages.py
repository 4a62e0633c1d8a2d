"""Texts are cut into passages of a length that the model reads whole; the digest covers all that is read."""

from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.search.meaning.passages import MOST, digest, passages


def test_a_short_text_is_one_passage_after_its_heading() -> None:
    assert passages("The pump", "is checked\n  every day.") == ["The pump is checked every day."]


def test_an_object_without_words_has_no_passage() -> None:
    assert passages("", " \n\t") == []


def test_an_object_without_text_is_never_near_by_its_heading_alone() -> None:
    assert passages("Pumps and valves", " \n\t") == []
    assert digest("Pumps and valves", "") == digest("Kittens", "\n")


def test_a_long_text_is_cut_between_words_and_only_its_beginning_counts() -> None:
    words = [f"word{number}" for number in range(10_000)]
    cut = passages("", " ".join(words))
    assert len(cut) == MOST
    assert " ".join(cut).split() == words[: sum(len(each.split()) for each in cut)]
    assert max(len(each) for each in cut) <= 1400


def test_a_word_without_an_end_is_cut_too() -> None:
    assert [len(each) for each in passages("", "語" * 3000)] == [1400, 1400, 200]


def test_the_last_passage_is_as_long_as_the_others() -> None:
    words = [f"word{number:03}" for number in range(200)]
    first, last = passages("", " ".join(words))
    assert first.split()[0] == words[0]
    assert last.split()[-1] == words[-1]
    assert len(last.split()) == len(first.split())


def test_a_text_that_begins_with_its_heading_is_read_as_it_is() -> None:
    assert passages("The pump", "The pump is red.") == ["The pump is red."]
    assert passages("The pump", "The pumpkin is red.") == ["The pump The pumpkin is red."]


@given(st.text(), st.text())
def test_passages_hold_every_word_and_are_never_too_long(heading: str, text: str) -> None:
    cut = passages(heading, text)
    assert all(0 < len(each) <= 1400 and len(each.split()) <= 180 for each in cut)
    assert {word for each in cut for word in each.split()} == (
        {*heading.split(), *text.split()} if text.split() else set()
    )


def test_the_digest_changes_with_heading_and_text_but_not_with_what_is_not_read() -> None:
    long = "a " * 20_000
    assert digest("a", "b") != digest("b", "a")
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("", long) == digest("", long + "b")
