"""The pages to search from, as somebody without JavaScript uses them in process: links, and forms that are sent."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx
import lxml.html

from tests.scenes import Person, Site

SEARCH = "/search"


class Reader:
    """A browser with cookies of its own."""

    def __init__(self, site: Site, person: Person | None = None, *, base: str = "") -> None:
        self.site = site
        self.http = httpx.Client(
            transport=site.http._transport, base_url=base or site.base, follow_redirects=True, timeout=60
        )
        self.answer = httpx.Response(204, request=httpx.Request("GET", base or site.base))
        if person is not None:
            self.sign_in(person)

    @property
    def root(self) -> lxml.html.HtmlElement:
        """The page that is open."""
        return lxml.html.document_fromstring(self.answer.text)

    @property
    def text(self) -> str:
        """What a person reads on it."""
        root = self.root
        for style in root.findall(".//style"):
            style.drop_tree()
        return " ".join(root.text_content().split())

    @property
    def path(self) -> str:
        """The path of its address, with the query."""
        parts = urlsplit(str(self.answer.url))
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def open(self, path: str, asked: Mapping[str, object] = {}, /, *, status: int = 200, **rest: object) -> "Reader":
        """Open a page with these parameters."""
        parameters: dict[str, Any] = {**asked, **rest}
        self.answer = self.http.get(path, params=parameters or None)
        assert self.answer.status_code == status, (self.answer.status_code, self.text)
        return self

    def search(
        self, q: str | None, more: Mapping[str, object] = {}, /, *, status: int = 200, **rest: object
    ) -> "Reader":
        """Search for words, with more parameters."""
        return self.open(SEARCH, {**({} if q is None else {"q": q}), **more, **rest}, status=status)

    def follow(self, text: str) -> "Reader":
        """Follow the link of this text."""
        found = [link for link in self.root.iter("a") if " ".join(link.text_content().split()) == text]
        assert found, (text, [" ".join(link.text_content().split()) for link in self.root.iter("a")])
        return self.open(urljoin(str(self.answer.url), found[0].get("href")))

    def send(self, button: str, changes: Mapping[str, str | None] | None = None) -> httpx.Response:
        """Send the form that has this button with these values; returns the answer at its end."""
        form, pressed = next(
            (form, each)
            for form in self.root.forms
            for each in form.iter("button")
            if " ".join(each.text_content().split()) == button
        )
        pairs = [*form.form_values(), *([(pressed.get("name"), pressed.get("value"))] if pressed.get("name") else [])]
        pairs = [(name, value) for name, value in pairs if name not in (changes or {})]
        pairs += [(name, value) for name, value in (changes or {}).items() if value is not None]
        address = urljoin(str(self.answer.url), form.get("action"))
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        self.answer = self.http.post(address, content=urlencode(pairs), headers=headers)
        return self.answer

    def sign_in(self, person: Person, password: str | None = None) -> "Reader":
        """Sign in by the form."""
        if not self.path.startswith(f"{SEARCH}/sign-in"):
            self.open(f"{SEARCH}/sign-in")
        self.send("Sign in", {"username": person.id, "password": password or person.password})
        return self

    @property
    def titles(self) -> list[str]:
        """The headings of the hits, in their order."""
        return [heading.text_content().strip() for heading in self.root.xpath("//section[@class='hits']//li/h3")]

    @property
    def marked(self) -> list[str]:
        """The marked words."""
        return [mark.text_content() for mark in self.root.iter("mark")]

    def values(self, choice: str) -> dict[str, tuple[int, bool]]:
        """The values to narrow to: the number of hits of each, and whether it is chosen."""
        found = {}
        for box in self.root.xpath("//input[@type='checkbox'][@name=$name]", name=choice):
            count = box.getparent().xpath("span[@class='count']")[0].text.replace(",", "")
            found[box.get("value")] = (int(count), box.get("checked") is not None)
        return found

    def links(self) -> Iterable[str]:
        """The addresses of all links."""
        return [urljoin(str(self.answer.url), link.get("href")) for link in self.root.iter("a")]


def parameters(address: str) -> list[tuple[str, str]]:
    """Read the query of an address."""
    return parse_qsl(urlsplit(address).query, keep_blank_values=True)
