"""The front page, the documentation's addresses, and the page of a refusal."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx
import lxml.html
import pytest
from sqlalchemy.engine import Connection

from muniment.database.connections import Busy
from muniment.front import documentation
from muniment.ground.refusals import Overloaded
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.repositories import ListedRepository, Repository
from tests.scenes import Loop, Site

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ALONE = {
    "directory": ("halves=directory",),
    "repository": (
        "halves=repository",
        "repository.tokeninfo_url=https://elsewhere.test/dirws/v1/authentication/oauth/tokeninfo",
    ),
}


class Sheet:
    """A page as it was answered."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.headers
        self.tree: Any = lxml.html.fromstring(answer.text)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", str(self.tree.text_content())).strip()

    @property
    def links(self) -> Mapping[str, str]:
        """Where the links lead, by their text."""
        return {re.sub(r"\s+", " ", link.text_content()).strip(): str(link.get("href")) for link in self.tree.iter("a")}

    def in_main(self, tag: str) -> list[str]:
        return [element.text_content().strip() for element in self.tree.find(".//main").iter(tag)]


def opened(site: Site, address: str, **headers: str) -> Sheet:
    answer = site.http.get(address, headers=BROWSER | headers)
    assert answer.status_code == 200, answer.text
    return Sheet(answer)


@pytest.fixture(params=ALONE)
def half(site: Site, loop: Loop, request: pytest.FixtureRequest) -> Iterator[tuple[str, Site]]:
    """A site of which one half runs alone."""
    with closing(Site(site.world, site.kind, loop, *ALONE[request.param])) as alone:
        yield request.param, alone


# The front page


def test_it_leads_users_administrators_and_developers_on(site: Site) -> None:
    page = opened(site, "/")
    assert page.in_main("h2")[:3] == ["You use it", "You run it", "You build on it"]
    base = "https://muniment.test"
    assert page.links["Sign in"] == f"{base}/search/sign-in"
    assert page.links["Administration console"] == f"{base}{site.directory}/console"
    assert page.links["Documentation"] == f"{base}/docs"
    assert page.links["OpenAPI 3.1 description"] == f"{base}/openapi.json"
    assert page.links["Health of this server"] == f"{base}/health/ready"
    assert page.links[site.world.repository] == f"{base}/search?in={site.world.repository}"


@pytest.mark.slow
def test_of_a_half_alone_it_tells_nothing_that_is_not_there(half: tuple[str, Site]) -> None:
    name, site = half
    page = opened(site, "/")
    assert urlsplit(page.links["Sign in"]).path == (site.login if name == "directory" else "/search/sign-in")
    assert ("Administration console" in page.links) is (name == "directory")
    assert ("List of repositories" in page.links) is (name == "repository")
    for address in page.links.values():
        if address.startswith("http"):
            assert site.http.get(address, headers=BROWSER).status_code in {200, 303, 401}, address


def test_it_names_some_repositories_and_where_the_others_are(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "The list of repositories" not in opened(site, "/").links

    def many(_cx: Connection, part: Stretch) -> list[ListedRepository]:
        return [
            ListedRepository(Repository(number, f"repository-{number:02}", "", "", 0), (number,))
            for number in range(part.limit)
        ]

    monkeypatch.setattr(repositories, "repository_page", many)
    page = opened(site, "/")
    assert [text for text in page.links if text.startswith("repository-")] == [f"repository-{n:02}" for n in range(20)]
    assert page.links["The list of repositories"] == f"https://muniment.test/{site.names.prefix}/repositories"


def test_without_a_documentation_it_links_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "_folder", lambda: None)
    assert "The documentation is not installed with this copy." in opened(site, "/").text
    assert "The documentation is not installed with this copy." in opened(site, "/docs").text
    for address in ("/docs/settings", "/docs/settings.md", "/docs/decisions"):
        assert site.http.get(address).status_code == 404


# All pages


@pytest.mark.slow
def test_every_link_of_every_page_leads_somewhere(site: Site) -> None:
    waiting, seen = ["https://muniment.test/"], dict[str, httpx.Response]()
    anchors: list[tuple[str, str, str]] = []
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        answer = seen[address] = site.http.get(address, headers=BROWSER)
        # Other tests leave repositories of theirs, which the front page lists as well.
        expected = {401} if urlsplit(address).path.startswith(f"/{site.names.prefix}/repositories/") else {200, 303}
        assert answer.status_code in expected, (address, answer.status_code)
        if answer.status_code == 303:
            waiting.append(urljoin(address, answer.headers["location"]))
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        tree = Sheet(answer).tree
        for attribute in tree.xpath("//@href | //@src | //@action"):
            target, fragment = urldefrag(urljoin(address, str(attribute)))
            if fragment:
                anchors.append((address, target, fragment))
            if target.startswith("https://muniment.test/"):
                waiting.append(target)
    assert sum(address.startswith("https://muniment.test/docs/") for address in seen) > 40
    for address, target, fragment in anchors:
        if target in seen:
            assert Sheet(seen[target]).tree.xpath(f"//*[@id='{fragment}']"), (address, target, fragment)


@pytest.mark.slow
def test_no_page_runs_a_script_or_loads_anything_from_elsewhere(site: Site) -> None:
    for address in ("/", "/docs", "/docs/decisions", "/docs/interface", "/docs/nothing", site.login):
        answer = site.http.get(address, headers=BROWSER)
        policy = answer.headers["content-security-policy"]
        assert re.fullmatch(
            r"default-src 'none'; style-src ('self'|'sha256-\S+'); img-src 'self'; form-action 'self'; "
            r"base-uri 'none'; frame-ancestors 'none'",
            policy,
        )
        tree = Sheet(answer).tree
        assert not tree.xpath("//script | //iframe | //img | //object | //@style | //@onclick | //base")
        assert all(str(link).startswith("/") for link in tree.xpath("//link[@rel='stylesheet' or @rel='icon']/@href"))


def test_the_stylesheet_is_kept_by_browsers_for_as_long_as_it_is_the_same(site: Site) -> None:
    (address,) = opened(site, "/").tree.xpath("//link[@rel='stylesheet']/@href")
    answer = site.http.get(address)
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert re.fullmatch(r"/style\.css\?[0-9a-f]{12}", address)


def test_pages_keep_to_the_path_of_the_base_address(site: Site, loop: Loop) -> None:
    base = "https://files.example.org/deep"
    with closing(Site(site.world, site.kind, loop, f"web.base_address={base}")) as proxied:
        page = opened(proxied, "/docs/settings")
        (style,) = page.tree.xpath("//link[@rel='stylesheet']/@href")
        assert style.startswith("/deep/style.css?")
        assert page.links["Documentation"] == f"{base}/docs"
        assert page.links["Muniment"] == f"{base}/"


# The documentation


def test_the_list_has_every_page_and_says_what_it_is_about(site: Site) -> None:
    page = opened(site, "/docs")
    linked = {address.rpartition("/docs/")[2] for address in page.links.values() if "/docs/" in address}
    assert linked == {name for name in documentation.names() if "/" not in name} | {"decisions"}
    assert opened(site, "/docs/").links == page.links
    records = opened(site, "/docs/decisions").links.values()
    linked = {address.rpartition("/docs/")[2] for address in records if "/docs/decisions/" in address}
    assert linked == {name for name in documentation.names() if name.startswith("decisions/")}


@pytest.mark.parametrize("address", ["/docs/settings", "/docs/settings.md"])
def test_a_page_is_html_in_the_frame_for_a_browser(site: Site, address: str) -> None:
    page = opened(site, address)
    assert page.in_main("h1") == ["Settings"]
    assert "[web]" in page.links
    assert page.tree.xpath("//link[@rel='canonical']/@href") == ["https://muniment.test/docs/settings"]
    assert page.answer.headers["vary"] == "Accept"


@pytest.mark.parametrize(
    ("address", "accepts", "answered"),
    [
        ("/docs/settings", None, "text/html"),
        ("/docs/settings", "*/*", "text/html"),
        ("/docs/settings", "application/json", "text/html"),
        ("/docs/settings", "text/markdown", "text/markdown"),
        ("/docs/settings", "text/markdown, text/html;q=0.8", "text/markdown"),
        ("/docs/settings", "text/plain", "text/plain"),
        ("/docs/settings.md", None, "text/plain"),
        ("/docs/settings.md", "*/*", "text/plain"),
        ("/docs/settings.md", "text/markdown", "text/markdown"),
        ("/docs/settings.md", "text/html;q=0.5, text/markdown", "text/markdown"),
        ("/docs/settings.md", "text/html", "text/html"),
    ],
)
def test_who_asks_for_markdown_gets_it_as_it_is_written(
    site: Site, address: str, accepts: str | None, answered: str
) -> None:
    site.http.headers.pop("accept", None)
    answer = site.http.get(address, headers={} if accepts is None else {"Accept": accepts})
    site.http.headers["accept"] = "*/*"
    assert answer.headers["content-type"] == f"{answered}; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    assert (answer.text == documentation.source("settings")) is (answered != "text/html")


@pytest.mark.parametrize(
    "name", ["x" * 300, "decisions/" + "x" * 300, "pictures/" + "x" * 300 + ".png", "x/" * 3000, "%00"]
)
def test_a_name_that_no_page_can_have_is_unknown(site: Site, name: str) -> None:
    """The system refuses to look for a file whose name has over 255 bytes."""
    for address in (f"/docs/{name}", f"/docs/{name}.md"):
        assert site.http.get(address).status_code == 404


@pytest.mark.slow
def test_no_address_fails_for_a_name_that_no_file_can_have(site: Site) -> None:
    """What strangers send reaches no file system: not in the path, the query or a header."""
    long, bearer = "x" * 300, site.bearer()
    failed = []
    for path, operations in site.http.get("/openapi.json").json()["paths"].items():
        repository = re.sub(r"\{repository\}", site.world.repository, path)
        for address in {re.sub(r"\{\w+\}", long, path), re.sub(r"\{\w+\}", long, repository)}:
            named = {
                each["name"]: long for each in operations.get("get", {}).get("parameters", ()) if each["in"] == "query"
            }
            headers = {
                **bearer,
                "Accept-Language": long,
                "Content-Type": f"text/plain; charset={long}",
                "X-Forwarded-For": long,
            }
            answers = [site.http.get(address, headers=headers, params=params) for params in ({}, named)]
            failed += [(address, answer.text) for answer in answers if answer.status_code >= 500]
    assert not failed


# Refusals


def refused(site: Site, monkeypatch: pytest.MonkeyPatch, why: str, accepts: str) -> httpx.Response:
    headers = {"Accept": accepts}
    if why in {"bug", "overloaded", "busy"}:
        error = {"bug": RuntimeError("secret detail"), "overloaded": Overloaded("Too much.", 7), "busy": Busy("Busy.")}

        def fail() -> list[str]:
            raise error[why]

        monkeypatch.setattr(documentation, "names", fail)
        return site.http.get("/", headers=headers)
    if why == "plain http":
        return site.http.get("http://muniment.test/", headers=headers | {"Authorization": "Bearer x"})
    if why == "method":
        return site.http.request("DELETE", "/docs/settings", headers=headers)
    return site.http.get({"nowhere": "/nothing/<b>", "no page": "/docs/none"}[why], headers=headers)


REFUSED = {
    "nowhere": (404, "unknown_address", "Page not found"),
    "no page": (404, "unknown_address", "Page not found"),
    "plain http": (403, "tls_required", "This is not allowed"),
    "method": (405, "method_not_allowed", "This page cannot do that"),
    "bug": (500, "internal_error", "Something went wrong"),
    "overloaded": (503, "overloaded", "The server is busy"),
    "busy": (503, "overloaded", "The server is busy"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_is_a_page_with_a_way_on_for_a_browser(site: Site, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    answer = refused(site, monkeypatch, why, BROWSER["Accept"])
    status, _, heading = REFUSED[why]
    assert answer.status_code == status
    page = Sheet(answer)
    assert page.in_main("h1") == [heading]
    assert len(page.tree.xpath("//*[@role='alert']")) == 1
    assert page.links["Go to the front page"] == "https://muniment.test/"
    assert not page.tree.xpath("//link"), "it stands alone: nothing else may be answered just now"
    assert "secret detail" not in answer.text
    assert (answer.headers["x-request-id"] in page.text) is (status >= 500)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("accepts", ["*/*", "application/json", "application/json, text/html;q=0.5"])
@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_keeps_its_shape_for_a_program(
    site: Site, monkeypatch: pytest.MonkeyPatch, why: str, accepts: str
) -> None:
    answer = refused(site, monkeypatch, why, accepts)
    status, code, _ = REFUSED[why]
    assert answer.status_code == status
    assert answer.json().keys() == {"status", "code", "message"}
    assert (answer.json()["status"], answer.json()["code"]) == (status, code)
