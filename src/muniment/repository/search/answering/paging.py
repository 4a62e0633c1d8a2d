"""Turn the pages of a search: by number, or along a walk that its cursors follow (``scrolls``)."""

from typing import NamedTuple

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.search.answering import collapsing, results
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.ordering import scrolls
from muniment.repository.search.answering.ordering.scrolls import Binding, Cursor, Holder, Scroll, Slice
from muniment.repository.search.answering.results import HitPage


class TurnedPage(NamedTuple):
    """``following`` leads to the next page; without it, a page is asked for by number.

    ``unkept`` is a walk to keep (``kept_searches.keep_walk``), or the cursor leads nowhere.
    """

    page: HitPage
    following: str | None = None
    unkept: Scroll | None = None


def by_number(inquiry: Inquiry) -> HitPage:
    """Raises what ``results.search`` raises."""
    return collapsing.collapsed_page(inquiry) if inquiry.question.collapse else results.search(inquiry)


def begin(inquiry: Inquiry, page: HitPage, selection: str) -> TurnedPage:
    """Add the cursor to the next page, if a page follows, has counters, and lies within the depth of a walk."""
    if not page.has_more or not page.counters or (page.page + 1) * page.items_per_page > inquiry.options.walk_hits:
        return TurnedPage(page)
    cursor, unkept = scrolls.begin(page.counters, inquiry.now)
    return TurnedPage(page, _write(inquiry, cursor, selection), unkept)


def follow(inquiry: Inquiry, cursor_text: str, selection: str) -> TurnedPage:
    """Return the page of a cursor. Whether the caller may see a hit, and whether it meets the condition, is checked
    again for each page; its location, in a kept walk, is not.

    Raises UnknownLink for a cursor that leads nowhere. Also raises what ``results.search`` raises.
    """
    cx, question, now = inquiry.cx, inquiry.question, inquiry.now
    binding = _binding(inquiry, selection, question.page)
    cursor = scrolls.read(cx, cursor_text, binding, inquiry.options.walk_seconds, now)
    # Relative dates count from when the walk began.
    inquiry = msgspec.structs.replace(inquiry, now=cursor.began)
    holder, size = Holder(inquiry.repository.id, inquiry.principals.key), question.items_per_page
    wanted = (0, scrolls.WHOLE) if question.collapse else (cursor.offset, size)
    part = scrolls.fetch(cx, cursor.name, holder, now, wanted)
    if cursor.edition and (part is None or part.edition != cursor.edition):
        raise scrolls.unknown_link()
    unkept: Scroll | None = None
    if part is None:
        unkept = _make(inquiry, cursor, holder, now)
        part = unkept.part(*wanted)
    page, onwards = _collapsed(inquiry, cursor, part) if question.collapse else _plain(inquiry, cursor, part)
    following = None if onwards is None else _write(inquiry, onwards, selection)
    page = msgspec.structs.replace(page, has_more=onwards is not None or part.cut)
    return TurnedPage(page, following, unkept if following else None)


def _plain(inquiry: Inquiry, cursor: Cursor, part: Slice) -> tuple[HitPage, Cursor | None]:
    page = results.page_of_counters(inquiry, part.counters)
    return page, cursor.after(part, inquiry.question.items_per_page)


def _collapsed(inquiry: Inquiry, cursor: Cursor, whole: Slice) -> tuple[HitPage, Cursor | None]:
    page, next_start = collapsing.page_of_walk(inquiry, whole.counters, cursor.offset)
    return page, None if next_start is None else Cursor(cursor.name, cursor.began, next_start, whole.edition)


def _make(inquiry: Inquiry, cursor: Cursor, holder: Holder, now: Instant) -> Scroll:
    shown = scrolls.counters_shown(inquiry.cx, cursor, holder, now)
    if inquiry.question.collapse:
        return collapsing.make_walk(inquiry, cursor, shown)
    _, standing = results.standing(inquiry)
    return scrolls.make(cursor, standing, shown, inquiry.question, inquiry.options.walk_hits)


def _write(inquiry: Inquiry, cursor: Cursor, selection: str) -> str:
    return scrolls.write(inquiry.cx, cursor, _binding(inquiry, selection, inquiry.question.page + 1))


def _binding(inquiry: Inquiry, selection: str, page: int) -> Binding:
    key, size = inquiry.principals.key, inquiry.question.items_per_page
    return Binding(inquiry.repository.id, key, selection, page, size)
