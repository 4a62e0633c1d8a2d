"""List, describe and send the contents of an object.

Sources: docs/interface.md, ours 3; RFC 9110 14 (ranges), 13 (conditions); RFC 6266 (file name). A browser gets content
as an attachment that it may not interpret: ``nosniff`` and ``Content-Security-Policy: sandbox``.
"""

import asyncio
import itertools
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from urllib.parse import quote

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api import uploads
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.contents import content_requests
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import codes, parameters, spelling
from muniment.repository.refusals import ContentDamaged, RangeNotSatisfiable
from muniment.repository.search.agent import indexing
from muniment.repository.search.answering.atom import FeedEntry, Link
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import IndexStatus
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.contents.further_contents import ObjectContent
from muniment.repository.store.objects.decisions import contents
from muniment.repository.store.objects.decisions.contents import WantedContent
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.answers.slots import HoldingResponse

_PROPERTIES = (
    *("object_name", "r_object_id", "format_name", "mime_type", "full_content_size", "sha256"),
    *("page", "is_primary", "page_modifier"),
)
_NUMBERS = ("full_content_size", "page")

_PIECES_AT_A_TIME = 4

_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")
_UNPRINTABLE = re.compile(r'[^ -~]|["\\%/]')


async def media(request: Request, context: RepositoryContext) -> Response:
    """Download the bytes of a content of an object, whole or one range of them."""
    caller = await enter(request, context)
    return await download(
        request, context, caller, content_requests.read_wanted(parameters.read(request), context.names)
    )


async def download(
    request: Request, context: RepositoryContext, caller: Caller, wanted: WantedContent = contents.PRIMARY
) -> Response:
    """Send a content, or a range of it.

    The answer is cut off when the caller may no longer read the object, or it no longer has the content.

    Raises UnknownObject, NotPermitted, NoContent, ContentDamaged, StoreUnavailable, Overloaded, and what
    ``Caller.read`` raises.
    """
    with ExitStack() as resources:
        resources.enter_context(caller.downloading())
        while True:
            stored, content = await _readable(request, caller, wanted)
            try:
                return HoldingResponse(
                    await _media(request, context, caller, stored, content, wanted), resources.pop_all()
                )
            except ContentDamaged:
                # If the content was replaced between the two reads, the former one is gone rightly: send the new one.
                if (await _readable(request, caller, wanted))[1].content == content.content:
                    raise


async def describe(request: Request, context: RepositoryContext) -> Response:
    """Describe a content of an object by its name, format, size and links, without its bytes."""
    caller, media_type = await enter_for_thing(request, context)
    names = context.names
    wanted = content_requests.read_wanted(parameters.read(request), names)
    stored, content = await _readable(request, caller, wanted)
    document = representations.content_document(caller.here, stored, content, names)
    return spelling.reply(media_type, "content", document, names)


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """List the contents of an object."""
    path = f"objects/{representations.identifier(request)}/contents"
    return await collections.answer_list(request, context, path, "Contents", _page)


async def index_status(request: Request, context: RepositoryContext) -> Response:
    """Show whether the text of an object has been extracted and indexed."""
    caller, media_type = await enter_for_thing(request, context)
    object_id = representations.identifier(request)
    stored, status = await caller.read(
        lambda cx, principals: _index_status(cx, caller.repository, principals, object_id)
    )
    own = f"{caller.here}/objects/{stored.id}"
    document: dict[str, spelling.Written] = {
        "state": status.state,
        "reason": status.reason,
        "attempts": status.attempts,
        "links": [{"rel": "self", "href": f"{own}/index-status"}, {"rel": "parent", "href": own}],
    }
    return spelling.reply(media_type, "index-status", document, context.names)


def _page(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
    """List pages of the primary content by number, then renditions, the oldest first, unless sorted."""
    object_id, names = feed.own.split("/")[-2], feed.names
    stored = objects.readable(cx, feed.repository, object_id, principals)
    by_name = {_order(content): content for content in contents.all_contents(cx, stored)}
    members = {name: representations.content_properties(stored, content, names) for name, content in by_name.items()}
    return feed.fixed(
        cx,
        principals,
        f"contents {stored.id}",
        members,
        _PROPERTIES,
        lambda name: _entry(stored, by_name[name], feed),
        _NUMBERS,
    )


def _order(content: ObjectContent) -> str:
    return f"0{content.place.page:07}" if content.place.is_primary else f"1{content.id:020}"


def _entry(stored: StoredObject, content: ObjectContent, feed: FeedRequest) -> FeedEntry:
    query, here = representations.content_query(content, feed.names), feed.here
    shown = feed.entry(
        f"{here}/objects/{stored.id}/contents/content{query}",
        stored.name,
        stored.owner,
        content.media_type,
        content.added,
        lambda: Thing("content", representations.content_document(here, stored, content, feed.names, feed.page.view)),
    )
    bytes_of_it = Link("enclosure", f"{here}/objects/{stored.id}/content-media{query}")
    return msgspec.structs.replace(shown, links=(bytes_of_it,))


async def _media(
    request: Request,
    context: RepositoryContext,
    caller: Caller,
    stored: StoredObject,
    of_object: ObjectContent,
    wanted: WantedContent,
) -> Response:
    content = of_object.content
    headers = _headers(stored, of_object)
    if representations.matches(request, "if-none-match", headers["ETag"]):
        return Response(status_code=304, headers=headers)
    try:
        start, length = _range(request, content, headers["ETag"])
    except RangeNotSatisfiable as refusal:
        shape = spelling.error_shape(context.names)
        answered = shape(request, codes.CONTENTS[RangeNotSatisfiable], refusal.sentence)
        answered.headers["Content-Range"] = f"bytes */{refusal.size}"
        return answered
    status = 200
    if length is not None:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{content.size}"
    headers["Content-Length"] = str(content.size if length is None else length)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    pieces = context.store.read(content, start, length)
    # Damage that the first piece shows is answered with an error. Damage that shows later cuts the answer off.
    first = await context.transactions.off_loop(next, pieces, b"")
    if len(first) == int(headers["Content-Length"]):
        return Response(first, status, headers)
    return caller.stream(
        _pieces(context, first, pieces),
        status,
        headers,
        lambda cx, principals: content_requests.check_still_there(cx, caller.repository, principals, of_object, wanted),
    )


async def _readable(request: Request, caller: Caller, wanted: WantedContent) -> tuple[StoredObject, ObjectContent]:
    object_id = representations.identifier(request)

    def read(cx: Connection, principals: Principals) -> tuple[StoredObject, ObjectContent]:
        stored = objects.readable(cx, caller.repository, object_id, principals)
        return stored, contents.find(cx, stored, wanted)

    return await caller.read(read)


def _index_status(
    cx: Connection, repository: Repository, principals: Principals, object_id: str
) -> tuple[StoredObject, IndexStatus]:
    stored = objects.readable(cx, repository, object_id, principals)
    status, unindexed = queue.status(cx, stored.id), indexing.reason(cx, stored.id)
    return stored, IndexStatus("failed", unindexed, status.attempts) if unindexed else status


def _headers(stored: StoredObject, of_object: ObjectContent) -> dict[str, str]:
    name, content = content_requests.file_name(stored, of_object), of_object.content
    plain = _UNPRINTABLE.sub("_", name)
    return {
        **spelling.PRIVATE,
        "Content-Type": uploads.servable(of_object.media_type),
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Vary": "Authorization",
        "Accept-Ranges": "bytes",
        "ETag": f'"{content.sha256.hex()}"',
    }


def _range(request: Request, content: StoredContent, etag: str) -> tuple[int, int | None]:
    """Return 0 and None for all. A header that is not understood is ignored (RFC 9110 14.2)."""
    match = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if match is None or match[1] == match[2] == "" or request.headers.get("if-range", etag) != etag:
        return 0, None
    if match[1] == "":
        start, end = max(0, content.size - int(match[2])), content.size - 1
    else:
        start, end = int(match[1]), min(int(match[2]) if match[2] else content.size - 1, content.size - 1)
        if match[2] and int(match[2]) < start:
            return 0, None
    if start > end:
        raise RangeNotSatisfiable(f"The content has {content.size} bytes.", content.size)
    return start, end - start + 1


async def _pieces(context: RepositoryContext, first: bytes, rest: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Read ahead in a thread, four pieces at a time, because to change to it takes as long as to read one. No piece is
    held after it is sent, so a slow reader costs little memory.
    """
    waiting = deque([first])
    del first  # else it is held until the last piece is sent
    while waiting:
        following = asyncio.create_task(context.transactions.off_loop(_next_pieces, rest))
        following.add_done_callback(uploads.heed)
        try:
            await asyncio.sleep(0)  # the read begins: a caller who takes everything at once never lets the loop turn
            while waiting:
                yield waiting.popleft()
            waiting.extend(await following)
        finally:
            following.cancel()


def _next_pieces(rest: Iterator[bytes]) -> list[bytes]:
    return list(itertools.islice(rest, _PIECES_AT_A_TIME))
