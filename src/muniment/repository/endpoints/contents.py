"""An object's content: described, given out piece by piece, replaced.

Sources: docs/interface.md, ours 3; RFC 9110 14 (ranges), 13 (conditions); RFC 6266 (file name). Content goes out as an
attachment that no browser may interpret: ``nosniff`` and ``Content-Security-Policy: sandbox``.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from urllib.parse import quote

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment import events
from muniment.repository.content.contract import StoredContent
from muniment.repository.endpoints import collections, format_names, parameters, representations, spelling, uploads
from muniment.repository.endpoints.collections import FeedRequest, ListPage
from muniment.repository.endpoints.context import ENTERING, Caller, RepositoryContext, address, enter
from muniment.repository.endpoints.representations import Thing
from muniment.repository.extraction import queue
from muniment.repository.extraction.queue import IndexStatus
from muniment.repository.filters import pages
from muniment.repository.index_agent import indexing
from muniment.repository.objects import objects, usage
from muniment.repository.objects.table import StoredObject
from muniment.repository.objects.usage import Amount, StorageQuota
from muniment.repository.options import RepositoryNames
from muniment.repository.permissions.principals import Permission, Principals
from muniment.repository.refusals import (
    ContentDamaged,
    NoContent,
    NotOfferedYet,
    NotPermitted,
    QuotaExceeded,
    RangeNotSatisfiable,
    UnknownObject,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository
from muniment.web.responses import ErrorCode, Table
from muniment.web.slots import HoldingResponse

TABLE: Table = {
    **ENTERING,
    **collections.SELECTING,
    UnknownObject: ErrorCode(404, "E_UNKNOWN_OBJECT"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
    VersionConflict: ErrorCode(412, "E_VERSION_CONFLICT"),
    NoContent: ErrorCode(404, "E_NO_CONTENT"),
    ContentDamaged: ErrorCode(500, "E_CONTENT_DAMAGED"),
    RangeNotSatisfiable: ErrorCode(416, "E_RANGE_NOT_SATISFIABLE"),
    QuotaExceeded: ErrorCode(403, "E_QUOTA_EXCEEDED"),
}

_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")
_UNPRINTABLE = re.compile(r'[^ -~]|["\\%/]')


async def media(request: Request, context: RepositoryContext) -> Response:
    """GET content-media: the bytes, whole or one range of them."""
    return await download(request, context, await enter(request, context), parameters.read(request).get("format"))


async def download(
    request: Request, context: RepositoryContext, caller: Caller, format_name: str | None = None
) -> Response:
    """Send the content of the object that the address names, whole or one range of it, for as long as the caller may
    read the object.

    Raises UnknownObject, NotPermitted, NoContent, ContentDamaged, WrongValue, Overloaded, and as ``Caller.read``.
    """
    with ExitStack() as resources:
        resources.enter_context(caller.downloading())
        while True:
            stored = await _readable(request, caller)
            content = _content(stored)
            _check_format(stored, format_name, context.options.names)
            try:
                return HoldingResponse(await _media(request, context, caller, stored), resources.pop_all())
            except ContentDamaged:
                # Replaced between the two reads? Then the former content is gone rightly.
                if (await _readable(request, caller)).content == content:
                    raise


async def describe(request: Request, context: RepositoryContext) -> Response:
    """GET contents/content: the content object."""
    caller = await enter(request, context)
    names = context.options.names
    media_type = spelling.negotiate(request, spelling.both(names))
    values = parameters.read(request)
    stored = await _readable(request, caller)
    _content(stored)
    _check_format(stored, values.get("format"), names)
    document = representations.content_document(address(request, context, caller.repository), stored, names)
    return _answer(media_type, "content", document, context)


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """GET contents: a feed of the one content of an object, or an empty feed."""
    caller = await enter(request, context)
    object_id, repository = representations.identifier(request), caller.repository
    here = address(request, context, repository)
    feed = collections.feed_request(request, context, f"{here}/objects/{object_id}/contents", "Contents")
    body = await caller.read_long(
        lambda cx, principals: feed.write(
            _page(cx, objects.readable(cx, repository, object_id, principals), feed, here)
        )
    )
    return feed.answer(body)


@events.tells()
async def replace(request: Request, context: RepositoryContext) -> Response:
    """POST contents: the body, whatever it is, becomes the object's content."""
    caller = await enter(request, context)
    repository, names = caller.repository, context.options.names
    answer_type = spelling.negotiate(request, spelling.both(names))
    values = parameters.read(request)
    if values.get("primary", "true").lower() != "true" or values.get("page", "0") != "0":
        raise NotOfferedYet("Renditions and further pages of content are not offered yet.")
    expected = representations.expected_version(request)
    object_id = representations.identifier(request)
    quota = uploads.upload_quota(context)
    name, room = await caller.read(lambda cx, principals: _may_replace(cx, repository, principals, object_id, quota))
    media_type = request.headers.get("content-type", "")
    if "format" in values:
        media_type = format_names.media_type(values["format"], names)
    with caller.uploading():
        body = await uploads.raw_content(request, context, room)
    async with uploads.removal_on_failure(context, body.stored):
        media_type = uploads.media_type_of(media_type, name)
        text = await uploads.read_plain_text(body, name, media_type, context)
        (stored, former), position = await caller.change(
            lambda cx, principals: objects.replace_content(
                cx,
                repository,
                principals,
                object_id,
                body.stored,
                media_type,
                context.clock(),
                expected=expected,
                text=text,
                quota=quota,
            ),
            lambda replacement: replacement[0].position,
        )
    if former is not None:
        await context.transactions.off_loop(context.store.remove, former.key)
    here = address(request, context, repository)
    answer = _answer(answer_type, "content", representations.content_document(here, stored, names), context, 201)
    answer.headers["Location"] = f"{here}/objects/{stored.id}/contents/content"
    answer.headers.update(position)
    return answer


async def index_status(request: Request, context: RepositoryContext) -> Response:
    """GET index-status: the state of an object's text, and the reason if there is none."""
    caller = await enter(request, context)
    media_type = spelling.negotiate(request, spelling.both(context.options.names))
    object_id = representations.identifier(request)
    stored, status = await caller.read(
        lambda cx, principals: _index_status(cx, caller.repository, principals, object_id)
    )
    own = f"{address(request, context, caller.repository)}/objects/{stored.id}"
    document: dict[str, spelling.Written] = {
        "state": status.state,
        "reason": status.reason,
        "attempts": status.attempts,
        "links": [{"rel": "self", "href": f"{own}/index-status"}, {"rel": "parent", "href": own}],
    }
    return _answer(media_type, "index-status", document, context)


def _page(cx: Connection, stored: StoredObject, feed: FeedRequest, here: str) -> ListPage:
    """List the object's content, if there is any and it meets the filter."""
    page, names = feed.page, feed.names
    values = representations.content_properties(stored, names)
    selected = pages.wants(cx, {name: value for name, value in values.items() if value is not None}, page.selection)
    own = f"{here}/objects/{stored.id}"
    is_listed = selected and stored.content is not None
    entry = collections.plain_entry(
        f"{own}/contents/content", stored.name, stored.owner, stored.media_type, stored.modified
    )
    if page.inline:
        entry = feed.with_thing(
            entry, Thing("content", representations.content_document(here, stored, names, page.view))
        )
    entries = [entry] if is_listed and page.part.number == 1 else []
    return ListPage(entries, None, int(is_listed) if page.include_total else None)


async def _media(request: Request, context: RepositoryContext, caller: Caller, stored: StoredObject) -> Response:
    content = _content(stored)
    headers = _headers(stored, content)
    if representations.matches(request, "if-none-match", headers["ETag"]):
        return Response(status_code=304, headers=headers)
    try:
        start, length = _range(request, content, headers["ETag"])
    except RangeNotSatisfiable as refusal:
        shape = spelling.error_shape(context.options.names)
        answered = shape(request, TABLE[RangeNotSatisfiable], refusal.sentence)
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
    # Damage that shows at once is answered; what shows later cuts the transfer short.
    first = await context.transactions.off_loop(next, pieces, b"")
    if len(first) == int(headers["Content-Length"]):
        return Response(first, status, headers)
    return caller.stream(
        _pieces(context, first, pieces),
        status,
        headers,
        lambda cx, principals: _check_still_there(cx, caller.repository, principals, stored),
    )


def _check_still_there(cx: Connection, repository: Repository, principals: Principals, former: StoredObject) -> None:
    """Check that a download may go on. Raises UnknownObject, NotPermitted; NoContent where it has other content now."""
    if objects.readable(cx, repository, former.id, principals).content != former.content:
        raise NoContent("The object does not have this content any more.")


async def _readable(request: Request, caller: Caller) -> StoredObject:
    object_id = representations.identifier(request)
    return await caller.read(lambda cx, principals: objects.readable(cx, caller.repository, object_id, principals))


def _may_replace(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, quota: StorageQuota
) -> tuple[str, int | None]:
    """Say the object's name, and how many bytes its new content may have; None where no quota counts."""
    stored, permission = objects.read(cx, repository, object_id, principals)
    if permission < Permission.WRITE:
        raise NotPermitted("You may not change this object: it takes the permission Write.")
    objects.check_may_hold_content(stored.id)
    if principals.administrator:
        return stored.name, None
    size = stored.content.size if stored.content else 0
    # What is smaller than before is always taken, also from an owner who has more than they may.
    return stored.name, max(size, usage.room(cx, stored.owner_key, quota, Amount(0, -size)))


def _index_status(
    cx: Connection, repository: Repository, principals: Principals, object_id: str
) -> tuple[StoredObject, IndexStatus]:
    stored = objects.readable(cx, repository, object_id, principals)
    status, unindexed = queue.status(cx, stored.id), indexing.reason(cx, stored.id)
    return stored, IndexStatus("failed", unindexed, status.attempts) if unindexed else status


def _answer(
    media_type: str, root: str, document: dict[str, spelling.Written], context: RepositoryContext, status: int = 200
) -> Response:
    body = spelling.answer(media_type, root, document, context.options.names)
    headers = {"Content-Type": media_type, **spelling.PRIVATE}
    return Response(body, status, headers)


def _content(stored: StoredObject) -> StoredContent:
    if stored.content is None:
        raise NoContent(f"The object {stored.id!r} has no content.")
    return stored.content


def _check_format(stored: StoredObject, format_name: str | None, names: RepositoryNames) -> None:
    """Check that the content has the format that the caller names. Raises WrongValue, NoContent."""
    if format_name and not format_names.are_same(format_names.media_type(format_name, names), stored.media_type):
        raise NoContent(f"The object {stored.id!r} has no content of the format {format_name[:100]!r}.")


def _headers(stored: StoredObject, content: StoredContent) -> dict[str, str]:
    plain = _UNPRINTABLE.sub("_", stored.name)
    return {
        **spelling.PRIVATE,
        "Content-Type": uploads.servable(stored.media_type),
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(stored.name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Vary": "Authorization",
        "Accept-Ranges": "bytes",
        "ETag": f'"{content.sha256.hex()}"',
    }


def _range(request: Request, content: StoredContent, etag: str) -> tuple[int, int | None]:
    """Read the Range header: where the range begins, and how long it is. A header that is not understood means the
    whole content (RFC 9110 14.2)."""
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
    """Give out pieces; the next one is read, and its digest taken, while one is on its way to the caller."""
    piece = first
    while piece:
        following = asyncio.create_task(context.transactions.off_loop(next, rest, b""))
        following.add_done_callback(_heed)
        try:
            yield piece
            piece = await following
        finally:
            following.cancel()


def _heed(following: "asyncio.Task[bytes]") -> None:
    # Whoever left has nobody to hear of it any more; asyncio would complain that nobody feed.
    if not following.cancelled():
        following.exception()
