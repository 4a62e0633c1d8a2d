"""Which media type does a file have, by its name? If the name does not say, its first bytes may.

The tables are fixed: those of machines differ, and name formats that hardly anybody has. To them, source code in Rust
is a list of services in XML.
"""

import io
import mimetypes
import os
from collections.abc import Mapping
from functools import lru_cache

from muniment.repository.bulk.importing.file_tree import printable
from muniment.repository.store.extraction import formats
from muniment.repository.store.extraction.findings import Unreadable, Unsupported
from muniment.repository.store.extraction.readers.characters import decode

_UNKNOWN = "application/octet-stream"
_OPEN, _OFFICE = "application/vnd.oasis.opendocument", "application/vnd.openxmlformats-officedocument"
_PLAIN = (
    *("adoc", "asc", "awk", "bib", "cfg", "clj", "cmake", "conf", "cpp", "cs", "cxx", "diff", "go", "gradle", "hpp"),
    *("hs", "inc", "ini", "java", "jl", "jsonl", "jsx", "kt", "less", "list", "log", "lua", "man", "me", "mk", "ms"),
    *("ndjson", "nfo", "org", "patch", "php", "properties", "proto", "ps1", "r", "rb", "roff", "rs", "sass", "scala"),
    *("scss", "sql", "src", "srt", "swift", "t", "text", "tf", "toml", "tr", "ts", "tsx", "vb", "vim", "vue", "yaml"),
    *("yml", "zsh"),
)
_TYPES: Mapping[str, str] = {
    **{f".{suffix}": "text/plain" for suffix in _PLAIN},
    ".7z": "application/x-7z-compressed",
    ".docm": "application/vnd.ms-word.document.macroEnabled.12",
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".dotx": f"{_OFFICE}.wordprocessingml.template",
    ".dwg": "image/vnd.dwg",
    ".eml": "message/rfc822",
    ".epub": "application/epub+zip",
    ".ics": "text/calendar",
    ".ipynb": "application/x-ipynb+json",
    ".markdown": "text/markdown",
    ".mbox": "application/mbox",
    ".md": "text/markdown",
    ".mpp": "application/vnd.ms-project",
    ".msg": "application/vnd.ms-outlook",
    ".numbers": "application/vnd.apple.numbers",
    ".odg": f"{_OPEN}.graphics",
    ".odp": f"{_OPEN}.presentation",
    ".ods": f"{_OPEN}.spreadsheet",
    ".odt": f"{_OPEN}.text",
    ".one": "application/onenote",
    ".ott": f"{_OPEN}.text-template",
    ".pages": "application/vnd.apple.pages",
    ".potx": f"{_OFFICE}.presentationml.template",
    ".ppsx": f"{_OFFICE}.presentationml.slideshow",
    ".pptm": "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".rar": "application/vnd.rar",
    ".rst": "text/x-rst",
    ".tex": "text/x-tex",
    ".vcf": "text/vcard",
    ".vsd": "application/vnd.visio",
    ".vsdx": "application/vnd.ms-visio.drawing",
    ".wpd": "application/vnd.wordperfect",
    ".xlsb": "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
    ".xlsm": "application/vnd.ms-excel.sheet.macroEnabled.12",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".xltx": f"{_OFFICE}.spreadsheetml.template",
    ".xps": "application/vnd.ms-xpsdocument",
}
_BY_FORMAT: Mapping[formats.Format, str] = {
    "text": "text/plain",
    "html": "text/html",
    "xml": "application/xml",
    "mail": "message/rfc822",
    "pdf": "application/pdf",
    "rtf": "application/rtf",
    "gzip": "application/gzip",
}
_guesser = mimetypes.MimeTypes()


def media_type_of(path: str, head: bytes = b"") -> str:
    name = printable(os.path.basename(path)).lstrip(".")
    by_name = _of_suffixes(name[name.find(".") :] if "." in name else "")
    return _of_bytes(head) if by_name == _UNKNOWN and head else by_name


@lru_cache(maxsize=1024)
def _of_suffixes(suffixes: str) -> str:
    name = f"file{suffixes}"
    media_type, packing = _guesser.guess_type(name, strict=False)
    if packing == "gzip":
        return "application/gzip"
    if packing:
        return _UNKNOWN
    return _TYPES.get(os.path.splitext(name)[1].lower()) or media_type or _UNKNOWN


def _of_bytes(head: bytes) -> str:
    try:
        found = formats.recognise(head[: formats.HEAD], io.BytesIO(head), "", "")
        if found == "text":
            decode(head[: formats.HEAD])
    except (Unsupported, Unreadable):
        return _UNKNOWN
    return _BY_FORMAT.get(found, _UNKNOWN)
