"""Counts of a minute, kept together by the processes of one server in a file of fixed size."""

import multiprocessing
from pathlib import Path

import pytest

from muniment.ground.tally import Count, Tally


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.counts"


def told(tally: Tally, key: str, times: int, minute: int = 1) -> int:
    return sum(tally.count(key, key, minute)[0] for _ in range(times))


def test_the_first_ten_of_a_key_are_told_and_the_rest_is_one_count(path: Path) -> None:
    tally = Tally(path)
    assert (told(tally, "alice", 25), told(tally, "bob", 3)) == (10, 3)
    assert tally.settle(1) == []
    assert tally.settle(2) == [Count("alice", 15)]
    assert tally.settle(2) == []
    assert told(tally, "alice", 25, minute=2) == 10


def test_the_next_minutes_first_one_brings_what_the_one_before_left(path: Path) -> None:
    tally = Tally(path)
    told(tally, "alice", 12)
    assert tally.count("bob", "bob", 2) == (True, [Count("alice", 2)])


def test_when_the_server_stops_the_minute_under_way_is_told_too_and_only_once(path: Path) -> None:
    one, other = Tally(path), Tally(path)
    told(one, "alice", 12)
    assert other.settle(1, include_present=True) == [Count("alice", 2)]
    assert one.settle(1, include_present=True) == []
    assert told(one, "alice", 5) == 0
    assert other.settle(2) == [Count("alice", 5)]


def test_what_was_left_is_told_after_the_next_start(path: Path) -> None:
    told(Tally(path), "alice", 12)
    assert Tally(path).settle(7) == [Count("alice", 2)]


def _count_many(path: Path, told_by: "multiprocessing.SimpleQueue[int]") -> None:
    told_by.put(told(Tally(path), "alice", 500))


@pytest.mark.slow
def test_processes_count_together(path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    children = [fork.Process(target=_count_many, args=(path, queue)) for _ in range(4)]
    for child in children:
        child.start()
    assert sum(queue.get() for _ in children) == 10
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert Tally(path).settle(2) == [Count("alice", 1990)]


@pytest.mark.slow
def test_the_file_does_not_grow_however_many_accounts_there_are(path: Path) -> None:
    tally = Tally(path)
    apart = sum(told(tally, f"account {number}", 1) for number in range(20_000))
    assert 100 < apart < 256
    assert path.stat().st_size < 60_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert tally.settle(2) == [Count("", 20_000 - apart)]


@pytest.mark.parametrize("unusable", [None, Path("/nowhere/at/all"), Path("/dev/full")])
def test_without_a_file_a_process_counts_alone(unusable: Path | None) -> None:
    tally = Tally(unusable)
    assert told(tally, "alice", 12) == 10
    assert tally.settle(2) == [Count("alice", 2)]


def test_a_long_label_is_cut_and_one_that_is_not_unicode_harms_nothing(path: Path) -> None:
    tally = Tally(path)
    for _ in range(11):
        tally.count("\udcff" * 500, "é" * 500 + "\udcff", 1)
    (count,) = tally.settle(2)
    assert count.label == "é" * 89
