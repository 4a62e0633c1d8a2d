"""What does the address of a search page ask, and how is that said as a query document?"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.endpoints.search import elements, typed_questions
from muniment.repository.api.endpoints.search.typed_questions import Understood
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.page.asking import choices
from muniment.repository.page.asking.choices import CHOICES
from muniment.repository.refusals import WrongValue
from muniment.repository.search.answering.inquiry import WordsNeeded
from muniment.repository.search.aql import typed

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_ID = re.compile(r"[0-9A-Za-z]{1,40}")
_MOST_VALUES = 100


class HitOrder(NamedTuple):
    """An order of hits that the page offers."""

    heading: str
    property: str
    ascending: bool


ORDERS: Mapping[str, HitOrder] = {
    "newest": HitOrder("Newest first", "a_content_date", ascending=False),
    "oldest": HitOrder("Oldest first", "a_content_date", ascending=True),
    "name": HitOrder("Name", "object_name", ascending=True),
    "largest": HitOrder("Largest first", "r_full_content_size", ascending=False),
}

_NEEDED: Mapping[str, WordsNeeded] = {"all": "all", "any": "any"}


class PageQuestion(msgspec.Struct, frozen=True):
    """What an address asks.

    ``words`` is None without ``q``. ``chosen`` goes by choice. The question adds to the search ``saved``, and may
    replace the search ``edited``. An empty ``sort`` is the search's own; ``needed`` None lets the server relax.
    """

    repository: str = ""
    words: str | None = None
    chosen: dict[str, tuple[str, ...]] = {}
    folder: str = ""
    saved: str = ""
    edited: str = ""
    sort: str = ""
    page: int = 1
    needed: WordsNeeded | None = None

    @property
    def asks(self) -> bool:
        return self.words is not None or bool(self.chosen or self.folder or self.saved)

    def address(self, **changes: object) -> str:
        """Unless the changes name a ``page``, the address leads to the first page."""
        asked = replace(self, **{"page": 1, **changes})
        pairs = [("in", asked.repository), ("q", asked.words or "")]
        pairs += [(choice.id, value) for choice in CHOICES for value in asked.chosen.get(choice.id, ())]
        pairs += [("folder", asked.folder), ("saved", asked.saved), ("sort", asked.sort), ("words", asked.needed or "")]
        pairs.append(("edited", asked.edited))
        pairs.append(("page", str(asked.page) if asked.page > 1 else ""))
        written = [(name, value) for name, value in pairs if value or (name == "q" and asked.words is not None)]
        return f"?{urlencode(written)}" if written else ""

    def without(self, choice_id: str, value: str = "") -> "PageQuestion":
        left = tuple(each for each in self.chosen.get(choice_id, ()) if value not in ("", each))
        chosen = {name: values for name, values in self.chosen.items() if name != choice_id}
        return replace(self, chosen={**chosen, choice_id: left} if left else chosen, page=1)

    def document(self, names: RepositoryNames, understood: Understood, more: Element | None = None) -> Element:
        """Add the meaning of the words, and ``more``.

        Raises WrongValue if the words name a folder, and the question is narrowed to another one.
        """
        space, text = names.vocab_namespace, understood.translation.text
        expressions = [] if more is None else [more]
        expressions += [elements.fulltext(names, text)] if text else []
        expressions += understood.expressions
        expressions += [
            choice.expression(names, self.chosen[choice.id]) for choice in CHOICES if choice.id in self.chosen
        ]
        if self.folder and understood.locations:
            raise WrongValue("The words name a folder with in: and cannot be narrowed to another one.")
        folder = [elements.in_folder(names, folder_id=self.folder, place="the folder")] if self.folder else []
        document = elements.search(names, expressions, [*folder, *understood.locations])
        parts = list(document.children)
        if self.sort:
            order = ORDERS[self.sort]
            direction = {"ascending": "true" if order.ascending else "false"}
            name = spelling.write_property(order.property, names)
            parts.append(Element(space, "sorts", {}, [Element(space, "sort", direction, [], name)], ""))
        return replace(document, children=parts)

    def means(self, document: Element, names: RepositoryNames, understood: Understood) -> bool:
        return _bare(self.document(names, understood)) == _bare(document)


def read(pairs: Iterable[tuple[str, str]]) -> PageQuestion:
    """Ignore unknown parameters. Only those of choices may be repeated. Raises Malformed."""
    single: dict[str, str] = {}
    chosen: dict[str, dict[str, None]] = {}
    for name, value in pairs:
        if name in choices.BY_ID:
            if value:
                chosen.setdefault(name, {})[choices.BY_ID[name].check(value)] = None
        elif name in single:
            raise Malformed(f"The address repeats the parameter {name[:100]!r}.")
        else:
            single[name] = value
    if sum(map(len, chosen.values())) > _MOST_VALUES:
        raise Malformed(f"A page is narrowed by at most {_MOST_VALUES} values.")
    sort, page = single.get("sort", ""), single.get("page", "") or "1"
    if sort and sort not in ORDERS:
        raise Malformed(f"There is no order {sort[:40]!r}: it is one of {', '.join(ORDERS)}.")
    if not _NUMBER.fullmatch(page):
        raise Malformed("A page has a number from 1 on.")
    for name in ("folder", "saved", "edited"):
        if single.get(name) and not _ID.fullmatch(single[name]):
            raise Malformed(f"The parameter {name!r} is an id.")
    return PageQuestion(
        repository=single.get("in", ""),
        words=single.get("q"),
        chosen={name: tuple(values) for name, values in chosen.items()},
        folder=single.get("folder", "").lower(),
        saved=single.get("saved", "").lower(),
        edited=single.get("edited", "").lower(),
        sort=sort,
        page=int(page),
        needed=_NEEDED.get(single.get("words", "")),
    )


def of_document(document: Element, names: RepositoryNames) -> PageQuestion | None:
    """Return None if the page has no question that asks the same."""
    pairs: list[tuple[str, str]] = []
    for element in _every(document):
        if element.name == "fulltext":
            pairs.append(("q", element.text.strip()))
        elif element.name == "id":
            pairs.append(("folder", element.text.strip()))
        elif element.name == "sort":
            ascending, name = element.attributes.get("ascending") == "true", element.text.strip()
            pairs += [
                ("sort", order_id)
                for order_id, order in ORDERS.items()
                if (spelling.write_property(order.property, names), order.ascending) == (name, ascending)
            ]
        else:
            pairs += choices.values_of(names, element, [each.text for each in _every(element) if not each.children])
    try:
        asked = read(pairs)
    except Malformed:
        return None
    words = asked.words or ""
    if typed.has_fields(words) or not asked.means(document, names, typed_questions.of_words(words)):
        return None
    return asked if asked.asks else replace(asked, words="")


def _every(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _every(child)


def _bare(element: Element) -> tuple[object, ...]:
    inner = tuple(map(_bare, element.children))
    return element.namespace, element.name, element.attributes, inner, element.text.strip()
