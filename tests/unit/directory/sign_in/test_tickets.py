"""Is this text a ticket of ours, and does it still live?"""

import re

import pytest

from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import ExpiredTicket, NotSignedIn
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.tickets import Made, Ticket
from muniment.ground.clock import SECOND, Instant
from tests.office import Office, counted, page_ticket

HOUR = 3600 * SECOND


def made(office: Office, now: Instant, how: Made = "page", most: int = 1000, by: bytes | None = None) -> str:
    user_id, resource_id = office.alice.id, office.administration.id
    ticket = Ticket(user_id=user_id, resource_id=resource_id, expires=now + HOUR, made=how, by_ticket=by)
    with office.db.begin() as cx:
        return tickets.issue(cx, office.names, ticket, most, now)


def lives(office: Office, text: str, now: Instant) -> bool:
    with office.db.read() as cx:
        try:
            tickets.read(cx, office.names, text, now)
        except ExpiredTicket:
            return False
    return True


def test_it_has_a_prefix_and_travels_unquoted(office: Office, now: Instant) -> None:
    assert re.fullmatch(r"\*SSO\*[A-Za-z0-9_-]{54}\*", made(office, now))


def test_the_prefix_and_the_sentence_are_names_of_the_field(office: Office, now: Instant) -> None:
    field = DirectoryNames(ticket_prefix="*FIELD*", expired_ticket="It is over")
    with office.db.begin() as cx:
        text = page_ticket(cx, field, office.alice.id, office.administration.id, now)
        assert text.startswith("*FIELD*")
        assert tickets.read(cx, field, text, now).user_id == office.alice.id
        with pytest.raises(ExpiredTicket, match=r"^It is over$"):
            tickets.read(cx, field, text, now + HOUR)
        with pytest.raises(NotSignedIn, match="no ticket of this directory"):
            tickets.read(cx, office.names, text, now)


@pytest.mark.slow
def test_what_is_no_ticket_is_known_without_the_database(office: Office, now: Instant) -> None:
    """failures A13, A14"""
    text, issued = made(office, now), office.issue(now)
    changed = [text[:place] + other + text[place + 1 :] for place in range(len(text)) for other in "Ab_"]
    others = ["", "*SSO*", "*SSO**", "x" * 10**6, "*SSO*é*", text + "*", text[:-1], text.lower(), issued.access_token]
    others += [f"*SSO*{issued.access_token}*", f"*SSO*{issued.refresh_token}*", text.replace("*SSO*", "*VER2*")]
    with office.db.read() as cx, counted(office.db) as sent:
        tickets.parse(cx, office.names, text)
        for other in (*changed, *others):
            if other != text:
                with pytest.raises(NotSignedIn) as refusal:
                    tickets.read(cx, office.names, other, now)
                assert not isinstance(refusal.value, ExpiredTicket)
    assert len(sent) <= 1, "the key at most"


def test_an_ended_an_expired_and_a_purged_ticket_are_told_from_what_is_none(office: Office, now: Instant) -> None:
    ended, expired, purged = made(office, now), made(office, now), made(office, now - 2 * HOUR)
    with office.db.begin() as cx:
        tickets.end(cx, office.names, ended)
        tickets.end(cx, office.names, "garbage")
        assert tickets.purge(cx, now, 10) == 1
    with office.db.read() as cx:
        for text, later in ((ended, 0), (expired, HOUR), (purged, 0)):
            with pytest.raises(ExpiredTicket, match=r"^Expired SSO ticket$"):
                tickets.read(cx, office.names, text, now + later)


def test_a_ticket_ends_with_the_one_that_it_came_from(office: Office, now: Instant) -> None:
    source = made(office, now)
    with office.db.read() as cx:
        digest = tickets.parse(cx, office.names, source)
    derived = made(office, now, "for_resource", by=digest)
    assert lives(office, derived, now)
    with office.db.begin() as cx:
        tickets.end(cx, office.names, source)
        assert tickets.live_tickets(cx, office.alice.id, now, 10) == []
    assert not lives(office, derived, now)


def test_a_further_ticket_ends_the_oldest_of_those_made_in_the_same_way(office: Office, now: Instant) -> None:
    """failures A24"""
    page = made(office, now - 5, most=3)
    programs = [made(office, now + number, "credentials", most=3) for number in range(5)]
    assert [lives(office, text, now + 9) for text in programs] == [False, False, True, True, True]
    assert lives(office, page, now + 9)
