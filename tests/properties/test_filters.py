"""A list gives what the filter, read by a plain evaluator over the same objects, leaves; in the order of its sort."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.clock import Instant, read_timestamp
from muniment.repository.folding import fold
from muniment.repository.store import repositories
from muniment.repository.store.filters import reader
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.tree import AllOf, AnyOf, Comparison, Filter, Not, Selection, SortKey
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Principals
from tests.conftest import Fresh
from tests.properties.lengths import examples
from tests.properties.shelves import DOUBLES, INTEGERS, SLOW, STRINGS, WORDS

MARTA = Principals("Märta@demo")
ADMIN = Principals("root@demo", administrator=True)
NOW: Instant = read_timestamp("2026-02-03T10:00:00.123456Z")

TEXTS = sorted({*STRINGS, *WORDS, "a'b", 'a"b', "%", "a_c", "x" * 1001, "É" * 1200, "a\nb", "\u212a", "ẞ"} - {""})
DATES = ["2024-01-31", "2024-01-31T12:30:00.001+01:00", "0001-01-01", "9999-12-31T23:59:59.999Z"]
KINDS = {"colour": "string", "shade": "string", "size": "integer", "sizes": "integer", "weight": "double"}
KINDS |= {"weights": "double", "draft": "boolean", "due": "date", "dues": "date", "title": "string"}
KINDS |= {"object_name": "string", "owner_name": "string", "r_modify_date": "date", "r_full_content_size": "integer"}
SINGLE = ["title", "shade", "size", "weight", "draft", "due", "object_name", "owner_name", "r_modify_date"]
CUSTOM = {
    "colour": PropertyDefinition("colour", "string", repeating=True),
    "shade": PropertyDefinition("shade", "string"),
    "size": PropertyDefinition("size", "integer"),
    "sizes": PropertyDefinition("sizes", "integer", repeating=True),
    "weight": PropertyDefinition("weight", "double"),
    "weights": PropertyDefinition("weights", "double", repeating=True),
    "draft": PropertyDefinition("draft", "boolean"),
    "due": PropertyDefinition("due", "date"),
    "dues": PropertyDefinition("dues", "date", repeating=True),
}
VALUES: dict[str, list[Any]] = {
    "string": TEXTS,
    "integer": INTEGERS,
    "double": DOUBLES,
    "boolean": [True, False],
    "date": DATES,
}


class Drawer:
    """A repository with a type of every kind, beside one that has the same names with other kinds."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.begin() as cx:
            other = repositories.add(cx, "other", "", "", NOW)
            self.repository = repositories.add(cx, "demo", "", "", NOW)
            for one in (other, self.repository):
                acls.initialise(cx, one.id, NOW)
            properties = tuple(CUSTOM.values())
            type_editing.add_type(cx, self.repository.id, ObjectType("note", "document", properties), NOW)
            swapped = tuple(PropertyDefinition(name, "string", repeating=True) for name in CUSTOM)
            type_editing.add_type(cx, other.id, ObjectType("note", "document", swapped), NOW)
            self.view = RepositoryView.read(cx, self.repository, MARTA)
            self.catalogue = self.view.catalogue
            given: dict[str, Any] = {"object_name": "x", **{name: ["no number", "é"] for name in CUSTOM}}
            view = RepositoryView.read(cx, other, MARTA)
            creation.create_all(cx, view, [NewObject("note", given, None, None, None)], NOW)

    def fill(self, rows: list[dict[str, Any]]) -> tuple[Folder, list[StoredObject]]:
        """Put objects into a cabinet of their own."""
        with self.database.begin() as cx:
            new = NewObject("cabinet", {"object_name": "c"}, None, None, None)
            (cabinet,) = creation.create_all(cx, self.view, [new], NOW)
            wanted = [NewObject("note", row, cabinet.id, None, None) for row in rows]
            made = creation.create_all(cx, self.view, wanted, NOW) if wanted else []
        return Folder(self.view, cabinet.id, "sysobject"), made

    def listed(self, folder: Folder, selection: Selection, size: int = 1000) -> list[str]:
        """Read the whole list, page by page."""
        found: list[str] = []
        stretch = Stretch(None, 0, size)
        with self.database.read() as cx:
            while page := lists.object_page(cx, folder, stretch, selection):
                found += [one.stored.id for one in page]
                stretch = Stretch(page[-1].place, 0, size)
            assert lists.count_objects(cx, folder, selection) == len(found)
        return found

    def values(self, stored: StoredObject) -> dict[str, list[Any]]:
        """The values of an object, as its representation has them."""
        return {**inventory.values(stored, self.catalogue, "")}


@pytest.fixture(scope="module")
def drawer(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawer]:
    url = engine.fresh("repository")
    database = Database(url)
    yield Drawer(database)
    database.close()
    engine.drop(url)


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    def some(name: str) -> st.SearchStrategy[Any]:
        value = st.sampled_from(VALUES[KINDS[name]])
        repeating = name in CUSTOM and CUSTOM[name].repeating
        return st.lists(value, max_size=3) if repeating else st.one_of(st.none(), value)

    names = st.sampled_from([text for text in TEXTS if text.strip() and len(text) <= 255])
    optional = {name: some(name) for name in (*CUSTOM, "title")}
    return st.lists(st.fixed_dictionaries({"object_name": names, **optional}), max_size=6)


def comparisons() -> st.SearchStrategy[str]:
    @st.composite
    def written(draw: st.DrawFn) -> str:
        name = draw(st.sampled_from(sorted(KINDS)))
        kind = KINDS[name]
        value = draw(st.sampled_from(VALUES[kind]))
        if kind == "string":
            text = draw(st.sampled_from([value, value[:2], value.swapcase(), ""]))
            quoted = "'" + text.replace("'", "''") + "'"
            form = draw(st.sampled_from(["starts-with({0},{1})", "contains({0}, {1})", "{0} {2} {1}"]))
            return form.format(name, quoted, draw(st.sampled_from(OPERATORS)))
        if kind == "date":
            return f'{name} {draw(st.sampled_from(OPERATORS))} date("{value}")'
        if kind == "boolean":
            return f"{name} {draw(st.sampled_from(['=', '!=']))} {str(value).lower()}"
        return f"{name}{draw(st.sampled_from(OPERATORS))}{value!r}"

    return written()


OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


def filters() -> st.SearchStrategy[str]:
    return st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("{} or {}".format, inner, inner),
            st.builds("not({})".format, inner),
        ),
        max_leaves=4,
    )


def sorts() -> st.SearchStrategy[str]:
    key = st.builds(
        "{}{}".format, st.sampled_from(SINGLE), st.sampled_from(["", " ASC", " desc", " no-case", " DESC no-case"])
    )
    return st.lists(key, max_size=3, unique_by=lambda text: text.split()[0]).map(",".join)


def meets(wanted: Filter, values: dict[str, list[Any]]) -> bool:
    """The oracle: evaluate a filter over an object's values."""
    match wanted:
        case AllOf(parts):
            return all(meets(part, values) for part in parts)
        case AnyOf(parts):
            return any(meets(part, values) for part in parts)
        case Not(part):
            return not meets(part, values)
        case Comparison():
            return any(_compares(wanted, value) for value in values.get(wanted.name, []))
    raise AssertionError(wanted)  # what only DQL writes


def _compares(wanted: Comparison, value: Any) -> bool:
    kind, text = KINDS[wanted.name], wanted.literal.text
    sought: Any = fold(text)
    if kind == "string":
        value = fold(value)
    elif kind == "date":
        moment = read_timestamp(text)
        sought = moment - moment % 1000
    elif kind == "boolean":
        sought = text == "true"
    else:
        sought = int(text) if kind == "integer" else float(text)
    outcomes = {"=": value == sought, "!=": value != sought, "<": value < sought, "<=": value <= sought}
    outcomes |= {">": value > sought, ">=": value >= sought}
    if wanted.operator == "starts-with":
        return bool(value.startswith(sought))
    return sought in value if wanted.operator == "contains" else bool(outcomes[wanted.operator])


def in_order(made: list[StoredObject], values: dict[str, dict[str, list[Any]]], sort: tuple[SortKey, ...]) -> list[str]:
    """The oracle: sort by each key in turn, the last one first; what has no value comes last."""
    ordered = sorted(made, key=lambda one: one.seq) if sort else sorted(made, key=lambda one: (one.name, one.seq))
    for key in reversed(sort):

        def place(one: StoredObject, key: SortKey = key) -> Any:
            value = values[one.id][key.name][0]
            if isinstance(value, str):
                return (fold(value) if key.folded else value)[:255]
            return value

        present = [one for one in ordered if values[one.id].get(key.name)]
        absent = [one for one in ordered if not values[one.id].get(key.name)]
        ordered = [*sorted(present, key=place), *absent]
        if key.descending:
            # Stable in descending order, too: those of one value stay in their order.
            by_value: dict[Any, list[StoredObject]] = {}
            for one in present:
                by_value.setdefault(place(one), []).append(one)
            ordered = [one for value in sorted(by_value, reverse=True) for one in by_value[value]] + absent
    return [one.id for one in ordered]


@given(rows(), st.lists(st.tuples(filters(), sorts(), st.integers(1, 4)), min_size=10, max_size=10))
@settings(SLOW, max_examples=examples(4, 400))
@example([{"object_name": "Straße", "title": "É" * 1200}], [("title = '" + "é" * 1000 + "'", "title no-case", 1)])
@example([{"object_name": "a", "weight": 0.1}], [("weight = 0.1", "weight desc", 1), ("not(weight=0.1)", "", 1)])
def test_a_list_gives_what_the_oracle_gives(
    drawer: Drawer, rows: list[dict[str, Any]], asked: list[tuple[str, str, int]]
) -> None:
    folder, made = drawer.fill(rows)
    values = {one.id: drawer.values(one) for one in made}
    for filter_text, sort_text, size in asked:
        selection = reader.read(filter_text, sort_text, str)
        assert selection.filter is not None
        left = [one for one in made if meets(selection.filter, values[one.id])]
        expected = in_order(left, values, selection.sort)
        assert drawer.listed(folder, selection, size) == expected, (filter_text, sort_text)


def test_folded_forms_follow_every_write(fresh: Fresh) -> None:
    database = Database(fresh("repository"))
    drawer = Drawer(database)
    folder, (made,) = drawer.fill([{"object_name": "Ärger"}])
    with database.begin() as cx:
        given: dict[str, Any] = {"object_name": "plain", "title": "Öl"}
        objects.change(cx, drawer.view, made.id, given, NOW + 1)
    assert drawer.listed(folder, reader.read("contains(object_name,'ärger')", "", str)) == []
    assert drawer.listed(folder, reader.read("object_name='PLAIN' and title='öl'", "", str)) == [made.id]
    assert drawer.listed(folder, reader.read("owner_name='mÄrta@DEMO'", "", str)) == [made.id]
    administrator = Folder(RepositoryView(drawer.repository, drawer.catalogue, ADMIN), folder.folder_id, "sysobject")
    with database.begin() as cx:
        assert objects.give(cx, drawer.repository.id, [made.id], "Jörg@demo", "jörg@demo", ADMIN, NOW + 2) == 1
    assert drawer.listed(administrator, reader.read("owner_name='JÖRG@demo' and title='öl'", "", str)) == [made.id]
    assert drawer.listed(administrator, reader.read("starts-with(r_modifier, 'märta')", "", str)) == []
    with database.begin() as cx:
        given = {"title": "oil", "owner_name": "jon@demo"}
        objects.change(cx, RepositoryView(drawer.repository, drawer.catalogue, ADMIN), made.id, given, NOW + 3)
    assert drawer.listed(administrator, reader.read("owner_name='JON@demo' and title='OIL'", "", str)) == [made.id]
    database.close()
