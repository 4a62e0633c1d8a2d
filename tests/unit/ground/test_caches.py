"""What does a process remember, and what does it let go?"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.ground.caches import Cache


def test_an_answer_is_worked_out_once() -> None:
    memory: Cache[str, list[str]] = Cache(10)
    first = memory.answer("a", lambda: ["worked out"])
    assert memory.answer("a", lambda: ["worked out"]) is first
    assert memory.recall("a") is first
    assert memory.recall("b") is None


def test_an_answer_that_is_false_is_an_answer() -> None:
    memory: Cache[str, bool] = Cache(10)
    assert memory.answer("a", lambda: False) is False
    assert memory.answer("a", lambda: True) is False


def test_the_oldest_answers_go_first_when_there_are_too_many() -> None:
    memory: Cache[int, str] = Cache(3)
    for number in range(5):
        memory.keep(number, str(number))
    assert [memory.recall(number) for number in range(5)] == [None, None, "2", "3", "4"]


def test_weights_count_together() -> None:
    memory: Cache[str, str] = Cache(10)
    for name, weight in (("a", 4), ("b", 4), ("c", 6)):
        memory.keep(name, name, weight)
    assert [memory.recall(name) for name in "abc"] == [None, "b", "c"]


def test_what_is_heavier_than_all_is_returned_and_not_kept() -> None:
    memory: Cache[str, str] = Cache(10)
    memory.keep("a", "a")
    assert memory.keep("b", "b", 11) == "b"
    assert (memory.recall("a"), memory.recall("b")) == ("a", None)


def test_an_answer_that_is_kept_twice_counts_once() -> None:
    memory: Cache[str, str] = Cache(2)
    for name in ("a", "a", "a", "b"):
        memory.keep(name, name)
    assert [memory.recall(name) for name in "ab"] == ["a", "b"]


@pytest.mark.slow
def test_threads_share_it() -> None:
    memory: Cache[int, int] = Cache(50)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: memory.answer(number % 100, lambda: number % 100), range(20_000)))
    assert answers == [number % 100 for number in range(20_000)]
    assert sum(memory.recall(number) is not None for number in range(100)) == 50
