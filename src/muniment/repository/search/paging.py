"""From page to page of a search: by number, or along a walk that its cursors follow (``walks``)."""

from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.index.contract import Snapshot
from muniment.repository.options import RepositoryOptions
from muniment.repository.permissions.principals import Principals
from muniment.repository.repositories import Repository
from muniment.repository.search import results, walks
from muniment.repository.search.memory import SearchMemory
from muniment.repository.search.results import HitPage, SearchQuestion
from muniment.repository.search.walks import Binding, Cursor, Walk


class TurnedPage(NamedTuple):
    """A page, and how it goes on: by a cursor, or without one by the number of the next page.

    ``unkept`` must be kept until ``expires``, or the cursor leads nowhere.
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
    """Return a page as it stands now. Raises as ``results.search``."""
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
    """Say how a page that was turned to by its number goes on. ``following`` is the next page.

    Pages that lie deeper than a walk reaches go on by number.
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
    """Return the page that a cursor leads to. Rights, and whether the hits still match, are asked anew.

    Raises UnknownLink for a cursor that leads nowhere, and as ``results.search``.
    """
    size = question.items_per_page
    binding = Binding(repository.id, principals.key, selection, question.page, size)
    cursor = walks.read(cx, cursor_text, binding, options.walk_seconds, now)
    part = walks.fetch(cx, cursor.name, repository.id, principals.key, cursor.offset, size, now)
    unkept: Walk | None = None
    if cursor.edition:
        if part is None or part.edition != cursor.edition:
            raise walks.unknown_link()
    elif part is None:
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
    following = None
    if onwards is not None:
        next_page = Binding(repository.id, principals.key, selection, question.page + 1, size)
        following = walks.write(cx, onwards, next_page)
    page = msgspec.structs.replace(page, has_more=onwards is not None or part.cut)
    return TurnedPage(page, following, unkept if following else None, walks.expiry(cursor, options.walk_seconds))


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
