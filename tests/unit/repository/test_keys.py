"""Scrambled numbers are a bijection that leaves the former ids alone; sealed texts tell nothing and open once bound."""

import itertools
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.repository import keys
from muniment.repository.keys import FORMER, BadSeal, Permutation, Seal

KEYS = st.binary(min_size=32, max_size=32)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [2, 4, 8, 12, 16])
def test_a_permutation_meets_every_number_once(bits: int) -> None:
    permutation = Permutation(secrets.token_bytes(32), bits)
    assert sorted(permutation(number) for number in range(1 << bits)) == list(range(1 << bits))


@pytest.mark.slow
@given(KEYS, st.sets(st.integers(0, (1 << 56) - 1), max_size=50))
def test_no_two_of_the_whole_width_meet(key: bytes, numbers: set[int]) -> None:
    permutation = Permutation(key, keys.BITS)
    met = {permutation(number) for number in numbers}
    assert len(met) == len(numbers)
    assert all(0 <= number < 1 << 56 for number in met)


@pytest.mark.slow
@given(KEYS, st.integers(0, 1 << 40), st.integers(1, 1000))
def test_no_new_number_is_one_of_the_former_and_no_two_are_equal(key: bytes, counter: int, step: int) -> None:
    permutation = Permutation(key, keys.BITS)
    digits = [keys.outside_the_former(permutation, number) for number in (counter, counter + step)]
    assert digits[0] != digits[1]
    for each in digits:
        assert len(each) == 14
        assert int(each, 16) >= FORMER  # the former ones were a repository below 65,536 and then 8 digits
        assert not each.startswith("00")


def test_the_walk_leaves_the_former_numbers_of_a_small_width_and_stays_a_bijection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys, "FORMER", 1 << 11)  # half of all: every second step of a walk is one more
    permutation = Permutation(secrets.token_bytes(32), 12)
    met = [int(keys.outside_the_former(permutation, counter), 16) for counter in range(1 << 11)]
    assert sorted(met) == list(range(1 << 11, 1 << 12))


def test_neighbours_share_no_more_digits_than_strangers() -> None:
    permutation = Permutation(bytes(32), keys.BITS)
    met = [permutation(FORMER + counter) for counter in range(4000)]
    changed = [(one ^ other).bit_count() for one, other in itertools.pairwise(met)]
    assert 27 < sum(changed) / len(changed) < 29  # half of 56 bits
    rising = sum(one < other for one, other in itertools.pairwise(met))
    assert 1850 < rising < 2150


def test_two_keys_scramble_differently_and_one_key_always_alike() -> None:
    one, other = Permutation(b"1" * 32, keys.BITS), Permutation(b"2" * 32, keys.BITS)
    assert [one(number) for number in range(50)] != [other(number) for number in range(50)]
    assert [one(number) for number in range(50)] == [Permutation(b"1" * 32, keys.BITS)(n) for n in range(50)]


@pytest.mark.slow
@given(KEYS, st.binary(max_size=500), st.lists(st.text(max_size=20), max_size=4))
def test_what_is_sealed_opens_bound_to_the_same(key: bytes, plain: bytes, bound: list[str]) -> None:
    sealed = Seal(key).seal(plain, *bound)
    assert Seal(key).open(sealed, *bound) == plain
    assert set(sealed) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    for others in ([*bound, ""], [*bound, "x"], bound[:-1] if bound else ["x"]):
        with pytest.raises(BadSeal):
            Seal(key).open(sealed, *others)


def test_the_same_is_never_sealed_alike_and_its_length_tells_its_length_only() -> None:
    seal = Seal(secrets.token_bytes(32))
    texts = {seal.seal(b"position", "position") for _ in range(100)}
    assert len(texts) == 100
    assert len({len(text) for text in texts}) == 1


def test_names_that_join_alike_are_bound_differently() -> None:
    seal = Seal(secrets.token_bytes(32))
    with pytest.raises(BadSeal):
        seal.open(seal.seal(b"", "ab", "c"), "a", "bc")


@given(st.text(max_size=300))
def test_a_strangers_text_is_unsealed(text: str) -> None:
    with pytest.raises(BadSeal):
        Seal(bytes(32)).open(text, "position")


def test_one_changed_sign_is_noticed() -> None:
    seal = Seal(bytes(32))
    sealed = seal.seal(b"sixteen bytes...", "position")
    for place in range(len(sealed) - 1):  # of the last sign some bits mean nothing
        other = "A" if sealed[place] != "A" else "B"
        with pytest.raises(BadSeal):
            seal.open(sealed[:place] + other + sealed[place + 1 :], "position")


def test_a_database_has_keys_of_its_own_that_stay(repository_db: Database) -> None:
    with repository_db.read() as cx:
        first = [keys.key(cx, purpose) for purpose in (keys.OBJECTS, keys.ACLS, keys.SEALS)]
        sealed = keys.seal(cx).seal(b"x", "test")
    assert len(set(first)) == 3
    assert {len(key) for key in first} == {32}
    again = Database(repository_db.engine.url.render_as_string(hide_password=False))  # as another process has it
    with again.read() as cx:
        assert [keys.key(cx, purpose) for purpose in (keys.OBJECTS, keys.ACLS, keys.SEALS)] == first
        assert keys.seal(cx).open(sealed, "test") == b"x"
        with pytest.raises(LookupError):
            keys.key(cx, "nothing")
    again.close()
