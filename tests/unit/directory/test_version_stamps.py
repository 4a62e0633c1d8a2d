"""What is remembered is forgotten at the very write that may change it, and at no other."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database, directory_tables
from muniment.directory import version_stamps
from muniment.directory.administration import decisions
from muniment.directory.entries import attributes, editing, memberships, oauth_clients, resources
from muniment.directory.oauth import clients, grant_purge, revocation, sessions
from muniment.directory.refusals import DeadToken, InvalidClient
from muniment.directory.version_stamps import VersionStamps
from muniment.ground import clock
from muniment.ground.caches import Cache
from muniment.ground.clock import SECOND, Instant
from tests.office import Office

DECIDES_NOTHING = {
    "entries": {"tries", "places", "attempted", "external_id", "revision", "password_changed", "signed_in"}
}
"""Columns that access does not hang on."""

UNWATCHED = {
    "authorization_codes",
    "device_codes",
    "wrong_user_codes",
    "signing_keys",
    "assertions",
    "grants",
    "access_tokens",
    "endings",
    "tickets",
    "keys",
    "system_attributes",
    "configurations",
}
UNWATCHED |= {"custom_attributes", "entry_changes", "audit_events", "rights_history", "member_counts"}
"""Tables that access does not hang on. A new table has to be put here, or be watched."""


def mark(office: Office) -> str:
    with office.db.read() as cx:
        return str(cx.execute(sa.select(version_stamps.GENERATION)).scalar_one())


def test_every_write_of_a_noun_renews_the_generation(office: Office, now: Instant) -> None:
    """failures A11: what was remembered before a write is of a generation that is over."""
    names, alice, group, resource = office.names, office.alice, office.group, office.resource
    writes: tuple[Callable[[Connection], object], ...] = (
        lambda cx: editing.set_disabled(cx, alice, True, now),
        lambda cx: editing.set_locked(cx, alice, True, now),
        lambda cx: editing.set_description(cx, alice, "x", now),
        lambda cx: editing.set_password_hash(cx, alice, None, now),
        lambda cx: editing.set_flags(cx, alice, now, must_change_password=True),
        lambda cx: memberships.remove_members(cx, group, [alice]),
        lambda cx: memberships.add_member(cx, group, alice),
        lambda cx: attributes.put(cx, names, alice, {"mail": ["a@example.org"]}, now),
        lambda cx: attributes.put(cx, names, alice, {"mail": []}, now),
        lambda cx: resources.remove_from_role(cx, resource, group),
        lambda cx: resources.add_to_role(cx, resource, group),
        lambda cx: resources.delete(cx, resource),
        lambda cx: editing.delete(cx, office.bob, now),
    )
    before = mark(office)
    for number, write in enumerate(writes):
        with office.db.begin() as cx:
            write(cx)
        after = mark(office)
        assert after != before, f"write {number}"
        before = after


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(set(directory_tables.tables) - {"generation"}))
def test_a_write_to_any_column_renews_it_unless_the_column_decides_nothing(
    office: Office, now: Instant, table: str
) -> None:
    with office.db.begin() as cx:
        attributes.put(cx, office.names, office.alice, {"mail": ["a@example.org"]}, now)
        oauth_clients.write(cx, office.client, oauth_clients.DEFAULTS, now)
    for column in directory_tables.tables[table].columns:
        before = mark(office)
        with office.db.begin() as cx:
            cx.execute(sa.text(f'UPDATE {table} SET "{column.name}" = "{column.name}"'))
        watched = table not in UNWATCHED and column.name not in DECIDES_NOTHING.get(table, set())
        assert (mark(office) != before) is watched, column.name


def test_a_sign_in_does_not_renew_it(office: Office, now: Instant) -> None:
    before = mark(office)
    office.sign_in(now, right=False)
    office.revoke(office.issue(now).access_token, now)
    assert mark(office) == before


def test_an_entry_that_comes_leaves_it_alone_and_whatever_is_said_of_it_later_does_not(
    office: Office, now: Instant
) -> None:
    """Nothing that is remembered can speak of it (decision 0057)."""
    names, people = office.names, office.partition
    issued = office.issue(now)
    known, before = office.info(issued.access_token, now), mark(office)
    with pytest.raises(InvalidClient), office.db.read() as cx:
        clients.find(cx, office.clients, clients.ClientProof("portal"))
    with office.db.begin() as cx:
        partition = editing.add_partition(cx, names, "Others", now)
        unit = editing.add_unit(cx, people, "Sales", now)
        group = editing.add_group(cx, unit, "sellers", now)
        editing.add_role(cx, unit, "clerk", now)
        editing.add_user(cx, partition, "alice", now)
        portal = editing.add_client(cx, "portal", now)
        carol = decisions.add_user(cx, names, "carol@People", unit, now, password_hash=None, values={"mail": ["c@x"]})
    assert mark(office) == before
    assert office.info(issued.access_token, now) == known
    with office.db.read() as cx:
        assert clients.find(cx, office.clients, clients.ClientProof("portal")).id == portal.id
    later: tuple[Callable[[Connection], object], ...] = (
        lambda cx: attributes.put(cx, names, carol, {"mail": ["d@x"]}, now),
        lambda cx: attributes.put(cx, names, carol, {"displayName": ["Carol"]}, now),
        lambda cx: memberships.add_member(cx, group, carol),
        lambda cx: resources.add_to_role(cx, office.resource, carol),
        lambda cx: editing.delete(cx, carol, now),
    )
    for write in later:
        before = mark(office)
        with office.db.begin() as cx:
            write(cx)
        assert mark(office) != before
    with office.db.begin() as cx:
        assert editing.add_user(cx, people, "carol", now).id > carol.id, "a number never comes back"


def test_values_beside_the_decisions_renew_it_unless_the_entry_is_as_it_came(office: Office, now: Instant) -> None:
    insert = sa.text(
        "INSERT INTO attribute_values (entry_id, name, position, value, is_number, folded) "
        "VALUES (:entry, 'room', :place, '7', :number, '7')"
    )
    with office.db.begin() as cx:
        editing.set_description(cx, office.alice, "Changed once.", now)
    for entry, renews in ((office.alice, True), (office.bob, False)):
        before = mark(office)
        with office.db.begin() as cx:
            cx.execute(insert, {"entry": entry.id, "place": 0, "number": False})
        assert (mark(office) != before) is renews


def test_what_was_rolled_back_leaves_the_generation_alone(office: Office, now: Instant) -> None:
    before = mark(office)
    with suppress(ZeroDivisionError), office.db.begin() as cx:
        editing.set_disabled(cx, office.alice, True, now)
        raise ZeroDivisionError
    assert mark(office) == before


ENDS_TOKENS = {
    "grants": {"id", "user_id", "client_id", "resource_id", "refresh_expires", "revoked", "scopes", "made", "actor_id"},
    "access_tokens": {"digest", "id", "grant_id", "expires"},
}
"""The columns on which an answer about an access token depends. The other columns of these tables are below."""

ENDS_NOTHING = {
    "grants": {
        "refresh_digest",
        "created",
        "live_bound",
        "authenticated",
        "source_id",
        "actor_source_id",
        "family",
        "rotated",
    },
    "access_tokens": {"issued", "scopes"},
}


def endings(office: Office) -> str:
    with office.db.read() as cx:
        return str(cx.execute(sa.select(version_stamps.ENDINGS)).scalar_one())


@pytest.mark.parametrize("table", sorted(ENDS_TOKENS))
def test_a_change_of_what_decides_about_a_token_renews_the_mark_of_endings(
    office: Office, now: Instant, table: str
) -> None:
    office.issue(now)
    columns = {column.name for column in directory_tables.tables[table].columns}
    assert columns == ENDS_TOKENS[table] | ENDS_NOTHING[table], "a new column has to be put into one of the two"
    for column in sorted(columns):
        before = endings(office)
        with office.db.begin() as cx:
            cx.execute(sa.text(f"UPDATE {table} SET {column} = {column}"))
        assert (endings(office) != before) is (column in ENDS_TOKENS[table]), column


def test_sign_ins_and_refreshes_leave_the_mark_of_endings_alone_and_a_revocation_renews_it(
    office: Office, now: Instant
) -> None:
    before = endings(office)
    issued = office.issue(now)
    office.sign_in(now, right=False)
    office.refresh(issued, now)
    assert endings(office) == before
    office.revoke(issued.access_token, now)
    revoked = endings(office)
    assert revoked != before
    office.revoke(issued.access_token, now)
    assert endings(office) == revoked, "it had ended before"


def test_a_purge_of_what_is_over_leaves_the_mark_of_endings_alone(office: Office) -> None:
    """The triggers compare with the database's own clock, so this test is about the real time."""
    past = clock.now() - 30 * 24 * 3600 * SECOND
    expired, revoked, refreshed = (office.issue(past) for _ in range(3))
    office.revoke(revoked.access_token, past)
    office.refresh(refreshed, past + SECOND)
    living = office.issue(clock.now())
    office.revoke(office.issue(clock.now()).access_token, past)
    before = endings(office)
    for _ in range(3):
        with office.db.begin() as cx:
            sessions.purge(cx, grant_purge.PURGE_START, clock.now(), 100)
    with office.db.read() as cx:
        left = [cx.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one() for table in ENDS_TOKENS]
    assert left == [1, 1], "all but the living grant and its token"
    assert endings(office) == before
    assert expired
    assert office.info(living.access_token, clock.now())


@pytest.mark.parametrize("table", sorted(ENDS_TOKENS))
def test_whoever_deletes_what_lives_renews_the_mark_of_endings(office: Office, table: str) -> None:
    office.issue(clock.now())
    before = endings(office)
    with office.db.begin() as cx:
        cx.execute(sa.text(f"DELETE FROM {table}"))
    assert endings(office) != before


@pytest.mark.only("postgresql", "SQLite has one writer.")
def test_two_transactions_that_end_several_grants_never_wait_for_each_other_in_a_circle(
    office: Office, now: Instant
) -> None:
    """The mark is renewed at the commit, when a transaction takes no more locks."""
    first, second = office.issue(now), office.issue(now)
    other = Database(office.db.engine.url.render_as_string(hide_password=False))
    try:
        with other.begin() as theirs:
            revocation.revoke(theirs, office.names, second.access_token, now)
            with office.db.begin() as ours:
                revocation.revoke(ours, office.names, first.access_token, now)
    finally:
        other.close()
    for issued in (first, second):
        with pytest.raises(DeadToken):
            office.info(issued.access_token, now)


# The memory


def test_an_answer_is_given_under_its_own_marks_only() -> None:
    """failures A11: of one token and resource, client and user, under the marks of now."""
    memory: Cache[str, str] = Cache(1000)
    memory.keep("question", "answer", 10, VersionStamps("a", "b"))
    assert memory.recall("question", VersionStamps("a", "b")) == "answer"
    assert memory.recall("question", VersionStamps("a", "c")) is None
    assert memory.recall("question", VersionStamps("c", "b")) is None
    assert memory.recall("another", VersionStamps("a", "b")) is None
    memory.keep("question", "new", 10, VersionStamps("a", "c"))
    assert memory.recall("question", VersionStamps("a", "c")) == "new"
    assert memory.recall("question", VersionStamps("a", "b")) is None


def test_memory_is_bounded_and_the_oldest_answers_go_first() -> None:
    memory: Cache[int, str] = Cache(1000)
    for number in range(100):
        memory.keep(number, "answer", 100, "mark")
        memory.keep(number, "answer", 100, "another mark")
    assert [number for number in range(100) if memory.recall(number, "another mark")] == list(range(90, 100))


def test_an_answer_larger_than_the_memory_is_not_kept() -> None:
    memory: Cache[int, str] = Cache(1000)
    memory.keep(1, "answer", 2000, "mark")
    assert memory.recall(1, "mark") is None
    memory.keep(2, "answer", 100, "mark")
    assert memory.recall(2, "mark") == "answer"
