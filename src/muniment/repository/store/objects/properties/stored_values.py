"""How are the values of properties without a column of their own stored? As a JSON object of lists."""

from collections.abc import Mapping

import msgspec

from muniment.repository.store.objects.properties.properties import Value

_COLUMNS = frozenset({"object_name", "a_content_type", "a_content_date", "owner_name", "acl_name"})
_decoder = msgspec.json.Decoder(dict[str, list[str | int | float | bool]])


def encode(values: Mapping[str, list[Value]]) -> str:
    """Leave out properties that have a column of their own, or no value."""
    without_column = {name: of_name for name, of_name in values.items() if of_name and name not in _COLUMNS}
    return msgspec.json.encode(without_column).decode()


def decode(text: str) -> dict[str, list[Value]]:
    return _decoder.decode(text)
