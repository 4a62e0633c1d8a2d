"""Read XML from strangers into plain elements, within caps: no DTD, no entities, no processing instructions.

Source: XML 1.0 (fifth edition), Namespaces in XML 1.0.
"""

from functools import partial
from typing import NoReturn
from xml.parsers import expat

import msgspec

from muniment.ground.refusals import Malformed

_MOST_ATTRIBUTES = 32


class Element(msgspec.Struct, frozen=True):
    """``text`` is the character data directly inside it; ``line`` and ``column`` begin at 1.

    Attributes' keys are names, or ``{namespace}name``. ``path`` is for elements that were not read from XML.
    """

    namespace: str
    name: str
    attributes: dict[str, str]
    children: list["Element"]
    text: str
    line: int = 0
    column: int = 0
    path: str = ""

    @property
    def place(self) -> str:
        return self.path or f"line {self.line}, column {self.column}"


def parse(body: bytes, max_depth: int = 32, max_elements: int = 10_000) -> Element:
    """Raises Malformed, with line and column, also for a DOCTYPE, a processing instruction, and above a cap: depth,
    elements, or the attributes of one.
    """
    return _Reader(max_depth, max_elements).read(body)


class _Reader:
    def __init__(self, max_depth: int, max_elements: int) -> None:
        self._max_depth = max_depth
        self._max_elements = max_elements
        self._elements = 0
        self._open: list[tuple[Element, list[str]]] = []  # without an end tag yet, each with its text
        self._root: Element | None = None
        # No namespace name contains a line feed, because attribute values are normalised first.
        parser = self._parser = expat.ParserCreate(namespace_separator="\n")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = partial(
            self._refuse, "The XML may not have a document type declaration"
        )
        parser.ProcessingInstructionHandler = partial(self._refuse, "The XML may not have processing instructions")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def read(self, body: bytes) -> Element:
        try:
            self._parser.Parse(body, True)
        except expat.ExpatError as error:
            if not body.strip():
                raise Malformed("The body is empty: it must hold an XML document.") from error
            place = f"line {error.lineno}, column {error.offset + 1}"
            raise Malformed(f"The XML is not well-formed: {expat.ErrorString(error.code)} ({place}).") from error
        except (LookupError, ValueError) as error:
            raise Malformed("The XML is not well-formed: its encoding is not known (line 1, column 1).") from error
        if self._root is None:
            raise Malformed("The XML is not well-formed: there is no element (line 1, column 1).")
        return self._root

    def _refuse(self, what: str, *_: object) -> NoReturn:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        raise Malformed(f"{what} (line {line}, column {column}).")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > self._max_elements:
            self._refuse(f"The XML has more than {self._max_elements} elements")
        if len(self._open) >= self._max_depth:
            self._refuse(f"The XML is nested deeper than {self._max_depth} elements")
        if len(attributes) > _MOST_ATTRIBUTES:
            self._refuse(f"An element has more than {_MOST_ATTRIBUTES} attributes")
        named_attributes = {_attribute(key): value for key, value in attributes.items()}
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        namespace, _, name = name.rpartition("\n")
        element = Element(namespace, name, named_attributes, [], "", line, column)
        if self._open:
            self._open[-1][0].children.append(element)
        else:
            self._root = element
        self._open.append((element, []))

    def _end(self, _name: str) -> None:
        element, pieces = self._open.pop()
        msgspec.structs.force_setattr(element, "text", "".join(pieces))

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)


def _attribute(key: str) -> str:
    namespace, separator, name = key.rpartition("\n")
    return f"{{{namespace}}}{name}" if separator else key
