"""A search is kept for its caller alone, for a while, and only so many of them."""

import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import UnknownLink
from muniment.repository.search.agent import agent
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering.scrolls import Holder
from muniment.repository.search.aql.tree import (
    Both,
    Either,
    ExpressionSet,
    FacetDefinition,
    Fulltext,
    Location,
    Phrase,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    RelativeDate,
    SortCriterion,
    Term,
    Wild,
    Without,
)
from muniment.repository.search.index.tantivy.generations import FolderEngine
from muniment.repository.store import repositories

HOUR = 3600
PLENTY = RepositoryOptions(link_seconds=HOUR, kept_queries=1000, kept_query_bytes=1_000_000)


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "demo", "00000000-0000-4000-8000-000000000000", "", now).id


def test_a_kept_search_is_followed_by_its_caller_only(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    """failures B18"""
    with repository_db.begin() as cx:
        link = kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, now)
    with repository_db.read() as cx:
        assert kept_searches.follow(cx, Holder(repository_id, "marta@staff"), link, now) == b"<q/>"
        for other in ("boris@staff", "", "MARTA@staff"):
            with pytest.raises(UnknownLink):
                kept_searches.follow(cx, Holder(repository_id, other), link, now)
        with pytest.raises(UnknownLink):
            kept_searches.follow(cx, Holder(repository_id + 1, "marta@staff"), link, now)


def test_a_search_of_another_format_is_gone_until_it_is_sent_again(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    with repository_db.begin() as cx:
        link = kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, now)
        cx.execute(kept_searches.links.update().values(format=kept_searches.FORMAT + 1))
    with repository_db.begin() as cx:
        with pytest.raises(UnknownLink, match="send it again"):
            kept_searches.follow(cx, Holder(repository_id, "marta@staff"), link, now)
        assert kept_searches.kept_until(cx, link, b"<q/>") == 0
        assert kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, now) == link
        assert kept_searches.follow(cx, Holder(repository_id, "marta@staff"), link, now) == b"<q/>"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b'{"type":"Other"}',
        b'{"type":"Query","types":[1]}',
        b'{"type":"Query","types":["\xff"]}',
    ],
)
def test_a_damaged_document_is_gone(document: bytes) -> None:
    with pytest.raises(UnknownLink, match="send it again"):
        kept_searches.decode(document)


def test_a_query_that_this_format_was_given_is_read() -> None:
    """Whoever changes the tree so that this fails raises ``kept_searches.FORMAT`` and writes the new bytes here."""
    query = Query(
        types=("document",),
        condition=ExpressionSet(
            "AND",
            (
                Fulltext(Both((Wild("pump*"), Either((Phrase("a b"), Without(Term("c"))))))),
                Property("object_name", "BEGINS_WITH", "x"),
                PropertyList("weight", "NOT_IN", ("1", "2.5", "true")),
                PropertyRange("created", "BETWEEN", "1", "2", "place"),
                RelativeDate("created", "LESS_THAN", -2, "WEEK"),
            ),
        ),
        columns=("title",),
        sorts=(SortCriterion("title", ascending=False),),
        locations=(Location("/Plant", descendants=True),),
        facets=(FacetDefinition("by_type", ("r_object_type",), nested=FacetDefinition("by_owner", ("owner_name",))),),
        facet_hits=500,
    )
    kept = (Path(__file__).parent / "kept_query_3.json").read_bytes()
    assert kept_searches.FORMAT == 3
    assert kept_searches.decode(kept) == query
    assert kept_searches.encode(query) == kept


@pytest.mark.parametrize("link", ["", "zz", "00", "0" * 32, "é", "0" * 4000])
def test_an_unknown_link_is_refused(repository_db: Database, repository_id: int, now: Instant, link: str) -> None:
    with repository_db.read() as cx, pytest.raises(UnknownLink):
        kept_searches.follow(cx, Holder(repository_id, "marta@staff"), link, now)


def test_the_same_search_has_the_same_link_and_lives_on(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    later = now + HOUR * SECOND // 2
    with repository_db.begin() as cx:
        first = kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, now)
        assert kept_searches.kept_until(cx, first, b"<q/>") == now + HOUR * SECOND
        assert kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, later) == first
        assert kept_searches.follow(cx, Holder(repository_id, "marta@staff"), first, now + HOUR * SECOND) == b"<q/>"
        assert kept_searches.keep_search(cx, Holder(repository_id, "boris@staff"), b"<q/>", PLENTY, now) != first
        assert kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<r/>", PLENTY, now) != first


def test_a_link_ends_with_its_time_and_is_purged(repository_db: Database, repository_id: int, now: Instant) -> None:
    with repository_db.begin() as cx:
        link = kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", PLENTY, now)
        assert kept_searches.purge(cx, now) == 0
        with pytest.raises(UnknownLink):
            kept_searches.follow(cx, Holder(repository_id, "marta@staff"), link, now + HOUR * SECOND)
        assert kept_searches.purge(cx, now + HOUR * SECOND) == 1
        assert not kept_searches.kept_until(cx, link, b"<q/>")


def _left(database: Database, caller: str) -> list[bytes]:
    with database.read() as cx:
        rows = cx.execute(
            sa.text("SELECT document FROM links WHERE caller = :caller ORDER BY expires"), {"caller": caller}
        )
        return [bytes(row.document) for row in rows]


def test_of_more_searches_than_a_caller_may_keep_the_oldest_goes(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    """failures C6"""
    quota = RepositoryOptions(link_seconds=HOUR, kept_queries=3, kept_query_bytes=1000)
    for number in range(8):
        for caller in ("marta@staff", "boris@staff"):
            with repository_db.begin() as cx:
                kept_searches.keep_search(cx, Holder(repository_id, caller), b"<q%d/>" % number, quota, now + number)
    assert _left(repository_db, "marta@staff") == [b"<q5/>", b"<q6/>", b"<q7/>"]
    assert _left(repository_db, "boris@staff") == [b"<q5/>", b"<q6/>", b"<q7/>"]


def test_a_search_that_is_asked_again_is_not_the_oldest(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    quota = RepositoryOptions(link_seconds=HOUR, kept_queries=2, kept_query_bytes=1000)
    for later, document in enumerate((b"<a/>", b"<b/>", b"<a/>", b"<c/>")):
        with repository_db.begin() as cx:
            kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), document, quota, now + later)
    assert _left(repository_db, "marta@staff") == [b"<a/>", b"<c/>"]


def test_the_bytes_of_a_callers_searches_are_bounded_and_the_newest_is_always_kept(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    quota = RepositoryOptions(link_seconds=HOUR, kept_queries=100, kept_query_bytes=1000)
    left = [[400], [400] * 2, [400] * 2, [2000]]
    for number, size in enumerate((400, 400, 400, 2000)):
        with repository_db.begin() as cx:
            kept_searches.keep_search(
                cx, Holder(repository_id, "marta@staff"), b"%d" % number * size, quota, now + number
            )
        assert [len(one) for one in _left(repository_db, "marta@staff")] == left[number]


def test_callers_at_one_time_keep_no_more_than_they_may(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    quota = RepositoryOptions(link_seconds=HOUR, kept_queries=5, kept_query_bytes=1_000_000)

    def keep(worker: int) -> None:
        for number in range(10):
            with repository_db.begin() as cx:
                kept_searches.keep_search(
                    cx, Holder(repository_id, "marta@staff"), b"<q%d.%d/>" % (worker, number), quota, now
                )

    workers = [threading.Thread(target=keep, args=(worker,)) for worker in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(_left(repository_db, "marta@staff")) == 5


@pytest.mark.slow
def test_one_run_of_the_chores_leaves_nothing_expired(
    repository_db: Database, repository_id: int, now: Instant, tmp_path: Path
) -> None:
    """failures C6"""
    quota = RepositoryOptions(link_seconds=HOUR, kept_queries=10_000, kept_query_bytes=10_000_000)
    with repository_db.begin() as cx:
        for number in range(2500):
            kept_searches.keep_search(
                cx, Holder(repository_id, f"user{number % 7}@staff"), b"<q%d/>" % number, quota, now
            )
        living = kept_searches.keep_search(cx, Holder(repository_id, "marta@staff"), b"<q/>", RepositoryOptions(), now)
    largest = 0

    def note(_cx: object, cursor: Any, statement: str, *_rest: object) -> None:
        nonlocal largest
        largest = max(largest, cursor.rowcount if statement.startswith("DELETE FROM links") else 0)

    sa.event.listen(repository_db.engine, "after_cursor_execute", note)
    agent._chores(repository_db, FolderEngine(tmp_path), lambda: now + HOUR * SECOND)
    sa.event.remove(repository_db.engine, "after_cursor_execute", note)
    with repository_db.read() as cx:
        assert cx.execute(sa.text("SELECT digest FROM links")).scalars().all() == [bytes.fromhex(living)]
    assert 0 < largest <= 200, "no long transaction"
