"""In which order are letters read that stand in a line, if some of them are read from right to left?

A PDF says where each glyph stands. This is the Unicode Bidirectional Algorithm (UAX 9) backwards, without its explicit
marks: from the places to the order of writing.
"""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

_Direction = Literal["right", "left", "number", "neutral"]
_DIRECTIONS: dict[str, _Direction] = {"R": "right", "AL": "right", "L": "left", "EN": "number", "AN": "number"}
_MIRRORED = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")
_LAM = "\u0644"
_IN_NUMBERS = frozenset(".,:/-+")


_WIDTH_OF_NOTHING = 0.01


class Glyph(NamedTuple):
    """Characters that share one glyph have the same edges."""

    character: str
    left: float
    right: float


class _Cluster(NamedTuple):
    """The characters of one place, as they are read."""

    text: str
    direction: _Direction


def is_read_to_the_left(character: str) -> bool:
    return unicodedata.bidirectional(character) in {"R", "AL"}


def in_reading_order(line: Sequence[Glyph], narrowest_gap: float) -> str:
    """``line`` has any order. Words are ``narrowest_gap`` apart or more."""
    clusters = _numbers_joined(_clusters(_with_blanks_placed(line, narrowest_gap)))
    rightward = sum(cluster.direction == "left" for cluster in clusters)
    leftward = sum(cluster.direction == "right" for cluster in clusters)
    if leftward >= rightward:
        return "".join(_turned(clusters))
    pieces: list[str] = []
    run: list[_Cluster] = []
    for cluster in clusters:
        if cluster.direction == "left":
            pieces += _run_within_text(run)
            run = []
            pieces.append(cluster.text)
        else:
            run.append(cluster)
    return "".join([*pieces, *_run_within_text(run)])


def _run_within_text(run: list[_Cluster]) -> list[str]:
    places = [number for number, cluster in enumerate(run) if cluster.direction == "right"]
    if not places:
        return [cluster.text for cluster in run]
    start, end = places[0], places[-1] + 1
    around = [[cluster.text for cluster in part] for part in (run[:start], run[end:])]
    return [*around[0], *_turned(run[start:end]), *around[1]]


def _turned(clusters: Sequence[_Cluster]) -> list[str]:
    pieces: list[str] = []
    kept: list[str] = []
    pending: list[str] = []
    for cluster in reversed(clusters):
        if cluster.direction == "left" or (cluster.direction == "number" and not (kept and pending)):
            kept = [cluster.text, *pending[::-1], *kept]
            pending = []
        elif cluster.direction == "neutral" and kept:
            pending.append(cluster.text)
        else:
            pieces += [*kept, *(text.translate(_MIRRORED) for text in pending)]
            kept, pending = [], []
            if cluster.direction == "number":
                kept = [cluster.text]
            else:
                pieces.append(cluster.text.translate(_MIRRORED))
    return [*pieces, *kept, *(text.translate(_MIRRORED) for text in pending)]


def _with_blanks_placed(line: Sequence[Glyph], narrowest_gap: float) -> list[Glyph]:
    glyphs: list[Glyph] = []
    words: list[list[Glyph]] = [[]]
    for glyph in line:
        if glyph.character.isspace():
            words.append([])
            if glyph.right - glyph.left > _WIDTH_OF_NOTHING:
                glyphs.append(glyph)
                words.append([glyph])
        else:
            glyphs.append(glyph)
            words[-1].append(glyph)
    for before, after in pairwise(word for word in words if word):
        start = min(max(glyph.right for glyph in word) for word in (before, after))
        end = max(min(glyph.left for glyph in word) for word in (before, after))
        if end - start > narrowest_gap and not (before[-1].character.isspace() or after[0].character.isspace()):
            glyphs.append(Glyph(" ", (start + end) / 2, (start + end) / 2))
    return glyphs


def _clusters(line: Sequence[Glyph]) -> list[_Cluster]:
    letters = [glyph for glyph in line if not unicodedata.combining(glyph.character)]
    texts: dict[tuple[float, float], str] = {}
    for glyph in sorted(letters, key=lambda glyph: glyph.left + glyph.right):
        texts[glyph[1:]] = texts.get(glyph[1:], "") + glyph.character
    # A ligature of Lam and Alef is read with Lam first.
    texts = {place: _LAM + text.replace(_LAM, "", 1) if _LAM in text else text for place, text in texts.items()}
    for mark in line:
        if unicodedata.combining(mark.character) and texts:
            middle = mark.left + mark.right
            texts[min(texts, key=lambda place: abs(place[0] + place[1] - middle))] += mark.character
    return [_Cluster(text, _DIRECTIONS.get(unicodedata.bidirectional(text[0]), "neutral")) for text in texts.values()]


def _numbers_joined(clusters: Sequence[_Cluster]) -> list[_Cluster]:
    joined: list[_Cluster] = []
    for place, cluster in enumerate(clusters):
        before = joined[-1] if joined else None
        after = clusters[place + 1] if place + 1 < len(clusters) else None
        if before is not None and _is_one_number(before, cluster, after):
            joined[-1] = _Cluster(before.text + cluster.text, "number")
        else:
            joined.append(cluster)
    return joined


def _is_one_number(before: _Cluster, cluster: _Cluster, after: _Cluster | None) -> bool:
    if cluster.direction == "number":
        return before.direction == "number" or unicodedata.bidirectional(before.text[0]) == "ET"
    between = cluster.text in _IN_NUMBERS and after is not None and after.direction == "number"
    return before.direction == "number" and (between or unicodedata.bidirectional(cluster.text[0]) == "ET")
