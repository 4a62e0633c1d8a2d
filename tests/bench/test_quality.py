"""What a run shows of a set is held against the targets, kept by release, and written into its own part of the page."""

from importlib.util import find_spec
from math import log2
from pathlib import Path

import pytest

from bench import page
from bench.quality import measure, report
from bench.quality.__main__ import SKIPPED, main
from bench.quality.judged import Document, JudgedSet, Query
from bench.quality.measure import BARE, JOINED, TYPED, Asked, Scores, SetMeasured

measures = pytest.mark.skipif(find_spec("ir_measures") is None, reason="ir-measures has no wheel for this machine")


def judged(relevance: dict[str, dict[str, int]]) -> JudgedSet:
    documents = [Document(name, f"the {name} and others") for name in ("heron", "owl", "otter")]
    return JudgedSet("set", documents, [Query(one, one) for one in relevance], relevance)


def cranfield(typed: float, joined: float, nothing: int = 0, wordless: int = 0) -> SetMeasured:
    def asked(way: str, ndcg: float) -> Asked:
        scores = Scores(ndcg, 0.25, 0.75)
        return Asked(way, scores, scores, scores, nothing, 200, wordless)

    return SetMeasured("cranfield", 1400, 225, [asked(TYPED, typed), asked(JOINED, joined), asked(BARE, 0.5)])


@measures
def test_the_order_of_the_hits_is_scored_and_a_query_without_hits_counts_as_nothing() -> None:
    one = judged({"q1": {"heron": 3, "owl": 1}, "q2": {"otter": 1}, "q3": {"otter": 1}})
    found = measure.asked(TYPED, one, [["otter", "owl", "heron"], [], ["otter"]])
    first = (1 / log2(3) + 3 / log2(4)) / (3 + 1 / log2(3))
    assert found.whole.ndcg == pytest.approx((first + 0 + 1) / 3)
    assert found.whole.map == pytest.approx(((1 / 2 + 2 / 3) / 2 + 0 + 1) / 3)
    assert found.whole.recall == pytest.approx(2 / 3)
    assert found.odd.ndcg == pytest.approx((first + 1) / 2)
    assert (found.even.ndcg, found.nothing) == (0, 1)


@measures
def test_recall_looks_at_a_hundred_hits_and_ndcg_at_ten() -> None:
    others = [f"other{number}" for number in range(100)]
    one = judged({"q1": {"heron": 1}})
    tenth = measure.asked(TYPED, one, [[*others[:10], "heron"]])
    assert (tenth.whole.ndcg, tenth.whole.recall) == (0, 1)
    assert measure.asked(TYPED, one, [[*others, "heron"]]).whole.recall == 0
    assert measure.asked(TYPED, one, [[*others, "heron"]]).whole.map == pytest.approx(1 / 101)


def test_the_bare_engine_finds_any_word_in_any_form_and_no_operator() -> None:
    documents = judged({}).documents
    assert measure.bare(documents, ["HERONS NOT flying", "of whales", "..."]) == [["heron"], [], []]
    assert measure.bare([Document("1", "", "A title")], ["titles"]) == [["1"]]


def test_words_are_joined_without_those_that_are_operators() -> None:
    assert measure.joined_by_or("what is high-speed AND not slow .") == "what OR is OR high OR speed OR slow"
    assert measure.joined_by_or("and") == "and"


def test_an_excerpt_needs_a_word_of_the_query_that_is_no_stop_word() -> None:
    query = "what are the problems of heated aircraft"
    assert measure.holds_content_word("A problem of theirs.", query)
    assert not measure.holds_content_word("What the others are made of.", query)


def test_a_figure_is_held_against_what_must_be_reached_and_against_the_aim() -> None:
    reached, missed, nothing, wordless = report.rows([cranfield(0.55, 0.539, nothing=1, wordless=1)])
    assert (reached.met, reached.aimed, reached.figure, reached.beside) == (True, True, "0.5500", "0.5000")
    assert (missed.met, missed.aimed, missed.must) == (False, False, ">= 0.54")
    assert (nothing.figure, nothing.met) == ("1 of 225", False)
    assert (wordless.figure, wordless.met, wordless.aimed) == ("1 of 200 (0.5%)", True, False)
    table = report.table([reached, missed, wordless])
    assert ["| yes, aim |" in table[2], "| **no** |" in table[3], "| yes |" in table[4]] == [True, True, True]


def test_a_set_without_targets_has_figures_alone() -> None:
    other = SetMeasured("ours", 3, 2, cranfield(0.1, 0.1).ways)
    assert [row.what for row in report.rows([other])] == ["ours: queries that find nothing, as typed"]
    assert "ours (3 documents, 2 queries) | as typed | 0.1000 | 0.2500 | 0.7500 | 0 |" in "\n".join(
        report.figures([report.Release("1.0", {"ours": other})])
    )


def test_a_run_replaces_the_figures_of_its_release_and_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "benchmarks.md"
    written.write_text(f"a\n{page.MARKS[0]}\nspeed\n{page.MARKS[1]}\nb\n{report.MARKS[0]}\n{report.MARKS[1]}\nc\n")
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(report, "KEPT", tmp_path / "measured.json")
    releases = iter(["1.0", "1.1", "1.1"])
    now = {"release": ""}
    monkeypatch.setattr(report, "version", lambda name: now["release"] if name == "muniment" else "0")
    for ndcg in (0.61, 0.5, 0.62):
        now["release"] = next(releases)
        assert report.keep([cranfield(ndcg, 0.6)], quick=False) == (ndcg > 0.53)
    assert report.keep([cranfield(0.9, 0.9)], quick=True)
    text = written.read_text()
    assert text.startswith(f"a\n{page.MARKS[0]}\nspeed\n{page.MARKS[1]}\nb\n{report.MARKS[0]}\nRelease 1.1, ")
    assert text.endswith(f"\n{report.MARKS[1]}\nc\n")
    assert [line.split(" | ")[3] for line in text.splitlines() if "| as typed |" in line] == ["0.6200", "0.6100"]
    assert "0.9000" in capsys.readouterr().out


def test_without_a_folder_the_run_says_what_to_give_and_that_it_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench.quality"])
    assert main() == SKIPPED
    assert "make quality SETS=folder" in capsys.readouterr().err


@measures
def test_a_mistake_in_a_set_ends_the_run_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "docs.jsonl").write_text("{}\n")
    monkeypatch.setattr("sys.argv", ["bench.quality", str(tmp_path)])
    assert main() == 1
    assert "docs.jsonl:1: " in capsys.readouterr().err
