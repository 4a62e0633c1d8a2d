"""Receive content, as a body or a part of one, and store it piece by piece.

Sources: docs/interface.md, ours 2 (the parts of a multipart body are known by order and type); RFC 2046 5.1, RFC 7578.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request

from muniment.database.driver_errors import is_undone
from muniment.ground.naming import is_storable
from muniment.ground.refusals import Malformed, TooLarge
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.api.shapes import object_body
from muniment.repository.api.shapes.object_body import Metadata
from muniment.repository.api.wire import multipart
from muniment.repository.bulk.importing import media_types
from muniment.repository.store.content.contract import PIECE, StoredContent
from muniment.repository.store.extraction.queue import ExtractedText
from muniment.repository.store.extraction.readers import plain
from muniment.repository.store.objects.contents import content_references, usage
from muniment.repository.store.objects.contents.usage import StorageQuota
from muniment.repository.store.objects.decisions import contents
from muniment.web.requests import bodies

MULTIPART = ("multipart/form-data", "multipart/mixed", "multipart/related")

_AROUND = 65_536
"""A multipart body has so many bytes around and between parts."""

_TOKEN = r"[A-Za-z0-9!#$&^_.+-]{1,120}"  # noqa: S105 - a token of RFC 9110's grammar
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(;\s*(?i:charset)={_TOKEN})?")
_PLAIN = ("", "text/plain", "application/octet-stream")


class ReceivedBody(msgspec.Struct, frozen=True):
    """``whole`` holds the bytes if they are few and in memory, or is empty."""

    stored: StoredContent
    whole: bytes


class Upload(msgspec.Struct, frozen=True):
    """``media_type`` is stated for the first content; ``further`` ones have those of their parts."""

    metadata: Metadata
    content: ReceivedBody | None
    media_type: str
    further: tuple[tuple[ReceivedBody, str], ...] = ()

    @property
    def stored(self) -> list[StoredContent]:
        first = [self.content.stored] if self.content else []
        return [*first, *(body.stored for body, _ in self.further)]


async def raw_content(request: Request, context: RepositoryContext, room: int | None) -> ReceivedBody:
    """``room`` is how many bytes it may have, None without a quota.

    Raises UnsupportedMediaType, TooLarge, TimedOut, QuotaExceeded, NotStored. Then it discards the bytes, or if that
    fails, the sweep does.
    """
    bodies.check_encoding(request)
    _check_declared(request, context, room, 0)
    keeping = _Keeping(context, room)
    try:
        async for piece in bodies.pieces(request, context.options.max_content_bytes):
            await keeping.take(piece)
        return await keeping.finish()
    except BaseException:
        # The request may be cancelled once more. Then the bytes are discarded nevertheless.
        await asyncio.shield(keeping.abort())
        raise


async def receive(
    request: Request, context: RepositoryContext, caller: Caller, room: int | None, metadata: Metadata
) -> Upload:
    """``metadata`` belongs to content alone.

    Raises what ``raw_content`` raises, Overloaded, and for a body in parts Malformed, UnknownType.
    """
    with caller.uploading():
        if bodies.media_type(request) in MULTIPART:
            return await _multipart(request, context, room)
        content = await raw_content(request, context, room)
    return Upload(metadata, content, request.headers.get("content-type", ""))


async def _multipart(request: Request, context: RepositoryContext, room: int | None) -> Upload:
    """One part is metadata, the others contents. It is the first part if that has no media type, or one of ``_PLAIN``,
    otherwise the first of an object document.
    """
    bodies.check_encoding(request)
    _check_declared(request, context, room, context.options.max_metadata_bytes + _AROUND)
    receiving = _Receiving(context, room)
    try:
        return await receiving.upload(request)
    except BaseException:
        await asyncio.shield(receiving.abort())
        raise


def after_commit(
    context: RepositoryContext,
    uploaded: Sequence[StoredContent],
    named: Sequence[StoredContent | None],
    freed: Sequence[str] = (),
) -> BackgroundTask | None:
    """Remove contents that no row names: ``freed`` ones, and ``uploaded`` ones whose bytes the store had; of damaged
    older content, the uploaded one takes the place.

    The task runs after the answer, whose time so does not tell whether equal bytes were stored. The sweep does it if
    the process ends before.
    """
    if not uploaded and not freed:
        return None

    remove = partial(
        content_references.drop_spares, context.transactions.database, context.store, uploaded, named, freed
    )
    return BackgroundTask(context.transactions.off_loop, remove)


@asynccontextmanager
async def removal_on_failure(context: RepositoryContext, *contents: StoredContent | None) -> AsyncGenerator[None, None]:
    """Leave the contents after an interrupted commit or a cancelled request: an object may name them."""
    try:
        yield
    except BaseException as error:
        for content in contents if is_undone(error) else ():
            if content is not None:
                await context.transactions.off_loop(context.store.remove, content.key)
        raise


async def read_plain_text(
    content: ReceivedBody, name: str, media_type: str, context: RepositoryContext
) -> ExtractedText | None:
    """Return small plain content's text, to be kept with its object; None leaves it to the extractor."""
    if not content.whole:
        return None
    read = await context.transactions.off_loop(
        plain.read, content.whole, name, media_type, context.options.extraction_characters
    )
    return ExtractedText(read.text, read.note) if read else None


def media_type_of(media_type: str, name: str) -> str:
    """Take the stated one, unless missing or ``application/octet-stream``, or else that of the name's ending."""
    if media_type.partition(";")[0].strip().lower() not in ("", "application/octet-stream"):
        return media_type.strip()[:255]
    return media_types.media_type_of(name)


def servable(media_type: str) -> str:
    """Keep what has no parameters, or only ``charset``; else ``application/octet-stream``."""
    return media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"


def is_token(text: str) -> bool:
    """Return whether it may name a charset: up to 120 characters of RFC 6838 4.2."""
    return re.fullmatch(_TOKEN, text) is not None


def upload_quota(context: RepositoryContext) -> StorageQuota:
    return StorageQuota(context.options.max_objects, context.options.max_stored_bytes)


def _check_declared(request: Request, context: RepositoryContext, room: int | None, around: int) -> None:
    """Raise QuotaExceeded before the body, if Content-Length minus ``around`` exceeds ``room``."""
    length_text = request.headers.get("content-length", "")
    number = length_text.isascii() and length_text.isdecimal() and len(length_text) <= 18
    if room is not None and number and int(length_text) - around > room:
        raise usage.too_much(upload_quota(context))


class _Keeping:
    """Writes, and takes the digest of, what has arrived while more arrives."""

    def __init__(self, context: RepositoryContext, room: int | None) -> None:
        self._context = context
        self._room = room
        self._writer = context.store.writer()
        self._pieces_to_write: list[bytes] = []
        self._size = 0
        self._in_pieces = False
        self._writing: asyncio.Task[None] | None = None
        self._finishing: asyncio.Task[ReceivedBody] | None = None

    async def take(self, data: bytes) -> None:
        """Wait for the disk, so that no more than two pieces are held."""
        if self._room is not None:
            self._room -= len(data)
            if self._room < 0:
                raise usage.too_much(upload_quota(self._context))
        self._pieces_to_write.append(data)
        self._size += len(data)
        if self._size >= PIECE:
            await self._wait_for_writing()
            write = self._context.transactions.off_loop(self._writer.write, *self._pieces_to_write)
            self._writing = asyncio.create_task(write)
            self._writing.add_done_callback(heed)
            self._in_pieces = True
            self._pieces_to_write, self._size = [], 0

    async def finish(self) -> ReceivedBody:
        await self._wait_for_writing()
        self._finishing = asyncio.create_task(self._context.transactions.off_loop(self._last))
        return await asyncio.shield(self._finishing)

    async def abort(self) -> None:
        """Run in a thread: another one may still use the writer."""
        if self._writing is not None:
            self._writing.cancel()
        if self._finishing is not None:
            await asyncio.wait([self._finishing])
            if self._finishing.exception() is None:
                key = self._finishing.result().stored.key
                await self._context.transactions.off_loop(self._context.store.remove, key)
        await self._context.transactions.off_loop(self._writer.abort)

    def _last(self) -> ReceivedBody:
        whole = b"" if self._in_pieces else b"".join(self._pieces_to_write)
        self._writer.write(*([whole] if whole else self._pieces_to_write))
        return ReceivedBody(self._writer.finish(), whole)

    async def _wait_for_writing(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing


def heed(task: "asyncio.Task[Any]") -> None:
    """Take note of a task that nobody may await: else asyncio would log its exception as never retrieved."""
    if not task.cancelled():
        task.exception()


class _Receiving:
    def __init__(self, context: RepositoryContext, room: int | None) -> None:
        self._context = context
        self._room = room
        self._content: _Keeping | None = None
        self._contents: list[tuple[ReceivedBody, str]] = []
        self._size = 0
        self._metadata: list[bytes] | None = None
        self._metadata_type = ""
        self._media_type = ""
        self._into: str = ""

    async def upload(self, request: Request) -> Upload:
        options = self._context.options
        parts = multipart.Parts(request)
        limit = options.max_content_bytes + options.max_metadata_bytes + _AROUND
        async for piece in bodies.pieces(request, limit):
            for event, data in parts.read(piece):
                if isinstance(data, Mapping):
                    await self._begin(data)
                elif event == "data":
                    await self._take(data)
        parts.check_end()
        body = self._read_metadata()
        await self._finish_content()
        if not self._contents:
            return Upload(body, None, "")
        (content, media_type), *further = self._contents
        return Upload(body, content, media_type, tuple(further))

    def _read_metadata(self) -> Metadata:
        if self._metadata is None:
            raise Malformed("The multipart body has no part with the object's metadata.")
        metadata = b"".join(self._metadata)
        if not metadata.strip():
            raise Malformed("The part with the object's metadata is empty: it must hold a JSON object or XML.")
        try:
            return object_body.read(metadata, self._metadata_type, self._context.names)
        except Malformed as error:
            raise Malformed(f"The part with the object's metadata: {error.sentence}") from error

    async def abort(self) -> None:
        """Run outside the event loop: a removal may take long."""
        if self._content is not None:
            await self._content.abort()
        for body, _ in self._contents:
            await self._context.transactions.off_loop(self._context.store.remove, body.stored.key)

    async def _finish_content(self) -> None:
        if self._content is not None:
            self._contents.append((await self._content.finish(), self._media_type))
            self._room = None if self._room is None else self._room - self._contents[-1][0].stored.size
            self._content = None

    async def _begin(self, headers: Mapping[str, str]) -> None:
        multipart.check_encoding(headers)
        media_type = headers.get("content-type", "").strip()
        if not is_storable(media_type):
            raise Malformed("The Content-Type of a part holds a NUL.")
        kind = media_type.partition(";")[0].strip().lower()
        await self._finish_content()
        first = self._metadata is None and not self._contents
        if self._metadata is None and (object_body.is_one(kind) or (first and kind in _PLAIN)):
            self._metadata, self._metadata_type, self._into = [], kind, "metadata"
        elif len(self._contents) <= contents.MOST:
            self._content, self._media_type, self._into = _Keeping(self._context, self._room), media_type, "content"
        else:
            raise Malformed(f"A body has at most {contents.MOST + 1} contents.")
        self._size = 0

    async def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._into == "metadata" and self._metadata is not None:
            if self._size > self._context.options.max_metadata_bytes:
                raise TooLarge(f"The metadata is larger than {self._context.options.max_metadata_bytes} bytes.")
            self._metadata.append(data)
        elif self._content is not None:
            if self._size > self._context.options.max_content_bytes:
                raise TooLarge(f"The content is larger than {self._context.options.max_content_bytes} bytes.")
            await self._content.take(data)
