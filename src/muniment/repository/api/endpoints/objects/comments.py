"""Comments on objects, and replies to them.

Source: docs/interface.md, ours 20.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.clock import timestamp
from muniment.ground.xml import Element
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import spelling
from muniment.repository.api.wire.documents import Named, Tagged
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownProperty, WrongValue
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects import objects
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.relations import comments
from muniment.repository.store.relations.comments import Comment
from muniment.repository.store.repositories import Repository

_SHOWN_ONLY = {"r_object_id", "r_object_type", "object_name", "owner_name", "r_creation_date", "r_modify_date"}
_TITLE = 60


class CommentDocument(Tagged, Named, rename="kebab"):
    """A comment: its text, its author, and when it was written and changed.

    The same stands in it twice: as properties, and flat, as clients of the field read it. ``parent-id`` is the comment
    to which a reply answers.
    """

    object_id: str
    comment_id: str
    owner_name: str
    creation_date: str
    modify_date: str
    content_value: str
    title: str
    can_delete: bool
    can_reply: bool
    parent_id: str | msgspec.UnsetType = msgspec.UNSET


class CommentBody(msgspec.Struct, rename="kebab"):
    """The text of a comment: its property ``content``, or ``content-value``."""

    properties: dict[str, Any] | None = None
    content_value: str | None = None


_json_body = msgspec.json.Decoder(CommentBody)


async def list_comments(request: Request, context: RepositoryContext) -> Response:
    """List the comments on an object."""
    object_id = representations.identifier(request)

    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        stored = objects.readable(cx, feed.repository, object_id, principals)
        return _list(cx, principals, stored.id, None, feed)

    return await collections.answer_list(request, context, f"objects/{object_id}/comments", "Comments", question)


async def list_replies(request: Request, context: RepositoryContext) -> Response:
    """List the replies to a comment."""
    comment_id = representations.identifier(request)

    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        above = comments.find(cx, feed.repository, comment_id, principals)
        return _list(cx, principals, above.object_id, above.id, feed)

    return await collections.answer_list(request, context, f"comments/{comment_id}/replies", "Replies", question)


@events.tells()
async def comment(request: Request, context: RepositoryContext) -> Response:
    """Comment on an object."""
    return await _add(request, context, comments.add)


@events.tells()
async def reply(request: Request, context: RepositoryContext) -> Response:
    """Reply to a comment."""
    return await _add(request, context, comments.reply)


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show a comment."""
    caller, media_type = await enter_for_thing(request, context)
    comment_id = representations.identifier(request)
    shown = await caller.read(
        lambda cx, principals: _with_right(comments.find(cx, caller.repository, comment_id, principals), principals)
    )
    return _answer(request, caller, media_type, shown)


@events.tells()
async def change(request: Request, context: RepositoryContext) -> Response:
    """Give a comment another text."""
    caller, media_type = await enter_for_thing(request, context)
    comment_id = representations.identifier(request)
    expected, text = representations.expected_version(request), await _read_text(request, context)
    shown = await caller.write(
        lambda cx, principals: _with_right(
            comments.change(cx, caller.repository, comment_id, text, principals, context.clock(), expected), principals
        )
    )
    return _answer(request, caller, media_type, shown)


@events.tells()
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove a comment with the replies to it."""
    caller = await enter(request, context)
    comment_id, expected = representations.identifier(request), representations.expected_version(request)
    await caller.write(lambda cx, principals: comments.remove(cx, caller.repository, comment_id, principals, expected))
    return Response(status_code=204)


async def _add(
    request: Request,
    context: RepositoryContext,
    decision: Callable[[Connection, Repository, str, str, Principals, int, int], Comment],
) -> Response:
    caller, media_type = await enter_for_thing(request, context)
    to_id = representations.identifier(request)
    text, most = await _read_text(request, context), context.options.max_comments
    shown = await caller.write(
        lambda cx, principals: _with_right(
            decision(cx, caller.repository, to_id, text, principals, context.clock(), most), principals
        )
    )
    return _answer(request, caller, media_type, shown, 201)


def _with_right(shown: Comment, principals: Principals) -> tuple[Comment, bool]:
    return shown, comments.may_change(shown, principals)


async def _read_text(request: Request, context: RepositoryContext) -> str:
    body = await object_body.receive(request, context, _json_body, _of_xml)
    properties = {spelling.read_property(name, context.names): each for name, each in (body.properties or {}).items()}
    if unknown := sorted(properties.keys() - {"content", *_SHOWN_ONLY}):
        raise UnknownProperty(f"A comment has no property {unknown[0][:100]!r}.")
    text = properties.get("content", body.content_value)
    if not isinstance(text, str):
        raise WrongValue("The property 'content', or 'content-value', is the text of the comment.")
    return text


def _of_xml(root: Element, names: RepositoryNames) -> CommentBody:
    properties, text = dict[str, Any](), None
    for part in (root, *root.children):
        object_body.check_namespace(part, names)
    for part in root.children:
        if part.name == "properties":
            properties |= object_body.properties(part, names)
        elif part.name == "content-value":
            text = part.text
    return CommentBody(properties, text)


def _list(
    cx: Connection, principals: Principals, object_id: str, replies_to: str | None, feed: FeedRequest
) -> ListPage:
    selection = feed.page.selection
    return feed.listed(
        cx,
        principals,
        f"comments {replies_to or object_id}",
        lambda stretch: comments.comment_page(cx, object_id, replies_to, stretch, selection),
        lambda members: [_entry(feed, each.comment, principals) for each in members],
        lambda: comments.count_comments(cx, object_id, replies_to, selection),
    )


def _entry(feed: FeedRequest, shown: Comment, principals: Principals) -> FeedEntry:
    return feed.entry(
        f"{feed.here}/comments/{shown.id}",
        shown.text[:_TITLE],
        shown.author,
        shown.text[:1000],
        shown.modified,
        lambda: _thing(feed.here, shown, feed.names, is_own=comments.may_change(shown, principals)),
        published=shown.created,
    )


def _answer(
    request: Request,
    caller: Caller,
    media_type: str,
    shown: tuple[Comment, bool],
    status: int = 200,
) -> Response:
    names, here = caller.names, caller.here
    own, revision = f"{here}/comments/{shown[0].id}", shown[0].revision
    thing = _thing(here, shown[0], names, is_own=shown[1]).without(media_type, "name")
    return thing.tagged_reply(request, media_type, names, revision, status, own)


def _thing(here: str, shown: Comment, names: RepositoryNames, *, is_own: bool) -> Thing:
    own = f"{here}/comments/{shown.id}"
    properties: Mapping[str, Written] = {
        "r_object_id": shown.id,
        "content": shown.text,
        "owner_name": shown.author,
        "r_creation_date": timestamp(shown.created, utc="+00:00"),
        "r_modify_date": timestamp(shown.modified, utc="+00:00"),
    }
    above = f"{here}/objects/{shown.object_id}"
    links = [("self", own)]
    if is_own:
        links += [("edit", own), (f"{names.linkrel_base}/delete", own)]
    links.append(("parent", above if shown.replies_to is None else f"{here}/comments/{shown.replies_to}"))
    links.append((f"{names.linkrel_base}/object", above))
    links.append((f"{names.linkrel_base}/replies", f"{own}/replies"))
    document: dict[str, Written] = {
        "name": "comment",
        "object-id": shown.object_id,
        "comment-id": shown.id,
        "owner-name": shown.author,
        "creation-date": properties["r_creation_date"],
        "modify-date": properties["r_modify_date"],
        "content-value": shown.text,
        "title": shown.text[:_TITLE],
        "can-delete": is_own,
        "can-reply": True,
        **({"parent-id": shown.replies_to} if shown.replies_to else {}),
        "properties": {spelling.write_property(name, names): value for name, value in properties.items()},
        "links": [{"rel": rel, "href": href} for rel, href in links],
    }
    return Thing("comment", document)
