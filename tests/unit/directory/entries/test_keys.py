"""Keys change without a restart and without a failed request: every process takes a key before another one uses it."""

from contextlib import closing
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.directory.administration import key_decisions
from muniment.directory.console import frame
from muniment.directory.entries import system
from muniment.directory.oauth import tokens
from muniment.directory.refusals import UnparseableToken
from muniment.directory.sign_in import tickets
from muniment.ground.clock import Instant
from muniment.ground.refusals import Forged
from muniment.web.answers.browser import FormMark
from tests.office import Office, page_ticket


def read_again(*processes: Database) -> None:
    for process in processes:
        with process.read() as cx:
            system.remember_keys(cx)


def takes(process: Database, token: str) -> bool:
    with process.read() as cx:
        try:
            tokens.parse(cx, token)
        except UnparseableToken:
            return False
        return True


def rotate(process: Database, now: Instant, *, at_once: bool = False) -> None:
    with process.begin() as cx:
        key_decisions.rotate(cx, [], now, at_once=at_once)


@pytest.fixture
def other(office: Office) -> Database:
    """A second process."""
    return Database(office.db.engine.url.render_as_string(hide_password=False))


def test_no_token_fails_while_keys_change(office: Office, other: Database, now: Instant) -> None:
    with closing(other):
        read_again(office.db, other)
        old = office.issue(now).access_token
        with office.db.begin() as cx:
            key_decisions.prepare(cx)
        read_again(office.db, other)
        rotate(office.db, now)
        read_again(office.db)
        new = office.issue(now).access_token
        assert takes(other, new), "the other process has not read the keys since"
        assert takes(office.db, old)
        read_again(other)
        assert takes(other, old)
        assert takes(other, new)
        with office.db.begin() as cx:
            key_decisions.prepare(cx)
        rotate(office.db, now)
        read_again(office.db)
        assert takes(office.db, new)
        assert not takes(office.db, old), "the former key goes with the next change"


def test_tickets_and_forms_go_on_while_keys_change(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        ticket = page_ticket(cx, office.names, office.alice.id, office.resource.id, now)
        mark = FormMark(frame.csrf(cx, ticket), False)
        key_decisions.prepare(cx)
    rotate(office.db, now)
    read_again(office.db)
    with office.db.read() as cx:
        assert tickets.read(cx, office.names, ticket, now).user_id == office.alice.id
        frame.check_csrf(cx, mark, ticket)
        assert frame.csrf(cx, ticket) != mark.text


def test_at_once_nothing_of_the_former_keys_is_taken(office: Office, now: Instant) -> None:
    token = office.issue(now).access_token
    with office.db.begin() as cx:
        mark = FormMark(frame.csrf(cx, "x"), False)
        key_decisions.prepare(cx)
    rotate(office.db, now, at_once=True)
    read_again(office.db)
    assert not takes(office.db, token)
    with office.db.read() as cx, pytest.raises(Forged):
        frame.check_csrf(cx, mark, "x")


def test_a_key_that_was_prepared_twice_is_one(office: Office, now: Instant, tmp_path: Path) -> None:
    for _ in range(2):
        with office.db.begin() as cx:
            key_decisions.prepare(cx)
    rotate(office.db, now)
    read_again(office.db)
    assert takes(office.db, office.issue(now).access_token)
