"""How is the text of each format read? There is a reader for each format. Readers run only inside the sandbox."""

import email
import email.policy
import html
import io
import re
from collections.abc import Callable, Iterator
from email.message import EmailMessage, Message
from typing import BinaryIO

import lxml.etree
import pypdfium2

from muniment.repository.extraction import formats, markup, office, packed, plain, rich_text
from muniment.repository.extraction.characters import decode
from muniment.repository.extraction.findings import Extracted, Limits, Unreadable, Unsupported
from muniment.repository.extraction.formats import Format

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_PAGE_PICTURE = 3
_UNENDED = "The file is truncated or damaged: its end is missing."
_ENCRYPTED = "The file is encrypted: it opens with a password only."


def read(file: BinaryIO, name: str, media_type: str, limits: Limits) -> Extracted:
    """Read the text of a file. Raises Unreadable, Unsupported; a library may raise anything for a malformed file."""
    result = _read(file, name, media_type, limits)
    return plain.cut(result.text, result.note, limits.characters)


def _read(file: BinaryIO, name: str, media_type: str, limits: Limits) -> Extracted:
    head = file.read(formats.HEAD)
    if not head:
        return Extracted("", "The file is empty.")
    format_ = formats.recognise(head, file, name, media_type)
    charset = _CHARSET.search(media_type)
    charset_name = charset[1] if charset else ""
    readers: dict[Format, Callable[[], Extracted]] = {
        "text": lambda: _plain(file, charset_name, limits),
        "html": lambda: markup.html_text(_content(file, limits), charset_name),
        "xml": lambda: markup.xml_text(_content(file, limits), charset_name),
        "pdf": lambda: _pdf(file, limits),
        "mail": lambda: _mail(_content(file, limits), limits),
        "gzip": lambda: _gzip(file, name, media_type, limits),
        "rtf": lambda: _rtf(_content(file, limits)),
    }
    reader = readers.get(format_)
    return reader() if reader else office.read(file, format_, limits)


def _plain(file: BinaryIO, charset_name: str, limits: Limits) -> Extracted:
    file.seek(0)
    return Extracted(decode(file.read(4 * limits.characters + 4), charset_name), "")


def _gzip(file: BinaryIO, name: str, media_type: str, limits: Limits) -> Extracted:
    if limits.depth < 1:
        raise Unreadable("The file is packed within packed files deeper than is read.")
    inner = io.BytesIO(packed.inflate(file, limits))
    kind = "" if "gzip" in media_type.lower() else media_type
    deeper = Limits(limits.seconds, limits.memory, limits.characters, limits.ratio, limits.depth - 1)
    return _read(inner, re.sub(r"\.gz$", "", name, flags=re.IGNORECASE), kind, deeper)


def _pdf(file: BinaryIO, limits: Limits) -> Extracted:
    file.seek(max(0, file.seek(0, io.SEEK_END) - 2048))
    has_end = b"%%EOF" in file.read()
    file.seek(0)
    try:
        pdf = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error) or "ecurity" in str(error):
            raise Unreadable(_ENCRYPTED) from error
        raise Unreadable(_UNENDED if not has_end else "The PDF is damaged and cannot be read.") from error
    pieces: list[str] = []
    length = unread = pictures = 0
    for number in range(len(pdf)):
        try:
            page = pdf[number]
            text = page.get_textpage().get_text_range()
            if not text.strip():
                pictures += any(item.type == _PAGE_PICTURE for item in page.get_objects(max_depth=3))
            page.close()
        except pypdfium2.PdfiumError:
            unread += 1
            continue
        pieces.append(text)
        length += len(text)
        if length > limits.characters:
            break
    return _pdf_result("\n".join(pieces), len(pdf), unread, pictures, has_end)


def _pdf_result(text: str, pages: int, unread: int, pictures: int, has_end: bool) -> Extracted:
    if not text.strip() and not has_end:
        raise Unreadable(_UNENDED)
    if unread:
        return Extracted(text if text.strip() else "", f"{unread} of {pages} pages could not be read.")
    if not text.strip() and pictures:
        return Extracted("", "The pages hold pictures only, no text.")
    if not text.strip():
        return Extracted("", "The pages hold no text.")
    return Extracted(text, "" if has_end else f"{_UNENDED} The text is what could be read of it.")


def _rtf(content: bytes) -> Extracted:
    text = rich_text.read(content)
    if content.rstrip(b"\0 \r\n\t").endswith(b"}"):
        return Extracted(text, "")
    if not text.strip():
        raise Unreadable(_UNENDED)
    return Extracted(text, f"{_UNENDED} The text is what could be read of it.")


def _mail(content: bytes, limits: Limits) -> Extracted:
    message = email.message_from_bytes(content, policy=email.policy.default)
    if not message.keys():
        raise Unreadable("The file is damaged: it has no mail headers.")
    pieces: list[str] = []
    notes: list[str] = []
    _mail_parts(message, limits, pieces, notes)
    if any(type(defect).__name__ == "CloseBoundaryNotFoundDefect" for defect in message.defects):
        notes.insert(0, f"{_UNENDED} The text is what could be read of it.")
    return Extracted("\n".join(pieces), " ".join(notes[:5]))


def _mail_parts(message: Message, limits: Limits, pieces: list[str], notes: list[str]) -> None:
    headers = ((name, _header(message, name)) for name in ("Subject", "From", "To", "Cc", "Date"))
    pieces.extend(f"{name}: {text}" for name, text in headers if text)
    body = message.get_body(("plain", "html")) if isinstance(message, EmailMessage) else None
    if body is not None:
        pieces.append(_part_text(body))
    for part in _parts(message):
        if part is body or part.get_content_maintype() == "multipart":
            continue
        if part.is_multipart():
            for inner in part.iter_parts() if isinstance(part, EmailMessage) else ():
                _mail_parts(inner, limits, pieces, notes)
        elif _is_attached(part):
            _attachment(part, limits, pieces, notes)
        elif part.get_content_type() in {"text/plain", "text/html"}:
            pieces.append(_part_text(part))


def _parts(part: Message, *, with_html: bool = True) -> Iterator[Message]:
    """Yield the parts of a mail. A mail within it is one part. HTML is left out if the same is there as plain text."""
    if not part.is_multipart() or part.get_content_maintype() == "message":
        if with_html or part.get_content_type() != "text/html" or _is_attached(part):
            yield part
        return
    inner = list(part.iter_parts()) if isinstance(part, EmailMessage) else []
    if part.get_content_subtype() == "alternative":
        with_html = with_html and not any(map(_has_plain_text, inner))
    for each in inner:
        yield from _parts(each, with_html=with_html)


def _has_plain_text(part: Message) -> bool:
    return part.get_content_type() == "text/plain" and bool(_part_text(part).strip())


def _is_attached(part: Message) -> bool:
    return bool(part.get_filename()) or part.get_content_disposition() == "attachment"


def _header(message: Message, name: str) -> str:
    try:
        return str(message[name] or "")
    except Exception:  # noqa: BLE001 - the library raises many exceptions for a malformed address, such as "a@"
        return next(str(value) for key, value in message.raw_items() if key.lower() == name.lower())


def _part_text(part: Message) -> str:
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    charset = part.get_content_charset("")
    if part.get_content_type() == "text/html":
        return markup.html_text(content, charset).text
    return decode(content, charset)


def _attachment(part: Message, limits: Limits, pieces: list[str], notes: list[str]) -> None:
    name = part.get_filename() or ""
    pieces.append(name)
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes) or limits.depth < 1:
        notes.append(f"The attachment {name[:100]!r} was not read.")
        return
    deeper = Limits(limits.seconds, limits.memory, limits.characters, limits.ratio, limits.depth - 1)
    try:
        result = _read(io.BytesIO(content), name, part.get_content_type(), deeper)
    except (Unreadable, Unsupported) as refusal:
        notes.append(f"The attachment {name[:100]!r} was not read: {refusal}")
        return
    pieces.append(result.text)


def _content(file: BinaryIO, limits: Limits) -> bytes:
    size = file.seek(0, io.SEEK_END)
    if size > limits.loaded_bytes:
        raise Unreadable(f"The file has {size} bytes; files of this kind are read up to {limits.loaded_bytes}.")
    file.seek(0)
    return file.read()


def warm_up() -> None:
    """Use some libraries once, so that they open the files that they need before the sandbox forbids opening files."""
    markup.html_text(b"<p>warm</p>")
    markup.xml_text(b"<p>warm</p>")
    email.message_from_bytes(
        b"Subject: =?utf-8?q?w?=\nFrom: a@b\nDate: Thu, 1 Jan 1970 00:00:00 +0000\n"
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=x\n\nw\n--b--\n",
        policy=email.policy.default,
    ).as_string()
    html.unescape("&amp;")
    lxml.etree.tostring(lxml.etree.fromstring("<a/>"))
