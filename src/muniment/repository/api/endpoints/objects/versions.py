"""Check objects out and in, list their versions, and show the current one.

Source: docs/interface.md, ours 17. A check-in takes metadata, contents, both, or no body. Without a body, the
properties and the content stay as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.repository import bare_names
from muniment.repository.api import uploads
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.contents import content_requests
from muniment.repository.api.endpoints.objects import objects
from muniment.repository.api.endpoints.people import people as people_endpoint
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.object_body import Metadata
from muniment.repository.api.shapes.representations import ObjectBody
from muniment.repository.api.uploads import Upload
from muniment.repository.api.wire import format_names, parameters
from muniment.repository.refusals import UnknownPerson, WrongValue
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects import objects as stored_objects
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.contents.usage import Amount, StorageQuota
from muniment.repository.store.objects.decisions import checkins, checkouts, contents, version_lists
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.decisions.version_lists import Checkouts, History
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties import version
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.properties.version import Lock, Policy
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.requests import bodies

_POLICIES: tuple[Policy, ...] = ("next-minor", "next-major", "branch-version")
_HOLDERS = ("current-user", "all", "user")


class _Receipt(NamedTuple):
    """``room`` is how many bytes new content may have, None without a quota."""

    stored: StoredObject
    room: int | None


class _NewVersion(NamedTuple):
    body: ObjectBody
    named: Sequence[StoredContent]


@events.tells()
async def check_out(request: Request, context: RepositoryContext) -> Response:
    """Check an object out."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    expected = representations.expected_version(request)

    def decide(cx: Connection, principals: Principals) -> ObjectBody:
        stored = checkouts.check_out(cx, repository, principals, object_id, context.clock(), expected=expected)
        return objects.complete(cx, stored, RepositoryView.read(cx, repository, principals))

    whole, position = await caller.change(decide, lambda whole: whole.stored.position)
    return representations.object_answer(request, caller, media_type, whole, as_object=True, position=position)


@events.tells()
async def cancel(request: Request, context: RepositoryContext) -> Response:
    """Cancel the check-out of an object."""
    caller = await enter(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    expected = representations.expected_version(request)
    holder = partial(_holder, context=context, repository=repository)
    _, position = await caller.change(
        lambda cx, principals: checkouts.cancel(
            cx, repository, principals, object_id, context.clock(), expected=expected, holder=holder
        ),
        lambda stored: stored.position,
    )
    return Response(status_code=204, headers=position)


def _holder(cx: Connection, lock: Lock, *, context: RepositoryContext, repository: Repository) -> Principals | None:
    """Return None if the directory runs elsewhere: nobody waits for it while a write is under way."""
    if context.people_changes is None:
        return None
    try:
        return people_endpoint.principals_of(cx, context, repository, lock.owner)
    except UnknownPerson:
        return Principals("")


@events.tells("object rights")
async def check_in(request: Request, context: RepositoryContext) -> Response:
    """Check an object in as its next version."""
    caller, media_type = await enter_for_thing(request, context)
    repository, names, object_id = caller.repository, context.names, representations.identifier(request)
    values = parameters.read(request)
    plan = _read_plan(values, representations.expected_version(request))
    content_type = (
        format_names.media_type(values["format"].split(",")[0].strip(), names) if values.get("format") else ""
    )
    quota = uploads.upload_quota(context)
    # A caller who may not check the object in is refused before they send gigabytes.
    receipt = await caller.read(lambda cx, principals: _receive(cx, repository, principals, object_id, plan, quota))
    upload = await _read_upload(request, context, caller, receipt.room)
    async with uploads.removal_on_failure(context, *upload.stored):
        plan = await _with_upload(context, plan, upload, receipt.stored, content_type, values)
        event = objects.tell_rights(request, caller, plan.properties)
        (whole, named), position = await caller.change(
            lambda cx, principals: _check_in(cx, repository, principals, object_id, plan, context, quota),
            lambda made: made.body.stored.position,
        )
    if event is not None:
        event.on = whole.stored.id
    answer = representations.object_answer(request, caller, media_type, whole, 201, as_object=True, position=position)
    answer.background = uploads.after_commit(context, upload.stored, named)
    return answer


def _current(cx: Connection, view: RepositoryView, object_id: str) -> StoredObject:
    return version_lists.current(cx, view, object_id)[0]


async def current(request: Request, context: RepositoryContext) -> Response:
    """Show the current version of an object."""
    return await objects.show(request, context, _current, as_object=True)


async def history(request: Request, context: RepositoryContext) -> Response:
    """List the versions of an object, the newest first."""
    caller = await enter(request, context)
    object_id = representations.identifier(request)
    title = f"All versions of object {object_id}"
    feed = collections.feed_request(request, context, caller, f"objects/{object_id}/versions", title)

    def listed(cx: Connection, view: RepositoryView) -> History:
        stored, _ = stored_objects.read(cx, caller.repository, object_id, view.principals)
        return History(view, stored)

    return await _list(feed, f"versions {object_id}", listed)


async def list_checkouts(request: Request, context: RepositoryContext) -> Response:
    """List objects that are checked out."""
    caller = await enter(request, context)
    values = parameters.read(request)
    name = bare_names.full_name(values.get("user-name", ""), context.options)
    holder = parameters.choice(
        {"checked-out-by": values.get("checked-out-by", "").replace("_", "-")},
        "checked-out-by",
        _HOLDERS,
        default="user" if name else "current-user",
    )
    if bool(name) != (holder == "user"):
        raise Malformed("With 'user-name', 'checked-out-by' must be 'user' or left out.")
    feed = collections.feed_request(request, context, caller, "checked-out-objects", "Checked out objects")
    return await _list(
        feed,
        f"checked out by {holder} {name}",
        lambda _cx, view: Checkouts(view, name if holder == "user" else None, mine=holder == "current-user"),
    )


async def _list(
    feed: FeedRequest, list_name: str, listed: Callable[[Connection, RepositoryView], History | Checkouts]
) -> Response:
    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        view = RepositoryView.read(cx, feed.repository, principals)
        members, selection, prefix = listed(cx, view), feed.page.selection, feed.names.type_prefix
        return feed.listed(
            cx,
            principals,
            list_name,
            lambda stretch: version_lists.version_page(cx, members, stretch, selection, type_prefix=prefix),
            lambda members: feed.with_objects(cx, view, members, collections.object_entry),
            lambda: version_lists.count_versions(cx, members, selection, type_prefix=prefix),
            in_portions=True,
        )

    return await collections.answer_with_list(feed, question)


def _read_plan(values: Mapping[str, str], expected: int | None) -> CheckIn:
    labels, make_current = values.get("version-label", ""), parameters.truth(values, "make-current", default=True)
    if not make_current and version.names_current(labels):
        raise WrongValue("The label CURRENT belongs to the current version: leave out 'make-current=false'.")
    return CheckIn(
        policy=parameters.choice(values, "version-policy", _POLICIES, default="next-minor"),
        properties={},
        comment=version.read_comment(values.get("comment", "")),
        labels=version.read_labels(labels),
        make_current=make_current,
        retain_lock=parameters.truth(values, "retain-lock"),
        expected=expected,
    )


def _receive(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    plan: CheckIn,
    quota: StorageQuota,
) -> _Receipt:
    stored, permission = stored_objects.read(cx, repository, object_id, principals)
    checkins.check(stored, permission, principals, plan)
    return _Receipt(stored, None if principals.administrator else usage.room(cx, stored.owner_key, quota, Amount(1, 0)))


async def _read_upload(request: Request, context: RepositoryContext, caller: Caller, room: int | None) -> Upload:
    kind = bodies.media_type(request)
    if object_body.is_one(kind) or (not kind and _is_empty(request)):
        bodies.check_encoding(request)
        body = await bodies.raw(request, context.options.max_metadata_bytes)
        metadata = object_body.read(body, kind, context.names) if body.strip() else Metadata()
        return Upload(metadata, None, "")
    return await uploads.receive(request, context, caller, room, Metadata())


def _is_empty(request: Request) -> bool:
    return request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers


async def _with_upload(
    context: RepositoryContext,
    plan: CheckIn,
    upload: Upload,
    former: StoredObject,
    content_type: str,
    values: Mapping[str, str],
) -> CheckIn:
    if upload.metadata.href:
        raise Malformed("A body with 'href' makes a copy in a folder. It is no new version.")
    properties: dict[str, Given] = dict(upload.metadata.properties)
    if upload.metadata.type:
        properties.setdefault("r_object_type", upload.metadata.type)
    arranged = content_requests.arrange(upload, values, context.names)
    further = [(each.place, each.media_type, each.body.stored) for each in arranged if not each.place.is_main]
    if not (arranged and arranged[0].place.is_main):
        content_type = content_type if not arranged else ""
        return msgspec.structs.replace(plan, properties=properties, media_type=content_type, further=further)
    name = str(properties.get("object_name") or former.name)
    media_type = content_requests.with_charset(content_type, values) or str(properties.get("a_content_type") or "")
    if not media_type:
        stated = arranged[0].media_type
        media_type = uploads.media_type_of(stated, "") if stated else ""
        if media_type in ("", "application/octet-stream"):
            media_type = former.media_type or uploads.media_type_of("", name)
    return msgspec.structs.replace(
        plan,
        properties=properties,
        content=arranged[0].body.stored,
        further=further,
        text=await uploads.read_plain_text(arranged[0].body, name, media_type, context),
        media_type=media_type,
    )


def _check_in(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    plan: CheckIn,
    context: RepositoryContext,
    quota: StorageQuota,
) -> _NewVersion:
    view = objects.writing_view(context, cx, repository, principals)
    rights = objects.whole_rights(plan.properties, principals, context.options)
    plan = msgspec.structs.replace(plan, properties=rights)
    stored = checkins.check_in(cx, view, object_id, plan, context.clock(), quota)
    named = [each.content for each in contents.all_contents(cx, stored)]
    return _NewVersion(objects.complete(cx, stored, view), named)
