"""A judged set goes through a served house: uploaded, found, and scored with figures that can be told beforehand."""

from importlib.util import find_spec
from math import log2
from pathlib import Path

import pytest

from bench import ours
from bench.quality.judged import Document, JudgedSet, Query
from bench.quality.measure import BARE, BOTH, BY_MEANING, MEANT, TYPED, by_meaning, measured
from muniment.repository.search.meaning import model

FILLER = " ".join(f"word{number}" for number in range(40))

BIRDS = JudgedSet(
    "birds",
    [
        Document("often", "Pelican pelican pelican."),
        Document("twice", f"A pelican beside a pelican, and {FILLER}."),
        Document("once", f"One pelican, and {FILLER} {FILLER}.", author="Ana"),
        Document("heron", "How a heron is drawn."),
        Document("titled", "", title="The quetzal"),
    ],
    [
        Query("drawn", "what herons were drawn?"),
        Query("third", "pelicans"),
        Query("absent", "zeppelin"),
        Query("half", "quetzals"),
    ],
    {"drawn": {"heron": 2}, "third": {"once": 1}, "absent": {"often": 1}, "half": {"titled": 1, "often": 1}},
)


@pytest.mark.campaign
@pytest.mark.skipif(find_spec("ir_measures") is None, reason="ir-measures has no wheel for this machine")
def test_a_set_is_uploaded_and_its_hits_are_scored_page_by_page(tmp_path: Path) -> None:
    with ours.serving(ours.prepare(tmp_path / "data"), "repository.items_per_page=2") as site:
        found, ids = measured(site, BIRDS)
    assert sorted(ids.values()) == sorted(each.id for each in BIRDS.documents)
    assert (found.name, found.documents, found.queries) == ("birds", 5, 4)
    third, half = 1 / log2(4), 1 / (1 + 1 / log2(3))
    for asked in found.ways:
        assert asked.whole.ndcg == pytest.approx((1 + third + 0 + half) / 4)
        assert asked.whole.map == pytest.approx((1 + 1 / 3 + 0 + 1 / 2) / 4)
        assert asked.whole.recall == pytest.approx((1 + 1 + 0 + 1 / 2) / 4)
        assert asked.odd.ndcg == pytest.approx(1 / 2)
        assert asked.even.ndcg == pytest.approx((third + half) / 2)
        assert asked.nothing == 1
    ways = {asked.way: asked for asked in found.ways}
    assert (ways[TYPED].excerpts, ways[TYPED].wordless, ways[BARE].excerpts) == (5, 0, 0)


MEANT_BIRDS = JudgedSet(
    "meant",
    [
        Document("plumage", "The colourful plumage of parrots is moulted once a year."),
        Document("engine", "An automobile needs a new engine."),
        Document("bread", "Dough is kneaded and baked in an oven."),
    ],
    [Query("birds", "why do birds lose feathers?"), Query("car", "car motor")],
    {"birds": {"plumage": 1}, "car": {"engine": 1}},
)


@pytest.mark.campaign
@pytest.mark.skipif(find_spec("ir_measures") is None, reason="ir-measures has no wheel for this machine")
def test_a_set_is_asked_by_meaning_of_a_served_house(tmp_path: Path) -> None:
    try:
        model.check()
    except model.ModelMissing as error:
        pytest.skip(str(error))
    data = ours.prepare(tmp_path / "data", BY_MEANING)
    with ours.serving(data) as site:
        without, ids = measured(site, MEANT_BIRDS)
        ways = {asked.way: asked for asked in by_meaning(site, MEANT_BIRDS, ids)}
    assert {asked.way: asked.nothing for asked in without.ways}[BARE] == 2, "no word of the questions is there"
    assert ways[MEANT].whole.ndcg == ways[BOTH].whole.ndcg == 1
