"""The embedded index: what an answer looks like, what a commit is, what happens when something fails."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import tantivy

from muniment.repository.folding import fold
from muniment.repository.refusals import BadQuery, IndexUnavailable
from muniment.repository.search.analysis import compounds, languages
from muniment.repository.search.analysis.text import normal
from muniment.repository.search.aql.conditions import Between, BoundQuery, Condition, ConditionSet, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.rewriting import joints
from muniment.repository.search.aql.spelling.facets import BoundFacet
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Fulltext,
    Keywords,
    Phrase,
    Query,
    Term,
    Value,
    Wild,
    Without,
)
from muniment.repository.search.aql.values import Kind
from muniment.repository.search.index.contract import (
    Answer,
    FacetCounts,
    OtherFormat,
    Search,
    Snapshot,
    SortedBy,
    Visible,
)
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.tantivy import failures, fields
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.search.index.tantivy.order import REACH
from muniment.repository.search.index.tantivy.regexes import of_range
from muniment.repository.store.change_log.changes import START, Position
from tests import passes

EVERYTHING = Visible(everything=True)

SMALL_COMMITS = int(os.environ.get("SMALL_COMMITS", "1000"))
"""To one index, in the campaign."""


def beginning(name: str, text: str) -> Like:
    return Like(name, (Pattern((fold(text), Gap.RUN)),))


def key(at: int) -> str:
    """Spell an id; the greater the counter the less it is, so that nothing goes by ids unnoticed."""
    return f"{0x09FFFFFF00000000 - at:016x}"


def kept(
    at: int, text: str = "", acl: int = 1, owner: str = "marta@staff", modified: int = 5, **values: Value
) -> Document:
    several: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in values.items()}
    return Document(key(at), at, modified, "document", acl, owner, several, text)


def facet(name: str, kind: Kind, limit: int) -> BoundFacet:
    return BoundFacet(name, name, kind, "string", "FREQUENCY", limit)


def counted(facets: tuple[FacetCounts, ...]) -> dict[str, tuple[tuple[str, int], ...]]:
    return {facet.id: tuple((value.name, value.count) for value in facet.values) for facet in facets}


class World:
    def __init__(self, folder: Path, language: str = "English", others: Sequence[str] = ()) -> None:
        self.folder = folder
        self.writer = TantivyWriter(folder, language, others)
        self.reader = TantivyIndex(folder)
        self.at = 0
        self.held: Snapshot | None = None

    def hold(self, *documents: Document, gone: tuple[str, ...] = ()) -> None:
        self.at += 1
        self.writer.apply(documents, gone, Position(0, self.at))

    def ask(
        self, condition: Condition | None, visible: Visible = EVERYTHING, locale: str = "", **more: object
    ) -> Answer:
        limit, offset = int(str(more.pop("limit", 100))), int(str(more.pop("offset", 0)))
        search = Search(BoundQuery((), condition, locale), visible, offset, limit, total=True)
        return (self.held or self.reader.snapshot()).search(search)

    def find(self, condition: Condition | None, visible: Visible = EVERYTHING, locale: str = "") -> list[str]:
        return [hit.object_id for hit in self.ask(condition, visible, locale).hits]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "index")
    yield made
    made.writer.close()
    made.reader.close()


def says(text: str) -> Fulltext:
    return Fulltext(Term(text))


def test_a_hit_has_score_excerpt_and_terms(world: World) -> None:
    world.hold(kept(1, "The valve broke. Pumping stopped at noon.", title="Report"), kept(2, "nothing of it"))
    (hit,) = world.ask(Fulltext(Either((Term("pumps"), Term("report"), Term("gone"))))).hits
    assert hit.object_id == key(1)
    assert hit.score > 0
    assert hit.excerpt == "The valve broke. Pumping stopped at noon."
    assert hit.terms == ("pumps", "report")


def test_what_may_only_be_browsed_is_found_by_its_metadata_alone(world: World) -> None:
    """failures B3: content that is hidden is neither searched nor shown."""
    world.hold(kept(1, "secret plan", title="Harbour plan"))
    browse = Visible(browse_acls=frozenset({1}))
    assert world.find(says("secret"), browse) == []
    assert world.find(Fulltext(Without(Term("secret"))), browse) == [key(1)]
    (hit,) = world.ask(Fulltext(Either((Term("plan"), Term("secret")))), browse).hits
    assert hit.terms == ("plan",)
    assert hit.excerpt == "Harbour plan"
    assert world.ask(None, browse).hits[0].excerpt == ""
    assert world.ask(None, Visible(owner="marta@staff")).hits[0].excerpt == "secret plan"


FAR = "filler " * 12_000
PLACES = (
    kept(1, "the pump and the valve", title="harbour"),
    kept(2, "the pump", title="a valve"),
    kept(3, "nothing", title="valve pump"),
    kept(4, FAR + "valve pump", title="deep"),
    kept(5, FAR + "pump", title="valve"),
    kept(6, "", title="pump, valve"),
    kept(7, "pumping valves, a safety valve", acl=2, title="pump valve"),
    kept(8, "valve", acl=2, title="a pump"),
)
PUMP, VALVE = Term("pump"), Term("valve")


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        Fulltext(PUMP),
        Fulltext(Both((PUMP, VALVE))),
        Fulltext(Both((PUMP, Without(Term("safety"))))),
        Fulltext(Both((PUMP, Either((VALVE, Term("harbour")))))),
        Fulltext(Either((PUMP, VALVE))),
        Fulltext(Both((PUMP, Phrase("safety valve")))),
        Fulltext(Both((PUMP, Wild("valv*")))),
        ConditionSet("AND", (Fulltext(PUMP), Fulltext(VALVE), beginning("title", "a"))),
        ConditionSet("OR", (Fulltext(PUMP), Fulltext(VALVE))),
        ConditionSet("OR", (Fulltext(Both((PUMP, VALVE))), beginning("title", "h"))),
        ConditionSet("OR", (ConditionSet("AND", (Fulltext(PUMP), Fulltext(VALVE))),)),
        Fulltext(Without(Term("harbour"))),
        None,
    ],
)
@pytest.mark.parametrize("reads", [frozenset({1, 2}), frozenset({1}), frozenset()])
def test_what_the_text_tells_is_what_the_engine_would_tell(
    world: World, monkeypatch: pytest.MonkeyPatch, condition: Condition | None, reads: frozenset[int]
) -> None:
    """Where every word must match, terms are not asked of the engine, and excerpts only where none is soon found."""
    world.hold(*PLACES)
    visible = Visible(browse_acls=frozenset({1, 2}), read_acls=reads)
    quick = world.ask(condition, visible)
    monkeypatch.setattr("muniment.repository.search.index.questions.compile.needs_all", lambda _: False)
    world.reader = TantivyIndex(world.folder)
    assert world.ask(condition, visible) == quick
    assert quick.hits or len(reads) < 2


@pytest.mark.slow
def test_terms_are_told_apart_however_many_are_asked_for(world: World) -> None:
    words = [f"word{at}x" for at in range(70)]
    world.hold(kept(1, " ".join(words[::3]), title=" ".join(words[1::3])), kept(2, words[69]))
    asked = Fulltext(Either(tuple(Term(word) for word in words)))
    first, second = sorted(world.ask(asked).hits, key=lambda hit: hit.object_id, reverse=True)
    assert first.terms == tuple(word for at, word in enumerate(words) if at % 3 != 2)
    assert second.terms == (words[69],)
    (browsed,) = world.ask(asked, Visible(browse_acls=frozenset({1}))).hits
    assert browsed.terms == tuple(words[1::3])


def test_what_may_be_browsed_or_is_owned_or_was_decided_is_scored_once(world: World) -> None:
    world.hold(kept(1, "secret pump", title="a pump"), kept(2, "pump", title="nothing"))
    whole, of_content = world.ask(says("pump")).hits
    acls = frozenset({1})
    for visible in (
        Visible(owner="marta@staff", browse_acls=acls),
        Visible(
            browse_acls=acls,
            decided=frozenset({key(1), key(2)}),
            browse=frozenset({key(1), key(2)}),
            read=frozenset({key(1), key(2)}),
        ),
    ):
        assert world.ask(says("pump"), visible).hits == (whole, of_content)
    (browsed,) = world.ask(says("pump"), Visible(browse_acls=acls)).hits
    assert browsed.object_id == key(1)


def test_a_word_weighs_alike_in_what_may_be_read_and_in_what_may_be_browsed(world: World) -> None:
    world.hold(
        *(kept(at, f"no {at} of text", acl=at % 2 + 1, title=f"{at} of") for at in range(10, 30)),
        kept(1, "words of text", title="a pump"),
        kept(2, "words of text", acl=2, title="a pump"),
    )
    scores = [
        hit.score
        for hit in world.ask(says("pump"), Visible(browse_acls=frozenset({1, 2}), read_acls=frozenset({1}))).hits
    ]
    assert max(scores) < 1.3 * min(scores)


@pytest.mark.parametrize(
    "commits", [160, pytest.param(SMALL_COMMITS, marks=[pytest.mark.campaign, pytest.mark.timeout(3000)])]
)
@pytest.mark.slow
def test_many_small_commits_leave_an_index_of_the_size_of_what_lives(
    world: World, tmp_path: Path, commits: int
) -> None:
    """failures B15"""

    def size(folder: Path) -> int:
        return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

    def text(number: int) -> str:
        return " ".join(f"word{number}x{at}" for at in range(200))

    for number in range(commits):
        world.hold(kept(number % 20, text(number)))
    world.writer.close()
    once = TantivyWriter(tmp_path / "once")
    once.apply([kept(number % 20, text(number)) for number in range(commits - 20, commits)], (), Position(0, 1))
    once.close()
    assert size(world.folder) <= 2 * size(tmp_path / "once") + 50_000


def test_phrases_are_exact_and_words_are_stemmed(world: World) -> None:
    world.hold(kept(1, "big red pumps"), kept(2, "red big pump"), kept(3, title="big", subject="red"))
    assert world.find(Fulltext(Phrase("big red"))) == [key(1)]
    assert world.find(Fulltext(Phrase("pumps"))) == [key(1)]
    assert sorted(world.find(says("pumping"))) == sorted([key(1), key(2)])
    assert sorted(world.find(Fulltext(Both((Term("big"), Without(Phrase("pumps"))))))) == sorted([key(2), key(3)])


def test_a_joined_word_with_a_star_keeps_its_joining(world: World) -> None:
    """Issue 8, section 5: the parts stand one after the other, in one value or in the text."""
    world.hold(
        kept(1, "A well-known pump."),
        kept(2, "It is known from the well."),
        kept(3, "Well: knowing."),
        kept(4, title="well-knit"),
        kept(5, "knit", title="well"),
    )
    for asked, found in (("well-kn", {1, 3, 4}), ("well-know", {1, 3}), ("the-we", {2})):
        answer = world.ask(Fulltext(Wild(asked + "*")))
        assert {hit.object_id for hit in answer.hits} == {key(at) for at in found}, asked
        assert answer.total == len(found)
    (hit,) = world.ask(Fulltext(Wild("a-well-kno*"))).hits
    assert (hit.terms, hit.excerpt) == (("a-well-kno*",), "A well-known pump.")


@pytest.mark.slow
def test_too_many_endings_of_a_joined_word_are_refused_and_none_is_left_out(world: World) -> None:
    world.hold(*(kept(at, " ".join(f"well k{at * 1000 + n:05d}" for n in range(1000))) for at in range(20)))
    assert world.ask(Fulltext(Wild("well-k1*"))).total == 10
    with pytest.raises(BadQuery, match="write more of them"):
        world.ask(Fulltext(Wild("well-k*")))


@pytest.mark.slow
def test_a_short_prefix_finds_every_word_however_many(world: World) -> None:
    world.hold(*(kept(at, f"pu{at}x{at * 7919}") for at in range(1200)))
    assert world.ask(Fulltext(Wild("pu*")), limit=10).total == 1200
    pages = [world.ask(Fulltext(Wild("pu*")), limit=100, offset=at).hits for at in range(0, 1200, 100)]
    assert {hit.object_id for page in pages for hit in page} == set(map(key, range(1200)))
    assert world.ask(beginning("nothing", "p")).total == 0


@pytest.mark.slow
@pytest.mark.parametrize("beside", [1, 2, 50])
def test_ties_are_ordered_by_counter_and_pages_join(world: World, monkeypatch: pytest.MonkeyPatch, beside: int) -> None:
    monkeypatch.setattr("muniment.repository.search.index.tantivy.order._BESIDE", beside)
    for at in reversed(range(30)):
        world.hold(kept(at, "pump"))
    for condition in (says("pump"), None, Fulltext(Wild("pum*"))):
        assert world.find(condition) == [key(at) for at in range(30)]
        paged = [hit.object_id for at in range(0, 35, 7) for hit in world.ask(condition, limit=7, offset=at).hits]
        assert paged == [key(at) for at in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize("beside", [1, 2, 50])
def test_pages_join_where_ties_reach_deeper_than_ties_are_ordered(
    world: World, monkeypatch: pytest.MonkeyPatch, beside: int
) -> None:
    assert REACH >= 1000
    monkeypatch.setattr("muniment.repository.search.index.tantivy.order._BESIDE", beside)
    monkeypatch.setattr("muniment.repository.search.index.tantivy.order.REACH", 10)
    for at in reversed(range(12)):
        world.hold(kept(at, "pump pump" if at in (3, 5) else "pump other"))
    world.held = world.reader.snapshot()  # a merge in the background changes the engine's order
    whole = [hit.object_id for hit in world.ask(says("pump"), limit=12).hits]
    for size in (1, 3, 4, 5, 11):
        paged = [
            hit.object_id for at in range(0, 12, size) for hit in world.ask(says("pump"), limit=size, offset=at).hits
        ]
        assert paged == whole
    assert whole[:2] == [key(3), key(5)]


LEVEL = {"*ps": 1.0, "*um*": 1.0, "?u?p*": 1.0, "*um* *ther": 2.0, "*um* *um*": 2.0, "*um* -valve": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("asked", LEVEL)
def test_words_that_begin_with_a_wildcard_score_alike_and_are_in_order_however_deep(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr("muniment.repository.search.index.tantivy.order.REACH", 5)
    for at in reversed(range(20)):
        world.hold(kept(at, "pumps pumps other" if at % 3 else "pumps", title="pumps other"))
    wilds = [Wild(word) if "*" in word else Without(Term(word[1:])) for word in asked.split()]
    condition = Fulltext(Both(tuple(wilds)))
    paged = [hit for at in range(0, 21, 7) for hit in world.ask(condition, limit=7, offset=at).hits]
    assert [hit.object_id for hit in paged] == [key(at) for at in range(20)]
    assert {hit.score for hit in paged} == {LEVEL[asked]}
    question = Search(BoundQuery((), condition), EVERYTHING, 3, 9)
    snapshot = world.reader.snapshot()
    assert snapshot.counters(question, "relevance") == list(range(3, 12))
    # The engine itself scores them so.
    among = msgspec.structs.replace(question, offset=0, limit=20, among=frozenset(map(key, range(20))))
    assert {hit.score for hit in snapshot.search(among).hits} == {LEVEL[asked]}


def test_a_word_beside_one_with_a_wildcard_still_makes_scores(world: World) -> None:
    world.hold(kept(1, "pump red red"), kept(2, "pump red"), kept(3, "pump red red red"))
    for condition in (Both((Wild("pum*"), Term("red"))), Wild("pum*-red"), Either((Wild("pum*"), Term("red")))):
        assert len({hit.score for hit in world.ask(Fulltext(condition)).hits}) == 3
    for condition in (Wild("re*"), Either((Wild("xum*"), Wild("r?d")))):
        assert world.find(Fulltext(condition)) == [key(3), key(1), key(2)]


@pytest.mark.parametrize("asked", ["valv*", "valv?", "v*v?", "va*ve"])
def test_a_word_with_wildcards_that_stands_for_one_word_scores_as_that_word(world: World, asked: str) -> None:
    world.hold(
        kept(1, "a valve of text"),
        kept(2, "valve valve of"),
        kept(3, "words of text", title="valve"),
        *(kept(at, f"filler {at} of text") for at in range(4, 20)),
    )
    hits, expected = (world.ask(Fulltext(each)).hits for each in (Wild(asked), Phrase("valve")))
    assert [hit.object_id for hit in hits] == [hit.object_id for hit in expected] == [key(2), key(3), key(1)]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])


def test_hits_of_a_beginning_are_ranked_by_their_best_word_and_its_rarity_is_that_of_the_beginning(
    world: World,
) -> None:
    """Issue 13, section 1: titles first, then how often; a rare word of the beginning weighs as a common one."""
    world.hold(
        kept(1, "pumps other text of words"),
        kept(2, "pump pump pump of words"),
        kept(3, "pumping other text of words"),
        kept(4, "some other text of words", title="pumps"),
        kept(5, "pump pumping pumps of words"),
        *(kept(at, f"pumps {at} text of words") for at in range(20, 40)),
    )
    found = world.find(Fulltext(Wild("pum*")))
    assert found[:2] == [key(2), key(4)] or found[:2] == [key(4), key(2)]
    assert found[2:] == [key(at) for at in (1, 3, 5, *range(20, 40))]
    both = world.ask(Fulltext(Both((Wild("pum*"), Term("words")))))
    assert [hit.object_id for hit in both.hits][2:] == found[2:]


@pytest.mark.slow
def test_hits_beyond_the_commonest_words_of_a_beginning_follow_by_counter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.repository.search.index.questions.rarity.MOST_FORMS", 2)
    forms = ("pumping", "pumper", "pumps", "pumped", "pumps", "pump", "pump", "pumpable")
    for at in reversed(range(24)):
        world.hold(kept(at, " ".join([forms[at % 8]] * (1 + at // 8)) + " x" * (2 - at // 8)))
    common = [at for at in range(24) if forms[at % 8] in ("pump", "pumps")]
    others = [at for at in range(24) if at not in common]
    expected = [*map(key, sorted(common, key=lambda at: (-(at // 8), at))), *map(key, others)]
    for size in (1, 5, 24):
        paged = [
            hit for at in range(0, 24, size) for hit in world.ask(Fulltext(Wild("pum*")), limit=size, offset=at).hits
        ]
        assert [hit.object_id for hit in paged] == expected
        assert all(hit.score > 0 for hit in paged)
    question = Search(BoundQuery((), Fulltext(Wild("pum*"))), EVERYTHING, 0, 24)
    assert list(map(key, world.reader.snapshot().counters(question, "relevance"))) == expected


def test_only_the_first_words_with_wildcards_of_a_query_are_ranked(world: World) -> None:
    world.hold(kept(1, "of aa aa bb bb"), kept(2, "of cc aa bb bb bb"))
    nine = tuple(Wild(f"{letter}{letter}*") for letter in "cdefghiab")
    (second, first) = world.ask(Fulltext(Either(nine))).hits
    assert (first.object_id, second.object_id) == (key(1), key(2))
    alone = {hit.object_id: hit.score for hit in world.ask(Fulltext(Either(nine[-2:-1]))).hits}
    assert first.score == pytest.approx(alone[key(1)] + 1)


def test_the_words_of_a_beginning_are_chosen_from_what_the_caller_may_see(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """failures B1"""
    monkeypatch.setattr("muniment.repository.search.index.questions.rarity.MOST_FORMS", 1)
    world.hold(
        kept(1, "pumps x"),
        kept(2, "pump y", modified=9),
        kept(3, "pump z"),
        *(kept(at, f"pumps pumps pumper {at}", acl=2) for at in range(4, 20)),
    )
    readable = Visible(browse_acls=frozenset({1}), read_acls=frozenset({1}))
    assert world.find(Fulltext(Wild("pum*")), readable) == [key(2), key(3), key(1)]
    assert world.find(Fulltext(Wild("pum*")))[-2:] == [key(2), key(3)]
    hidden = Visible(everything=True, hidden=frozenset(map(key, range(4, 20))))
    assert world.find(Fulltext(Wild("pum*")), hidden) == [key(2), key(3), key(1)]


@pytest.mark.parametrize("condition", [None, says("pump"), Fulltext(Wild("pu*"))])
def test_an_answer_says_whether_hits_follow(world: World, condition: Condition | None) -> None:
    world.hold(*(kept(at, "pump") for at in range(5)))
    pages = [(0, 4, True), (0, 5, False), (4, 1, False), (3, 1, True), (0, 9, False), (7, 1, False)]
    for offset, limit, more in (*pages, (0, 0, True), (4, 0, True), (5, 0, False)):
        answer = world.ask(condition, offset=offset, limit=limit)
        assert (len(answer.hits), answer.more) == (max(0, min(limit, 5 - offset)), more)
        by_name = Search(BoundQuery((), condition), EVERYTHING, offset, limit)
        by_index = world.reader.snapshot().search_sorted(by_name, [SortedBy("object_name", "string")])
        assert by_index is not None
        assert (len(by_index.hits), by_index.more) == (len(answer.hits), more)


@pytest.mark.parametrize("condition", [None, says("pump")])
def test_hits_among_named_objects_have_their_order_and_their_pages(world: World, condition: Condition | None) -> None:
    world.hold(*(kept(at, "pump " * at, modified=at) for at in range(5)))
    search = Search(BoundQuery((), condition), EVERYTHING, 0, 2, among=frozenset(map(key, (1, 2, 3))))

    def found(offset: int, limit: int) -> list[str]:
        page = msgspec.structs.replace(search, offset=offset, limit=limit)
        return [hit.object_id for hit in world.reader.snapshot().search(page).hits]

    assert found(0, 2) == [key(3), key(2)]
    assert found(2, 2) == [key(1)]
    assert sorted(found(0, 3)) == sorted(map(key, (1, 2, 3)))
    assert len(found(1, 3)) == 2


def test_only_a_full_page_has_all_that_is_shown_if_fewer_hits_may_be_bare(world: World) -> None:
    world.hold(kept(1, "a pump"), kept(2, "a valve and a pump"))
    search = Search(BoundQuery((), says("pump")), EVERYTHING, 0, 2, total=True, few_bare=True)
    full = world.reader.snapshot().search(search)
    assert full == world.ask(says("pump"), limit=2)
    assert full.total == len(full.hits) == 2
    few = world.reader.snapshot().search(msgspec.structs.replace(search, limit=3))
    assert [hit.object_id for hit in few.hits] == [hit.object_id for hit in full.hits]
    assert {hit.excerpt for hit in few.hits} == {""}
    assert (few.total, few.more) == (None, False)


def test_a_page_of_nothing_still_counts(world: World) -> None:
    world.hold(kept(1, "pump"))
    answer = world.ask(says("pump"), limit=0)
    assert answer.hits == ()
    assert answer.total == 1


def test_the_position_is_outside_every_query_and_total(world: World) -> None:
    assert world.writer.position == START
    assert world.reader.snapshot().position == START
    world.hold(kept(1, "position 0.1", title="\0position"))
    snapshot = world.reader.snapshot()
    assert snapshot.position == world.writer.position == Position(0, 1)
    for visible in (EVERYTHING, Visible(owner="marta@staff"), Visible(browse_acls=frozenset({1}))):
        assert world.ask(None, visible).total == 1
        assert world.ask(Fulltext(Without(Term("x"))), visible).total == 1
    assert world.ask(Fulltext(Wild("posit*"))).total == 1
    assert [each.key for each in snapshot.documents()] == [key(1)]
    facets = snapshot.search(Search(BoundQuery(), EVERYTHING, 0, 1, facets=(facet("title", "string", 9),))).facets
    assert counted(facets) == {"title": (("\0position", 1),)}


def test_a_commit_is_all_or_nothing(world: World) -> None:
    world.hold(kept(1, "one"), kept(2, "two"))

    def broken() -> Iterator[Document]:
        yield kept(3, "three")
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        world.writer.apply(broken(), [key(1)], Position(0, 99))
    assert world.writer.position == Position(0, 1)
    assert world.find(None) == [key(1), key(2)]
    world.hold(kept(2, "second"), gone=(key(1),))
    assert world.find(None) == [key(2)]
    assert [each.text for each in world.reader.snapshot().documents()] == ["second"]


def test_a_snapshot_stays_what_it_was(world: World) -> None:
    world.hold(kept(1, "one"))
    before = world.reader.snapshot()
    world.hold(gone=(key(1),))
    assert [each.key for each in before.documents()] == [key(1)]
    assert list(world.reader.snapshot().documents()) == []


def test_documents_come_back_as_they_were_given(world: World) -> None:
    values: dict[str, tuple[Value, ...]] = {"a": ("x", ""), "b": (1, -(2**63)), "c": (2.0, 0.1), "d": (True,)}
    given = Document(key(1), 1, 2, "report", 7, "eve@guests", values, "text\nÉ " * 1000)
    world.hold(given)
    (back,) = world.reader.snapshot().documents()
    assert back == given
    assert [type(value) for value in back.values["c"]] == [float, float]


def test_many_documents_all_come_back(world: World) -> None:
    world.hold(*(kept(at) for at in range(1001)))
    assert [each.key for each in world.reader.snapshot().documents()] == [key(at) for at in range(1001)]


@pytest.mark.slow
def test_facets_are_exact_over_several_commits(world: World) -> None:
    at = 0
    for commit in range(3):
        colours = [f"c{n}" for n in range(200) for _ in range(2)] + ["Red"] * (5 - commit) + ["blue"] * 4
        world.hold(*(kept(at := at + 1, colour=colour, size=2**53 + 1, weight=0.1, draft=True) for colour in colours))
    kinds: dict[str, tuple[Kind, int]] = {"colour": ("string", 3), "size": ("integer", 2), "weight": ("double", 2)}
    kinds |= {"draft": ("boolean", 2), "none": ("string", 2)}
    wanted = tuple(facet(name, *of_name) for name, of_name in kinds.items())
    answered = world.reader.snapshot().search(Search(BoundQuery(), EVERYTHING, 0, 1, facets=wanted)).facets
    facets = counted(answered)
    assert facets["colour"] == (("blue", 12), ("Red", 12), ("c0", 6))
    assert facets["size"] == ((str(2**53 + 1), at),)
    assert facets["weight"] == (("0.1", at),)
    assert facets["draft"] == (("true", at),)
    assert facets["none"] == ()


SEEN = Visible(
    owner="boris@staff", browse_acls=frozenset({1, 3}), read_acls=frozenset({1}), hidden=frozenset({key(98), key(99)})
)
QUESTIONS = (
    Fulltext(Either((Term("pump"), Term("valve")))),
    Fulltext(Either((Phrase("red pump"), Term("valve"), Wild("va*")))),
    Fulltext(Both((Term("pumps"), Term("valve")))),
    Fulltext(Term("house")),
    Fulltext(AnyWord(Both((Term("pump"), Term("valves"))), (Term("pump"), Term("valves")))),
)


@pytest.mark.slow
@pytest.mark.parametrize("condition", QUESTIONS, ids=str)
def test_scores_are_those_of_an_index_of_what_the_caller_may_see(
    world: World, tmp_path: Path, condition: Condition
) -> None:
    """failures B3. Texts and titles that are not seen are as long as those that are: the average length stays.

    There are so many that the document of the position, which has no words, hardly counts.
    """
    seen = [
        *(kept(at, "words of equal length", title="other words") for at in range(1000, 1400)),
        kept(1, "red pump and valve", title="one house"),
        kept(2, "valve and other thing", title="two house"),
        kept(3, "pump pump pump one", title="red valve"),
        kept(4, "red words of boris", acl=2, owner="boris@staff", title="pumps valves"),
        kept(5, "hidden red pump valve", acl=3, title="a valve"),
    ]
    unseen = [
        *(kept(at, "pump for red house", acl=2, title="pump house") for at in range(6, 40)),
        *(kept(at, "valve in the valve", acl=2, title="red pumps") for at in range(98, 100)),
    ]
    changed = [*(kept(at, "pump pump pump pump", acl=1, title="pump valve") for at in range(98, 100))]
    gone = [kept(at, "valve pump valve pump", acl=1, title="pump valve") for at in range(200, 220)]
    world.hold(*seen[:402], *changed, *gone)
    world.hold(*seen[402:], *unseen, gone=tuple(each.key for each in gone))
    alone = World(tmp_path / "alone")
    alone.hold(*(each if each.key != key(5) else kept(5, "not to be read", acl=3, title="a valve") for each in seen))
    for offset in (0, 1):
        hits, expected = (each.ask(condition, SEEN, offset=offset).hits for each in (world, alone))
        assert [hit.object_id for hit in hits] == [hit.object_id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], rel=1e-3)
        assert hits
    alone.writer.close()
    alone.reader.close()


def test_an_object_that_is_no_longer_seen_does_not_count_in_the_next_search(world: World) -> None:
    world.hold(*(kept(at, "pump red") for at in range(1, 5)), kept(5, "pump valve"))
    asked = Fulltext(Either((Term("pump"), Term("valve"))))
    everybody = Visible(browse_acls=frozenset({1}), read_acls=frozenset({1}))
    before = world.ask(asked, everybody).hits
    hidden = frozenset({key(1), key(2)})
    after = world.ask(asked, msgspec.structs.replace(everybody, hidden=hidden)).hits
    assert [hit.object_id for hit in after] == [hit.object_id for hit in before if hit.object_id not in hidden]
    assert after[0].score != before[0].score
    assert world.ask(asked, msgspec.structs.replace(everybody, hidden=frozenset({key(77)}))).hits == before


def words_of(number: int) -> str:
    return " ".join(f"w{number}x{at}" for at in range(12))


@pytest.mark.parametrize("name", layout.HEADINGS)
def test_one_match_in_a_heading_outranks_one_in_a_text_of_three_times_its_length(world: World, name: str) -> None:
    heading = Document(
        key(1), 1, 0, "document", 1, "marta@staff", {name: ("pumps of an ordinary length",)}, words_of(1)
    )
    in_text = kept(2, f"pumps {words_of(2)}", title="words of an ordinary length")
    longer = Document(
        key(3), 3, 0, "document", 1, "marta@staff", {name: ("a valve",)}, " ".join(map(words_of, range(4)))
    )
    other = kept(4, f"valve {words_of(5)}")
    world.hold(heading, in_text, longer, other)
    assert world.find(says("pump")) == [key(1), key(2)]
    assert world.find(says("valve")) == [key(3), key(4)]


def test_equal_headings_count_once_and_no_phrase_reaches_from_one_value_to_the_next(world: World) -> None:
    twice: dict[str, tuple[Value, ...]] = {"title": ("Red Pump",), "object_name": ("Red Pump",)}
    world.hold(
        Document(key(1), 1, 0, "document", 1, "marta@staff", twice, "text"),
        Document(key(2), 2, 0, "document", 1, "marta@staff", {"title": ("Red Pump",)}, "text"),
    )
    first, second = world.ask(says("pump")).hits
    assert first.score == second.score
    assert world.find(Fulltext(Phrase("pump red"))) == []
    assert world.find(Fulltext(Phrase("pump text"))) == []
    assert set(world.find(Fulltext(Phrase("red pump")))) == {key(1), key(2)}


def test_words_as_they_are_written_and_neighbours_come_first_where_any_word_is_enough(world: World) -> None:
    world.hold(kept(1, "pumping of red valves"), kept(2, "pumped the red valve"), kept(3, "red pumps and one valve"))
    words = (Term("pumped"), Term("valve"))
    (found, *_) = world.find(Fulltext(Either(words)))
    assert found == key(2)
    near = (Term("red"), Term("pumps"))
    assert world.find(Fulltext(Either(near)))[0] == key(3)


def test_the_words_that_tell_most_of_a_text_are_rare_ones_by_which_others_are_found(world: World) -> None:
    text = "About the pumps and what pumps pump: a rotor, a valve, a valve, and the letters of one unique x."
    world.hold(
        kept(1, text),
        kept(2, "pumping with a rotor"),
        kept(3, "a valve, letters"),
        *(kept(at, "letters of a valve") for at in range(4, 9)),
        kept(9, "the unique letters, hidden", acl=7),
    )

    def telling(visible: Visible, limit: int) -> list[str]:
        return world.reader.snapshot().telling_words(visible, key(1), text, limit)

    seen = Visible(browse_acls=frozenset({1}), read_acls=frozenset({1}))
    assert telling(seen, 10) == ["pumps", "rotor", "valve", "letters"], (
        "in the order of the text, in its commonest form"
    )
    assert telling(seen, 2) == ["pumps", "rotor"]
    assert "unique" in telling(EVERYTHING, 10), "where another object with it may be seen"
    assert telling(msgspec.structs.replace(seen, browse_acls=frozenset({1, 7})), 10) == telling(seen, 10)
    assert telling(msgspec.structs.replace(seen, hidden=frozenset({key(2)})), 10) == ["valve", "letters"]


def test_words_of_a_text_without_blanks_tell_of_it_by_their_bigrams(world: World) -> None:
    text = "\u5831\u544a\u66f8 IndexSnapshot"
    world.hold(kept(1, text), kept(2, "\u5831\u544a"), kept(3, "an index snapshot"), kept(4, "IndexSnapshot"))
    words = world.reader.snapshot().telling_words(EVERYTHING, key(1), text, 10)
    assert words == ["\u5831\u544a", "IndexSnapshot"]
    assert world.find(Fulltext(Either(tuple(map(Term, words))))) == [key(1), key(2), key(4), key(3)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("email", "e-mail"), ("12345678", "1234-5678"), ("DE00123456789012345678", "DE00 1234 5678 9012 3456 78")],
)
def test_either_spelling_of_a_word_gives_the_same_hits_in_the_same_order(world: World, one: str, other: str) -> None:
    fill = " ".join("abcdefghijkl")
    world.hold(
        kept(1, f"{one} {fill}"),
        kept(2, f"{other} {fill}"),
        kept(3, f"{other} {one}"),
        kept(4, f"{other[:-1]}x {one[:-1]}9 {fill}"),
        kept(5, title=other),
    )

    def asked(text: str) -> Fulltext:
        parts = tuple(map(Term, text.split()))
        query = joints.widen(Query((), Fulltext(Both(parts) if len(parts) > 1 else parts[0])))
        assert isinstance(query.condition, Fulltext)
        return query.condition

    found = world.find(asked(one))
    assert world.find(asked(other)) == found
    assert set(found) == {key(1), key(2), key(3), key(5)}
    assert set(world.find(Fulltext(Phrase(one)))) == {key(1), key(3)}
    assert set(world.find(Fulltext(Phrase(other)))) == {key(2), key(3), key(5)}


def test_completions_show_words_as_they_are_written_and_no_joined_words(world: World) -> None:
    world.hold(kept(1, "e-mail हिन्दी हिन्दुस्तान"))
    snapshot, everything = world.reader.snapshot(), Search(BoundQuery((), None), EVERYTHING, 0, 10)
    assert [each.word for each in snapshot.completions(everything, "हिन्", 5)] == ["हिन्दी", "हिन्दुस्तान"]
    assert snapshot.completions(everything, "em", 5) == []


def test_a_hit_by_its_name_alone_does_not_repeat_the_name(world: World) -> None:
    world.hold(kept(1, "Of pumps.", object_name="valves.txt", title="The valves"), kept(2, object_name="valves.txt"))
    world.hold(kept(3, "Of pumps.", object_name="valves.txt"))
    hits = world.ask(says("valve")).hits
    assert {hit.object_id: hit.excerpt for hit in hits} == {key(1): "The valves", key(2): "", key(3): "Of pumps."}


def test_words_are_found_by_their_variants(world: World) -> None:
    world.hold(
        kept(1, "the IndexSnapshot costs 1,234", title="München"),
        kept(2, "index and snapshot, 234"),
        kept(3, normal("報告書は東京"), title="카드는"),
    )
    assert set(world.find(says("snapshots"))) == {key(1), key(2)}
    assert set(world.find(says("IndexSnapshot"))) == {key(1)}
    assert world.find(says("1234")) == world.find(says("1.234")) == [key(1)]
    assert world.find(says("muenchen"), Visible(browse_acls=frozenset({1}))) == [key(1)]
    for text in ("報告", "告書", "書", "카드"):
        assert world.find(says(text)) == [key(3)], text
    assert world.find(says("告東")) == []
    for phrase in ("index snapshot", "muenchen", "1234"):
        assert key(1) not in world.find(Fulltext(Phrase(phrase))), phrase
    (hit,) = world.ask(Fulltext(Both((Term("snapshot"), Term("muenchen"))))).hits
    assert (hit.excerpt, hit.terms) == ("the IndexSnapshot costs 1,234", ("snapshot", "muenchen"))
    completions = world.reader.snapshot().completions(Search(BoundQuery((), None), EVERYTHING, 0, 1), "muenc", 9)
    assert completions == []


def test_what_is_found_in_several_ways_counts_once(world: World) -> None:
    world.hold(kept(1, "IndexSnapshot"), kept(2, "other"))
    (by_both,) = world.ask(says("IndexSnapshot")).hits
    (by_first,) = world.ask(says("indexsnapshot")).hits
    assert by_both.score == by_first.score


def test_a_second_writer_is_refused(world: World) -> None:
    with pytest.raises(IndexUnavailable):
        TantivyWriter(world.folder)


def test_a_closed_writer_writes_no_more(world: World) -> None:
    world.writer.close()
    world.writer.close()
    with pytest.raises(IndexUnavailable, match="closed"):
        world.hold(kept(1))
    world.writer = TantivyWriter(world.folder)


@pytest.mark.slow
def test_an_index_is_read_in_its_own_language_and_written_in_no_other(tmp_path: Path) -> None:
    worlds = World(tmp_path / "German", "German"), World(tmp_path / "English", "English")
    for each in worlds:
        each.hold(kept(1, "die H\u00e4user"))
    assert [each.find(says("Haus")) for each in worlds] == [[key(1)], []]
    with pytest.raises(OtherFormat, match="is in German, and its texts are in English now"):
        TantivyWriter(tmp_path / "German")


@pytest.mark.slow
def test_a_part_of_a_german_compound_finds_it(tmp_path: Path) -> None:
    """docs/decisions/0094."""
    world = World(tmp_path / "index", "German")
    world.hold(
        kept(1, "Eine Dampfmaschine treibt das Werk."),
        kept(2, "Die Maschinen stehen."),
        kept(3, "Der Verstand.", title="Druckmaschinenhersteller"),
        kept(4, "Die Dampf-Maschine und ein Kühlschrank"),
    )
    assert set(world.find(says("Maschine"))) == {key(1), key(2), key(3), key(4)}
    assert set(world.find(says("dampf"))) == {key(1), key(4)}
    assert set(world.find(says("Dampfmaschinen"))) == {key(1), key(4)}, "the parts one after the other are the compound"
    assert world.find(says("Druckmaschine")) == [key(3)], "a compound within a longer one"
    assert world.find(says("Hersteller"), Visible(browse_acls=frozenset({1}))) == [key(3)]
    assert world.find(says("stand")) == []
    assert world.find(says("kuehl")) == world.find(says("Kühlschränke")) == [key(4)]
    assert world.find(Fulltext(Phrase("Maschine"))) == [key(4)], "quotation marks want the word itself"
    assert set(world.find(Fulltext(Wild("maschine*")))) == {key(2), key(4)}, "no wildcard sees the parts"
    assert [
        each.word for each in world.reader.snapshot().completions(Search(BoundQuery(), EVERYTHING, 0, 0), "mas", 9)
    ] == ["maschine", "maschinen"]
    search = Search(BoundQuery((), says("dampf")), EVERYTHING, 0, 5, marks=True)
    marked = {
        hit.object_id: [hit.excerpt[start:end] for start, end in hit.marks or ()]
        for hit in world.reader.snapshot().search(search).hits
    }
    assert marked == {key(1): ["Dampfmaschine"], key(4): ["Dampf"]}


@pytest.mark.slow
def test_compounds_are_those_of_the_texts_language(mixed: World) -> None:
    mixed.hold(kept(1, "Kaufvertrag", language_code="de"), kept(2, "Kaufvertrag", language_code="en"))
    assert mixed.find(says("Vertrag")) == [key(1)]
    assert mixed.find(says("Vertrag"), EVERYTHING, "de") == [key(1)]
    assert mixed.find(says("Vertrag"), EVERYTHING, "en") == []
    assert set(mixed.find(says("Kaufvertrag"))) == {key(1), key(2)}


def test_an_index_without_compounds_is_read_as_it_is_and_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr(compounds, "find_spec", lambda _name: None)
        world = World(tmp_path / "index", "German")
        world.hold(kept(1, "Kaufvertrag"))
        assert world.find(says("Vertrag")) == []
        world.writer.close()
        World(tmp_path / "index", "German").writer.close()
    assert world.find(says("Kaufvertrag")) == [key(1)]
    with pytest.raises(OtherFormat, match="compound words"):
        TantivyWriter(tmp_path / "index", "German")


@pytest.mark.slow
def test_an_index_keeps_its_compounds_when_the_dictionary_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path / "index", "German").writer.close()
    monkeypatch.setattr(compounds, "find_spec", lambda _name: None)
    world = World(tmp_path / "index", "German")
    world.hold(kept(1, "Kaufvertrag"))
    assert world.find(says("Vertrag")) == [key(1)]
    (tmp_path / "index" / "compounds-German.json").unlink()
    with pytest.raises(IndexUnavailable, match="incomplete"):
        TantivyIndex(tmp_path / "index").snapshot()


GERMAN = "Die Häuser der Stadt stehen seit vielen Jahren am Ufer des großen Flusses."
ENGLISH = "The houses of the town have been standing near the great river for many years."


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "mixed", "English", ["German", "French"])
    yield made
    made.writer.close()
    made.reader.close()


@pytest.mark.slow
def test_each_object_is_found_by_the_stems_of_its_own_language(mixed: World) -> None:
    mixed.hold(kept(1, GERMAN), kept(2, ENGLISH), kept(3, "Häuser", language_code="de_DE"), kept(4, "Häuser"))
    assert mixed.find(says("Haus")) == [key(3), key(1)], "a text too short to tell is in the index's own language"
    assert mixed.find(says("house")) == [key(2)]
    assert mixed.find(Fulltext(Phrase("Häuser"))) == [key(3), key(4), key(1)]
    assert mixed.find(Fulltext(Phrase("Haus"))) == []
    assert mixed.find(Fulltext(Both((Term("Fluss"), Without(Term("Stadt")))))) == []
    assert mixed.find(says("stadt-stehen")) == [key(1)]


@pytest.mark.slow
def test_a_named_language_counts_more_than_a_detected_one(mixed: World) -> None:
    mixed.hold(kept(1, GERMAN, language_code="en"), kept(2, GERMAN, language_code="Klingon"))
    assert mixed.find(says("Haus")) == [key(2)]


@pytest.mark.slow
def test_a_hit_in_another_language_shows_and_marks_the_word_that_was_found(mixed: World) -> None:
    mixed.hold(kept(1, "Zuerst kommt hier ein Satz ohne das Wort. " * 20 + GERMAN))
    snapshot = mixed.reader.snapshot()
    (hit,) = snapshot.search(Search(BoundQuery((), says("Haus")), EVERYTHING, 0, 5, marks=True)).hits
    assert hit.marks is not None
    assert [hit.excerpt[start:end] for start, end in hit.marks] == ["Häuser"]
    assert hit.terms == ("Haus",)


@pytest.mark.slow
def test_a_word_is_as_rare_as_it_is_in_all_languages_together(mixed: World) -> None:
    """A name that stands in many English texts and in one German text tells no more in the German one."""
    languages = ["en"] * 9 + ["de"]
    mixed.hold(*(kept(at, "Berlin", language_code=language) for at, language in enumerate(languages, 1)))
    scores = {round(hit.score, 4) for hit in mixed.ask(says("Berlin")).hits}
    assert len(scores) == 1


@pytest.mark.slow
def test_a_title_is_read_in_no_language_that_only_the_hidden_text_shows(mixed: World) -> None:
    mixed.hold(kept(1, GERMAN, title="Häuser"), kept(2, GERMAN, title="Häuser", language_code="de"))
    browse = Visible(browse_acls=frozenset({1}))
    assert mixed.find(says("Haus"), browse) == [key(2)]
    assert mixed.find(says("Haus")) == [key(1), key(2)]


@pytest.mark.slow
def test_an_explanation_knows_the_language(mixed: World) -> None:
    mixed.hold(kept(1, GERMAN, title="Häuser am Ufer"))
    search = Search(BoundQuery((), Fulltext(Both((Term("Haus"), Term("Fluss"))))), EVERYTHING, 0, 5)
    examined = mixed.reader.snapshot().examine(search, key(1))
    assert examined is not None
    assert [(leaf.in_text, leaf.properties) for leaf in examined.leaves] == [(True, ("title",)), (True, ())]


@pytest.mark.slow
def test_a_question_in_one_language_meets_its_stems_and_the_same_words_of_others(mixed: World) -> None:
    mixed.hold(
        kept(1, "Gifte", language_code="de"), kept(2, "gifts", language_code="en"), kept(3, "gift", language_code="fr")
    )

    def found(text: str, locale: str) -> set[str]:
        return set(mixed.find(says(text), EVERYTHING, locale))

    assert found("Gift", "") == {key(1), key(2), key(3)}
    assert found("Gift", "de_DE") == {key(1), key(3)}
    assert found("Gift", "en") == {key(2), key(3)}
    assert found("gifts", "fr") == {key(2), key(3)}
    assert found("Gift", "pl") == found("Gift", "")


@pytest.mark.slow
def test_a_question_in_one_language_has_its_stop_words(mixed: World) -> None:
    mixed.hold(kept(1, "die Stadt", language_code="de"), kept(2, "they die", language_code="en"))
    words = (Term("die"), Term("Stadt"))
    relaxed = Fulltext(AnyWord(Both(words, loose=True), words))
    assert mixed.find(relaxed) == [key(1), key(2)]
    assert mixed.find(relaxed, EVERYTHING, "de") == [key(1)]


@pytest.mark.slow
def test_other_languages_make_an_index_anew(mixed: World) -> None:
    mixed.writer.close()
    with pytest.raises(OtherFormat, match="in English and French and German, and its texts are in English now"):
        TantivyWriter(mixed.folder, "English")
    mixed.writer = TantivyWriter(mixed.folder, "English", ["German", "English", "French", "German"])


def test_no_index_of_several_languages_is_written_without_the_detector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(languages, "find_spec", lambda _name: None)
    with pytest.raises(IndexUnavailable, match="make languages"):
        TantivyWriter(tmp_path / "index", "English", ["German"])


def test_no_index_and_an_incomplete_one_are_refused(tmp_path: Path, world: World) -> None:
    with pytest.raises(IndexUnavailable, match="no index yet"):
        TantivyIndex(tmp_path / "nothing").snapshot()
    (world.folder / "muniment.json").write_bytes(b"")
    with pytest.raises(IndexUnavailable, match="is incomplete"):
        TantivyIndex(world.folder).snapshot()


def test_a_folder_that_takes_the_place_of_another_is_followed(tmp_path: Path, world: World) -> None:
    world.hold(kept(1, "old"))
    assert world.find(None) == [key(1)]
    rebuilt = TantivyWriter(tmp_path / "rebuilt")
    rebuilt.apply([kept(2, "new")], (), Position(0, 7))
    rebuilt.close()
    world.folder.rename(tmp_path / "left")
    (tmp_path / "rebuilt").rename(world.folder)
    assert world.find(None) == [key(2)]
    assert world.reader.snapshot().position == Position(0, 7)


def test_a_panic_of_the_engine_is_a_refusal() -> None:
    with pytest.raises(IndexUnavailable, match="tried"), failures.as_refusals("it was tried"):
        tantivy.Query.phrase_query(fields.SCHEMA, layout.ANYWHERE.stems, ["one"])
    with pytest.raises(KeyboardInterrupt), failures.as_refusals("it was tried"):
        raise KeyboardInterrupt


@pytest.mark.slow
def test_hostile_queries_stay_cheap(world: World) -> None:
    """failures B7."""
    world.hold(*(kept(at, f"word{at} pump", colour=f"c{at}" * 30, size=at) for at in range(2000)))
    many = tuple(Wild(f"w{at}*") if at % 2 == 0 else Term(f"w{at}") for at in range(1000))
    nested: Condition = says("pump")
    for _ in range(20):
        nested = ConditionSet("OR", (nested, ConditionSet("AND", (nested,))))
    hostile: list[Condition] = [
        Fulltext(Either(many)),
        Fulltext(Both(tuple(Without(part) for part in many))),
        Fulltext(Phrase("a " * 1000)),
        Fulltext(Term("a" * 100_000)),
        Fulltext(Wild("a" * 500 + "*")),
        beginning("colour", "é" * 100_000),
        OneOf("colour", tuple(f"c{at}" * 30 for at in range(1000))),
        OneOf("size", tuple(range(1000))),
        Between("colour", "c1" * 50, "日" * 100),
        Between("colour", "\U0001f600" * 99 + "a", "\U0001f600" * 100),
        Between("size", -(10**30), 10**30),
    ]
    everybody = Visible(browse_acls=frozenset(range(500)), read_acls=frozenset(range(250)))
    for condition in hostile:
        cost = passes.measure(lambda condition=condition: world.ask(condition, everybody, limit=10))  # type: ignore[misc]
        assert cost < 70, condition
    assert world.ask(Between("size", -(10**30), 10**30)).total == 2000


def test_a_name_that_can_be_no_property_is_refused(world: World) -> None:
    for name in ("a b", "a.b", "a:[1 TO 2] OR x", ""):
        with pytest.raises(BadQuery):
            world.ask(Between(name, 1, 2))


def test_a_property_that_nobody_has_yet_finds_nothing(world: World) -> None:
    world.hold(kept(1))
    for condition in (
        Between("later", 1, 2),
        Between("later", 1.0, 2.0),
        Between("later", "a", "b"),
        OneOf("later", ("a", 1, 2.0, True)),
        beginning("later", ""),
    ):
        assert world.find(condition) == []
    world.hold(kept(2, later="ab"))
    assert world.find(Between("later", "a", "b")) == [key(2)]


def test_a_range_of_strings_that_is_upside_down_is_empty() -> None:
    assert of_range("b", "a") == []
    assert of_range("ab", "a") == []
    assert of_range("a", "a") != []


def test_keywords_of_only_punctuation_are_met_by_nothing(world: World) -> None:
    world.hold(kept(1, "pump"))
    nothing: list[Keywords | None] = [None, Term("!"), Phrase("-"), Wild("?*")]
    for keywords in nothing:
        assert world.find(Fulltext(keywords)) == []
