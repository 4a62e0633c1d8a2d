"""What is the text of a mail, or of a file of many mails?"""

import email
import email.header
import email.policy
import re
from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.utils import getaddresses, parsedate_to_datetime

from muniment.repository.store.extraction.findings import Extracted, Unreadable, about
from muniment.repository.store.extraction.readers import inner_files, markup
from muniment.repository.store.extraction.readers.characters import Decoded, decode

_UNENDED = "The file is truncated or damaged: its end is missing. The text is what could be read of it."
_SEPARATOR = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n")

_LENGTH_LINE = re.compile(rb"\A\d{1,12}[ \t]*\r?\n")
"""Apple Mail writes a mail's length first."""

_FOLD = re.compile(r"\r?\n(?=[ \t])")
_BARE_BYTES = re.compile("[\udc80-\udcff\x1b]")
_SIGNATURES = {"application/pgp-signature", "application/pgp-encrypted", "application/pkcs7-signature"}
_REPORTS = {"message/delivery-status", "message/disposition-notification"}
_SHOWN = ("Subject", "From", "To", "Cc", "Date")


def mail_text(content: bytes, inner: inner_files.InnerFiles) -> Extracted:
    """Raises Unreadable."""
    content = _LENGTH_LINE.sub(b"", content, count=1)
    message = email.message_from_bytes(content, policy=email.policy.default)
    if not message.keys():
        raise Unreadable("The file is damaged: it has no mail headers.")
    parts = _Parts(inner)
    parts.add_mail(message)
    notes = [_UNENDED] if _is_cut(message) else []
    authors = [name or address for name, address in getaddresses([_header(message, "From")])]
    keywords = _header(message, "Keywords").split(",")
    said = about(subject=_header(message, "Subject"), authors=authors, keywords=keywords, dates=_dates(message))
    return Extracted("\n".join(parts.pieces), " ".join([*notes, *dict.fromkeys(parts.notes)]), said)


def mails_text(content: bytes, inner: inner_files.InnerFiles) -> Extracted:
    parts = _Parts(inner)
    starts = [*_SEPARATOR.finditer(content)]
    ends = [match.start() for match in starts[1:]] + [len(content)]
    for start, end in zip(starts, ends, strict=True):
        parts.add_mail(email.message_from_bytes(content[start.end() : end], policy=email.policy.default))
        if sum(map(len, parts.pieces)) > inner.limits.characters:
            break
    return Extracted("\n".join(parts.pieces), " ".join(dict.fromkeys(parts.notes)))


class _Parts:
    def __init__(self, inner: inner_files.InnerFiles) -> None:
        self.pieces: list[str] = []
        self.notes: list[str] = []
        self._inner = inner

    def add_mail(self, message: Message) -> None:
        headers = ((name, _header(message, name)) for name in _SHOWN)
        self.pieces.extend(f"{name}: {text}" for name, text in headers if text)
        body = message.get_body(("plain", "html")) if isinstance(message, EmailMessage) else None
        if body is not None:
            self._add(_part_text(body))
        for part in _parts(message):
            if part is not body and part.get_content_maintype() != "multipart":
                self._add_part(part)

    def _add_part(self, part: Message) -> None:
        kind = part.get_content_type()
        if kind in _REPORTS:
            self.pieces.append(part.as_string())
        elif part.is_multipart():
            for mail in part.iter_parts() if isinstance(part, EmailMessage) else ():
                self.add_mail(mail)
        elif not _is_attached(part) and kind in {"text/plain", "text/html"}:
            self._add(_part_text(part))
        elif kind not in _SIGNATURES:
            self._add_attached(part)

    def _add_attached(self, part: Message) -> None:
        content = part.get_payload(decode=True)
        name, kind, charset = part.get_filename() or "", part.get_content_type(), part.get_content_charset("")
        self.pieces.append(name)
        if isinstance(content, bytes) and content:
            media_type = f"{kind}; charset={charset}" if charset else kind
            self.pieces.append(self._inner.text_of(name or kind, content, media_type, "attachment"))

    def _add(self, decoded: Decoded) -> None:
        self.pieces.append(decoded.text)
        if decoded.note:
            self.notes.append(decoded.note)


def _dates(message: Message) -> list[str]:
    try:
        return [parsedate_to_datetime(_header(message, "Date")).isoformat()]
    except (ValueError, TypeError, IndexError, OverflowError):
        return []


def _is_cut(message: Message) -> bool:
    return any(type(defect).__name__ == "CloseBoundaryNotFoundDefect" for defect in message.defects)


def _parts(part: Message, *, with_html: bool = True) -> Iterator[Message]:
    """Yield the parts; a mail within it is one. HTML is left out if the same is there as plain text."""
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
    return part.get_content_type() == "text/plain" and bool(_part_text(part).text.strip())


def _is_attached(part: Message) -> bool:
    return bool(part.get_filename()) or part.get_content_disposition() == "attachment"


def _header(message: Message, name: str) -> str:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = _FOLD.sub("", raw).strip()
    if _BARE_BYTES.search(raw):
        try:
            return decode(raw.encode("utf-8", "surrogateescape")).text
        except Exception:  # noqa: BLE001 - bytes of a header that are no text say nothing
            return ""
    if "=?" not in raw:
        return raw
    try:
        pieces = email.header.decode_header(raw)
        return (
            "".join(decode(text, charset or "").text if isinstance(text, bytes) else text for text, charset in pieces)
            or raw
        )
    except Exception:  # noqa: BLE001 - the library raises many exceptions for malformed words; then they stay as they are
        return raw


def _part_text(part: Message) -> Decoded:
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return Decoded("")
    charset = part.get_content_charset("")
    if part.get_content_type() == "text/html":
        page = markup.html_text(content, charset)
        return Decoded(page.text, page.note)
    return decode(content, charset)
