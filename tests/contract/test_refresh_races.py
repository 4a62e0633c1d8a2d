"""Three workers are asked with one refresh token at one moment: they give one successor (failures A7)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from muniment.database.connections import Database
from muniment.directory.oauth import tokens
from muniment.directory.oauth.token_requests import TokenResponse
from muniment.directory.refusals import DeadToken, InvalidGrant, UsedAgain
from muniment.ground.clock import SECOND, Instant
from tests.conftest import Fresh
from tests.contract.test_grants_races import other_worker
from tests.office import Office


def first_token(office: Office, now: Instant) -> str:
    """Open a grant whose refresh token has successors."""
    with office.db.begin() as cx:
        ids = office.alice.id, office.client.id, office.resource.id
        _, token = tokens.open_grant(cx, *ids, now, now + 3600 * SECOND, made="authorization_code", rotates=True)
    return token


def refresh(office: Office, token: str, now: Instant) -> TokenResponse:
    """Refresh alone, as a server does; what a refusal keeps is committed."""
    with office.db.begin() as cx:
        try:
            return office.refresh_in(cx, token, now)
        except UsedAgain as refusal:
            used_again = refusal
    raise used_again


@pytest.mark.parametrize("races", [30, pytest.param(500, marks=pytest.mark.campaign)])
def test_however_many_ask_there_is_one_successor_and_no_second_family(fresh: Fresh, now: Instant, races: int) -> None:
    url = fresh("directory")
    office = Office(Database(url), now)
    with ExitStack() as stack:
        workers = [stack.enter_context(other_worker(office, url)) for _ in range(3)]
        threads = stack.enter_context(ThreadPoolExecutor(3))
        token = first_token(office, now)
        for _ in range(races):
            start = threading.Barrier(3)

            def ask(worker: Office, token: str = token, start: threading.Barrier = start) -> TokenResponse:
                start.wait()
                return refresh(worker, token, now)

            answers = list(threads.map(ask, workers))
            assert len({answer.access_token for answer in answers}) == 3
            (successor,) = {answer.refresh_token for answer in answers}
            assert isinstance(successor, str)
            assert successor != token
            token = successor


@pytest.mark.parametrize("races", [20, pytest.param(300, marks=pytest.mark.campaign)])
def test_a_late_use_beside_a_right_one_leaves_nothing_alive(fresh: Fresh, now: Instant, races: int) -> None:
    """Whoever comes first: after both, the family has ended."""
    url = fresh("directory")
    office = Office(Database(url), now)
    later = now + 10 * SECOND
    with other_worker(office, url) as other, ThreadPoolExecutor(2) as threads:
        for _ in range(races):
            old = first_token(office, now)
            newest = refresh(office, old, now).refresh_token
            assert isinstance(newest, str)
            start = threading.Barrier(2)

            def use(newest: str = newest, start: threading.Barrier = start) -> TokenResponse | None:
                start.wait()
                with suppress(InvalidGrant):
                    return refresh(other, newest, later)
                return None

            right = threads.submit(use)
            start.wait()
            with pytest.raises(UsedAgain):
                refresh(office, old, later)
            answer = right.result(60)
            with pytest.raises(InvalidGrant):
                refresh(office, newest, later)
            if answer is not None:
                with pytest.raises(DeadToken):
                    office.info(answer.access_token, later)
