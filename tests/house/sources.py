"""The sources, read once for every rule."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muniment"


EDGE = (
    "app.py",
    "integration/directory_callers.py",
    "front/*",
    "web/*",
    "database/common_transaction.py",
    "database/fair_queue.py",
    "database/holds.py",
    "database/transactions.py",
    "*/api/*",
    "*/console/*",
    "repository/page/*",
    "server/acceptor.py",
    "server/listener.py",
    "server/protocol.py",
    "server/unread.py",
)
"""Where requests arrive and where we send our own: these rooms alone are asynchronous and speak HTTP."""


@dataclass(frozen=True)
class Module:
    """One module: its dotted name, its file, its text."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, parsed when it is first asked for."""
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        """The path below src/muniment, as ARCHITECTURE.md writes it."""
        return str(self.path.relative_to(SOURCE))

    @property
    def at_edge(self) -> bool:
        """Whether it is one of the rooms of the edge."""
        return any(fnmatch(self.room, pattern) for pattern in EDGE)


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the product."""
    return tuple(_module(path) for path in sorted(SOURCE.rglob("*.py")))


@cache
def trees_of_tests() -> dict[Path, ast.Module]:
    """The syntax tree of every Python file below tests."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "tests").rglob("*.py"))}


def public_classes(module: Module) -> Iterator[ast.ClassDef]:
    """The classes a module offers to others."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node


def _module(path: Path) -> Module:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text("utf-8")
    return Module(name, path, text)
