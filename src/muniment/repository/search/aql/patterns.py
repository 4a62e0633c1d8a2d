"""Which strings match a text with wildcards?

``*`` stands for any run of characters, ``?`` for one character or for none.
"""

import enum
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

SIMILAR_FROM = 4

LONGEST_SIMILAR = 40

OPEN_CLAUSES = 32
"""A text that begins with a wildcard counts this many clauses more, because an engine compares it with every word or
value.
"""


JOINED = "\U000187f0"
"""This mark, a letter that no text holds, ends a word written in several parts, such as wi-fi."""


class Gap(enum.IntEnum):
    """A wildcard: a number, which equals no text. ``JOINED`` stands for the mark of a joined word, or for nothing."""

    RUN = 1
    ONE_OR_NONE = 2
    JOINED = 3


_SIGNS = {"*": Gap.RUN, "?": Gap.ONE_OR_NONE}


class Pattern(msgspec.Struct, frozen=True):
    """Literal texts and gaps, in order."""

    pieces: tuple[str | Gap, ...]

    @property
    def begins_open(self) -> bool:
        """For such a pattern, an engine reads every value."""
        return bool(self.pieces) and isinstance(self.pieces[0], Gap)

    @property
    def has_several_gaps(self) -> bool:
        return sum(isinstance(piece, Gap) for piece in self.pieces) > 1

    def expression(self, literally: Callable[[str], str] = re.escape) -> str:
        """Write it as a regular expression; ``literally`` writes one that matches a text alone."""
        return "".join([_expression(piece, literally) for piece in self.pieces])

    def matches(self, text: str) -> bool:
        """Each piece of the pattern takes time in proportion to the text."""
        if not self.has_several_gaps:
            return re.fullmatch(self.expression(), text, re.DOTALL) is not None
        # A regular expression would try all combinations of gaps. Bit n of ``ends`` says that the pieces so far match
        # the first n characters of the text.
        every = (1 << len(text) + 1) - 1
        ends, places = 1, dict[str, int]()
        for piece in self.pieces:
            match piece:
                case Gap.RUN:
                    ends = every & -(ends & -ends)
                case Gap.ONE_OR_NONE:
                    ends = every & (ends | ends << 1)
                case Gap.JOINED:
                    ends |= (ends & _places(JOINED, text)) << 1
                case _:
                    if piece not in places:
                        places[piece] = _places(piece, text)
                    ends = (ends & places[piece]) << len(piece)
            if not ends:
                return False
        return bool(ends >> len(text))


def read(text: str) -> Pattern:
    return Pattern(tuple(_pieces(text)))


def matcher(several: Sequence[Pattern]) -> Callable[[str], bool]:
    """Match many texts in a small part of the time of ``Pattern.matches``."""
    expressions = [each.expression() for each in several if not each.has_several_gaps]
    whole = re.compile("|".join(expressions) if expressions else "(?!)", re.DOTALL)
    others = [each for each in several if each.has_several_gaps]
    return lambda text: whole.fullmatch(text) is not None or any(each.matches(text) for each in others)


def has_gaps(text: str) -> bool:
    return "*" in text or "?" in text


def similar(text: str) -> tuple[Pattern, ...]:
    """Allow one letter more, less or other, or two neighbours exchanged, unless the text is shorter than SIMILAR_FROM
    or longer than LONGEST_SIMILAR.
    """
    if not SIMILAR_FROM <= len(text) <= LONGEST_SIMILAR:
        return (Pattern((text,)),)
    any_letter = Gap.ONE_OR_NONE
    substitutions = [_join(text[:at], any_letter, text[at + 1 :]) for at in range(len(text))]
    insertions = [_join(text[:at], any_letter, text[at:]) for at in range(len(text) + 1)]
    transpositions = [_join(text[:at] + text[at + 1] + text[at] + text[at + 2 :]) for at in range(len(text) - 1)]
    return tuple(dict.fromkeys((*substitutions, *insertions, *transpositions)))


def _places(part: str, text: str) -> int:
    bits, at = bytearray(b"0" * (len(text) + 1)), text.find(part)
    while at >= 0:
        bits[-1 - at] = ord("1")
        at = text.find(part, at + 1)
    return int(bits, 2)


def _join(*pieces: str | Gap) -> Pattern:
    return Pattern(tuple(piece for piece in pieces if piece != ""))


def _pieces(text: str) -> Iterator[str | Gap]:
    for part in re.split(r"([*?])", text):
        if part:
            yield _SIGNS.get(part, part)


def _expression(piece: str | Gap, literally: Callable[[str], str]) -> str:
    match piece:
        case Gap.RUN:
            return ".*"
        case Gap.ONE_OR_NONE:
            return ".?"
        case Gap.JOINED:
            return f"{literally(JOINED)}?"
        case _:
            return literally(piece)
