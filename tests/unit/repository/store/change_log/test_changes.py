"""What happened after position p, in the order it became visible?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import START, Position
from tests.shelf import Shelf


def test_lines_are_read_in_order_and_in_batches(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        positions = [changes.note(cx, shelf.repository.id, f"{n:016x}", "created", shelf.now) for n in range(5)]
    assert positions == sorted(positions)
    with shelf.database.read() as cx:
        first = changes.after(cx, shelf.repository.id, START, 3)
        rest = changes.after(cx, shelf.repository.id, first[-1].position, 3)
        assert changes.latest(cx, shelf.repository.id) == positions[-1]
    assert [change.position for change in first + rest] == positions


def test_it_is_told_whether_more_lines_than_so_many_follow(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        positions = [changes.note(cx, shelf.repository.id, f"{n:016x}", "created", shelf.now) for n in range(5)]
    with shelf.database.read() as cx:
        for passed, position in enumerate([START, *positions]):
            for count in range(7):
                assert changes.are_more_than(cx, shelf.repository.id, position, count) == (5 - passed > count)


def test_it_is_told_since_when_the_next_line_waits(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        positions = [
            changes.note(cx, shelf.repository.id, f"{n:016x}", "created", shelf.now + delay)
            for n, delay in enumerate((0, 7, 7))
        ]
    with shelf.database.read() as cx:
        assert [changes.waiting_since(cx, shelf.repository.id, position) for position in (START, *positions)] == [
            shelf.now,
            shelf.now + 7,
            shelf.now + 7,
            None,
        ]


def test_a_repository_has_its_own_log(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        other = repositories.add(cx, "other", "r", "", shelf.now)
        changes.note(cx, shelf.repository.id, "0" * 16, "created", shelf.now)
    with shelf.database.read() as cx:
        assert changes.after(cx, other.id, START, 10) == []
        assert changes.latest(cx, other.id) == START
        assert len(changes.after(cx, shelf.repository.id, START, 10)) == 1


def test_a_line_that_was_rolled_back_is_not_there(shelf: Shelf) -> None:
    def fail() -> None:
        with shelf.database.begin() as cx:
            changes.note(cx, shelf.repository.id, "0" * 16, "created", shelf.now)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with shelf.database.read() as cx:
        assert changes.after(cx, shelf.repository.id, START, 10) == []


def test_pending_names_the_kinds_of_each_object_after_a_position(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        first = changes.note(cx, shelf.repository.id, "a" * 16, "acl", shelf.now)
        changes.note(cx, shelf.repository.id, "a" * 16, "owner", shelf.now)
        changes.note(cx, shelf.repository.id, "b" * 16, "text", shelf.now)
        changes.note(cx, shelf.repository.id, "b" * 16, "deleted", shelf.now)
    with shelf.database.read() as cx:
        assert changes.hiding(cx, shelf.repository.id, START, 100) == {
            "a" * 16: {"acl", "owner"},
            "b" * 16: {"deleted"},
        }
        assert changes.pending(cx, shelf.repository.id, first, ["a" * 16, "b" * 16, "c" * 16]) == {"a" * 16, "b" * 16}


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_position_that_was_written_is_read_again_the_same(transaction: int, sequence: int) -> None:
    position = Position(transaction, sequence)
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize("written", ["", "1", "a.b", "1.", ".1", "1.2.3"])
def test_what_is_no_position_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Position.parse(written)
