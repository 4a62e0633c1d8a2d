"""Workers that listen at one socket have about as many connections each, and nobody waits for a worker that is busy."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from muniment.server import acceptor
from muniment.server.acceptor import Acceptor, Crowd, Place
from muniment.server.guests import Guest, Guests
from muniment.web.options import WebOptions


class _Counted(asyncio.Protocol):
    """A protocol that is counted at its worker's place, as that of the listener is."""

    def __init__(self, place: Place, made: asyncio.Semaphore) -> None:
        self._place = place
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._place.enter()
        self._made.release()

    def connection_lost(self, exc: Exception | None) -> None:
        self._place.leave()


def test_connections_that_come_at_one_time_are_shared_evenly() -> None:
    assert asyncio.run(_counts_after(connections=40, workers=4, awake=4)) == [10, 10, 10, 10]


def test_a_worker_with_more_connections_leaves_the_next_ones_to_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "_PATIENCE", 3600)
    assert asyncio.run(_counts_after(connections=10, workers=2, awake=2, before=20)) == [20, 10]


@pytest.mark.parametrize("connections", [1, 2, 8, 100])
def test_a_worker_that_is_busy_keeps_nobody_waiting(connections: int) -> None:
    assert asyncio.run(_counts_after(connections=connections, workers=2, awake=1)) == [connections, 0]


async def _counts_after(*, connections: int, workers: int, awake: int, before: int = 0) -> list[int]:
    """Connect so often to a socket at which the first workers that are awake listen; return how many each has.

    The first worker has some ``before``.
    """
    crowd, made = Crowd(workers), asyncio.Semaphore(0)
    places = [crowd.place(number) for number in range(workers)]
    for _ in range(before):
        places[0].enter()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(connections)
        listening.setblocking(False)
        clients = [socket.create_connection(listening.getsockname()) for _ in range(connections)]
        copies = [listening.dup() for _ in range(awake)]  # as each process has one
        options = WebOptions()
        doors = [
            Acceptor(one, _protocol(place, made), None, place, Guests(options), options)
            for one, place in zip(copies, places, strict=False)
        ]
        for _ in clients:
            await made.acquire()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        for each_door in doors:
            each_door.close()
        for each in (*clients, *copies):
            each.close()
    return [place.connections for place in places]


def _protocol(place: Place, made: asyncio.Semaphore) -> Callable[[Guest], asyncio.BaseProtocol]:
    return lambda _guest: _Counted(place, made)
