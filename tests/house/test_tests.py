"""A test that counts as passed has asserted something."""

import ast

from tests.house.sources import ROOT


def test_no_test_returns_early_because_of_its_database() -> None:
    """What applies to one database alone is marked `only`, and printed as deselected."""
    early = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith("test_")
        for node in function.body
        if isinstance(node, ast.If)
        and any(isinstance(leaving, ast.Return) for leaving in node.body)
        and ("dialect" in ast.unparse(node.test) or "sqlite" in ast.unparse(node.test))
    ]
    assert not early


def test_unit_tests_lie_where_their_rooms_lie() -> None:
    """A folder below ``tests/unit`` has the name of a room of ``src/muniment``."""
    unit, source = ROOT / "tests" / "unit", ROOT / "src" / "muniment"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert len(folders) > 10
    assert not [folder for folder in folders if not (source / folder).is_dir()]
