"""Quotas, gifts and lists of saved searches."""

import pytest
import sqlalchemy as sa

from muniment.database.connections import repository_tables
from muniment.ground.clock import SECOND
from muniment.repository.bulk import removal
from muniment.repository.refusals import (
    NoStoredResults,
    NotPermitted,
    QuotaExceeded,
    UnknownSavedSearch,
    VersionConflict,
    WrongValue,
)
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.saved import saved_searches, stored_results
from muniment.repository.store.saved.saved_searches import (
    Kind,
    SavedDocument,
    SavedSearch,
    SavedSearchQuota,
    SearchChange,
    WrittenNames,
)
from tests.shelf import ADMIN, BORIS, JON, MARTA, Shelf

NAMES = WrittenNames("urn:x", "", "r_")
WIDE = SavedSearchQuota(1000, 1_000_000)
DOCUMENT = SavedDocument("json", NAMES, b"{}")


def save(
    shelf: Shelf,
    who: Principals = MARTA,
    name: str = "one",
    *,
    kind: Kind = "search",
    public: bool = False,
    quota: SavedSearchQuota = WIDE,
    body: bytes = b"{}",
    repository_id: int = 0,
    later: int = 0,
) -> SavedSearch:
    with shelf.database.begin() as cx:
        return saved_searches.add(
            cx,
            repository_id or shelf.repository.id,
            kind,
            SearchChange(name, "", public),
            SavedDocument("json", NAMES, body),
            who,
            quota,
            shelf.now + later * SECOND,
        )


def found(shelf: Shelf, search_id: str, who: Principals = MARTA, kind: Kind = "search") -> SavedSearch:
    with shelf.database.read() as cx:
        return saved_searches.find(cx, shelf.repository.id, kind, search_id, who)


def changed(
    shelf: Shelf,
    search_id: str,
    change: SearchChange,
    who: Principals = MARTA,
    *,
    most: int = 10**6,
    expected: int | None = None,
) -> SavedSearch:
    quota = SavedSearchQuota(1000, most)
    with shelf.database.begin() as cx:
        return saved_searches.change(cx, shelf.repository.id, search_id, change, who, quota, shelf.now, expected)


def stored(shelf: Shelf, search: SavedSearch, ids: list[str], who: Principals = MARTA, most: int = 10**6) -> None:
    with shelf.database.begin() as cx:
        saved_searches.store_results(cx, shelf.repository.id, search, ids, who, SavedSearchQuota(1000, most), shelf.now)


def read_results(shelf: Shelf, search_id: str, who: Principals = MARTA) -> str:
    with shelf.database.read() as cx:
        return stored_results.read(cx, search_id, who.key).object_ids


def names(shelf: Shelf, who: Principals, kind: Kind = "search") -> list[str]:
    with shelf.database.read() as cx:
        listed = saved_searches.saved_page(cx, shelf.repository.id, kind, who, Stretch(None, 0, 100))
        assert len(listed) == saved_searches.count_saved(cx, shelf.repository.id, kind, who)
        return [one.search.name for one in listed]


def test_what_is_kept_is_found_as_it_was(shelf: Shelf) -> None:
    kept = save(shelf, body=b'{"types":  []}')
    assert found(shelf, kept.id) == kept
    assert kept.document == SavedDocument("json", NAMES, b'{"types":  []}')
    assert len(kept.id) == 16
    assert kept.id.startswith("53")
    assert save(shelf, kind="template").id.startswith("54")


def test_ids_tell_no_order_and_names_may_repeat(shelf: Shelf) -> None:
    """failures C9: neither a clash nor a counter tells that there is another one."""
    ids = [save(shelf, who, "same").id for who in (MARTA, BORIS, MARTA) for _ in range(10)]
    assert ids != sorted(ids)
    assert len({search_id[:6] for search_id in ids}) > 20


def test_a_kind_is_not_the_other(shelf: Shelf) -> None:
    search, template = save(shelf), save(shelf, kind="template")
    for search_id, kind in ((search.id, "template"), (template.id, "search")):
        with pytest.raises(UnknownSavedSearch):
            found(shelf, search_id, kind=kind)  # type: ignore[arg-type]
    assert names(shelf, MARTA) == ["one"]


def test_each_caller_sees_their_own_first_then_public_ones(shelf: Shelf) -> None:
    for later, (who, name, public) in enumerate(
        [(MARTA, "m1", False), (BORIS, "b1", True), (BORIS, "b2", False), (MARTA, "m2", True), (JON, "j1", True)]
    ):
        save(shelf, who, name, public=public, later=later)
    assert names(shelf, MARTA) == ["m2", "m1", "j1", "b1"]
    assert names(shelf, BORIS) == ["b2", "b1", "j1", "m2"]
    assert names(shelf, ADMIN) == ["j1", "m2", "b2", "b1", "m1"]


def test_pages_joined_are_the_whole(shelf: Shelf) -> None:
    for number in range(7):
        save(shelf, (MARTA, BORIS)[number % 2], f"s{number}", public=True, later=number // 3)
    with shelf.database.read() as cx:
        whole = saved_searches.saved_page(cx, shelf.repository.id, "search", MARTA, Stretch(None, 0, 100))
        place, paged = None, []
        while True:
            part = saved_searches.saved_page(cx, shelf.repository.id, "search", MARTA, Stretch(place, 0, 2))
            if not part:
                break
            paged += part
            place = part[-1].place
    assert [one.search.id for one in paged] == [one.search.id for one in whole]
    assert len(whole) == 7


def test_a_stranger_learns_nothing_and_a_reader_changes_nothing(shelf: Shelf) -> None:
    private, public = save(shelf), save(shelf, public=True)
    with pytest.raises(UnknownSavedSearch):
        found(shelf, private.id, BORIS)
    with pytest.raises(UnknownSavedSearch):
        changed(shelf, private.id, SearchChange("x"), BORIS)
    assert found(shelf, public.id, BORIS) == public
    with pytest.raises(NotPermitted):
        changed(shelf, public.id, SearchChange("x"), BORIS)
    assert changed(shelf, private.id, SearchChange("x"), ADMIN).owner_key == MARTA.key
    with pytest.raises(VersionConflict):
        changed(shelf, private.id, SearchChange("y"), expected=1)
    assert changed(shelf, private.id, SearchChange("y"), expected=2).revision == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", " ", "x" * 256, "\ud800"])
def test_a_name_that_cannot_be_is_refused(shelf: Shelf, name: str) -> None:
    with pytest.raises(WrongValue):
        changed(shelf, save(shelf).id, SearchChange(name))


def test_a_caller_owns_so_many_in_all_repositories(shelf: Shelf) -> None:
    """failures C6."""
    with shelf.database.begin() as cx:
        other = repositories.add(cx, "other", "00000000-0000-4000-8000-000000000001", "", shelf.now)
    quota = SavedSearchQuota(3, 10**6)
    save(shelf, quota=quota)
    save(shelf, quota=quota, repository_id=other.id)
    save(shelf, quota=quota, kind="template")
    for kind in ("search", "template"):
        with pytest.raises(QuotaExceeded):
            save(shelf, quota=quota, kind=kind)
    save(shelf, BORIS, quota=quota)


def test_documents_and_results_of_a_caller_are_counted_in_bytes(shelf: Shelf) -> None:
    """failures C6."""
    quota = SavedSearchQuota(100, 1000)
    search = save(shelf, quota=quota, body=b"x" * 600)
    with pytest.raises(QuotaExceeded):
        save(shelf, quota=quota, body=b"x" * 600)
    with pytest.raises(QuotaExceeded):
        changed(shelf, search.id, SearchChange(document=SavedDocument("json", NAMES, b"x" * 1200)), most=1000)
    with pytest.raises(QuotaExceeded):
        stored(shelf, search, ["0" * 16] * 30, most=1000)
    stored(shelf, search, ["0" * 16] * 15, most=1000)
    stored(shelf, search, ["0" * 16] * 16, most=1000)
    with pytest.raises(QuotaExceeded):
        save(shelf, quota=quota, body=b"x" * 200)
    # Less is never too much, even where a setting was lowered.
    assert changed(shelf, search.id, SearchChange(document=DOCUMENT), most=1).document == DOCUMENT


def test_another_s_results_count_for_who_stored_them(shelf: Shelf) -> None:
    search = save(shelf, public=True)
    stored(shelf, search, ["1" * 16], BORIS)
    with pytest.raises(NoStoredResults):
        read_results(shelf, search.id)
    with shelf.database.read() as cx:
        assert stored_results.size(cx, BORIS.key) == len(read_results(shelf, search.id, BORIS))
        assert stored_results.size(cx, MARTA.key) == 0


def test_results_of_a_search_that_was_changed_meanwhile_are_not_stored(shelf: Shelf) -> None:
    search = save(shelf)
    changed(shelf, search.id, SearchChange(document=SavedDocument("json", NAMES, b"[]")))
    with pytest.raises(VersionConflict):
        stored(shelf, search, ["1" * 16])


def test_results_of_another_format_count_as_none(shelf: Shelf) -> None:
    search = save(shelf)
    stored(shelf, search, ["1" * 16])
    table = repository_tables.tables["saved_results"]
    with shelf.database.begin() as cx:
        cx.execute(table.update().values(format=99))
        assert stored_results.searches_with_results(cx, [search.id], MARTA.key) == frozenset()
    with pytest.raises(NoStoredResults):
        read_results(shelf, search.id)


def test_a_gift_takes_searches_and_templates_and_no_results(shelf: Shelf) -> None:
    search = save(shelf)
    save(shelf, kind="template")
    stored(shelf, search, ["1" * 16])
    with shelf.database.begin() as cx:
        assert saved_searches.give(cx, shelf.repository.id, MARTA.key, BORIS.id, BORIS.key, shelf.now) == 2
        assert saved_searches.count_by_owner(cx, BORIS.key) == 2
        assert stored_results.size(cx, MARTA.key) == 0, "she could remove them no more"
    given = found(shelf, search.id, BORIS)
    assert (given.owner, given.revision) == (BORIS.id, search.revision + 1)
    with pytest.raises(UnknownSavedSearch):
        found(shelf, search.id)
    with pytest.raises(NoStoredResults):
        read_results(shelf, search.id, BORIS)


@pytest.mark.slow
def test_a_repository_goes_with_its_saved_searches(shelf: Shelf) -> None:
    search = save(shelf)
    stored(shelf, search, ["1" * 16])
    with shelf.database.begin() as cx:
        assert "1 saved searches" in removal.describe(removal.count_rows(cx, shelf.repository))
        removal.close(cx, shelf.repository, with_everything=True)
        removal.finish(cx, shelf.repository)
        for name in ("saved_searches", "saved_results"):
            count = sa.select(sa.func.count()).select_from(repository_tables.tables[name])
            assert cx.execute(count).scalar_one() == 0


def test_removal_takes_every_caller_s_results(shelf: Shelf) -> None:
    search = save(shelf, public=True)
    for who in (MARTA, BORIS):
        stored(shelf, search, ["1" * 16], who)
    with shelf.database.begin() as cx:
        saved_searches.remove(cx, shelf.repository.id, "search", search.id, MARTA)
        assert stored_results.size(cx, BORIS.key) == 0


def test_what_is_forgotten_is_the_caller_s_alone(shelf: Shelf) -> None:
    search = save(shelf, public=True)
    for who in (MARTA, BORIS):
        stored(shelf, search, ["1" * 16], who)
    with shelf.database.begin() as cx:
        assert stored_results.forget(cx, BORIS.key) == 1
    assert read_results(shelf, search.id) == '["1111111111111111"]'
