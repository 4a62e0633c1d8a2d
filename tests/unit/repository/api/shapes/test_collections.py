"""Lists as feeds: a page without room for its things is refused before all of them are read."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from muniment.database.connections import Database
from muniment.ground.refusals import Malformed
from muniment.repository.api.shapes import collections
from muniment.repository.api.shapes.collections import PageRoom
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.options import RepositoryOptions
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.filters.cursors import CursorBinding, Place, Stretch

OPTIONS = RepositoryOptions(max_page_bytes=65_536)
THING = Thing("thing", {"text": "x" * 30_000})
BINDING = CursorBinding(1, "somebody", "things", "")


class Member(NamedTuple):
    number: int

    @property
    def place(self) -> Place:
        return (self.number,)


MEMBERS = [Member(number) for number in range(100)]


@pytest.mark.parametrize("media_type", ["application/json", "application/hal+json", "application/atom+xml"])
def test_a_page_without_room_is_refused_before_the_rest_is_read(
    repository_db: Database, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    room = PageRoom(OPTIONS)

    def fetch(stretch: Stretch) -> Sequence[Member]:
        begin = next((each.number + 1 for each in MEMBERS if each.place == stretch.after), stretch.offset)
        members = MEMBERS[begin : begin + stretch.limit]
        read.extend(each.number for each in members)
        return members

    def entries(members: Sequence[Member]) -> list[FeedEntry]:
        return [
            FeedEntry(
                str(each.number),
                *("", "", "", 0, ""),
                inlined=collections.inline(THING, media_type, OPTIONS.names, room, links=True),
            )
            for each in members
        ]

    monkeypatch.setattr(collections, "PORTION", 2)
    page = collections.read_page({"inline": "true"}, OPTIONS)
    with repository_db.read() as cx, pytest.raises(Malformed, match="more than 65536 bytes"):
        collections.list_page(cx, BINDING, page, fetch, entries, lambda: len(MEMBERS), in_portions=True)
    assert read == [0, 1, 2, 3]
