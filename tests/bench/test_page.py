"""The bench's page says what was met, what was missed and what was never measured."""

from bench import page


def test_a_target_is_met_from_its_side_and_the_aim_is_said_apart() -> None:
    rates = page.compared("r", "work", "peer", [10, 30, 20], [5, 40, 10], target=page.at_least(1.5, 3))
    times = page.compared("r", "work", "peer", [4, 9, 5], [1, 1, 1], unit=" ms", target=page.at_most(3, 2))
    aimed = page.compared("r", "work", "peer", [2], [2], unit=" ms", target=page.at_most(1.2, 1))
    assert (rates.ratio, rates.met, rates.aimed, rates.must, rates.aim) == (2.0, True, False, ">= 1.5x", ">= 3x")
    assert (times.ratio, times.met, times.aimed, times.must, times.aim) == (5.0, False, False, "<= 3x", "<= 2x")
    assert (aimed.met, aimed.aimed) == (True, True)
    assert "| yes |" in page.table([rates])[2]
    assert "| yes, aim |" in page.table([aimed])[2]


def test_a_missed_target_and_a_skipped_peer_are_seen_in_the_table() -> None:
    missed = page.compared("r", "slow work", "peer", [1], [2], target=page.at_least(1))
    skipped = page.skipped("r", "other work", "peer", "no network", page.at_least(2))
    broken = page.broken("r", ValueError("a fault"))
    rows = page.table([missed, skipped, broken])[2:]
    assert ["**no**" in rows[0], "skipped" in rows[1], "broke" in rows[2]] == [True, True, True]
    assert ">= 2x" in rows[1]
    assert "yes" not in "".join(rows)
