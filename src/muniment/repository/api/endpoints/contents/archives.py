"""The main contents of several objects, as one zip file that is made while it is sent.

Source: docs/interface.md, ours 3 (`archived-contents`).
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import ExitStack, aclosing

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed, TooLarge
from muniment.ground.xml import Element
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.endpoints.contents import content_requests
from muniment.repository.api.shapes import object_body
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import ContentDamaged
from muniment.repository.store.content.archive import Archive
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ObjectContent
from muniment.repository.store.objects.decisions import contents
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.answers.slots import HoldingResponse

MOST = 1000


class ArchiveBody(msgspec.Struct):
    """The addresses of the objects whose contents the archive is to have."""

    hrefs: list[str]


_json_body = msgspec.json.Decoder(ArchiveBody)


class _Entry(msgspec.Struct, frozen=True):
    stored: StoredObject
    content: ObjectContent


async def of_ids(request: Request, context: RepositoryContext) -> Response:
    """Download the contents of several objects as one zip file."""
    caller = await enter(request, context)
    ids = [text.strip().lower()[:40] for text in parameters.read(request).get("object-id", "").split(",")]
    return await _archive(request, context, caller, [each for each in ids if each])


@events.tells()
async def of_addresses(request: Request, context: RepositoryContext) -> Response:
    """Download the contents of several objects as one zip file."""
    caller = await enter(request, context)
    body = await object_body.receive(request, context, _json_body, _of_xml)
    name = caller.repository.name
    return await _archive(
        request,
        context,
        caller,
        [object_body.referenced_id(object_body.Metadata(href=href), name) for href in body.hrefs],
    )


def _of_xml(root: Element, names: RepositoryNames) -> ArchiveBody:
    hrefs = list[str]()
    for part in (root, *root.children):
        object_body.check_namespace(part, names)
        for child in part.children:
            object_body.check_namespace(child, names)
            if child.name in ("href", "item") and not child.children:
                hrefs.append(child.text.strip())
    return ArchiveBody(hrefs)


async def _archive(request: Request, context: RepositoryContext, caller: Caller, ids: Sequence[str]) -> Response:
    ids = list(dict.fromkeys(ids))
    if not ids:
        raise Malformed("Name the objects of the archive: by 'object-id' in the address, or by 'hrefs' in a body.")
    if len(ids) > MOST:
        raise Malformed(f"An archive has at most {MOST} objects.")
    most = context.options.max_content_bytes
    with ExitStack() as resources:
        resources.enter_context(caller.downloading())
        sizes = await caller.read_long(
            lambda cx, principals: sum(
                _entry(cx, caller.repository, principals, each).content.content.size for each in ids
            )
        )
        if sizes > most:
            raise TooLarge(f"These contents have {sizes} bytes, and an archive has at most {most}.")
        headers = {
            **spelling.PRIVATE,
            "Content-Type": "application/zip",
            "Content-Disposition": 'attachment; filename="contents.zip"',
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox",
            "Vary": "Authorization",
        }
        if request.method == "HEAD":
            return Response(headers=headers)
        sending = _ArchiveStream(context, caller, ids)
        pieces = sending.pieces()
        # What is gone or damaged before the first piece is refused. What goes later cuts the answer off.
        first = await anext(pieces)
        answer = caller.stream(_from_first_on_loop(first, pieces), 200, headers, sending.check)
        return HoldingResponse(answer, resources.pop_all())


class _ArchiveStream:
    """Checks the caller's right to each content before and while it is sent."""

    def __init__(self, context: RepositoryContext, caller: Caller, ids: Sequence[str]) -> None:
        self._context = context
        self._caller = caller
        self._ids = ids
        self._current: ObjectContent | None = None

    def check(self, cx: Connection, principals: Principals) -> None:
        if self._current is not None:
            content_requests.check_still_there(cx, self._caller.repository, principals, self._current, contents.PRIMARY)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        archive, off_loop = Archive(), self._context.transactions.off_loop
        for object_id in self._ids:
            entry, content_pieces = await self._opened(object_id)
            self._current = entry.content
            name = content_requests.file_name(entry.stored, entry.content)
            parts = archive.add(name, entry.content.content.size, entry.stored.modified, content_pieces)
            while part := await off_loop(next, parts, b""):
                yield part
        yield archive.end()

    async def _opened(self, object_id: str) -> tuple[_Entry, Iterable[bytes]]:
        while True:
            entry = await self._read(object_id)
            pieces = self._context.store.read(entry.content.content)
            try:
                first = await self._context.transactions.off_loop(next, pieces, b"")
            except ContentDamaged:
                # As in ``contents.download``: if it was replaced between the two reads, add the new one.
                if (await self._read(object_id)).content.content == entry.content.content:
                    raise
            else:
                return entry, _from_first(first, pieces)

    async def _read(self, object_id: str) -> _Entry:
        repository = self._caller.repository
        return await self._caller.read(lambda cx, principals: _entry(cx, repository, principals, object_id))


def _from_first(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    del first  # else it is held until the last piece is sent
    yield from rest


async def _from_first_on_loop(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        del first  # as above
        async for piece in rest:
            yield piece


def _entry(cx: Connection, repository: Repository, principals: Principals, object_id: str) -> _Entry:
    stored = objects.readable(cx, repository, object_id, principals)
    objects.check_holds_content(stored.id)
    return _Entry(stored, contents.find(cx, stored, contents.PRIMARY))
