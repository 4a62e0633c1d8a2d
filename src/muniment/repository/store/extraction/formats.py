"""Which format does a file have?"""

import re
import zipfile
from typing import BinaryIO, Literal

from muniment.repository.store.extraction.findings import Unreadable, Unsupported

Format = Literal[
    "text",
    "json",
    "html",
    "xml",
    "pdf",
    "rtf",
    "mail",
    "mails",
    "docx",
    "xlsx",
    "pptx",
    "odt",
    "ods",
    "odp",
    "epub",
    "locked",
    "gzip",
    "bzip2",
    "xz",
    "zip",
    "tar",
]

HEAD = 4096

_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."
_OPEN_KINDS: tuple[tuple[bytes, Format], ...] = ((b"text", "odt"), (b"spreadsheet", "ods"), (b"presentation", "odp"))
_MAIN_PARTS: tuple[tuple[str, Format], ...] = (("word/", "docx"), ("xl/", "xlsx"), ("ppt/", "pptx"))
_DECLARED: dict[str, Format] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/xml": "xml",
    "application/xml": "xml",
    "message/rfc822": "mail",
    "application/mbox": "mails",
    "application/x-tar": "tar",
    "application/json": "json",
    "application/x-ndjson": "json",
}
_SUFFIXES: dict[str, Format] = {
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "xml": "xml",
    "eml": "mail",
    "emlx": "mail",
    "tar": "tar",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "geojson": "json",
    "ipynb": "json",
}
_MARKS = (
    (b"PK\x03\x04", "packed"),
    (b"PK\x05\x06", "packed"),
    (b"PK\x07\x08", "packed"),
    (b"\x1f\x8b", "gzip"),
    (b"{\\rtf", "rtf"),
    (b"\xd0\xcf\x11\xe0", "old office"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"II*\0", "a picture"),
    (b"MM\0*", "a picture"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"(\xb5/\xfd", "Zstandard data"),
    (b"\x7fELF", "a program"),
    (b'x\x9f>"', "TNEF data, in which Outlook sends mails"),
)
_IWORK = re.compile(r".*\.iwa|(?:.*/)?BuildVersionHistory\.plist|index\.apxl", re.DOTALL | re.IGNORECASE)
"""Names in a file of Pages, Numbers or Keynote, which is a ZIP file too."""

_PDF = b"%PDF-"
_EVERY_MARK = tuple(mark for mark, _ in _MARKS)
_HTML = re.compile(rb"\s*(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml[\s]")
_XHTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_JSON = re.compile(rb"\s*(?:\{\s*\"[^\"\r\n]{0,200}\"\s*:|\[\s*(?:\{\s*)?\"[^\"\r\n]{0,200}\"\s*[:,\]])")
_MAIL = re.compile(
    rb"(?:\d{1,12}[ \t]*\r?\n)?(?:Received|Return-Path|Delivered-To|Envelope-To|Message-ID|MIME-Version|From|To|Cc|Bcc|"
    rb"Subject|Date|Sender|Reply-To|In-Reply-To|References|Content-[A-Za-z-]+|X-[A-Za-z0-9-]+|DKIM-Signature|"
    rb"ARC-[A-Za-z-]+|Authentication-Results|User-Agent|Status):[ \t]",
    re.IGNORECASE,
)
_HEADER = re.compile(rb"^(?:From|To|Date|Subject|Message-ID|Received):", re.IGNORECASE | re.MULTILINE)
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_MAILS = re.compile(rb"From [^\r\n]{1,200}\d\d:\d\d[^\r\n]{0,40}\r?\n[A-Za-z>][A-Za-z0-9-]*[: ]")


def recognise(head: bytes, file: BinaryIO, name: str, media_type: str) -> Format:
    """Read beyond ``head`` only ZIP and old Office files. Raises Unsupported, and Unreadable for damaged or encrypted
    bytes.
    """
    match _by_mark(head):
        case "pdf" | "gzip" | "bzip2" | "xz" | "tar" | "rtf" as format_:
            return format_
        case "packed":
            return _packed_format(file)
        case "old office":
            return _old_office(file)
        case "":
            return _by_name_or_markup(head, name, media_type.partition(";")[0].strip().lower())
        case unsupported:
            raise Unsupported(f"The file is {unsupported}; such files are not read.")


def is_plain(head: bytes, name: str, media_type: str) -> bool:
    """Is plain text or Markdown declared?

    Not if the media type has a parameter, HTML, XML or a mail is declared, or ``head`` is the mark of another format.
    """
    full_type, suffix = media_type.strip().lower(), _suffix(name)
    if ";" in full_type or _by_mark(head) or _declared_format(suffix, full_type):
        return False
    return _is_declared_plain(suffix, full_type)


def _by_mark(head: bytes) -> str:
    if head.lstrip(b"\xef\xbb\xbf\0 \t\r\n").startswith(_PDF):
        return "pdf"
    if head[257:262] == b"ustar":
        return "tar"
    if not head.startswith(_EVERY_MARK):
        return ""
    return next(kind for mark, kind in _MARKS if head.startswith(mark))


def _by_name_or_markup(head: bytes, name: str, media_type: str) -> Format:
    suffix = _suffix(name)
    if declared_format := _declared_format(suffix, media_type):
        return "html" if declared_format == "xml" and _XHTML.search(head) else declared_format
    if _is_declared_plain(suffix, media_type):
        return "text"
    markup = _by_markup(head)
    # Readers of PDF allow other bytes before the mark.
    if _PDF in head[:1024] and (markup is None or suffix == "pdf" or media_type == "application/pdf"):
        return "pdf"
    return markup or "text"


def _by_markup(head: bytes) -> Format | None:
    bare = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML.match(bare):
        return "html"
    if _XML.match(bare):
        return "html" if _XHTML.search(head) else "xml"
    if _MAILS.match(bare):
        return "mails"
    if _JSON.match(bare):
        return "json"
    headers = {header.lower() for header in _HEADER.findall(_END_OF_HEADERS.split(bare, maxsplit=1)[0])}
    return "mail" if _MAIL.match(bare) and len(headers) >= 2 else None


def _declared_format(suffix: str, media_type: str) -> Format | None:
    declared_format = _DECLARED.get(media_type) or _SUFFIXES.get(suffix)
    if declared_format is None and media_type.endswith(("+xml", "+json")):
        return "xml" if media_type.endswith("+xml") else "json"
    return declared_format


def _is_declared_plain(suffix: str, media_type: str) -> bool:
    return media_type in {"text/plain", "text/markdown"} or suffix in {"txt", "md"}


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower()


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
    for ending, format_of_kind in _OPEN_KINDS:
        if kind.startswith(_OPEN_DOCUMENT + ending):
            return format_of_kind
    return _format_of_parts(names, is_document=bool(kind))


def _format_of_parts(names: set[str], *, is_document: bool) -> Format:
    if "[Content_Types].xml" in names:
        for folder, format_ in _MAIN_PARTS:
            if any(name.startswith(folder) for name in names):
                return format_
    if is_document or "[Content_Types].xml" in names or any(map(_IWORK.fullmatch, names)):
        raise Unsupported("The file is a packed document of a kind that is not read.")
    return "zip"


def _old_office(file: BinaryIO) -> Format:
    file.seek(0)
    if "EncryptedPackage".encode("utf-16-le") in file.read(64 << 20):
        return "locked"
    raise Unsupported("The file is an Office file from before 2007; such files are not read.")
