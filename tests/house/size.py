"""How large is the house: `python -m tests.house.size`, for the whole or for the paths it is given.

Lines of code are those with a token that is neither comment nor docstring. Tokens are those of Python without comments
and strings. Rooms are the packages that the import contracts name as layers of the house or of a half. Arrows are the
pairs of rooms with an import between them. Words are those of docstrings and of the public documents.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IDLE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_STRINGS = {tokenize.STRING, *(getattr(tokenize, name) for name in dir(tokenize) if name.startswith("FSTRING"))}


def size(text: str) -> tuple[int, int, int]:
    """Count the lines of code of a module, its tokens without strings, and the words of its docstrings."""
    described = list(_docstrings(ast.parse(text)))
    within = {line for first, last, _ in described for line in range(first, last + 1)}
    lines, tokens = set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _IDLE:
            lines.update(range(token.start[0], token.end[0] + 1))
            tokens += token.type not in _STRINGS
    return len(lines - within), tokens, sum(len(words.split()) for _, _, words in described)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """Give the first and the last line of each docstring, those below attributes too, and its text."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, statement.end_lineno or statement.lineno, value.value


def rooms() -> set[str]:
    """List the packages that are layers of the house, or of one of its halves."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    halves = ["muniment.directory", "muniment.repository"]
    named = {
        f"{container}.{part.strip(' ()')}"
        for contract in contracts
        for container in contract.get("containers", ())
        if container in ("muniment", *halves)
        for layer in contract["layers"]
        for part in layer.split("|")
    }
    packages = {name for name in named if (ROOT / "src" / name.replace(".", "/") / "__init__.py").is_file()}
    return packages - set(halves)


def arrows(of: set[str]) -> set[tuple[str, str]]:
    """List the pairs of rooms of which the first imports from the second."""
    found = set[tuple[str, str]]()
    for path in (ROOT / "src").rglob("*.py"):
        here = _room(".".join(path.relative_to(ROOT / "src").with_suffix("").parts), of)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found |= {(here, there) for name in names if (there := _room(name, of)) and here and there != here}
    return found


def _room(module: str, of: set[str]) -> str:
    """Name the innermost room that holds a module; empty for none."""
    while module and module not in of:
        module = module.rpartition(".")[0]
    return module


def main() -> None:
    """Print the sizes."""
    paths = [Path(one) for one in sys.argv[1:]] or [ROOT / "src"]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    sizes = [size(file.read_text()) for file in files]
    lines, tokens, words = (sum(each) for each in zip(*sizes, strict=True))
    print(f"{len(files):,} files, {lines:,} lines of code, {tokens:,} tokens, {words:,} words of docstrings")
    if not sys.argv[1:]:
        named = rooms()
        print(f"{len(named)} rooms, {len(arrows(named))} arrows")
        for path in (ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))):
            print(f"{len(path.read_text().split()):7,} words in {path.relative_to(ROOT)}")
        decisions = list(ROOT.glob("docs/decisions/*.md"))
        print(f"{sum(len(p.read_text().split()) for p in decisions):7,} words in {len(decisions)} decisions")


if __name__ == "__main__":
    main()
