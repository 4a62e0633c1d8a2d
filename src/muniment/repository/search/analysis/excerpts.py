"""Which part of a text shows best why it was found?

If no word is found as written, words are compared by their variants.

The excerpt depends on the text and the query alone, never on other documents.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from muniment.repository.search.analysis import cutting
from muniment.repository.search.analysis.analysis import Analyser, Span
from muniment.repository.search.analysis.sought import (
    STOP_WORD,
    Beginning,
    Kind,
    WordSequence,
    by_first_word,
    group_by,
    sequences,
)
from muniment.repository.search.analysis.text import BREAK, FlatText
from muniment.repository.search.aql.keywords import UNSPACED
from muniment.repository.search.aql.tree import Phrase, Term, Wild

_WINDOW = cutting.LENGTH - 80
_EACH = 4
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
_WORD = re.compile(
    rf"[A-Za-z0-9]{{1,600}}+(?![^\x00-\x7f])|[{UNSPACED}]"
    rf"|[^\W_](?:(?![{UNSPACED}{BREAK}])(?:[^\W_]|[^\x00-\x7f\s])){{0,599}}"
)
_ASCII_GAP = re.compile(r"[\x00-/:-@\[-`{-\x7f]{1,40}(?=[A-Za-z0-9])")


class Finder:
    """Finds where a query's leaves (words and phrases) match in a text. Any thread may use it."""

    def __init__(self, analyser: Analyser, leaves: Sequence[Term | Wild | Phrase]) -> None:
        self._analyser = analyser
        self._patterns = [sequences(analyser, leaf, number) for number, leaf in enumerate(leaves)]
        self._all_patterns = [pattern for patterns in self._patterns for pattern in patterns]
        self._groups = [Beginning(*each) for each in group_by(self._all_patterns, lambda each: each.sought).items()]
        self._groups.sort(key=lambda group: -len(group.sought.beginning))
        self._kinds = group_by(self._all_patterns, lambda pattern: pattern.kind)
        self._wanted: dict[tuple[str, tuple[int, ...] | None], _Wanted] = {}
        self._beginners: dict[tuple[Beginning, str], Sequence[WordSequence]] = {}
        self._most_remembered = min(_REMEMBERED * len(self._all_patterns), _MOST_REMEMBERED)

    def excerpt(
        self, text: str, leaves: Sequence[int] | None = None, *, thorough: bool = True, language: str = ""
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

    def _wanted_of(self, leaves: Sequence[int] | None, language: str) -> "_Wanted":
        key = language, None if leaves is None else tuple(leaves)
        wanted = self._wanted.get(key)
        if wanted is None:
            if len(self._wanted) * len(self._all_patterns) >= _MOST_REMEMBERED:
                self._wanted.clear()
            wanted = self._wanted[key] = self._make_wanted(leaves, language)
        return wanted

    def _make_wanted(self, leaves: Sequence[int] | None, language: str) -> "_Wanted":
        patterns = self._all_patterns if leaves is None else [each for at in leaves for each in self._patterns[at]]
        if self._analyser.others:
            patterns = [each for each in patterns if not each.kind.stemmed or each.kind.language == language]
        sought = {pattern.sought for pattern in patterns}
        return _Wanted(
            patterns,
            {pattern.leaf for pattern in patterns},
            max([len(pattern.beginning) for pattern in patterns], default=0),
            [group for group in self._groups if group.sought in sought],
        )

    def _places(self, text: str, wanted: "_Wanted", thorough: bool) -> list["_Place"]:
        """List the first matches of each pattern in the pieces, of 65,536 characters, that are searched.

        The search ends after a piece in which every leaf matches; from the second on, after one by which any pattern
        has matched. For a single leaf, one match of each pattern is enough, and the first piece is short, because the
        beginning often holds it.

        It also ends after ``_STEPS`` steps: seeking a beginning counts as ``_SEEKING``, splitting as ``_SPLITTING``. If
        a ``thorough`` search finds nothing, variants get half as many.
        """
        patterns, all_leaves, overlap, groups = wanted
        if not patterns:
            return []
        steps, most = _STEPS, _EACH if len(all_leaves) > 1 else 1
        begin, end = 0, _PIECE if len(all_leaves) > 1 else _FIRST_PIECE
        places: list[_Place] = []
        while begin < len(text) and steps > 0:
            before = max(begin - 1, 0)  # The character before says whether a word begins here.
            piece = _Piece(text, self._analyser.flatten(text[before : end + overlap]), before)
            left = dict.fromkeys(patterns, most)
            for group in groups:
                last = places[-1][0] if places and most == 1 else len(text)
                steps = self._seek(group, piece, (begin, last), left, places, steps, first_only=most == 1)
            if places and most > 1:
                places += self._near(piece, groups, places, {pattern: 1 for pattern in patterns if not left[pattern]})
            if (begin and (places or not thorough)) or {pattern.leaf for _, pattern in places} == all_leaves:
                break
            begin, end = end, end + _PIECE
        return places or (self._variants(text, patterns) if thorough else [])

    def _seek(
        self,
        group: "Beginning",
        piece: "_Piece",
        within: tuple[int, int],
        left: dict["WordSequence", int],
        places: list["_Place"],
        steps: int,
        *,
        first_only: bool = False,
    ) -> int:
        """Add to ``places`` as many matches of each pattern as are ``left``, and return how many steps are. With
        ``first_only``, no place behind a match is looked at.
        """
        text, flat, before = piece
        begin, last = within
        is_sure = group.sought.inside or flat.text.isascii()
        still_open = len([pattern for pattern in group.patterns if left.get(pattern)])
        if not still_open:
            return steps
        for at in group.candidates(flat, flat.at(begin - before) if begin > before else 0):
            steps -= 1
            place = before + flat.place(at)
            if steps <= 0 or place > last:
                break
            if place >= begin and (is_sure or flat.begins_word(at)):
                matching, taken_steps = self._matching(group, text, place, left)
                steps -= taken_steps
                for pattern in matching:
                    places.append((place, pattern))
                    left[pattern] -= 1
                    still_open -= not left[pattern]
                    last = place if first_only else last
                if not still_open:
                    break
        return steps

    def _near(
        self,
        piece: "_Piece",
        groups: Sequence["Beginning"],
        places: Sequence["_Place"],
        used_up: Mapping["WordSequence", int],
    ) -> list["_Place"]:
        """Of ``used_up``, only the first matches are in ``places``. So many of each are sought near a rare one."""
        rare = [at for at, pattern in places if pattern not in used_up][:_RARE] if used_up else []
        if not rare:
            return []
        leaves = {pattern.leaf for _, pattern in places}
        if any({pattern.leaf for at, pattern in places if abs(at - one) < _WINDOW} == leaves for one in rare):
            return []
        near: list[_Place] = []
        text, flat, before = piece
        groups = [group for group in groups if any(pattern in used_up for pattern in group.patterns)]
        for at in rare:
            blank = text.find(" ", at - _WINDOW, at) if at > _WINDOW else 0
            begin, end = blank if blank >= 0 else at, at + _WINDOW
            window = flat.text[flat.at(max(begin - before, 0)) : flat.at(end - before)]
            left = {**used_up}
            for group in groups:
                if group.sought.beginning in window:
                    self._seek(group, piece, (begin, end - 1), left, near, _STEPS)
            missing = [pattern for pattern in used_up if left[pattern]]
            if missing and self._analyser.varies(text[begin:end], [each.beginning in window for each in missing]):
                near += [(begin + first, each) for first, each in self._by_splitting(text[begin:end], missing)]
        return near

    def _variants(self, text: str, patterns: Sequence["WordSequence"]) -> list["_Place"]:
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
        self, group: "Beginning", text: str, at: int, left: Mapping["WordSequence", int]
    ) -> tuple[list["WordSequence"], int]:
        word, steps = None if group.sought.inside else _WORD.match(text, at), _SEEKING
        beginners: Sequence[WordSequence] = group.patterns
        if word is not None:
            memory = self._beginners.get((group, word[0]))
            if memory is None:
                steps += _SPLITTING
                memory = self._beginning_with(word[0], group)
            beginners = memory
        matching: list[WordSequence] = []
        spans_of: dict[tuple[Kind, int, int], list[Span]] = {}
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

    def _beginning_with(self, word: str, group: "Beginning") -> Sequence["WordSequence"]:
        beginners: list[WordSequence] = []
        for kind, of_kind in group_by(group.patterns, lambda pattern: pattern.kind).items():
            spans = self._analyser.spans(word, kind.stemmed, 1, kind.language)
            beginners += [pattern for pattern in of_kind if spans and pattern.begins_with(spans[0].word)]
        if len(self._beginners) >= self._most_remembered:
            self._beginners.clear()
        self._beginners[group, word] = beginners
        return beginners

    def _by_splitting(self, text: str, patterns: Sequence["WordSequence"]) -> list["_Place"]:
        missing, first = set(patterns), dict[WordSequence, int]()
        for pattern, spans, at in self._starts(text, missing):
            first[pattern] = spans[at].start
            missing.remove(pattern)
        return [(first[pattern], pattern) for pattern in patterns if pattern in first]

    def _starts(self, text: str, wanted: set["WordSequence"]) -> Iterator[tuple["WordSequence", Sequence[Span], int]]:
        """Only patterns in ``wanted`` are sought; the caller may remove some between two matches.

        The text is split only once for all patterns that need its words in the same form, and each of its words is
        compared with all of them only once.
        """
        for kind, of_kind in self._kinds.items():
            if wanted.isdisjoint(of_kind):
                continue
            spans = self._analyser.all_spans(text, kind.stemmed, language=kind.language)
            beginners = by_first_word({span.word for span in spans}, of_kind)
            for at, span in enumerate(spans):
                for pattern in beginners.get(span.word, ()):
                    if pattern in wanted and (len(pattern.words) == 1 or pattern.matches(spans, at)):
                        yield pattern, spans, at


class _Wanted(NamedTuple):
    """What is sought in a text, with its leaves, the longest beginning, and the groups.

    A long beginning is rare, so it comes first. For a single leaf, others are sought in front of its match alone.
    """

    patterns: Sequence["WordSequence"]
    leaves: set[int]
    overlap: int
    groups: Sequence["Beginning"]


class _Piece(NamedTuple):
    """A text, and a piece of it from the character with the index ``before`` on, folded."""

    text: str
    flat: FlatText
    before: int


def _best(places: list["_Place"]) -> tuple[int, int]:
    if len(places) == 1:
        return places[0][0], places[0][0]
    places.sort(key=operator.itemgetter(0))
    weights = {pattern.leaf: pattern.weight for _, pattern in places}
    counts, enough = dict.fromkeys(weights, 0), sum(weights.values()) - STOP_WORD / 2
    best, window = 0.0, (0, 0)
    weight, end, last = 0.0, 0, len(places)
    for at, pattern in places:
        while end < last and places[end][0] <= at + _WINDOW:
            entering = places[end][1]
            if not counts[entering.leaf]:
                weight += entering.weight
            counts[entering.leaf] += 1
            end += 1
        if weight > best + STOP_WORD / 2:
            best, window = weight, (at, places[end - 1][0])
            if end == last or best > enough:
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


_Place: TypeAlias = tuple[int, WordSequence]
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
