"""Which members of a list does a statement select, for this caller and at this moment?

A folder that the caller may not browse is refused like one that does not exist.
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import SECOND, Instant, timestamp
from muniment.repository.api.dql.tree import (
    AskingUser,
    Condition,
    Conjunction,
    Disjunction,
    InFolder,
    InList,
    InRange,
    IsNull,
    KeywordClause,
    LikePattern,
    Moment,
    Negation,
    Operand,
    PropertyComparison,
    Statement,
    WrittenValue,
)
from muniment.repository.refusals import BadQuery
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.scope import locations
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.tree import ExpressionSet, Fulltext, Keywords, Location, Query, QueryLimits, Without
from muniment.repository.store.filters import tree as filters
from muniment.repository.store.filters.tree import Filter, LiteralValue, Selection
from muniment.repository.store.objects.listing.view import RepositoryView

_DAY = 86_400 * SECOND
_DAYS = {"TODAY": 0, "YESTERDAY": -1, "TOMORROW": 1}


def selection(
    cx: Connection, view: RepositoryView, statement: Statement, now: Instant, text: str, *, of_objects: bool = True
) -> Selection:
    """Without ``of_objects``, the statement may not name folders. Raises BadQuery, WrongValue."""
    resolver = _Resolver(cx, view, now, of_objects=of_objects)
    condition = None if statement.condition is None else resolver.resolve(statement.condition)
    return Selection(condition, statement.order, text)


def counters(inquiry: Inquiry, statement: Statement) -> list[int]:
    """Find objects by a statement's keywords.

    Raises BadQuery for more keywords than a query may have, or more than ``max_sorted_hits`` objects, and what
    ``results.prepare`` raises.
    """
    condition, most = _fulltext(statement.fulltext, QueryLimits.of(inquiry.options)), inquiry.options.max_sorted_hits
    query = Query(types=(statement.type,), condition=condition, all_versions=statement.all_versions)
    search = results.prepare(inquiry.asking(SearchQuestion(query, bare=True)))
    hits = list(inquiry.snapshot.counters(msgspec.structs.replace(search, limit=most + 1), "made"))
    if len(hits) > most:
        raise BadQuery(f"More than {most} objects match the keywords: narrow them.")
    return hits


def _fulltext(parts: Sequence[KeywordClause], limits: QueryLimits) -> ExpressionSet:
    """Write the keywords as alternatives of conjunctions."""
    alternatives: list[list[Keywords | None]] = [[]]
    number = 0
    for part in parts:
        if part.joint == "OR":
            alternatives.append([])
        words = keywords.read(part.text, limits)
        number += keywords.count_words(words)
        keywords.check_count(number, limits)
        alternatives[-1].append(Without(words) if words is not None and part.negated else words)
    conjunctions = [ExpressionSet("AND", tuple(map(Fulltext, each))) for each in alternatives]
    return ExpressionSet("OR", tuple(conjunctions))


class _Resolver:
    def __init__(self, cx: Connection, view: RepositoryView, now: Instant, *, of_objects: bool) -> None:
        self._cx = cx
        self._view = view
        self._now = now
        self._of_objects = of_objects
        self._folders = 0

    def resolve(self, condition: Condition) -> Filter:  # noqa: PLR0911 - one for each kind
        match condition:
            case PropertyComparison(name, operator, operand, place):
                return filters.Comparison(name, operator, self._literal(operand), place)
            case InList(name, operands, place):
                return filters.HasOneOf(name, tuple(map(self._literal, operands)), place)
            case InRange(name, low, high, place):
                return filters.LiesBetween(name, self._literal(low), self._literal(high), place)
            case LikePattern(name, pieces, place):
                return filters.FitsPattern(name, pieces, place)
            case IsNull(name, place):
                return filters.HasNoValue(name, place)
            case InFolder():
                return self._in_folder(condition)
            case Conjunction(parts):
                return filters.AllOf(tuple(map(self.resolve, parts)))
            case Disjunction(parts):
                return filters.AnyOf(tuple(map(self.resolve, parts)))
            case Negation(part):
                return filters.Not(self.resolve(part))
            case _:
                assert_never(condition)

    def _in_folder(self, condition: InFolder) -> Filter:
        place = f"character {condition.place}"
        if not self._of_objects:
            raise BadQuery(f"Only objects lie in folders ({place}).")
        if not condition.path.strip("/") and not condition.folder_id:
            raise BadQuery(f"A path names a folder: '/cabinet/folder' ({place}).")
        location = Location(condition.path, condition.folder_id, condition.descend, place)
        folders = sorted(locations.folder_ids(self._cx, self._view, location))
        self._folders += len(folders)
        if self._folders > locations.MOST_FOLDERS:
            raise BadQuery(f"The statement names more than {locations.MOST_FOLDERS} folders ({place}).")
        return filters.HasOneOf("i_folder_id", tuple(LiteralValue("text", each) for each in folders), condition.place)

    def _literal(self, operand: Operand) -> LiteralValue:
        match operand:
            case WrittenValue(kind, text):
                return LiteralValue(kind, text)
            case AskingUser():
                return LiteralValue("text", self._view.principals.id)
            case Moment(day):
                moment = self._now
                if day in _DAYS:
                    moment = self._now - self._now % _DAY + _DAYS[day] * _DAY
                return LiteralValue("date", timestamp(moment))
            case _:
                assert_never(operand)
