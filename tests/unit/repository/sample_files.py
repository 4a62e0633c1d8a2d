"""Small files of every format we read, made from the words they should give back."""

import gzip
import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from email.message import EmailMessage

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"


def pack(parts: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack the parts; one named `mimetype` is stored as it is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part, zipfile.ZIP_STORED if name == "mimetype" else compression)
    return out.getvalue()


def docx(words: str, **more: str | bytes) -> bytes:
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": _content_types({"/word/document.xml": main}),
        "_rels/.rels": _relations({"rId1": ("officeDocument", "word/document.xml")}),
        "word/document.xml": (
            '<?xml version="1.0" encoding="UTF-8"?><w:document '
            'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
            f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p></w:body></w:document>"
        ),
    }
    return pack(parts | more)


def xlsx(words: str) -> bytes:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return pack(
        {
            "[Content_Types].xml": _content_types(
                {"/xl/workbook.xml": f"{kind}sheet.main+xml", "/xl/worksheets/sheet1.xml": f"{kind}worksheet+xml"}
            ),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="{space}" xmlns:r="{_OFFICE}">'
                '<sheets><sheet name="Ledger" sheetId="1" r:id="rId1"/></sheets></workbook>'
            ),
            "xl/_rels/workbook.xml.rels": _relations({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
            "xl/worksheets/sheet1.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{space}"><sheetData><row r="1">'
                f'<c r="A1" t="inlineStr"><is><t>{words}</t></is></c><c r="B1"><v>4711</v></c>'
                "</row></sheetData></worksheet>"
            ),
        }
    )


def pptx(words: str) -> bytes:
    kind = "application/vnd.openxmlformats-officedocument.presentationml."
    spaces = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{_OFFICE}"'
    )
    return pack(
        {
            "[Content_Types].xml": _content_types(
                {
                    "/ppt/presentation.xml": f"{kind}presentation.main+xml",
                    "/ppt/slides/slide1.xml": f"{kind}slide+xml",
                }
            ),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "ppt/presentation.xml")}),
            "ppt/presentation.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?><p:presentation {spaces}><p:sldIdLst>'
                '<p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": _relations({"rId1": ("slide", "slides/slide1.xml")}),
            "ppt/slides/slide1.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?><p:sld {spaces}><p:cSld><p:spTree><p:nvGrpSpPr>'
                '<p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/><p:sp><p:nvSpPr>'
                '<p:cNvPr id="2" name="Title"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>'
                f"<a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
            ),
        }
    )


def odt(words: str, manifest: str = "") -> bytes:
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    kind = "application/vnd.oasis.opendocument.text"
    return pack(
        {
            "mimetype": kind,
            "META-INF/manifest.xml": manifest
            or (
                f'<?xml version="1.0" encoding="UTF-8"?><manifest:manifest xmlns:manifest="{office}manifest:1.0">'
                f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
                '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
                "</manifest:manifest>"
            ),
            "content.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{office}office:1.0" '
                f'xmlns:text="{office}text:1.0" office:version="1.2"><office:body><office:text>'
                f"<text:p>{words}</text:p></office:text></office:body></office:document-content>"
            ),
        }
    )


def epub(words: str) -> bytes:
    return pack(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<?xml version="1.0"?><container version="1.0" '
                'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
                'full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
            ),
            "book.opf": (
                '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
                'unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
                '<dc:identifier id="id">1</dc:identifier><dc:title>Book</dc:title><dc:language>en</dc:language>'
                '</metadata><manifest><item id="c1" href="c1.xhtml" media-type="application/xhtml+xml"/></manifest>'
                '<spine><itemref idref="c1"/></spine></package>'
            ),
            "c1.xhtml": (
                '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head>'
                f"<title>One</title></head><body><p>{words}</p></body></html>"
            ),
        }
    )


def rtf(words: str) -> bytes:
    spelled = "".join(c if c.isascii() else f"\\u{_signed(ord(c))}?" for c in words)
    return b"{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Arial;}}\\f0 " + spelled.encode("ascii") + b"\\par}"


def eml(words: str, html: str = "", attached: tuple[str, bytes] | None = None) -> bytes:
    message = EmailMessage()
    message["From"] = "Zoë <zoe@example.org>"
    message["To"] = "keeper@example.org"
    message["Subject"] = "Büchner's subject"
    message.set_content(words)
    if html:
        message.add_alternative(html, subtype="html")
    if attached:
        message.add_attachment(attached[1], maintype="application", subtype="octet-stream", filename=attached[0])
    return message.as_bytes()


_PICTURE = b"q 100 0 0 100 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"
_LOCK = b"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<" + b"11" * 32 + b">/U<" + b"22" * 32 + b">>>"


def pdf(
    words: str = "", *, picture: bool = False, locked: bool = False, about: str = "", fields: Sequence[str] = ()
) -> bytes:
    """A PDF of one page, perhaps with fields of a form. The words must be Latin-1. ``about`` is about the file."""
    spoken = words.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    stream = (b"BT /F1 12 Tf 72 720 Td (" + spoken + b") Tj ET\n") if words else b"0 0 100 100 re f\n"
    stream += _PICTURE if picture else b""
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<<%s>>" % about.encode(),
        *(b"<</Type/Annot/Subtype/Widget/Rect[0 0 99 20]/P 3 0 R%s>>" % each.encode() for each in fields),
    ]
    if fields:
        references = b" ".join(b"%d 0 R" % (7 + number) for number in range(len(fields)))
        parts[0] = parts[0].replace(b">>", b"/AcroForm<</Fields[%s]>>>>" % references)
        parts[2] = parts[2].replace(b"/Contents", b"/Annots[%s]/Contents" % references)
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, part in enumerate(parts, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, part)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Root 1 0 R/Info 6 0 R/Size %d%s>>\n" % (len(parts) + 1, _LOCK if locked else b"")
    return bytes(out) + b"startxref\n%d\n%%%%EOF\n" % start


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file (MS-CFB) of one table of sectors. Streams are filled up until they need no small sectors."""
    free, end, first = 0xFFFFFFFF, 0xFFFFFFFE, 2
    table, entries, sectors = [0xFFFFFFFD, end], [_entry("Root Entry", 5, 1, end, 0)], bytearray()
    for number, (name, content) in enumerate(streams.items(), 1):
        filled = content.ljust(4096, b"\0")
        count = -(-len(filled) // 512)
        entries.append(_entry(name, 2, free, first, len(filled), number + 1 if number < len(streams) else free))
        table += [*range(first + 1, first + count), end]
        sectors += filled.ljust(count * 512, b"\0")
        first += count
    table += [free] * (128 - len(table))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<9I", 0, 1, 1, 0, 4096, end, 0, end, 0) + struct.pack("<109I", 0, *[free] * 108)
    return head + struct.pack("<128I", *table) + b"".join(entries).ljust(512, b"\0") + sectors


def _entry(name: str, kind: int, child: int, start: int, size: int, after: int = 0xFFFFFFFF) -> bytes:
    spelled = f"{name}\0".encode("utf-16-le")
    places = struct.pack("<64sHBBIII", spelled, len(spelled), kind, 1, 0xFFFFFFFF, after, child)
    return places + bytes(36) + struct.pack("<IQ", start, size)


def ole_package(name: str, content: bytes) -> bytes:
    """A file as the Packager of Windows puts it into an object."""
    narrow = name.encode("cp1252", "replace") + b"\0"
    wide = struct.pack("<I", len(name)) + name.encode("utf-16-le")
    body = b"\2\0" + narrow + b"C:\\" + narrow + struct.pack("<II", 0x30000, len(narrow)) + narrow
    body += struct.pack("<I", len(content)) + content + wide * 3
    return struct.pack("<I", len(body)) + body


def compress(content: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        content = gzip.compress(content, mtime=0)
    return content


def _signed(code: int) -> int:
    return code - 65536 if code > 32767 else code


def _content_types(overrides: Mapping[str, str]) -> str:
    named = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in overrides.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Types xmlns="{_TYPES}"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{named}</Types>'
    )


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    named = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="{_PACKAGE}">{named}</Relationships>'
