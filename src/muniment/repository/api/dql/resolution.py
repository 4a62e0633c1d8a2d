"""Which members of a list does a statement select, for this caller and at this moment?

A folder that the caller may not browse is refused like one that does not exist.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias, assert_never

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import SECOND, Instant, timestamp
from muniment.ground.naming import is_storable
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
from muniment.repository.store.objects.folders import folders, paths
from muniment.repository.store.objects.listing.view import RepositoryView

_OfProperty: TypeAlias = PropertyComparison | InList | InRange | LikePattern | IsNull

_DAY = 86_400 * SECOND
_DAYS = {"TODAY": 0, "YESTERDAY": -1, "TOMORROW": 1}


def selection(
    cx: Connection,
    view: RepositoryView,
    statement: Statement,
    now: Instant,
    text: str,
    write_type: Callable[[str], str],
    *,
    of_objects: bool = True,
) -> Selection:
    """``write_type`` returns the name of a type as it is shown. Without ``of_objects``, the statement may not name
    folders. Raises BadQuery, WrongValue.
    """
    resolver = _Resolver(cx, view, now, write_type, of_objects=of_objects)
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
    def __init__(
        self,
        cx: Connection,
        view: RepositoryView,
        now: Instant,
        write_type: Callable[[str], str],
        *,
        of_objects: bool,
    ) -> None:
        self._cx = cx
        self._view = view
        self._now = now
        self._write_type = write_type
        self._of_objects = of_objects
        self._folders = self._compared = 0

    def resolve(self, condition: Condition) -> Filter:  # noqa: C901, PLR0911 - one for each kind
        match condition:
            case PropertyComparison() | InList() | InRange() | LikePattern() | IsNull() if self._of_place(condition):
                return self._of_folders(condition)
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
            in_none = filters.HasNoValue("i_folder_id", condition.place)
            if condition.descend:
                return filters.Not(in_none)
            types = sorted(self._view.catalogue.with_subtypes(["cabinet"]))
            names = [LiteralValue("text", self._write_type(name)) for name in types]
            return filters.AllOf((in_none, filters.HasOneOf("r_object_type", tuple(names), condition.place)))
        location = Location(condition.path, condition.folder_id, condition.descend, place)
        found = locations.folder_ids(self._cx, self._view, location)
        return self._one_of("i_folder_id", found, condition.place)

    def _one_of(self, name: str, ids: Collection[str], place: int) -> Filter:
        self._folders += len(ids)
        if self._folders > locations.MOST_FOLDERS:
            raise BadQuery(f"The statement names more than {locations.MOST_FOLDERS} folders (character {place}).")
        return filters.HasOneOf(name, tuple(LiteralValue("text", each) for each in sorted(ids)), place)

    def _of_place(self, condition: _OfProperty) -> bool:
        return condition.name in paths.NAMES and self._of_objects

    def _of_folders(self, condition: _OfProperty) -> Filter:
        """Find the folders whose paths, or whose ids of folders above, meet a condition."""
        match condition:
            case PropertyComparison(operator="=", operand=operand):
                texts = [self._literal(operand).text]
            case InList(operands=operands):
                texts = [self._literal(operand).text for operand in operands]
            case LikePattern(name="r_folder_path", pieces=pieces):
                return self._one_of("r_object_id", self._folders_like(pieces), condition.place)
            case _:
                raise BadQuery(
                    f"{condition.name!r} is compared by =, IN and, for paths, LIKE (character {condition.place})."
                )
        ids = set[str]()
        for text in filter(is_storable, texts):
            if condition.name == "r_folder_path":
                names = paths.split(text)
                is_path = text.startswith("/") and names and len(names) <= paths.MOST_STEPS
                ids |= paths.folders_at(self._cx, self._view, names, locations.MOST_FOLDERS) if is_path else set()
            else:
                roots = folders.find(self._cx, self._view, ids=[text.lower()])
                ids |= folders.descendants(self._cx, self._view, roots, locations.MOST_FOLDERS)
        return self._one_of("r_object_id", ids, condition.place)

    def _folders_like(self, pieces: Sequence[str | None]) -> set[str]:
        """Find the folders that have a path of this pattern. Only those below what the pattern begins with are read."""
        first = pieces[0] if pieces and pieces[0] else ""
        above = paths.split(first[: first.rfind("/")])
        most = locations.MOST_FOLDERS
        roots = (
            paths.folders_at(self._cx, self._view, above, most)
            if above
            else folders.find(self._cx, self._view, most=most + 1)
        )
        candidates = folders.descendants(self._cx, self._view, roots, most)
        self._compared += len(candidates)
        if self._compared > most:
            raise BadQuery(f"The pattern is for more than {most} folders: begin it with the path of a folder.")
        pattern = re.compile(_expression(pieces), re.DOTALL)
        return paths.with_paths(
            self._cx,
            self._view,
            candidates,
            lambda path: pattern.fullmatch(unicodedata.normalize("NFC", path)) is not None,
        )

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


def _expression(pieces: Sequence[str | None]) -> str:
    """Write the pattern of a path, in NFC, as a regular expression.

    What stands between two runs of any characters is found at its first place for good: trying all places for each run
    would take a time that grows with every run.
    """
    between = [""]
    for piece in pieces:
        if piece == "":
            between.append("")
        else:
            between[-1] += "." if piece is None else re.escape(unicodedata.normalize("NFC", piece))
    first, *inner = between[:-1] or [between[0]]
    found = "".join(f"(?>.*?{each})" for each in inner)
    return f"{first}{found}.*{between[-1]}" if len(between) > 1 else first
