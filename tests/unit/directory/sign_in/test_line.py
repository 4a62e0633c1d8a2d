"""Who is next at the gate, and who leaves when the line is full? No clock, no threads: time is handed in."""

import pytest

from muniment.directory.sign_in.line import Asker, Line
from muniment.ground.clock import SECOND, Instant

NOW: Instant = 1_000_000 * SECOND
ATTACKER, HOME, OTHER = "203.0.113.9", "192.0.2.1", "192.0.2.2"


def served(line: Line[str], count: int = 10**6) -> list[str]:
    """Take out who is next, in turn."""
    found = list[str]()
    while len(found) < count and (turn := line.next()):
        found.append(turn[1])
    return found


def wrong(line: Line[str], address: str, account: str, times: int = 1) -> None:
    """Note wrong passwords."""
    for _ in range(times):
        line.note(Asker(address, account), False, NOW)


def test_one_after_the_other_when_nothing_tells_them_apart() -> None:
    line = Line[str](10)
    for number in range(5):
        assert line.join(Asker(HOME, "ann"), str(number), NOW) is None
    assert len(line) == 5
    assert served(line) == ["0", "1", "2", "3", "4"]
    assert line.next() is None
    assert len(line) == 0


def test_each_address_gets_a_turn() -> None:
    """failures C5"""
    line = Line[str](1000)
    for number in range(100):
        line.join(Asker(ATTACKER, f"name {number}"), "attacker", NOW)
    line.join(Asker(HOME, "ann"), "ann", NOW)
    line.join(Asker(OTHER, "bob"), "bob", NOW)
    assert served(line, 4) == ["attacker", "ann", "bob", "attacker"]


def test_each_account_gets_a_turn_at_one_address() -> None:
    """failures C5"""
    line = Line[str](1000)
    for _ in range(100):
        line.join(Asker(HOME, "victim"), "attacker", NOW)
    line.join(Asker(HOME, "ann"), "ann", NOW)
    assert served(line, 2) == ["attacker", "ann"]


def test_where_passwords_were_wrong_lately_one_waits_and_still_gets_one_turn_of_four() -> None:
    """failures C5: behind one application server, whose address is suspect, clean accounts go before suspect ones."""
    line = Line[str](1000)
    for number in range(50):
        wrong(line, ATTACKER, f"name {number}")
        line.join(Asker(ATTACKER, f"name {number}"), "wrong before", NOW)
    for number in range(9):
        line.join(Asker(ATTACKER, f"clean {number}"), f"clean {number}", NOW)
    turns = served(line, 12)
    assert turns.count("wrong before") == 3
    assert [turn for turn in turns if turn != "wrong before"] == [f"clean {number}" for number in range(9)]


def test_a_suspect_address_waits_behind_clean_ones() -> None:
    line = Line[str](1000)
    wrong(line, ATTACKER, "x", 5)
    for number in range(20):
        line.join(Asker(ATTACKER, f"name {number}"), "attacker", NOW)
        line.join(Asker(f"192.0.2.{number}", "ann"), "honest", NOW)
    assert served(line, 20).count("honest") == 15


def test_an_address_turns_suspect_while_it_waits() -> None:
    line = Line[str](1000)
    for number in range(20):
        line.join(Asker(ATTACKER, f"name {number}"), "attacker", NOW)
    for number in range(3):
        line.join(Asker(f"192.0.2.{number}", "ann"), "honest", NOW)
    assert served(line, 1) == ["attacker"]
    wrong(line, ATTACKER, "name 0", 5)
    assert served(line, 4).count("honest") == 3


def test_what_was_wrong_counts_for_a_minute_and_a_right_password_clears_the_account() -> None:
    line = Line[str](1000)
    wrong(line, HOME, "ann")
    wrong(line, HOME, "bob")
    line.note(Asker(HOME, "bob"), True, NOW)
    line.join(Asker(HOME, "ann"), "ann", NOW)
    line.join(Asker(HOME, "bob"), "bob", NOW)
    assert served(line) == ["bob", "ann"]
    line.join(Asker(HOME, "ann"), "ann", NOW + 61 * SECOND)
    line.join(Asker(HOME, "bob"), "bob", NOW + 61 * SECOND)
    assert served(line) == ["ann", "bob"]


def test_a_name_counts_as_typed_whether_it_exists_or_not() -> None:
    """failures A2: the line is told names and results of checks, nothing of the directory."""
    line = Line[str](10)
    wrong(line, HOME, "nobody@nowhere")
    line.join(Asker(HOME, "nobody@nowhere"), "unknown", NOW)
    line.join(Asker(HOME, "ann@demo"), "known", NOW)
    assert served(line) == ["known", "unknown"]


def test_a_known_browser_is_held_up_by_nobody_at_its_address() -> None:
    """failures A5"""
    line = Line[str](1000)
    wrong(line, HOME, "x", 5)
    for number in range(100):
        line.join(Asker(HOME, f"name {number}"), "attacker", NOW)
    line.join(Asker(HOME, "ann", known_browser=True), "ann", NOW)
    assert served(line, 1) == ["ann"]


def test_a_full_line_sends_away_the_newest_of_the_heaviest_address() -> None:
    """failures C5"""
    line = Line[str](5)
    for number in range(5):
        line.join(Asker(ATTACKER, "victim"), f"attacker {number}", NOW)
    assert line.join(Asker(HOME, "ann"), "ann", NOW) == "attacker 4"
    assert line.join(Asker(OTHER, "bob"), "bob", NOW) == "attacker 3"
    assert line.join(Asker(ATTACKER, "victim"), "one more", NOW) == "one more"
    assert len(line) == 5
    assert set(served(line)) == {"attacker 0", "attacker 1", "attacker 2", "ann", "bob"}


def test_a_full_line_at_one_address_makes_room_for_a_lighter_account_only() -> None:
    line = Line[str](4)
    for number in range(3):
        line.join(Asker(HOME, "victim"), f"attacker {number}", NOW)
    line.join(Asker(HOME, "ann"), "ann", NOW)
    assert line.join(Asker(HOME, "bob"), "bob", NOW) == "attacker 2"
    assert line.join(Asker(HOME, "eve"), "eve", NOW) == "attacker 1"
    assert line.join(Asker(HOME, "last"), "last", NOW) == "last", "all are as light"
    wrong(line, HOME, "eve")
    assert line.join(Asker(HOME, "last"), "last", NOW) == "eve", "a clean account is lighter than a suspect one"


@pytest.mark.parametrize("most", [1, 3, 20])
def test_no_more_wait_than_may_whoever_comes(most: int) -> None:
    """failures A26: each who comes is in the line, was served, or was sent away: never two of these, never none."""
    line, gone, taken = Line[str](most), list[str](), list[str]()
    for number in range(500):
        asker = Asker(f"192.0.2.{number * 7 % 11}", f"name {number * 5 % 13}", known_browser=number % 17 == 0)
        leaves = line.join(asker, str(number), NOW + number)
        if leaves is not None:
            gone.append(leaves)
        assert len(line) <= most
        if number % 3 == 0 and (turn := line.next()):
            taken.append(turn[1])
            line.note(turn[0], number % 2 == 0, NOW + number)
    taken += served(line)
    assert sorted(gone + taken) == sorted(map(str, range(500)))


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    """failures A26"""
    line = Line[str](10)
    for number in range(20_000):
        line.note(Asker(f"address {number}", "x" * 1000 + str(number)), False, NOW)
    assert len(line._wrong) <= 4096
