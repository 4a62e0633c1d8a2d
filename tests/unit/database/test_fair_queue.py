"""Turns: so many at a time, the longest-waiting owner next, and nobody waits without limit."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.database import budgets
from muniment.database import fair_queue as web_turns
from muniment.database.budgets import Budget
from muniment.database.fair_queue import Turns, stays
from muniment.ground.refusals import Overloaded


async def _holding(turns: Turns, owner: str, order: list[str], go_on: asyncio.Event) -> None:
    async with turns.turn(owner, 60):
        order.append(owner)
        await go_on.wait()


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def _run(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())


def test_only_so_many_go_on_and_owners_have_turns() -> None:
    async def scene() -> None:
        turns, order, go_on = Turns(1, 10), list[str](), asyncio.Event()
        first = asyncio.create_task(_holding(turns, "first", order, go_on))
        await _settled()
        crowd = [asyncio.create_task(_holding(turns, "crowd", order, go_on)) for _ in range(5)]
        await _settled()
        single = asyncio.create_task(_holding(turns, "single", order, go_on))
        await _settled()
        assert order == ["first"]
        go_on.set()
        await asyncio.gather(first, *crowd, single)
        assert order[:4] == ["first", "crowd", "single", "crowd"]
        assert len(order) == 7

    _run(scene)


def test_an_owner_with_too_many_waiting_is_refused_and_others_are_not() -> None:
    async def scene() -> None:
        turns, order, go_on = Turns(1, 2), list[str](), asyncio.Event()
        held = [asyncio.create_task(_holding(turns, "crowd", order, go_on)) for _ in range(3)]
        await _settled()
        with pytest.raises(Overloaded):
            async with turns.turn("crowd", 60):
                pass
        other = asyncio.create_task(_holding(turns, "other", order, go_on))
        await _settled()
        go_on.set()
        await asyncio.gather(*held, other)
        assert sorted(order) == ["crowd", "crowd", "crowd", "other"]

    _run(scene)


def test_who_waits_too_long_or_leaves_takes_no_place_away() -> None:
    async def scene() -> None:
        turns, order, go_on = Turns(1, 5), list[str](), asyncio.Event()
        held = asyncio.create_task(_holding(turns, "held", order, go_on))
        await _settled()
        with pytest.raises(Overloaded):
            async with turns.turn("hasty", 0):
                pass
        leaving = asyncio.create_task(_holding(turns, "leaving", order, go_on))
        staying = asyncio.create_task(_holding(turns, "staying", order, go_on))
        await _settled()
        leaving.cancel()
        await _settled()
        go_on.set()
        await asyncio.gather(held, staying)
        assert order == ["held", "staying"]
        async with turns.turn("anybody", 0):  # the place is free again
            pass

    _run(scene)


def test_who_leaves_at_the_moment_of_their_turn_passes_it_on() -> None:
    async def scene() -> None:
        turns, order, go_on = Turns(1, 5), list[str](), asyncio.Event()
        held = asyncio.create_task(_holding(turns, "held", order, go_on))
        await _settled()
        leaving = asyncio.create_task(_holding(turns, "leaving", order, go_on))
        staying = asyncio.create_task(_holding(turns, "staying", order, go_on))
        await _settled()
        go_on.set()
        held.add_done_callback(lambda _: leaving.cancel())
        await asyncio.gather(held, staying)
        await asyncio.gather(leaving, return_exceptions=True)
        async with turns.turn("anybody", 0):
            pass
        assert "staying" in order

    _run(scene)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_one_owner_runs_one_at_a_time_and_leaves_the_other_slot_free() -> None:
    async def scene() -> None:
        turns, order, go_on = Turns(2, 10, 1), list[str](), asyncio.Event()
        crowd = [asyncio.create_task(_holding(turns, "crowd", order, go_on)) for _ in range(3)]
        await _settled()
        assert order == ["crowd"]
        single = asyncio.create_task(_holding(turns, "single", order, go_on))
        await _settled()
        assert order == ["crowd", "single"]
        go_on.set()
        await asyncio.gather(*crowd, single)
        assert order == ["crowd", "single", "crowd", "crowd"]

    _run(scene)


def test_who_has_used_less_time_is_next_however_late_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    async def scene() -> None:
        nonlocal now
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
        turns, order = Turns(1, 10), list[str]()
        held = {owner: asyncio.Event() for owner in ("heavy", "other", "light")}
        running = [asyncio.create_task(_holding(turns, "heavy", order, held["heavy"]))]
        await _settled()
        running += [asyncio.create_task(_holding(turns, owner, order, held[owner])) for owner in ("heavy", "other")]
        await _settled()
        now = 5.0
        held["heavy"].set()  # it has used 5 seconds, and the other one goes on
        await _settled()
        assert order == ["heavy", "other"]
        running.append(asyncio.create_task(_holding(turns, "light", order, held["light"])))
        await _settled()
        now = 6.0
        held["other"].set()
        await _settled()
        assert order == ["heavy", "other", "light"], "heavy waited longer, but has used more"
        held["light"].set()
        await asyncio.gather(*running)
        assert order == ["heavy", "other", "light", "heavy"]

    _run(scene)


def test_a_caller_who_has_left_gets_no_turn_and_work_under_way_ends_between_two_steps(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_turns, "_LOOK_SECONDS", 0.001)
    begun, done, rounds = threading.Event(), list[str](), threading.Event()

    def endless() -> None:
        begun.set()
        while not rounds.wait(0.001):
            budgets.check()

    async def scene() -> None:
        turns, gone = Turns(1, 10), asyncio.Event()

        async def has_left() -> bool:
            return gone.is_set()

        first = asyncio.create_task(turns.run("a", 60, threads, Budget(60), endless, has_left))
        await asyncio.to_thread(begun.wait)
        waiting = asyncio.create_task(turns.run("a", 60, threads, Budget(60), lambda: done.append("a"), has_left))
        stayed = asyncio.create_task(turns.run("b", 60, threads, Budget(60), lambda: done.append("b"), stays))
        await _settled()
        gone.set()
        for left in (first, waiting):
            with pytest.raises(Overloaded, match="left"):
                await left
        await stayed
        assert done == ["b"]

    try:
        _run(scene)
    finally:
        rounds.set()


def test_work_ends_early_while_somebody_waits_who_has_used_no_more(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_turns, "_SHARED_SECONDS", 0.0)
    begun, rounds = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        while not rounds.wait(0.001):
            budgets.check()

    async def scene() -> None:
        turns = Turns(1, 10)
        long = asyncio.create_task(turns.run("long", 60, threads, Budget(60), endless, stays))
        await asyncio.to_thread(begun.wait)
        own = asyncio.create_task(turns.run("long", 60, threads, Budget(60), lambda: "own", stays))
        await _settled()
        assert not long.done(), "nobody else waits"
        assert await turns.run("other", 60, threads, Budget(60), lambda: "other", stays) == "other"
        with pytest.raises(Overloaded, match="others wait"):
            await long
        assert await own == "own"

    try:
        _run(scene)
    finally:
        rounds.set()


def test_nothing_ends_early_for_somebody_who_waits_for_their_own_work_alone(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_turns, "_SHARED_SECONDS", 0.0)

    async def scene() -> None:
        turns, go_on, budget = Turns(2, 10, 1), threading.Event(), Budget(60)
        crowd = [asyncio.create_task(turns.run("a", 60, threads, Budget(60), go_on.wait, stays)) for _ in range(2)]
        single = asyncio.create_task(turns.run("b", 60, threads, budget, go_on.wait, stays))
        await _settled()
        assert not budget.is_cut, "the second of the crowd would not get the slot"
        waiting = asyncio.create_task(turns.run("c", 60, threads, Budget(60), go_on.wait, stays))
        await _settled()
        assert budget.is_cut
        go_on.set()
        assert all(await asyncio.gather(*crowd, single, waiting))

    _run(scene)
