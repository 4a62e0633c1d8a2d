"""Beside given 4.6: the same feed by GET, for the simple keyword language."""

import pytest

from tests.scenes import Site, fulltext


@pytest.fixture
def words(site: Site) -> dict[str, str]:
    """Three documents of made-up words: `both` holds two, `one` and `two` one each; and the words themselves."""
    one, two = site.world.word(), site.world.word()
    made = {
        "both": site.create("a", f"{one} {two} together".encode()),
        "one": site.create("b", f"{one} alone".encode()),
        "two": site.create("c", f"{two} alone".encode()),
        "a": one,
        "b": two,
    }
    site.world.catch_up()
    return made


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("{a}", {"both", "one"}),
        ("{a} {b}", {"both"}),
        ("{a} AND {b}", {"both"}),
        ("{a} and {b}", {"both"}),
        ("{a} OR {b}", {"both", "one", "two"}),
        ("{a} NOT {b}", {"one"}),
        ("({a} OR {b}) NOT together", {"one", "two"}),
        ("{a} {b} OR {b} NOT {a}", {"both", "two"}),
        ('"{a} {b}"', {"both"}),
        ('"{b} {a}"', set()),
        ("{a:.6}*", {"both", "one"}),
        ("{A}", {"both", "one"}),
        ("{a}, ({b}!)", {"both"}),
    ],
)
def test_4_6_the_keyword_language_is_the_same_by_get_and_in_fulltext(
    site: Site, words: dict[str, str], q: str, expected: set[str]
) -> None:
    asked = q.format(a=words["a"], b=words["b"], A=words["a"].upper())
    wanted = {words[name] for name in expected}
    by_get = {found for found in site.keywords(asked).ids if found in words.values()}
    by_post = {found for found in site.search(fulltext(asked)).ids if found in words.values()}
    assert by_get == wanted
    assert by_post == wanted


def test_4_6_words_match_in_any_grammatical_form_and_phrases_exactly(site: Site) -> None:
    word = site.world.word()
    made = site.create("stemmed", f"{word} valves leaking".encode())
    site.world.catch_up()
    assert site.keywords(f"{word} valve leaks").ids == [made]
    assert site.keywords(f'{word} "valve"').ids == []


def test_4_6_the_get_takes_total_pages_and_an_object_type(site: Site) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}") for number in range(3)}
    cabinet = site.cabinet(word)
    site.world.catch_up()
    everything = site.keywords(word, include_total="true")
    assert (everything.total, set(everything.ids)) == (4, made | {cabinet})
    documents = site.keywords(word, include_total="true", object_type=site.type("document"))
    assert (documents.total, set(documents.ids)) == (3, made)
    folders = site.keywords(word, object_type=site.type("folder"))
    assert folders.ids == [cabinet]
    pages = [site.keywords(word, items_per_page="3", page=page) for page in ("1", "2")]
    assert {found for page in pages for found in page.ids} == made | {cabinet}
    assert pages[0].link("next") is not None
    assert pages[1].link("next") is None


def test_4_6_next_of_a_get_leads_on(site: Site) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}") for number in range(3)}
    site.world.catch_up()
    first = site.keywords(word, items_per_page="2")
    address = first.link("next")
    assert address is not None
    second = site.feed(address)
    assert set(first.ids) | set(second.ids) == made
