"""Walks along `next`: who can follow a cursor and for how long, what is kept for it, and what each page asks anew."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import sqlalchemy as sa

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.search.answering import results
from muniment.repository.search.answering.kept import kept_searches
from muniment.repository.search.answering.ordering import scrolls
from muniment.repository.search.answering.ordering.scrolls import Holder, Scroll
from tests.shelf import BORIS, MARTA
from tests.walkers import QUERIES, Walkers, following, ids, open_walkers, walk

pytestmark = pytest.mark.campaign_on("postgresql")

MANY = [4 * number + 1 for number in range(11)]
"""Objects that Marta owns or may see."""

OF_MARTA = [number for number in MANY if number % 3]


def nothing(_number: int) -> None:
    """Let nothing happen between two pages."""


def page_two(walkers: Walkers, query: str = "by score", size: int = 2) -> str:
    """Give the cursor's address after the first page."""
    address = following(walkers.first("marta", query, size))
    assert address is not None
    assert "cursor=" in address
    return address


def status(walkers: Walkers, address: str, caller: str = "marta") -> tuple[int, str]:
    """Say how an address is answered, with the code of the error document."""
    headers = {"Authorization": f"Bearer {caller}", "Accept": "application/json"}
    answer = walkers.clients[1].get(address, headers=headers)
    return answer.status_code, str(answer.json().get("code", ""))


def changed(address: str, **others: str) -> str:
    """Change parameters of an address."""
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query)) | others
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode({k: v for k, v in query.items() if v})}"


def rows(database: Database) -> int:
    """Count the walks that are kept."""
    with database.read() as cx:
        return int(cx.execute(sa.text("SELECT count(*) FROM walks")).scalar_one())


@pytest.mark.parametrize("query", [*QUERIES, "posted"])
def test_a_walk_that_nobody_disturbs_has_the_order_of_one_large_page(
    repository_db: Database, now: Instant, query: str
) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        whole = ids(walkers.first("marta", query, 100))
        assert len(whole) == len(MANY)
        assert walk(walkers, "marta", query, 3, nothing) == whole


def test_hits_have_their_excerpts_scores_and_terms_on_every_page(repository_db: Database, now: Instant) -> None:
    def told(page: dict[str, Any]) -> dict[str, tuple[object, ...]]:
        return {entry["id"]: (entry["summary"], entry["score"], entry["terms"]) for entry in page["entries"]}

    with open_walkers(repository_db, now, MANY) as walkers:
        whole = told(walkers.first("marta", "by score", 100))
        page = walkers.get("marta", page_two(walkers))
        assert told(page).items() <= whole.items()
        assert all(terms == ["valve"] for _, _, terms in told(page).values())


def test_a_cursor_leads_its_own_caller_alone_to_its_own_page_alone(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        for query in ("by score", "posted"):
            address = page_two(walkers, query)
            cursor = dict(parse_qsl(urlsplit(address).query))["cursor"]
            later = following(walkers.get("marta", address))
            assert later is not None
            refused = (404, "E_UNKNOWN_SEARCH")
            for each in (address, later):
                assert status(walkers, each)[0] == 200
                assert status(walkers, each, "boris") == refused
                assert status(walkers, changed(each, page="7")) == refused
                assert status(walkers, changed(each, **{"items-per-page": "3"})) == refused
            assert status(walkers, changed(later, cursor=cursor)) == refused
            assert status(walkers, changed(address, cursor=cursor[:-4] + "AAAA")) == refused
            assert status(walkers, changed(address, cursor="x" * 9000)) == refused
        address = page_two(walkers)
        assert status(walkers, changed(address, q="pump")) == refused
        assert status(walkers, changed(address, sort="title")) == refused
        assert status(walkers, changed(address, **{"include-total": "true", "inline": "true"}))[0] == 200


def test_a_cursor_of_another_repository_leads_nowhere(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as one, open_walkers(repository_db, now, MANY) as other:
        address = page_two(one)
        there = address.replace(one.shelf.repository.name, other.shelf.repository.name)
        assert status(other, there) == (404, "E_UNKNOWN_SEARCH")


def test_a_walk_ends_an_hour_after_its_first_page(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        first = page_two(walkers)
        walkers.clock.advance(walkers.options.walk_seconds - 1)
        second = following(walkers.get("marta", first))
        assert second is not None
        assert status(walkers, second)[0] == 200
        walkers.clock.advance(1)
        for address in (first, second):
            assert status(walkers, address) == (404, "E_UNKNOWN_SEARCH")
        with repository_db.begin() as cx:
            assert kept_searches.purge(cx, walkers.clock()) == 1
        assert rows(repository_db) == 0


def test_rights_are_asked_anew_for_each_page(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, OF_MARTA) as walkers:
        shown = walkers.first("boris", "by modification", 2)
        rest = [each for each in walkers.visible("boris") if each not in ids(shown)]
        address = following(shown)
        assert address is not None
        page = walkers.get("boris", address)
        hidden = [each for each in rest if each not in ids(page)]
        for object_id in hidden:
            walkers.change(object_id, acl_name="private")
        third = walkers.get("boris", str(following(page)))
        assert len(hidden) > 2
        assert set(ids(third)).isdisjoint(hidden)
        for object_id in hidden:
            walkers.change(object_id, acl_name="public")
        again = walkers.get("boris", str(following(page)))
        assert len(ids(again)) == 2, "the pages of a walk stay what they are"


def test_what_was_deleted_or_matches_no_more_is_left_out_and_next_stays(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        page = walkers.get("marta", page_two(walkers, "by modification", 3))
        following_ids = ids(walkers.get("marta", str(following(page))))
        for object_id in following_ids[:2]:
            walkers.delete(object_id)
        third = walkers.get("marta", str(following(page)))
        assert ids(third) == following_ids[2:]
        assert following(third)


def test_a_query_without_hits_on_further_pages_keeps_nothing(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        walkers.first("marta", "by score", 2)
        walkers.first("marta", "by score", 100)
        assert walk(walkers, "marta", "by score", 6, nothing)
        assert rows(repository_db) == 0, "two pages need no walk"
        walk(walkers, "marta", "by score", 2, nothing)
        assert rows(repository_db) == 1


def test_a_large_page_keeps_what_it_shows(
    repository_db: Database, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrolls, "SHOWN_AT_MOST", 2)
    with open_walkers(repository_db, now, MANY) as walkers:
        whole = ids(walkers.first("marta", "by score", 100))
        assert walk(walkers, "marta", "by score", 3, nothing) == whole
        address = page_two(walkers, "by score", 3)
        with repository_db.begin() as cx:
            cx.execute(sa.text("DELETE FROM walks"))
        assert status(walkers, address) == (404, "E_UNKNOWN_SEARCH")


def test_a_walk_made_again_is_another_one(repository_db: Database, now: Instant) -> None:
    """A cursor into a walk that was dropped must not lead into one that its first page's cursor made later."""
    with open_walkers(repository_db, now, MANY) as walkers:
        first = page_two(walkers)
        later = following(walkers.get("marta", first))
        assert later is not None
        with repository_db.begin() as cx:
            cx.execute(sa.text("DELETE FROM walks"))
        assert status(walkers, later) == (404, "E_UNKNOWN_SEARCH")
        again = following(walkers.get("marta", first))
        assert status(walkers, later) == (404, "E_UNKNOWN_SEARCH")
        assert status(walkers, str(again))[0] == 200


def test_two_who_follow_one_cursor_at_one_time_walk_one_walk(
    repository_db: Database, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have made the walk before either has kept it; objects come between the two."""
    both, taken = threading.Barrier(2, timeout=20), threading.local()
    standing = results.standing

    def stand(*arguments: Any) -> Any:
        search, counters = standing(*arguments)
        found = list(counters)
        if not getattr(taken, "once", False):
            taken.once = True
            if both.wait() == 0:
                found.reverse()
        return search, found

    with open_walkers(repository_db, now, MANY) as walkers:
        first = page_two(walkers)
        monkeypatch.setattr(results, "standing", stand)

        def follow(worker: int) -> list[str]:
            page = walkers.get("marta", first, worker)
            seen = ids(page)
            while (address := following(page)) is not None:
                page = walkers.get("marta", address, worker)
                seen += ids(page)
            return seen

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(follow, (0, 1))
        assert one == other
        assert len(set(one)) == len(one) == len(MANY) - 2
        assert rows(repository_db) == 1


def test_after_a_walk_that_was_cut_pages_go_on_by_number(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY, RepositoryOptions(walk_hits=7)) as walkers:
        whole = ids(walkers.first("marta", "by modification", 100))
        seen: list[str] = []
        cursors = []
        page = walkers.first("marta", "by modification", 2)
        while True:
            seen += ids(page)
            address = following(page)
            if address is None:
                break
            cursors.append("cursor=" in address)
            page = walkers.get("marta", address)
        assert seen == whole
        assert cursors == [True, True, False, False, False]


def test_a_search_collapses_copies_among_its_first_hits_and_refuses_to_go_on_behind_them(
    repository_db: Database, now: Instant
) -> None:
    with open_walkers(
        repository_db, now, [1, 1, 1, 2, 3, 5, 1, 6, 7, 9, 10], RepositoryOptions(walk_hits=8)
    ) as walkers:
        page = walkers.get("root", _collapsed(walkers))
        seen = [(entry["id"], entry["copies"]) for entry in page["entries"]]
        while "cursor=" in (address := str(following(page))):
            page = walkers.get("root", address)
            seen += [(entry["id"], entry["copies"]) for entry in page["entries"]]
        assert [walkers.contents[object_id] for object_id, _ in seen] == [1, 2, 3, 5, 6]
        assert [copies for _, copies in seen] == [3, 0, 0, 0, 0]
        assert status(walkers, address, "root") == (400, "E_BAD_QUERY")
        assert len(walkers.get("root", _collapsed(walkers, page=3))["entries"]) == 1


def test_a_copy_takes_the_place_of_an_original_that_goes_during_a_walk(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, [1, 2, 3, 3, 3, 5, 5]) as walkers:
        one, two, first, second, _, fourth, _ = walkers.objects
        page = walkers.get("root", _collapsed(walkers))
        assert ids(page) == [one, two]
        following_page = str(following(page))
        assert told(walkers.get("root", following_page)) == [(first, 2), (fourth, 1)]
        assert rows(repository_db) == 0, "two pages need no walk"
        walkers.delete(first)
        assert told(walkers.get("root", following_page)) == [(second, 1), (fourth, 1)]
        walkers.add(7)
        page = walkers.get("root", following_page)
        assert told(page) == [(second, 1), (fourth, 1)]


def test_copies_in_a_walk_that_is_kept_are_asked_about_anew(repository_db: Database, now: Instant) -> None:
    """Who may read them, whether they are hits, and whether their contents are still equal."""
    with open_walkers(repository_db, now, [1, 2, 5, 5, 5, 5, 7, 10]) as walkers:
        one, _, first, second, third, _, seventh, last = walkers.objects
        page = walkers.get("root", _collapsed(walkers, size=1))
        assert ids(page) == [one]
        second_page = walkers.get("root", str(following(page)))
        address = str(following(second_page))
        assert told(walkers.get("root", address)) == [(first, 3)]
        walkers.delete(first)
        walkers.shelf.replace(third, "valve of another content")
        walkers.shelf.extract("valve of another content")
        assert told(walkers.get("root", address)) == [(second, 1)]
        walkers.shelf.catch_up()
        page = walkers.get("root", address)
        assert told(page) == [(second, 1)]
        page = walkers.get("root", str(following(page)))
        assert told(page) == [(third, 0)], "it is no copy any more"
        page = walkers.get("root", str(following(page)))
        assert told(page) == [(seventh, 0)]
        page = walkers.get("root", str(following(page)))
        assert told(page) == [(last, 0)]
        assert following(page) is None
        assert rows(repository_db) == 1


def _collapsed(walkers: Walkers, page: int = 1, size: int = 2) -> str:
    """Give the address of a page of all hits in the order in which they were made, without copies."""
    here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
    return f"{here}?q=valve&sort=r_object_type&collapse=content&items-per-page={size}&page={page}"


def told(page: dict[str, Any]) -> list[tuple[str, int]]:
    """List the hits of a page with the numbers of their copies."""
    return [(entry["id"], entry["copies"]) for entry in page["entries"]]


def test_the_total_is_counted_anew(repository_db: Database, now: Instant) -> None:
    with open_walkers(repository_db, now, MANY) as walkers:
        address = changed(page_two(walkers), **{"include-total": "true"})
        assert walkers.get("marta", address)["total"] == len(MANY)
        hidden = list(walkers.objects)[-1]
        walkers.delete(hidden)
        assert walkers.get("marta", address)["total"] == len(MANY) - 1


def test_relative_dates_count_from_the_first_page_on(repository_db: Database, now: Instant) -> None:
    document = (
        '<search xmlns="urn:muniment:vocab"><expression-set><expressions><relative-date name="r_modify_date" '
        'operator="GREATER_THAN" time-unit="MINUTE">-10</relative-date></expressions></expression-set></search>'
    )
    headers = {"Authorization": "Bearer marta", "Accept": "application/json", "Content-Type": "application/xml"}
    with open_walkers(repository_db, now, MANY) as walkers:
        walkers.clock.now = walkers.shelf.now
        here = f"/rest/repositories/{walkers.shelf.repository.name}/search?items-per-page=4"
        page = walkers.clients[0].post(here, content=document, headers=headers).json()
        seen = ids(page)
        while (address := following(page)) is not None:
            walkers.clock.advance(700)
            page = walkers.get("marta", address)
            seen += ids(page)
        assert len(seen) == len(set(seen)) == len(MANY)


def _keep(cx: sa.Connection, holder: Holder, name: int, hits: int, now: Instant, options: RepositoryOptions) -> bool:
    return kept_searches.keep_walk(cx, holder, Scroll(name.to_bytes(16, "big"), now, range(hits)), options, now)


def test_walks_and_searches_share_their_callers_quota_and_the_oldest_go_first(
    repository_db: Database, now: Instant
) -> None:
    """failures C6"""
    quota = RepositoryOptions(kept_queries=3, kept_query_bytes=1_000_000)
    with open_walkers(repository_db, now, []) as walkers, repository_db.begin() as cx:
        here = walkers.shelf.repository.id
        marta, boris = Holder(here, MARTA.key), Holder(here, BORIS.key)
        old = kept_searches.keep_search(cx, marta, b"old", quota, now)
        assert _keep(cx, marta, 1, 10, now + 1, quota)
        young = kept_searches.keep_search(cx, marta, b"young", quota, now + 2)
        assert _keep(cx, boris, 99, 10, now + 2, quota)
        assert _keep(cx, marta, 2, 10, now + 3, quota)
        assert kept_searches.kept_until(cx, old, b"old") == 0
        assert [held.name[-1] for held in scrolls.shares(cx, MARTA.key)] == [1, 2]
        assert _keep(cx, marta, 3, 10, now + 4, quota)
        assert sorted(held.name[-1] for held in scrolls.shares(cx, MARTA.key)) == [2, 3]
        assert kept_searches.kept_until(cx, young, b"young") > now
        assert len(scrolls.shares(cx, BORIS.key)) == 1
        few_bytes = RepositoryOptions(kept_queries=100, kept_query_bytes=50_000)
        for number in range(4, 12):
            assert _keep(cx, marta, number, 10_000, now + number + 1, few_bytes)
            assert sum(held.size for held in scrolls.shares(cx, MARTA.key)) <= 50_000
        assert kept_searches.kept_until(cx, young, b"young") == 0
        assert not _keep(cx, marta, 11, 10, now + 50, few_bytes), "a name is kept once"


def test_a_caller_who_walks_without_end_keeps_no_more_than_their_quota(repository_db: Database, now: Instant) -> None:
    options = RepositoryOptions(kept_queries=3)
    with open_walkers(repository_db, now, MANY, options) as walkers:
        addresses = []
        for _ in range(6):
            walkers.clock.now += 1
            addresses.append(str(following(walkers.get("marta", page_two(walkers)))))
        assert rows(repository_db) == 3
        assert [status(walkers, address)[0] for address in addresses] == [404] * 3 + [200] * 3
