"""How is a query tree compiled into a query of the built-in engine?

Two features of the engine are never used, because their results are silently incomplete or wrong: phrase-prefix
queries, and the query parser for strings. A prefix becomes a fuzzy prefix query with distance zero. A prefix after
other words becomes the last part of a phrase of regular expressions: if more than 16,384 words match it, the engine
refuses the query and leaves no word out. A range of strings becomes a regular expression over the term dictionary,
which reads only the terms of the range. A range of numbers goes through the parser, which gets integers only.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeAlias, assert_never

import tantivy
from tantivy import Occur, Query

from muniment.memories import Memory
from muniment.repository.aql import tree
from muniment.repository.aql.tree import (
    Both,
    Carries,
    Either,
    Expression,
    ExpressionSet,
    Fulltext,
    Keywords,
    Phrase,
    Property,
    PropertyList,
    PropertyRange,
    Term,
    Value,
    Without,
)
from muniment.repository.folding import fold
from muniment.repository.index.contract import Statistics, Visible
from muniment.repository.index.tantivy import fields
from muniment.repository.index.tantivy.analysis import Analyser
from muniment.repository.refusals import BadQuery

_SEVERAL = 100
"""The number of terms up to which an OR is faster than a set."""

MATCHES = 24
"""The most queries of one ``matching``: a score is a single-precision number, whose significand has 24 bits."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAST_CHARACTER = 0x10FFFF
_LONGEST_EXPRESSION = 1000

Leaf: TypeAlias = Term | Phrase
"""A word or phrase of the keywords, which is looked up in the index."""

PermissionMemory: TypeAlias = Memory[tuple[frozenset[int], str], Query]
"""Remembers the query for the objects that carry one of some ACLs or belong to an owner. An ACL weighs 1."""


class CompiledLeaf(NamedTuple):
    """A leaf of a query, and the queries of the engine that find it in the content and in the metadata."""

    leaf: Leaf
    in_content: Query
    in_metadata: Query


class CompiledQuery(NamedTuple):
    """A bound query as queries of the engine, for any caller: objects that match anywhere, or in the metadata alone.

    Without keywords both are one. ``leaves`` are those by which a hit may have been found, each once. With
    ``needs_all`` each hit has matched all of them.
    """

    anywhere: Query
    in_metadata: Query
    leaves: tuple[CompiledLeaf, ...]
    needs_all: bool


class Compiler:
    """Compiles queries for one searcher. If ``statistics`` are given, they replace those of the index in scores.

    ``permissions`` remembers the queries for what ACLs permit, which depend on the schema alone.
    """

    def __init__(
        self,
        index: tantivy.Index,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        analyser: Analyser,
        permissions: "PermissionMemory",
        statistics: Statistics | None = None,
    ) -> None:
        self._index = index
        self._searcher = searcher
        self._schema = schema
        self._analyser = analyser
        self._permissions = permissions
        self._statistics = statistics

    def compile(self, query: tree.Query) -> CompiledQuery:
        """Make the queries for the objects of a query's types that meet its condition. Only keywords give a score."""
        narrowed = [(Occur.Must, _silent(self._terms(fields.TYPE, query.types)))] if query.types else []

        def within(content: bool) -> Query:
            condition = query.condition
            required = [] if condition is None else [(Occur.Must, self._condition(condition, content))]
            return Query.boolean_query([*narrowed, *required] or [(Occur.Must, _silent(Query.all_query()))])

        anywhere = within(content=True)
        by_keywords = query.condition is not None and _has_keywords(query.condition)
        compiled = tuple(
            CompiledLeaf(leaf, self.leaf(leaf, content=True), self.leaf(leaf, content=False))
            for leaf in dict.fromkeys(leaves(query.condition))
        )
        in_metadata = within(content=False) if by_keywords else anywhere
        return CompiledQuery(anywhere, in_metadata, compiled, _needs_all(query.condition))

    def visible(self, query: CompiledQuery, visible: Visible) -> Query:
        """Make the query for those of a query's objects that the caller may see.

        An object that the caller may read may match anywhere. An object that they may only browse must match in the
        metadata.
        """
        if _alike(visible) or query.in_metadata is query.anywhere:
            return _all_of([_silent(self.browsable(visible)), query.anywhere])
        found_anywhere = _all_of([_silent(self.readable(visible)), query.anywhere])
        return _any_of([found_anywhere, _all_of([_silent(self._only_browsable(visible)), query.in_metadata])])

    def browsable(self, visible: Visible) -> Query:
        """Make the query for everything that the caller may browse."""
        return self._permitted(visible, visible.browse_acls, visible.browse)

    def readable(self, visible: Visible) -> Query:
        """Make the query for everything that the caller may read."""
        return self._permitted(visible, visible.read_acls, visible.read)

    def matching(self, keys: Collection[str], queries: Sequence[Query]) -> Query:
        """Make a query for a few objects. Each scores the sum of 2**n over those ``queries`` n that find it.

        A score holds such a sum exactly for up to ``MATCHES`` queries.
        """
        few = (Occur.Must, _silent(self._terms(fields.KEY, keys)))
        found = [(Occur.Should, Query.const_score_query(query, float(1 << n))) for n, query in enumerate(queries)]
        return Query.boolean_query([few, *found])

    def leaf(self, leaf: Leaf, content: bool) -> Query:
        """Make the query for a leaf in the content, or in the metadata."""
        stems, words = (fields.CONTENT, fields.CONTENT_EXACT) if content else (fields.METADATA, fields.METADATA_EXACT)
        match leaf:
            case Phrase():
                return self._words(words, self._analyser.exact(leaf.text))
            case Term(prefix=True):
                return self._beginning(words, self._analyser.exact(leaf.text))
            case Term():
                return self._words(stems, self._analyser.stemmed(leaf.text))
            case _:
                assert_never(leaf)

    def _only_browsable(self, visible: Visible) -> Query:
        browse_acls = self._acls(visible.browse_acls - visible.read_acls)
        not_owned = [(Occur.MustNot, owner) for owner in self._owner(visible)]
        permitted = Query.boolean_query([(Occur.Must, browse_acls), *not_owned]) if not_owned else browse_acls
        return self._apply_decisions(visible, permitted, visible.browse - visible.read)

    def _permitted(self, visible: Visible, acls: frozenset[int], decided: frozenset[str]) -> Query:
        if visible.everything:
            hidden = self._terms(fields.KEY, {fields.POSITION, *visible.hidden})
            return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, hidden)])
        permitted = self._permissions.answer(
            (acls, visible.owner), lambda: _any_of([self._acls(acls), *self._owner(visible)]), len(acls) + 1
        )
        return self._apply_decisions(visible, permitted, decided)

    def _acls(self, acls: frozenset[int]) -> Query:
        return self._terms(fields.ACL, [str(acl) for acl in acls])

    def _owner(self, visible: Visible) -> list[Query]:
        return [self._term(fields.OWNER, visible.owner)] if visible.owner else []

    def _apply_decisions(self, visible: Visible, permitted: Query, decided: frozenset[str]) -> Query:
        """Override the index by what the database has decided since. The document of the position is never found."""
        if visible.decided:
            unchanged = [(Occur.Must, permitted), (Occur.MustNot, self._terms(fields.KEY, visible.decided))]
            newly_permitted = self._terms(fields.KEY, decided & visible.decided)
            permitted = _any_of([Query.boolean_query(unchanged), newly_permitted])
        if visible.hidden:
            hidden = (Occur.MustNot, self._terms(fields.KEY, visible.hidden))
            permitted = Query.boolean_query([(Occur.Must, permitted), hidden])
        return permitted

    def _condition(self, expression: Expression, content: bool) -> Query:
        match expression:
            case ExpressionSet():
                parts = [self._condition(part, content) for part in expression.expressions]
                return _all_of(parts) if expression.operator == "AND" else _any_of(parts)
            case Fulltext(keywords):
                return Query.empty_query() if keywords is None else self._keywords(keywords, content)
            case Carries():
                return _silent(self._acls(frozenset(expression.acls)))
            case Property() | PropertyList() | PropertyRange():
                return _silent(self._property(expression))
            case _:
                assert_never(expression)

    def _keywords(self, keywords: Keywords, content: bool) -> Query:
        match keywords:
            case Both():
                required = [self._keywords(part, content) for part in keywords.parts if not isinstance(part, Without)]
                excluded = [self._keywords(part.part, content) for part in keywords.parts if isinstance(part, Without)]
                return _all_of(required, excluded)
            case Either():
                return _any_of([self._keywords(part, content) for part in keywords.parts])
            case Without():
                return _all_of([], [self._keywords(keywords.part, content)])
            case Term() | Phrase():
                where = (False, True) if content else (False,)
                return _any_of([self.leaf(keywords, content=in_content) for in_content in where])
            case _:
                assert_never(keywords)

    def _words(self, field: str, words: list[tuple[int, str]]) -> Query:
        if not words:
            return Query.empty_query()
        if len(words) == 1:
            return self._word(field, words[0][1])
        first_place = words[0][0]
        return Query.phrase_query(self._schema, field, [(place - first_place, word) for place, word in words])

    def _beginning(self, field: str, words: list[tuple[int, str]]) -> Query:
        """Make the query for words that follow each other; the last one matches any word that begins with it."""
        if not words:
            return Query.empty_query()
        parts = [(Occur.Must, self._word(field, word)) for _, word in words[:-1]]
        parts.append((Occur.Must, Query.fuzzy_term_query(self._schema, field, words[-1][1], 0, True, True)))
        if len(words) > 1:
            first_place = words[0][0]
            phrase: list[str | tuple[int, str]] = [(place - first_place, _exactly(word)) for place, word in words[:-1]]
            phrase.append((words[-1][0] - first_place, _exactly(words[-1][1]) + ".*"))
            parts.append((Occur.Must, _silent(Query.regex_phrase_query(self._schema, field, phrase))))
        return Query.boolean_query(parts)

    def _word(self, field: str, word: str) -> Query:
        query = Query.term_query(self._schema, field, word, "freq")
        if self._statistics is None or (field, word) not in self._statistics.document_frequency:
            return query
        visible_weight = _idf(self._statistics.document_frequency[field, word], self._statistics.documents)
        own_weight = _idf(self._searcher.doc_freq(field, word), self._searcher.num_docs)
        return Query.boost_query(query, visible_weight / own_weight)

    def _property(self, expression: Property | PropertyList | PropertyRange) -> Query:
        if not _NAME.fullmatch(expression.name):
            raise BadQuery(f"There is no property {expression.name[:100]!r}.")
        match expression:
            case Property():
                beginning = fields.MARKER + fold(str(expression.value))
                return Query.fuzzy_term_query(self._schema, _path("s", expression.name), beginning, 0, True, True)
            case PropertyRange():
                return self._range(expression.name, expression.low, expression.high)
            case PropertyList():
                by_kind = _by_kind(expression.values)
                return _any_of([self._equal(expression.name, kind, values) for kind, values in by_kind])
            case _:
                assert_never(expression)

    def _equal(self, name: str, kind: str, values: Sequence[str | int]) -> Query:
        path = _path(kind, name)
        if len(values) <= _SEVERAL:
            return _any_of([Query.term_query(self._schema, path, value, "basic") for value in values])
        return Query.term_set_query(self._schema, path, values)

    def _range(self, name: str, low: Value, high: Value) -> Query:
        if isinstance(low, str) or isinstance(high, str):
            path = f"s\x01{name}\x00s{fields.MARKER}"
            within = string_range(fold(str(low)), fold(str(high)))
            return _any_of(
                [Query.regex_query(self._schema, fields.PROPERTIES, f"{path}(?:{expression})") for expression in within]
            )
        if low > high:
            return Query.empty_query()
        if isinstance(low, float) or isinstance(high, float):
            return self._between("f", name, fields.sortable(low), fields.sortable(high))
        return self._between("i", name, fields.whole_number(low), fields.whole_number(high))

    def _between(self, kind: str, name: str, low: int, high: int) -> Query:
        return self._index.parse_query(f"{_path(kind, name)}:[{low} TO {high}]", [])

    def _term(self, field: str, value: str) -> Query:
        return Query.term_query(self._schema, field, value, "basic")

    def _terms(self, field: str, values: Collection[str]) -> Query:
        if len(values) <= _SEVERAL:
            return _any_of([self._term(field, value) for value in sorted(values)])
        return Query.term_set_query(self._schema, field, sorted(values))


def leaves(expression: Expression | Keywords | None) -> Iterator[Leaf]:
    """List the words and phrases by which a hit may have been found: all but those behind a NOT."""
    match expression:
        case ExpressionSet():
            for part in expression.expressions:
                yield from leaves(part)
        case Fulltext():
            yield from leaves(expression.keywords)
        case Both() | Either():
            for keywords in expression.parts:
                yield from leaves(keywords)
        case Term() | Phrase():
            yield expression
        case Without() | Property() | PropertyList() | PropertyRange() | Carries() | None:
            return
        case _:
            assert_never(expression)


def _needs_all(expression: Expression | Keywords | None) -> bool:
    """Say whether every hit matches every one of ``leaves``."""
    match expression:
        case ExpressionSet():
            parts, is_choice = expression.expressions, expression.operator == "OR"
            return all(map(_needs_all, parts)) and not (is_choice and len(parts) > 1 and any(leaves(expression)))
        case Fulltext():
            return _needs_all(expression.keywords)
        case Both():
            return all(map(_needs_all, expression.parts))
        case Either():
            return len(expression.parts) == 1 and _needs_all(expression.parts[0])
        case Term() | Phrase() | Without() | Property() | PropertyList() | PropertyRange() | Carries() | None:
            return True
        case _:
            assert_never(expression)


def _alike(visible: Visible) -> bool:
    return visible.everything or (visible.browse_acls, visible.browse) == (visible.read_acls, visible.read)


def _has_keywords(expression: Expression) -> bool:
    match expression:
        case ExpressionSet():
            return any(map(_has_keywords, expression.expressions))
        case Fulltext():
            return True
        case Property() | PropertyList() | PropertyRange() | Carries():
            return False
        case _:
            assert_never(expression)


def string_range(low: str, high: str) -> list[str]:
    """Write regular expressions that match exactly the strings from ``low`` to ``high``, both included.

    Strings are ordered by their code points. There may be several expressions, because the engine refuses an expression
    of more than a thousand states.
    """
    common = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    if common == len(high) and low != high:
        return []
    if common < len(low) and low[common] > high[common]:
        return []
    expressions: list[str | None] = [_exactly(high)]
    expressions += [_exactly(high[:at]) for at in range(common + 1, len(high))]
    expressions += [_beyond(high[:at], 0x20, ord(high[at]) - 1) for at in range(common + 1, len(high))]
    if common == len(low):
        expressions.append(_exactly(low))
        if common < len(high):
            expressions.append(_beyond(low, 0x20, ord(high[common]) - 1))
    else:
        expressions.append(_exactly(low) + ".*")
        expressions.append(_beyond(low[:common], ord(low[common]) + 1, ord(high[common]) - 1))
        expressions += [_beyond(low[:at], ord(low[at]) + 1, _LAST_CHARACTER) for at in range(common + 1, len(low))]
    together = [""]
    for part in expressions:
        if part is None:
            continue
        if together[-1] and len(together[-1]) + len(part) > _LONGEST_EXPRESSION:
            together.append("")
        together[-1] += f"|{part}" if together[-1] else part
    return together


def _exactly(text: str) -> str:
    return "".join(_character(ord(character)) for character in text)


def _beyond(beginning: str, low: int, high: int) -> str | None:
    """Write an expression for texts that go on after ``beginning`` with a character of this range.

    Returns None if the range is empty without its surrogates.
    """
    low = 0xE000 if 0xD800 <= low <= 0xDFFF else low
    high = 0xD7FF if 0xD800 <= high <= 0xDFFF else high
    if low > high:
        return None
    return f"{_exactly(beginning)}[{_character(low)}-{_character(high)}].*"


def _character(code: int) -> str:
    return f"\\x{{{code:X}}}"


def _by_kind(values: Sequence[Value]) -> list[tuple[str, list[str | int]]]:
    strings: list[str | int] = [fields.MARKER + fold(value) for value in values if isinstance(value, str)]
    truths: list[str | int] = [int(value) for value in values if isinstance(value, bool)]
    doubles: list[str | int] = [fields.sortable(value) for value in values if isinstance(value, float)]
    integers: list[str | int] = [
        value
        for value in values
        if isinstance(value, int) and not isinstance(value, bool) and fields.whole_number(value) == value
    ]
    kinds = {"s": strings, "b": truths, "f": doubles, "i": integers}
    return [(kind, of_kind) for kind, of_kind in kinds.items() if of_kind]


def _path(kind: str, name: str) -> str:
    return f"{fields.PROPERTIES}.{kind}.{name}"


def _silent(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


def _all_of(required: Sequence[Query], excluded: Sequence[Query] = ()) -> Query:
    if len(required) == 1 and not excluded:
        return required[0]
    parts = [(Occur.Must, query) for query in required] or [(Occur.Must, _silent(Query.all_query()))]
    return Query.boolean_query([*parts, *((Occur.MustNot, query) for query in excluded)])


def _any_of(parts: Sequence[Query]) -> Query:
    if len(parts) == 1:
        return parts[0]
    return Query.boolean_query([(Occur.Should, query) for query in parts])


def _idf(documents_with: int, documents: int) -> float:
    documents = max(documents, documents_with)
    return math.log(1 + (documents - documents_with + 0.5) / (documents_with + 0.5))
