"""What kind of file is this? Its bytes decide where they can, then the media type it came with, then its name."""

import re
import zipfile
from typing import BinaryIO, Literal

from muniment.repository.extraction.findings import Unreadable, Unsupported

Format = Literal[
    "text", "html", "xml", "pdf", "rtf", "mail", "gzip", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub"
]

HEAD = 4096
"""How many of a file's first bytes are looked at."""

_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."
_OPEN_KINDS: tuple[tuple[bytes, Format], ...] = ((b"text", "odt"), (b"spreadsheet", "ods"), (b"presentation", "odp"))
_MAIN_PARTS: tuple[tuple[str, Format], ...] = (("word/", "docx"), ("xl/", "xlsx"), ("ppt/", "pptx"))
_DECLARED: dict[str, Format] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/xml": "xml",
    "application/xml": "xml",
    "message/rfc822": "mail",
}
_SUFFIXES: dict[str, Format] = {
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "xml": "xml",
    "eml": "mail",
}
_BINARY = (
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"II*\0", "a picture"),
    (b"MM\0*", "a picture"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"(\xb5/\xfd", "Zstandard data"),
    (b"\x7fELF", "a program"),
)
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml[\s]")
_XHTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_MAIL = re.compile(rb"(?:Received|Return-Path|Delivered-To|Message-ID|MIME-Version|From|Date):[ \t]", re.IGNORECASE)
_HEADER = re.compile(rb"^(?:From|Date|Subject|Message-ID):", re.IGNORECASE | re.MULTILINE)


def recognise(head: bytes, file: BinaryIO, name: str, media_type: str) -> Format:
    """Name the file's format from its first bytes, the file itself, its name and declared media type.

    Raises Unsupported for a kind that is not read, Unreadable where the bytes are broken or locked.
    """
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _packed_format(file)
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise _old_office(file)
    if head[257:262] == b"ustar":
        raise Unsupported("The file is a tar archive; archives are not read.")
    for mark, kind in _BINARY:
        if head.startswith(mark):
            raise Unsupported(f"The file is {kind}; those are not read.")
    return _marked_up(head, name, media_type.partition(";")[0].strip().lower())


def _marked_up(head: bytes, name: str, media_type: str) -> Format:
    suffix = name.rpartition(".")[2].lower()
    if found := _DECLARED.get(media_type) or _SUFFIXES.get(suffix):
        return "html" if found == "xml" and _XHTML.search(head) else found
    if media_type.endswith("+xml"):
        return "xml"
    bare = head.removeprefix(b"\xef\xbb\xbf")
    if media_type in {"text/plain", "text/markdown"} or suffix in {"txt", "md"}:
        return "text"
    if _HTML.match(bare):
        return "html"
    if _XML.match(bare):
        return "html" if _XHTML.search(head) else "xml"
    return "mail" if _MAIL.match(bare) and len(_HEADER.findall(head)) >= 2 else "text"


def _packed_format(file: BinaryIO) -> Format:
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            kind = b""
            if "mimetype" in names:
                with archive.open("mimetype") as part:
                    kind = part.read(100).strip()
    except RuntimeError as error:
        raise Unreadable("The file is encrypted.") from error
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise Unreadable("The file is truncated or damaged: its ZIP directory cannot be read.") from error
    if kind == b"application/epub+zip":
        return "epub"
    for ending, opened in _OPEN_KINDS:
        if kind.startswith(_OPEN_DOCUMENT + ending):
            return opened
    if "[Content_Types].xml" in names:
        for folder, found in _MAIN_PARTS:
            if any(name.startswith(folder) for name in names):
                return found
    raise Unsupported("The file is a ZIP archive; archives are not read.")


def _old_office(file: BinaryIO) -> Exception:
    file.seek(0)
    if "EncryptedPackage".encode("utf-16-le") in file.read(64 << 20):
        return Unreadable("The file is encrypted: it opens with a password only.")
    return Unsupported("The file is an Office file of before 2007; those are not read.")
