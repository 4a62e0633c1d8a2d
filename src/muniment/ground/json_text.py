"""Read JSON from strangers, and refuse repeated keys and deep nesting."""

from json import JSONDecoder
from typing import TypeVar

import msgspec

from muniment.ground.refusals import Malformed

T = TypeVar("T")


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Raises Malformed.

    A proxy that checks a request could take another value of a repeated key than we (RFC 8259 4).
    """
    try:
        document = decoder.decode(body)
        if b"\\" in body or body.count(b'"') != _quotes(msgspec.json.decode(body)):
            _KEYS.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if not body.strip():
            raise Malformed("The body is empty: it must hold a JSON object.") from error
        raise Malformed(f"The JSON cannot be read: {str(error)[:300].rstrip('.')}.") from error
    return document


def _quotes(value: object) -> int:
    """Count a value's quotation marks if no character is escaped and no key repeated: a text with more repeats one."""
    if isinstance(value, str):
        return 2
    if isinstance(value, dict):
        return 2 * len(value) + sum(map(_quotes, value.values()))
    return sum(map(_quotes, value)) if isinstance(value, list) else 0


def _refuse_repeated_key(pairs: list[tuple[str, object]]) -> None:
    names = set[str]()
    for name, _ in pairs:
        if name in names:
            raise Malformed(f"The JSON repeats the key {name[:100]!r}.")
        names.add(name)


_KEYS = JSONDecoder(object_pairs_hook=_refuse_repeated_key, parse_int=str, parse_float=str)
