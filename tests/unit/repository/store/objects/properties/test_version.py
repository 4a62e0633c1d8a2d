"""Numbers and labels of versions, and how a row holds them."""

import pytest
import sqlalchemy as sa

from muniment.repository.refusals import QuotaExceeded, WrongValue
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.decisions import checkins, checkouts
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.properties import version
from muniment.repository.store.objects.properties.version import FIRST, Lock, Policy, Version
from tests.contents import counted_rows, counted_uses
from tests.shelf import MARTA, Shelf


@pytest.mark.parametrize(
    ("number", "policy", "taken", "following"),
    [
        ("1.0", "next-minor", ["1.0"], "1.1"),
        ("1.9", "next-minor", ["1.8", "1.9"], "1.10"),
        ("1.9", "next-major", ["1.0", "1.9"], "2.0"),
        ("1.1", "branch-version", ["1.0", "1.1", "1.2"], "1.1.1.0"),
        ("1.1", "branch-version", ["1.1", "1.1.1.0", "1.1.1.1", "1.10.7.0"], "1.1.2.0"),
        ("1.0", "next-minor", ["1.0", "1.1", "1.2"], "1.3"),
        ("1.1.1.3", "next-minor", ["1.1", "1.1.1.3"], "1.1.1.4"),
        ("1.1.1.3", "next-major", ["1.1", "1.1.1.3", "1.1.2.0"], "1.1.3.0"),
        ("1.1.1.3", "branch-version", ["1.1.1.3"], "1.1.1.3.1.0"),
    ],
)
def test_a_number_follows_another(number: str, policy: Policy, taken: list[str], following: str) -> None:
    assert version.next_number(number, policy, taken) == following
    assert version.is_on_branch_of(following, number) is (policy != "branch-version")


def test_branches_of_branches_end() -> None:
    number = "1.0"
    for _ in range(15):
        number = version.next_number(number, "branch-version", [number])
    with pytest.raises(WrongValue):
        version.next_number(number, "branch-version", [number])


def test_a_row_holds_nothing_of_an_object_without_versions() -> None:
    assert set(version.columns(FIRST).values()) == {None, 0}
    assert version.read(list(version.columns(FIRST).values())) is FIRST
    for each in (
        Version(lock=Lock("marta@demo", "marta@demo", 5)),
        Version("09" * 8, "0a" * 8, ("1.1", "ü"), former=True, superseded=True, comment="x"),
    ):
        assert version.read(list(version.columns(each).values())) == each


def test_labels_are_read() -> None:
    assert version.read_labels(" a, b,a ,,Current") == ("a", "b")
    assert version.names_current("a, current")
    for text in ("1.0", "7", "..", "x" * 33, "a\nb", "\u202e", ",".join(map(str, range(1000, 1030)))):
        with pytest.raises(WrongValue):
            version.read_labels(text)


def test_a_page_of_current_versions_reads_no_former_one(shelf: Shelf) -> None:
    folder = shelf.create({"object_name": "c"}, type_name="cabinet").id
    last = shelf.create({"object_name": "a"}, folder_id=folder).id
    other = shelf.create({"object_name": "b"}, folder_id=folder).id
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, MARTA, last, shelf.now)
        for _ in range(20):
            last = checkins.check_in(cx, view, last, CheckIn("next-minor", {}, retain_lock=True), shelf.now).id
    with shelf.database.read() as cx:
        page = lists.object_page(cx, Folder(view, folder, "document"), Stretch(None, 0, 10))
        assert [each.stored.id for each in page] == [last, other]
        if cx.dialect.name == "sqlite":
            statement = lists._members(Folder(view, folder, "document")).order_by("name", "seq")
            compiled = statement.compile(cx, compile_kwargs={"literal_binds": True})
            plan = [row[3] for row in cx.execute(sa.text(f"EXPLAIN QUERY PLAN {compiled}"))]
            assert any("ix_objects_folder (folder_id=? AND former=?)" in step for step in plan), plan
            assert not any("FOR ORDER BY" in step for step in plan), plan


def test_a_version_without_content_of_its_own_shares_that_of_the_one_before(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "a"}, content=shelf.content("one"))
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, MARTA, stored.id, shelf.now)
    with shelf.database.begin() as cx:
        second = checkins.check_in(cx, shelf.view(MARTA), stored.id, CheckIn("next-minor", {}), shelf.now)
        assert second.content == stored.content is not None
        assert counted_uses(cx) == counted_rows(cx) == {stored.content.key: 2}


def test_a_tree_has_a_largest_number_of_versions(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = shelf.create({"object_name": "a"}, content=shelf.content("one"))
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        checkouts.check_out(cx, shelf.repository, MARTA, stored.id, shelf.now)
    monkeypatch.setattr(checkins, "MOST_VERSIONS", 2)
    what = CheckIn("next-minor", {}, content=shelf.content("two"), retain_lock=True)
    with shelf.database.begin() as cx:
        second = checkins.check_in(cx, view, stored.id, what, shelf.now)
    with shelf.database.begin() as cx, pytest.raises(QuotaExceeded):
        checkins.check_in(cx, view, second.id, what, shelf.now)
