"""In which other spellings is a text found?

A variant stands beside the word as it is, never in its place. Sources: docs/aql.md, "By keywords"; decision 0094
(bigrams).
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from muniment.repository.search.analysis import compounds
from muniment.repository.search.analysis.text import BREAK, NARROW_BLANK, PlacedText
from muniment.repository.search.aql.rewriting import joints

LONGEST = 100
"""The longest run of characters without a blank that is varied as a whole, so that its words stay next to each other.

An address is an example of such a run. In a longer run, each word is varied by itself.
"""

MOST_PARTS = 6
"""The most parts of a word that is found by its parts. A word of more parts is taken for a key or a digest."""

_CASED = range(0x2000)
"""The code points that are searched for capitals. Only full-width letters and rare ones are outside."""

_SMALL_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"}
UMLAUTS = _SMALL_UMLAUTS | {one.upper(): two.title() for one, two in _SMALL_UMLAUTS.items()}
"""Letters that are also written as two letters."""

_WITHOUT_UMLAUTS = str.maketrans(UMLAUTS)
_CAPITALS = "".join(character for character in map(chr, _CASED) if character.isupper())
_CAPITAL, _SMALL, _LETTER = f"[{_CAPITALS}]", rf"[^\W\d_{_CAPITALS}]", r"[^\W\d_]"
_PART = re.compile(rf"\d+|{_CAPITAL}+s(?!{_LETTER})|{_CAPITAL}+(?={_CAPITAL}{_SMALL})|{_CAPITAL}?{_SMALL}+|{_CAPITAL}+")
_SEPARATOR = "[.,'_\u2018\u2019]"
_UNIT = re.compile(
    rf"(?<![0-9])(?<![0-9]{_SEPARATOR})"
    rf"(?P<number>[1-9][0-9]{{0,2}}(?P<separator>{_SEPARATOR})[0-9]{{3}}(?:(?P=separator)[0-9]{{3}}){{0,4}})"
    r"(?![0-9])(?!(?P=separator)[0-9])|[^\W_]+"
)
_SEPARATORS = re.compile(_SEPARATOR)
_SIGN = re.compile(
    rf"[{_CAPITALS}\d{''.join(UMLAUTS)}](?:(?<=[^\W_{_CAPITALS}]{_CAPITAL})"
    rf"|(?<={_CAPITAL}{_CAPITAL})(?={_SMALL})|(?<={_LETTER}\d)|(?<=\d)(?={_LETTER}|{_SEPARATOR}[0-9]{{3}})"
    rf"|(?<=[{''.join(UMLAUTS)}]))"
)
_ASCII_SIGN = re.compile(
    "[A-Z0-9](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z])|(?<=[A-Za-z][0-9])|(?<=[0-9])(?=[A-Za-z]|[.,'_][0-9]{3}))"
)
"""A character that shows that its word may have variants."""

_SEPARATED = re.compile(f"[0-9]{_SEPARATOR}[0-9]{{3}}")

_LONG_OR_SIGN = re.compile(rf"{_LETTER}{{{compounds.SHORTEST},}}|{_SIGN.pattern}")
"""``_SIGN``, or so many letters in a row that the word may be a compound."""

CompoundParts: TypeAlias = Callable[[str], Sequence[str]]
"""Returns the parts of a compound in their order. If the word is no compound, only the word itself is returned."""

_AS_BLANKS = str.maketrans({BREAK: " ", NARROW_BLANK: "'"})

_IN_BIGRAMS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_IN_BIGRAMS}](?:{BREAK}?[{_IN_BIGRAMS}])*")
_ALONE = re.compile(f"(?<![{_IN_BIGRAMS}])(?<![{_IN_BIGRAMS}]{BREAK})[{_IN_BIGRAMS}](?!{BREAK}?[{_IN_BIGRAMS}])")


class VariantWord(NamedTuple):
    """A word of a variant, and the characters of the text for which it stands."""

    text: str
    start: int
    end: int


def bigrams(text: str) -> str:
    """Replace each run of Chinese, Japanese and Korean characters in a ``normal`` text by its bigrams."""
    return text if text.isascii() else _RUN.sub(_bigrams_of, text)


def has_bigrams(text: str) -> bool:
    return not text.isascii() and _RUN.search(text) is not None


def stands_alone(text: str) -> bool:
    """Return whether a ``normal`` text has a Chinese, Japanese or Korean character without a neighbour for a bigram."""
    return not text.isascii() and _ALONE.search(text) is not None


def bigrams_with_places(placed: PlacedText) -> PlacedText:
    text = placed.text
    if not has_bigrams(text):
        return placed
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def add(piece: str, at: Sequence[int]) -> None:
        pieces.append(piece)
        starts.extend(placed.starts[place] for place in at)
        ends.extend(placed.ends[place] for place in at)

    done = 0
    for run in _RUN.finditer(text):
        add(text[done : run.start()], range(done, run.start()))
        done = run.end()
        places = [at for at in range(run.start(), run.end()) if text[at] != BREAK]
        add(BREAK, [run.start()])
        for bigram in list[Sequence[int]](itertools.pairwise(places)) or [places]:
            add("".join([text[at] for at in bigram]), bigram)
            add(BREAK, bigram[:1])
    add(text[done:], range(done, len(text)))
    return PlacedText("".join(pieces), starts, ends)


def variants(text: str, parts: CompoundParts | None = None) -> Iterator[str]:
    """List the variants of each run of characters between blanks, in a ``normal`` text with bigrams.

    With ``parts``, the text is in a language whose compounds are taken apart.
    """
    for variant, _ in _variants(text, parts):
        yield " ".join([word.text for word in variant])


def joined(text: str) -> Iterator[VariantWord]:
    """List the words that are one word without the signs and blanks between their parts, in a ``normal`` text.

    A word with umlauts is also listed without them.
    """
    for word, start, end in joints.joined(text):
        yield VariantWord(word, start, end)
        if not word.isascii() and (without := word.translate(_WITHOUT_UMLAUTS)) != word:
            yield VariantWord(without, start, end)


def may_vary(text: str, *, apart: bool) -> bool:
    """Return whether a text in ASCII has variants or joined words, its compounds aside.

    With ``apart``, words that stand in the text letter by letter do not count.
    """
    signs = _SEPARATED if apart else _ASCII_SIGN
    return signs.search(text) is not None or next(joints.joined(text), None) is not None


def without_separators(text: str) -> str:
    """Return a ``normal`` term in which no sign or blank stands between the thousands of a number."""
    return _UNIT.sub(_without_separators, text.replace(NARROW_BLANK, "'"))


def variants_with_places(text: str, parts: CompoundParts | None = None) -> Iterator[list[VariantWord]]:
    for variant, at in _variants(text, parts):
        yield [VariantWord(word.text, at + word.start, at + word.end) for word in variant]


def of_words(text: str, parts: CompoundParts | None = None) -> list[str]:
    """List the variants of a query's term; none if it has a blank or more than ``LONGEST`` characters."""
    is_one = len(text) <= LONGEST and len(text.translate(_AS_BLANKS).split()) == 1
    return list(variants(text, parts)) if is_one else []


_Variant: TypeAlias = Sequence[VariantWord]
"""A variant of some characters. The starts and ends of its words are counted from the first of these characters."""


def _variants(text: str, parts: CompoundParts | None) -> Iterator[tuple[_Variant, int]]:
    if not text.isascii():
        text = text.translate(_AS_BLANKS) if BREAK in text or NARROW_BLANK in text else text
    signs = _LONG_OR_SIGN if parts is not None else _ASCII_SIGN if text.isascii() else _SIGN
    done = 0
    for sign in signs.finditer(text):
        at = sign.start()
        if at < done:
            continue
        start, done = _run_around(text, at)
        if done - start > LONGEST:
            start, done = _word_around(text, at)
        for variant in _of_run(text[start:done], parts) if done - start <= LONGEST else ():
            yield variant, start


def _run_around(text: str, at: int) -> tuple[int, int]:
    before, after = text[max(0, at - LONGEST) : at], text[at : at + LONGEST + 1]
    start = at - len(before.rsplit(None, 1)[-1]) if before and not before[-1].isspace() else at
    return start, at + len(after.split(None, 1)[0])


def _word_around(text: str, at: int) -> tuple[int, int]:
    start = at
    while start and at - start <= LONGEST and text[start - 1].isalnum():
        start -= 1
    unit = _UNIT.match(text, start)
    return start, max(unit.end() if unit else at, at + 1)


@lru_cache(maxsize=10_000)
def _of_run(run: str, parts: CompoundParts | None) -> tuple[_Variant, ...]:
    """A variant that repeats the run or another variant is left out.

    If none is left, and the run has a number with separators, there is one variant: the run without these separators.
    """
    units = list(_UNIT.finditer(run))
    written = [unit[0] for unit in units]
    joined = list(map(_without_separators, units))
    with_parts = [_parts(word) for word in joined]
    if parts is not None:
        with_parts = [[of_part for part in word for of_part in parts(part)] for word in with_parts]
    candidates = [with_parts]
    if run.translate(_WITHOUT_UMLAUTS) != run:
        candidates.append([[word.translate(_WITHOUT_UMLAUTS)] for word in joined])
        candidates.append([[part.translate(_WITHOUT_UMLAUTS) for part in word] for word in with_parts])
    as_joined = [[word] for word in joined]
    distinct = [each for place, each in enumerate(candidates) if each != as_joined and each not in candidates[:place]]
    if not distinct and joined != written:
        distinct = [as_joined]
    return tuple(
        [VariantWord(part, *unit.span()) for unit, word in zip(units, variant, strict=True) for part in word]
        for variant in distinct
    )


def thousands(word: str) -> list[str]:
    """Return the parts of a number of more than three digits between which signs or blanks may stand."""
    if not (word.isascii() and word.isdigit()) or len(word) < 4:
        return []
    first = len(word) % 3
    return [part for part in (word[:first], *(word[at : at + 3] for at in range(first, len(word), 3))) if part]


def _without_separators(unit: re.Match[str]) -> str:
    return _SEPARATORS.sub("", unit[0]) if unit["number"] else unit[0]


def _parts(word: str) -> list[str]:
    parts = _PART.findall(word)
    return parts if len(parts) <= MOST_PARTS and sum(map(len, parts)) == len(word) else [word]


def _bigrams_of(run: re.Match[str]) -> str:
    characters = run[0].replace(BREAK, "")
    of_run = [one + other for one, other in itertools.pairwise(characters)] or [characters]
    return f"{BREAK}{BREAK.join(of_run)}{BREAK}"
