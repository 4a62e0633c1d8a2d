"""Lists as feeds: which page is wanted, with which members in which order, and how it is written.

A new list needs its properties as SQL (``filters``), and functions for a page and its entries.

Sources: given 2.9 (feeds); docs/interface.md, ours 5; docs/filters.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.database.connections import TookTooLong
from muniment.ground.clock import Instant
from muniment.ground.refusals import Malformed
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.shapes import representations
from muniment.repository.api.shapes.representations import ObjectBody, Thing, View
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import BadFilter, BadSort
from muniment.repository.search.answering import atom
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters import cursors, fixed, reader
from muniment.repository.store.filters.cursors import CursorBinding, Part, Place, Stretch
from muniment.repository.store.filters.tree import EVERYTHING, Selection, with_texts
from muniment.repository.store.objects.folders import computed, paths
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.listing.lists import ListedObject
from muniment.repository.store.objects.listing.object_ids import holds_objects, kind_of
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

PORTION = 250
"""So many objects are read at a time, if the order costs nothing: a page without room for what its entries inline is
refused before all are in memory.
"""

_DEEP = 10_000
"""Up to this member, a bare page number is light work for the database."""

LONG = 100_000
"""In a longer list, a filter or sort that takes too long is refused."""

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Page(msgspec.Struct, frozen=True):
    """What a request wants of a list. ``repeated`` are parameters of every link, as the caller wrote them."""

    part: Part
    include_total: bool
    object_type: str | None
    selection: Selection
    inline: bool
    links: bool
    view: View
    repeated: Mapping[str, str]

    @property
    def is_heavy(self) -> bool:
        """Return whether no index of the database answers the page."""
        is_deep = self.part.cursor is None and self.part.number * self.part.size > _DEEP
        return bool(self.selection.filter or self.selection.sort) or self.include_total or is_deep


class ListPage(msgspec.Struct, frozen=True):
    """``following`` is None on the last page, ``total`` unless it is wanted."""

    entries: Sequence[atom.FeedEntry]
    following: str | None
    total: int | None = None


class Placed(Protocol):
    """A member of a list."""

    @property
    def place(self) -> Place:
        """A cursor holds that of the page's last member."""


T = TypeVar("T", bound=Placed)


class PageRoom:
    """How many more bytes may be inlined in one page."""

    def __init__(self, options: RepositoryOptions) -> None:
        self._most = self._left = options.max_page_bytes

    def take(self, size: int) -> None:
        """Raises Malformed without room."""
        self._left -= size
        if self._left < 0:
            raise Malformed(
                f"This page has more than {self._most} bytes: ask for fewer entries on a page ('items-per-page', or "
                "'limit' in a search of several repositories), or for fewer properties ('view', or fewer columns)."
            )


@dataclass(frozen=True)
class OpenFeedRequest:
    """A request for a list. It inlines things in one page at most, which has all the ``room``."""

    own: str
    title: str
    page: Page
    media_type: str
    context: RepositoryContext
    room: PageRoom

    @property
    def names(self) -> RepositoryNames:
        return self.context.names

    def with_thing(self, entry: atom.FeedEntry, thing: Thing) -> atom.FeedEntry:
        """Raises Malformed."""
        inlined = inline(thing, self.media_type, self.names, self.room, links=self.page.links)
        return msgspec.structs.replace(entry, inlined=inlined)

    def entry(
        self,
        own: str,
        title: str,
        author: str,
        summary: str,
        updated: Instant,
        describe: Callable[[], Thing],
        *,
        published: Instant | None = None,
    ) -> atom.FeedEntry:
        """Make the entry of no object, with the thing itself if wanted."""
        entry = plain_entry(own, title, author, summary, updated, published)
        return self.with_thing(entry, describe()) if self.page.inline else entry

    def write(self, page: ListPage) -> bytes:
        feed = atom.Feed(
            id=self.own,
            title=self.title,
            author="Muniment",
            updated=self.context.clock(),
            page=self.page.part.number,
            items_per_page=self.page.part.size,
            links=tuple(_page_links(self.own, self.page, page, self.context.options)),
            entries=tuple(page.entries),
            total=page.total,
            entry_links=self.page.links,
        )
        return spelling.feed(self.media_type, feed, self.context.options)

    def answer(self, body: bytes) -> Response:
        return Response(body, headers={"Content-Type": self.media_type, **spelling.PRIVATE})


@dataclass(frozen=True)
class FeedRequest(OpenFeedRequest):
    """A caller's request for a list."""

    caller: Caller

    @property
    def here(self) -> str:
        return self.caller.here

    @property
    def repository(self) -> Repository:
        return self.caller.repository

    def with_objects(
        self,
        cx: Connection,
        view: RepositoryView,
        members: Sequence[ListedObject],
        entry: Callable[[str, StoredObject, RepositoryNames], atom.FeedEntry],
    ) -> list[atom.FeedEntry]:
        entries = [entry(self.here, each.stored, self.names) for each in members]
        if not self.page.inline:
            return entries
        things = (
            representations.object_thing(
                self.here, body, self.names, self.media_type, kind_of(body.stored.id), self.page.view
            )
            for body in object_bodies(cx, view, [each.stored for each in members])
        )
        return list(map(self.with_thing, entries, things))

    def listed(
        self,
        cx: Connection,
        principals: Principals,
        name: str,
        fetch: Callable[[Stretch], Sequence[T]],
        entries: Callable[[Sequence[T]], Sequence[atom.FeedEntry]],
        count: Callable[[], int],
        *,
        in_portions: bool = False,
    ) -> ListPage:
        """Read a page; cursors are bound to ``name`` (see ``list_page``)."""
        binding = CursorBinding(self.repository.id, principals.key, name, self.page.selection.text)
        return list_page(cx, binding, self.page, fetch, entries, count, in_portions=in_portions)

    def fixed(
        self,
        cx: Connection,
        principals: Principals,
        name: str,
        members: Mapping[str, Mapping[str, str | int]],
        property_names: Sequence[str],
        entry: Callable[[str], atom.FeedEntry],
        numbers: Sequence[str] = (),
    ) -> ListPage:
        selection = self.page.selection
        return self.listed(
            cx,
            principals,
            name,
            lambda stretch: fixed.fixed_page(cx, members, property_names, stretch, selection, numbers=numbers),
            lambda several: [entry(each.name) for each in several],
            lambda: fixed.count_fixed(cx, members, property_names, selection, numbers=numbers),
        )


Question: TypeAlias = Callable[[Connection, Principals, FeedRequest], ListPage]


def open_request(request: Request, context: RepositoryContext, own: str, title: str) -> OpenFeedRequest:
    """Raises Malformed, NotAcceptable, BadFilter, BadSort, UnknownType."""
    media_type = feed_type(request, context.names)
    options = context.options
    page_request = read_page(parameters.read(request), options)
    return OpenFeedRequest(own, title, page_request, media_type, context, PageRoom(options))


def feed_request(request: Request, context: RepositoryContext, caller: Caller, path: str, title: str) -> FeedRequest:
    """``path`` is below the repository's."""
    feed = open_request(request, context, f"{caller.here}/{path}" if path else caller.here, title)
    return FeedRequest(**vars(feed), caller=caller)


async def answer_list(
    request: Request, context: RepositoryContext, path: str, title: str, question: Question
) -> Response:
    """Find out who calls, and answer with a page of the list at ``path``."""
    caller = await enter(request, context)
    return await answer_with_list(feed_request(request, context, caller, path, title), question)


async def answer_with_list(feed: FeedRequest, question: Question, *, heavy: bool = False) -> Response:
    """A filter, a sort, a total, or a bare number deep in the list makes a page heavy: no index of the database answers
    it. Raises BadSort or BadFilter if they take too long and the caller sees more than ``LONG`` members, as asking
    again would not help.

    Raises what ``Caller.read_long`` raises, too.
    """
    try:
        heavy = heavy or feed.page.is_heavy
        body = await feed.caller.read_long(
            lambda cx, principals: feed.write(question(cx, principals, feed)), heavy=heavy
        )
    except TookTooLong as stopped:
        selection = feed.page.selection
        if not (selection.sort or selection.filter):
            raise
        later_page = msgspec.structs.replace(
            feed.page, part=Part(LONG + 1, 1, None), selection=EVERYTHING, include_total=False, inline=False
        )
        members_behind = await feed.caller.read_long(
            lambda cx, principals: question(cx, principals, replace(feed, page=later_page))
        )
        if not members_behind.entries:
            raise
        raise _too_long(selection, feed) from stopped
    return feed.answer(body)


def _too_long(selection: Selection, feed: FeedRequest) -> BadSort | BadFilter:
    seconds = feed.context.options.question_seconds
    names = " and ".join(repr(spelling.write_property(key.name, feed.names)) for key in selection.sort)
    parts = [*(["the filter"] if selection.filter else []), *([f"the sort by {names}"] if names else [])]
    return (BadSort if names else BadFilter)(
        f"This list has more than {LONG} members, and {' and '.join(parts)} takes longer than {seconds} seconds. "
        "Without that, 'next' leads through the whole list, and every page costs the same."
    )


def read_page(values: Mapping[str, str], options: RepositoryOptions) -> Page:
    """An empty value counts as none.

    Raises Malformed, BadFilter, BadSort, UnknownType.
    """
    values = {name: text for name, text in values.items() if text}
    size, number = read_size(values, options), read_number(values)
    cursor, names = values.get("cursor"), options.names
    if cursor is None and number * size > options.max_page_offset:
        raise Malformed(
            f"Page {number} lies past member {options.max_page_offset}, the deepest that a bare page number reaches: "
            "follow 'next' from page to page."
        )
    type_name = values.get("object-type")
    neutral = partial(spelling.read_property, names=names)
    return Page(
        part=Part(number, size, cursor),
        include_total=parameters.truth(values, "include-total"),
        object_type=spelling.read_type(type_name, names) if type_name else None,
        selection=with_texts(
            reader.read(values.get("filter", ""), values.get("sort", ""), neutral),
            partial(spelling.meant_text, options=options),
        ),
        inline=parameters.truth(values, "inline"),
        links=parameters.truth(values, "links", default=True),
        view=representations.read_view(values, names),
        repeated={name: text for name, text in values.items() if name not in ("page", "items-per-page", "cursor")},
    )


def read_size(values: Mapping[str, str], options: RepositoryOptions) -> int:
    """Raises Malformed."""
    return min(whole_number(values, "items-per-page", options.items_per_page, 1), options.max_items_per_page)


def read_number(values: Mapping[str, str]) -> int:
    """Count from 1; 0 is read as 1. Raises Malformed."""
    return max(1, whole_number(values, "page", 1, 0))


def read_stretch(values: Mapping[str, str], options: RepositoryOptions) -> tuple[int, int]:
    """Read ``start`` and ``limit``, members to skip and members wanted.

    Raises Malformed.
    """
    limit = min(whole_number(values, "limit", options.items_per_page, 1), options.max_items_per_page)
    start = whole_number(values, "start", 0, 0)
    if start + limit > options.max_page_offset:
        raise Malformed(f"'start' and 'limit' lead past member {options.max_page_offset}, the deepest there is.")
    return start, limit


def list_page(
    cx: Connection,
    binding: CursorBinding,
    page_request: Page,
    fetch: Callable[[Stretch], Sequence[T]],
    entries: Callable[[Sequence[T]], Sequence[atom.FeedEntry]],
    count: Callable[[], int],
    *,
    in_portions: bool = False,
) -> ListPage:
    """``fetch`` reads members, ``entries`` makes entries, ``count`` counts all.

    With ``in_portions``, ``fetch`` reads a ``PORTION``, unless a sort is wanted, which each call would repeat. Raises
    Malformed for a cursor of another page, list, filter, sort or caller, and without room for what entries inline.
    """
    part, feed_entries, places = page_request.part, list[atom.FeedEntry](), list[Place]()
    stretch = cursors.stretch(cx, binding, part)
    portion = min(stretch.limit, PORTION) if in_portions and not page_request.selection.sort else stretch.limit
    while stretch.limit:
        members = fetch(msgspec.structs.replace(stretch, limit=min(stretch.limit, portion)))
        feed_entries += entries(members[: part.size - len(places)])
        places += [each.place for each in members]
        if len(members) < portion:
            break
        stretch = Stretch(places[-1], 0, stretch.limit - len(members))
    following = cursors.next_cursor(cx, binding, part, places)
    return ListPage(feed_entries, following, count() if page_request.include_total else None)


def feed_type(request: Request, names: RepositoryNames) -> str:
    """Raises NotAcceptable."""
    return spelling.negotiate(request, spelling.feed_types(names))


def inline(thing: Thing, media_type: str, names: RepositoryNames, room: PageRoom, *, links: bool) -> msgspec.Raw | str:
    """Return the text of a JSON object, or of an XML element. Raises Malformed without room."""
    if not links:
        members = {name: member for name, member in thing.document.items() if name != "links"}
        thing = msgspec.structs.replace(thing, document=members)
    is_json = media_type.endswith("json")
    text = thing.written("application/json" if is_json else "application/xml", names)
    room.take(len(text))
    return msgspec.Raw(text) if is_json else text.decode().removeprefix(_DECLARATION)


def object_entry(here: str, stored: StoredObject, names: RepositoryNames) -> atom.FeedEntry:
    own = f"{here}/{kind_of(stored.id)}s/{stored.id}"
    summary = f"{spelling.write_type(stored.type, names)} {stored.id}"
    owner = representations.user_address(here, stored.owner)
    return atom.FeedEntry(
        *(own, stored.name, stored.owner, summary, stored.modified, own),
        author_address=owner,
        published=stored.created,
    )


def plain_entry(
    own: str, title: str, author: str, summary: str, updated: Instant, published: Instant | None = None
) -> atom.FeedEntry:
    """``published`` is when the thing was made, if it may have changed since then."""
    return atom.FeedEntry(
        own, title, author, summary, updated, own, published=updated if published is None else published
    )


def object_bodies(cx: Connection, view: RepositoryView, several: Sequence[StoredObject]) -> list[ObjectBody]:
    """Read for all at once what is not in the rows."""
    acls_shown = object_acls.shown_acls(cx, several, view.principals)
    values = computed.computed_values(cx, view, several, acls_shown)
    statuses = queue.statuses(cx, [stored.id for stored in several if stored.content is not None])
    places = paths.ancestries(cx, view, [stored for stored in several if holds_objects(stored.id)])
    return [
        ObjectBody(
            stored,
            view.catalogue,
            acls_shown[stored.id].text,
            statuses.get(stored.id, queue.EMPTY).state,
            places.get(stored.id, paths.NOWHERE),
            values[stored.id],
        )
        for stored in several
    ]


def _page_links(own: str, page_request: Page, page: ListPage, options: RepositoryOptions) -> list[atom.Link]:
    """Only ``next`` has a cursor; others too deep without one are left out."""
    part = page_request.part

    def link(rel: str, number: int, cursor: str | None = None) -> atom.Link:
        repeated = {"items-per-page": str(part.size), "page": str(number), **page_request.repeated}
        if cursor is not None:
            repeated["cursor"] = cursor
        return atom.Link(rel, f"{own}?{urlencode(repeated)}")

    links = [link("self", part.number, part.cursor)]
    if page.following is not None:
        links.append(link("next", part.number + 1, page.following))
    if page.following is not None or part.number > 1:
        links += [link(rel, number) for rel, number in other_pages(part.number, part.size, page.total, options)]
    return links


def other_pages(page: int, size: int, total: int | None, options: RepositoryOptions) -> list[tuple[str, int]]:
    """Leave out ``previous`` and ``last`` past ``max_page_offset``, ``last`` also without a total."""
    reach = options.max_page_offset // size
    others = [("previous", page - 1)] if 1 < page <= reach + 1 else []
    others.append(("first", 1))
    if total is not None and (last := max(1, -(-total // size))) <= reach:
        others.append(("last", last))
    return others


def whole_number(values: Mapping[str, str], name: str, default: int, least: int) -> int:
    """Raises Malformed below ``least``, and for no whole number of at most 12 digits."""
    text = values.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) >= least):
        raise Malformed(f"The parameter {name!r} is a number from {least} on, not {text[:40]!r}.")
    return int(text)
