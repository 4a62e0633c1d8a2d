"""Read a query document in JSON, or write one: the second spelling of the elements of given 2.8.

In an expression, ``expression-type`` names the element, ``value`` is its text, ``from`` and ``to`` are children, other
scalars attributes. A list is an element with a child for each item; null is absent.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muniment.ground import json_text
from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.spelling import documents
from muniment.repository.search.aql.tree import Query, QueryLimits

_TEXT = "value"
_ITEMS = {**documents.LISTS, "attributes": "attribute", "values": "value"}
_NUMBERS = frozenset({documents.ROOT_NUMBER, "max-values"})
_FLAGS = frozenset({*documents.ROOT_FLAGS, *documents.EXPRESSION_FLAGS, "ascending", "ascii", "descendent"})
_decoder = msgspec.json.Decoder()


def read(document: bytes, names: RepositoryNames, limits: QueryLimits) -> Query:
    """Raises BadQuery, which names the place by its keys, and what ``documents.read`` raises."""
    return documents.read(elements(document, names, limits), names, limits)


def elements(document: bytes, names: RepositoryNames, limits: QueryLimits) -> Element:
    if not document.strip():
        raise BadQuery("The search document is empty: it must hold a JSON object.")
    try:
        json_value = json_text.decode(document, _decoder)
    except Malformed as malformed:
        raise BadQuery(malformed.sentence) from malformed
    return _Reader(names.vocab_namespace, limits).root(json_value)


def write(element: Element) -> str:
    return msgspec.json.encode(_root(element)).decode()


class _Reader:
    """``at`` is the path of keys to a value."""

    def __init__(self, namespace: str, limits: QueryLimits) -> None:
        self._namespace = namespace
        self._elements_left = 4 * limits.clauses + 1000
        self._depth = limits.depth

    def root(self, document: object) -> Element:
        items = {"sorts": self._sort, "locations": self._location, "facet-definitions": self._facet}
        attributes: dict[str, str] = {}
        children: list[Element] = []
        for key, value in self._pairs(document, "the document"):
            if key == "expression-set":
                children.append(self._expression(value, key, 1, "expression-set"))
            elif key in items:
                children.append(self._several(key, value, items[key]))
            elif key in documents.LISTS:
                children.append(self._texts(key, value, key))
            else:
                attributes[key] = self._scalar(value, key)
        return self._element("search", "the document", attributes, children)

    def _expression(self, value: object, at: str, depth: int, default: str = "") -> Element:
        if depth > self._depth + 1:
            raise BadQuery(f"The query's expression sets are nested deeper than {self._depth} ({at}).")
        pairs = dict(self._pairs(value, at))
        kind = pairs.pop("expression-type", default)
        if not isinstance(kind, str) or not kind:
            raise BadQuery(f"The expression has no 'expression-type' ({at}).")
        attributes: dict[str, str] = {}
        children: list[Element] = []
        text = ""
        for key, inner in pairs.items():
            inner_path = f"{at}.{key}"
            if key == "expressions":
                expressions = [
                    self._expression(one, f"{inner_path}[{number}]", depth + 1)
                    for number, one in enumerate(self._items(inner, inner_path))
                ]
                children.append(self._element("expressions", inner_path, {}, expressions))
            elif key == "values":
                children.append(self._texts(key, inner, inner_path))
            elif key in ("from", "to"):
                children.append(self._element(key, inner_path, text=self._scalar(inner, inner_path)))
            elif key == _TEXT:
                text = self._scalar(inner, inner_path)
            else:
                attributes[key] = self._scalar(inner, inner_path)
        return self._element(kind, at, attributes, children, text)

    def _sort(self, value: object, at: str) -> Element:
        pairs = dict(self._pairs(value, at))
        name = self._scalar(pairs.pop("property", ""), f"{at}.property")
        attributes = {key: self._scalar(inner, f"{at}.{key}") for key, inner in pairs.items()}
        return self._element("sort", at, attributes, text=name)

    def _location(self, value: object, at: str) -> Element:
        pairs = dict(self._pairs(value, at))
        kind = self._scalar(pairs.pop("location-type", ""), at)
        if kind not in ("id-location", "path-location"):
            raise BadQuery(
                f"A location's 'location-type' is 'id-location' or 'path-location', not {kind[:40]!r} ({at})."
            )
        part = kind.removesuffix("-location")
        text = self._scalar(pairs.pop(part, ""), f"{at}.{part}")
        attributes = {key: self._scalar(inner, f"{at}.{key}") for key, inner in pairs.items()}
        return self._element(kind, at, attributes, [self._element(part, f"{at}.{part}", text=text)])

    def _facet(self, value: object, at: str, depth: int = 0) -> Element:
        if depth > self._depth:
            raise BadQuery(f"The facet-definitions are nested too deeply ({at}).")
        attributes: dict[str, str] = {}
        children: list[Element] = []
        for key, inner in self._pairs(value, at):
            inner_path = f"{at}.{key}"
            if key == "attributes":
                children.append(self._texts(key, inner, inner_path))
            elif key == "sort":
                children.append(self._element(key, inner_path, text=self._scalar(inner, inner_path)))
            elif key == "properties":
                properties = [
                    self._element(
                        "property",
                        f"{inner_path}.{name}",
                        {"name": name},
                        text=self._scalar(one, f"{inner_path}.{name}"),
                    )
                    for name, one in self._pairs(inner, inner_path)
                ]
                children.append(self._element(key, inner_path, {}, properties))
            elif key == "facet-definition":
                children.append(self._facet(inner, inner_path, depth + 1))
            else:
                attributes[key] = self._scalar(inner, inner_path)
        return self._element("facet-definition", at, attributes, children)

    def _several(self, key: str, value: object, make: Any) -> Element:
        items = [make(one, f"{key}[{number}]") for number, one in enumerate(self._items(value, key))]
        return self._element(key, key, {}, items)

    def _texts(self, key: str, value: object, at: str) -> Element:
        items = []
        for number, one in enumerate(self._items(value, at)):
            # Early callers wrote a column as an object with a name.
            text = one.get("name", "") if key == "columns" and isinstance(one, Mapping) else one
            item_path = f"{at}[{number}]"
            items.append(self._element(_ITEMS[key], item_path, text=self._scalar(text, item_path)))
        return self._element(key, at, {}, items)

    def _pairs(self, value: object, at: str) -> Iterator[tuple[str, object]]:
        if not isinstance(value, Mapping):
            raise BadQuery(f"An object is expected here, not {_describe(value)} ({at}).")
        return ((str(key), inner) for key, inner in value.items() if inner is not None)

    def _items(self, value: object, at: str) -> list[object]:
        if not isinstance(value, list):
            raise BadQuery(f"A list is expected here, not {_describe(value)} ({at}).")
        return value

    def _scalar(self, value: object, at: str) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return repr(value)
        if not isinstance(value, str):
            raise BadQuery(f"A text is expected here, not {_describe(value)} ({at}).")
        return value

    def _element(
        self,
        name: str,
        at: str,
        attributes: dict[str, str] | None = None,
        children: list[Element] | None = None,
        text: str = "",
    ) -> Element:
        self._elements_left -= 1
        if self._elements_left < 0:
            raise BadQuery(f"The query has too many parts ({at}).")
        return Element(self._namespace, name, attributes or {}, children or [], text, path=at)


def _describe(value: object) -> str:
    match value:
        case Mapping():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            return repr(value)[:40]


def _texts(element: Element) -> list[str]:
    return [one.text.strip() for one in element.children]


def _root(element: Element) -> dict[str, object]:
    members: dict[str, object] = _scalars(element)
    for child in element.children:
        match child.name:
            case "expression-set":
                members[child.name] = _expression(child)
            case "sorts":
                members[child.name] = [{"property": one.text.strip(), **_scalars(one)} for one in child.children]
            case "locations":
                members[child.name] = [_location(one) for one in child.children]
            case "facet-definitions":
                members[child.name] = [_facet(one) for one in child.children]
            case _:
                members[child.name] = _texts(child)
    return members


def _expression(element: Element) -> dict[str, object]:
    members: dict[str, object] = {"expression-type": element.name, **_scalars(element)}
    match element.name:
        case "expression-set":
            members["expressions"] = [_expression(one) for inner in element.children for one in inner.children]
        case "property-list":
            members["values"] = [text for inner in element.children for text in _texts(inner)]
        case "property-range":
            members |= {end.name: end.text.strip() for end in element.children}
        case "relative-date":
            members["value"] = int(element.text.strip())
        case _:
            members["value"] = element.text.strip()
    return members


def _location(element: Element) -> dict[str, object]:
    inner = {one.name: one.text.strip() for one in element.children}
    return {"location-type": element.name, **_scalars(element), **inner}


def _facet(element: Element) -> dict[str, object]:
    members = _scalars(element)
    for child in element.children:
        match child.name:
            case "attributes":
                members[child.name] = _texts(child)
            case "properties":
                members[child.name] = {one.attributes.get("name", ""): one.text.strip() for one in child.children}
            case "facet-definition":
                members[child.name] = _facet(child)
            case _:
                members[child.name] = child.text.strip()
    return members


def _scalars(element: Element) -> dict[str, object]:
    return {name: _to_json(name, value) for name, value in element.attributes.items() if not name.startswith("{")}


def _to_json(name: str, value: str) -> object:
    if name in _FLAGS:
        return value.strip().lower() == "true"
    return int(value) if name in _NUMBERS else value
