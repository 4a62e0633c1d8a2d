"""What does a Tika server's answer say?"""

from typing import BinaryIO

import msgspec

from muniment.repository.store.extraction.findings import Extracted, Limits, Unreadable, Unsupported
from muniment.repository.store.extraction.readers import plain

_Values = str | list[str]


class _File(msgspec.Struct, gc=False):
    text: _Values = msgspec.field(default="", name="X-TIKA:content")
    name: _Values = msgspec.field(default="", name="resourceName")
    parsers: _Values = msgspec.field(default="", name="X-TIKA:Parsed-By")
    old_parsers: _Values = msgspec.field(default="", name="X-Parsed-By")
    error: _Values = msgspec.field(default="", name="X-TIKA:EXCEPTION:container_exception")
    old_error: _Values = msgspec.field(default="", name="X-TIKA:EXCEPTION:runtime")
    inner_error: _Values = msgspec.field(default="", name="X-TIKA:EXCEPTION:embedded_exception")


def read(answer: BinaryIO, limits: Limits) -> Extracted:
    """Raises Unreadable, Unsupported."""
    try:
        files = msgspec.json.decode(answer.read(), type=list[_File])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable("Tika's answer cannot be understood.") from error
    if not files:
        return Extracted("", "Tika found no text in it.")
    errors = _joined(files[0].error) + _joined(files[0].old_error)
    texts = [_joined(files[0].text), *(f"{_joined(each.name)}\n{_joined(each.text)}" for each in files[1:])]
    if not any(_joined(each.text).strip() for each in files):
        if "Encrypted" in errors:
            raise Unreadable("The file is encrypted: it opens with a password only.")
        if errors:
            raise Unreadable("Tika could not read it: it may be damaged.")
        if "EmptyParser" in _joined(files[0].parsers) + _joined(files[0].old_parsers):
            raise Unsupported("Tika does not read such files.")
        return Extracted("", "Tika found no text in it.")
    is_partial = errors or any(each.inner_error for each in files)
    note = "Tika could not read all of it." if is_partial else ""
    return plain.cut("\n".join(texts), note, limits.characters)


def _joined(values: _Values) -> str:
    return values if isinstance(values, str) else "\n".join(values)
