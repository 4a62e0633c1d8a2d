"""Turn the pages of a search: by number, or along a walk that its cursors follow (``walks``)."""

from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.index.contract import Snapshot
from muniment.repository.options import RepositoryOptions
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search import copies, results, walks
from muniment.repository.search.copies import CollapsedSearch
from muniment.repository.search.memory import SearchMemory
from muniment.repository.search.results import HitPage, SearchQuestion
from muniment.repository.search.walks import Binding, Cursor, Slice, Walk


class TurnedPage(NamedTuple):
    """A page, and the cursor ``following`` that leads to the next page.

    If there is no cursor, the next page can only be asked for by its number. If the cursor needs a walk that is not
    stored yet, ``unkept`` is this walk. It must then be kept until ``expires`` (``kept_searches.keep_walk``), or the
    cursor leads nowhere.
    """

    page: HitPage
    following: str | None = None
    unkept: Walk | None = None
    expires: Instant = 0


def by_number(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    now: Instant,
    options: RepositoryOptions,
    memory: SearchMemory,
) -> HitPage:
    """Return the page that the question names by its number, with the hits as of now.

    Raises what ``results.search`` raises.
    """
    if question.collapse:
        return copies.page(CollapsedSearch(cx, snapshot, repository, principals, question, now, options, memory))
    return results.search(
        cx,
        snapshot,
        repository,
        principals,
        question,
        now,
        options.max_page_offset,
        options.max_pending_changes,
        memory,
        options.max_sorted_hits,
        options.names.type_prefix,
    )


def begin(cx: Connection, page: HitPage, following: Binding, now: Instant, options: RepositoryOptions) -> TurnedPage:
    """Return a page that was asked for by number, with the cursor to the next page.

    ``following`` is what the cursor is bound to: the caller, the search and the next page. There is no cursor if no
    page follows, if the page lacks its counters, or if the next page lies beyond the depth that a walk reaches. A page
    beyond this depth is asked for by its number.
    """
    if not page.has_more or not page.counters or following.page * page.items_per_page > options.walk_hits:
        return TurnedPage(page)
    cursor, unkept = walks.begin(page.counters, now)
    text = walks.write(cx, cursor, following)
    return TurnedPage(page, text, unkept, walks.expiry(cursor, options.walk_seconds))


def follow(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    cursor_text: str,
    selection: str,
    now: Instant,
    options: RepositoryOptions,
    memory: SearchMemory,
) -> TurnedPage:
    """Return the page that a cursor leads to.

    Whether the caller may see a hit, and whether the hit still meets the query's condition, is checked again for each
    page. Whether a hit of a kept walk lies in the query's locations is not checked again.

    Raises UnknownLink for a cursor that leads nowhere. Also raises what ``results.search`` raises.
    """
    size = question.items_per_page
    binding = Binding(repository.id, principals.key, selection, question.page, size)
    cursor = walks.read(cx, cursor_text, binding, options.walk_seconds, now)
    if question.collapse:
        asked = (cx, snapshot, repository, principals, question, cursor.began, options, memory)
        return _follow_collapsed(CollapsedSearch(*asked), cursor, selection, now)
    part = walks.fetch(cx, cursor.name, repository.id, principals.key, cursor.offset, size, now)
    unkept: Walk | None = None
    _check_edition(cursor, part)
    if part is None:
        unkept = _make(cx, snapshot, repository, principals, question, cursor, now, options, memory)
        part = unkept.part(cursor.offset, size)
    page = results.page_of_counters(
        cx,
        snapshot,
        repository,
        principals,
        question,
        cursor.began,
        part.counters,
        options.max_pending_changes,
        memory,
    )
    onwards = cursor.after(part, size)
    next_page = Binding(repository.id, principals.key, selection, question.page + 1, size)
    following = None if onwards is None else walks.write(cx, onwards, next_page)
    page = msgspec.structs.replace(page, has_more=onwards is not None or part.cut)
    return TurnedPage(page, following, unkept if following else None, walks.expiry(cursor, options.walk_seconds))


def _follow_collapsed(asked: CollapsedSearch, cursor: Cursor, selection: str, now: Instant) -> TurnedPage:
    """Return the page that a cursor leads to in a search whose copies are collapsed (``copies``)."""
    cx, key, repository_id = asked.cx, asked.principals.key, asked.repository.id
    whole = walks.fetch(cx, cursor.name, repository_id, key, 0, walks.WHOLE, now)
    _check_edition(cursor, whole)
    unkept: Walk | None = None
    if whole is None:
        unkept = copies.make_walk(asked, cursor, walks.counters_shown(cx, cursor, repository_id, key, now))
        whole = unkept.part(0, walks.WHOLE)
    page, next_start = copies.page_of_walk(asked, whole.counters, cursor.offset)
    following = None
    if next_start is not None:
        next_page = Binding(repository_id, key, selection, page.page + 1, page.items_per_page)
        following = walks.write(cx, Cursor(cursor.name, cursor.began, next_start, whole.edition), next_page)
    page = msgspec.structs.replace(page, has_more=following is not None or whole.cut)
    return TurnedPage(page, following, unkept if following else None, walks.expiry(cursor, asked.options.walk_seconds))


def _check_edition(cursor: Cursor, part: Slice | None) -> None:
    """Raise UnknownLink for a cursor into a walk that is not kept, or that another walk has replaced."""
    if cursor.edition and (part is None or part.edition != cursor.edition):
        raise walks.unknown_link()


def _make(
    cx: Connection,
    snapshot: Snapshot,
    repository: Repository,
    principals: Principals,
    question: SearchQuestion,
    cursor: Cursor,
    now: Instant,
    options: RepositoryOptions,
    memory: SearchMemory,
) -> Walk:
    counters_shown = walks.counters_shown(cx, cursor, repository.id, principals.key, now)
    standing = results.standing(
        cx,
        snapshot,
        repository,
        principals,
        question,
        cursor.began,
        options.walk_hits + 1,
        options.max_pending_changes,
        memory,
        options.max_sorted_hits,
        options.names.type_prefix,
    )
    first_page = question.page - 1
    return walks.make(cursor, standing, counters_shown, first_page, question.items_per_page, options.walk_hits)
