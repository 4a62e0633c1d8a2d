"""Split a body in parts into its parts.

Sources: RFC 2046 5.1, RFC 7578; RFC 2387 (multipart/related: one part names the others), RFC 2392 (`cid:` addresses).
"""

from collections.abc import Mapping

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from muniment.ground.refusals import Malformed, TooLarge, UnsupportedMediaType
from muniment.web.requests import bodies

_MOST_PARTS, _PIECE = 1000, 65_536
"""How many parts a body has at most whose parts name each other, and how many bytes of it are split at one time."""


class BodyPart(msgspec.Struct, frozen=True):
    """A part of a body. ``media_type`` is its Content-Type as it was sent, ``id`` its Content-ID without brackets."""

    media_type: str
    id: str
    content: bytes


async def read_related(request: Request, limit: int) -> tuple[BodyPart, list[BodyPart]]:
    """Read a whole body whose first part, or the one that ``start`` names, refers to the others. Return both.

    Raises TooLarge, TimedOut, UnsupportedMediaType, and Malformed, also if two parts have the same id.
    """
    bodies.check_encoding(request)
    reader, parts = Parts(request), list[tuple[Mapping[str, str], list[bytes]]]()
    body = await bodies.raw(request, limit)
    for start in range(0, len(body), _PIECE):
        for _, data in reader.read(body[start : start + _PIECE]):
            if isinstance(data, bytes):
                parts[-1][1].append(data)
            elif len(parts) >= _MOST_PARTS:
                raise TooLarge(f"The body has more than {_MOST_PARTS} parts.")
            else:
                check_encoding(data)
                parts.append((data, []))
    reader.check_end()
    whole = [_part(headers, pieces) for headers, pieces in parts]
    ids = [part.id for part in whole if part.id]
    if len({*ids}) < len(ids):
        raise Malformed("Two parts of the body have the same Content-ID.")
    named = _bare(reader.parameters.get("start", ""))
    roots = [part for part in whole if part.id == named] if named else whole[:1]
    if not roots:
        raise Malformed(f"No part of the body has the Content-ID {named[:100]!r}, which 'start' names.")
    return roots[0], [part for part in whole if part is not roots[0]]


def check_encoding(headers: Mapping[str, str]) -> None:
    """Raise UnsupportedMediaType if a part with these headers is transfer-encoded."""
    if headers.get("content-transfer-encoding", "binary").strip().lower() not in ("binary", "8bit", "7bit"):
        raise UnsupportedMediaType("The parts of the body must not be transfer-encoded.")


def stated_type(media_type: str) -> str:
    """Return the media type of the document in a part: of an `xop` or `jop` package, the one that ``type`` states."""
    kind, parameters = parse_options_header(media_type.encode("latin-1", "replace"))
    stated = parameters.get(b"type", b"") if kind.startswith((b"application/xop", b"application/jop")) else b""
    return (stated or kind).decode("latin-1").strip().lower()


def _part(headers: Mapping[str, str], pieces: list[bytes]) -> BodyPart:
    return BodyPart(headers.get("content-type", "").strip(), _bare(headers.get("content-id", "")), b"".join(pieces))


def _bare(content_id: str) -> str:
    return content_id.strip().removeprefix("<").removesuffix(">")


class Parts:
    """Splits a multipart body into the headers and the data of its parts, in the order in which they arrive.

    ``parameters`` are those of the body's Content-Type. Raises Malformed for one without a boundary.
    """

    def __init__(self, request: Request) -> None:
        _, parameters = parse_options_header(request.headers.get("content-type", ""))
        boundary = parameters.get(b"boundary", b"")
        if not 1 <= len(boundary) <= 70:
            raise Malformed("The Content-Type of a multipart body needs a boundary of 1 to 70 characters.")
        self.parameters = {name.decode("latin-1"): value.decode("latin-1") for name, value in parameters.items()}
        self._ended = False
        self._events: list[tuple[str, bytes | dict[str, str]]] = []
        self._headers: dict[str, str] = {}
        self._name, self._value = b"", b""
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part,
                "on_part_data": lambda data, start, end: self._events.append(("data", data[start:end])),
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header,
                "on_headers_finished": lambda: self._events.append(("part", self._headers)),
                "on_end": self._end,
            },
            max_header_count=16,
            max_header_size=8192,
        )

    def read(self, piece: bytes) -> list[tuple[str, bytes | dict[str, str]]]:
        """Raises Malformed."""
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise Malformed(f"The multipart body cannot be read: {str(error)[:200]}.") from error
        events, self._events = self._events, []
        return events

    def check_end(self) -> None:
        """Raises Malformed."""
        if not self._ended:
            raise Malformed("The multipart body ends before its last boundary.")

    def _part(self) -> None:
        self._headers = {}

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header(self) -> None:
        self._headers[self._name.decode("latin-1").strip().lower()] = self._value.decode("utf-8", "replace")
        self._name, self._value = b"", b""

    def _end(self) -> None:
        self._ended = True
