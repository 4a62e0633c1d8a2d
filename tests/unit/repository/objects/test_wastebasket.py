"""What was deleted by a moment is removed for good, a deletion at a time and only by an administrator."""

import pytest

from muniment.repository.objects import objects, usage, version_tree, wastebasket
from muniment.repository.objects.decisions import checkins, checkouts, restoring, subtrees
from muniment.repository.objects.decisions.checkins import CheckIn
from muniment.repository.refusals import NotPermitted
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
        assert usage.of(cx, MARTA.key).objects == 4, "the cabinet, and a folder with its two"
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
