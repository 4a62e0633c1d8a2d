"""By which values may a person narrow a search, what are they called, and what do they mean as expressions of AQL?"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.endpoints.search import elements
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.search.aql.tree import FacetDefinition
from muniment.repository.search.index.contract import FacetValue

_SHOWN = 10
_YEAR = re.compile(r"[0-9]{4}")

_SIZES: Mapping[str, str] = {
    "1-9999": "under 10 kB",
    "10000-99999": "10 to 100 kB",
    "100000-999999": "100 kB to 1 MB",
    "1000000-9999999": "1 to 10 MB",
    "10000000-": "10 MB and more",
}
"""Sizes are in bytes, both ends included."""

_FORMATS: Mapping[str, str] = {
    "application/epub+zip": "E-book",
    "application/gzip": "Packed file",
    "application/javascript": "JavaScript",
    "application/json": "JSON",
    "application/mbox": "Mailbox",
    "application/msword": "Word",
    "application/octet-stream": "Unknown format",
    "application/pdf": "PDF",
    "application/rtf": "Rich text",
    "application/vnd.apple.keynote": "Keynote",
    "application/vnd.apple.numbers": "Numbers",
    "application/vnd.apple.pages": "Pages",
    "application/vnd.ms-excel": "Excel",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "Excel",
    "application/vnd.ms-excel.sheet.macroenabled.12": "Excel",
    "application/vnd.ms-outlook": "Outlook mail",
    "application/vnd.ms-powerpoint": "PowerPoint",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "PowerPoint",
    "application/vnd.ms-visio.drawing": "Visio",
    "application/vnd.ms-word.document.macroenabled.12": "Word",
    "application/vnd.oasis.opendocument.presentation": "OpenDocument slides",
    "application/vnd.oasis.opendocument.spreadsheet": "OpenDocument table",
    "application/vnd.oasis.opendocument.text": "OpenDocument text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
    "application/vnd.rar": "RAR archive",
    "application/vnd.visio": "Visio",
    "application/vnd.wordperfect": "WordPerfect",
    "application/x-7z-compressed": "7-Zip archive",
    "application/x-ipynb+json": "Notebook",
    "application/x-tar": "Tar archive",
    "application/x-tex": "TeX",
    "application/xml": "XML",
    "application/zip": "ZIP archive",
    "image/svg+xml": "Drawing (SVG)",
    "message/rfc822": "E-mail",
    "text/calendar": "Calendar",
    "text/css": "Style sheet",
    "text/csv": "CSV",
    "text/html": "Web page",
    "text/javascript": "JavaScript",
    "text/markdown": "Markdown",
    "text/plain": "Text",
    "text/tab-separated-values": "Table (tabs)",
    "text/vcard": "Contact",
    "text/xml": "XML",
}
_FAMILIES: Mapping[str, str] = {
    "audio": "Sound",
    "font": "Font",
    "image": "Picture",
    "text": "Text",
    "video": "Video",
}
"""In these kinds, other formats than ``_FORMATS`` follow in parentheses."""


class Choice(NamedTuple):
    """A property by whose values a search is narrowed: a hit has one of those chosen.

    ``id`` is also the parameter in the address. ``value`` makes its value of a counted one, ``label`` what a person
    reads; ``check`` raises Malformed if it is wrong; ``expression`` is its meaning in AQL.
    """

    id: str
    heading: str
    property: str
    definition: FacetDefinition
    value: Callable[[RepositoryNames, FacetValue], str]
    label: Callable[[RepositoryNames, str], str]
    check: Callable[[str], str]
    expression: Callable[[RepositoryNames, Sequence[str]], Element]


def format_label(media_type: str) -> str:
    bare, _, parameters = media_type.partition(";")
    bare, charset = bare.strip().lower(), parameters.strip().lower().removeprefix("charset=")
    family, _, kind = bare.partition("/")
    details = [charset] if charset else []
    known = _FORMATS.get(bare)
    if known is None and family in _FAMILIES:
        known, details = _FAMILIES[family], [kind.removeprefix("x-"), *details]
    if known is None:
        return media_type
    return f"{known} ({', '.join(details)})" if details else known


def _named(names: RepositoryNames, value: FacetValue) -> str:
    del names
    return value.name


def _typed(names: RepositoryNames, value: FacetValue) -> str:
    return spelling.write_type(value.name, names)


def _sized(names: RepositoryNames, value: FacetValue) -> str:
    del names
    low, _, high = value.name.partition(":")
    return f"{low}-{int(high) - 1}" if high else f"{low}-"


def _year(text: str) -> str:
    if not _YEAR.fullmatch(text) or text == "0000":
        raise Malformed("A year has four digits.")
    return text


def _size(text: str) -> str:
    if text not in _SIZES:
        raise Malformed(f"There is no range of sizes {text[:40]!r}.")
    return text


def _listed(property_name: str) -> Callable[[RepositoryNames, Sequence[str]], Element]:
    return lambda names, values: elements.listed(names, property_name, values)


def _years(names: RepositoryNames, values: Sequence[str]) -> Element:
    years = [elements.ranged(names, "a_content_date", f"{year}-01-01", f"{year}-12-31") for year in values]
    return elements.together(names, "OR", years)


def _sizes(names: RepositoryNames, values: Sequence[str]) -> Element:
    ends = [value.partition("-") for value in values]
    sizes = [elements.ranged(names, "r_full_content_size", low, high) for low, _, high in ends]
    return elements.together(names, "OR", sizes)


_RANGES = ",".join(
    f"{low}:{int(high) + 1 if high else ''}" for low, _, high in (each.partition("-") for each in _SIZES)
)

CHOICES = (
    Choice(
        *("type", "Type", "r_object_type"),
        FacetDefinition("type", ("r_object_type",), max_values=_SHOWN),
        _typed,
        lambda names, value: value.removeprefix(names.type_prefix),
        str,
        _listed("r_object_type"),
    ),
    Choice(
        *("format", "Format", "a_content_type"),
        FacetDefinition("format", ("a_content_type",), max_values=_SHOWN),
        _named,
        lambda _names, value: format_label(value),
        str,
        _listed("a_content_type"),
    ),
    Choice(
        *("owner", "Owner", "owner_name"),
        FacetDefinition("owner", ("owner_name",), max_values=_SHOWN),
        _named,
        lambda _names, value: value,
        str,
        _listed("owner_name"),
    ),
    Choice(
        *("changed", "Changed", "a_content_date"),
        FacetDefinition("changed", ("a_content_date",), "year", "VALUE_DESCENDING", max_values=_SHOWN),
        _named,
        lambda _names, value: value,
        _year,
        _years,
    ),
    Choice(
        *("size", "Size", "r_full_content_size"),
        FacetDefinition(
            "size",
            ("r_full_content_size",),
            "range",
            "VALUE_ASCENDING",
            properties=(("range", _RANGES),),
            max_values=len(_SIZES),
        ),
        _sized,
        lambda _names, value: _SIZES[value],
        _size,
        _sizes,
    ),
)

BY_ID: Mapping[str, Choice] = {choice.id: choice for choice in CHOICES}


def values_of(names: RepositoryNames, element: Element, texts: Sequence[str]) -> list[tuple[str, str]]:
    """List the choices and values that may have made an expression; the caller checks whether they mean it."""
    name = element.attributes.get("name")
    for choice in CHOICES:
        if spelling.write_property(choice.property, names) == name:
            if element.name == "property-list":
                return [(choice.id, text) for text in texts]
            low, high = texts[0], texts[1] if len(texts) == 2 else ""
            return [(choice.id, low[:4] if choice.id == "changed" else f"{low}-{high}")]
    return []
