"""Which words does a text hold?

Words are folded: case, accents on Latin letters (é is e, ø is o, ß is ss), compatibility forms (Unicode NFKC) and what
readers of other scripts take for the same (``letters``) are removed. Without blanks between words (Chinese, Japanese,
Thai), each character is a word, so that searches find any part of a sentence; the fields of stems hold Chinese,
Japanese and Korean as bigrams.

Beside the exact words stand those that signs or blanks divide, as one word with a mark at its end
(``patterns.JOINED``): patterns find them, and phrases do not.
"""

import copy
import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import tantivy

from muniment.ground.caches import Cache
from muniment.repository.search.analysis import languages, letters, variants
from muniment.repository.search.analysis.compounds import Compounds
from muniment.repository.search.analysis.languages import LANGUAGES, MARKS
from muniment.repository.search.analysis.text import BREAK, FlatText, PlacedText, normal, normal_with_places
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.rewriting import joints
from muniment.repository.search.aql.tree import Term, Value

LONGEST_WORD = 512
"""Words of so many bytes of UTF-8, or more, are not indexed."""

_ASCII = bytes(range(128))
_ASCII_WORD = re.compile("([A-Za-z0-9]+)")
_GAPS = re.compile("[*?]+")

_AS_LETTERS = {"*": "\U000187f1", "?": "\U000187f2"}
_AS_GAPS = str.maketrans({letter: gap for gap, letter in _AS_LETTERS.items()})
"""Letters of Tangut, which stand for wildcards while a text is split."""

_SIGN_IN_WORD = re.compile(
    f"(?s)[-'.,{joints.HYPHENS}\u2018\u2019\u05be\u00b7\u200c](?<=[^\\W_].)(?=[^\\W_])|_(?<=[0-9].)(?=[0-9]{{3}})"
    f"|[-/()\\s{joints.HYPHENS}](?:(?<=[0-9].)(?=[A-Za-z0-9()])|(?<=[A-Za-z()].)(?=[0-9(]))"
)
_FEW = 100
_SIGMA = "\u03a3"
"""The only letter whose lower case depends on what follows."""

_REMEMBERED = 20_000

_WAYS_REMEMBERED, _WAYS = 100_000, 50
"""The ways of a term weigh ``_WAYS`` and as much as the term has characters, for each language: 18 bytes a unit."""

_WITHOUT_STOP_LIST = frozenset({"Arabic", "Greek", "Romanian", "Tamil", "Turkish"})
"""Languages whose stop words the engine does not know."""

_QUESTION_WORDS = {
    "English": (  # noqa: SIM905 - a list of words is easier to read without quotation marks
        "about am any been being both can could did do does during each from had has have having he her him how i its "
        "may me might more most must my only other our over per shall she should so some than them under us very via "
        "we were what when where which who whom whose why would you your"
    ).split()
}
"""Words that questions contain, but that say nothing of their subject. The engine's lists of stop words lack them."""


class Span(NamedTuple):
    """A word in a text: its place among the words, its folded form, and the characters that it covers."""

    place: int
    word: str
    start: int
    end: int


_MAKE_SPAN: Callable[[tuple[int, str, int, int]], Span] = partial(tuple.__new__, Span)


class Way(NamedTuple):
    """Words by which an object matches a term, one after the other.

    ``beginning`` is the first word, folded but not reduced to its stem. ``language`` is that of the stems, or empty for
    the index's own. ``counted_as`` gives each word's stems in every language of the index, and is empty if one language
    is searched.
    """

    stems: bool
    words: list[tuple[int, str]]
    beginning: str
    has_bigrams: bool = False
    language: str = ""
    counted_as: Sequence[Sequence[str]] = ()


class _Forms(dict[str, str]):
    """Remembers the forms that the engine gives to words in ASCII; empty for a word that is not indexed."""

    def __init__(self, words: tantivy.TextAnalyzer) -> None:
        self._words = words

    def __missing__(self, word: str) -> str:
        if len(word) >= LONGEST_WORD:
            return ""
        if len(self) >= _REMEMBERED:
            self.clear()
        (form,) = self._words.analyze(word)
        self[word] = form
        return form


class _Splitter:
    """Splits text as the engine does with ``words``, and asks the engine only for words and texts that it must."""

    def __init__(self, words: tantivy.TextAnalyzer) -> None:
        self._words, self._forms = words, _Forms(words)

    def split(self, text: str) -> list[Span]:
        if text.isascii():
            gaps_and_words, forms = _ASCII_WORD.split(text), self._forms
            ends = list(itertools.accumulate(map(len, gaps_and_words)))
            words = [forms[word] for word in gaps_and_words[1::2]]
            spans = list(map(_MAKE_SPAN, zip(itertools.count(), words, ends[::2], ends[1::2], strict=False)))
            return [span for span in spans if span.word] if "" in words else spans
        tokens = self._words.pre_tokenize(text).tokens
        return [Span(each.position, each.text, each.char_offset_from, each.char_offset_to) for each in tokens]

    def pairs(self, text: str) -> list[tuple[int, str]]:
        if text.isascii():
            forms, found = self._forms, enumerate(_ASCII_WORD.findall(text))
            return [(place, form) for place, word in found if (form := forms[word])]
        return [(each.position, each.text) for each in self._words.pre_tokenize(text).tokens]


class Analyser:
    """Splits text into words of its ``language`` and of ``others``, all from ``LANGUAGES``.

    Where a method takes the language of a text, an empty one is the analyser's own.

    Raises ValueError for an unknown language.
    """

    def __init__(
        self,
        language: str = "English",
        stop_words: Iterable[str] = (),
        *,
        others: Collection[str] = (),
        compounds: Mapping[str, Compounds] = {},
    ) -> None:
        for each in (language, *others):
            if each not in LANGUAGES:
                raise ValueError(f"There is no stemming for {each!r}; choose one of {', '.join(sorted(LANGUAGES))}.")
        self.language = language
        self.others = tuple(sorted(set(others) - {language}))
        self._stems_of = {each: _Splitter(_stemming(each)) for each in self.others}
        self._parts_of = {"" if each == language else each: one.parts for each, one in compounds.items()}
        self.exact_words: tantivy.TextAnalyzer = _folding().build()
        self.stems: tantivy.TextAnalyzer = _stemming(language)
        self._splits_exact, self._splits_stems = _Splitter(self.exact_words), _Splitter(self.stems)
        self._stop_words = tuple(stop_words)
        self._stopping = _stopping(language, self._stop_words)
        self._asked = ""
        self._asking: dict[str, Analyser] = {}
        self._ways: Cache[tuple[str, str], Sequence[Way]] = Cache(_WAYS_REMEMBERED)
        self._folded_characters: dict[str, str] = {}
        self._plain_letters: set[str] = set()
        self._blurring: set[str] = set()

    def exact(self, text: str) -> list[tuple[int, str]]:
        """Split text into pairs of a place and a folded word, not reduced to its stem."""
        return self._exact(self.form(text))

    def form(self, text: str) -> str:
        return letters.fold(normal(text))

    def joined(self, text: str) -> list[str]:
        """List the words of a text, which has its ``form``, that signs or blanks divide, each as one word.

        A word is listed as often as it stands there.
        """
        return [word.text for word in variants.joined(text)]

    def asking(self, locale: str) -> "Analyser":
        """Return an analyser with the stems and stop words of a locale's language, or itself if it lacks that, or has
        only one.
        """
        language = languages.by_name(locale) if locale and self.others else ""
        if language not in (self.language, *self.others):
            return self
        if language not in self._asking:
            one = copy.copy(self)
            one._asked, one._stopping = language, _stopping(language, self._stop_words)
            self._asking[language] = one
        return self._asking[language]

    def language_of(self, values: Mapping[str, Sequence[Value]], text: str) -> str:
        """Return the language of an object with these values and this text if it is one of ``others``, else "".

        The text need not have its ``form``.
        """
        if not self.others:
            return ""
        language = languages.of_property(values) or languages.detect(text)
        return language if language in self.others else ""

    def language_of_metadata(self, values: Mapping[str, Sequence[Value]]) -> str:
        """The language does not depend on the text, which is hidden from those who may only browse the object."""
        return self.language_of(values, "")

    def stem(self, text: str, language: str = "") -> list[tuple[int, str]]:
        return self._stem(self._in_stems(variants.bigrams(self.form(text)), language))

    def spellings(self, text: str, joined: Iterable[str], language: str = "") -> list[str]:
        """Return a text, which has its ``form``, its variants and its ``joined`` words, as an index splits them."""
        text = variants.bigrams(text)
        spellings = [text, *variants.variants(text, self._parts_of.get(language)), *joined]
        return [self._in_stems(each, language) for each in spellings]

    def ways(self, text: str) -> Sequence[Way]:
        """Return the ways, one of which is enough; a text without a word has none.

        If ``asking`` chose one of several languages, texts in another match only words as written. A lone Chinese,
        Japanese or Korean character, in no bigram, is looked up only as written.
        """
        weight = (len(text) + _WAYS) * (1 + len(self.others))
        return self._ways.answer((self._asked, text), lambda: self._find_ways(text), weight)

    def _find_ways(self, text: str) -> list[Way]:
        text = variants.without_separators(self.form(text))  # 1,234 is no part of 1,234,567.
        exact_words = self.exact(text)
        if not exact_words:
            return []
        as_written = Way(False, exact_words, exact_words[0][1])
        if variants.stands_alone(text):
            return [as_written]
        with_bigrams = variants.bigrams(text)
        ways = self._in_each_language(with_bigrams, exact_words[0][1], with_bigrams != text)
        one = text if len(exact_words) == 1 else joints.as_one(text)
        spellings = [*self._variants_of_words(with_bigrams), one]
        if one:
            spellings += [*self._variants_of_words(one), joints.taken_apart(one)]
        for spelling in dict.fromkeys(spellings):
            exact = self.exact(spelling)
            if exact and spelling not in (text, with_bigrams):
                ways += self._in_each_language(spelling, exact[0][1])
        if one and len(ways) > 1:
            # Each spelling of a number weighs what the one word weighs, so all give the same scores. Other spellings
            # weigh what the written parts weigh, because these often stand in texts with a blank between them.
            weighed = self._in_each_language(one, one)[0] if _has_digits(one) else ways[0]
            counted_as = weighed.counted_as or [[stem] for _, stem in weighed.words]
            ways = [way._replace(counted_as=counted_as) for way in ways]
        return [*ways, as_written] if self._asked else ways

    def as_written(self, text: str) -> list[list[tuple[int, str]]]:
        """List the exact words of a term. If they are one word, also list it, and with the mark of joined words.

        The first of these says what the others weigh.
        """
        text = variants.without_separators(self.form(text))
        written = self._exact(text)
        one = written if len(written) == 1 else self._exact(joints.as_one(text))
        forms = [one, self._exact(one[0][1] + patterns.JOINED)] if one else []
        forms = [*forms, written] if _has_digits(text) else [written, *forms]
        return [each for at, each in enumerate(forms) if each not in forms[:at]]

    def sequences(self, text: str) -> list[list[tuple[int, str]]]:
        """List the exact words of a text: as written, and with each spelling of the numbers in it."""
        text = self.form(text)
        spellings = [text]
        if _has_digits(text):
            words = [
                (joints.as_one(word) or word) if _has_digits(word) else word
                for word in joints.with_groups(variants.without_separators(text))
            ]
            apart = " ".join(map(joints.taken_apart, words))
            by_thousands = " ".join([part for word in apart.split(" ") for part in variants.thousands(word) or [word]])
            spellings += [" ".join(words), apart, by_thousands]
        each = [self._exact(spelling) for spelling in spellings]
        return [one for at, one in enumerate(each) if one not in each[:at]]

    def _variants_of_words(self, text: str) -> list[str]:
        asked = "" if self._asked == self.language else self._asked
        languages = [asked] if self._asked else ["", *self.others]
        each = dict.fromkeys(self._parts_of.get(language) for language in languages)
        return list(dict.fromkeys(variant for parts in each for variant in variants.of_words(text, parts)))

    def _in_each_language(self, text: str, beginning: str, has_bigrams: bool = False) -> list[Way]:
        if not self.others:
            return [Way(True, self._stem(text), beginning, has_bigrams)]
        stems = {language: self._stem(self._in_stems(text, language)) for language in ("", *self.others)}
        if self._asked:
            language = "" if self._asked == self.language else self._asked
            return [Way(True, stems[language], beginning, has_bigrams, language)]
        counted_as = [[stem for _, stem in word] for word in zip(*stems.values(), strict=True)]
        return [Way(True, words, beginning, has_bigrams, language, counted_as) for language, words in stems.items()]

    def _in_stems(self, text: str, language: str) -> str:
        """The text is ``normal``, and its bigrams have been written already."""
        if not language:
            return text
        return " ".join([word + MARKS[language] for _, word in self._stems_of[language].pairs(text)])

    def _exact(self, text: str) -> list[tuple[int, str]]:
        return self._splits_exact.pairs(text)

    def _stem(self, text: str) -> list[tuple[int, str]]:
        return self._splits_stems.pairs(text)

    def wild(self, text: str) -> list[tuple[int, Pattern]]:
        """Split text with wildcards into patterns of folded words, with their places. Lone wildcards are left out."""
        text, words = self.form(text), list[Pattern]()
        # The engine splits the text, so each wildcard becomes a letter that it keeps.
        for _, word in self._exact(_GAPS.sub(_as_letters, text)):
            pieces = patterns.read(word.translate(_AS_GAPS)).pieces
            if any(isinstance(piece, str) and piece for piece in pieces):
                words.append(Pattern(pieces))
        if len(words) == 1 and len(words[0].pieces) > 1 and words[0].pieces[-1] != Gap.RUN:
            words[0] = Pattern((*words[0].pieces, Gap.JOINED))
        return list(enumerate(words))

    def content_words(self, words: Sequence[Term]) -> Sequence[Term]:
        """Return the words that are no stop words, or all words if all are stop words.

        Of several words with the same stems, only the first is returned. A fuzzy word is compared with fuzzy ones only.
        """
        forms: dict[tuple[bool, *tuple[str, ...]], Term] = {}
        for word in self.without_stop_words(words):
            forms.setdefault((word.fuzzy, *(stem for _, stem in self.stem(word.text))), word)
        return list(forms.values())

    def without_stop_words(self, words: Sequence[Term]) -> Sequence[Term]:
        return [word for word in words if self._stopping.analyze(self.form(word.text))] or words

    def is_stop_word(self, text: str) -> bool:
        return not self._stopping.analyze(self.form(text))

    def flatten(self, text: str, *, spelled: bool = False) -> FlatText:
        """Fold a text character by character, keeping the places.

        A character of no word may become a blank, beyond ASCII always, unless it leaves no trace. If ``spelled``,
        umlauts are two letters, and signs within words and blanks beside digits are left out.
        """
        if text.isascii() and not spelled:
            return FlatText(text.lower(), ())
        others = set() if text.isascii() else set(text.encode().translate(None, _ASCII).decode()) - self._plain_letters
        folded_to = {character: self._fold(character) for character in others}
        if spelled:
            folded_to |= {one: two for one, two in variants.UMLAUTS.items() if one in others}
        shifts = [(at, len(two) - 1) for one, two in folded_to.items() if len(two) != 1 for at in _places_of(one, text)]
        if spelled:
            shifts += [(sign.start(), -1) for sign in _SIGN_IN_WORD.finditer(text)]
            text = _SIGN_IN_WORD.sub("", text)
        if len(others) > _FEW:
            text = text.translate({ord(one): two for one, two in folded_to.items()})
        else:
            for one, two in folded_to.items():
                text = text.replace(one, two)
        return FlatText(text.lower(), sorted(shifts), blurred=not self._blurring.isdisjoint(others))

    def _fold(self, character: str) -> str:
        folded_character = self._folded_characters.get(character)
        if folded_character is None:
            if len(self._folded_characters) > _REMEMBERED:
                self._folded_characters.clear()
            form = self.form(character)
            words = [word for _, word in self.exact(character)]
            letters_of_it = "".join(words)
            if len(words) > 1 or (form and not words and unicodedata.category(character).startswith("M")):
                self._blurring.add(character)
            # A word by itself, such as an emoji, stands between blanks.
            folded_character = f" {letters_of_it} " if form.startswith(BREAK) else letters_of_it or (form and " ")
            self._folded_characters[character] = folded_character
            if folded_character == character.lower() and letters_of_it and character != _SIGMA:
                self._plain_letters.add(character)
        return folded_character

    def spans(self, text: str, stemmed: bool, most: int | None = None, language: str = "") -> list[Span]:
        return self._spans(self._placed(text, with_bigrams=stemmed), stemmed, most, language)

    def _placed(self, text: str, *, with_bigrams: bool) -> PlacedText:
        if text.isascii():
            return PlacedText.of(text)
        placed = letters.fold_with_places(normal_with_places(text))
        return variants.bigrams_with_places(placed) if with_bigrams else placed

    def _spans(self, placed: PlacedText, stemmed: bool, most: int | None, language: str) -> list[Span]:
        words = self._splits_exact if not stemmed else self._stems_of[language] if language else self._splits_stems
        spans = words.split(placed.text)[:most]
        if not isinstance(placed.starts, range):  # A text that stands for itself keeps its places.
            spans = [Span(at, word, placed.starts[start], placed.ends[end - 1]) for at, word, start, end in spans]
        if not (stemmed and language):
            return spans
        marked = dict(self._stem(" ".join([span.word + MARKS[language] for span in spans])))
        return [span._replace(place=at, word=marked[at]) for at, span in enumerate(spans) if at in marked]

    def varies(self, text: str, holding: Collection[bool]) -> bool:
        """Return whether ``all_spans`` may list words that ``spans`` does not, if the folded text is ``holding`` their
        beginnings or not.
        """
        return not text.isascii() or bool(self._parts_of) or variants.may_vary(text, apart=not any(holding))

    def all_spans(self, text: str, stemmed: bool, language: str = "") -> list[Span]:
        """List the words, then the stems of variants and the joined words. These cover the characters for which they
        stand, each after a gap of one place, as in an index. Joined words have their mark if they are not ``stemmed``.
        """
        placed = self._placed(text, with_bigrams=False)
        with_bigrams = variants.bigrams_with_places(placed) if stemmed else placed
        spans = self._spans(with_bigrams, stemmed, None, language)
        place = spans[-1].place + 2 if spans else 0
        parts = self._parts_of.get(language)
        of_variants = variants.variants_with_places(with_bigrams.text, parts) if stemmed else ()
        joined_words = variants.joined(placed.text)
        for of, variant in itertools.chain(
            ((with_bigrams, variant) for variant in of_variants), ((placed, [word]) for word in joined_words)
        ):
            for piece in variant:
                words = (
                    self._stem(self._in_stems(piece.text, language))
                    if stemmed
                    else self._exact(piece.text + patterns.JOINED)
                )
                spans += [Span(place + at, word, of.starts[piece.start], of.ends[piece.end - 1]) for at, word in words]
                place += max(len(words), 1)
            place += 1
        return spans


def _places_of(character: str, text: str) -> Iterator[int]:
    at = text.find(character)
    while at >= 0:
        yield at
        at = text.find(character, at + 1)


def _has_digits(text: str) -> bool:
    return any(map(str.isdigit, text))


def _as_letters(gaps: re.Match[str]) -> str:
    return _AS_LETTERS["*"] if "*" in gaps[0] else _AS_LETTERS["?"] * len(gaps[0])


def _folding() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(LONGEST_WORD))
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.lowercase())
    )


def _stemming(language: str) -> tantivy.TextAnalyzer:
    return _folding().filter(tantivy.Filter.stemmer(language)).build()


def _stopping(language: str, more: Iterable[str]) -> tantivy.TextAnalyzer:
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    words = words.filter(
        tantivy.Filter.custom_stopword([*_QUESTION_WORDS.get(language, []), *(word.lower() for word in more)])
    )
    return (words if language in _WITHOUT_STOP_LIST else words.filter(tantivy.Filter.stopword(language))).build()
