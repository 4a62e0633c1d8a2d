"""Which query does somebody mean who types a question, with fields such as ``type:invoice``?

Fields are read with one repository's types and folders, as the caller sees it, as expressions or locations of AQL.

Source: docs/aql.md, "As people type".
"""

import calendar
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.xml import Element
from muniment.repository.api.endpoints.search import elements
from muniment.repository.api.wire import spelling
from muniment.repository.bulk.importing.media_types import media_type_of
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownType, WrongValue
from muniment.repository.search.answering.scope import locations
from muniment.repository.search.aql import typed
from muniment.repository.search.aql.spelling import documents
from muniment.repository.search.aql.tree import Location, PropertyOperator, Query, QueryLimits
from muniment.repository.search.aql.typed import Translation, TypedField
from muniment.repository.store.objects.listing.view import RepositoryView

_DAY = re.compile(r"[12][0-9]{3}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)?")
_FAMILIES = frozenset({"image", "audio", "video"})
_UNKNOWN = media_type_of("unknown")

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "word": ("docx", "doc"),
    "excel": ("xlsx", "xls"),
    "powerpoint": ("pptx", "ppt"),
    "opendocument text": ("odt",),
    "opendocument table": ("ods",),
    "opendocument slides": ("odp",),
    "rich text": ("rtf",),
    "text": ("txt",),
    "markdown": ("md",),
    "web page": ("html",),
    "web": ("html",),
    "mail": ("eml",),
    "email": ("eml",),
    "e-mail": ("eml",),
}
"""These formats are no endings of file names, but mean some."""

_OTHER_TYPES: Mapping[str, tuple[str, ...]] = {
    "rtf": ("application/rtf", "text/rtf"),
    "xml": ("application/xml", "text/xml"),
    "js": ("text/javascript", "application/javascript"),
}


class Understood(msgspec.Struct, frozen=True):
    """A translated question with elements of a query document. ``reasons`` say why a field of ``typed.FIELDS`` is
    searched as words.
    """

    translation: Translation
    expressions: list[Element]
    locations: list[Element]
    reasons: dict[TypedField, str]

    def document(self, names: RepositoryNames) -> Element:
        text = self.translation.text
        words = [elements.fulltext(names, text)] if text else []
        return elements.search(names, [*words, *self.expressions], self.locations)


def understand(cx: Connection, view: RepositoryView, names: RepositoryNames, text: str) -> Understood:
    fields = _Fields(cx, view, names)
    translation = typed.translate(text, fields.is_readable)
    expressions, places = fields.written(translation.fields)
    return Understood(translation, expressions, places, fields.reasons)


def of_words(text: str) -> Understood:
    return Understood(typed.translate(text), [], [], {})


def query(understood: Understood, names: RepositoryNames, limits: QueryLimits) -> Query:
    """Raises BadQuery."""
    return documents.read(understood.document(names), names, limits)


class _Fields:
    """``reasons`` say why a field cannot be read."""

    def __init__(self, cx: Connection, view: RepositoryView, names: RepositoryNames) -> None:
        self._cx = cx
        self._view = view
        self._names = names
        self.reasons: dict[TypedField, str] = {}
        self._elements: dict[TypedField, Element] = {}
        self._reading: Mapping[str, Callable[[TypedField], Element | str]] = {
            "name": lambda field: self._contains("object_name", field),
            "title": lambda field: self._contains("title", field),
            "type": self._type,
            "format": self._format,
            "owner": self._owner,
            "in": self._folder,
            "before": self._day,
            "after": self._day,
        }

    def is_readable(self, field: TypedField) -> bool:
        """Keep the element, or the reason why it cannot be read."""
        read = self._reading[field.name](field)
        if isinstance(read, str):
            self.reasons[field] = read
            return False
        self._elements[field] = read
        return True

    def written(self, fields: Sequence[TypedField]) -> tuple[list[Element], list[Element]]:
        """Any is enough of several types, formats, owners or folders: an object has one."""
        alternatives: dict[str, list[Element]] = {}
        expressions, places = list[Element](), list[Element]()
        for field in fields:
            element = self._elements[field]
            if field.name == "in":
                places.append(element)
            elif field.name in ("type", "format", "owner") and not field.unwanted:
                alternatives.setdefault(field.name, []).append(element)
            else:
                expressions.append(element)
        several = [elements.together(self._names, "OR", each) for each in alternatives.values()]
        return [*several, *expressions], places

    def _contains(self, property_name: str, field: TypedField) -> Element:
        return self._compared(property_name, "DOES_NOT_CONTAIN" if field.unwanted else "CONTAINS", field.value)

    def _compared(self, property_name: str, operator: PropertyOperator, value: str) -> Element:
        return elements.compared(self._names, property_name, operator, value)

    def _type(self, field: TypedField) -> Element | str:
        names, catalogue = self._names, self._view.catalogue
        for name in (field.value, field.value.lower(), names.type_prefix + field.value.lower()):
            try:
                neutral = spelling.read_type(name, names)
            except UnknownType:
                continue
            if neutral in catalogue:
                known = sorted(spelling.write_type(each, names) for each in catalogue.with_subtypes([neutral]))
                return elements.listed(names, "r_object_type", known, "NOT_IN" if field.unwanted else "IN")
        return f"There is no type {field.value[:100]!r}."

    def _format(self, field: TypedField) -> Element | str:
        value = field.value.lower().lstrip(".")
        named = (value,) if "/" in value else _media_types(value)
        if not named:
            return f"There is no format {field.value[:100]!r}: write one such as pdf or image/png."
        family = [each for each in named if each.endswith("*")]
        # The media type of a text may name its charset.
        patterns = family or [f"{each};*" for each in named if not each.startswith(("image/", "audio/", "video/"))]
        equal: PropertyOperator = "NOT_EQUAL" if field.unwanted else "EQUAL"
        parts = [] if family else [self._listed_formats(named, unwanted=field.unwanted)]
        parts += [self._compared("a_content_type", equal, pattern) for pattern in patterns]
        return elements.together(self._names, "AND" if field.unwanted else "OR", parts)

    def _listed_formats(self, media_types: Sequence[str], *, unwanted: bool) -> Element:
        return elements.listed(self._names, "a_content_type", media_types, "NOT_IN" if unwanted else "IN")

    def _owner(self, field: TypedField) -> Element:
        value = field.value if "@" in field.value else f"{field.value}@*"
        return self._compared("owner_name", "NOT_EQUAL" if field.unwanted else "EQUAL", value)

    def _folder(self, field: TypedField) -> Element | str:
        if field.unwanted:
            return "A folder cannot be left out."
        path = "/" + field.value.strip("/")
        try:
            locations.condition(self._cx, self._view, [Location(path, descendants=True)])
        except (BadQuery, WrongValue) as refusal:
            return refusal.sentence
        return elements.in_folder(self._names, path=path, place=field.written)

    def _day(self, field: TypedField) -> Element | str:
        if not _DAY.fullmatch(field.value):
            return f"Write a day, a month or a year, such as {field.name}:2026-05-31."
        year, month, day = (*map(int, field.value.split("-")), 0, 0)[:3]
        first = f"{year:04}-{month or 1:02}-{day or 1:02}"
        last_month = month or 12
        last_day = calendar.monthrange(year, last_month)[1]
        if day > last_day:
            return f"There is no day {field.value}."
        last = f"{year:04}-{last_month:02}-{day or last_day:02}"
        if field.name == "before":
            return self._dated("GREATER_EQUAL" if field.unwanted else "LESS_THAN", first)
        return self._dated("LESS_EQUAL" if field.unwanted else "GREATER_THAN", last)

    def _dated(self, operator: PropertyOperator, day: str) -> Element:
        """Take the date of the content, or else of the last change."""
        names = self._names
        undated = self._compared("a_content_date", "IS_NULL", ""), self._compared("r_modify_date", operator, day)
        parts = [self._compared("a_content_date", operator, day), elements.together(names, "AND", list(undated))]
        return elements.together(names, "OR", parts)


def _media_types(name: str) -> tuple[str, ...]:
    if name in _FAMILIES:
        return (f"{name}/*",)
    found: dict[str, None] = {}
    for ending in _ENDINGS.get(name, (name,)):
        media_type = media_type_of(f"file.{ending}") if re.fullmatch(r"[a-z0-9]{1,10}", ending) else _UNKNOWN
        found |= dict.fromkeys(_OTHER_TYPES.get(ending, ()))
        found |= {} if media_type == _UNKNOWN else {media_type: None}
    return tuple(found)
