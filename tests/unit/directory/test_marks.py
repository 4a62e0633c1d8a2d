"""Whom a client may act for is remembered, and forgotten at the very write that may change it."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import directory_tables
from muniment.directory import attributes, marks, memberships, resources
from muniment.directory.entries import editing
from tests.office import Office

DECIDES_NOTHING = {"entries": {"tries", "places", "attempted"}}
"""Columns that access does not hang on."""

UNWATCHED = {"grants", "access_tokens", "endings", "tickets", "keys", "system_attributes"}
"""Tables that access does not hang on. A new table has to be put here, or be watched."""


def mark(office: Office) -> str:
    with office.db.read() as cx:
        return str(cx.execute(sa.select(marks.generation())).scalar_one())


def test_every_write_of_a_noun_renews_the_generation(office: Office, now: Instant) -> None:
    """failures A11: what was remembered before a write is of a generation that is over."""
    names, alice, group, resource = office.names, office.alice, office.group, office.resource
    writes: tuple[Callable[[Connection], object], ...] = (
        lambda cx: editing.set_disabled(cx, alice, True, now),
        lambda cx: editing.set_locked(cx, alice, True, now),
        lambda cx: editing.set_description(cx, alice, "x", now),
        lambda cx: editing.set_password_hash(cx, alice, None, now),
        lambda cx: editing.set_flags(cx, alice, now, must_change_password=True),
        lambda cx: memberships.remove_member(cx, group, alice),
        lambda cx: memberships.add_member(cx, group, alice),
        lambda cx: attributes.put(cx, names, alice.id, "mail", ["a@example.org"]),
        lambda cx: attributes.put(cx, names, alice.id, "mail", []),
        lambda cx: resources.remove_from_role(cx, resource, group),
        lambda cx: resources.add_to_role(cx, resource, group),
        lambda cx: resources.delete(cx, resource),
        lambda cx: editing.delete(cx, office.bob),
        lambda cx: editing.add_user(cx, office.partition, "carol", now),
    )
    before = mark(office)
    for number, write in enumerate(writes):
        with office.db.begin() as cx:
            write(cx)
        after = mark(office)
        assert after != before, f"write {number}"
        before = after


@pytest.mark.parametrize("table", sorted(set(directory_tables.tables) - {"generation"}))
def test_a_write_to_any_column_renews_it_unless_the_column_decides_nothing(
    office: Office, now: Instant, table: str
) -> None:
    with office.db.begin() as cx:
        attributes.put(cx, office.names, office.alice.id, "mail", ["a@example.org"])
    for column in directory_tables.tables[table].columns:
        before = mark(office)
        with office.db.begin() as cx:
            cx.execute(sa.text(f"UPDATE {table} SET {column.name} = {column.name}"))
        watched = table not in UNWATCHED and column.name not in DECIDES_NOTHING.get(table, set())
        assert (mark(office) != before) is watched, column.name


def test_a_sign_in_does_not_renew_it(office: Office, now: Instant) -> None:
    before = mark(office)
    office.sign_in(now, right=False)
    office.revoke(office.issue(now).access_token, now)
    assert mark(office) == before


def test_what_was_rolled_back_leaves_the_generation_alone(office: Office, now: Instant) -> None:
    before = mark(office)
    with suppress(ZeroDivisionError), office.db.begin() as cx:
        editing.set_disabled(cx, office.alice, True, now)
        raise ZeroDivisionError
    assert mark(office) == before
