"""docs/aql.md shows queries that can be asked in both spellings, and a true table of operators."""

import re
from pathlib import Path

import msgspec
import pytest

from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.search.aql import bind
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.search.aql.values import Kind
from muniment.repository.store.objects.types.object_types import Catalogue

PAGE = (Path(__file__).parents[2] / "docs" / "aql.md").read_text("utf-8")
EXAMPLES = re.findall(r"```xml\n(.*?)```\n\n```json\n(.*?)```", PAGE, re.DOTALL)
NAMES, LIMITS = RepositoryNames(), QueryLimits()
KINDS: tuple[Kind, ...] = ("string", "id", "integer", "double", "date", "boolean")


def without_places(thing: object) -> object:
    """Return a tree as plain values, without the places in its document."""
    match thing:
        case dict():
            return {key: without_places(inner) for key, inner in thing.items() if not key.endswith("place")}
        case list() | tuple():
            return [without_places(inner) for inner in thing]
        case msgspec.Struct():
            return without_places(msgspec.to_builtins(thing))
        case _:
            return thing


def test_each_example_has_both_spellings() -> None:
    assert len(EXAMPLES) >= 8
    assert PAGE.count("```xml") == PAGE.count("```json") == len(EXAMPLES)


@pytest.mark.parametrize(("xml", "json"), EXAMPLES)
def test_an_example_means_the_same_in_both_spellings_and_fits_the_built_in_types(xml: str, json: str) -> None:
    queries = [as_xml.read(xml.encode(), NAMES, LIMITS), as_json.read(json.encode(), NAMES, LIMITS)]
    assert without_places(queries[0]) == without_places(queries[1])
    for query in queries:
        assert bind.bind(query, Catalogue(()), {}, 0) is not None


@pytest.mark.parametrize(("xml", "json"), EXAMPLES)
def test_an_example_written_in_the_other_spelling_means_the_same(xml: str, json: str) -> None:
    query = without_places(as_xml.read(xml.encode(), NAMES, LIMITS))
    written = as_json.write(as_xml.elements(xml.encode(), LIMITS)).encode()
    back = as_xml.write(as_json.elements(json.encode(), NAMES, LIMITS)).encode()
    assert without_places(as_json.read(written, NAMES, LIMITS)) == query
    assert without_places(as_xml.read(back, NAMES, LIMITS)) == query


def test_the_examples_show_every_construct() -> None:
    shown = {name for xml, _ in EXAMPLES for name in re.findall(r"<([a-z-]+)", xml)}
    assert shown >= {"fulltext", "property", "property-list", "property-range", "relative-date", "expression-set"}
    assert shown >= {"types", "columns", "sorts", "path-location", "id-location", "collections", "repositories"}


def test_the_table_of_operators_is_that_of_bind() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|((?: (?:yes|no) \|){6})$", PAGE, re.MULTILINE)
    table = {name: [cell.strip() == "yes" for cell in cells.split("|")[:-1]] for name, cells in rows}
    operators = {name for fitting in bind.FITTING.values() for name in fitting}
    assert table == {name: [name in bind.FITTING[kind] for kind in KINDS] for name in operators}


def test_the_limits_are_settings() -> None:
    named = re.findall(r"`([a-z]+_[a-z_]+)`", PAGE.partition("## Limits")[2])
    assert len(named) >= 6
    assert [name for name in named if name not in RepositoryOptions.__struct_fields__] == []
