"""The bench's page says what was met, what was missed and what was never measured."""

from bench import page


def test_of_rates_more_is_better_of_times_less() -> None:
    rates = page.compared("r", "work", "peer", [10, 30, 20], [5, 40, 10], must=1.5)
    times = page.compared("r", "work", "peer", [4, 9, 5], [1, 1, 1], unit=" ms", must=3)
    assert (rates.ratio, rates.met, rates.must) == (2.0, True, ">= 1.5x")
    assert (times.ratio, times.met, times.must) == (5.0, False, "<= 3x")


def test_a_missed_target_and_a_skipped_peer_are_seen_in_the_table() -> None:
    missed = page.compared("r", "slow work", "peer", [1], [2], must=1)
    skipped = page.skipped("r", "other work", "peer", ">= 2x", "no network")
    broken = page.broken("r", ValueError("a fault"))
    rows = page.table([missed, skipped, broken])[2:]
    assert ["**no**" in rows[0], "skipped" in rows[1], "broke" in rows[2]] == [True, True, True]
    assert "yes" not in "".join(rows)
