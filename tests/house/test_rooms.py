"""Each room is signed, of a size one can read, and named for what it keeps."""

import ast
import re

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
ASYNC_ROOMS = ("web/", "directory/endpoints/", "directory/console/", "repository/endpoints/", "repository/callers.py")


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.room)
def test_a_module_is_signed(module: Module) -> None:
    sign = ast.get_docstring(module.tree)
    assert sign, f"{module.room} has no sign on its door"
    first = sign.splitlines()[0]
    assert first.endswith((".", "?", ":")) or sign.partition("\n\n")[0].rstrip().endswith((".", "?"))
    assert sign.partition("\n\n")[0].count(" and ") < 4, "a room that needs so many 'and' is two rooms"


@pytest.mark.parametrize(
    "module", [module for module in modules() if module.path.name == "__init__.py"], ids=lambda module: module.room
)
def test_an_init_holds_its_sign_and_nothing_else(module: Module) -> None:
    body = [node for node in module.tree.body[1:] if not _entry(module, node)]
    assert not body, f"{module.room} holds more than its sign"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.room)
def test_a_module_has_at_most_500_lines(module: Module) -> None:
    assert module.text.count("\n") <= 500


def test_no_room_is_called_by_what_anything_could_be() -> None:
    found = [path for path in SOURCE.rglob("*") if path.stem.strip("_").lower() in FORBIDDEN]
    assert not found


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.room)
def test_async_is_at_the_edge_only(module: Module) -> None:
    if module.room.startswith(ASYNC_ROOMS) or module.room == "app.py" or module.room.startswith("cli/"):
        return
    found = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    assert not found, f"{module.room} is async in lines {found}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.room)
def test_no_module_postpones_its_annotations(module: Module) -> None:
    assert "from __future__ import annotations" not in module.text


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.room)
def test_no_room_below_the_edge_reads_a_clock(module: Module) -> None:
    # Extraction's loop is a process of its own: nobody hands it a time.
    if module.room.startswith(("web/", "cli/")) or module.room in {"app.py", "repository/extraction/loop.py"}:
        return
    clocks = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}
    found = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and (ast.unparse(node.value).rpartition(".")[2], node.attr) in clocks
    ]
    assert not found, f"{module.room} reads a clock in lines {found}"


def test_every_path_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    half, missing = "", []
    for line in text.splitlines():
        if line.startswith("## `"):
            half = line.split("`")[1]
            missing += [] if _exists("", half) else [half]
        elif line.startswith("| `"):
            rooms = list(line.split("|")[1].split("`")[1::2])
            missing += [f"{half}{room}" for room in rooms if not _exists(half, room)]
            if rooms and rooms[0].endswith("/"):
                named = list(line.split("|")[2].split("`")[1::2])
                missing += [f"{half}{rooms[0]}{one}" for one in named if not _exists(half + rooms[0], one)]
    assert not missing


def test_every_room_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    words = {word.strip("/").removesuffix(".py") for word in re.findall(r"`([^`\n]+)`", text)}
    missing = []
    for half in ("directory", "repository", "web"):
        for room in sorted((SOURCE / half).iterdir()):
            name = room.stem
            if name.startswith("_") or name == "migrations" or (room.is_dir() and not any(room.glob("*.py"))):
                continue
            if name not in words:
                missing.append(f"{half}/{name}")
    assert not missing


def _exists(folder: str, name: str) -> bool:
    place = SOURCE / folder / name
    return place.exists() or place.with_suffix(".py").exists()


def _entry(module: Module, node: ast.stmt) -> bool:
    """The command line's entry point may stand in its package: pyproject.toml names it."""
    return module.room == "cli/__init__.py" and isinstance(node, ast.Import | ast.ImportFrom | ast.Assign)
