"""A search whose copies are collapsed: of several hits with the same content, only the first one is shown.

Only contents that the caller may read count: who may only browse an object learns nothing of its content.

Total and facets count copies as well. Source: docs/aql.md, "Copies"; docs/decisions/0045.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.ordering import scrolls
from muniment.repository.search.index.contract import Search, Visible
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import ContentDigest

_COPY = 1
"""The lowest bit of a number in a walk says that the hit is a copy; the others are its counter."""


def collapsed_page(inquiry: Inquiry) -> results.HitPage:
    """Raises what ``results.search`` raises."""
    question, most = inquiry.question, inquiry.options.walk_hits
    if question.words == "auto":
        return results.relaxed_if_few(inquiry, collapsed_page)
    search, standing = results.standing(inquiry)
    counters = standing[:most]
    contents = _contents(inquiry, search.visible, counters)
    copies_of = _count(_originals(counters, contents))
    offset = (question.page - 1) * question.items_per_page
    on_page, cut = tuple(copies_of)[offset : offset + question.items_per_page], len(standing) > most
    if cut and not on_page:
        raise BadQuery(f"Page {question.page} lies past the first {most} hits: only among these, copies are collapsed.")
    shown_page = results.show(inquiry, on_page, search, search)
    more = cut or len(copies_of) > offset + len(on_page)
    return msgspec.structs.replace(
        shown_page, hits=_with_copies(shown_page, copies_of, contents), has_more=more, counters=on_page
    )


def make_walk(inquiry: Inquiry, cursor: scrolls.Cursor, after: Sequence[int]) -> scrolls.Scroll:
    """Leave out the hits ``after`` that the page showed, those before them, and all their copies. Each original is
    followed by its copies, so that a copy takes the place of a removed one.
    """
    question, most = inquiry.question, inquiry.options.walk_hits
    search, standing = results.standing(inquiry)
    counters = [*standing[:most], *after]
    original_of = _originals(counters, _contents(inquiry, search.visible, counters))
    members: dict[int, list[int]] = {}
    for counter, original in original_of.items():
        members.setdefault(original, []).append(counter)
    shown = [original_of[counter] for counter in after]
    passed_count = scrolls.count_passed(tuple(members), shown, question)
    left_out = {*shown, *tuple(members)[:passed_count]}
    walk = [
        counter << 1 | (_COPY if counter != original else 0)
        for original, group in members.items()
        if original not in left_out
        for counter in group
    ]
    return scrolls.Scroll(cursor.name, cursor.began, walk, cut=len(standing) > most)


def page_of_walk(inquiry: Inquiry, walk: Sequence[int], start: int) -> tuple[results.HitPage, int | None]:
    """Return the page at ``start`` of a whole walk, and the place of the next, or None.

    It checks again which objects are hits, and which of them the caller may read; a copy whose content has changed is a
    hit of its own.

    Raises what ``results.page_of_counters`` raises.
    """
    size = inquiry.question.items_per_page
    search, count_search = results.searches_of_counters(inquiry)
    begin = start
    while 0 < begin < len(walk) and walk[begin] & _COPY:  # The page before has shown some of this group.
        begin -= 1
    begins = [place for place in range(begin, len(walk)) if not walk[place] & _COPY]
    end = begins[size] if len(begins) > size else len(walk)
    groups = [[each >> 1 for each in walk[first:behind]] for first, behind in itertools.pairwise([*begins[:size], end])]
    several = [counter for group in groups if len(group) > 1 for counter in group]
    digests = lists.content_digests(inquiry.cx, inquiry.repository.id, several)
    contents, gone = _readable(inquiry, search.visible, digests), set(several) - _still_hits(inquiry, search, digests)
    original_of: dict[int, int] = {}
    for group in groups:
        original_of |= _originals([counter for counter in group if counter not in gone], contents)
    copies_of, passed = _count(original_of), frozenset(each >> 1 for each in walk[begin:start])
    left = [original for original in copies_of if original not in passed]
    on_page = left[:size]
    shown_page = results.show(inquiry, on_page, search, count_search)
    following: int | None = end if end < len(walk) else None
    if len(left) > size:
        following = next(place for place in range(start, end) if walk[place] >> 1 == left[size])
    hits = _with_copies(shown_page, copies_of, contents)
    return msgspec.structs.replace(shown_page, hits=hits), following


def _contents(inquiry: Inquiry, visible: Visible, counters: Sequence[int]) -> dict[int, ContentDigest]:
    return _readable(inquiry, visible, lists.content_digests(inquiry.cx, inquiry.repository.id, counters))


def _readable(inquiry: Inquiry, visible: Visible, digests: Collection[ContentDigest]) -> dict[int, ContentDigest]:
    principals = inquiry.principals
    return {
        each.counter: each
        for each in digests
        if principals.administrator or each.acl_id in visible.read_acls or principals.is_(each.owner_key)
    }


def _still_hits(inquiry: Inquiry, search: Search, digests: Collection[ContentDigest]) -> set[int]:
    ids = frozenset(each.object_id for each in digests)
    among = msgspec.structs.replace(search, offset=0, limit=len(ids), among=ids)
    return set(inquiry.snapshot.counters(among, "made")) if ids else set()


def _originals(counters: Sequence[int], contents: Mapping[int, ContentDigest]) -> dict[int, int]:
    first_of: dict[bytes, int] = {}
    return {
        counter: first_of.setdefault(contents[counter].sha256, counter) if counter in contents else counter
        for counter in counters
    }


def _count(original_of: Mapping[int, int]) -> dict[int, int]:
    return {original: hits - 1 for original, hits in Counter(original_of.values()).items()}


def _with_copies(
    shown_page: results.HitPage, copies_of: Mapping[int, int], contents: Mapping[int, ContentDigest]
) -> tuple[results.Hit, ...]:
    by_id = {contents[original].object_id: count for original, count in copies_of.items() if original in contents}
    return tuple(msgspec.structs.replace(hit, copies=by_id.get(hit.object_id, 0)) for hit in shown_page.hits)
