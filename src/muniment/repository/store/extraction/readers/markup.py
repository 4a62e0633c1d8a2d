"""What is the text of HTML and XML?"""

import html.entities
import re

import lxml.etree
import lxml.html

from muniment.repository.store.extraction.findings import Extracted, Unreadable, about, separate
from muniment.repository.store.extraction.readers.characters import decode

_HEAD = 4096
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]+)", re.IGNORECASE)
_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,500}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]+)")
_DECLARATION_TEXT = re.compile(r"\s*<\?xml[^>]{0,1000}\?>")
_ENTITY = re.compile(r"&([A-Za-z_:][\w:.-]*);")
_XML_ENTITIES = {"amp", "lt", "gt", "quot", "apos"}

# Attributes are compared with each other while HTML is parsed: the time is quadratic in their number.
_MANY_ATTRIBUTES = 1000
_TAG = re.compile(r"<([a-zA-Z][^\s/>]*+)((?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)")
_WORD = re.compile(r"[^\s/=]+")

_SKIPPED = {"script", "style", "template", "noscript", "iframe", "object", "svg", "math"}
_INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
    *("ins", "kbd", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
    *("sup", "time", "tt", "u", "var", "wbr"),
}


def html_text(content: bytes, charset_name: str = "") -> Extracted:
    """Read HTML by the declared charset, or else by its own.

    Raises Unsupported for binary data.
    """
    head = content[:_HEAD]
    declaration = _META.search(head) or _DECLARATION.match(head)
    decoded = decode(content, charset_name or _declared(declaration))
    source = _DECLARATION_TEXT.sub("", decoded.text, count=1)
    return _html(_TAG.sub(_without_flood, source), decoded.note)


def xml_text(content: bytes, charset_name: str = "") -> Extracted:
    """Entities that the document defines are not expanded.

    Raises Unreadable, Unsupported.
    """
    declaration = _DECLARATION.match(content[:_HEAD])
    decoded = decode(content, charset_name or _declared(declaration))
    source = _ENTITY.sub(_entity, _DECLARATION_TEXT.sub("", decoded.text, count=1).lstrip())
    root, note = _xml_root(source.encode("utf-8", "replace"))
    return Extracted(_words(root, set(), set()), f"{decoded.note} {note}".strip())


def _declared(declaration: re.Match[bytes] | None) -> str:
    # A document in which an ASCII declaration is found is not UTF-16, whatever it declares (HTML 13.2.3.3). Programs
    # that write XML into a text and then store the text as UTF-8 declare UTF-16.
    charset = declaration[1].decode("ascii") if declaration else ""
    return "" if charset.lower().startswith(("utf-16", "utf-32")) else charset


def _html(source: str, note: str) -> Extracted:
    if not source.strip():
        return Extracted("", "")
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = lxml.html.document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except lxml.etree.ParserError:
        return Extracted("", "")
    note = f"{note} {_cut_off(parser.error_log)}".strip()
    return Extracted(_words(root, _INLINE, _SKIPPED), note, _about(root))


def _about(root: lxml.etree._Element) -> dict[str, list[str]]:
    title = root.find("head/title")
    named = {str(meta.get("name")).lower(): meta.get("content") or "" for meta in root.iterfind("head/meta[@name]")}
    subject, author, keywords = (named.get(name, "") for name in ("description", "author", "keywords"))
    return about((title.text if title is not None else "") or "", subject, separate(author), separate(keywords))


def _xml_root(source: bytes) -> tuple[lxml.etree._Element, str]:
    try:
        return lxml.etree.fromstring(source, _xml_parser(recover=False)), ""
    except lxml.etree.XMLSyntaxError as error:
        parser = _xml_parser(recover=True)
        root = lxml.etree.fromstring(source, parser)
        if root is None:
            raise Unreadable(f"The XML cannot be read: {str(error)[:200]}") from error
        note = _cut_off(parser.error_log) or "The XML is not well-formed; the text is what could be read of it."
        return root, note


def _xml_parser(recover: bool) -> lxml.etree.XMLParser:
    return lxml.etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def _words(root: lxml.etree._Element, inline: set[str], skipped_names: set[str]) -> str:
    pieces: list[str] = []
    walk = lxml.etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = element.tag if isinstance(element.tag, str) else ""
        if name not in inline:
            pieces.append("\n")
        if event == "start":
            if name in skipped_names:
                walk.skip_subtree()
            elif element.text:
                pieces.append(element.text)
        elif element.tail and element is not root:
            pieces.append(element.tail)
    return "".join(pieces)


def _without_flood(tag: re.Match[str]) -> str:
    if len(tag[2]) > 2 * _MANY_ATTRIBUTES and len(_WORD.findall(tag[2])) > 2 * _MANY_ATTRIBUTES:
        return f"<{tag[1]}"
    return tag[0]


def _entity(reference: re.Match[str]) -> str:
    if reference[1] in _XML_ENTITIES:
        return reference[0]
    return html.entities.html5.get(f"{reference[1]};", " ").replace("&", "&amp;").replace("<", "&lt;")


def _cut_off(errors: lxml.etree._ListErrorLog) -> str:
    deep = any("depth" in str(entry.message) for entry in errors)
    return "The file is nested too deep; what follows that place was left out." if deep else ""
