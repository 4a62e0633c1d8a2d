"""Refresh against revocation, at the same moment, each with a Database of its own: revocation always wins."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from muniment.db import Database, Instant
from muniment.directory import grants
from muniment.directory.refusals import DeadToken, InvalidGrant
from tests.conftest import Fresh
from tests.unit.directory.office import Office


@pytest.fixture
def url(fresh: Fresh) -> str:
    return fresh("directory")


@contextmanager
def other_worker(office: Office, url: str) -> Iterator[Office]:
    """The same directory through a Database of its own, as another process has it."""
    other = object.__new__(Office)
    other.__dict__.update(office.__dict__)
    other.db = Database(url)
    try:
        yield other
    finally:
        other.db.close()
        office.db.close()


@pytest.mark.parametrize("races", [200, pytest.param(1000, marks=pytest.mark.campaign)])
def test_after_a_revocation_nothing_of_the_grant_lives(url: str, now: Instant, races: int) -> None:
    """failures A7"""
    office = Office(Database(url), now)
    refreshed = 0
    with other_worker(office, url) as other, ThreadPoolExecutor(2) as threads:
        for race in range(races):
            issued = office.issue(now)
            assert isinstance(issued.refresh_token, str)
            ending = issued.access_token if race % 2 else issued.refresh_token
            start = threading.Barrier(2)

            def revoke(ending: str = ending, issued: grants.Issued = issued, start: threading.Barrier = start) -> None:
                start.wait()
                time.sleep(random.random() / 500)
                office.revoke(ending, now)
                with pytest.raises(DeadToken):
                    office.info(issued.access_token, now)

            def refresh(issued: grants.Issued = issued, start: threading.Barrier = start) -> grants.Issued | None:
                start.wait()
                time.sleep(random.random() / 500)
                try:
                    return other.refresh(issued, now)
                except InvalidGrant:
                    return None

            revoked, again = threads.submit(revoke), threads.submit(refresh)
            revoked.result(60)
            second = again.result(60)
            refreshed += second is not None
            for worker in (office, other):
                for dead in (issued, second):
                    if dead is not None:
                        with pytest.raises(DeadToken):
                            worker.info(dead.access_token, now)
                with pytest.raises(InvalidGrant):
                    worker.refresh(issued, now)
    assert 0 < refreshed < races, f"no race at all: {refreshed} refreshes of {races} came first"


def test_parallel_refreshes_of_one_grant_all_succeed(url: str, now: Instant) -> None:
    """failures A7"""
    office = Office(Database(url), now)
    issued = office.issue(now)
    with other_worker(office, url) as other, ThreadPoolExecutor(8) as threads:
        workers = [office, other] * 10
        again = list(threads.map(lambda worker: worker.refresh(issued, now), workers))
        assert len({one.access_token for one in again}) == len(workers)
        office.revoke(again[0].access_token, now)
        for one in again:
            with pytest.raises(DeadToken):
                other.info(one.access_token, now)
