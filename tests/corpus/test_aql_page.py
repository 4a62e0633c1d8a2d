"""docs/aql.md shows queries that can be asked, and names what is not offered."""

import re
from pathlib import Path

import pytest

from muniment.repository.aql import as_xml, bind
from muniment.repository.aql.tree import QueryLimits
from muniment.repository.endpoints import parameters
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import NotOfferedYet

PAGE = (Path(__file__).parents[2] / "docs" / "aql.md").read_text("utf-8")
EXAMPLES = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
LATER = PAGE.partition("### Not offered yet")[2].partition("## The answer")[0]
OPERATORS = sorted(name for name in re.findall(r"`([A-Z_]+)`", LATER) if not name.startswith("E_"))
ELEMENTS = re.findall(r"`([a-z-]+)`", re.search(r"- elements (.*?);", LATER, re.DOTALL)[1])  # type: ignore[index]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_query_that_the_built_in_types_know(example: str) -> None:
    query = as_xml.read(example.encode(), RepositoryNames(), QueryLimits())
    assert bind.bind(query, Catalogue(()), {}) is not None


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_not_offered_is_said_to_be_so(operator: str) -> None:
    written = f'<property name="title" operator="{operator}">x</property>'
    inner = f"<expression-set><expressions>{written}</expressions></expression-set>"
    document = f'<search xmlns="urn:muniment:vocab">{inner}</search>'
    with pytest.raises(NotOfferedYet, match=operator):
        as_xml.read(document.encode(), RepositoryNames(), QueryLimits())


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_element_not_offered_is_said_to_be_so(element: str) -> None:
    part = f"<{element}/>"
    if element == "relative-date":
        part = f"<expression-set><expressions>{part}</expressions></expression-set>"
    with pytest.raises(NotOfferedYet, match=element):
        as_xml.read(f'<search xmlns="urn:muniment:vocab">{part}</search>'.encode(), RepositoryNames(), QueryLimits())


def test_the_page_names_all_that_is_not_offered_yet() -> None:
    assert set(OPERATORS) == as_xml._LATER_OPERATORS
    assert set(ELEMENTS) == as_xml._LATER_PARTS | as_xml._LATER_EXPRESSIONS
    assert all(f"`{name}`" in LATER for name in as_xml._LATER_FLAGS)
    of_the_template = {"collections", "facet", "locations", "sort", "timezone"}
    assert of_the_template <= set(parameters.SEARCH_REFUSED)
    assert all(f"`{name}`" in LATER for name in of_the_template)


def test_the_limits_are_settings() -> None:
    named = re.findall(r"`([a-z]+_[a-z_]+)`", PAGE.partition("## Limits")[2])
    assert len(named) >= 6
    assert [name for name in named if name not in RepositoryOptions.__struct_fields__] == []
