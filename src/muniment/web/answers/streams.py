"""Send a long answer piece by piece, and stop when the caller may no longer have it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Stream(StreamingResponse):
    """Awaits ``check`` every ``check_bytes`` bytes and every ``check_seconds``.

    If it raises, nothing more is sent and the connection is closed. ``pieces`` is always closed, even when the caller
    leaves.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        status: int,
        headers: Mapping[str, str],
        check: Callable[[], Awaitable[None]],
        *,
        check_bytes: int,
        check_seconds: float,
    ) -> None:
        super().__init__(pieces, status, headers)
        self._pieces = pieces
        self._check = check
        self._check_bytes = check_bytes
        self._check_seconds = check_seconds

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send(send))
        # The sender waits for a caller who reads slowly or not at all. The check must run meanwhile.
        watchers = [asyncio.create_task(self._watch()), asyncio.create_task(_caller_leaves(receive))]
        try:
            await asyncio.wait([sending, *watchers], return_when=asyncio.FIRST_COMPLETED)
            for task in (sending, *watchers):
                if task.done():
                    return task.result()
        finally:
            for task in (sending, *watchers):
                task.cancel()
            await asyncio.gather(sending, *watchers, return_exceptions=True)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        unchecked = 0
        async for piece in self._pieces:
            if unchecked + len(piece) > self._check_bytes:
                await self._check()
                unchecked = 0
            unchecked += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            await self._check()


async def _caller_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
