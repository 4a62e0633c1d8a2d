"""Two transactions change types of one repository at one moment: the later one decides by what the earlier one wrote.

The later transaction begins while the earlier one is open. The earlier one is committed as soon as the later one waits
for it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.engine import Connection

from muniment.repository.bulk import removal
from muniment.repository.refusals import InUse, NameTaken, WrongValue
from muniment.repository.store.objects.properties.properties import PropertyDefinition, PropertyKind
from muniment.repository.store.objects.types import object_types, reindexing, type_editing, types_file
from muniment.repository.store.objects.types.type_forms import PropertyForm, TypeForm
from tests.shelf import Shelf
from tests.waiting import until

pytestmark = pytest.mark.only("postgresql", "SQLite has one writer at a time.")

TYPES = b"""
[types.well.properties]
secret = { kind = "string", searchable = false }
[types.mast.properties]
height = "integer"
[types.tower.properties]
secret = { kind = "string", searchable = false }
"""

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

Decision = Callable[[Connection, Shelf], object]


@pytest.fixture
def types(shelf: Shelf) -> Shelf:
    """A repository in which two types have a property ``secret``, which is not searchable, and a third has none."""
    with shelf.database.begin() as cx:
        types_file.load(cx, shelf.repository.id, TYPES, shelf.now)
    return shelf


def is_waiting(shelf: Shelf) -> bool:
    """Say whether a transaction of the database waits for another one."""
    with shelf.database.read() as cx:
        return bool(cx.exec_driver_sql(_WAITING).scalar_one())


def one_after_the_other(shelf: Shelf, earlier: Decision, later: Decision) -> BaseException | None:
    """Take two decisions at one moment, and return what the later one raises, or None."""

    def decide() -> None:
        with shelf.database.begin() as cx:
            later(cx, shelf)

    with ThreadPoolExecutor(1) as threads:
        with shelf.database.begin() as cx:
            earlier(cx, shelf)
            outcome = threads.submit(decide)
            until(lambda: is_waiting(shelf) or outcome.done())
            assert not outcome.done(), "the later transaction does not wait for the earlier one"
        return outcome.exception(60)


def add(type_name: str, name: str, kind: PropertyKind = "string", *, searchable: bool = True) -> Decision:
    definition = PropertyDefinition(name, kind, searchable=searchable)
    return lambda cx, shelf: type_editing.add_properties(cx, shelf.repository.id, type_name, [definition], shelf.now)


def change(type_name: str, *forms: PropertyForm) -> Decision:
    form = TypeForm(type_name, properties=forms)
    return lambda cx, shelf: type_editing.change_type(cx, shelf.repository.id, form, shelf.now)


def load(toml: bytes) -> Decision:
    return lambda cx, shelf: types_file.load(cx, shelf.repository.id, toml, shelf.now)


def make(name: str) -> Decision:
    return lambda cx, shelf: type_editing.define_type(cx, shelf.repository.id, TypeForm(name), shelf.now)


SEARCHABLE, UNSEARCHABLE = (PropertyForm("secret", searchable=each) for each in (True, False))


RACES: dict[str, tuple[Decision, Decision, type[Exception] | None, str]] = {
    "another kind": (add("well", "size", "integer"), add("mast", "size"), WrongValue, "of kind integer"),
    "another kind in a file": (
        change("well", PropertyForm("size", "date")),
        load(b"types.mast.properties.size = 'id'"),
        WrongValue,
        "of kind date",
    ),
    "another kind than in a file": (
        load(b"types.new.properties.size = 'id'"),
        change("mast", PropertyForm("size", "date")),
        WrongValue,
        "of kind id",
    ),
    "the same kind": (add("well", "size"), load(b"types.mast.properties.size = 'string'"), None, ""),
    "not searchable": (
        change("well", SEARCHABLE),
        add("mast", "secret", searchable=False),
        WrongValue,
        "is searchable",
    ),
    "searchable as well": (change("well", SEARCHABLE), change("tower", SEARCHABLE), None, ""),
    "searchable no more": (change("well", SEARCHABLE), change("tower", UNSEARCHABLE), InUse, "just now"),
    "the same name": (make("crane"), make("crane"), NameTaken, "'crane' already"),
    "the same name in a file": (make("crane"), load(b"[types.crane]"), None, ""),
}
"""The earlier change, the later one, and how the later one is refused, if it is."""


@pytest.mark.parametrize("race", RACES)
def test_a_change_of_types_is_checked_by_what_another_one_has_changed_meanwhile(types: Shelf, race: str) -> None:
    earlier, later, refusal, sentence = RACES[race]
    raised = one_after_the_other(types, earlier, later)
    assert isinstance(raised, refusal or type(None))
    assert sentence in str(raised)
    definitions = [each for kind in types.catalogue().types() for each in kind.properties]
    meanings = {(each.name, each.kind, each.searchable, each.awaiting_index) for each in definitions}
    assert len(meanings) == len({each.name for each in definitions}), "two types disagree about a property"


def test_there_are_no_more_types_and_properties_than_allowed(types: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_editing, "MOST_TYPES", 4)
    assert isinstance(one_after_the_other(types, make("crane"), make("bridge")), WrongValue)
    monkeypatch.setattr(type_editing, "MOST_DEFINITIONS", 4)
    raised = one_after_the_other(types, add("well", "depth", "integer"), add("mast", "colour"))
    assert isinstance(raised, WrongValue)


@pytest.mark.parametrize("finished_first", [True, False])
def test_a_property_that_is_added_while_a_reindexing_ends_does_not_wait_for_the_index(
    types: Shelf, finished_first: bool
) -> None:
    with types.database.begin() as cx:
        change("well", SEARCHABLE)(cx, types)
        (begun,) = reindexing.under_way(cx)
        done = reindexing.advance(cx, begun.id, types.now)
    assert done is not None
    both: list[Decision] = [lambda cx, _: reindexing.finish(cx, done), add("mast", "secret")]
    assert one_after_the_other(types, *(both if finished_first else reversed(both))) is None
    definitions = [each for kind in types.catalogue().types() for each in kind.properties if each.name == "secret"]
    assert [(each.searchable, each.awaiting_index) for each in definitions] == [(True, False)] * 3


def remove(name: str) -> Decision:
    return lambda cx, shelf: removal.remove_type(cx, shelf.repository, name)


CHANGES: dict[str, Decision] = {
    "changed": change("well", PropertyForm("depth", "integer")),
    "removed": remove("well"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_no_two_changes_of_types_wait_for_each_other(types: Shelf, how: str) -> None:
    """A file that first writes another type is loaded between the lock and the write of a change."""

    def load_file() -> None:
        with types.database.begin() as cx:
            types_file.load(cx, types.repository.id, b"[types.a]\n[types.well]\nlabel = 'Well'", types.now)

    with ThreadPoolExecutor(1) as threads:
        with types.database.begin() as cx:
            object_types.lock(cx, types.repository.id, "well")
            outcome = threads.submit(load_file)
            until(lambda: is_waiting(types) or outcome.done())
            CHANGES[how](cx, types)
        outcome.result(60)
