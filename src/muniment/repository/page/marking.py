"""A text as a sequence of marked and unmarked pieces. The index says what is marked."""

from collections.abc import Iterable
from typing import NamedTuple


class Piece(NamedTuple):
    """A piece of a text."""

    text: str
    marked: bool


def pieces(text: str, marks: Iterable[tuple[int, int]]) -> list[Piece]:
    """``marks`` are in order, and do not overlap."""
    split: list[Piece] = []
    end = 0
    for start, stop in marks:
        split += [Piece(text[end:start], marked=False), Piece(text[start:stop], marked=True)]
        end = stop
    split.append(Piece(text[end:], marked=False))
    return [piece for piece in split if piece.text]
