"""One word, one meaning: docs/vocabulary.md holds every public name, and no word does another's work."""

import ast
import os
import re

from tests.house.sources import ROOT, modules, public_classes

VOCABULARY = (ROOT / "docs" / "vocabulary.md").read_text("utf-8")

FORBIDDEN = re.compile(r"Manager|Service|Handler|Helper|Util|Impl$|Abstract|Factory")


def test_every_public_class_is_in_the_vocabulary() -> None:
    rows = [
        f"| `{node.name}` | `{module.room}` | {_first_sentence(node)} |"
        for module in modules()
        for node in sorted(public_classes(module), key=lambda node: node.name)
    ]
    table = "\n".join(["| Class | Room | What it is |", "|---|---|---|", *rows])
    pattern = re.compile(r"(<!-- classes: begin -->\n).*?(<!-- classes: end -->)", re.DOTALL)
    assert pattern.search(VOCABULARY)
    written = pattern.sub(lambda place: place[1] + table + "\n" + place[2], VOCABULARY)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        (ROOT / "docs" / "vocabulary.md").write_text(written, "utf-8")
    assert written == VOCABULARY, "run MUNIMENT_WRITE_DOCS=1 pytest tests/house/test_words.py"


SHARED_NAMES = {
    "Analyser": "repository/aql states its needs as a Protocol, which the index engine's class fulfils",
    "Catalogue": "repository/aql states as a Protocol what it needs, and the class of that name fulfils it",
    "NameTaken": "the halves share no refusals of their own: in both, the name belongs to something else already",
    "NotSignedIn": "the halves share no refusals of their own: in both, the caller has proved nothing",
    "Way": "repository/aql states its needs as a Protocol, which the index engine's class fulfils",
}
"""Names of public classes that two modules define with one meaning, and why both define them."""


def test_no_class_name_has_two_meanings() -> None:
    rooms: dict[str, list[str]] = {}
    for module in modules():
        for node in public_classes(module):
            rooms.setdefault(node.name, []).append(module.room)
    shared = {name: places for name, places in rooms.items() if len(places) > 1}
    assert not {name: places for name, places in shared.items() if name not in SHARED_NAMES}
    assert not SHARED_NAMES.keys() - shared.keys(), "these names are defined once now: take them off the list"


def test_no_class_is_named_for_anything() -> None:
    found = [node.name for module in modules() for node in public_classes(module) if FORBIDDEN.search(node.name)]
    assert not found


def test_a_token_is_no_piece_of_text() -> None:
    """In the index a piece of text is a term; what the engine hands out in one line may keep its own name."""
    found = [
        f"{module.room}:{node.lineno}"
        for module in modules()
        if module.room.startswith(("repository/index/", "repository/aql/"))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.arg | ast.FunctionDef | ast.ClassDef)
        and "token" in (node.arg if isinstance(node, ast.arg) else node.name).lower()
    ]
    assert not found


def _first_sentence(node: ast.ClassDef) -> str:
    sign = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) ", sign)[0].replace("|", "\\|")
