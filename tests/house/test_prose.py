"""Docs and docstrings cite only what a reader can open: a file of this repository, a clause, a decision."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.house.sources import ROOT, modules

INTERFACE = (ROOT / "docs" / "interface.md").read_text("utf-8")

ISSUE = re.compile(r"\bissues? [0-9]+\b|\bthe issue's step\b")
FAILURE = re.compile(r"\bfailures [A-Z][0-9]+\b")
CLAUSE = re.compile(
    r"\b(given|ours) ([0-9]+(?:\.[0-9]+)?)(?:-([0-9]+(?:\.[0-9]+)?))?((?:, [0-9]+\.[0-9]+)*)", re.IGNORECASE
)
PAGE = re.compile(r"(?<![\w*./-])((?:[\w.-]+/)*[\w-]+\.md)\b")
DECISIONS = re.compile(r"\bdecisions?(?: |/)([0-9]{4}(?:, [0-9]{4})*)\b")


@cache
def prose() -> tuple[tuple[str, str], ...]:
    """Every page of the docs and every docstring, comment and message of the sources, with its place."""
    return tuple(_prose())


def _prose() -> Iterator[tuple[str, str]]:
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            yield f"{page.relative_to(ROOT)}:{number}", line
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"src/muniment/{module.room}:{node.lineno}", " ".join(node.value.split())
        for number, line in enumerate(module.text.splitlines(), 1):
            if "#" in line:
                yield f"src/muniment/{module.room}:{number}", line.partition("#")[2]


def clauses() -> set[str]:
    """The clauses that docs/interface.md lists: its numbered sections, and the first column of its tables."""
    listed = {f"given {number}" for number in re.findall(r"^## ([0-9]+) ", INTERFACE, re.MULTILINE)}
    for row in re.findall(r"^\| ([0-9]+\.[0-9]+(?:, [0-9]+\.[0-9]+)*)\b[^|]*\|", INTERFACE, re.MULTILINE):
        listed |= {f"given {number}" for number in row.split(", ")}
    return listed | {f"ours {number}" for number in re.findall(r"^### Ours ([0-9]+) ", INTERFACE, re.MULTILINE)}


def recorded() -> set[str]:
    """The numbers of all decision records."""
    return {page.name[:4] for page in (ROOT / "docs" / "decisions").glob("*.md")}


def cited(text: str) -> set[str]:
    """The numbers of the decisions that a text cites."""
    return {number for listed in DECISIONS.findall(text) for number in listed.split(", ")}


@pytest.mark.slow
def test_nothing_cites_an_issue_or_a_list_that_is_not_here() -> None:
    found = [f"{place}: {match[0]}" for place, text in prose() for match in ISSUE.finditer(text)]
    sources = [(place, text) for place, text in prose() if place.startswith("src/")]
    found += [f"{place}: {match[0]}" for place, text in sources for match in FAILURE.finditer(text)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_page_that_is_cited_is_in_the_repository() -> None:
    found = []
    for place, text in prose():
        here = (ROOT / place.partition(":")[0]).parent
        for match in PAGE.finditer(text):
            page = match[1]
            beside = (ROOT / page, here / page, ROOT / "docs" / page if place.startswith("src/") else ROOT / page)
            if not any(path.is_file() for path in beside):
                found.append(f"{place}: {page}")
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_clause_that_is_cited_is_in_the_interface() -> None:
    listed = clauses()
    assert {"given 2.6", "given 4.4", "given 7", "ours 1"} <= listed
    found = []
    for place, text in prose():
        for match in CLAUSE.finditer(text):
            numbers = [match[2], *([match[3]] if match[3] else []), *re.findall(r"[0-9]+\.[0-9]+", match[4])]
            found += [f"{place}: {match[0]}" for number in numbers if f"{match[1].lower()} {number}" not in listed]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_decision_that_is_cited_is_recorded() -> None:
    known = recorded()
    found = [f"{place}: {number}" for place, text in prose() for number in cited(text) - known]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_decision_is_cited_where_it_is_kept() -> None:
    """A record that no module, and no page about how the house is built, leads to decides nothing any more."""
    leading = [text for place, text in prose() if place.startswith(("src/", "ARCHITECTURE.md", "CONTRIBUTING.md"))]
    assert not recorded().difference(*map(cited, leading))


def test_an_offender_is_found() -> None:
    assert ISSUE.search("Source: issue 3, step 2.")
    assert FAILURE.search("failures A3")
    assert PAGE.findall("Source: repository.md 8.7; docs/aql.md.") == ["repository.md", "docs/aql.md"]
    assert [match[4] for match in CLAUSE.finditer("given 2.8-2.10, 4.6; docs")] == [", 4.6"]
