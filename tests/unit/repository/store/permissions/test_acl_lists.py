"""Lists of ACLs and their quotas: what one caller makes costs the others nothing."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import QuotaExceeded
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.permissions import acl_entries, acl_lists, acls
from muniment.repository.store.permissions.acl_names import AclQuota
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.conftest import Fresh
from tests.counting import cost
from tests.plans import work
from tests.shelf import ADMIN, JON, MARTA, Shelf

MANY = {f"user {number}@demo": Permission.READ for number in range(999)}


@pytest.mark.slow
def test_a_page_costs_two_statements_and_its_rows_however_much_there_is(shelf: Shelf) -> None:
    """failures C2: 197 ACLs of 1,000 entries were all read for a page of one. Here 40 entries show it as well."""
    some = dict(itertools.islice(MANY.items(), 40))
    with shelf.database.begin() as cx:
        for number in range(200):
            acls.add(cx, shelf.repository.id, f"{number:03} many", ADMIN, some | {"world": Permission.READ}, shelf.now)
    for caller, size in ((JON, 1), (JON, 50), (ADMIN, 50)):
        with cost(shelf.database) as spent, shelf.database.read() as cx:
            page = acl_lists.acl_page(cx, shelf.repository.id, caller, Stretch(None, 0, size + 1))
        assert len(page) == size + 1
        assert len(spent.statements) <= 2
        assert spent.rows <= 2 * (size + 1)
    with cost(shelf.database) as spent, shelf.database.read() as cx:
        deep = acl_lists.acl_page(cx, shelf.repository.id, JON, Stretch(page[-1].place, 0, 11))
        assert acl_lists.count_acls(cx, shelf.repository.id, JON) == 202
    assert [one.acl.name for one in deep[:2]] == ["051 many", "052 many"]
    assert (len(spent.statements), spent.rows) == (4, 11 + 11 + 1)


def test_a_list_does_not_tell_of_hidden_entries(shelf: Shelf) -> None:
    shelf.acl("a", {"world": Permission.READ, "guests@demo": Permission.READ, "staff@demo": Permission.WRITE}, ADMIN)
    shelf.acl("b", {"owner": Permission.DELETE, "staff@demo": Permission.WRITE}, ADMIN)
    for caller, told in ((JON, {"a": 2}), (MARTA, {"a": 2, "b": 2}), (ADMIN, {"a": 3, "b": 2})):
        with shelf.database.read() as cx:
            found = {
                one.acl.name: one.acl.entries
                for one in acl_lists.acl_page(cx, shelf.repository.id, caller, Stretch(None, 0, 10))
            }
            of = {name: acls.find(cx, shelf.repository.id, name, caller) for name in told}
            assert told == {name: len(acls.shown_entries(cx, acl, caller)) for name, acl in of.items()}
        assert {name: found.get(name) for name in ("a", "b") if name in found} == told


def test_pages_by_cursor_are_the_pages_by_number(shelf: Shelf) -> None:
    for number in range(23):
        shelf.acl(f"n {number % 4}", {"world": Permission.READ}, Principals(f"u{number}@demo"))
    with shelf.database.read() as cx:
        by_number = [
            acl_lists.acl_page(cx, shelf.repository.id, JON, Stretch(None, offset, 5)) for offset in range(0, 26, 5)
        ]
        by_cursor, after = [by_number[0]], by_number[0][-1].place
        while page := acl_lists.acl_page(cx, shelf.repository.id, JON, Stretch(after, 0, 5)):
            by_cursor.append(page)
            after = page[-1].place
    assert by_cursor == [page for page in by_number if page]


@pytest.mark.slow
def test_what_a_search_asks_of_acls_grows_with_what_is_granted_alone(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        for number in range(50):
            entries = MANY | ({"guests@demo": Permission.READ} if number < 3 else {})
            acls.add(cx, shelf.repository.id, f"a {number}", ADMIN, entries, shelf.now)
    with cost(shelf.database) as spent, shelf.database.read() as cx:
        assert len(acls.permissions_by_acl(cx, shelf.repository.id, JON, Permission.BROWSE)) == 4
    assert (len(spent.statements), spent.rows) == (1, 4)


def test_a_user_may_own_so_many_acls(shelf: Shelf) -> None:
    quota = AclQuota(acls=3, entries=100)

    def add(name: str, caller: Principals) -> acls.Acl:
        with shelf.database.begin() as cx:
            return acls.add(cx, shelf.repository.id, name, caller, {}, shelf.now, quota)

    made = [add(f"m {number}", MARTA) for number in range(3)]
    with pytest.raises(QuotaExceeded, match="You own 3 ACLs; one user may own 3"):
        add("more", MARTA)
    add("more", JON)
    for number in range(5):
        add(f"a {number}", ADMIN)
    with shelf.database.begin() as cx:
        acls.remove(cx, made[0], MARTA)
    add("more", MARTA)


@pytest.mark.slow
def test_a_users_acls_may_have_so_many_entries_together(shelf: Shelf) -> None:
    few, more = ({f"u{n}@demo": Permission.READ for n in range(count)} for count in (4, 7))
    quota = AclQuota(acls=100, entries=10)
    first, second = shelf.acl("first", few), shelf.acl("second", few)

    def change(acl: acls.Acl, entries: dict[str, Permission], caller: Principals, allowed: AclQuota = quota) -> None:
        with shelf.database.begin() as cx:
            present = acls.find(cx, shelf.repository.id, acl.shown_id, caller)
            acls.change(cx, present, caller, entries, shelf.now, allowed)

    with pytest.raises(QuotaExceeded, match="have 8 entries together"), shelf.database.begin() as cx:
        acls.add(cx, shelf.repository.id, "third", MARTA, few, shelf.now, quota)
    with pytest.raises(QuotaExceeded):
        change(first, more, MARTA)
    change(first, {}, MARTA)
    change(second, more, MARTA)
    change(first, dict(list(few.items())[:3]), MARTA)
    with pytest.raises(QuotaExceeded):
        change(first, few, MARTA)
    change(first, MANY, ADMIN)
    smaller = dict(list(MANY.items())[:900])
    change(first, smaller, MARTA)  # what is there already stays, and may shrink
    with pytest.raises(QuotaExceeded):
        change(first, MANY, MARTA)


def test_the_quota_is_counted_in_one_statement(shelf: Shelf) -> None:
    for number in range(20):
        shelf.acl(f"m {number}", {"world": Permission.READ})
    with shelf.database.begin() as cx:
        with cost(shelf.database) as unlimited:
            acls.add(cx, shelf.repository.id, "a", ADMIN, {}, shelf.now)
        with cost(shelf.database) as limited:
            acls.add(cx, shelf.repository.id, "b", MARTA, {}, shelf.now)
    lock = shelf.database.dialect == "postgresql"
    assert len(limited.statements) - len(unlimited.statements) == 1 + lock
    assert limited.rows - unlimited.rows == 1


@pytest.mark.slow
@pytest.mark.parametrize("what", ["acls", "entries"])
def test_a_quota_is_exact_when_many_write_at_one_time(fresh: Fresh, now: Instant, what: str) -> None:
    url = fresh("repository")
    database = Database(url)
    with database.begin() as cx:
        repository = repositories.add(cx, "demo", "11111111-1111-1111-1111-111111111111", "", now)
        acls.initialise(cx, repository.id, now)
        held = [acls.add(cx, repository.id, f"held {n}", MARTA, {}, now) for n in range(8)]
    quota = AclQuota(acls=8 + 5, entries=1000) if what == "acls" else AclQuota(acls=1000, entries=5)
    start = threading.Barrier(8)

    def write(writer: int) -> int:
        own, done = Database(url), 0
        try:
            start.wait()
            for step in range(4):
                try:
                    with own.begin() as cx:
                        if what == "acls":
                            acls.add(cx, repository.id, f"n {writer} {step}", MARTA, {}, now, quota)
                        else:
                            acl = acls.find(cx, repository.id, held[writer].shown_id, MARTA)
                            entries = {f"u{n}@demo": Permission.READ for n in range(step + 1)}
                            acls.change(cx, acl, MARTA, entries, now, quota)
                    done += 1
                except QuotaExceeded:
                    continue
        finally:
            own.close()
        return done

    with ThreadPoolExecutor(8) as threads:
        done = sum(threads.map(write, range(8)))
    assert done == 5
    with database.read() as cx:
        assert acl_lists.count_acls(cx, repository.id, ADMIN) == 2 + 8 + (5 if what == "acls" else 0)
        kept = acl_entries.entries_of(cx, [acl.id for acl in held])
        assert sum(map(len, kept.values())) == (0 if what == "acls" else 5)
    database.close()


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_a_page_of_what_uses_an_acl_takes_no_more_the_more_objects_there_are(shelf: Shelf) -> None:
    rare, common = (shelf.acl(name, {"owner": Permission.DELETE}, MARTA) for name in ("rare", "common"))

    def asked(acl: acls.Acl) -> int:
        view = shelf.view(MARTA)
        return work(shelf.database, lambda cx: lists.page_of_acl(cx, view, acl.id, Stretch(None, 0, 5)))

    def fill(number: int, acl: str) -> None:
        for at in range(number):
            shelf.add(f"{acl} {at}", acl=acl)

    fill(10, "common")
    few = asked(common)
    fill(100, "common")
    fill(10, "rare")
    assert max(asked(common), asked(rare)) < 1.2 * few
