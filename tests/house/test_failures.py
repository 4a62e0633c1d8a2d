"""The table of known failures in docs/campaign.md names tests that exist and name the failure."""

import ast
import re
from functools import cache

import pytest

from tests.house.sources import ROOT

_LINE = re.compile(r"^\| ([AB][0-9]+) \|[^|]*\|(.*)\|$", re.MULTILINE)


@cache
def _tests() -> dict[str, str]:
    """Every test by its name, with its docstring where that names a failure."""
    docstrings: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        docstrings |= dict.fromkeys(re.findall(r"^ *def (test_\w+)", text, re.MULTILINE), "")
        if "failures " in text:  # to parse every file takes seconds
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    docstrings[node.name] = ast.get_docstring(node) or ""
    return docstrings


@pytest.mark.slow
def test_every_known_failure_has_a_test_that_names_it_or_a_reason() -> None:
    lines = dict(_LINE.findall((ROOT / "docs" / "campaign.md").read_text("utf-8")))
    assert lines.keys() == {f"A{n}" for n in range(1, 31)} | {f"B{n}" for n in range(1, 21)}
    tests = _tests()
    for failure, said in lines.items():
        named = re.findall(r"`(test_\w+)`", said)
        assert named or " - " in said, f"{failure}: neither a test nor a reason"
        for name in named:
            assert name in tests, f"{failure}: there is no {name}"
            assert re.search(rf"failures {failure}\b", tests[name]), f"{name} does not name failures {failure}"


@pytest.mark.slow
def test_every_test_that_the_campaigns_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "campaign.md").read_text("utf-8")))
    assert len(named) > 50
    assert not named - _tests().keys()
