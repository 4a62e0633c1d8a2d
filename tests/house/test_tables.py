"""Each table has one owner, and the migrations build what the owners declare."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from muniment.database import connections, schema
from muniment.database.connections import Database, Half
from tests.house.sources import Module, modules

_SQL = re.compile(r"(?:FROM|JOIN|INTO|UPDATE)\s+")
_PRODUCT = tuple(module for module in modules() if "migrations" not in module.room)


def _declared() -> dict[str, tuple[Module, str]]:
    """Each table with the module that declares it and the name it has there."""
    found: dict[str, tuple[Module, str]] = {}
    for module in _PRODUCT:
        for node in module.tree.body if "Table(" in module.text else ():
            if (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) in {"sa.Table", "Table"}
            ):
                name = node.value.args[0]
                assert isinstance(name, ast.Constant)
                assert name.value not in found, f"{name.value} is declared twice"
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                found[str(name.value)] = (module, ast.unparse(target))
    return found


TABLES = _declared()


def test_the_tables_are_those_the_metadata_knows() -> None:
    _import_all()
    assert set(TABLES) == set(connections.directory_tables.tables) | set(connections.repository_tables.tables)


class _Names(NamedTuple):
    """How a module may name tables: what it imports, whose columns it reads, and its texts that may be SQL."""

    imports: frozenset[tuple[str | None, str]]
    columns: frozenset[str]
    sql: str


@cache
def _names(module: Module) -> _Names:
    imports, columns, texts = set(), set(), []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            imports |= {(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "c":
            columns.add(ast.unparse(node.value.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.search(node.value):
            texts.append(node.value)
    return _Names(frozenset(imports), frozenset(columns), "\0".join(texts))


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_table_is_named_in_its_own_room_only(table: str) -> None:
    owner, variable = TABLES[table]
    short = owner.name.rpartition(".")[2]
    for module in _PRODUCT:
        if module is owner or (short == "table" and module.path.is_relative_to(owner.path.parent)):
            continue  # a noun that fills a room of several modules keeps its table in ``table``
        names = _names(module)
        assert (owner.name, variable) not in names.imports, f"{module.room} imports the table {table}"
        assert f"{short}.{variable}" not in names.columns, f"{module.room} reads the table {table}"
        assert not re.search(rf"{_SQL.pattern}{table}\b", names.sql), f"{module.room} names the table {table}"


@pytest.mark.slow
@pytest.mark.parametrize("half", ["directory", "repository"])
def test_migrations_build_what_is_declared(half: Half, directory_db: Database, repository_db: Database) -> None:
    _import_all()
    database, declared = {
        "directory": (directory_db, connections.directory_tables),
        "repository": (repository_db, connections.repository_tables),
    }[half]
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": False,
                "include_object": lambda _o, name, kind, _r, _c: kind != "table" or name != schema.version_table(half),
            },
        )
        difference = compare_metadata(context, declared)
        assert not difference
        found = sa.inspect(connection)
        for table in declared.sorted_tables:
            checks = {tuple(sorted(fk["constrained_columns"])) for fk in found.get_foreign_keys(table.name)}
            assert checks == {tuple(sorted(fk.column_keys)) for fk in table.foreign_key_constraints}, table.name
            key = found.get_pk_constraint(table.name)["constrained_columns"]
            assert key == [column.name for column in table.primary_key], table.name


@pytest.mark.parametrize("half", ["directory", "repository"])
def test_a_migrated_database_is_at_this_releases_schema(
    half: Half, directory_db: Database, repository_db: Database
) -> None:
    schema.check_schema(directory_db if half == "directory" else repository_db, half)


@pytest.mark.slow
def test_the_command_that_removes_a_repository_knows_every_table() -> None:
    """In a process of its own, which has loaded nothing else."""
    program = (
        "from muniment.cli.repository import repositories; from muniment.database import connections; "
        "repositories.declare_tables(); print(*connections.repository_tables.tables)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    _import_all()
    assert set(printed.split()) == set(connections.repository_tables.tables)


def _import_all() -> None:
    for module in _PRODUCT:
        importlib.import_module(module.name)
