"""How is the text of each format read? Readers run only inside the sandbox."""

import email
import email.policy
import html
import io
import re
import xml.dom.expatbuilder  # noqa: F401 - a library needs it that loads it too late
from collections.abc import Callable
from typing import BinaryIO, Literal

import lxml.etree
from cryptography.hazmat.backends import default_backend

from muniment.repository.store.extraction import formats
from muniment.repository.store.extraction.findings import Extracted, Limits, Unreadable
from muniment.repository.store.extraction.readers import (
    archives,
    characters,
    inner_files,
    json_text,
    mail,
    markup,
    pdf,
    plain,
    rich_text,
)
from muniment.repository.store.extraction.readers.office import locked, office, packed

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_PACKED_TYPE = re.compile(r"gzip|bzip|xz|compressed", re.IGNORECASE)
_PACKED_SUFFIX = re.compile(r"\.(?:gz|bz2|xz)$", re.IGNORECASE)
_UNENDED = "The file is truncated or damaged: its end is missing."


def read(file: BinaryIO, name: str, media_type: str, limits: Limits) -> Extracted:
    """Raises Unreadable, Unsupported; a library may raise anything for a malformed file."""
    inner = inner_files.InnerFiles(limits, read_within)
    result = read_within(file, name, media_type, inner)
    cut = plain.cut(result.text, f"{result.note} {inner.note}".strip(), limits.characters)
    is_full = len(cut.text) == limits.characters
    return Extracted(cut.text, cut.note, result.properties, result.scanned, () if is_full else tuple(inner.kept))


def read_within(file: BinaryIO, name: str, media_type: str, inner: inner_files.InnerFiles) -> Extracted:
    """Read a file that may lie within another. Raises as ``read`` does."""
    head = file.read(formats.HEAD)
    if not head:
        return Extracted("", "The file is empty.")
    format_ = formats.recognise(head, file, name, media_type)
    limits = inner.limits
    charset = _CHARSET.search(media_type)
    charset_name = charset[1] if charset else ""
    readers: dict[formats.Format, Callable[[], Extracted]] = {
        "text": lambda: Extracted(*characters.decode(_beginning(file, limits), charset_name)),
        "json": lambda: json_text.read(_beginning(file, limits), charset_name),
        "html": lambda: markup.html_text(_content(file, limits), charset_name),
        "xml": lambda: markup.xml_text(_content(file, limits), charset_name),
        "pdf": lambda: pdf.read(file, limits),
        "mail": lambda: mail.mail_text(_content(file, limits), inner),
        "mails": lambda: mail.mails_text(_content(file, limits), inner),
        "rtf": lambda: _rtf(_content(file, limits)),
        "gzip": lambda: _unpacked(file, "gzip", name, media_type, inner),
        "bzip2": lambda: _unpacked(file, "bzip2", name, media_type, inner),
        "xz": lambda: _unpacked(file, "xz", name, media_type, inner),
        "zip": lambda: archives.zip_text(file, inner),
        "tar": lambda: archives.tar_text(file, inner),
        "locked": lambda: read_within(locked.opened(_content(file, limits)), name, media_type, inner),
    }
    reader = readers.get(format_)
    return reader() if reader else office.read(file, format_, inner)


def _beginning(file: BinaryIO, limits: Limits) -> bytes:
    file.seek(0)
    return file.read(4 * limits.characters + 4)


def _unpacked(
    file: BinaryIO, format_: Literal["gzip", "bzip2", "xz"], name: str, media_type: str, inner: inner_files.InnerFiles
) -> Extracted:
    with inner.deeper():
        content = io.BytesIO(packed.inflate(file, format_, inner.limits))
        kind = "" if _PACKED_TYPE.search(media_type) else media_type
        return read_within(content, _PACKED_SUFFIX.sub("", name), kind, inner)


def _rtf(content: bytes) -> Extracted:
    text, said = rich_text.read(content)
    if content.rstrip(b"\0 \r\n\t").endswith(b"}"):
        return Extracted(text, "", said)
    if not text.strip():
        raise Unreadable(_UNENDED)
    return Extracted(text, f"{_UNENDED} The text is what could be read of it.", said)


def _content(file: BinaryIO, limits: Limits) -> bytes:
    size = file.seek(0, io.SEEK_END)
    if size > limits.loaded_bytes:
        raise Unreadable(f"The file has {size} bytes; files of this kind are read up to {limits.loaded_bytes}.")
    file.seek(0)
    return file.read()


def warm_up() -> None:
    """Use libraries that open files at first, which the sandbox forbids later."""
    markup.html_text(b"<p>warm</p>")
    markup.xml_text(b"<p>warm</p>")
    email.message_from_bytes(
        b"Subject: =?utf-8?q?w?=\nFrom: a@b\nDate: Thu, 1 Jan 1970 00:00:00 +0000\n"
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=x\n\nw\n--b--\n",
        policy=email.policy.default,
    ).as_string()
    html.unescape("&amp;")
    default_backend()
    characters.decode("Привет, мир".encode("koi8-r"))
    lxml.etree.tostring(lxml.etree.fromstring("<a/>"))
