"""An answer that goes out piece by piece, for as long as the caller may have it: the one way to send what is long."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class Stream(StreamingResponse):
    """Pieces on their way out. ``check`` is awaited each so many bytes and seconds; what it raises ends the answer.

    Nothing more is sent then, and the connection is closed: nobody takes half of it for the whole. ``pieces`` is closed
    in every case, also when the caller leaves.
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
        """Send it (ASGI). Raises what ``pieces`` and ``check`` raise."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send(send))
        # A caller who reads slowly, or not at all, is asked about too: the sender waits for them then.
        beside = [asyncio.create_task(self._watch()), asyncio.create_task(_left(receive))]
        try:
            await asyncio.wait([sending, *beside], return_when=asyncio.FIRST_COMPLETED)
            for task in (sending, *beside):
                if task.done():
                    return task.result()
        finally:
            for task in (sending, *beside):
                task.cancel()
            await asyncio.gather(sending, *beside, return_exceptions=True)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        unasked = 0
        async for piece in self._pieces:
            if unasked + len(piece) > self._check_bytes:
                await self._check()
                unasked = 0
            unasked += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            await self._check()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
