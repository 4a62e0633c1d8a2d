"""Which ACL does this caller mean, how is one shown to them, and what may they not learn of others'?"""

import itertools
import re
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from muniment.repository.refusals import NameTaken, UnknownAcl, WrongValue
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.permissions import acl_look_up, acl_names, acls
from muniment.repository.store.permissions.acls import Acl
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.counting import cost
from tests.plans import steps
from tests.shelf import ADMIN, JON, MARTA, Shelf

OTHER_ADMIN = Principals("boss@demo", administrator=True)
EVE = Principals("eve/of@demo", frozenset({"staff@demo"}))
FOR_ALL = {"world": Permission.READ}


def meant(shelf: Shelf, text: str, caller: Principals) -> str | None:
    """The id of the ACL that the caller calls so, None where there is none for them."""
    with shelf.database.read() as cx, suppress(UnknownAcl):
        return acls.find(cx, shelf.repository.id, text, caller).shown_id
    return None


def shown(shelf: Shelf, acl: Acl, caller: Principals) -> str:
    with shelf.database.read() as cx:
        return acl_look_up.shown_name(cx, acl.id, caller)


def test_a_taken_name_tells_of_ones_own_acl_alone(shelf: Shelf) -> None:
    """failures C9: an ACL name of another owner clashed, and told of an ACL that is hidden."""
    hidden = shelf.acl("merger", {"owner": Permission.DELETE}, MARTA)
    own = shelf.acl("merger", {"owner": Permission.DELETE}, JON)
    commons = shelf.acl("merger", {"owner": Permission.DELETE}, ADMIN)
    assert len({hidden.shown_id, own.shown_id, commons.shown_id}) == 3
    for owner in (MARTA, JON, ADMIN):
        with pytest.raises(NameTaken):
            shelf.acl("merger", {}, owner)
    with pytest.raises(NameTaken):  # administrators see them all, and share the names that are everybody's
        shelf.acl("merger", {}, OTHER_ADMIN)
    for caller in (JON, ADMIN):
        for name in (acls.PRIVATE, acls.PUBLIC):
            with pytest.raises(NameTaken):
                shelf.acl(name, {}, caller)


def test_a_bare_name_means_ones_own_then_an_administrators(shelf: Shelf) -> None:
    commons = shelf.acl("staff", FOR_ALL, ADMIN)
    assert {meant(shelf, "staff", caller) for caller in (MARTA, JON, ADMIN)} == {commons.shown_id}
    own = shelf.acl("staff", FOR_ALL, MARTA)
    assert meant(shelf, "staff", MARTA) == own.shown_id
    assert {meant(shelf, "staff", caller) for caller in (JON, ADMIN)} == {commons.shown_id}
    assert meant(shelf, "root@demo/staff", MARTA) == commons.shown_id
    assert meant(shelf, "MARTA@Demo/staff", JON) == own.shown_id
    assert shown(shelf, commons, MARTA) == "root@demo/staff"
    assert shown(shelf, commons, JON) == "staff"
    assert shown(shelf, own, MARTA) == "staff"
    assert shown(shelf, own, JON) == "Marta@demo/staff"


def test_who_made_it_counts_not_who_administers_today(shelf: Shelf) -> None:
    made = shelf.acl("old", FOR_ALL, Principals("once@demo", administrator=True))
    assert meant(shelf, "old", JON) == made.shown_id
    by_user = shelf.acl("new", FOR_ALL, Principals("once@demo"))
    assert meant(shelf, "new", JON) is None
    assert meant(shelf, "once@demo/new", JON) == by_user.shown_id


def test_an_id_tells_no_count_and_no_order(shelf: Shelf) -> None:
    made = [shelf.acl(f"acl {number}", {}) for number in range(20)]
    ids = [acl.shown_id for acl in made]
    assert all(re.fullmatch("45[0-9a-f]{14}", one) for one in ids)
    assert len(set(ids)) == 20
    assert ids != sorted(ids)
    steps_between = {int(b, 16) - int(a, 16) for a, b in itertools.pairwise(ids)}
    assert len(steps_between) == 19
    assert meant(shelf, ids[3].upper(), MARTA) == ids[3]


def test_an_id_is_not_given_again(shelf: Shelf) -> None:
    made = shelf.acl("gone", {})
    with shelf.database.begin() as cx:
        acls.remove(cx, made, MARTA)
    again = shelf.acl("gone", {})
    assert (again.id == made.id, again.shown_id == made.shown_id) == (False, False)


@pytest.mark.parametrize(
    "name", ["4500000000000001", "DEADbeefDEADbeef", "0123456789012345", "a/b", "marta@demo/x", "p\u0443blic"]
)
def test_a_new_name_neither_looks_like_an_id_or_another_name_nor_names_an_owner(shelf: Shelf, name: str) -> None:
    with pytest.raises(WrongValue):
        shelf.acl(name, {}, ADMIN)


def test_hidden_and_absent_take_the_same_statements_and_rows(shelf: Shelf) -> None:
    hidden = shelf.acl("secret", {"owner": Permission.DELETE, "staff@demo": Permission.NONE}, ADMIN)
    for text, absent in (
        ("secret", "absent"),
        ("root@demo/secret", "root@demo/absent"),
        (hidden.shown_id, "45" + "0" * 14),
    ):
        costs = []
        for asked in (text, absent):
            with cost(shelf.database) as spent:
                assert meant(shelf, asked, MARTA) is None
            costs.append(spent.counts)
        assert costs[0] == costs[1]
        refusals = []
        for asked in (text, absent):
            with pytest.raises(UnknownAcl) as unknown, shelf.database.read() as cx:
                acls.find(cx, shelf.repository.id, asked, MARTA)
            refusals.append(unknown.value.sentence.replace(asked, ""))
        assert refusals[0] == refusals[1]
        assert (len(costs[0][0]), costs[0][1]) == (1, 0)


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_each_way_is_looked_up_by_an_index(shelf: Shelf) -> None:
    acl = shelf.acl("a", FOR_ALL)

    def ask(cx: Connection) -> None:
        acls.look_up(cx, shelf.repository.id, ["a", "marta@demo/a", acl.shown_id], JON)
        acl_look_up.shown_name(cx, acl.id, JON)

    plans = [" ".join(found) for statement, found in steps(shelf.database, ask) if "FROM marks" not in statement]
    looked_up, carried, for_everybody = plans
    assert "SCAN" not in for_everybody, for_everybody
    for plan in (looked_up, carried):
        assert "SCAN" not in plan, plan
        for index in ("ix_acls_owner ", "ix_acls_owner_name ", "ix_acls_common "):
            assert index in plan, plan
        assert "repository_id=? AND name>" not in plan
    assert "ix_acls_shown_id " in looked_up


def test_a_shown_name_is_remembered_until_an_acl_or_an_entry_changes(shelf: Shelf) -> None:
    acl = shelf.acl("plans", FOR_ALL, MARTA)
    assert shown(shelf, acl, JON) == acl_names.write(MARTA.id, "plans")
    with cost(shelf.database) as again:
        assert shown(shelf, acl, JON) == acl_names.write(MARTA.id, "plans")
    assert not [statement for statement in again.statements if "FROM acls" in statement]
    assert shown(shelf, acl, MARTA) == "plans"  # what one caller is shown is nobody else's
    shelf.acl("plans", FOR_ALL, JON)
    assert shown(shelf, acl, JON) == acl_names.write(MARTA.id, "plans")
    with shelf.database.begin() as cx:
        acls.change(cx, acl, MARTA, {"owner": Permission.DELETE}, shelf.now)
        assert acl_look_up.shown_name(cx, acl.id, JON) == acl.shown_id  # in the same transaction already
    assert shown(shelf, acl, JON) == acl.shown_id


def test_what_a_transaction_saw_that_was_undone_is_not_remembered(shelf: Shelf) -> None:
    acl = shelf.acl("plans", FOR_ALL, MARTA)

    class Undone(Exception):
        """Undoes the transaction."""

    with suppress(Undone), shelf.database.begin() as cx:
        acls.change(cx, acl, MARTA, {"owner": Permission.DELETE}, shelf.now)
        assert acl_look_up.shown_name(cx, acl.id, JON) == acl.shown_id
        raise Undone
    assert shown(shelf, acl, JON) == acl_names.write(MARTA.id, "plans")


OWNERS = [MARTA, JON, EVE, ADMIN, OTHER_ADMIN]
NAMES = ["staff", "team", "a b", "é", "merger"]
ENTRIES = st.dictionaries(
    st.sampled_from(["world", "staff@demo", "jon@demo", "owner"]), st.sampled_from(Permission), max_size=2
)
KEPT = st.lists(st.tuples(st.sampled_from(OWNERS), st.sampled_from(NAMES), ENTRIES), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(KEPT, st.sampled_from(OWNERS))
@pytest.mark.slow
def test_what_is_shown_means_the_same_when_it_is_sent_back(
    shelf: Shelf, kept: list[tuple[Principals, str, dict[str, Permission]]], caller: Principals
) -> None:
    writing = shelf.database.begin_batch() if shelf.database.dialect == "sqlite" else None
    connection = writing.connection if writing else shelf.database.engine.connect()
    try:
        made = {}
        for owner, name, entries in kept:
            try:
                acl = acls.add(connection, shelf.repository.id, name, owner, entries, shelf.now)
            except NameTaken:
                continue
            made[acl.id] = acl
        for acl in made.values():
            text = acl_look_up.shown_name(connection, acl.id, caller)
            found = acls.look_up(connection, shelf.repository.id, [text, acl.shown_id], caller)
            if acl.shown_id in found:
                assert found == {text: acl.id, acl.shown_id: acl.id}
                assert (text == acl.name) or acl_names.read(text) is not None
            else:
                assert (text, found) == (acl.shown_id, {})
    finally:
        if writing:
            writing.roll_back()
        else:
            connection.rollback()
            connection.close()


def test_an_objects_owner_sends_back_an_acl_that_they_may_not_see(shelf: Shelf) -> None:
    """An administrator put it there. Its name is not theirs to know, and to send it back changes nothing."""
    secret = shelf.acl("secret plan", {"owner": Permission.DELETE}, ADMIN)
    stored = shelf.create({"object_name": "x"})
    shelf.change(stored.id, {"acl_name": "secret plan"}, ADMIN)
    assert shown(shelf, secret, MARTA) == secret.shown_id
    assert meant(shelf, secret.shown_id, MARTA) is None
    assert shelf.change(stored.id, {"acl_name": secret.shown_id, "title": "t"}).acl_id == secret.id
    with pytest.raises(UnknownAcl):
        shelf.create({"object_name": "y", "acl_name": secret.shown_id})


@pytest.mark.slow
@pytest.mark.parametrize("who", [MARTA, ADMIN])
def test_reading_an_object_and_sending_it_back_changes_nothing(shelf: Shelf, who: Principals) -> None:
    for number, (owner, name) in enumerate([(MARTA, "team"), (ADMIN, "team"), (JON, "team"), (JON, "theirs")]):
        acl = shelf.acl(name, {"owner": Permission.DELETE, "marta@demo": Permission.READ}, owner)
        stored = shelf.create({"object_name": f"x {number}"})
        shelf.change(stored.id, {"acl_name": acl.shown_id}, ADMIN)
        text = shown(shelf, acl, who)
        assert shelf.change(stored.id, {"acl_name": text, "title": "t"}, who).acl_id == acl.id
        with shelf.database.begin() as cx:
            assert assigned_acls.assign(cx, shelf.repository, who, stored.id, text, shelf.now).acl_id == acl.id
