"""One word, one meaning: docs/vocabulary.md explains each word once, and no word does another's work."""

import ast
import re
from collections import Counter

from tests.house.sources import ROOT, modules, public_classes

FORBIDDEN = re.compile(r"Manager|Service|Handler|Helper|Util|Impl$|Abstract|Factory")


def test_the_vocabulary_explains_each_word_once() -> None:
    first_columns = re.findall(r"^\| (\*.*?) \|", (ROOT / "docs" / "vocabulary.md").read_text("utf-8"), re.MULTILINE)
    words = Counter(word for column in first_columns for word in re.findall(r"\*(.+?)\*", column))
    assert words, "the table is found"
    assert not [word for word, times in words.items() if times > 1]


SHARED_NAMES = {
    "Caller": "the halves share no callers: in both, who calls an address, as far as it decides what they may",
    "Row": "the halves share no table of addresses: in both, of what the addresses are made",
    "Catalogue": "repository/search/aql states as a Protocol what it needs, and the class of that name fulfils it",
    "NameTaken": "the halves share no refusals of their own: in both, the name belongs to something else already",
    "NotSignedIn": "the halves share no refusals of their own: in both, the caller has proved nothing",
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
        if module.room.startswith(("repository/search/index/", "repository/search/aql/"))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.arg | ast.FunctionDef | ast.ClassDef)
        and "token" in (node.arg if isinstance(node, ast.arg) else node.name).lower()
    ]
    assert not found
