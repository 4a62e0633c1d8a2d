"""Each room is signed, of a size one can read, and named for what it keeps."""

import ast
import re

import grimp
import pytest

from tests.house.sources import ROOT, SOURCE, Module, modules

FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "service", "services"} | {
    "handler",
    "handlers",
    "misc",
    "base",
    "core",
    "internal",
    "shared",
}
CLOCKED_ROOMS = (
    "app.py",
    "cli/",
    "ground/clock.py",
    "installation/data_folder.py",
    "server/",
    "installation/backends.py",
    "repository/store/extraction/extractor.py",
)
"""Whoever hands the time to others; the extractor is a process of its own."""


def test_every_module_is_signed() -> None:
    unsigned = []
    for module in modules():
        first, _, rest = (ast.get_docstring(module.tree) or "").partition("\n\n")
        if not first.endswith((".", "?")) and not rest:
            unsigned.append(module.room)
    assert not unsigned, "a room has a sign on its door, of whole sentences"


def test_an_init_holds_its_sign_and_nothing_else() -> None:
    inits = [module for module in modules() if module.path.name == "__init__.py"]
    assert len(inits) > 5
    assert [module.room for module in inits if any(not _entry(module, node) for node in module.tree.body[1:])] == []


def test_no_module_has_over_500_lines() -> None:
    assert [module.room for module in modules() if module.text.count("\n") > 500] == []


def test_no_room_is_called_by_what_anything_could_be() -> None:
    assert [path for path in SOURCE.rglob("*") if path.stem.strip("_").lower() in FORBIDDEN] == []


@pytest.mark.slow
def test_async_is_at_the_edge_only() -> None:
    asynchronous = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [
        f"{module.room}:{node.lineno}"
        for module in modules()
        if not module.at_edge
        for node in ast.walk(module.tree)
        if isinstance(node, asynchronous)
    ]
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("library", ["starlette", "uvicorn", "httpx"])
def test_only_the_edge_knows_http(library: str) -> None:
    """The command line is a client, too. Rooms that stand on `installation` put the edge together; any room below it
    may not even import a module that knows HTTP, however far away."""
    graph = grimp.build_graph("muniment", include_external_packages=True, cache_dir=None)
    edge = {module.name for module in modules() if module.at_edge}
    clients = {module.name for module in modules() if module.room.startswith("cli/")}
    direct = graph.find_modules_that_directly_import(library)
    assert direct, f"nobody imports {library}"
    assert not direct - edge - clients
    above = {"muniment.installation.layout"} | graph.find_downstream_modules("muniment.installation.layout")
    knowing = graph.find_downstream_modules(library) - edge - above
    assert not [graph.find_shortest_chain(importer, library) for importer in sorted(knowing)]


def test_no_module_postpones_its_annotations() -> None:
    assert [module.room for module in modules() if "from __future__ import annotations" in module.text] == []


@pytest.mark.slow
def test_no_room_below_the_edge_reads_a_clock() -> None:
    clocks = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}
    clocks |= {("clock", "now")}
    found = [
        f"{module.room}:{node.lineno}"
        for module in modules()
        if not module.room.startswith(CLOCKED_ROOMS)
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Attribute) and (ast.unparse(node.value).rpartition(".")[2], node.attr) in clocks)
        or (isinstance(node, ast.ImportFrom) and node.module == "muniment.ground.clock" and "now" in _names(node))
    ]
    assert not found


@pytest.mark.slow
def test_an_endpoint_decides_through_the_caller_alone() -> None:
    """Principals that an endpoint was told earlier would outlive the right (decision 0018)."""
    entering = {f"repository/api/context.py:{name}" for name in ("_look_up", "enter_all")}
    told_everybody = {"discovery.py:list_repositories", "protected_resource.py:describe"}
    asked_of_nobody = {*(f"repository/api/endpoints/{each}" for each in told_everybody), *entering}
    found = {
        f"{module.room}:{function.name}"
        for module in modules()
        if module.room.startswith("repository/api/")
        for function in ast.walk(module.tree)
        if isinstance(function, ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {f"context.transactions.{way}" for way in ("read", "read_long", "write")}
    }
    assert found == asked_of_nobody, "all others decide through the caller, who says who they are when it counts"
    takes_principals = [
        f"{module.room}:{function.name}"
        for module in modules()
        if module.room.startswith("repository/api/")
        for function in ast.walk(module.tree)
        if isinstance(function, ast.AsyncFunctionDef)
        for argument in function.args.args
        if argument.annotation is not None and ast.unparse(argument.annotation).startswith("Principals")
    ]
    assert not takes_principals, "only a decision, which waits for nothing, is told who the caller is"


def test_every_path_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*/?(?:\.py)?)`", _map()))
    paths = {path.removesuffix(".py").rstrip("/") for path in named if "/" in path}
    places = {str(path.relative_to(SOURCE).with_suffix("")) for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*/")]}
    assert not {path for path in paths if not (ROOT / path).exists() and path not in places}


def test_every_room_is_in_the_architecture() -> None:
    rows = set(re.findall(r"^\| `([a-z_/]+)/` \|", _map(), re.MULTILINE))
    outer = {"directory", "repository"}
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()} - outer
    rooms |= {f"{half}/{path.name}" for half in outer for path in (SOURCE / half).iterdir() if path.is_dir()}
    assert rows == {room for room in rooms if "__" not in room and "migrations" not in room}


def test_the_map_can_be_read_in_one_go() -> None:
    assert len(_map().split()) <= 2500


def _map() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def _names(node: ast.ImportFrom) -> set[str]:
    return {alias.name for alias in node.names}


def _entry(module: Module, node: ast.stmt) -> bool:
    """The command line's entry point may stand in its package: pyproject.toml names it."""
    return module.room == "cli/__init__.py" and isinstance(node, ast.Import | ast.ImportFrom | ast.Assign)
