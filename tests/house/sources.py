"""The sources, read once for every rule."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muniment"


class Module(msgspec.Struct, frozen=True):
    """One module: its dotted name, its file, its text, its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The path below src/muniment, as ARCHITECTURE.md writes it."""
        return str(self.path.relative_to(SOURCE))


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the product."""
    return tuple(_module(path) for path in sorted(SOURCE.rglob("*.py")))


def public_classes(module: Module) -> Iterator[ast.ClassDef]:
    """The classes a module offers to others."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node


def _module(path: Path) -> Module:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text("utf-8")
    return Module(name, path, text, ast.parse(text))
