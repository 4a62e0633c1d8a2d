"""What was deleted by a moment is removed for good, a deletion at a time and only by an administrator."""

import msgspec
import pytest

from muniment.repository.bulk import removal
from muniment.repository.refusals import NameTaken, NotPermitted, Superseded, WrongValue
from muniment.repository.store.objects import objects, version_tree, wastebasket
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.decisions import checkins, checkouts, restoring, subtrees, version_removal
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.objects.types.type_forms import PropertyForm, TypeForm
from tests.shelf import ADMIN, MARTA, Shelf


def test_deletions_go_whole_and_the_oldest_first(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "cabinet"}, type_name="cabinet")
    folders = [shelf.create({"object_name": name}, type_name="folder", folder_id=cabinet.id) for name in "abc"]
    for folder in folders:
        for name in "12":
            shelf.create({"object_name": name}, folder_id=folder.id)
    with shelf.database.begin() as cx:
        for at, folder in enumerate(folders):
            subtrees.delete(cx, shelf.repository, MARTA, folder.id, shelf.now + at, 10, keep_days=30)
    with shelf.database.begin() as cx, pytest.raises(NotPermitted):
        restoring.remove_until(cx, shelf.view(MARTA), shelf.now, 10)

    def removed(until: int, limit: int) -> int:
        with shelf.database.begin() as cx:
            return restoring.remove_until(cx, shelf.view(ADMIN), until, limit)[0]

    assert removed(shelf.now - 1, 10) == 0
    assert removed(shelf.now + 1, 1) == 3
    assert removed(shelf.now + 1, 10) == 3
    assert removed(shelf.now + 1, 10) == 0
    with shelf.database.begin() as cx:
        assert wastebasket.find(cx, shelf.repository, MARTA, folders[2].id, shelf.now).root == folders[2].id
        restoring.restore(cx, shelf.view(MARTA), folders[2].id, "", shelf.now)
        assert usage.usage_of(cx, MARTA.key).objects == 4, "the cabinet, and a folder with its two"
        objects.read(cx, shelf.repository, folders[2].id, MARTA)


@pytest.mark.parametrize("restored_first", ["the first version", "the second version"])
def test_the_first_version_joins_its_living_tree_again(shelf: Shelf, restored_first: str) -> None:
    """Its id is the chronicle id of the tree, so it cannot begin another one."""
    first = shelf.create({"object_name": "a"}).id
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, MARTA, first, shelf.now)
        draft = CheckIn("next-minor", {}, labels=("draft",), retain_lock=True)
        second = checkins.check_in(cx, view, first, draft, shelf.now).id
        third = checkins.check_in(cx, view, second, CheckIn("next-minor", {}), shelf.now).id
    deleted = [first] if restored_first == "the first version" else [third, second, first]
    with shelf.database.begin() as cx:
        for object_id in deleted:
            objects.delete(cx, shelf.repository, MARTA, object_id, shelf.now, keep_days=7)
    with shelf.database.begin() as cx:
        if restored_first == "the second version":
            assert restoring.restore(cx, view, second, "", shelf.now).chronicle_id == first
        again = restoring.restore(cx, view, first, "", shelf.now)
        assert (again.version.labels, again.version.former, again.chronicle_id) == (("1.0",), True, first)
        tree = version_tree.members(cx, [first])
    assert [each.id for each in tree if not each.former] == [third if len(deleted) == 1 else second]
    assert first in [each.id for each in tree]


def tree_of(shelf: Shelf, number: int, folder_id: str | None = None, last_name: str = "x") -> list[str]:
    """Make an object named x with so many versions, of which the last one may have another name."""
    ids = [shelf.create({"object_name": "x"}, folder_id=folder_id).id]
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, MARTA, ids[0], shelf.now)
        for left in range(number - 1, 0, -1):
            changes = {"object_name": last_name} if left == 1 else {}
            plan = CheckIn("next-minor", changes, retain_lock=left > 1)
            ids.append(checkins.check_in(cx, shelf.view(MARTA), ids[-1], plan, shelf.now).id)
    return ids


def test_a_restored_version_is_the_latest_if_the_next_one_is_not_restored(shelf: Shelf) -> None:
    first, second, third = tree_of(shelf, 3)
    with shelf.database.begin() as cx:
        version_removal.delete(cx, shelf.repository, MARTA, third, "unused", shelf.now, 10, keep_days=7)
        objects.delete(cx, shelf.repository, MARTA, third, shelf.now, keep_days=7)
        restored = restoring.restore(cx, shelf.view(MARTA), second, "", shelf.now)
    assert (restored.former, restored.version.superseded) == (False, False)
    assert shelf.read(first)[0].version.superseded
    shelf.replace(second, "its content can be changed")


def test_no_two_versions_of_a_tree_get_one_number(shelf: Shelf) -> None:
    first, second = tree_of(shelf, 2)
    with shelf.database.begin() as cx:
        for object_id in (second, first):
            objects.delete(cx, shelf.repository, MARTA, object_id, shelf.now, keep_days=7)
        for object_id in (second, first):
            restoring.restore(cx, shelf.view(MARTA), object_id, "", shelf.now)
        checkouts.check_out(cx, shelf.repository, MARTA, first, shelf.now)
    with shelf.database.begin() as cx, pytest.raises(Superseded):
        checkins.check_in(cx, shelf.view(MARTA), first, CheckIn("next-minor", {}), shelf.now)


def test_two_restored_objects_do_not_get_one_name_in_a_folder_of_unique_names(shelf: Shelf) -> None:
    """Versions that cannot return to their tree begin trees of their own."""
    folder = shelf.create({"object_name": "folder"}, type_name="cabinet").id
    _, _, third, last = tree_of(shelf, 4, folder, "y")
    with shelf.database.begin() as cx:
        version_removal.delete(cx, shelf.repository, MARTA, last, "unused", shelf.now, 10, keep_days=7)
    view = msgspec.structs.replace(shelf.view(MARTA), unique_names=True)
    with shelf.database.begin() as cx, pytest.raises(NameTaken):
        restoring.restore(cx, view, third, "", shelf.now)
    with shelf.database.begin() as cx:
        restoring.restore(cx, shelf.view(MARTA), third, "", shelf.now)


@pytest.mark.parametrize(("former", "present"), [("folder", "document"), ("document", "folder")])
def test_an_object_whose_type_is_one_for_another_kind_now_is_not_restored(
    shelf: Shelf, former: str, present: str
) -> None:
    """Its id tells its kind: a folder would be listed among the documents."""
    cabinet = shelf.create({"object_name": "cabinet"}, type_name="cabinet").id
    with shelf.database.begin() as cx:
        type_editing.add_type(cx, shelf.repository.id, ObjectType("report", former), shelf.now)
    made = shelf.create({"object_name": "x"}, type_name="report", folder_id=cabinet).id
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, MARTA, made, shelf.now, keep_days=7)
        removal.remove_type(cx, shelf.repository, "report")
        type_editing.add_type(cx, shelf.repository.id, ObjectType("report", present), shelf.now)
    with shelf.database.begin() as cx, pytest.raises(WrongValue, match="another kind"):
        restoring.restore(cx, shelf.view(MARTA), made, "", shelf.now)


@pytest.mark.parametrize(
    ("former", "present", "value"),
    [
        (PropertyForm("p", "string"), PropertyForm("p", "string", length=3), "four"),
        (PropertyForm("p", "string"), PropertyForm("p", "id"), "no id"),
        (PropertyForm("p", "integer"), PropertyForm("p", "date"), 2**62),
    ],
)
def test_values_that_the_type_no_longer_allows_are_not_restored(
    shelf: Shelf, former: PropertyForm, present: PropertyForm, value: str | int
) -> None:
    with shelf.database.begin() as cx:
        type_editing.define_type(cx, shelf.repository.id, TypeForm("report", properties=[former]), shelf.now)
    made = shelf.create({"object_name": "x", "p": value}, type_name="report").id
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, MARTA, made, shelf.now, keep_days=7)
        removal.remove_type(cx, shelf.repository, "report")
        type_editing.define_type(cx, shelf.repository.id, TypeForm("report", properties=[present]), shelf.now)
    with shelf.database.begin() as cx:
        assert restoring.restore(cx, shelf.view(MARTA), made, "", shelf.now).properties == {}


def test_the_versions_that_are_left_are_linked_to_the_first_one_when_it_returns(shelf: Shelf) -> None:
    first, second, third = tree_of(shelf, 3)
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, MARTA, first, shelf.now, keep_days=7)
        restoring.restore(cx, view, first, "", shelf.now)
    assert shelf.read(second)[0].version.antecedent_id == first
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, MARTA, second, shelf.now, keep_days=7)
        version_removal.delete(cx, shelf.repository, MARTA, third, "all", shelf.now, 10, keep_days=7)
        restoring.restore(cx, view, third, "", shelf.now)
    assert shelf.read(third)[0].version.antecedent_id == first
    assert shelf.read(first)[0].version.superseded
