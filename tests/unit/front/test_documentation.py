"""The documentation as HTML: what is written is shown, and every link leads to a page that exists."""

import os
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lxml.html
import pytest

from muniment.front import documentation
from tests.house.sources import ROOT

WRITTEN = """# A `page` & its title

<script>alert(1)</script> and <b>bold</b>.

### Deeper than it should be

<!-- written by a machine: begin -->
| | Count |
|---|---:|
| `x` | 12 |
<!-- written by a machine: end -->

## Twice

## Twice

See [the other](other.md#a-part), [below](sub/0001-first.md), [away](https://example.org/x.md), [here](#twice),
[nothing](javascript:alert(1)), `docs/other.md`, docs/other.md, `docs/absent.md`, docs/decisions/0001 and decision 0096.

See docs/decisions/0001-first.md here.

```
curl 'https://example.org/?a=1&b=2'
```
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A documentation of a few pages in another folder."""
    for name, text in {
        "written": WRITTEN,
        "other": "# Another\n\n## A part\n",
        "decisions/0001-first": "# 0001 The first\n\nSee `docs/other.md` and [the page](../written.md).\n",
        "sub/0001-first": "# First\n",
    }.items():
        file = tmp_path / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    monkeypatch.setattr(documentation, "_folder", lambda: tmp_path)
    return tmp_path


def rendered(name: str) -> Any:
    page = documentation.documentation_page(name)
    assert page is not None
    return lxml.html.fromstring(f"<div>{page.body}</div>")


def links(name: str) -> list[str]:
    return [str(link.get("href")) for link in rendered(name).iter("a")]


def test_html_is_shown_as_text(folder: Path) -> None:
    tree = rendered("written")
    assert not list(tree.iter("script", "b"))
    assert "<script>alert(1)</script> and <b>bold</b>." in tree.text_content()
    assert "written by a machine" not in tree.text_content()


def test_headings_have_anchors_of_their_own_and_no_level_is_left_out(folder: Path) -> None:
    page = documentation.documentation_page("written")
    assert page is not None
    assert page.title == "A page & its title"
    assert page.sections == (
        (2, "deeper-than-it-should-be", "Deeper than it should be"),
        (2, "twice", "Twice"),
        (2, "twice-2", "Twice"),
    )
    shown = [(heading.tag, heading.get("id")) for heading in rendered("written").iter("h1", "h2", "h3")]
    assert shown == [("h1", "a-page-its-title"), *((f"h{level}", anchor) for level, anchor, _ in page.sections)]


def test_a_table_can_be_scrolled_and_read_out_and_has_no_style_of_its_own(folder: Path) -> None:
    tree = rendered("written")
    (frame,) = tree.find_class("wide")
    assert (frame.get("role"), frame.get("tabindex")) == ("group", "0")
    assert [(cell.tag, cell.get("scope"), cell.text) for cell in frame.find(".//thead/tr")] == [
        ("td", None, None),
        ("th", "col", "Count"),
    ]
    assert [cell.get("class") for cell in frame.find(".//tbody/tr")] == [None, "right"]
    assert not tree.xpath("//@style")


def test_links_and_mentions_lead_to_pages(folder: Path) -> None:
    assert links("written") == [
        "other#a-part",
        "sub/0001-first",
        "https://example.org/x.md",
        "#twice",
        "other",
        "other",
        "decisions/0001-first",
        "decisions/0001-first",
    ]
    assert "See docs/decisions/0001-first.md here." in rendered("written").text_content()
    assert links("decisions/0001-first") == ["../other", "../written"]
    assert "javascript:" in rendered("written").text_content(), "as text"


def test_a_page_that_changes_is_rendered_again(folder: Path) -> None:
    file = folder / "other.md"
    for moment, title in enumerate(("Changed", "Changed again")):
        file.write_text(f"# {title}\n", "utf-8")
        os.utime(file, ns=(moment, moment))
        page = documentation.documentation_page("other")
        assert page is not None
        assert page.title == documentation.title("other") == title


@pytest.mark.parametrize(
    "name", ["", "..", "../written", "/etc/passwd", "written.md", "decisions", "decisions/", "./written", "a\x00b"]
)
def test_what_is_no_page_is_none(folder: Path, name: str) -> None:
    assert documentation.documentation_page(name) is None
    assert documentation.source(name) is None


@pytest.mark.slow
def test_every_link_of_every_page_leads_to_a_page_and_to_a_part_of_it() -> None:
    known = {name: {str(part) for part in rendered(name).xpath("//@id")} for name in documentation.names()}
    assert len(known) > 30
    broken, followed = [], 0
    for name in known:
        for href in links(name):
            address = urlsplit(href)
            if address.scheme:
                assert address.scheme == "https", (name, href)
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), address.path)) if address.path else name
            followed += 1
            if target not in known or (address.fragment and address.fragment not in known[target]):
                broken.append(f"{name}: {href}")
    assert not broken
    assert followed > 25


@pytest.mark.slow
def test_no_page_shows_markdown_that_was_not_understood() -> None:
    for name in documentation.names():
        tree = rendered(name)
        for code in tree.xpath("//code|//pre"):
            code.drop_tree()
        text = tree.text_content()
        assert not re.search(r"<!--|\]\(|\|---|^#+ |\*\*", text, re.MULTILINE), name
        for image in tree.iter("img"):
            at = posixpath.normpath(posixpath.join(posixpath.dirname(name), image.get("src", "")))
            assert (documentation.picture(at) or b"").startswith(b"\x89PNG"), f"{name}: {at}"
            assert len(image.get("alt", "")) > 20, at


@pytest.mark.parametrize(
    "name", ["pictures/none.png", "pictures/../settings.md", "../pictures/search-hits.png", "settings.png"]
)
def test_nothing_but_a_picture_is_a_picture(name: str) -> None:
    assert documentation.picture(name) is None


def test_the_pages_are_those_of_the_repository() -> None:
    written = {file.relative_to(ROOT / "docs").with_suffix("").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert set(documentation.names()) == written
