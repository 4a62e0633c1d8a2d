"""A search by meaning finds what holds none of its words, as far as its caller may read it. docs/aql.md, By meaning."""

import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from muniment.repository.search.answering import results
from muniment.repository.search.answering.explaining import explanation
from muniment.repository.search.answering.inquiry import SearchQuestion
from muniment.repository.search.answering.results import HitPage
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.tree import Fulltext, Query, QueryLimits, SortCriterion
from muniment.repository.search.meaning import embeddings
from muniment.repository.search.meaning.embedder import FOLLOWER, Embedder
from muniment.repository.search.meaning.passages import MOST
from muniment.repository.search.meaning.process import NotEmbedded
from muniment.repository.store.change_log import followers
from muniment.repository.store.change_log.followers import Retention
from muniment.repository.store.extraction import queue
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.clock import Clock
from tests.meanings import ToyEmbedding, meaning
from tests.shelf import ADMIN, JON, MARTA, Shelf

pytestmark = pytest.mark.campaign_on("postgresql")

BY_NAME = Query(
    condition=Fulltext(keywords.read("car", QueryLimits())), sorts=(SortCriterion("object_name", ascending=True),)
)
FILLER = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def embedding() -> ToyEmbedding:
    return ToyEmbedding()


@pytest.fixture
def follow(shelf: Shelf, embedding: ToyEmbedding) -> Callable[[], None]:
    """Let the embedder and the index agent do all there is to do."""
    embedder = Embedder(shelf.database, embedding, Clock())
    shelf.memory.meaning = meaning()

    def work() -> None:
        while embedder.advance():
            pass
        shelf.catch_up()

    return work


def ask(shelf: Shelf, caller: Principals, text: str, query: Query | None = None, **asked: Any) -> HitPage:
    query = query or Query(condition=Fulltext(keywords.read(text, QueryLimits())))
    question = SearchQuestion(query, 1, 100, include_total=True, **({"words": "auto"} | asked))
    with shelf.database.read() as cx:
        return results.search(shelf.inquiry(cx, caller, question))


def names(page: HitPage) -> list[str]:
    assert page.total == len(page.hits)
    return [hit.title for hit in page.hits]


def test_other_words_of_the_same_meaning_are_found_after_those_that_were_asked_for(
    shelf: Shelf, follow: Callable[[], None]
) -> None:
    shelf.add("by-word", f"a car {FILLER}")
    shelf.add("by-meaning", f"an automobile with an engine {FILLER}")
    for number in range(60):
        shelf.add(f"other{number}", f"a vehicle {number} {FILLER} {FILLER}")
    follow()
    page = ask(shelf, MARTA, "car")
    assert names(page)[:2] == ["by-word", "by-meaning"]
    assert page.relaxed
    assert len(page.hits) == 50, "no more than so many are hits by nearness alone"
    assert page.hits[0].terms == ("car",)
    assert page.hits[1].terms == ()
    assert page.hits[1].summary.startswith("an automobile")


def test_what_comes_nearer_takes_no_hit_from_the_later_pages_of_a_walk(
    shelf: Shelf, follow: Callable[[], None]
) -> None:
    for number in range(20):
        shelf.add(f"other{number}", f"a vehicle {number} {FILLER} {FILLER}")
    follow()
    before = ask(shelf, MARTA, "car")
    assert len(before.counters) == 20
    for number in range(60):
        shelf.add(f"nearer{number}", f"an automobile with an engine {number} {FILLER}")
    follow()
    question = SearchQuestion(Query(condition=Fulltext(keywords.read("car", QueryLimits()))), 2, 20, words="any")
    with shelf.database.read() as cx:
        page = results.page_of_counters(shelf.inquiry(cx, MARTA, question), before.counters)
    assert [hit.title for hit in page.hits] == names(before)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("car", {"meaning": False}),
        ("car", {"words": "all"}),
        ('"car"', {}),
        ("car*", {}),
        ("car", {"query": BY_NAME}),
    ],
    ids=["switched off", "all words", "a phrase", "a wildcard", "an order of its own"],
)
def test_who_says_exactly_what_is_wanted_gets_that(
    shelf: Shelf, follow: Callable[[], None], text: str, asked: dict[str, Any]
) -> None:
    shelf.add("by-word", "car")
    shelf.add("by-meaning", "automobile")
    follow()
    assert names(ask(shelf, MARTA, text, **asked)) == ["by-word"]


def test_meaning_joins_wherever_it_is_asked_for(shelf: Shelf, follow: Callable[[], None]) -> None:
    shelf.add("by-word", "car")
    shelf.add("by-meaning", "automobile")
    follow()
    assert names(ask(shelf, MARTA, "car", words="all", meaning=True)) == ["by-word", "by-meaning"]
    assert names(ask(shelf, MARTA, "car OR tram", words="all", meaning=True)) == ["by-word", "by-meaning"]


def test_what_must_not_match_is_not_found_by_meaning_either(shelf: Shelf, follow: Callable[[], None]) -> None:
    shelf.add("red", "automobile red")
    shelf.add("blue", "automobile blue")
    follow()
    assert names(ask(shelf, MARTA, "car engine not red", meaning=True)) == ["blue"]


def test_only_what_the_caller_may_read_is_near_and_nothing_shows_of_the_rest(
    shelf: Shelf, follow: Callable[[], None]
) -> None:
    """failures B1: the text behind the vector needs Read, not Browse."""
    shelf.permit("browse", {"jon@demo": Permission.BROWSE})
    shelf.permit("read", {"jon@demo": Permission.READ})
    shelf.add("may-read", f"automobile {FILLER}", "read")
    follow()
    before = ask(shelf, JON, "car", meaning=True)
    assert names(before) == ["may-read"]
    for number in range(5):
        shelf.add(f"may-browse{number}", "car car car", "browse")
        shelf.add(f"hidden{number}", "car car car")
    follow()
    after = ask(shelf, JON, "car", meaning=True)
    assert [(hit.object_id, hit.summary, round(hit.score, 3)) for hit in after.hits] == [
        (hit.object_id, hit.summary, round(hit.score, 3)) for hit in before.hits
    ]
    assert after.total == before.total
    assert len(ask(shelf, ADMIN, "car", meaning=True).hits) == 11


def test_a_right_that_ends_ends_what_is_near(shelf: Shelf, follow: Callable[[], None]) -> None:
    shelf.permit("read", {"jon@demo": Permission.READ})
    shelf.add("one", "automobile", "read")
    follow()
    assert names(ask(shelf, JON, "car")) == ["one"]
    shelf.permit("read", {})
    assert names(ask(shelf, JON, "car")) == []


def test_a_former_text_is_near_nothing_any_more(shelf: Shelf, follow: Callable[[], None]) -> None:
    shelf.permit("read", {"jon@demo": Permission.READ})
    made = shelf.add("one", "automobile", "read")
    follow()
    shelf.replace(made, "kitten")
    assert names(ask(shelf, JON, "car")) == []
    shelf.extract("kitten")
    shelf.catch_up()
    assert names(ask(shelf, JON, "car")) == [], "the index knows the new text, and no embedding of it"
    follow()
    assert names(ask(shelf, JON, "cat")) == ["one"]


def test_each_text_is_embedded_once_and_a_new_heading_counts(
    shelf: Shelf, follow: Callable[[], None], embedding: ToyEmbedding
) -> None:
    made = shelf.add("one", "automobile")
    follow()
    follow()
    assert embedding.model.texts == ["one automobile"]
    shelf.change(made, {"title": "kitten"})
    follow()
    assert embedding.model.texts == ["one automobile", "kitten automobile"]
    shelf.change(made, {"subject": "whatever"})
    follow()
    assert len(embedding.model.texts) == 2
    assert shelf.report().sound


def test_an_embedder_that_comes_late_looks_at_all_objects_first(
    shelf: Shelf, follow: Callable[[], None], embedding: ToyEmbedding
) -> None:
    for number in range(250):
        shelf.add(f"made{number}", "a text")
    shelf.catch_up()
    follow()
    assert len(embedding.model.texts) == 250
    with shelf.database.begin() as cx:
        assert followers.position(cx, shelf.repository.id, FOLLOWER) is not None
        followers.leave(cx, shelf.repository.id, FOLLOWER)
    follow()
    assert len(embedding.model.texts) == 250, "what is stored is not embedded again"


def test_a_repository_in_which_nothing_changes_is_not_looked_at_anew(shelf: Shelf) -> None:
    clock = Clock()
    embedder = Embedder(shelf.database, ToyEmbedding(), clock)
    shelf.add("one", "a text")
    while embedder.advance():
        pass
    for _ in range(20):
        clock.advance(43_200)
        assert not embedder.advance()
        with shelf.database.begin() as cx:
            followers.cut(cx, shelf.repository.id, Retention(), clock())
            assert followers.position(cx, shelf.repository.id, FOLLOWER) is not None


def test_a_file_that_waits_for_its_text_is_embedded_with_it(
    shelf: Shelf, follow: Callable[[], None], embedding: ToyEmbedding
) -> None:
    made = shelf.create({"object_name": "one"}, content=shelf.content("car"))
    follow()
    assert embedding.model.texts == []
    shelf.extract("car")
    follow()
    assert embedding.model.texts == ["one car"]
    with shelf.database.read() as cx:
        assert made.id in embeddings.of_objects(cx, [made.id])


def test_what_has_no_text_is_not_found_by_meaning(
    shelf: Shelf, follow: Callable[[], None], embedding: ToyEmbedding
) -> None:
    shelf.create({"object_name": "car"}, content=shelf.content("a picture"))
    shelf.create({"object_name": "vehicle"}, type_name="cabinet")
    follow()
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
        assert job is not None
        assert queue.fail(cx, job, "It is a picture.", shelf.now, "unsupported")
    follow()
    assert embedding.model.texts == []
    assert names(ask(shelf, MARTA, "automobile", meaning=True)) == []
    assert names(ask(shelf, MARTA, "car", meaning=True)) == ["car"]


def test_what_is_far_away_and_what_the_model_does_not_know_is_near_nothing(
    shelf: Shelf, follow: Callable[[], None]
) -> None:
    shelf.add("one", f"an automobile with an engine {FILLER}")
    shelf.add("other", f"a kitten {FILLER}")
    follow()
    assert names(ask(shelf, MARTA, "car")) == ["one"]
    for question in ("mouse", "vehiclex"):
        page = ask(shelf, MARTA, question)
        assert names(page) == []
        assert not page.relaxed


def test_two_embedders_do_not_do_the_same_work(shelf: Shelf) -> None:
    clock, first, second = Clock(), ToyEmbedding(), ToyEmbedding()
    shelf.create({"object_name": "one"})
    one, other = Embedder(shelf.database, first, clock), Embedder(shelf.database, second, clock)
    assert one.advance()
    assert not other.advance()
    one.release()
    assert other.advance()


def test_an_explanation_says_what_nearness_adds(shelf: Shelf, follow: Callable[[], None]) -> None:
    made, other = shelf.add("one", "automobile"), shelf.add("two", "car")
    follow()
    question = SearchQuestion(Query(condition=Fulltext(keywords.read("car", QueryLimits()))), 1, 10, meaning=True)
    for object_id, terms in ((made, ["by meaning"]), (other, ["car", "by meaning"])):
        with shelf.database.read() as cx:
            answer = explanation.explain(shelf.inquiry(cx, MARTA, question), object_id, lambda: question)
        assert answer.hit
        assert [match.term for match in answer.matches] == terms
        assert [match.by_meaning for match in answer.matches] == [term == "by meaning" for term in terms]
        assert sum(match.weight for match in answer.matches) == pytest.approx(answer.score or 0)


class Failing(ToyEmbedding):
    """Fails whenever a text holds a word; it counts its requests."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word, self.requests = word, 0

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        self.requests += 1
        if any(self.word in text for text in texts):
            raise NotEmbedded("it broke")
        return super().vectors(texts)


def test_a_text_that_always_fails_is_left_out_and_stops_no_other(shelf: Shelf) -> None:
    embedding, clock = Failing("poison"), Clock()
    embedder = Embedder(shelf.database, embedding, clock)
    shelf.memory.meaning = meaning()
    for name in ("one", "two"):
        shelf.add(name, "automobile")
    shelf.add("bad", "poison automobile")
    shelf.add("three", "automobile")
    failures = 0
    while True:
        try:
            if not embedder.advance():
                break
        except NotEmbedded:
            failures += 1
    assert 0 < failures <= 4
    shelf.catch_up()
    assert sorted(names(ask(shelf, MARTA, "car"))) == ["one", "three", "two"]
    assert names(ask(shelf, MARTA, "poison", words="all")) == ["bad"]
    requests = embedding.requests
    while embedder.advance():
        pass
    assert embedding.requests == requests, "what was left out is not tried again"


def test_long_texts_are_not_read_as_a_whole(shelf: Shelf) -> None:
    for number in range(20):
        shelf.add(f"pump {number}", "valve " * 200_000)
    embedder = Embedder(shelf.database, ToyEmbedding(), Clock())
    tracemalloc.start()
    try:
        while embedder.advance():
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000  # the texts have 24 MB


def test_objects_are_embedded_in_groups_of_few_passages(shelf: Shelf) -> None:
    embedding = Failing("nothing fails")
    embedder = Embedder(shelf.database, embedding, Clock())
    for number in range(20):
        shelf.add(f"short{number}", "automobile")
    shelf.add("long", " ".join(f"word{number}" for number in range(5_000)))
    while embedder.advance():
        pass
    assert embedding.requests == 3, "sixteen short ones, four more, and the long one alone"
    assert len(embedding.model.texts) == 20 + MOST


class Interrupted(ToyEmbedding):
    """Something happens once, while it embeds texts."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = meanwhile

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        if self.meanwhile is not None:
            self.meanwhile()
            self.meanwhile = None
        return super().vectors(texts)


@pytest.mark.parametrize("other_goes_on", [False, True], ids=["the first goes on", "the second goes on"])
@pytest.mark.parametrize("comes_late", [False, True], ids=["changes in the log", "a pass over all objects"])
def test_who_loses_the_lease_between_two_groups_leaves_no_object_out(
    shelf: Shelf, comes_late: bool, other_goes_on: bool
) -> None:
    def lose() -> None:
        clock.advance(61)
        with suppress(NotEmbedded):
            assert other.advance()

    clock, embedding, fails = Clock(), Interrupted(lose), Failing("")
    one, other = Embedder(shelf.database, embedding, clock), Embedder(shelf.database, fails, clock)
    if not comes_late:
        while one.advance():
            pass
    made = [shelf.add(f"made{number}", "a text") for number in range(40)]
    while one.advance():
        pass
    assert len(embedding.model.texts) == 16, "it stops after the group during which it lost the lease"
    fails.word = "none of the texts"
    if not other_goes_on:
        other.release()
    while (other if other_goes_on else one).advance():
        pass
    with shelf.database.read() as cx:
        assert embeddings.of_objects(cx, made).keys() == set(made)
