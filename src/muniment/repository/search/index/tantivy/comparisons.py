"""Which objects have a property whose value meets a comparison?

A range of strings becomes regular expressions, so the engine reads only its terms from the dictionary; one of numbers
goes through the engine's parser, as integers only.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

import tantivy
from tantivy import Query

from muniment.repository.folding import fold
from muniment.repository.search.aql.conditions import Between, HasValue, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.tantivy import fields, regexes
from muniment.repository.search.index.tantivy.combining import any_of, terms


class Comparisons:
    """Makes queries; ``allowance`` limits the cost of their regular expressions."""

    def __init__(self, index: tantivy.Index, allowance: regexes.Allowance) -> None:
        self._index = index
        self._allowance = allowance

    def query(self, comparison: OneOf | Between | Like | HasValue) -> Query:
        """Raises BadQuery for a name that no property can have, and for regular expressions that take too long."""
        layout.check_property(comparison.name)
        match comparison:
            case Like():
                return self._like(comparison.name, comparison.patterns)
            case Between():
                return self._between(comparison)
            case OneOf():
                return self._one_of(comparison)
            case HasValue():
                return any_of([Query.exists_query(fields.path(kind, comparison.name)) for kind in fields.VALUE_KINDS])
            case _:
                assert_never(comparison)

    def _one_of(self, sought: OneOf) -> Query:
        by_kind = defaultdict[str, list[str | int]](list)
        for value in sought.values:
            for kind, held in fields.as_indexed(value):
                if kind != ("s" if sought.written else "v") and (kind != "i" or held == value):
                    by_kind[kind].append(held)
        return any_of([terms(fields.path(kind, sought.name), values) for kind, values in by_kind.items()])

    def _like(self, name: str, alternatives: Sequence[Pattern]) -> Query:
        match alternatives:
            case (Pattern(pieces=(str(beginning), Gap.RUN)),):
                path = fields.path("s", name)
                return Query.fuzzy_term_query(fields.SCHEMA, path, fields.MARKER + beginning, 0, True, True)
            case _:
                return self._strings(name, regexes.of_patterns(alternatives))

    def _strings(self, name: str, expressions: Sequence[str]) -> Query:
        path = f"s\x01{name}\x00s{fields.MARKER}"
        path_expressions = [f"{path}(?:{self._allowance.spend(each)})" for each in expressions]
        return any_of([Query.regex_query(fields.SCHEMA, fields.PROPERTIES, each) for each in path_expressions])

    def _between(self, range_: Between) -> Query:
        low, high = range_.low, range_.high
        if isinstance(low, str) or isinstance(high, str):
            first, last = (None if bound is None else fold(str(bound)) for bound in (low, high))
            expressions = regexes.of_range(first, last, range_.low_open, range_.high_open)
            return self._strings(range_.name, regexes.join(expressions))
        kind, least, most = layout.numbers_between(range_)
        if least > most:
            return Query.empty_query()
        return self._index.parse_query(f"{fields.path(kind, range_.name)}:[{least} TO {most}]", [])
