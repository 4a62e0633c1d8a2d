"""What /health/ready (``muniment.front.health``) tells of the indexes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import sqlalchemy as sa

from muniment.repository.search.agent import reports
from muniment.repository.search.agent.checking import Report
from muniment.repository.search.agent.reports import KeptReport
from muniment.repository.store import repositories
from muniment.repository.store.extraction.tika.tika import TikaServer
from tests.scenes import Loop, Site, World

NO_INDEX = "The repository has no index yet: the index agent has not been started."


@contextmanager
def new_repository(world: World) -> Iterator[str]:
    """Make a repository that the index agent has not seen yet; remove it afterwards."""
    name = f"unseen-{next(world.numbers)}"
    with world.repository_db.begin() as cx:
        repositories.add(cx, name, world.resource_id, "", world.clock())
    try:
        yield name
    finally:
        with world.repository_db.begin() as cx:
            cx.execute(sa.delete(repositories.repositories).where(repositories.repositories.c.name == name))


@pytest.mark.slow
def test_a_repository_without_an_index_does_not_stop_the_others(site: Site, world: World) -> None:
    world.catch_up()
    with new_repository(world) as name:
        answer = site.http.get("/health/ready")
        assert answer.status_code == 200
        states = answer.json()["indexes"]
        assert states[name] == {"seconds_behind": None, "late": True, "fault": NO_INDEX}
        assert states[world.repository] == {"seconds_behind": 0, "late": False}


def test_a_server_none_of_whose_indexes_can_be_read_is_not_ready(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_repository(world) as name, world.repository_db.read() as cx:
        one = repositories.find(cx, name)
        monkeypatch.setattr(repositories, "all_repositories", lambda _cx: [one])
        answer = site.http.get("/health/ready")
        assert answer.status_code == 503
        assert answer.json()["status"] == "not ready"
        assert answer.headers["retry-after"] == "1"


def test_what_a_check_left_wrong_in_an_index_is_counted(site: Site, world: World) -> None:
    world.catch_up()
    with world.repository_db.begin() as cx:
        one = repositories.find(cx, world.repository)
        reports.keep_report(cx, one.id, "a", KeptReport(Report(1, 2, missing=3, stale=1, repaired=2)))
        reports.keep_report(cx, one.id, "b", KeptReport(Report(1, 2)))
    try:
        assert site.http.get("/health/ready").json()["indexes"][world.repository]["differences"] == 2
    finally:
        with world.repository_db.begin() as cx:
            reports.forget(cx)


def test_a_disk_without_room_for_content_is_named_and_rights_end_all_the_same(world: World, loop: Loop) -> None:
    world.catch_up()
    with closing(Site(world, "neutral", loop, "disk_reserve_mib=1048576")) as site:
        ready = site.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "short of room")
        assert "new content is refused" in ready.json()["disk"]
        address = f"{site.repository}/objects"
        upload = site.http.post(
            f"{address}?object-name=x", content=b"x", headers=site.bearer() | {"Content-Type": "text/plain"}
        )
        assert (upload.status_code, upload.json()["code"]) == (507, "E_INSUFFICIENT_STORAGE")
        bare = site.http.post(address, json={"properties": {"object_name": "bare"}}, headers=site.bearer())
        own = f"{address}/{bare.json()['properties']['r_object_id']}"
        assert site.http.put(f"{own}/permission-set", json={"acl-name": "private"}, headers=site.bearer()).is_success
        assert site.http.delete(own, headers=site.bearer()).status_code == 204


def test_a_tika_server_that_is_away_is_named_and_stops_nobody(
    world: World, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.catch_up()
    fault = "It cannot be reached: Connection refused."
    monkeypatch.setattr(TikaServer, "fault", lambda _: fault)
    site = Site(world, "neutral", loop, "repository.extraction.tika=http://127.0.0.1:9")
    try:
        answer = site.http.get("/health/ready")
        assert (answer.status_code, answer.json()["tika"]) == (200, fault)
        fault = ""
        assert site.http.get("/health/ready").json()["tika"] == "ready"
    finally:
        site.close()
