"""ours 6: a question that is typed; docs/aql.md, "When not all words are found"; docs/decisions/0092."""

from contextlib import closing
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.scenes import Feed, Loop, Site, fulltext


class Shelf(NamedTuple):
    """Three made-up words, and documents: `all` holds each of them, `two` the first two, `one` only the third."""

    site: Site
    words: tuple[str, str, str]
    every: str
    two: str
    one: str

    @property
    def question(self) -> str:
        return " ".join(self.words)

    def ask(self, q: str, **parameters: str) -> Feed:
        """Type a question, as a person does."""
        spelled = {name.replace("_", "-"): value for name, value in parameters.items()}
        return self.site.feed(self.site.search_address, {"q": q, "words": "auto"} | spelled)

    def follow(self, feed: Feed, rel: str) -> Feed:
        """Follow a link of a feed."""
        address = feed.link(rel)
        assert address is not None, feed.answer.text
        return self.site.feed(address)

    @property
    def all_words(self) -> str:
        return f"{self.site.names.own_linkrel_base}/all-words"


@pytest.fixture
def shelf(site: Site) -> Shelf:
    a, b, c = site.world.word(), site.world.word(), site.world.word()
    # Beside the one with all words, the others have theirs in a shorter text, and more often.
    two = site.create("two", f"{a} {b} {a} {b}".encode())
    one = site.create("one", f"{c} {c} {c} {c}".encode())
    every = site.create("every", f"{a} leads to {b}, and after a long way with many words to {c}".encode())
    site.world.catch_up()
    return Shelf(site, (a, b, c), every, two, one)


def relaxed(feed: Feed) -> bool:
    return bool(feed.answer.headers.get("Muniment-Words") == "any")


def test_ours_6_what_has_all_words_comes_first_and_then_what_has_any(shelf: Shelf) -> None:
    feed = shelf.ask(shelf.question, include_total="true")
    assert feed.ids[0] == shelf.every
    assert set(feed.ids) == {shelf.every, shelf.two, shelf.one}
    assert feed.total == 3
    assert relaxed(feed)


def test_ours_6_a_question_of_small_words_finds_what_has_the_others(shelf: Shelf) -> None:
    feed = shelf.ask(f"What is the {shelf.words[2]}, and how does it relate to {shelf.site.world.word()}?")
    assert set(feed.ids) == {shelf.every, shelf.one}


def test_ours_6_a_question_of_nothing_but_small_words_finds_any_of_them(site: Site) -> None:
    made = site.create("small", f"what where {site.world.word()}".encode())
    site.world.catch_up()
    feed = Shelf(site, ("", "", ""), "", "", "").ask("what how where", items_per_page="1000")
    assert made in feed.ids


def test_ours_6_the_link_leads_to_what_has_all_words(shelf: Shelf) -> None:
    strict = shelf.follow(shelf.ask(shelf.question), shelf.all_words)
    assert strict.ids == [shelf.every]
    assert not relaxed(strict)
    assert strict.link(shelf.all_words) is None


@pytest.mark.parametrize("how", ["all", "ALL"])
def test_ours_6_a_parameter_switches_it_off(shelf: Shelf, how: str) -> None:
    feed = shelf.ask(shelf.question, words=how)
    assert feed.ids == [shelf.every]
    assert not relaxed(feed)


def test_ours_6_a_setting_switches_it_off(shelf: Shelf, loop: Loop) -> None:
    site = shelf.site
    with closing(Site(site.world, site.kind, loop, "repository.relax_searches=false")) as strict:
        there = shelf._replace(site=strict)
        assert there.ask(shelf.question, words="").ids == [shelf.every]
        assert there.ask(shelf.question, words="auto").ids[0] == shelf.every
        assert relaxed(there.ask(shelf.question, words="auto"))


@pytest.mark.parametrize(
    "q",
    ["{a} AND {b} {c}", "{a} {b} NOT {d}", "{c} {b} {a} AND {a}", "{a}-{b} AND {c}", '{a} AND "{b}" {c}'],
)
def test_ours_6_whoever_writes_an_operator_means_it(shelf: Shelf, q: str) -> None:
    a, b, c = shelf.words
    feed = shelf.ask(q.format(a=a, b=b, c=c, d=shelf.site.world.word()))
    assert not relaxed(feed)
    assert set(feed.ids) <= {shelf.every, shelf.two}


def test_ours_6_what_is_left_out_stays_excluded(shelf: Shelf) -> None:
    a, _, c = shelf.words
    for unwanted in (f"-{a}", f"!{a}", f'-"{a} leads to"', f"-({a} OR {shelf.site.world.word()})"):
        assert shelf.ask(f"{c} {shelf.site.world.word()} {unwanted}").ids == [shelf.one], unwanted


@pytest.mark.parametrize("held", ['"{a} leads"', "{a:.7}* lea?s", '"{a}" leads*'])
def test_ours_6_a_phrase_and_a_wildcard_hold_while_the_other_words_are_relaxed(shelf: Shelf, held: str) -> None:
    a, unknown = shelf.words[0], shelf.site.world.word()
    feed = shelf.ask(f"{unknown} {held.format(a=a)} {shelf.words[2]} {shelf.site.world.word()}")
    assert feed.ids == [shelf.every]
    assert relaxed(feed)
    assert shelf.ask(f"{held.format(a=a)} {unknown}").ids == [shelf.every], "no other word is needed"
    assert shelf.ask(f'"{unknown}" {shelf.question}').ids == []


def test_ours_6_the_words_beyond_a_limit_are_told(shelf: Shelf) -> None:
    many = " ".join([shelf.words[0], *(shelf.site.world.word() for _ in range(65))])
    feed = shelf.ask(many)
    assert set(feed.ids) == {shelf.every, shelf.two}
    assert feed.answer.headers["Muniment-Words-Left-Out"] == "2"
    assert "Muniment-Words-Left-Out" not in shelf.ask(shelf.question).answer.headers


def test_ours_6_enough_hits_with_all_words_are_the_answer(shelf: Shelf) -> None:
    feed = shelf.ask(shelf.question, items_per_page="1")
    assert feed.ids == [shelf.every]
    assert not relaxed(feed)
    assert shelf.ask(shelf.question, items_per_page="2").ids[0] == shelf.every
    assert relaxed(shelf.ask(shelf.question, items_per_page="2"))


def test_ours_6_further_pages_are_relaxed_too_and_show_each_object_once(shelf: Shelf) -> None:
    first = shelf.ask(shelf.question, items_per_page="2", include_total="true")
    # Now as many objects as a page have all words; the walk goes on as it began.
    shelf.site.create("later", shelf.question.encode())
    shelf.site.world.catch_up()
    second = shelf.follow(first, "next")
    assert not set(first.ids) & set(second.ids)
    assert set(first.ids) | set(second.ids) >= {shelf.every, shelf.two, shelf.one}
    assert relaxed(second)
    assert second.link("next") is None
    by_number = shelf.ask(shelf.question, items_per_page="3", page="2", words="any")
    assert len(by_number.ids) == 1


def test_ours_6_a_page_by_its_number_is_relaxed_as_the_first_is(shelf: Shelf) -> None:
    second = shelf.ask(shelf.question, items_per_page="2", page="2")
    assert relaxed(second)
    assert len(second.ids) == 1
    assert not relaxed(shelf.ask(shelf.question, items_per_page="1", page="2"))


def test_ours_6_a_search_with_an_order_of_its_own_needs_all_words_unless_it_says_any(shelf: Shelf) -> None:
    assert shelf.ask(shelf.question, sort="object_name").ids == [shelf.every]
    assert shelf.ask(shelf.question, sort="object_name", words="any").ids == [shelf.every, shelf.one, shelf.two]


def test_ours_6_types_places_and_facet_values_hold(shelf: Shelf) -> None:
    question = shelf.question
    assert shelf.ask(question, object_type=shelf.site.type("folder")).ids == []
    assert shelf.ask(question, object_type=shelf.site.type("document")).ids[0] == shelf.every
    feed = shelf.ask(question, facet="object_name")
    assert feed.answer.text.count("<dm:facet-value-count>1<") == 3
    narrowed = shelf.ask(question, **{"facet": "object_name", "facet-value-constraints": "two"})
    assert narrowed.ids == [shelf.two]


def test_ours_6_a_post_is_relaxed_only_if_it_asks_for_it(shelf: Shelf) -> None:
    """given 4.6: results satisfy all expressions."""
    site = shelf.site
    assert site.search(fulltext(shelf.question)).ids == [shelf.every]
    for words in ("any", "auto"):
        feed = site.search(fulltext(shelf.question), words=words, items_per_page="2")
        assert feed.ids[0] == shelf.every
        assert feed.total == 3
        assert relaxed(feed)
        rest = shelf.follow(feed, "next")
        assert set(feed.ids) | set(rest.ids) == {shelf.every, shelf.two, shelf.one}
        assert shelf.follow(feed, shelf.all_words).ids == [shelf.every]
    exact = site.search(f'<fulltext exact-match="true">{shelf.question}</fulltext>', words="any")
    assert (exact.ids, relaxed(exact)) == ([shelf.every], False)


def test_ours_6_any_is_relaxed_however_much_has_all_words(shelf: Shelf) -> None:
    feed = shelf.ask(shelf.question, items_per_page="1", words="any", include_total="true")
    assert (feed.ids, feed.total) == ([shelf.every], 3)
    address = feed.link("next")
    assert address is not None
    assert parse_qs(urlsplit(address).query)["words"] == ["any"]


def test_ours_6_a_saved_search_is_relaxed_only_if_its_execution_asks_for_it(shelf: Shelf) -> None:
    site = shelf.site
    document = {"expression-set": {"expressions": [{"expression-type": "fulltext", "value": shelf.question}]}}
    body = {"properties": {"object_name": "typed"}, "query-document": document}
    made = site.http.post(f"{site.repository}/saved-searches", json=body, headers=site.bearer())
    assert made.status_code == 201, made.text
    (here,) = [link["href"] for link in made.json()["links"] if link["rel"].endswith("/search-execution")]
    assert site.feed(here).ids == [shelf.every]
    feed = site.feed(here, {"words": "any"})
    assert feed.ids[0] == shelf.every
    assert len(feed.ids) == 3
    assert shelf.follow(feed, shelf.all_words).ids == [shelf.every]


def test_ours_6_several_repositories_are_relaxed_together(shelf: Shelf) -> None:
    site = shelf.site
    address = f"/{site.names.prefix}/search"
    feed = site.feed(address, {"q": shelf.question, "words": "auto"})
    assert feed.ids[0] == shelf.every
    assert set(feed.ids) == {shelf.every, shelf.two, shelf.one}
    assert relaxed(feed)
    assert shelf.follow(feed, shelf.all_words).ids == [shelf.every]
    strict = site.feed(address, {"q": shelf.question, "words": "all"})
    assert (strict.ids, relaxed(strict)) == ([shelf.every], False)


def test_ours_6_what_a_caller_may_not_see_changes_nothing(shelf: Shelf) -> None:
    """A page's worth of hidden objects with all words does not make the search strict."""
    site, stranger = shelf.site, shelf.site.world.person()
    for object_id in (shelf.every, shelf.two, shelf.one):
        site.share(object_id)
    for number in range(3):
        site.create(f"hidden {number}", shelf.question.encode())
    site.world.catch_up()
    asked = {"q": shelf.question, "words": "auto", "items-per-page": "3"}
    feed = site.feed(site.search_address, asked, person=stranger)
    assert feed.ids[0] == shelf.every
    assert set(feed.ids) == {shelf.every, shelf.two, shelf.one}


def test_ours_6_words_that_follow_each_other_count_more(site: Site) -> None:
    """The sequential dependence model: two texts of one length with the same words."""
    a, b = site.world.word(), site.world.word()
    filler = " ".join(["filler"] * 9)
    apart = site.create("x", f"{b} {filler} {a}".encode())
    together = site.create("x", f"{a} {b} {filler}".encode())
    site.world.catch_up()
    feed = Shelf(site, (a, b, ""), "", "", "").ask(f"{a} {b} {site.world.word()}")
    assert feed.ids == [together, apart]


@pytest.mark.parametrize("words", ["some", "any,all", "true"])
def test_ours_6_another_choice_is_refused(shelf: Shelf, words: str) -> None:
    answer = shelf.site.http.get(
        shelf.site.search_address, params={"q": "a b", "words": words}, headers=shelf.site.bearer()
    )
    assert answer.status_code == 400
    assert "words" in answer.text


def test_ours_6_an_explanation_of_a_relaxed_hit_adds_up(shelf: Shelf) -> None:
    for object_id in (shelf.two, shelf.every):
        answer = shelf.site.http.get(
            f"{shelf.site.search_address}/explanation",
            params={"q": shelf.question, "words": "any", "object": object_id},
            headers=shelf.site.bearer() | {"Accept": "application/json"},
        )
        told = answer.json()
        assert told["hit"] is True, told
        weights = [match["weight"] for match in told["matches"]]
        assert sum(weights) == pytest.approx(told["score"], abs=0.001)
        assert [match.get("found-in", "together") for match in told["matches"]].count("together") == 1


def test_ours_6_a_number_holds_where_the_caller_may_see_it(site: Site) -> None:
    word, code, stranger = site.world.word(), site.world.word()[:5].upper(), site.world.person()
    texts = (f"{word} {code}-1234", f"{word} {code}-1235", f"{code}1234 alone", f"{word} alone")
    right, wrong, alone, without = (site.create("x", text.encode()) for text in texts)
    for object_id in (wrong, without):
        site.share(object_id)
    site.world.catch_up()
    shelf = Shelf(site, ("", "", ""), "", "", "")
    for q in (f"{word} {code}-1234", f"{word} {code}1234", f"{word} {code} 1234"):
        feed = shelf.ask(q)
        assert feed.ids == [right, alone], q
        assert relaxed(feed)
    for q in (f"{code}-1234", f"{code}1234", f"{code} 1234"):
        assert set(shelf.ask(q).ids) == {right, alone}, q
        assert shelf.ask(q.replace("1234", "9999")).ids == [], q
    assert wrong in shelf.ask(f"{word} {code}-9999").ids, "nothing has it, so it is a word as any other"
    feed = site.feed(site.search_address, {"q": f"{word} {code}-1234", "words": "auto"}, person=stranger)
    assert set(feed.ids) == {wrong, without}, "the stranger sees no object that has it"


@pytest.mark.parametrize(
    ("one", "other"),
    [("AC74{0}", "AC74 {1} {2}"), ("{0}", "+{1}-{2}"), ("{3}mail", "{3}-mail"), ("قَلَم{3}", "قلم{3}")],
)
def test_a_typed_word_or_number_in_either_spelling_gives_the_same_hits_in_the_same_order(
    site: Site, one: str, other: str
) -> None:
    digits = str(int(site.world.word().encode().hex(), 16))[:16]
    parts = (digits, digits[:8], digits[8:], site.world.word())
    one, other = one.format(*parts), other.format(*parts)
    another = f"{other}7" if other[-1].isdigit() else f"{other}z"
    ids = [site.create(f"document {at}", text.encode()) for at, text in enumerate((one, other, another, digits[:8]))]
    site.world.catch_up()

    def asked(q: str) -> list[str]:
        return [str(found) for found in site.feed(site.search_address, {"q": q, "words": "auto"}).ids]

    assert sorted(asked(one)) == sorted(ids[:2])
    assert asked(other) == asked(one)
