"""Which words does a text hold? It is split at every character that is neither letter nor digit.

Words are folded: case, accents on Latin letters (é is e, ø is o, ß is ss) and compatibility forms (Unicode NFKC) are
removed. Words may then be reduced to stems. In scripts without blanks between words (Chinese, Japanese, Thai), each
character is a word, so that searches find any part of a sentence. The fields of stems hold Chinese, Japanese and Korean
text as bigrams instead of single characters. They also hold variants of words (``variants``).
"""

import copy
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import tantivy

from muniment.repository.aql import patterns
from muniment.repository.aql.patterns import Gap, Pattern
from muniment.repository.aql.tree import Term, Value
from muniment.repository.index.tantivy import languages, variants
from muniment.repository.index.tantivy.compounds import Compounds
from muniment.repository.index.tantivy.languages import LANGUAGES, MARKS
from muniment.repository.index.text import normal

LONGEST_WORD = 512
"""Words of so many bytes of UTF-8, or more, are not indexed."""

_ASCII = bytes(range(128))
_WILD_WORD = re.compile(r"(?:[^\W_]|[*?])+")

_FEW = 100
_REMEMBERED = 20_000

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


class Way(NamedTuple):
    """A sequence of words by which an object matches a term: the object must hold them one after the other.

    They are stems if ``stems`` is true, otherwise exact words. Each item of ``words`` is a place and a word.
    ``beginning`` is the first word, folded but not reduced to its stem. ``has_bigrams`` says whether some words are
    bigrams. ``language`` is the language of the stems; it is empty for the index's own language. ``counted_as`` gives,
    for each of the words, its stems in every language of the index. It is empty if the term is looked up in one
    language only.
    """

    stems: bool
    words: list[tuple[int, str]]
    beginning: str
    has_bigrams: bool = False
    language: str = ""
    counted_as: Sequence[Sequence[str]] = ()


class Analyser:
    """Splits text into words. The index, the excerpts and ``aql/evaluate`` use the same analyser.

    ``language`` is the analyser's own language, and ``others`` are further languages of texts; all are from
    ``LANGUAGES``. A method that takes the language of a text takes one of ``others``, or an empty string for the
    analyser's own language. ``stop_words`` are further stop words, besides those of the language. Without ``varied``,
    stems have neither bigrams nor variants, as in indexes of earlier formats. ``compounds`` maps a language to what
    takes its compounds apart. Raises ValueError for an unknown language.
    """

    def __init__(
        self,
        language: str = "English",
        stop_words: Iterable[str] = (),
        *,
        varied: bool = True,
        others: Collection[str] = (),
        compounds: Mapping[str, Compounds] = {},
    ) -> None:
        for each in (language, *others):
            if each not in LANGUAGES:
                raise ValueError(f"There is no stemming for {each!r}; choose one of {', '.join(sorted(LANGUAGES))}.")
        self.language = language
        self.others = tuple(sorted(set(others) - {language}))
        self._stems_of = {each: _stemming(each) for each in self.others}
        self._parts_of = {"" if each == language else each: one.parts for each, one in compounds.items()}
        self.varied = varied
        self.exact_words: tantivy.TextAnalyzer = _folding().build()
        self.stems: tantivy.TextAnalyzer = _stemming(language)
        self._stop_words = tuple(stop_words)
        self._stopping = _stopping(language, self._stop_words)
        self._asked = ""
        self._asking: dict[str, Analyser] = {}
        self._folded_characters: dict[str, str] = {}

    def exact(self, text: str) -> list[tuple[int, str]]:
        """Split text into pairs of a place and a folded word, not reduced to its stem."""
        return [(each.position, each.text) for each in self.exact_words.pre_tokenize(normal(text)).tokens]

    def asking(self, locale: str) -> "Analyser":
        """Return an analyser that uses the stems and the stop words of the language that a locale names.

        If this analyser does not have the language, or has only one language, return this analyser itself.
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

        ``normal`` must have returned the text.
        """
        if not self.others:
            return ""
        language = languages.of_property(values) or languages.detect(text)
        return language if language in self.others else ""

    def language_of_metadata(self, values: Mapping[str, Sequence[Value]]) -> str:
        """Return the language of an object's metadata if it is one of ``others``, otherwise an empty string.

        The language does not depend on the text, which is hidden from those who may only browse the object.
        """
        return self.language_of(values, "")

    def stem(self, text: str, language: str = "") -> list[tuple[int, str]]:
        """Split text into pairs of a place and a stem."""
        return self._stem(self._in_stems(self._bigrams(normal(text)), language))

    def stem_all(self, text: str, language: str = "") -> list[list[tuple[int, str]]]:
        """Split a text, and each of its variants, into pairs of a place and a stem."""
        return [self._stem(each) for each in self.spellings(normal(text), language)]

    def spellings(self, text: str, language: str = "") -> list[str]:
        """Return a ``normal`` text and its variants, in the form that an index splits into stems."""
        if not self.varied:
            return [text]
        text = variants.bigrams(text)
        return [
            self._in_stems(each, language) for each in (text, *variants.variants(text, self._parts_of.get(language)))
        ]

    def ways(self, text: str) -> list[Way]:
        """List the ways in which an index finds a term. Any way is enough for a match; a text without a word has none.

        If ``asking`` chose one of several languages, texts in another language match only by the words as they are
        written. If a Chinese, Japanese or Korean character stands alone in the term, so that it is in no bigram, the
        term is looked up only as it is written.
        """
        text = normal(text)
        exact_words = self.exact(text)
        if not exact_words:
            return []
        as_written = Way(False, exact_words, exact_words[0][1])
        if self.varied and variants.stands_alone(text):
            return [as_written]
        with_bigrams = self._bigrams(text)
        ways = self._in_each_language(with_bigrams, exact_words[0][1], with_bigrams != text)
        for variant in self._variants_of_words(with_bigrams) if self.varied else ():
            exact = self.exact(variant)
            if exact:
                ways += self._in_each_language(variant, exact[0][1])
        return [*ways, as_written] if self._asked else ways

    def _variants_of_words(self, text: str) -> list[str]:
        """List the variants of a query's words in the query's language, or in all languages if it is not known."""
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
        """Replace each word of a text by its stem in a further language, and mark the stem.

        The text is ``normal``, and its bigrams have been written already. With an empty ``language``, return the text
        as it is.
        """
        if not language:
            return text
        return " ".join([each.text + MARKS[language] for each in self._stems_of[language].pre_tokenize(text).tokens])

    def _bigrams(self, text: str) -> str:
        return variants.bigrams(text) if self.varied else text

    def _stem(self, text: str) -> list[tuple[int, str]]:
        return [(each.position, each.text) for each in self.stems.pre_tokenize(text).tokens]

    def wild(self, text: str) -> list[tuple[int, Pattern]]:
        """Split text with wildcards into patterns of folded words, with their places. Lone wildcards are left out."""
        words: list[Pattern] = []
        for chunk in _WILD_WORD.findall(normal(text)):
            pieces = tuple(
                piece if isinstance(piece, Gap) else "".join(word for _, word in self.exact(piece))
                for piece in patterns.read(chunk).pieces
            )
            if any(isinstance(piece, str) and piece for piece in pieces):
                words.append(Pattern(pieces))
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
        """Return the words that are no stop words, or all words if all are stop words."""
        return [word for word in words if self._stopping.analyze(normal(word.text))] or words

    def is_stop_word(self, text: str) -> bool:
        """Return whether a text is nothing but stop words."""
        return not self._stopping.analyze(normal(text))

    def flatten(self, text: str) -> str:
        """Fold a ``normal`` text character by character, so that every character keeps its place.

        A character that belongs to no word may become a blank; beyond ASCII, it always does.
        """
        if text.isascii():
            return text.lower()
        odd = set(text.encode().translate(None, _ASCII).decode())
        if len(odd) > _FEW:
            folded_to = {character: self._fold(character) for character in set(text)}
            return "".join(map(folded_to.__getitem__, text))
        for character in sorted(odd):
            folded_character = self._fold(character)
            if folded_character != character:
                text = text.replace(character, folded_character)
        return text.lower()

    def _fold(self, character: str) -> str:
        folded_character = self._folded_characters.get(character)
        if folded_character is None:
            if len(self._folded_characters) > _REMEMBERED:
                self._folded_characters.clear()
            words = self.exact(character)
            folded_character = self._folded_characters[character] = words[0][1][0] if words else " "
        return folded_character

    def spans(self, text: str, stemmed: bool, most: int | None = None, language: str = "") -> list[Span]:
        """Split a ``normal`` text into spans of words, or of stems. With ``most``, return at most so many."""
        if not (stemmed and self.varied and (language or variants.has_bigrams(text))):
            words = self.stems if stemmed else self.exact_words
            return [
                Span(each.position, each.text, each.char_offset_from, each.char_offset_to)
                for each in words.pre_tokenize(text).tokens[:most]
            ]
        with_bigrams = variants.bigrams_with_places(text)
        words = self._stems_of[language] if language else self.stems
        spans = [
            Span(
                each.position,
                each.text,
                with_bigrams.starts[each.char_offset_from],
                with_bigrams.ends[each.char_offset_to - 1],
            )
            for each in words.pre_tokenize(with_bigrams.text).tokens[:most]
        ]
        if not language:
            return spans
        marked = dict(self._stem(" ".join([span.word + MARKS[language] for span in spans])))
        return [span._replace(place=at, word=marked[at]) for at, span in enumerate(spans) if at in marked]

    def all_spans(self, text: str, stemmed: bool, language: str = "") -> list[Span]:
        """Split a ``normal`` text as ``spans`` does. With ``stemmed``, the stems of the text's variants follow.

        The stems of a variant cover the characters for which it stands. As in an index, there is a gap of one place
        before each variant.
        """
        spans = self.spans(text, stemmed, language=language)
        if not (stemmed and self.varied):
            return spans
        place = spans[-1].place + 2 if spans else 0
        with_bigrams = variants.bigrams_with_places(text)
        for variant in variants.variants_with_places(with_bigrams.text, self._parts_of.get(language)):
            for piece in variant:
                start, end = with_bigrams.starts[piece.start], with_bigrams.ends[piece.end - 1]
                stems = self._stem(self._in_stems(piece.text, language))
                spans += [Span(place + at, stem, start, end) for at, stem in stems]
                place += max(len(stems), 1)
            place += 1
        return spans


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
    """Make an analyser that leaves out the stop words of a language, and the words of ``more``."""
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    words = words.filter(
        tantivy.Filter.custom_stopword([*_QUESTION_WORDS.get(language, []), *(word.lower() for word in more)])
    )
    return (words if language in _WITHOUT_STOP_LIST else words.filter(tantivy.Filter.stopword(language))).build()
