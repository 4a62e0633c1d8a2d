"""Which letters does a reader take for the same?

``letters.txt`` says which letters these are. ``tools/letters.mjs`` writes it from the root collation of CLDR. So emoji,
and the marks that join letters in Indic scripts, are in the index as letters of Tangut, the stand-ins. Source:
docs/aql.md, "What a word is"; decision 0094.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from muniment.repository.search.analysis.text import BREAK, PlacedText
from muniment.repository.search.aql.keywords import EMOJI

_FEW = 60
_STAND_INS = 0x17000
"""The first letter of Tangut."""

_FORMS: dict[str, str] = {}
"""Characters, and what stands for each of them in an index."""

_WRITTEN: dict[int, str] = {}
"""Code points of stand-ins, and the characters for which they stand."""


def fold(text: str) -> str:
    if text.isascii():
        return text
    found = _FORMS.keys() & set(text)
    if len(found) > _FEW:
        return text.translate(_TABLE)
    for character in found:
        text = text.replace(character, _FORMS[character])
    return text


def fold_with_places(placed: PlacedText) -> PlacedText:
    found = _FORMS.keys() & set(placed.text) if not placed.text.isascii() else set()
    return placed.sub(re.compile(f"[{''.join(sorted(found))}]"), _FORMS.__getitem__) if found else placed


def written(word: str) -> str:
    return word if word.isascii() else word.translate(_WRITTEN)


def _read(table: str) -> None:
    for line in table.splitlines():
        letter, _, codes = line.partition("\t")
        for character in _characters(codes):
            _FORMS[character] = _stand_in(character) if letter == "mark" else "" if letter == "drop" else letter


def _characters(codes: str) -> Iterator[str]:
    for low, high in re.findall("([0-9a-f]+)(?:-([0-9a-f]+))?", codes):
        yield from map(chr, range(int(low, 16), int(high or low, 16) + 1))


def _stand_in(character: str) -> str:
    stand_in = _STAND_INS + len(_WRITTEN)
    _WRITTEN[stand_in] = character
    return chr(stand_in)


_read((Path(__file__).parent / "letters.txt").read_text("utf-8"))
for _first, _last in re.findall("(.)(?:-(.))?", EMOJI):
    for _emoji in map(chr, range(ord(_first), ord(_last or _first) + 1)):
        _FORMS[_emoji] = f"{BREAK}{_stand_in(_emoji)}{BREAK}"
_TABLE = str.maketrans(_FORMS)
