"""Refresh and sign-in against whatever ends a grant, at one moment, each with a Database of its own: the end wins."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.oauth.token_requests import TokenAttempt, TokenResponse
from muniment.directory.refusals import DeadToken, InvalidClient, InvalidGrant
from muniment.directory.sign_in.attempts import SignInAttempt
from muniment.ground.clock import Instant
from tests.conftest import Fresh
from tests.office import Office


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


@pytest.mark.parametrize("races", [100, pytest.param(1000, marks=pytest.mark.campaign)])
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

            def revoke(ending: str = ending, issued: TokenResponse = issued, start: threading.Barrier = start) -> None:
                start.wait()
                time.sleep(random.random() / 500)
                office.revoke(ending, now)
                with pytest.raises(DeadToken):
                    office.info(issued.access_token, now)

            def refresh(issued: TokenResponse = issued, start: threading.Barrier = start) -> TokenResponse | None:
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


ENDINGS: dict[str, Callable[[Connection, Office, Instant], object]] = {
    "the user is disabled": lambda cx, office, now: decisions.set_disabled(cx, office.alice, True, now),
    "the user has a new password": lambda cx, office, now: decisions.set_password(
        cx, office.alice, str(random.random()), now
    ),
    "the client is disabled": lambda cx, office, now: decisions.set_disabled(cx, office.client, True, now),
    "the client is signed out": lambda cx, office, now: decisions.sign_out(cx, office.client, now),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("races", [25, pytest.param(250, marks=pytest.mark.campaign)])
def test_no_token_of_an_earlier_sign_in_lives_after_an_ending(url: str, now: Instant, ending: str, races: int) -> None:
    """failures C4: a refresh and a password grant under way at that moment give nothing that is left."""
    office = Office(Database(url), now)
    came_first = 0
    with other_worker(office, url) as second, other_worker(office, url) as third, ThreadPoolExecutor(3) as threads:
        for _ in range(races):
            issued, attempt, start = office.issue(now), office.begin(now), threading.Barrier(3)

            def end(start: threading.Barrier = start) -> None:
                start.wait()
                time.sleep(random.random() / 500)
                with office.db.begin() as cx:
                    ENDINGS[ending](cx, office, now)

            def refresh(issued: TokenResponse = issued, start: threading.Barrier = start) -> TokenResponse | None:
                start.wait()
                time.sleep(random.random() / 500)
                with suppress(InvalidGrant, InvalidClient):
                    return second.refresh(issued, now)
                return None

            def sign_in(attempt: TokenAttempt[SignInAttempt] = attempt, start: threading.Barrier = start) -> object:
                start.wait()
                time.sleep(random.random() / 500)
                with suppress(InvalidClient):
                    return third.finish(attempt, True, now)
                return None

            ended, again, anew = threads.submit(end), threads.submit(refresh), threads.submit(sign_in)
            ended.result(60)
            outcomes = [issued, again.result(60), anew.result(60)]
            came_first += sum(isinstance(one, TokenResponse) for one in outcomes) > 1
            with office.db.begin() as cx:
                decisions.set_disabled(cx, office.alice, False, now)
                decisions.set_disabled(cx, office.client, False, now)
            for position, dead in enumerate(outcomes):
                if not isinstance(dead, TokenResponse) or (position == 2 and ending == "the client is signed out"):
                    continue  # who signs in after the sign-out stays signed in
                for worker in (office, second, third):
                    with pytest.raises(DeadToken):
                        worker.info(dead.access_token, now)
    assert came_first, "no race at all"
