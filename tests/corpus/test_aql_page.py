"""docs/aql.md shows queries that can be asked, and names what is not offered."""

import re
from pathlib import Path

import pytest

from muniment.repository.aql import as_xml, bind
from muniment.repository.aql.tree import QueryLimits
from muniment.repository.objects.object_types import Catalogue
from muniment.repository.options import RepositoryNames, RepositoryOptions

PAGE = (Path(__file__).parents[2] / "docs" / "aql.md").read_text("utf-8")
EXAMPLES = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_query_that_the_built_in_types_know(example: str) -> None:
    query = as_xml.read(example.encode(), RepositoryNames(), QueryLimits())
    assert bind.bind(query, Catalogue(()), {}, 0) is not None


def test_the_limits_are_settings() -> None:
    named = re.findall(r"`([a-z]+_[a-z_]+)`", PAGE.partition("## Limits")[2])
    assert len(named) >= 6
    assert [name for name in named if name not in RepositoryOptions.__struct_fields__] == []
