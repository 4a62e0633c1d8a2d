"""A caller has so many downloads and uploads under way at most, and a place is free again however its stream ended."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette

from muniment.repository.api import routes
from muniment.repository.options import RepositoryOptions
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from tests.shelf import MARTA, Shelf
from tests.waiting import until_on_loop

MOST = 3
LARGE = 16 << 20
"""Bytes that no socket's buffers hold."""


class Site:
    """A repository with one large document, whose callers may download and upload three at a time."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        options = RepositoryOptions(max_downloads=MOST, max_uploads=MOST, stream_check_seconds=1)
        self.half = shelf.context(options)
        self.answer = Starlette(routes=routes.routes(self.half))
        content = self.half.store.put(bytes(1 << 20) for _ in range(LARGE >> 20))
        new = NewObject("document", {"object_name": "large", "acl_name": "public"}, None, content)
        with shelf.database.begin() as cx:
            self.id = creation.create_all(cx, shelf.view(MARTA), [new], shelf.now)[0].id
        self.media = f"/rest/repositories/demo/objects/{self.id}/content-media"

    def scope(self, method: str, path: str, token: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
        """Write the head of a request."""
        path, _, query = path.partition("?")
        return {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"authorization", f"Bearer {token}".encode()), *headers],
            "server": ("testserver", 80),
            "scheme": "http",
            "http_version": "1.1",
        }

    async def download(
        self, token: str, send: Callable[[Any], Awaitable[None]], receive: Callable[[], Awaitable[Any]] | None = None
    ) -> None:
        """Ask for the large document."""

        async def stay() -> Any:
            await asyncio.Event().wait()

        with suppress(Exception):
            await self.answer(self.scope("GET", self.media, token), receive or stay, send)


@pytest.fixture
def site(shelf: Shelf) -> Site:
    return Site(shelf)


class Reader:
    """A caller who reads the head and one piece, and then waits, or goes on when told to."""

    def __init__(self) -> None:
        self.status, self.goes_on, self.received = 0, asyncio.Event(), asyncio.Event()
        self.headers: dict[bytes, bytes] = {}

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        self.received.set()
        if message["type"] == "http.response.body":
            await self.goes_on.wait()


async def begun(site: Site, token: str, count: int) -> tuple[list[Reader], list["asyncio.Task[None]"]]:
    readers = [Reader() for _ in range(count)]
    tasks = [asyncio.create_task(site.download(token, reader)) for reader in readers]
    for reader in readers:
        await asyncio.wait_for(reader.received.wait(), 60)
    return readers, tasks


@pytest.mark.slow
def test_one_download_more_than_a_caller_may_have_is_told_to_come_again(site: Site) -> None:
    async def scene() -> None:
        readers, tasks = await begun(site, "marta", MOST)
        assert [reader.status for reader in readers] == [200] * MOST
        (refused,), (ended,) = await begun(site, "marta", 1)
        refused.goes_on.set()
        await ended
        assert refused.status == 503
        assert int(refused.headers[b"retry-after"]) >= 1
        (other,), (theirs,) = await begun(site, "boris", 1)
        assert other.status == 200, "another caller has places of their own"
        for reader in (*readers, other):
            reader.goes_on.set()
        await asyncio.gather(*tasks, theirs)
        assert site.half.downloads.count() == 0
        (again,), (last,) = await begun(site, "marta", 1)
        assert again.status == 200
        again.goes_on.set()
        await last

    asyncio.run(scene())


@pytest.mark.slow
def test_a_place_is_free_however_its_download_ends(site: Site) -> None:
    async def broken(_message: Any) -> None:
        raise OSError("the caller is gone")

    def leaves_after(reader: Reader) -> Callable[[], Awaitable[Any]]:
        async def left() -> Any:
            await reader.received.wait()
            return {"type": "http.disconnect"}

        return left

    async def scene() -> None:
        await site.download("marta", broken)
        assert site.half.downloads.count() == 0, "the head could not be sent"
        reader = Reader()
        await site.download("marta", reader, leaves_after(reader))
        assert site.half.downloads.count() == 0, "the caller left"
        _, (task,) = await begun(site, "marta", 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert site.half.downloads.count() == 0, "the request was given up"
        _, (task,) = await begun(site, "marta.2", 1)
        site.shelf.signed_out.add("marta.2")
        await task
        assert site.half.downloads.count() == 0, "the right has ended"
        absent = site.scope("GET", site.media.replace(site.id, "0" * 16), "marta")
        told = Reader()
        told.goes_on.set()
        await site.answer(absent, leaves_after(told), told)
        assert told.status == 404
        assert site.half.downloads.count() == 0, "there is nothing to download"

    asyncio.run(scene())


def test_one_upload_more_than_a_caller_may_have_is_told_to_come_again(site: Site) -> None:
    create = "/rest/repositories/demo/objects?object-name=a.bin"
    kind = (b"content-type", b"application/octet-stream")

    async def scene() -> None:
        goes_on, arrived = asyncio.Event(), 0

        async def body() -> Any:
            nonlocal arrived
            arrived += 1
            await goes_on.wait()
            return {"type": "http.request", "body": b"words", "more_body": False}

        readers = [Reader() for _ in range(MOST + 1)]
        for reader in readers:
            reader.goes_on.set()
        answers = [site.answer(site.scope("POST", create, "marta", kind), body, reader) for reader in readers[:MOST]]
        tasks = [asyncio.create_task(answer) for answer in answers]
        await until_on_loop(lambda: arrived >= MOST, "the uploads do not begin")
        assert site.half.uploads.count() == MOST
        await site.answer(site.scope("POST", create, "marta", kind), body, readers[MOST])
        assert (readers[MOST].status, arrived) == (503, MOST)
        metadata = site.scope(
            "POST", "/rest/repositories/demo/objects", "marta", (b"content-type", b"application/json")
        )

        async def described() -> Any:
            return {"type": "http.request", "body": b'{"properties": {"object_name": "a"}}', "more_body": False}

        unbothered = Reader()
        unbothered.goes_on.set()
        await site.answer(metadata, described, unbothered)
        assert unbothered.status == 201
        goes_on.set()
        await asyncio.gather(*tasks)
        assert [reader.status for reader in readers[:MOST]] == [201] * MOST
        assert site.half.uploads.count() == 0

    asyncio.run(scene())
