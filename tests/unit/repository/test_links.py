"""A search is kept for its caller alone, for a while."""

import pytest

from muniment.db import SECOND, Database, Instant
from muniment.repository import links, repositories
from muniment.repository.refusals import UnknownLink

HOUR = 3600


@pytest.fixture
def repository_id(repository_db: Database, now: Instant) -> int:
    with repository_db.begin() as cx:
        return repositories.add(cx, "demo", "00000000-0000-4000-8000-000000000000", "", now).id


def test_a_kept_search_is_followed_by_its_caller_only(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    """failures B18"""
    with repository_db.begin() as cx:
        link = links.keep(cx, repository_id, "marta@staff", b"<q/>", HOUR, now)
    with repository_db.read() as cx:
        assert links.follow(cx, repository_id, link, "marta@staff", now) == b"<q/>"
        for other in ("boris@staff", "", "MARTA@staff"):
            with pytest.raises(UnknownLink):
                links.follow(cx, repository_id, link, other, now)
        with pytest.raises(UnknownLink):
            links.follow(cx, repository_id + 1, link, "marta@staff", now)


@pytest.mark.parametrize("link", ["", "zz", "00", "0" * 32, "é", "0" * 4000])
def test_an_unknown_link_is_refused(repository_db: Database, repository_id: int, now: Instant, link: str) -> None:
    with repository_db.read() as cx, pytest.raises(UnknownLink):
        links.follow(cx, repository_id, link, "marta@staff", now)


def test_the_same_search_has_the_same_link_and_lives_on(
    repository_db: Database, repository_id: int, now: Instant
) -> None:
    later = now + HOUR * SECOND // 2
    with repository_db.begin() as cx:
        first = links.keep(cx, repository_id, "marta@staff", b"<q/>", HOUR, now)
        assert links.kept_until(cx, first) == now + HOUR * SECOND
        assert links.keep(cx, repository_id, "marta@staff", b"<q/>", HOUR, later) == first
        assert links.follow(cx, repository_id, first, "marta@staff", now + HOUR * SECOND) == b"<q/>"
        assert links.keep(cx, repository_id, "boris@staff", b"<q/>", HOUR, now) != first
        assert links.keep(cx, repository_id, "marta@staff", b"<r/>", HOUR, now) != first


def test_a_link_ends_with_its_time_and_is_purged(repository_db: Database, repository_id: int, now: Instant) -> None:
    with repository_db.begin() as cx:
        link = links.keep(cx, repository_id, "marta@staff", b"<q/>", HOUR, now)
        assert links.purge(cx, now) == 0
        with pytest.raises(UnknownLink):
            links.follow(cx, repository_id, link, "marta@staff", now + HOUR * SECOND)
        assert links.purge(cx, now + HOUR * SECOND) == 1
        assert not links.kept_until(cx, links.name(repository_id, "marta@staff", b"<q/>"))
