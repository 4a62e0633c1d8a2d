"""Does a facet definition fit a repository's types, and for which hits does each value of the facet stand?

Source: docs/aql.md, "Facets".
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

import msgspec

from muniment.ground.clock import Instant, timestamp
from muniment.repository.folding import fold
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import BadQuery, WrongValue
from muniment.repository.search.aql import values
from muniment.repository.search.aql.bind import ACL_NAME, Catalogue, naming_place
from muniment.repository.search.aql.conditions import Between, Condition, ConditionSet, HasValue, OneOf, Unless
from muniment.repository.search.aql.rewriting import narrowing
from muniment.repository.search.aql.spelling import periods, zones
from muniment.repository.search.aql.spelling.periods import Period, Unit
from muniment.repository.search.aql.tree import FacetDefinition, FacetSort, Value

NOT_FACETS = frozenset({ACL_NAME, "r_folder_path", "i_ancestor_id"})
"""An ACL's name may mean another ACL to each caller; the others are not indexed."""

GroupBy: TypeAlias = Literal["string", "range", "alpharange", "relativedate", "day", "week", "month", "quarter", "year"]

Place: TypeAlias = tuple[int, int | float | str, str]

_NO_VALUE_PLACE: Place = (1 << 62, 0, "")
_UNITS: tuple[Unit, ...] = get_args(Unit)
_MOST_RANGES = 100
_LONGEST_TEXT = 200
"""A facet's id, and a range, have so many characters: an answer repeats both with each of many values."""

_READ: Mapping[str, frozenset[str]] = {
    "string": frozenset({"nullValueFacet", "keepDuplicateValues", "caseInsensitive"}),
    "range": frozenset({"range"}),
    "alpharange": frozenset({"range"}),
    "relativedate": frozenset({"timezone"}),
    **dict.fromkeys(_UNITS, frozenset({"timezone", "returnUTC", "skipEmptyValues"})),
}
_KNOWN = frozenset().union(*_READ.values())


class FacetLimits(msgspec.Struct, frozen=True):
    """How many definitions a search has, nested ones too, and values in all."""

    definitions: int = 20
    values: int = 2000

    @classmethod
    def of(cls, options: RepositoryOptions) -> Self:
        return cls(options.max_facets, options.max_facet_values)


class Bucket(msgspec.Struct, frozen=True):
    """A group known before hits are counted."""

    name: str
    condition: Condition


class CountedGroup(NamedTuple):
    """``constraint`` narrows a search to this group's hits."""

    place: Place
    name: str
    constraint: str
    hits: int


class BoundFacet(msgspec.Struct, frozen=True):
    """A checked definition.

    ``buckets`` are of ranges and relative dates. At most ``limit`` values are shown; if ``capped``, the server chose
    that. With ``in_utc``, a period's name is its first moment in UTC.
    """

    id: str
    name: str
    kind: values.Kind
    group_by: GroupBy
    sort: FacetSort
    limit: int
    capped: bool = False
    buckets: tuple[Bucket, ...] = ()
    with_null: bool = False
    folded: bool = False
    timezone: str = ""
    in_utc: bool = False
    all_periods: bool = False
    nested: "BoundFacet | None" = None

    def levels(self) -> Iterator["BoundFacet"]:
        level: BoundFacet | None = self
        while level is not None:
            yield level
            level = level.nested

    @property
    def zone(self) -> tzinfo:
        return zones.read(self.timezone)

    @property
    def unit(self) -> Unit | None:
        """Return None if dates are not grouped by a period."""
        return next((unit for unit in _UNITS if unit == self.group_by), None)

    def name_of(self, value: Value) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return timestamp(value) if self.kind == "date" and isinstance(value, int) else str(value)

    def name_of_period(self, period: Period) -> str:
        return timestamp(period.low) if self.in_utc else period.name

    def place(self, constraint: str) -> Place:
        """Raises BadQuery, WrongValue."""
        name = narrowing.read(constraint)
        if name is None:
            return _NO_VALUE_PLACE
        if self.buckets:
            return next(at for at, bucket in enumerate(self.buckets) if bucket.name == name), 0, ""
        if self.unit is not None:
            return 0, periods.by_name(self.unit, name, self.zone).low, ""
        return self.place_of_value(values.read(self.kind, self.name, name))

    def place_of_value(self, value: Value) -> Place:
        return (0, fold(value), value) if isinstance(value, str) else (0, value, "")

    def in_order(self, groups: Iterable[CountedGroup]) -> list[CountedGroup]:
        """In an order by value, the group without a value comes last."""
        if self.sort == "FREQUENCY":
            return sorted(groups, key=lambda each: (-each.hits, each.place))
        descending = self.sort == "VALUE_DESCENDING"
        ordered = sorted(groups, key=lambda each: each.place, reverse=descending)
        return sorted(ordered, key=lambda each: each.constraint == narrowing.NO_VALUE)

    def of_value(self, value: Value) -> Condition:
        return OneOf(self.name, (value,), written=isinstance(value, str) and not self.folded)

    def of_period(self, period: Period) -> Condition:
        return Between(self.name, period.low, period.high, high_open=True)

    def of_none(self) -> Condition:
        return Unless(HasValue(self.name))

    def meaning(self, constraint: str) -> Condition:
        """Raises BadQuery, WrongValue."""
        name = narrowing.read(constraint)
        if name is None:
            return self.of_none()
        if self.buckets:
            for bucket in self.buckets:
                if bucket.name == name:
                    return bucket.condition
            raise WrongValue(f"The facet {self.id[:100]!r} has no value {name[:100]!r}.")
        if self.unit is not None:
            return self.of_period(periods.by_name(self.unit, name, self.zone))
        return self.of_value(values.read(self.kind, self.name, name))


class FacetBinder:
    """Relative dates count from ``now``."""

    def __init__(self, catalogue: Catalogue, now: Instant, limits: FacetLimits) -> None:
        self._catalogue = catalogue
        self._now = now
        self._limits = limits
        self._ids: set[str] = set()

    def bind(self, definitions: Sequence[FacetDefinition]) -> tuple[BoundFacet, ...]:
        """Raises BadQuery, UnknownProperty, WrongValue."""
        numbers = [_number(each) for each in definitions]
        if sum(each.levels for each in numbers) > self._limits.definitions:
            raise BadQuery(f"A search has at most {self._limits.definitions} facet-definitions.")
        stated_values = sum(each.values for each in numbers if not each.open)
        open_count = sum(each.open for each in numbers)
        room = (self._limits.values - stated_values) // max(open_count, 1)
        if room < 0 or any(each.open and each.values > max(room, 0) for each in numbers):
            raise BadQuery(f"Facets have at most {self._limits.values} values together: lower 'max-values'.")
        return tuple(
            self._bind(definition, room // max(number.values, 1))
            for definition, number in zip(definitions, numbers, strict=True)
        )

    def _bind(self, definition: FacetDefinition, room: int) -> BoundFacet:
        with naming_place(definition.place):
            try:
                return self._check(definition, room)
            except BadQuery as refusal:
                if not definition.place or refusal.sentence.endswith(")."):
                    raise
                raise BadQuery(f"{refusal.sentence.rstrip('.')} ({definition.place}).") from refusal

    def _check(self, definition: FacetDefinition, room: int) -> BoundFacet:
        if len(definition.id) > _LONGEST_TEXT:
            raise BadQuery(f"The id of a facet-definition has at most {_LONGEST_TEXT} characters.")
        if definition.id in self._ids:
            raise BadQuery(f"Two facet-definitions have the id {definition.id[:100]!r}.")
        self._ids.add(definition.id)
        if len(definition.attributes) != 1:
            raise BadQuery("A facet-definition counts by one attribute: write a definition for each.")
        name = definition.attributes[0]
        if name in NOT_FACETS:
            raise WrongValue(f"The property {name!r} cannot be a facet.")
        kind = self._catalogue.searchable(name).kind
        group_by = _group_by(definition.group_by)
        properties = _properties(definition, group_by)
        if group_by == "relativedate" and definition.nested is not None:
            raise BadQuery("No facet-definition is nested in one by relativeDate.")
        if group_by not in ("string", "range", "alpharange") and kind != "date":
            raise WrongValue(f"{definition.group_by} groups dates; the property {name!r} is of kind {kind}.")
        zone = properties.get("timezone", "")
        buckets: tuple[Bucket, ...] = ()
        if group_by == "range":
            buckets = _ranges(name, kind, properties.get("range", ""))
        elif group_by == "alpharange":
            buckets = _letters(name, kind, properties.get("range", ""))
        elif group_by == "relativedate":
            buckets = _relative(name, self._now, zones.read(zone))
        zones.read(zone)
        unlimited = definition.max_values < 0
        own_order: FacetSort = "VALUE_ASCENDING" if unlimited or group_by == "relativedate" else "FREQUENCY"
        return BoundFacet(
            id=definition.id,
            name=name,
            kind=kind,
            group_by=group_by,
            sort=definition.sort or own_order,
            limit=room if unlimited else definition.max_values,
            capped=unlimited,
            buckets=buckets,
            with_null=_truth(properties, "nullValueFacet"),
            folded=_truth(properties, "caseInsensitive"),
            timezone=zone,
            in_utc=_truth(properties, "returnUTC"),
            all_periods=not _truth(properties, "skipEmptyValues", default=True),
            nested=None if definition.nested is None else self._bind(definition.nested, room),
        )


def narrowing_condition(facets: Sequence[BoundFacet], narrowings: Sequence[narrowing.Narrowing]) -> Condition | None:
    """Raises BadQuery, WrongValue."""
    by_id = {level.id: level for facet in facets for level in facet.levels()}
    conditions: list[Condition] = []
    for each in narrowings:
        if each.facet_id not in by_id:
            raise BadQuery(f"The search has no facet {each.facet_id[:100]!r} to be narrowed by.")
        facet = by_id[each.facet_id]
        groups = [
            ConditionSet("AND", tuple(facet.meaning(constraint) for constraint in group)) for group in each.alternatives
        ]
        conditions.append(ConditionSet("OR", tuple(groups)))
    return ConditionSet("AND", tuple(conditions)) if conditions else None


def property_names(facets: Sequence[BoundFacet]) -> frozenset[str]:
    return frozenset(level.name for facet in facets for level in facet.levels())


class _Number(msgspec.Struct, frozen=True):
    """Counts levels, and values; a level without limit counts as one."""

    levels: int
    values: int
    open: bool


def _number(definition: FacetDefinition) -> _Number:
    levels, product, total, unlimited = 0, 1, 0, False
    level: FacetDefinition | None = definition
    while level is not None:
        if level.max_values < 0 and unlimited:
            raise BadQuery("Of nested facet-definitions, one alone may show all values.")
        unlimited = unlimited or level.max_values < 0
        product *= 1 if level.max_values < 0 else level.max_values
        levels, total, level = levels + 1, total + product, level.nested
    return _Number(levels, total, unlimited)


def _group_by(text: str) -> GroupBy:
    for name in get_args(GroupBy):
        if name == text.lower():
            group_by: GroupBy = name
            return group_by
    raise BadQuery(f"Facets are grouped by string, range, alpharange, relativeDate, {', '.join(_UNITS)}, not {text!r}.")


def _properties(definition: FacetDefinition, group_by: GroupBy) -> dict[str, str]:
    by_letters = {name.lower(): name for name in _KNOWN}
    properties: dict[str, str] = {}
    for name, text in definition.properties:
        property_name = by_letters.get(name.lower())
        if property_name is None:
            raise BadQuery(f"A facet-definition has no property {name[:100]!r}.")
        if property_name in properties:
            raise BadQuery(f"The facet-definition has more than one property {property_name!r}.")
        if property_name in _READ[group_by]:
            properties[property_name] = text.strip()
    if _truth(properties, "keepDuplicateValues"):
        raise BadQuery("keepDuplicateValues is not offered: a hit counts once for each of its values.")
    return properties


def _truth(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = properties.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise BadQuery(f"The property {name!r} of a facet-definition is true or false, not {text[:40]!r}.")
    return text == "true" if text else default


def _texts_of_ranges(text: str) -> list[str]:
    texts = [part.strip() for part in text.split(",") if part.strip()]
    if not texts:
        raise BadQuery("The facet-definition needs a property 'range', such as ':10,10:100,100:'.")
    if len(texts) > _MOST_RANGES:
        raise BadQuery(f"A facet-definition has at most {_MOST_RANGES} ranges.")
    if max(map(len, texts)) > _LONGEST_TEXT:
        raise BadQuery(f"A range of a facet-definition has at most {_LONGEST_TEXT} characters.")
    if len(set(texts)) < len(texts):
        raise BadQuery("The facet-definition has the same range twice.")
    return texts


def _ranges(name: str, kind: values.Kind, text: str) -> tuple[Bucket, ...]:
    if kind not in ("integer", "double"):
        raise WrongValue(f"range groups numbers; the property {name!r} is of kind {kind}.")
    buckets = []
    for part in _texts_of_ranges(text):
        ends = [end.strip() for end in part.split(":")]
        if len(ends) != 2:
            raise BadQuery(f"A range has the form low:high, not {part[:100]!r}.")
        low, high = (_end(name, kind, end) for end in ends)
        if low is None and high is None:
            condition: Condition = HasValue(name)
        elif low is not None and high is not None and low > high:
            raise BadQuery(f"The range {part[:100]!r} ends before it begins.")
        else:
            condition = Between(name, low, high, high_open=True)
        buckets.append(Bucket(part, condition))
    return tuple(buckets)


def _end(name: str, kind: values.Kind, text: str) -> float | None:
    if not text:
        return None
    if kind == "integer" and not any(sign in text for sign in ".eE"):
        number = values.read("integer", name, text)
        assert isinstance(number, int)  # noqa: S101 - what the kind says
        return number
    number = values.read("double", name, text)
    # A whole number is below 2.5 exactly if it is below 3.
    return float(number) if kind == "double" else math.ceil(float(number))


def _letters(name: str, kind: values.Kind, text: str) -> tuple[Bucket, ...]:
    if kind not in ("string", "id"):
        raise WrongValue(f"alpharange groups strings; the property {name!r} is of kind {kind}.")
    buckets = []
    for part in _texts_of_ranges(text):
        ends = [fold(end.strip()) for end in part.split(":")]
        if len(ends) != 2 or any(len(end) != 1 for end in ends):
            raise BadQuery(f"A range of letters has the form a:z, not {part[:100]!r}.")
        if ends[0] > ends[1]:
            raise BadQuery(f"The range {part[:100]!r} ends before it begins.")
        buckets.append(Bucket(part, Between(name, ends[0], _letter_after(ends[1]), high_open=True)))
    return tuple(buckets)


def _letter_after(letter: str) -> str | None:
    for code in range(ord(letter) + 1, 0x110000):
        if not 0xD800 <= code <= 0xDFFF and fold(chr(code)) == chr(code):
            return chr(code)
    return None


def _relative(name: str, now: Instant, zone: tzinfo) -> tuple[Bucket, ...]:
    """They overlap: today is a day of this week, too."""
    day = periods.local_day(now, zone)
    buckets: list[Bucket] = []
    last_year: Period | None = None
    names = {"day": ("today", "yesterday")}
    for unit in ("day", "week", "month", "year"):
        present = periods.at(unit, day, zone)
        previous = periods.at(unit, periods.local_day(present.low - 1, zone), zone)
        of_unit = names.get(unit, (f"this {unit}", f"last {unit}"))
        for bucket_name, period in zip(of_unit, (present, previous), strict=True):
            buckets.append(Bucket(bucket_name, Between(name, period.low, period.high, high_open=True)))
        last_year = previous
    assert last_year is not None  # noqa: S101 - the loop above has run
    return (*buckets, Bucket("older", Between(name, None, last_year.low, high_open=True)))
