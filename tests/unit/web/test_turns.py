"""Turns: so many at a time, the longest-waiting owner next, and nobody waits without limit."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from muniment.web.refusals import Overloaded
from muniment.web.turns import Turns


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
