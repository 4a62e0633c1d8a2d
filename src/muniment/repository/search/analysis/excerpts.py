"""Which part of a text shows best why it was found?

If no word is found as written, words are compared by their variants.

The excerpt depends on the text and the query alone, never on other documents.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

from muniment.ground.caches import Cache
from muniment.repository.search.analysis import cutting, variants
from muniment.repository.search.analysis.analysis import Analyser, Span, Way
from muniment.repository.search.analysis.text import BREAK
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.keywords import UNSPACED
from muniment.repository.search.aql.patterns import Pattern
from muniment.repository.search.aql.tree import Phrase, Term, Wild

_WINDOW = cutting.LENGTH - 80
_EACH = 4
_STOP_WORD = 0.1
_FIRST_PIECE = 192
_PIECE = 65_536
_STEPS = 20_000
_RARE = 8
_SEEKING = 2
_SPLITTING = 20
_FLATTENING = 2_000
_SPLIT_WHOLE = 4_000
_AROUND = 200
_REMEMBERED = 200
_MOST_REMEMBERED = 5000
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_](?:(?![{UNSPACED}{BREAK}])(?:[^\W_]|[^\x00-\x7f\s])){{0,599}}")
_NEXT_WORD = r"(?:[a-z0-9]|[^\x00-\x7f])*+[\x00-/:-@\[-`{-\x7f]++"
_ASCII_GAP = re.compile(r"[\x00-/:-@\[-`{-\x7f]{1,40}(?=[A-Za-z0-9])")
K = TypeVar("K")


class Finder:
    """Finds where a query's leaves (words and phrases) match in a text. Any thread may use it."""

    def __init__(self, analyser: Analyser, leaves: Sequence[Term | Wild | Phrase]) -> None:
        self._analyser = analyser
        self._patterns = [_patterns(analyser, leaf, number) for number, leaf in enumerate(leaves)]
        self._all_patterns = [pattern for patterns in self._patterns for pattern in patterns]
        self._groups = _group_by(self._all_patterns, lambda pattern: pattern.group)
        self._seekers = {group: [group.seeker(wide=wide) for wide in (False, True)] for group in self._groups}
        self._kinds = _group_by(self._all_patterns, lambda pattern: pattern.kind)
        self._all_wanted = _wanted(self._all_patterns)
        self._beginners: Cache[tuple[_Group, str], Sequence[_Pattern]] = Cache(
            min(_REMEMBERED * len(self._all_patterns), _MOST_REMEMBERED)
        )

    def excerpt(
        self, text: str, leaves: Collection[int] | None = None, *, thorough: bool = True, language: str = ""
    ) -> str | None:
        """Cut out the part where most of these leaves match, the first of equals; None without a match.

        A long text is searched only to a piece with matches (see ``_places``), two pieces if not ``thorough``.

        ``leaves`` are indexes, None all of them; an empty ``language`` is the analyser's own.
        """
        places = self._places(text, self._wanted_of(leaves, language), thorough)
        return cutting.cut(text, *_best(places)) if places else None

    def marks(self, excerpt: str) -> tuple[tuple[int, int], ...]:
        """Return the matches of all leaves in every language, each with its first index and the one after its last."""
        begin = len(excerpt) - len(excerpt.lstrip(cutting.MORE))
        matches = {
            (begin + spans[at].start, begin + pattern.end(spans, at))
            for pattern, spans, at in self._starts(excerpt.strip(cutting.MORE), set(self._all_patterns))
        }
        return tuple(_merge(sorted(matches)))

    def occurs(self, text: str, leaf: int, language: str = "") -> bool:
        """Return whether the leaf with this index matches in a text, as far as ``_places`` searches the text."""
        return bool(self._places(text, self._wanted_of([leaf], language), True))

    def _wanted_of(self, leaves: Collection[int] | None, language: str) -> "_Wanted":
        has_others = bool(self._analyser.others)
        if leaves is None and not has_others:
            return self._all_wanted
        patterns = self._all_patterns if leaves is None else [each for at in leaves for each in self._patterns[at]]
        if has_others:
            patterns = [each for each in patterns if not each.kind.stemmed or each.kind.language == language]
        return _wanted(patterns)

    def _places(self, text: str, wanted: "_Wanted", thorough: bool) -> list["_Place"]:
        """List the first matches of each pattern in the pieces, of 65,536 characters, that are searched.

        The search ends after a piece in which every leaf matches; from the second on, after one by which any pattern
        has matched. For a single leaf, one match of each pattern is enough, and the first piece is short, because the
        beginning often holds it.

        It also ends after ``_STEPS`` steps: seeking a beginning counts as ``_SEEKING``, splitting as ``_SPLITTING``. If
        a ``thorough`` search finds nothing, variants get half as many.
        """
        patterns, all_leaves, overlap, group_sizes = wanted
        if not patterns:
            return []
        steps, most = _STEPS, _EACH if len(all_leaves) > 1 else 1
        begin, end = 0, _PIECE if len(all_leaves) > 1 else _FIRST_PIECE
        places: list[_Place] = []
        while begin < len(text) and steps > 0:
            before = max(begin - 1, 0)  # The character before says whether a word begins here.
            flat = self._analyser.flatten(text[before : end + overlap])
            left = dict.fromkeys(patterns, most)
            for group, open_patterns in group_sizes:
                for found in self._seekers[group][flat.blurred].finditer(flat.text):
                    at, steps = found.start(), steps - 1
                    place = before + flat.place(at)
                    if not open_patterns or steps <= 0 or (most == 1 and places and place > places[-1][0]):
                        break
                    if place >= begin and (group.inside or flat.begins_word(at)):
                        matching, taken_steps = self._matching(group, text, place, left)
                        steps -= taken_steps
                        for pattern in matching:
                            places.append((place, pattern))
                            left[pattern] -= 1
                            open_patterns -= not left[pattern]
            if places:
                places += self._near(text, places, [pattern for pattern in patterns if not left[pattern]])
            if (begin and (places or not thorough)) or {pattern.leaf for _, pattern in places} == all_leaves:
                break
            begin, end = end, end + _PIECE
        return places or (self._variants(text, patterns) if thorough else [])

    def _near(self, text: str, places: Sequence["_Place"], used_up: Sequence["_Pattern"]) -> list["_Place"]:
        """Only the first matches of ``used_up`` are among the ``places``."""
        rare = [at for at, pattern in places if pattern not in used_up][:_RARE] if used_up else []
        if not rare:
            return []
        leaves = {pattern.leaf for _, pattern in places}
        if any({pattern.leaf for at, pattern in places if abs(at - one) < _WINDOW} == leaves for one in rare):
            return []
        near: list[_Place] = []
        for at in rare:
            blank = text.find(" ", at - _WINDOW, at) if at > _WINDOW else 0
            begin = blank if blank >= 0 else at
            part = text[begin : at + _WINDOW]
            # Most common words are there as written, and what is written comes before its variants.
            first = self._first(part, used_up, self._first(part, used_up, {}, as_written=True))
            near += [(begin + first[pattern], pattern) for pattern in used_up if pattern in first]
        return near

    def _variants(self, text: str, patterns: Sequence["_Pattern"]) -> list["_Place"]:
        """The beginning of the text is split into words.

        Then the text is searched for the beginnings of the patterns within words, and beside signs, and only the text
        around them is split. Each piece counts as ``_FLATTENING`` steps.
        """
        if found := self._by_splitting(text[:_SPLIT_WHOLE], patterns):
            return found
        steps = _STEPS // 2
        beginnings = sorted({pattern.beginning for pattern in patterns if pattern.beginning})
        for begin in range(0, len(text), _PIECE):
            piece = text[begin : begin + _PIECE + _AROUND]
            for flat in (self._analyser.flatten(piece, spelled=spelled) for spelled in (False, True)):
                for sought in beginnings:
                    at, done = flat.text.find(sought), 0
                    while at >= 0 and steps > 0:
                        place, steps = flat.place(at), steps - _SEEKING
                        if place >= done:
                            start = piece.rfind(" ", max(0, place - _AROUND), place) + 1 or max(0, place - _AROUND)
                            done = place + _AROUND
                            steps -= _AROUND
                            if found := self._by_splitting(piece[start:done], patterns):
                                return [(begin + start + first, pattern) for first, pattern in found]
                        at = flat.text.find(sought, at + 1)
            steps -= _FLATTENING
            if steps <= 0:
                break
        return []

    def _matching(
        self, group: "_Group", text: str, at: int, left: Mapping["_Pattern", int]
    ) -> tuple[list["_Pattern"], int]:
        word, steps = None if group.inside else _WORD.match(text, at), _SEEKING
        beginners: Sequence[_Pattern] = self._groups[group]
        if word is not None:
            memory = self._beginners.recall((group, word[0]))
            if memory is None:
                steps += _SPLITTING
                memory = self._beginners.keep((group, word[0]), self._beginning_with(word[0], group))
            beginners = memory
            if not beginners:
                return [], steps
        matching: list[_Pattern] = []
        spans_of: dict[tuple[_Kind, int, int], list[Span]] = {}
        for pattern in beginners:
            steps += 1
            if not left.get(pattern):
                continue
            matches = True if word is not None and len(pattern.words) == 1 else None
            if matches is None and pattern.phrase:
                matches = _stands_at(pattern.phrase, text, at)
            if matches is None:
                form = pattern.kind, pattern.reach, pattern.places
                if form not in spans_of:
                    steps += _SPLITTING
                    part = text[at : at + pattern.reach]
                    spans_of[form] = self._analyser.spans(
                        part, pattern.kind.stemmed, pattern.places, pattern.kind.language
                    )
                matches = pattern.matches(spans_of[form], 0)
            if matches:
                matching.append(pattern)
        return matching, steps

    def _beginning_with(self, word: str, group: "_Group") -> Sequence["_Pattern"]:
        beginners: list[_Pattern] = []
        for kind, of_kind in _group_by(self._groups[group], lambda pattern: pattern.kind).items():
            spans = self._analyser.spans(word, kind.stemmed, 1, kind.language)
            beginners += [pattern for pattern in of_kind if spans and pattern.begins_with(spans[0].word)]
        return tuple(beginners)

    def _by_splitting(self, text: str, patterns: Sequence["_Pattern"]) -> list["_Place"]:
        first = self._first(text, patterns, {})
        return [(first[pattern], pattern) for pattern in patterns if pattern in first]

    def _first(
        self, text: str, patterns: Sequence["_Pattern"], known: Mapping["_Pattern", int], *, as_written: bool = False
    ) -> Mapping["_Pattern", int]:
        """Return where each pattern matches first."""
        missing, first = set(patterns).difference(known), dict(known)
        for pattern, spans, at in self._starts(text, missing, as_written=as_written):
            first[pattern] = spans[at].start
            missing.remove(pattern)
        return first

    def _starts(
        self, text: str, wanted: set["_Pattern"], *, as_written: bool = False
    ) -> Iterator[tuple["_Pattern", Sequence[Span], int]]:
        """Only patterns in ``wanted`` are sought; the caller may remove some between two matches. With ``as_written``,
        variants and joined words are left out.

        The text is split only once for all patterns that need its words in the same form, and each of its words is
        compared with all of them only once.
        """
        for kind, of_kind in self._kinds.items():
            if wanted.isdisjoint(of_kind):
                continue
            splitting = self._analyser.spans if as_written else self._analyser.all_spans
            spans = splitting(text, kind.stemmed, language=kind.language)
            beginners = _by_first_word({span.word for span in spans}, of_kind)
            for at, span in enumerate(spans):
                for pattern in beginners.get(span.word, ()):
                    if pattern in wanted and (len(pattern.words) == 1 or pattern.matches(spans, at)):
                        yield pattern, spans, at


class _Wanted(NamedTuple):
    """What is sought in a text, with its leaves, the longest beginning, and how many patterns each group has.

    A long beginning is rare, so it comes first. For a single leaf, others are sought in front of its match alone.
    """

    patterns: Sequence["_Pattern"]
    leaves: set[int]
    overlap: int
    group_sizes: Sequence[tuple["_Group", int]]


def _wanted(patterns: Sequence["_Pattern"]) -> _Wanted:
    sizes = Counter([pattern.group for pattern in patterns])
    return _Wanted(
        patterns,
        {pattern.leaf for pattern in patterns},
        max([len(pattern.beginning) for pattern in patterns], default=0),
        sorted(sizes.items(), key=lambda each: -len(each[0].beginning)),
    )


def _best(places: list["_Place"]) -> tuple[int, int]:
    if len(places) == 1:
        return places[0][0], places[0][0]
    places.sort(key=operator.itemgetter(0))
    counts: dict[int, int] = dict.fromkeys([pattern.leaf for _, pattern in places], 0)
    best, window = 0.0, (0, 0)
    weight, end, last = 0.0, 0, len(places)
    for at, pattern in places:
        while end < last and places[end][0] <= at + _WINDOW:
            entering = places[end][1]
            if not counts[entering.leaf]:
                weight += entering.weight
            counts[entering.leaf] += 1
            end += 1
        if weight > best + _STOP_WORD / 2:
            best, window = weight, (at, places[end - 1][0])
            if end == last:
                break
        counts[pattern.leaf] -= 1
        if not counts[pattern.leaf]:
            weight -= pattern.weight
    return window


def _merge(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged_ranges: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged_ranges and start < merged_ranges[-1][1]:
            merged_ranges[-1] = (merged_ranges[-1][0], max(end, merged_ranges[-1][1]))
        else:
            merged_ranges.append((start, end))
    return merged_ranges


class _Leaf(NamedTuple):
    """A leaf of a query: its number, its weight in an excerpt, and the most characters that it may match."""

    number: int
    weight: float
    reach: int


class _Kind(NamedTuple):
    """Which form of a text's words a pattern needs: exact words, or stems of a language (empty: the analyser's own)."""

    stemmed: bool
    language: str


class _Group(NamedTuple):
    """Patterns that are sought at the same places of a text: those with this beginning.

    The next word must begin with the letter ``following``, if there is one.
    """

    beginning: str
    inside: bool
    following: str

    def seeker(self, *, wide: bool) -> re.Pattern[str]:
        """Make the expression that finds the places in a folded text where ASCII letters say that a word may begin.

        It also looks at the next word unless it is ``wide``, as a folded text that is ``blurred`` needs it.
        """
        sought = re.escape(self.beginning)
        begin = sought if self.inside else f"{sought}(?<![a-z0-9]{sought})"
        return re.compile(begin + _NEXT_WORD + self.following if self.following and not wide else begin)


class _Pattern:
    """A sequence of words that matches a leaf; a text is searched for ``beginning`` first.

    Each item of ``words`` is a place, and wildcard patterns of which one must match there. With ``inside``, a match may
    begin inside a word. ``phrase`` holds the words of a phrase without gaps.
    """

    def __init__(
        self,
        leaf: _Leaf,
        words: Sequence[tuple[int, Sequence[Pattern]]],
        beginning: str,
        kind: _Kind = _Kind(stemmed=False, language=""),  # noqa: B008 - it does not change
        *,
        inside: bool = False,
    ) -> None:
        self.leaf, self.weight, self.reach = leaf
        self.words, self.beginning, self.kind = words, beginning, kind
        # No stemmer changes the first letter of a word in ASCII.
        following = str(words[1][1][0].pieces[0])[:1] if kind.stemmed and words[1:] and words[1][0] == 1 else ""
        is_told = not inside and beginning and beginning.isascii() and following.isascii()
        self.group = _Group(beginning, inside, following if is_told else "")
        first_words = words[0][1]
        self.literals = frozenset([str(each.pieces[0]) for each in first_words if len(each.pieces) == 1])
        self.wild = [each for each in first_words if len(each.pieces) > 1]
        self.phrase: Sequence[str] = ()

    @cached_property
    def _is_wild(self) -> Callable[[str], bool]:
        return patterns.matcher(self.wild)

    @property
    def places(self) -> int:
        return self.words[-1][0] - self.words[0][0] + 1

    def end(self, spans: Sequence[Span], at: int) -> int:
        last = spans[at].place + self.words[-1][0] - self.words[0][0]
        return max(span.end for span in spans[at : at + self.places] if span.place <= last)

    def begins_with(self, word: str) -> bool:
        return word in self.literals or bool(self.wild and word.startswith(self.beginning) and self._is_wild(word))

    def matches(self, spans: Sequence[Span], at: int) -> bool:
        if at >= len(spans):
            return False
        first_place, start = self.words[0][0], spans[at].place
        word_at = {span.place: span.word for span in spans[at : at + self.places]}
        for place, alternatives in self.words:
            word = word_at.get(start + place - first_place)
            if word is None or not any(_matches(word, pattern) for pattern in alternatives):
                return False
        return True


def _group_by(patterns: Sequence[_Pattern], key: Callable[[_Pattern], K]) -> dict[K, list[_Pattern]]:
    groups: dict[K, list[_Pattern]] = {}
    for pattern in patterns:
        groups.setdefault(key(pattern), []).append(pattern)
    return groups


def _by_first_word(words: set[str], patterns: Sequence[_Pattern]) -> dict[str, list[_Pattern]]:
    beginners: dict[str, list[_Pattern]] = {}
    for pattern in patterns:
        others = {word for word in words if pattern.begins_with(word)} if pattern.wild else words & pattern.literals
        for word in others:
            beginners.setdefault(word, []).append(pattern)
    return beginners


def _patterns(analyser: Analyser, leaf: Term | Wild | Phrase, number: int) -> list[_Pattern]:
    about = _Leaf(number, 1.0, 4 * len(leaf.text) + 200)
    match leaf:
        case Wild():
            words = analyser.wild(leaf.text)
            each_word = [(place, (pattern,)) for place, pattern in words]
            return [_Pattern(about, each_word, _literal_beginning(words[0][1]))] if words else []
        case Phrase():
            exact = analyser.exact(leaf.text)
            if not exact:
                return []
            pattern = _Pattern(about, _literal(exact), exact[0][1])
            if [place for place, _ in exact] == list(range(len(exact))):
                pattern.phrase = [word for _, word in exact]
            return [pattern]
        case Term():
            if analyser.is_stop_word(leaf.text):
                about = about._replace(weight=_STOP_WORD)
            ways = analyser.ways(leaf.text)
            term_patterns = [_of_way(about, way) for way in ways]
            if ways and (thousands := variants.thousands(ways[0].words[0][1])):
                kind = _Kind(True, ways[0].language)
                term_patterns.append(_Pattern(about, _literal([*enumerate(thousands)]), thousands[0], kind))
            return [*term_patterns, _fuzzy(about, analyser, leaf, ways[0])] if leaf.fuzzy and ways else term_patterns
        case _:
            assert_never(leaf)


def _of_way(about: _Leaf, way: Way) -> _Pattern:
    if not way.stems:
        return _Pattern(about, _literal(way.words), way.beginning)
    pairs = zip(way.beginning, way.words[0][1], strict=False)
    common_length = next((at for at, (a, b) in enumerate(pairs) if a != b), len(way.words[0][1]))
    beginning = way.beginning[: max(common_length, 1)]
    if len(beginning) > 3:
        # Other forms of a word may end differently from its stem (happi, happy; love, loving).
        beginning = beginning.rstrip("aeiouy") or beginning
    return _Pattern(about, _literal(way.words), beginning, _Kind(True, way.language), inside=way.has_bigrams)


def _fuzzy(about: _Leaf, analyser: Analyser, term: Term, way: Way) -> _Pattern:
    exact = analyser.exact(term.text)
    # A stem is the beginning of its forms, or nearly so.
    stem = Pattern((way.words[0][1], patterns.Gap.RUN))
    return _Pattern(about, [(exact[0][0], (*patterns.similar(exact[0][1]), stem)), *_literal(exact[1:])], "")


def _literal(words: Sequence[tuple[int, str]]) -> list[tuple[int, Sequence[Pattern]]]:
    return [(place, (Pattern((word,)),)) for place, word in words]


_Place: TypeAlias = tuple[int, _Pattern]
"""The index of the character where a pattern matches in a text, and the pattern."""


def _stands_at(phrase: Sequence[str], text: str, at: int) -> bool | None:
    """Return whether these words follow each other from a place on; None if only splitting the text can tell."""
    for number, word in enumerate(phrase):
        if number:
            gap = _ASCII_GAP.match(text, at)
            if gap is None:
                here = text[at : at + 1]
                return False if here.isascii() and here.isalnum() else None
            at = gap.end()
        end = at + len(word)
        here = text[at:end]
        if not here.isascii():
            return None
        if here.lower() != word:
            return False
        at = end
    following = text[at : at + 1]
    return not following.isalnum() if following.isascii() else None


def _matches(word: str, pattern: Pattern) -> bool:
    return pattern.pieces == (word,) or (len(pattern.pieces) > 1 and pattern.matches(word))


def _literal_beginning(pattern: Pattern) -> str:
    return pattern.pieces[0] if isinstance(pattern.pieces[0], str) else ""
