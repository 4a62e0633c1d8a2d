"""What followers of the entries see: every change once, in order, removals included, and no silence about a cut."""

from collections.abc import Callable

import pytest

from muniment.database.connections import Database
from muniment.database.positions import START, Position
from muniment.directory.administration import decisions
from muniment.directory.entries import attributes, changes, editing, entries
from muniment.directory.entries.attributes import CustomAttribute
from muniment.directory.entries.changes import ChangesGone
from muniment.directory.refusals import NameTaken, Outdated
from muniment.ground.clock import SECOND, Instant
from tests.office import Office


def lines(office: Office, after: Position) -> list[tuple[str, str]]:
    with office.db.read() as cx:
        return [(change.uuid, change.what) for change in changes.after(cx, after, 100)]


def at(office: Office) -> Position:
    with office.db.read() as cx:
        return changes.latest(cx)


def test_every_change_is_noted_and_raises_the_revision_in_the_same_transaction(office: Office, now: Instant) -> None:
    before, revision = at(office), office.bob.revision
    custom = [CustomAttribute("text", "colour", "red")]
    with office.db.begin() as cx:
        decided: tuple[Callable[[], object], ...] = (
            lambda: editing.set_description(cx, office.bob, "x", now),
            lambda: editing.set_external_id(cx, office.bob, "4711", now),
            lambda: attributes.put(cx, office.names, office.bob, {"mail": ["b@example.org"]}, now),
            lambda: attributes.put_custom(cx, office.bob, custom, now),
            lambda: editing.set_flags(cx, office.bob, now, must_change_password=True),
            lambda: decisions.set_disabled(cx, office.bob, True, now),
            lambda: decisions.set_password(cx, office.bob, "hash", now),
            lambda: editing.rename(cx, office.names, office.bob, "Robert", now),
        )
        for number, change in enumerate(decided, 1):
            change()
            present = entries.by_id(cx, office.bob.id)
            assert present is not None
            assert present.revision == revision + number
        assert attributes.custom_of(cx, [office.bob.id]) == {office.bob.id: custom}
    assert lines(office, before) == [(office.bob.uuid, "changed")] * 8
    before = at(office)
    with office.db.begin() as cx:
        unit = editing.add_unit(cx, office.partition, "Sales", now)
        decisions.add_members(cx, office.group, [office.bob], now)
        decisions.remove_members(cx, office.group, [office.bob], now)
        decisions.move(cx, office.names, office.bob, unit, now)
        decisions.remove(cx, office.bob, now)
    assert lines(office, before) == [
        (unit.uuid, "added"),
        (office.group.uuid, "members"),
        (office.group.uuid, "members"),
        (office.bob.uuid, "changed"),
        (office.bob.uuid, "removed"),
    ]


def test_a_sign_in_changes_nothing_and_is_remembered(office: Office, now: Instant) -> None:
    before = at(office)
    office.sign_in(now, right=False)
    with office.db.read() as cx:
        assert entries.find_user(cx, office.names, "alice@People").signed_in is None
    office.sign_in(now)
    with office.db.read() as cx:
        user = entries.find_user(cx, office.names, "alice@People")
    assert (user.signed_in, user.revision) == (now, office.alice.revision)
    assert lines(office, before) == []


def test_what_lies_in_a_renamed_unit_has_changed(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        outer = editing.add_unit(cx, office.partition, "Sales", now)
        inner = editing.add_unit(cx, outer, "North", now)
        jo = editing.add_user(cx, inner, "jo", now)
    before = at(office)
    with office.db.begin() as cx:
        editing.rename(cx, office.names, outer, "Selling", now)
        moved = entries.by_id(cx, jo.id)
    assert moved is not None
    assert (moved.units, moved.revision) == (("North", "Selling"), jo.revision + 1)
    assert lines(office, before) == [(one.uuid, "changed") for one in (outer, inner, jo)]


def test_of_two_writers_the_second_learns_that_it_is_outdated(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        editing.require_revision(cx, office.bob, office.bob.revision)
        editing.set_description(cx, office.bob, "first", now)
    with office.db.begin() as cx, pytest.raises(Outdated):
        editing.require_revision(cx, office.bob, office.bob.revision)


def test_an_external_id_is_one_entrys_in_its_partition(office: Office, now: Instant) -> None:
    with office.db.begin() as cx:
        editing.set_external_id(cx, office.alice, "4711", now)
        editing.set_external_id(cx, office.client, "4711", now)
        with pytest.raises(NameTaken):
            editing.set_external_id(cx, office.bob, "4711", now)
        editing.set_external_id(cx, office.alice, None, now)
        editing.set_external_id(cx, office.bob, "4711", now)
        found = entries.by_id(cx, office.bob.id)
        assert found is not None
        assert found.external_id == "4711"


def test_who_is_behind_a_purge_is_told(office: Office, now: Instant) -> None:
    later = now + 1000 * SECOND
    with office.db.begin() as cx:
        for number in range(5):
            editing.set_description(cx, office.bob, str(number), later + number)
    whole = at(office)
    with office.db.read() as cx:
        early = changes.after(cx, START, 1)[0].position
        last_of_old = [one.position for one in changes.after(cx, START, 100) if one.noted == now][-1]
    with office.db.begin() as cx:
        while changes.purge(cx, later, 3):
            pass
    with office.db.read() as cx:
        for position in (START, early):
            with pytest.raises(ChangesGone):
                changes.after(cx, position, 100)
        assert len(changes.after(cx, last_of_old, 100)) == 5
        assert changes.after(cx, whole, 100) == []
    with office.db.begin() as cx:
        changes.settle(cx)
    with office.db.read() as cx:
        assert len(changes.after(cx, Position(0, last_of_old.sequence), 100)) == 5


@pytest.mark.only("postgresql", "SQLite has one writer.")
def test_a_transaction_that_commits_late_is_not_missed(office: Office, now: Instant) -> None:
    before = at(office)
    other = Database(office.db.engine.url.render_as_string(hide_password=False))
    try:
        with other.begin() as late:
            changes.note(late, office.alice.id, "changed", now)
            with office.db.begin() as cx:
                changes.note(cx, office.bob.id, "changed", now)
            assert lines(office, before) == [], "the earlier one is not there yet"
            assert at(office) == before
    finally:
        other.close()
    assert lines(office, before) == [(office.alice.uuid, "changed"), (office.bob.uuid, "changed")]
