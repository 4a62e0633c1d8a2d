"""A key is one bearer's for good, whoever bears the name later."""

import threading
from collections.abc import Collection, Mapping

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import Principals

BOB = "bob@staff"
FIRST, SECOND, THIRD = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "123")


def bind(database: Database, identity: str, now: Instant, name: str = BOB) -> str:
    with database.begin() as cx:
        return name_keys.bind(cx, {name: identity}, now)[name]


def key(database: Database, identity: str, name: str = BOB) -> str:
    with database.read() as cx:
        return name_keys.keys(cx, {name: identity})[name]


def written_for(database: Database, now: Instant, *borne: tuple[str, str], name: str = BOB) -> str:
    def identify(names: Collection[str]) -> Mapping[str, str]:
        return {one: identity for one, identity in borne if one in names}

    with database.begin() as cx:
        return name_keys.of_names(cx, [name], identify, now)[name]


def waiting(database: Database, *names: str) -> None:
    """Stand in for the migration: names that rows held before."""
    with database.begin() as cx:
        cx.execute(name_keys.bearers.insert(), [{"key": name, "name": name, "bound": 0} for name in names])


def test_the_first_bearer_of_a_name_has_the_name_and_each_later_one_a_key_that_no_name_spells(
    repository_db: Database, now: Instant
) -> None:
    assert bind(repository_db, FIRST, now) == BOB
    later = [bind(repository_db, identity, now) for identity in (SECOND, THIRD)]
    assert len({BOB, *later}) == 3
    assert all("@" not in one and fold_name(one) == one for one in later)
    assert [bind(repository_db, identity, now) for identity in (FIRST, SECOND, THIRD)] == [BOB, *later]
    assert [key(repository_db, identity) for identity in (FIRST, SECOND, THIRD)] == [BOB, *later]


def test_who_is_not_bound_yet_is_told_the_key_that_they_will_have(repository_db: Database, now: Instant) -> None:
    assert key(repository_db, FIRST) == BOB
    bind(repository_db, FIRST, now)
    expected = key(repository_db, SECOND)
    assert expected == bind(repository_db, SECOND, now)


def test_a_user_whose_name_changes_keeps_their_key(repository_db: Database, now: Instant) -> None:
    bind(repository_db, FIRST, now)
    assert bind(repository_db, FIRST, now, "robert@staff") == BOB
    assert bind(repository_db, SECOND, now, "robert@staff") == "robert@staff"


def test_a_name_without_an_identity_is_its_only_bearer_s(repository_db: Database, now: Instant) -> None:
    assert key(repository_db, "") == BOB
    bind(repository_db, FIRST, now)
    assert key(repository_db, "") == BOB, "the owner is not locked out"
    bind(repository_db, SECOND, now)
    assert key(repository_db, "") not in {BOB, key(repository_db, SECOND)}, "which of the two it is cannot be told"


def test_what_is_written_for_a_name_is_kept_for_its_bearer_now(repository_db: Database, now: Instant) -> None:
    assert written_for(repository_db, now, (BOB, FIRST)) == BOB
    second = written_for(repository_db, now, (BOB, SECOND))
    assert second == bind(repository_db, SECOND, now) != BOB


def test_what_is_written_for_a_name_that_nobody_bears_is_kept_for_the_first_bearer_and_for_no_second(
    repository_db: Database, now: Instant
) -> None:
    assert written_for(repository_db, now) == BOB
    assert bind(repository_db, FIRST, now) == BOB
    assert written_for(repository_db, now) == BOB, "of a removed bearer"
    assert bind(repository_db, SECOND, now + 1) != BOB
    assert written_for(repository_db, now) == key(repository_db, SECOND), "the last one known"


def test_names_from_before_are_bound_to_their_bearers_now_or_to_nobody(repository_db: Database, now: Instant) -> None:
    waiting(repository_db, BOB, "eve@staff", "zoe@staff")
    assert bind(repository_db, THIRD, now, "zoe@staff") == "zoe@staff", "proved before"
    with repository_db.begin() as cx:
        assert name_keys.settle(cx, lambda names: {BOB: FIRST} if BOB in names else {}, now) == (1, 1)
        assert name_keys.settle(cx, lambda _names: {}, now) == (0, 0)
    assert key(repository_db, FIRST) == BOB
    assert key(repository_db, SECOND, "eve@staff") != "eve@staff"
    assert key(repository_db, "", "eve@staff") != "eve@staff"
    assert key(repository_db, THIRD, "zoe@staff") == "zoe@staff"


def test_settling_goes_on_where_it_stopped(repository_db: Database, now: Instant) -> None:
    names = [f"user-{number}@staff" for number in range(7)]
    waiting(repository_db, *names)
    counts = []
    for _ in range(4):
        with repository_db.begin() as cx:
            counts.append(name_keys.settle(cx, lambda some: {name: f"of {name}" for name in some}, now, limit=3))
    assert counts == [(3, 0), (3, 0), (1, 0), (0, 0)]
    assert all(key(repository_db, f"of {name}", name) == name for name in names)


def _prove(
    database: Database, identity: str, now: Instant, name: str, found: dict[str, str], together: threading.Barrier
) -> None:
    together.wait()
    found[threading.current_thread().name] = bind(database, identity, now, name)


@pytest.mark.slow
def test_of_two_that_prove_one_name_at_one_time_each_has_a_key_of_its_own(
    repository_db: Database, now: Instant
) -> None:
    for number in range(20):
        name, found = f"both-{number}@staff", dict[str, str]()
        together = threading.Barrier(4)

        threads = [
            threading.Thread(
                target=_prove,
                args=(repository_db, f"{identity} {number}", now, name, found, together),
                name=f"{identity} {copy}",
            )
            for identity in (FIRST, SECOND)
            for copy in (1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[f"{FIRST} 1"] == found[f"{FIRST} 2"]
        assert found[f"{SECOND} 1"] == found[f"{SECOND} 2"]
        assert len(set(found.values())) == 2
        assert name in found.values()


@pytest.mark.parametrize("written", ["", 7, None, "a\0b", "x" * 201])
def test_what_is_no_identity_counts_as_none(written: object) -> None:
    assert not name_keys.is_identity(written)


def test_a_caller_whose_keys_were_not_asked_for_passes_for_nobody() -> None:
    caller = Principals("Bob@Staff", frozenset({"team@staff"}), identities={BOB: FIRST, "team@staff": SECOND})
    assert caller.key != BOB
    assert BOB not in caller.accessors
    assert "team@staff" not in caller.accessors
    known = caller.with_keys({BOB: BOB, "team@staff": "team@staff"})
    assert known.key == BOB
    assert known.accessors == {BOB, "team@staff", "world"}
