"""How are the engine's queries made?

Patterns and similar words are never cut to the commonest: ``constant_score`` finds by every word.
``match_phrase_prefix`` and ``intervals`` are never used, because both stop after some words, which may be hidden ones.
"""

import base64
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, assert_never

from pyroaring import BitMap

from muniment.database.connections import portions
from muniment.repository.folding import fold
from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.conditions import Between, HasValue, Like, OneOf
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.questions import layout

Query: TypeAlias = dict[str, Any]

_EVERY_WORD = "constant_score"
_FEW_ACLS = 100
_ALTERNATIVES = 20
"""A regular expression has so many alternatives: more would need more states than the engine permits."""

_NOTHING: Query = {"match_none": {}}


class OpenSearchQueries:
    """Makes queries (Queries) as JSON."""

    def every(self) -> Query:
        return {"match_all": {}}

    def nothing(self) -> Query:
        return _NOTHING

    def term(self, field: str, value: str | int) -> Query:
        return {"term": {field: value}}

    def terms(self, field: str, values: Collection[str | int]) -> Query:
        return {"terms": {field: list(values)}} if values else _NOTHING

    def with_acls(self, acls: Collection[int]) -> Query:
        if len(acls) <= _FEW_ACLS:
            return self.terms(layout.ACL, acls)
        bits = base64.b64encode(BitMap(acls).serialize()).decode()
        return {"terms": {layout.ACL: [bits], "value_type": "bitmap"}}

    def embedded(self) -> Query:
        return {"range": {layout.EMBEDDING: {"gte": 1}}}

    def word(self, field: str, word: str) -> Query:
        return {"term": {field: word}}

    def sequence(self, field: str, words: Sequence[tuple[int, str]], slop: int = 0) -> Query:
        return {"match_phrase": {field: {"query": fields.in_places(words), "slop": slop}}}

    def pattern(self, field: str, pattern: Pattern) -> Query:
        match pattern.pieces:
            case (str(word),):
                return {"constant_score": {"filter": {"term": {field: word}}}}
            case (str(beginning), Gap.RUN):
                return {"prefix": {field: {"value": beginning, "rewrite": _EVERY_WORD}}}
            case _:
                return _regexp(field, _expression(pattern))

    def patterns(self, field: str, places: Sequence[tuple[int, Pattern]]) -> Query:
        clauses: list[Query] = []
        following = places[0][0]
        for place, pattern in places:
            if place > following:
                clauses.append({"span_gap": {field: place - following}})
            clauses.append(self._span(field, pattern))
            following = place + 1
        return {"span_near": {"clauses": clauses, "slop": 0, "in_order": True}}

    def similar(self, field: str, word: str, letters: int) -> Query:
        how = {"fuzziness": letters, "transpositions": True, "prefix_length": 0, "rewrite": _EVERY_WORD}
        return {"fuzzy": {field: {"value": word, **how}}}

    def comparison(self, comparison: OneOf | Between | Like | HasValue) -> Query:
        layout.check_property(comparison.name)
        match comparison:
            case Like():
                return self._like(fields.path("s", comparison.name), comparison.patterns)
            case Between():
                return _between(comparison)
            case OneOf():
                return self._one_of(comparison)
            case HasValue():
                paths = [fields.path(kind, comparison.name) for kind in fields.VALUE_KINDS]
                return self.any_of([{"exists": {"field": each}} for each in paths])
            case _:
                assert_never(comparison)

    def all_of(self, parts: Sequence[Query], exclusions: Sequence[Query] = ()) -> Query:
        if len(parts) == 1 and not exclusions:
            return parts[0]
        made = _needed(parts)
        if exclusions:
            made["must_not"] = list(exclusions)
        return {"bool": made} if made else self.silent(self.every())

    def any_of(self, parts: Sequence[Query]) -> Query:
        if len(parts) < 2:
            return parts[0] if parts else _NOTHING
        return {"bool": {"should": list(parts), "minimum_should_match": 1}}

    def best_of(self, parts: Sequence[Query]) -> Query:
        return {"dis_max": {"queries": list(parts)}} if parts else _NOTHING

    def with_bonuses(self, needed: Sequence[Query], bonuses: Sequence[Query]) -> Query:
        return {"bool": {**_needed(needed), "should": list(bonuses), "minimum_should_match": 0}}

    def fixed(self, query: Query, score: float) -> Query:
        return {"constant_score": {"filter": query, "boost": score}}

    def silent(self, query: Query) -> Query:
        return query if _is_silent(query) else self.fixed(query, 0.0)

    def times(self, query: Query, factor: float) -> Query:
        return {"bool": {"must": [query], "boost": factor}}

    def _span(self, field: str, pattern: Pattern) -> Query:
        match pattern.pieces:
            case (str(word),):
                return {"span_term": {field: word}}
            case (str(beginning), Gap.RUN):
                return {"span_multi": {"match": {"prefix": {field: {"value": beginning}}}}}
            case _:
                expression = {"value": _expression(pattern), "flags": "NONE"}
                return {"span_multi": {"match": {"regexp": {field: expression}}}}

    def _like(self, path: str, alternatives: Sequence[Pattern]) -> Query:
        if len(alternatives) == 1:
            return self.pattern(path, alternatives[0])
        expressions = ["|".join(map(_expression, some)) for some in portions(alternatives, _ALTERNATIVES)]
        return self.any_of([_regexp(path, each) for each in expressions])

    def _one_of(self, sought: OneOf) -> Query:
        by_kind = defaultdict[str, list[str | int]](list)
        for value in sought.values:
            for kind, held in layout.as_indexed(value):
                if kind != ("s" if sought.written else "v") and (kind != "i" or held == value):
                    by_kind[kind].append(held)
        return self.any_of([self.terms(fields.path(kind, sought.name), values) for kind, values in by_kind.items()])


def _needed(parts: Sequence[Query]) -> Query:
    made: Query = {}
    for part in parts:
        if _is_silent(part):
            made.setdefault("filter", []).append(part["constant_score"]["filter"])
        else:
            made.setdefault("must", []).append(part)
    return made


def _is_silent(query: Query) -> bool:
    return "constant_score" in query and query["constant_score"].get("boost") == 0.0


def _between(range_: Between) -> Query:
    low, high = range_.low, range_.high
    if isinstance(low, str) or isinstance(high, str):
        first, last = (None if bound is None else fold(str(bound)) for bound in (low, high))
        bounds: dict[str, str | int] = {}
        if first is not None:
            bounds["gt" if range_.low_open else "gte"] = first
        if last is not None:
            bounds["lt" if range_.high_open else "lte"] = last
        return {"range": {fields.path("s", range_.name): bounds}}
    kind, least, most = layout.numbers_between(range_)
    return _NOTHING if least > most else {"range": {fields.path(kind, range_.name): {"gte": least, "lte": most}}}


def _regexp(field: str, expression: str) -> Query:
    if len(expression) > fields.LONGEST_REGEX:
        raise BadQuery("A text is too long to be sought by a part of it, or has too many wildcards.")
    return {"regexp": {field: {"value": expression, "flags": "NONE", "rewrite": _EVERY_WORD}}}


def _expression(pattern: Pattern) -> str:
    return pattern.expression(literal) or "()"


def literal(text: str) -> str:
    """Write a text as a regular expression that matches it alone."""
    return "".join(f"\\{each}" if each.isascii() and not each.isalnum() else each for each in text)
