"""Every row has one name, and a search is a record that says what each side is asked."""

from bench import cluster_rows
from bench.__main__ import GROUPS, ROWS
from bench.search_kinds import CLIENTS, KINDS


def test_a_row_is_in_one_group_and_a_plain_run_leaves_out_those_that_take_long() -> None:
    assert len(set(ROWS)) == len(ROWS)
    asked_for = [row for group in GROUPS if group.asked_for for row in group.rows]
    of_a_million = ["directory-list-growth", "directory-list-growth-postgresql"]
    of_a_million += ["growth", "meaning-growth", "children-growth", "import-rate-growth"]
    assert asked_for == [*cluster_rows.ROWS, *of_a_million]


def test_every_kind_of_search_has_its_words_in_all_three_languages() -> None:
    for kind in KINDS:
        assert "parchment" in kind.ours(["parchment"])
        assert "parchment" in str(kind.theirs(["parchment"]))
        assert set(kind.p50) <= set(CLIENTS)
        assert set(kind.throughput) <= set(CLIENTS)
