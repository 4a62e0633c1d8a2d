"""Long answers that wait for their callers: each caller has a share of the memory, and who has most makes room."""

import asyncio

import pytest
from starlette.types import Scope

from muniment.ground.refusals import Overloaded
from muniment.web.answers.unsent import CALLER, Unsent

MOST = 100
SHARE = 25


def scope(caller: str) -> Scope:
    return {"type": "http", "client": ("192.0.2.1", 1), CALLER: caller}


def test_a_caller_may_have_one_answer_of_any_size_or_several_within_the_share() -> None:
    async def ask() -> None:
        unsent = Unsent(MOST)
        async with unsent.hold(scope("ann"), SHARE + 1):
            with pytest.raises(Overloaded):
                unsent.hold(scope("ann"), 1)
            async with unsent.hold(scope("bob"), 10), unsent.hold(scope("bob"), 15):
                with pytest.raises(Overloaded):
                    unsent.hold(scope("bob"), 1)
        async with unsent.hold(scope("ann"), 1):
            pass

    asyncio.run(ask())


def test_callers_who_are_unknown_are_told_apart_by_their_addresses() -> None:
    async def ask() -> None:
        unsent = Unsent(MOST)
        unknown: Scope = {"type": "http", "client": ("192.0.2.1", 1)}
        async with unsent.hold(unknown, SHARE), unsent.hold({**unknown, "client": ("192.0.2.2", 1)}, SHARE):
            with pytest.raises(Overloaded):
                unsent.hold({**unknown, "client": ("192.0.2.1", 2)}, 1)

    asyncio.run(ask())


def test_in_a_full_worker_the_oldest_answer_of_whoever_has_most_makes_room() -> None:
    ended: list[str] = []

    async def read(unsent: Unsent, caller: str, size: int) -> None:
        try:
            async with unsent.hold(scope(caller), size):
                await asyncio.Event().wait()
        except Overloaded:
            ended.append(caller)

    async def ask() -> None:
        unsent = Unsent(MOST)
        reading = [
            asyncio.create_task(read(unsent, caller, size)) for caller, size in (("ann", 30), ("bob", 40), ("eve", 20))
        ]
        await asyncio.sleep(0)
        async with unsent.hold(scope("dan"), 15):
            await asyncio.wait([reading[1]], timeout=30)
        with pytest.raises(Overloaded):
            unsent.hold(scope("eve"), 80)
        with pytest.raises(Overloaded):
            unsent.hold(scope("dan"), 90)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    asyncio.run(ask())
    assert ended == ["bob"]
