"""What stands on what: the import contracts of pyproject.toml, and migrations that stand on nothing of ours."""

import ast
import subprocess
import sys

import pytest

from tests.house.sources import ROOT, modules


@pytest.mark.slow
def test_the_import_contracts_hold() -> None:
    checked = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


def test_a_migration_imports_nothing_of_ours() -> None:
    """Code of ours may change later; a released migration must do forever what it did when it was released."""
    migrations = [module for module in modules() if ".migrations.versions." in module.name]
    assert len(migrations) >= 2
    imported = {
        (module.room, name)
        for module in migrations
        for node in ast.walk(module.tree)
        for name in _imported_names(node)
        if name.split(".")[0] in ("", "muniment")
    }
    assert not imported


def _imported_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, level=level):
            return ["" if level else module or ""]
        case _:
            return []
