"""Does a query fit a repository's types?

The negative comparison is met if no value meets the positive one, so also by an object without a value.
"""

import calendar
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol, assert_never

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.folding import fold
from muniment.repository.refusals import UnknownProperty, UnknownType, WrongValue
from muniment.repository.search.aql import conditions, patterns, tree, values
from muniment.repository.search.aql.conditions import (
    Between,
    BoundQuery,
    Carries,
    Condition,
    ConditionSet,
    HasValue,
    Like,
    OneOf,
    Unless,
)
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.tree import (
    Expression,
    ExpressionSet,
    Fulltext,
    Property,
    PropertyList,
    PropertyOperator,
    PropertyRange,
    Query,
    RelativeDate,
    TimeUnit,
    Value,
)

_ORDERED: tuple[PropertyOperator, ...] = ("GREATER_THAN", "LESS_THAN", "GREATER_EQUAL", "LESS_EQUAL")
_EQUALITY: tuple[PropertyOperator, ...] = ("EQUAL", "NOT_EQUAL")
_TEXTUAL: tuple[PropertyOperator, ...] = ("BEGINS_WITH", "CONTAINS", "DOES_NOT_CONTAIN", "ENDS_WITH")
_PRESENCE: tuple[PropertyOperator, ...] = ("IS_NULL", "IS_NOT_NULL")
_OF_TEXTS = (*_EQUALITY, *_ORDERED, *_TEXTUAL, *_PRESENCE)
_OF_NUMBERS = (*_EQUALITY, *_ORDERED, *_PRESENCE)

FITTING: Mapping[values.Kind, tuple[PropertyOperator, ...]] = {
    "string": _OF_TEXTS,
    "id": _OF_TEXTS,
    "integer": _OF_NUMBERS,
    "double": _OF_NUMBERS,
    "date": _OF_NUMBERS,
    "boolean": (*_EQUALITY, *_PRESENCE),
}
"""IN and NOT_IN fit every kind, too."""

_NEGATIONS: Mapping[str, PropertyOperator] = {
    "NOT_EQUAL": "EQUAL",
    "DOES_NOT_CONTAIN": "CONTAINS",
    "IS_NULL": "IS_NOT_NULL",
}
_SECONDS: Mapping[TimeUnit, int] = {"MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 7 * 86_400}


class Definition(Protocol):
    """What a query needs of a property."""

    @property
    def kind(self) -> values.Kind:
        """The kind of the property's values."""


class Catalogue(Protocol):
    """What a query needs of a repository's types."""

    def with_subtypes(self, names: Collection[str]) -> Collection[str]:
        """Return these types with all their sub-types. Raises UnknownType."""

    def searchable(self, name: str) -> Definition:
        """Find a property that queries may use, whichever type has it. Raises UnknownProperty."""


ACL_NAME = "acl_name"
"""The property whose values mean different ACLs to different callers, so ids are compared."""


def bind(
    query: Query,
    catalogue: Catalogue,
    acls: Mapping[str, int],
    now: Instant,
    meant: Callable[[str, str], str] = lambda _name, text: text,
) -> BoundQuery:
    """If no types are returned, every type fits.

    The query's locations are not returned. ``acls`` maps a text of ``acl_texts`` to the id of the ACL that the caller
    means by it. A text that is not in ``acls`` names no ACL. Relative dates count from ``now``. ``meant`` gets the name
    of a property and a text to which it is to be equal, and returns the text that is meant. Raises UnknownType,
    UnknownProperty, WrongValue.
    """
    with naming_place(query.types_place):
        types = () if not query.types else tuple(sorted(catalogue.with_subtypes(query.types)))
    if "sysobject" in query.types:
        types = ()
    condition = None if query.condition is None else _Binder(catalogue, acls, now, meant).bind(query.condition)
    return BoundQuery(types, condition, all_versions=query.all_versions)


def acl_texts(expression: Expression | None) -> frozenset[str]:
    texts = set[str]()
    for each in tree.singles(expression):
        if isinstance(each, Property | PropertyList) and each.name == ACL_NAME:
            texts.update(each.values if isinstance(each, PropertyList) else (each.value,))
    return frozenset(texts)


def has_ages(expression: Expression | None) -> bool:
    return any(isinstance(each, RelativeDate) for each in tree.singles(expression))


def property_names(condition: Condition | None) -> frozenset[str]:
    compared = [each for each in conditions.singles(condition) if not isinstance(each, Fulltext)]
    return frozenset(ACL_NAME if isinstance(each, Carries) else each.name for each in compared)


@contextmanager
def naming_place(place: str) -> Iterator[None]:
    """Add the place in the document to UnknownType, UnknownProperty and WrongValue."""
    try:
        yield
    except (UnknownType, UnknownProperty, WrongValue) as refusal:
        if not place:
            raise
        raise type(refusal)(f"{refusal.sentence.rstrip('.')} ({place}).") from refusal


class _Binder:
    def __init__(
        self, catalogue: Catalogue, acls: Mapping[str, int], now: Instant, meant: Callable[[str, str], str]
    ) -> None:
        self._catalogue = catalogue
        self._acls = acls
        self._now = now
        self._meant = meant

    def bind(self, expression: Expression) -> Condition:
        match expression:
            case Fulltext():
                return expression
            case ExpressionSet():
                return ConditionSet(expression.operator, tuple(map(self.bind, expression.expressions)))
            case Property() | PropertyList() | PropertyRange() | RelativeDate():
                with naming_place(expression.place):
                    if expression.name == ACL_NAME:
                        return self._carries(expression)
                    return self._compare(expression, self._catalogue.searchable(expression.name).kind)
            case _:
                assert_never(expression)

    def _compare(
        self, expression: Property | PropertyList | PropertyRange | RelativeDate, kind: values.Kind
    ) -> Condition:
        match expression:
            case Property():
                if expression.operator in _EQUALITY and not (expression.fuzzy or patterns.has_gaps(expression.value)):
                    text = self._meant(expression.name, expression.value)
                    expression = msgspec.structs.replace(expression, value=text)
                return _property(expression, kind)
            case PropertyList():
                texts = [self._meant(expression.name, text) for text in expression.values]
                among = _among(kind, expression.name, texts)
                return among if expression.operator == "IN" else Unless(among)
            case PropertyRange():
                return _range(expression, kind)
            case RelativeDate():
                return _relative(expression, kind, self._now)
            case _:
                assert_never(expression)

    def _carries(self, expression: Property | PropertyList | PropertyRange | RelativeDate) -> Condition:
        match expression:
            case PropertyList():
                texts, negative = expression.values, expression.operator == "NOT_IN"
            case Property(operator="EQUAL" | "NOT_EQUAL"):
                texts, negative = (expression.value,), expression.operator == "NOT_EQUAL"
            case _:
                raise WrongValue(
                    f"The property {ACL_NAME!r} names an ACL: it is compared by EQUAL, NOT_EQUAL, IN and NOT_IN alone."
                )
        carries = Carries(tuple(sorted({self._acls[text] for text in texts if text in self._acls})))
        return Unless(carries) if negative else carries


def _property(expression: Property, kind: values.Kind) -> Condition:
    fitting = FITTING[kind]
    if expression.operator not in fitting:
        raise WrongValue(
            f"{expression.operator} does not fit the property {expression.name!r} of kind {kind}: "
            f"it takes {', '.join(fitting)}, IN and NOT_IN."
        )
    positive = _NEGATIONS.get(expression.operator, expression.operator)
    condition = _positive(expression, positive, kind)
    return condition if positive == expression.operator else Unless(condition)


def _positive(expression: Property, operator: PropertyOperator, kind: values.Kind) -> Condition:
    name, text = expression.name, expression.value
    if operator == "IS_NOT_NULL":
        return HasValue(name)
    if operator in _ORDERED:
        return _inequality(kind, name, operator, text)
    if kind in ("string", "id"):
        return _like(expression, operator)
    return _among(kind, name, (text,))


def _like(expression: Property, operator: PropertyOperator) -> Condition:
    text = fold(expression.value)
    if operator == "EQUAL" and not expression.fuzzy and (expression.exact or not patterns.has_gaps(text)):
        return OneOf(expression.name, (expression.value,))
    if expression.exact:
        whole: tuple[Pattern, ...] = (Pattern((text,) if text else ()),)
    elif expression.fuzzy and not patterns.has_gaps(text) and operator in ("EQUAL", "CONTAINS"):
        whole = patterns.similar(text)
    else:
        whole = (patterns.read(text),)
    gaps_before = (Gap.RUN,) if operator in ("CONTAINS", "ENDS_WITH") else ()
    gaps_after = (Gap.RUN,) if operator in ("CONTAINS", "BEGINS_WITH") else ()
    return Like(expression.name, tuple(Pattern((*gaps_before, *one.pieces, *gaps_after)) for one in whole))


def _among(kind: values.Kind, name: str, texts: Collection[str]) -> Condition:
    days = [text for text in texts if kind == "date" and values.is_day(text)]
    single = tuple(values.read(kind, name, text) for text in texts if text not in days)
    ranges = [Between(name, values.read(kind, name, day), values.read(kind, name, day, end=True)) for day in days]
    conditions = (*([OneOf(name, single)] if single else ()), *ranges)
    return conditions[0] if len(conditions) == 1 else ConditionSet("OR", tuple(conditions))


def _inequality(kind: values.Kind, name: str, operator: PropertyOperator, text: str) -> Condition:
    # A moment is later than a day if it is later than the day's last moment.
    value = values.read(kind, name, text, end=operator in ("GREATER_THAN", "LESS_EQUAL"))
    _check_bound(name, value)
    return _beside(name, operator, value)


def _beside(name: str, operator: PropertyOperator, value: Value) -> Between:
    match operator:
        case "GREATER_THAN":
            return Between(name, value, None, low_open=True)
        case "GREATER_EQUAL":
            return Between(name, value, None)
        case "LESS_THAN":
            return Between(name, None, value, high_open=True)
        case _:
            return Between(name, None, value)


def _range(expression: PropertyRange, kind: values.Kind) -> Between:
    if kind == "boolean":
        raise WrongValue(f"BETWEEN needs an order; the property {expression.name!r} is true or false.")
    low = values.read(kind, expression.name, expression.low)
    high = values.read(kind, expression.name, expression.high, end=True)
    for bound in (low, high):
        _check_bound(expression.name, bound)
    return Between(expression.name, low, high)


def _check_bound(name: str, bound: Value) -> None:
    if isinstance(bound, str) and len(fold(bound)) > values.LONGEST_BOUND:
        raise WrongValue(
            f"A bound of {name!r} is longer than {values.LONGEST_BOUND} characters: "
            "a range of strings is compared by its beginning."
        )


def _relative(expression: RelativeDate, kind: values.Kind, now: Instant) -> Between:
    if kind != "date":
        raise WrongValue(f"A relative-date compares dates; the property {expression.name!r} is of kind {kind}.")
    try:
        moment = _add_units(_moment(now), expression.amount, expression.unit)
        first, last = _period(moment, expression.unit)
    except (OverflowError, ValueError) as error:
        raise WrongValue(f"{expression.amount} times {expression.unit} from now is no date.") from error
    if expression.operator == "EQUAL":
        return Between(expression.name, _instant(first), _instant(last), high_open=True)
    return _beside(expression.name, expression.operator, _instant(moment))


def _add_units(moment: datetime, amount: int, unit: TimeUnit) -> datetime:
    """A day that the month does not have becomes its last day."""
    if unit in _SECONDS:
        return moment + timedelta(seconds=amount * _SECONDS[unit])
    months = 12 * moment.year + moment.month - 1 + amount * (12 if unit == "YEAR" else 1)
    year, month = divmod(months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _period(moment: datetime, unit: TimeUnit) -> tuple[datetime, datetime]:
    minute = moment.replace(second=0, microsecond=0)
    match unit:
        case "MINUTE":
            first = minute
        case "HOUR":
            first = minute.replace(minute=0)
        case "DAY":
            first = minute.replace(minute=0, hour=0)
        case "WEEK":
            first = minute.replace(minute=0, hour=0) - timedelta(days=moment.weekday())
        case "MONTH":
            first = minute.replace(minute=0, hour=0, day=1)
        case "YEAR":
            first = minute.replace(minute=0, hour=0, day=1, month=1)
        case _:
            assert_never(unit)
    return first, _add_units(first, 1, unit)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def _instant(moment: datetime) -> Instant:
    return (moment - _EPOCH) // timedelta(microseconds=1)
