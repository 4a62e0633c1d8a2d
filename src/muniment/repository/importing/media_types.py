"""Which media type does a file have, by its name?"""

import mimetypes
import os
from functools import lru_cache

from muniment.repository.importing.file_tree import printable

_UNKNOWN = "application/octet-stream"
_TYPES = {".md": "text/markdown", ".log": "text/plain", ".rst": "text/x-rst", ".eml": "message/rfc822"}


def media_type_of(path: str) -> str:
    """Guess the media type of a file by its name."""
    name = printable(os.path.basename(path)).lstrip(".")
    return _of_suffixes(name[name.find(".") :] if "." in name else "")


@lru_cache(maxsize=1024)
def _of_suffixes(suffixes: str) -> str:
    """Guess the media type by the end of a file's name, from its first dot on."""
    name = f"file{suffixes}"
    media_type, packing = mimetypes.guess_type(name, strict=False)
    if packing == "gzip":
        return "application/gzip"
    if packing:
        return _UNKNOWN
    return _TYPES.get(os.path.splitext(name)[1].lower()) or media_type or _UNKNOWN
