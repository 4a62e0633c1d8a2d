"""What may these principals do with this ACL? With which ACLs may they do this much?"""

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.repository.refusals import InUse, NameTaken, NotPermitted, UnknownAccessor, UnknownAcl, WrongValue
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.permissions import acl_entries, acl_lists, acls
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.shelf import ADMIN, JON, MARTA, Shelf


def permitted(shelf: Shelf, acl: acls.Acl, principals: Principals, owner: str = "nobody@demo") -> Permission:
    with shelf.database.read() as cx:
        return acl_entries.permission(cx, acl.id, owner, principals)


def test_the_highest_entry_that_speaks_of_the_caller_counts(shelf: Shelf) -> None:
    acl = shelf.acl(
        "a",
        {
            "world": Permission.BROWSE,
            "staff@demo": Permission.WRITE,
            "marta@demo": Permission.READ,
            "others@demo": Permission.DELETE,
        },
    )
    assert permitted(shelf, acl, MARTA) == Permission.WRITE
    assert permitted(shelf, acl, JON) == Permission.BROWSE


def test_names_are_compared_without_regard_to_case(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"MARTA@Demo": Permission.READ, "STRASSE@demo": Permission.READ})
    assert permitted(shelf, acl, Principals("marta@DEMO")) == Permission.READ
    assert permitted(shelf, acl, Principals("straße@demo")) == Permission.READ


def test_the_owner_can_always_read_and_an_administrator_can_do_everything(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"owner": Permission.NONE})
    assert permitted(shelf, acl, MARTA, owner="marta@demo") == Permission.READ
    assert permitted(shelf, acl, MARTA) == Permission.NONE
    assert permitted(shelf, acl, ADMIN) == Permission.DELETE


def test_the_owners_entry_speaks_of_the_owner_only(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"owner": Permission.DELETE})
    assert permitted(shelf, acl, MARTA, owner="marta@demo") == Permission.DELETE
    assert permitted(shelf, acl, JON, owner="marta@demo") == Permission.NONE


def test_nobody_becomes_owner_or_world_by_his_name(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"owner": Permission.DELETE})
    for impostor in (Principals("owner"), Principals("x@demo", frozenset({"owner"}))):
        assert permitted(shelf, acl, impostor) == Permission.NONE


def test_the_acls_that_give_this_much_are_those_whose_permission_is_this_much(shelf: Shelf) -> None:
    made = [
        shelf.acl("by world", {"world": Permission.BROWSE}),
        shelf.acl("by group", {"staff@demo": Permission.READ}),
        shelf.acl("by name", {"marta@demo": Permission.DELETE}),
        shelf.acl("not at all", {"owner": Permission.DELETE, "guests@demo": Permission.DELETE}),
        shelf.acl("none", {"marta@demo": Permission.NONE}),
    ]
    for level in Permission:
        with shelf.database.read() as cx:
            found = acls.permissions_by_acl(cx, shelf.repository.id, MARTA, level)
        known = {acl.id: permitted(shelf, acl, MARTA) for acl in made if acl is not made[3]}
        ours = {acl_id: permission for acl_id, permission in found.items() if acl_id in {acl.id for acl in made}}
        assert ours == {acl_id: permission for acl_id, permission in known.items() if permission >= level}


def test_acls_of_another_repository_are_not_among_them(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        other = repositories.add(cx, "other", str(uuid.uuid4()), "", shelf.now)
        acls.initialise(cx, other.id, shelf.now)
        public = acls.built_in(cx, other.id, acls.PUBLIC, shelf.now)
    with shelf.database.read() as cx:
        assert acls.permissions_by_acl(cx, other.id, MARTA, Permission.READ) == {public: Permission.READ}
        assert public not in acls.permissions_by_acl(cx, shelf.repository.id, MARTA, Permission.NONE)


ENTRIES = st.dictionaries(
    st.sampled_from(["owner", "world", "marta@demo", "staff@demo", "jon@demo", "guests@demo"]),
    st.sampled_from(Permission),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(ENTRIES, st.sampled_from([MARTA, JON]), st.sampled_from(["marta@demo", "jon@demo", "x@demo"]))
def test_permission_agrees_with_the_rule_read_aloud(
    shelf: Shelf, entries: dict[str, Permission], caller: Principals, owner: str
) -> None:
    with shelf.database.begin() as cx:
        acl = acls.add(
            cx, shelf.repository.id, f"acl {acl_lists.count_acls(cx, shelf.repository.id, ADMIN)}", ADMIN, entries, 0
        )
        found = acl_entries.permission(cx, acl.id, owner, caller)
    levels = [Permission.NONE]
    for accessor, level in entries.items():
        if accessor in ("world", caller.id.lower(), *caller.groups):
            levels.append(level)
        if accessor == "owner" and caller.id.lower() == owner:
            levels.append(level)
    if caller.id.lower() == owner:
        levels.append(Permission.READ)
    assert found == max(levels)


def test_a_repository_has_private_and_public_once(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        acls.initialise(cx, shelf.repository.id, shelf.now)
        assert [one.acl.name for one in acl_lists.acl_page(cx, shelf.repository.id, JON, Stretch(None, 0, 10))] == [
            "private",
            "public",
        ]
        for name in (acls.PRIVATE, acls.PUBLIC):
            built_in = acls.find(cx, shelf.repository.id, name, ADMIN)
            with pytest.raises(NotPermitted):
                acls.remove(cx, built_in, ADMIN)


def test_an_acl_is_seen_by_its_owner_and_by_those_it_speaks_of(shelf: Shelf) -> None:
    shelf.acl("secret", {"staff@demo": Permission.READ, "third@demo": Permission.WRITE}, ADMIN)
    with shelf.database.read() as cx:
        seen = acls.find(cx, shelf.repository.id, "secret", MARTA)
        assert acls.shown_entries(cx, seen, MARTA) == {"staff@demo": Permission.READ}
        assert len(acls.shown_entries(cx, seen, ADMIN)) == 2
        with pytest.raises(UnknownAcl) as hidden:
            acls.find(cx, shelf.repository.id, "secret", JON)
        with pytest.raises(UnknownAcl) as absent:
            acls.find(cx, shelf.repository.id, "absent", JON)
        assert hidden.value.sentence.replace("secret", "absent") == absent.value.sentence


def test_only_its_owner_or_an_administrator_changes_an_acl(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"world": Permission.READ})
    with shelf.database.begin() as cx:
        for verb in (lambda: acls.change(cx, acl, JON, {}, 0), lambda: acls.remove(cx, acl, JON)):
            with pytest.raises(NotPermitted):
                verb()
        changed = acls.change(cx, acl, MARTA, {"jon@demo": Permission.WRITE}, shelf.now)
        acls.change(cx, acl, ADMIN, {"jon@demo": Permission.READ}, shelf.now)
    assert changed.entries == {"jon@demo": Permission.WRITE}
    assert permitted(shelf, acl, JON) == Permission.READ


def test_an_acl_on_an_object_stays(shelf: Shelf) -> None:
    acl = shelf.acl("a", {"owner": Permission.DELETE})
    stored = shelf.create({"object_name": "x", "acl_name": "a"})
    with pytest.raises(InUse), shelf.database.begin() as cx:
        acls.remove(cx, acl, MARTA)
    assert permitted(shelf, acl, MARTA, owner=stored.owner_key) == Permission.DELETE
    shelf.delete(stored.id)
    with shelf.database.begin() as cx:
        acls.remove(cx, acl, MARTA)
        assert acls.names(cx, [acl.id]) == {}


@pytest.mark.parametrize("name", ["", " a", "a ", "a/b", "a\nb", "x" * 121, "public"])
def test_a_bad_or_taken_name_is_refused(shelf: Shelf, name: str) -> None:
    with pytest.raises((WrongValue, NameTaken)):
        shelf.acl(name, {})


@pytest.mark.parametrize("accessor", ["", "marta", "@demo", "marta@", "a\x00@demo", "x" * 400 + "@demo"])
def test_an_entry_names_a_user_a_group_the_owner_or_the_world(shelf: Shelf, accessor: str) -> None:
    with pytest.raises(UnknownAccessor):
        shelf.acl("a", {accessor: Permission.READ})


def test_an_acl_names_nobody_twice_and_has_a_cap(shelf: Shelf) -> None:
    with pytest.raises(WrongValue):
        shelf.acl("a", {"marta@demo": Permission.READ, "MARTA@demo": Permission.WRITE})
    with pytest.raises(WrongValue):
        shelf.acl("a", {f"u{n}@demo": Permission.READ for n in range(1001)})
