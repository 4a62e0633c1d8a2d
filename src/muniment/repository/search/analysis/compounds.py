"""Of which words does a compound consist?

German writes compounds as one word: *Dampfmaschine* is a *Maschine*.

A compound is cut where its beginning and its end are common parts of the dictionary's compounds. The parts are stored
with the index, so that queries are cut in the same way. Source: docs/decisions/0094.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from muniment.ground import disk

CODES = {"German": "de"}
"""The languages whose compounds are taken apart, with their codes of ISO 639-1."""

RULES = 1
"""The version of the rules for taking compounds apart. Raise it with every change, so that agents rebuild indexes."""

SHORTEST = 6
"""The length of the shortest word that is taken apart, in letters."""

_LONGEST = 60
_REMEMBERED = 20_000
_SHORTEST_PART, _SHORTEST_LEARNED, _LONGEST_PART = 2, 4, 14
_OFTEN = {4: 5, 5: 2, 6: 2}
"""For each length of a part, how many words of the dictionary the part must begin, or end.

For a length that is not listed here, one word is enough.
"""

_LEARNED_FROM = range(6, 19)
_EACH = 2
"""Parts are learned from every second word: half of the words teach as much as all, in half of the time."""

_FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "é": "e", "è": "e", "ß": "ss"})

_SHORT = frozenset(
    (  # noqa: SIM905 - a list of words is easier to read without quotation marks
        "abo akt alm alt amt arm art ast axt bad bau bio box bus dom eck ehe eid eis erd erz fan fuß gas gut hof "
        "hut job kur lok maß mut neu not ohr ort ost pol rad rat reh roh rot ruf see ski süd tag tal tau tee tod "
        "ton tor typ tür uhr uni wal web weg wut zoo zug öko öl"
    ).split()
)
"""The only parts of two or three letters. Most other endings of this length are no words by themselves."""

_PREFIXES = frozenset(
    (  # noqa: SIM905 - a list of words is easier to read without quotation marks
        "ab abb abd abt an ana auf aus auß außen be beg bei bek bel ber besch bet da dar dis durch ein emp empor end "
        "ent entgegen er erg fort für ge gegen gel gen ges gew her herab heran heraus herein herum hervor hin "
        "hinaus hinein hinter hinzu innen kom los miss mit nach neben nieder ohne per prä sch tri um un unter ver "
        "von vor vorbei vorher weg wider wieder zer zu zurück zusammen zwischen über"
    ).split()
)
"""Beginnings that do not count as parts, unless they are in ``_SHORT``.

Some are nouns, too, but most words that begin so are no compounds.
"""

_ENDINGS = frozenset(
    (  # noqa: SIM905 - a list of words is easier to read without quotation marks
        "ade ale anz ari ase bar bare baren barer ben chen cher ei eln ende enden ens ent enz erei eren ern ers "
        "este eur gen ger haft heit heiten iert ierte ierten ierung ierungen ige igen iger iges igkeit ik iker "
        "innen ion ionen isch isen isierung ismen ismus ist isten keit keiten ken lein ler lich liche lichen "
        "licher liches lichkeit ling linge lingen los lose losen loser losigkeit nis nisse nissen nisses oren ose "
        "rei ren sal schaft schaften sel sen send ster tand tat taten tein tem ten ter tes tion tionen toff tuck "
        "tum tums tät ung ungen ungs zen"
    ).split()
)
"""Endings that do not count as parts. Some are a noun without the s at its beginning, such as *toff* for *Stoff*."""

_WHOLE = frozenset(
    (  # noqa: SIM905 - a list of words is easier to read without quotation marks
        "hardware interesse interessen interesses literatur minister ministern ministers schokolade schokoladen "
        "software temperatur temperaturen verstand"
    ).split()
)
"""Common words that look like compounds, but are not taken apart."""


class PartCounts(msgspec.Struct, frozen=True):
    """How many compounds of a sample of the dictionary each part begins, and how many it ends.

    As an ending, a noun has the count of all its forms together.
    """

    begins: dict[str, int]
    ends: dict[str, int]


class _Cut(NamedTuple):
    score: float
    place: int


class Compounds:
    """Takes the compounds of one language apart. Any thread may use it."""

    def __init__(self, counts: PartCounts) -> None:
        self._counts = counts
        self._begins = {part: math.log1p(count) for part, count in counts.begins.items()}
        self._ends = {part: math.log1p(count) for part, count in counts.ends.items()}
        self.parts = lru_cache(_REMEMBERED)(self._parts)
        """Returns the parts of a word in their order, or only the word itself if it is no compound."""

    @classmethod
    def read(cls, path: Path) -> "Compounds":
        """Raises OSError, msgspec.DecodeError."""
        return cls.of_text(path.read_bytes())

    @classmethod
    def of_text(cls, text: str | bytes) -> "Compounds":
        """Raises msgspec.DecodeError."""
        return cls(msgspec.json.decode(text, type=PartCounts))

    def write(self, path: Path) -> None:
        disk.replace(path, self.text().encode())

    def text(self) -> str:
        return msgspec.json.encode(self._counts).decode()

    def _parts(self, word: str) -> tuple[str, ...]:
        if not SHORTEST <= len(word) <= _LONGEST:
            return (word,)
        parts, done = [], 0
        for folded_part in self._cut(_fold(word)):
            at, length = done, 0
            while length < len(folded_part):
                length += len(_fold(word[at]))
                at += 1
            parts.append(word[done:at])
            done = at
        return tuple(parts)

    def _cut(self, word: str) -> list[str]:
        if len(word) < SHORTEST or word in _WHOLE:
            return [word]
        place = self._place(word)
        if place == 0:
            return [word]
        return [*self._cut_beginning(word[:place]), *self._cut(word[place:])]

    def _cut_beginning(self, part: str) -> list[str]:
        parts = self._cut(part)
        if len(parts) == 1 and part.endswith("s"):
            *first, last = self._cut(part[:-1])
            parts = [*first, last + "s"]
        return parts

    def _place(self, word: str) -> int:
        best, middle = _Cut(0.0, 0), range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
        for place in middle:
            begins, ends = self._begins.get(word[:place]), self._ends.get(word[place:])
            if begins is not None and ends is not None:
                best = max(best, _Cut(begins + ends, place))
        if best.place:
            return best.place
        for place in middle:
            beginning, ending = word[:place], word[place:]
            if (begins := self._begins.get(beginning)) is not None and self._is_compound(ending):
                best = max(best, _Cut(begins, place))
            if (ends := self._ends.get(ending)) is not None and len(self._cut_beginning(beginning)) > 1:
                best = max(best, _Cut(ends, place))
        return best.place

    def _is_compound(self, word: str) -> bool:
        return len(word) >= SHORTEST and word not in _WHOLE and self._place(word) > 0


def rules(languages: Collection[str]) -> int:
    """Returns 0 if none of the languages has rules, or if the dictionary, which is an extra, is not installed."""
    return RULES if not CODES.keys().isdisjoint(languages) and find_spec("simplemma") is not None else 0


@lru_cache(maxsize=1)
def learn(language: str) -> Compounds:
    """This takes some seconds."""
    from simplemma.strategies.dictionaries import DefaultDictionaryFactory

    return Compounds(_learn(DefaultDictionaryFactory().get_dictionary(CODES[language]).items()))


def _learn(forms: Iterable[tuple[str, str]]) -> PartCounts:
    nouns, others, words = dict[str, str](), dict[str, str](), set[str]()
    for form, lemma in forms:
        if len(form) > _LEARNED_FROM[-1] or not form.isalpha():
            continue
        if form.islower():
            others[form] = lemma
        elif lemma[:1].isupper() and form[1:].islower():
            if len(form) <= _LONGEST_PART:
                nouns[form.lower()] = lemma.lower()
            if form == lemma and len(form) in _LEARNED_FROM:
                words.add(form.lower())
    may_begin = _may_begin(nouns, others)
    may_end = {
        noun
        for noun, lemma in nouns.items()
        if _may_be_part(noun) and noun not in _ENDINGS and (noun == lemma or not _is_adjective(noun, others))
    }
    cuts = [cuts for word in sorted(words)[::_EACH] if (cuts := _cuts(word, may_begin, may_end))]
    everywhere = _Counts(
        Counter(cut[0] for each in cuts for cut in each), Counter(cut[1] for each in cuts for cut in each)
    )
    best = [max(each, key=everywhere.weight) for each in cuts]
    ends_of_lemma = Counter(nouns[ending] for _, ending in best)
    return PartCounts(
        _often(Counter(beginning for beginning, _ in best), _SHORT & may_begin),
        _often({noun: ends_of_lemma[nouns[noun]] for noun in may_end}, _SHORT & may_end),
    )


class _Counts(NamedTuple):
    begins: Mapping[str, int]
    ends: Mapping[str, int]

    def weight(self, cut: tuple[str, str]) -> tuple[int, tuple[str, str]]:
        return self.begins[cut[0]] * self.ends[cut[1]], cut


def _may_be_part(part: str) -> bool:
    return (_SHORTEST_LEARNED <= len(part) <= _LONGEST_PART and part not in _PREFIXES) or part in _SHORT


def _may_begin(nouns: Mapping[str, str], others: Mapping[str, str]) -> set[str]:
    """A noun may begin a compound in any form; its basic form also with an s added or without its final e. Any other
    word may in its basic form, also without a final ``en`` or ``n`` (a verb's stem).
    """
    parts = set(nouns)
    for noun, lemma in nouns.items():
        if noun == lemma:
            parts.add(noun + "s")
            if noun.endswith("e"):
                parts.add(noun[:-1])
    for form, lemma in others.items():
        if form == lemma and len(form) <= _LONGEST_PART:
            parts.add(form.removesuffix("en") if form.endswith("en") else form.removesuffix("n"))
            parts.add(form)
    return set(filter(_may_be_part, parts))


def _is_adjective(noun: str, others: Mapping[str, str]) -> bool:
    return noun in others and not others[noun].endswith("en")


def _cuts(word: str, may_begin: Collection[str], may_end: Collection[str]) -> list[tuple[str, str]]:
    return [
        (word[:place], word[place:])
        for place in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
        if word[place:] in may_end and word[:place] in may_begin
    ]


def _often(counts: Mapping[str, int], always: Collection[str]) -> dict[str, int]:
    """A part in ``always`` that is not counted often enough gets the count 1."""
    often = {part: count for part, count in counts.items() if count >= _OFTEN.get(len(part), 1)}
    return {_fold(part): count for part, count in sorted((dict.fromkeys(always, 1) | often).items())}


def _fold(word: str) -> str:
    word = word.lower()
    return word if word.isascii() else word.translate(_FOLDED)
