"""A program's ticket, made at the moment in which a right ends, each with a Database of its own: the end wins."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.refusals import AccessEnded, CannotImpersonate, ExpiredTicket, NotSignedIn, SignInRefused
from muniment.ground.clock import Instant
from tests.conftest import Fresh
from tests.office import HASH, Office
from tests.unit.directory.sign_in.test_programs import Desk

MAKING: dict[str, Callable[[Desk, str, Instant], str]] = {
    "by a password": lambda desk, _, now: desk.ticket("alice@People", now),
    "for a user": lambda desk, _, now: desk.acting(desk.caller("resource", now), now),
    "for a resource": lambda desk, general, now: desk.for_resource(general, desk.office.resource.id, now),
}

ENDINGS: dict[str, Callable[[Connection, Desk, Instant], object]] = {
    "disabled": lambda cx, desk, now: decisions.set_disabled(cx, desk.office.alice, True, now),
    "a new password": lambda cx, desk, now: decisions.set_password(cx, desk.office.alice, HASH, now),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", MAKING)
@pytest.mark.parametrize("races", [4, pytest.param(250, marks=pytest.mark.campaign)])
def test_no_ticket_of_before_lives_after_an_ending(
    fresh: Fresh, now: Instant, way: str, ending: str, races: int
) -> None:
    """failures C1, C4: what was disabled and is enabled again has no ticket of before."""
    url = fresh("directory")
    desk, other = Desk(Office(Database(url), now), now), object.__new__(Desk)
    other.__dict__.update(desk.__dict__)
    other.db = Database(url)
    with ThreadPoolExecutor(2) as threads:
        for _ in range(races):
            general, start = desk.ticket("alice@People", now), threading.Barrier(2)

            def end(start: threading.Barrier = start) -> None:
                start.wait()
                time.sleep(random.random() / 500)
                with desk.db.begin() as cx:
                    ENDINGS[ending](cx, desk, now)

            def make(general: str = general, start: threading.Barrier = start) -> tuple[str, bool]:
                start.wait()
                time.sleep(random.random() / 500)
                with suppress(SignInRefused, CannotImpersonate, ExpiredTicket, NotSignedIn, AccessEnded):
                    return MAKING[way](other, general, now), other.opens(general, now) is None
                return "", False

            ended, made = threads.submit(end), threads.submit(make)
            ended.result(60)
            text, came_first = made.result(60)
            with desk.db.begin() as cx:
                decisions.set_disabled(cx, desk.office.alice, False, now)
            assert desk.opens(general, now) is ExpiredTicket
            if came_first or (text and ending == "disabled") or way == "for a resource":
                assert not text or desk.opens(text, now) is ExpiredTicket
    for worker in (desk, other):
        worker.db.close()
