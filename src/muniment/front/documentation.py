"""Which pages does the documentation have? What does a page say, as HTML and as Markdown?

Pages are named by their path below ``docs`` without ``.md``. HTML tags in them are shown as text (docs/decisions/0101).
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import markupsafe
from markdown_it import MarkdownIt
from markdown_it.token import Token

DECISIONS = "decisions/"

_NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE)
_FILE = re.compile(r"docs/([A-Za-z0-9_/-]+)\.md")
_DECISION = re.compile(r"(?:docs/decisions/|\b[Dd]ecisions? )([0-9]{4})\b")
_LOCAL = re.compile(r"(?![a-z][a-z0-9+.-]*:|//|#)([^#?]*?)(\.md)?(#.*)?", re.IGNORECASE)
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_LISTED_LEVELS = (2, 3)


class Section(NamedTuple):
    """A heading: its level, its anchor on the page, its text."""

    level: int
    anchor: str
    title: str


class DocumentationPage(NamedTuple):
    """``sections`` are those of levels 2 and 3."""

    title: str
    body: markupsafe.Markup
    sections: tuple[Section, ...]


def names() -> list[str]:
    """Those directly in ``docs`` come first."""
    return [*_pages(_folder())]


def source(name: str) -> str | None:
    file = _file(name)
    return None if file is None else file.read_text("utf-8")


def title(name: str) -> str:
    return (source(name) or "").partition("\n")[0].lstrip("# ")


def documentation_page(name: str) -> DocumentationPage | None:
    """The HTML is cached until the file changes. Its links are relative to ``/docs/<name>``."""
    file = _file(name)
    return None if file is None else _render(name, file, file.stat().st_mtime_ns)


def picture(name: str) -> bytes | None:
    """``name`` is its path below ``docs``: ``pictures/<name>.png``."""
    folder = _folder()
    file = None if folder is None else _pictures(folder).get(name)
    return None if file is None else file.read_bytes()


@cache
def _folder() -> Path | None:
    here = Path(__file__).parent
    for folder in (here.parent / "docs", here.parents[2] / "docs"):
        if (folder / "settings.md").is_file():
            return folder
    return None


def _file(name: str) -> Path | None:
    return _pages(_folder()).get(name)


@lru_cache(maxsize=2)
def _pages(folder: Path | None) -> dict[str, Path]:
    """Strangers' names are looked up here, and never used as paths."""
    if folder is None:
        return {}
    files = sorted(folder.rglob("*.md"), key=lambda file: (len(file.parts), file))
    by_name = {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
    return {name: file for name, file in by_name.items() if _NAME.fullmatch(name)}


@lru_cache(maxsize=2)
def _pictures(folder: Path) -> dict[str, Path]:
    return {file.relative_to(folder).as_posix(): file for file in (folder / "pictures").glob("*.png")}


@lru_cache(maxsize=200)
def _render(name: str, file: Path, _changed: int) -> DocumentationPage:
    text = _COMMENT.sub("", file.read_text("utf-8"))
    tokens = _MARKDOWN.parse(text)
    sections = tuple(_sections(tokens))
    _refine_tables(tokens)
    for token in tokens:
        if token.children is not None:
            token.children = list(_with_links(token.children, posixpath.dirname(name)))
    body = markupsafe.Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704 - HTML is off
    outline = tuple(section for section in sections if section.level in _LISTED_LEVELS)
    return DocumentationPage(sections[0].title if sections else name, body, outline)


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """Levels are those of the outline: 1 outside all others, in a section the next."""
    above: list[int] = []
    anchors = Counter[str]()
    for place, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        level = int(token.tag[1:])
        while above and above[-1] >= level:
            above.pop()
        above.append(level)
        token.tag = tokens[place + 2].tag = f"h{len(above)}"
        heading = "".join(part.content for part in tokens[place + 1].children or ())
        anchor = _NO_LETTERS.sub("-", heading.lower()).strip("-") or "section"
        anchors[anchor] += 1
        if anchors[anchor] > 1:
            anchor = f"{anchor}-{anchors[anchor]}"
        token.attrSet("id", anchor)
        yield Section(len(above), anchor, heading)


def _refine_tables(tokens: Sequence[Token]) -> None:
    """Mark each heading cell as its column's head; without text it becomes an ordinary cell.

    Cells are aligned by class: the pages permit no inline style.
    """
    for place, token in enumerate(tokens):
        if token.type not in {"th_open", "td_open"}:
            continue
        alignment = str(token.attrs.pop("style", "")).partition(":")[2]
        if alignment:
            token.attrSet("class", alignment)
        if token.type == "th_open":
            if tokens[place + 1].content:
                token.attrSet("scope", "col")
            else:
                token.tag = tokens[place + 2].tag = "td"


def _with_links(parts: Sequence[Token], folder: str) -> Iterator[Token]:
    """Links to Markdown files become links to pages, and so do mentions: file names, or decisions' numbers."""
    within_link = 0
    for part in parts:
        if part.type == "link_open":
            part.attrSet("href", _address(str(part.attrGet("href"))))
        within_link += part.nesting if part.type in {"link_open", "link_close"} else 0
        if within_link or part.type not in {"text", "code_inline"}:
            yield part
        elif part.type == "code_inline":
            mention = _FILE.fullmatch(part.content)
            yield from _linked([part], mention[1] if mention else "", folder)
        else:
            yield from _with_mentions(part, folder)


def _with_mentions(text: Token, folder: str) -> Iterator[Token]:
    at = 0
    mentions = [(match, match[1]) for match in _FILE.finditer(text.content)]
    mentions += [(match, _record(match[1])) for match in _DECISION.finditer(text.content)]
    for match, name in sorted(mentions, key=lambda mention: mention[0].start()):
        if match.start() < at:
            continue  # The name of a record's file holds its number, too.
        yield Token("text", "", 0, content=text.content[at : match.start()])
        yield from _linked([Token("text", "", 0, content=match[0])], name, folder)
        at = match.end()
    yield Token("text", "", 0, content=text.content[at:])


def _linked(parts: Sequence[Token], name: str, folder: str) -> Iterator[Token]:
    exists = _file(name) is not None
    if exists:
        yield Token("link_open", "a", 1, attrs={"href": posixpath.relpath(name, folder or ".")})
    yield from parts
    if exists:
        yield Token("link_close", "a", -1)


def _record(number: str) -> str:
    return next((name for name in names() if name.startswith(f"{DECISIONS}{number}-")), "")


def _address(href: str) -> str:
    local = _LOCAL.fullmatch(href)
    return href if local is None else local[1] + (local[3] or "")


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # A table that is wider than a phone is scrolled in a frame of its own, also with the keyboard.
    frame = '<div class="wide" role="group" aria-label="Table" tabindex="0">\n<table>\n'
    parser.add_render_rule("table_open", lambda *_: frame)
    parser.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return parser


_MARKDOWN = _markdown()
