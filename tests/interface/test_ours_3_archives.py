"""ours 3: the contents of several objects as one zip file."""

import asyncio
import io
import json
import uuid
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy.engine import Connection

from muniment.repository.api.context import Caller
from muniment.repository.store.permissions.principals import Principals
from tests.scenes import Site

XML = "application/xml"


def ask(site: Site, method: str, body: bytes | None = None, kind: str = "", /, query: str = "") -> httpx.Response:
    headers = {"Accept": "*/*"} | site.bearer() | ({"Content-Type": kind} if kind else {})
    return site.http.request(method, f"{site.repository}/archived-contents{query}", content=body, headers=headers)


def unpacked(answer: httpx.Response) -> dict[str, bytes]:
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/zip"), answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len({name.casefold() for name in names})
        return {name: archive.read(name) for name in names}


@pytest.fixture
def three(site: Site) -> list[str]:
    return [site.create(name, content) for name, content in (("a.txt", b"a" * 300_000), ("A.TXT", b"b"), ("c", b""))]


def test_ours_3_several_contents_are_one_zip_file_by_get_and_post(site: Site, three: list[str]) -> None:
    whole = {"a.txt": b"a" * 300_000, "A (2).TXT": b"b", "c": b""}
    assert unpacked(ask(site, "GET", query="?" + "&".join(f"object-id={each}" for each in three))) == whole
    assert unpacked(ask(site, "GET", query=f"?object-id={','.join(three)},{three[0]}")) == whole
    hrefs = [f"{site.repository}/objects/{each}" for each in three]
    assert unpacked(ask(site, "POST", json.dumps({"hrefs": hrefs}).encode(), "application/json")) == whole
    items = "".join(f"<item>{href}</item>" for href in hrefs)
    assert (
        unpacked(ask(site, "POST", f"<archived-contents><hrefs>{items}</hrefs></archived-contents>".encode(), XML))
        == whole
    )
    sent = ask(site, "GET", query=f"?object-id={three[1]}")
    assert sent.headers["Content-Disposition"].startswith("attachment")
    assert (sent.headers["X-Content-Type-Options"], sent.headers["Content-Security-Policy"]) == ("nosniff", "sandbox")
    repository = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"}).json()
    assert any(link["rel"].endswith("/archived-contents") for link in repository["links"])


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\boot.ini", "C__boot.ini"),
        ("con.txt", "_con.txt"),
        ("tab\tand\u200ftxt.exe", "tab_and_txt.exe"),
        ("été 日本.pdf", "été 日本.pdf"),
        ("...", "_"),
        ("x" * 255, "x" * 200),
    ],
)
def test_ours_3_names_in_an_archive_are_safe(site: Site, name: str, safe: str) -> None:
    made = site.create(name, b"words")
    assert unpacked(ask(site, "GET", query=f"?object-id={made}")) == {safe: b"words"}


def test_ours_3_what_cannot_be_in_an_archive_is_refused_before_its_first_byte(site: Site, three: list[str]) -> None:
    headers = site.bearer() | {"Accept": "application/json", "Content-Type": "application/json"}
    cabinet = site.http.post(
        f"{site.repository}/cabinets", content=b'{"properties": {"object_name": "c"}}', headers=headers
    )
    folder_id = cabinet.headers["Location"].rpartition("/")[2]
    empty = site.http.post(
        f"{site.repository}/objects", content=b'{"properties": {"object_name": "e"}}', headers=headers
    )
    no_content = empty.headers["Location"].rpartition("/")[2]
    for query, status in (
        ("", 400),
        ("?object-id=,", 400),
        (f"?object-id={three[0]},0900000000000000", 404),
        (f"?object-id={three[0]},nothing", 404),
        (f"?object-id={three[0]},{folder_id}", 400),
        (f"?object-id={three[0]},{no_content}", 404),
        ("?object-id=" + ",".join(f"{number:016x}" for number in range(1001)), 400),
    ):
        assert ask(site, "GET", query=query).status_code == status, query


@pytest.mark.parametrize("after", ["read_long", "read"])
@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_ours_3_what_goes_or_changes_before_the_first_byte_is_refused_or_sent_as_it_is_now(
    site: Site, monkeypatch: pytest.MonkeyPatch, after: str, method: str
) -> None:
    made, read = site.create("a.txt", uuid.uuid4().bytes), getattr(Caller, after)  # no other object keeps these bytes
    address = f"{site.repository}/objects/{made}" + ("/contents" if method == "POST" else "")
    changed: list[int] = []

    def change() -> None:
        headers = site.bearer() | {"Content-Type": "text/plain"}
        changed.append(site.http.request(method, address, content=b"new words", headers=headers).status_code)

    async def read_and_change(caller: Caller, of: Callable[[Connection, Principals], Any]) -> Any:
        found = await read(caller, of)
        if not changed:
            changed.append(0)
            await asyncio.to_thread(change)
        return found

    monkeypatch.setattr(Caller, after, read_and_change)
    answer = ask(site, "GET", query=f"?object-id={made}")
    assert changed[1] < 300
    if method == "DELETE":
        assert answer.status_code == 404
    else:
        assert unpacked(answer) == {"a.txt": b"new words"}


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"", 400),
        ("application/json", b"{}", 400),
        ("application/json", b'{"hrefs": []}', 400),
        ("application/json", b'{"hrefs": "x"}', 400),
        ("application/json", b'{"hrefs": ["http://elsewhere/objects/0900000000000001"]}', 400),
        ("application/json", b'{"hrefs": [' + b'"x",' * 10 + b'"x"', 400),
        (XML, b"<archived-contents/>", 400),
        (XML, b"<archived-contents><hrefs><item>", 400),
        ("text/plain", b"x", 415),
    ],
)
def test_ours_3_a_bad_body_of_an_archive_is_refused(site: Site, kind: str, body: bytes, status: int) -> None:
    assert ask(site, "POST", body, kind).status_code == status
