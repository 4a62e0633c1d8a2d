"""The pieces of a download are read while others are sent, also for a caller who takes each at once."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.endpoints.contents import contents


def test_the_next_pieces_are_read_while_one_is_sent_to_a_caller_who_takes_it_at_once() -> None:
    """No read began before all that was read had been sent: each waited for the other."""
    reads = list[int]()

    async def off_loop(work: Callable[..., Any], *arguments: Any) -> Any:
        reads.append(1)
        return await asyncio.to_thread(work, *arguments)

    async def take() -> None:
        context = cast(RepositoryContext, SimpleNamespace(transactions=SimpleNamespace(off_loop=off_loop)))
        pieces = contents._pieces(context, b"0", iter([b"%d" % number for number in range(1, 6)]))
        assert (await anext(pieces), len(reads)) == (b"0", 1)
        assert (await anext(pieces), len(reads)) == (b"1", 2)
        assert [piece async for piece in pieces] == [b"2", b"3", b"4", b"5"]

    asyncio.run(take())
