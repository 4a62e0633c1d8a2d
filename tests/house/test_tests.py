"""A test that counts as passed has asserted something, waited for no clock, and lies where its room lies."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import runs
from tests.house.sources import ROOT, trees_of_tests

TESTS = ROOT / "tests"

SLEEPS = {
    "campaign/raw.py": "the pieces of a head come one after the other",
    "campaign/test_directory_attacks.py": "honest callers obey Retry-After",
    "campaign/test_pack_kills.py": "chance decides when a process is killed",
    "campaign/test_locked_database.py": "reads go on at a pace while the database is locked",
    "campaign/test_purge.py": "the purge rests between its bites, as it does in the product",
    "contract/test_grants_races.py": "chance decides who comes first",
    "contract/test_ticket_races.py": "chance decides who comes first",
    "contract/test_guard_races.py": "time passes between a question and its answer, and one comes later than the other",
    "contract/test_content_in_s3.py": "a process forbids removals until it is killed",
    "contract/test_unread_answers.py": "a caller pauses for longer than a connection without requests is kept",
    "e2e/test_content_in_s3.py": "chance decides when a process is killed",
    "e2e/test_kills.py": "chance decides when a process is killed",
    "e2e/test_serve.py": "a caller goes on with a body for long, a byte at a time",
    "unit/cli/test_index_pace.py": "an index is slow",
    "unit/repository/api/test_objects.py": "a disk is slow",
    "unit/repository/planted_worker.py": "a library hangs",
    "unit/database/test_transactions.py": "callers come one after the other",
    "unit/web/requests/test_transport.py": "bodies come slowly, or a caller leaves late",
    "waiting.py": "how all others wait",
}
"""Where time itself is what a test gives, and what for. Everybody else waits for an event, or with tests/waiting.py."""


def _tests() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in trees_of_tests().items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith("test_"):
                yield path, function


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What a function holds, without the functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


@pytest.mark.slow
def test_no_test_returns_early() -> None:
    """What applies to one database alone is marked `only`, and printed as deselected."""
    early = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, function in _tests()
        for node in _own(function)
        if isinstance(node, ast.Return)
    ]
    assert not early


@pytest.mark.slow
def test_tests_wait_for_events_and_sleep_only_where_time_is_what_they_give() -> None:
    sleeping = {
        str(path.relative_to(TESTS))
        for path, tree in trees_of_tests().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep"}
        and ast.unparse(node.args[0]) != "0"
    }
    assert sleeping == SLEEPS.keys()


def test_each_module_is_in_a_part_of_the_campaign_and_the_docs_list_the_parts() -> None:
    used = {runs.part_of(path) for path in TESTS.rglob("test_*.py")}
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "campaign.md").read_text("utf-8"), re.MULTILINE)
    assert listed == [*runs.PARTS]
    assert used == set(listed)


@pytest.mark.parametrize("long", runs.LONG)
def test_each_test_that_is_listed_as_long_is_there(long: str) -> None:
    path, _, name = long.partition("::")
    assert f"def {name}(" in (TESTS / path).read_text("utf-8")


def test_unit_tests_lie_where_their_rooms_lie() -> None:
    """A folder below ``tests/unit`` has the name of a room of ``src/muniment``, and its tests name that room."""
    unit, strangers = TESTS / "unit", []
    for path in sorted(unit.rglob("test_*.py")):
        room = ".".join(path.parent.relative_to(unit).parts)
        text = path.read_text("utf-8")
        parent, _, name = f"muniment.{room}".strip(".").rpartition(".")
        known = (f"muniment.{room}".strip("."), f"from {parent} import {name}", f"from tests.unit.{room}")
        if not (unit.parents[1] / "src" / "muniment" / Path(*room.split("."))).is_dir():
            strangers.append(f"{path.relative_to(ROOT)}: there is no such room")
        elif not any(way in text for way in known):
            strangers.append(f"{path.relative_to(ROOT)}: it does not name its room")
    assert not strangers
