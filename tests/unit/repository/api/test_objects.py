"""The surfaces of objects, content, ACLs and types over HTTP: what goes in, what comes out, what is left behind."""

import asyncio
import json
import os
import random
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import httpx
import lxml.etree
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from muniment.repository.api.routes import routes
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.store.change_log import changes
from muniment.repository.store.content import files as content_files
from muniment.repository.store.content.contract import PIECE
from muniment.repository.store.content.files import FileStore, FileWriter
from muniment.repository.store.extraction import queue
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects.types import types_file
from muniment.repository.store.permissions import acl_lists
from muniment.repository.store.permissions.principals import Principals
from tests.shelf import Shelf
from tests.waiting import PATIENCE, until_on_loop

SPACE = "{urn:muniment:vocab}"


class Site:
    """The repository half as an application, with a client that answers in the event loop of each call."""

    def __init__(self, shelf: Shelf, names: RepositoryNames | None = None) -> None:
        self.shelf = shelf
        options = RepositoryOptions(
            administrators=("administrators@demo",),
            max_content_bytes=2_000_000,
            max_metadata_bytes=10_000,
            names=names or RepositoryNames(),
        )
        self.half = shelf.context(options)
        self.application = Starlette(routes=routes(self.half))
        self.repository_path = "/rest/repositories/demo"

    def __call__(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, object] | AsyncIterator[bytes] | None = None,
        who: str = "marta",
        **headers: str,
    ) -> httpx.Response:
        sent = {"Authorization": f"Bearer {who}"} if who else {}
        if isinstance(body, dict):
            sent["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        path = path.removeprefix("https://muniment.test").removeprefix(self.repository_path)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.application, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="https://muniment.test") as client:
                return await client.request(method, self.repository_path + path, content=body, headers=sent)

        return asyncio.run(send())

    def make(self, who: str = "marta", **properties: object) -> str:
        document = self.half.options.names.type_prefix + "document"
        made = {
            "object_name": "x",
            **({} if "r_object_type" in properties else {"r_object_type": document}),
            **properties,
        }
        response = self("POST", "/objects", {"properties": made}, who)
        assert response.status_code == 201, response.text
        return str(response.json()["properties"]["r_object_id"])


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.half.transactions._threads.shutdown()


def parts(*pieces: tuple[str, bytes], end: bytes = b"--cut--\r\n") -> bytes:
    return b"".join(b"--cut\r\n" + head.encode() + b"\r\n" + body + b"\r\n" for head, body in pieces) + end


META = 'Content-Disposition: form-data; name="metadata"; filename=""\r\nContent-Type: application/vnd.muniment+json\r\n'
BINARY = 'Content-Disposition: form-data; name="binary"; filename=""\r\n'
FORM = "multipart/form-data; boundary=cut"


def test_an_object_is_created_read_changed_and_deleted(site: Site) -> None:
    made = site("POST", "/objects", {"properties": {"object_name": "Größe", "r_object_type": "document"}})
    assert made.status_code == 201
    position = made.headers["muniment-position"]
    own = made.headers["location"]
    assert own.startswith("https://muniment.test/rest/repositories/demo/objects/09")
    read = site("GET", own)
    assert read.status_code == 200
    assert read.headers["content-type"] == "application/vnd.muniment+json"
    document = read.json()
    assert (document["name"], document["type"]) == ("object", "document")
    assert document["properties"]["object_name"] == "Größe"
    assert document["properties"]["r_modify_date"] == "2026-11-21T12:00:00.000+00:00"
    assert {"rel": "self", "href": own} in document["links"]
    changed = site("POST", own, {"properties": {"title": "t"}})
    assert changed.status_code == 200
    assert changed.json()["properties"]["title"] == "t"
    assert changed.headers["muniment-position"] != position
    gone = site("DELETE", own)
    assert (gone.status_code, gone.content) == (204, b"")
    assert gone.headers["muniment-position"] not in {position, changed.headers["muniment-position"]}
    assert site("GET", own).status_code == 404


def test_an_object_is_read_and_written_as_xml(site: Site) -> None:
    body = b"""<document xmlns="urn:muniment:vocab" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
      <properties><object_name>a &lt; b</object_name><keywords><item>one</item><item>two</item></keywords>
      <title xsi:nil="true"/></properties></document>"""
    made = site("POST", "/objects", body, Content_Type="application/xml", Accept="application/xml")
    assert made.status_code == 201
    root = lxml.etree.fromstring(made.content)
    assert root.tag == f"{SPACE}object"
    assert root.findtext(f"{SPACE}properties/{SPACE}object_name") == "a < b"
    assert [item.text for item in root.findall(f"{SPACE}properties/{SPACE}keywords/{SPACE}item")] == ["one", "two"]
    object_id = root.findtext(f"{SPACE}properties/{SPACE}r_object_id")
    assert (
        site("GET", f"/objects/{object_id}.xml").content
        == site("GET", f"/objects/{object_id}", Accept="application/xml").content
    )
    assert site("POST", f"/objects/{object_id}", made.content, Content_Type="application/xml").status_code == 200


def test_the_same_rows_are_served_under_other_names(site: Site) -> None:
    object_id = site.make()
    names = RepositoryNames(
        prefix="dctm", type_prefix="dm_", system_property_prefix="sys_", media_type="application/vnd.x"
    )
    other = Site(site.shelf, names)
    other.repository_path = "/dctm/repositories/demo"
    document = other("GET", f"/objects/{object_id}").json()
    assert document["type"] == document["properties"]["sys_object_type"] == "dm_document"
    assert document["properties"]["sys_object_id"] == object_id
    made = other("POST", "/objects", {"properties": {"object_name": "y", "sys_object_type": "dm_document"}})
    assert made.status_code == 201
    assert (
        other("POST", "/objects", {"properties": {"object_name": "y", "sys_object_type": "document"}}).status_code
        == 400
    )
    assert other("GET", "/types/dm_folder").json()["parent"] == "dm_sysobject"
    permitted = other("GET", "/acls/public").json()["permitted"]
    assert {"accessor": "dm_world", "basic-permission": "Read"} in permitted


def test_content_comes_in_parts_as_clients_really_send_it(site: Site) -> None:
    body = parts((META, b'{"properties": {"object_name": "a.txt"}}'), (BINARY, b"\r\n--cu the bytes\r\n"))
    made = site("POST", "/objects", body, Content_Type=FORM)
    assert made.status_code == 201, made.text
    assert made.json()["properties"]["r_full_content_size"] == len(b"\r\n--cu the bytes\r\n")
    assert made.json()["properties"]["a_content_type"] == "crtext"
    object_id = made.json()["properties"]["r_object_id"]
    content = site("GET", f"/objects/{object_id}/content-media")
    assert content.content == b"\r\n--cu the bytes\r\n"
    assert content.headers["content-disposition"] == "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"
    assert content.headers["x-content-type-options"] == "nosniff"
    assert content.headers["content-security-policy"] == "sandbox"
    assert content.headers["content-type"] == "text/plain"


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces",
    [
        [
            (
                "Content-Type: application/xml\r\n",
                b'<o xmlns="urn:muniment:vocab"><properties><object_name>x</object_name></properties></o>',
            ),
            ("", b"bytes"),
        ],
        [
            ("Content-Type: application/pdf\r\n", b"bytes"),
            ("Content-Type: application/json\r\n", b'{"properties":{"object_name":"x"}}'),
        ],
        [
            ("Content-Type: application/octet-stream\r\n", b'{"properties":{"object_name":"x"}}'),
            ("Content-Type: application/json\r\n", b"bytes"),
        ],
        [
            ('Content-Disposition: form-data; name="m"\r\n', b'{"properties":{"object_name":"x"}}'),
            ("Content-Type: text/plain\r\n", b"bytes"),
        ],
    ],
)
def test_parts_are_known_by_order_and_type(site: Site, pieces: list[tuple[str, bytes]]) -> None:
    for kind in ("multipart/form-data", "multipart/mixed"):
        made = site("POST", "/objects", parts(*pieces), Content_Type=f'{kind}; boundary="cut"')
        assert made.status_code == 201, made.text
        media = site("GET", f"/objects/{made.json()['properties']['r_object_id']}/content-media")
        assert media.content == b"bytes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (parts((META, b'{"properties": {"object_name": "x"}}'), (BINARY, b"x" * 300_000), end=b""), FORM, 400),
        (parts((BINARY, b"x" * 300_000), end=b"--cut--"), FORM, 413),
        (parts((META, b"{nonsense"), (BINARY, b"x" * 300_000)), FORM, 400),
        (parts((META, b'{"properties": {"object_name": ""}}'), (BINARY, b"x" * 300_000)), FORM, 400),
        (parts((META, b'{"properties": {"object_name": "x", "r_modifier": "me"}}'), (BINARY, b"x" * 9)), FORM, 400),
        (parts((META, b'{"properties": {"object_name": "\\ud800"}}'), (BINARY, b"x" * 9)), FORM, 400),
        (parts((META, b'{"properties": {"object_name": "x", "r_object_type": "cabinet"}}'), (BINARY, b"x")), FORM, 400),
        (parts((META, b'{"properties": {"object_name": "x"}}'), *[(BINARY, b"x")] * 402), FORM, 400),
        (parts((META, b" " * 10_001), (BINARY, b"x" * 9)), FORM, 413),
        (parts((META, b'{"properties": {"object_name": "x"}}'), (BINARY, b"x" * 2_000_001)), FORM, 413),
        (parts((META, b"{}"), (BINARY + "Content-Transfer-Encoding: base64\r\n", b"eA==")), FORM, 415),
        (b"no boundary at all", FORM, 400),
        (b"", FORM, 400),
        (b"", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=" + "b" * 80, 400),
        (b"x", "multipart/alternative; boundary=cut", 415),
    ],
)
def test_a_bad_body_leaves_nothing(site: Site, body: bytes, kind: str, status: int) -> None:
    response = site("POST", "/objects", body, Content_Type=kind)
    assert response.status_code == status, response.text
    assert response.json()["code"].startswith("E_")
    assert site.shelf.files() == []
    with site.shelf.database.read() as cx:
        assert changes.latest(cx, site.shelf.repository.id) == changes.START


SEVERAL = parts(
    (META, b'{"properties": {"object_name": "x"}}'),
    (BINARY, b"first content"),
    (BINARY, b"second content"),
    (BINARY, b"x" * 600_000),
)
IN_PARTS = parts((META, b'{"properties": {"object_name": "x"}}'), (BINARY, b"x" * 600_000))
RAW = b"x" * 600_000
OCTETS = "application/octet-stream"


def posting(site: Site, path: str, kind: str) -> dict[str, Any]:
    """Write the head of Marta's POST."""
    return {
        "type": "http",
        "method": "POST",
        "path": f"{site.repository_path}{path.partition('?')[0]}",
        "raw_path": b"",
        "query_string": path.partition("?")[2].encode(),
        "root_path": "",
        "scheme": "https",
        "server": ("muniment.test", 443),
        "headers": [(b"authorization", b"Bearer marta"), (b"content-type", kind.encode())],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/objects", IN_PARTS, FORM),
        ("/objects?content-count=3", SEVERAL, FORM),
        ("/objects?object-name=x", RAW, OCTETS),
        ("/objects/{id}/contents", RAW, OCTETS),
        ("/objects/{id}/contents?page=1", RAW, OCTETS),
        ("/objects/{id}/contents?format=pdf&primary=false", RAW, OCTETS),
        ("/objects/{id}/contents/content", RAW, OCTETS),
        ("/objects/{id}/versions?version-policy=next-minor", RAW, OCTETS),
        ("/objects/{id}/versions?version-policy=next-major&retain-lock=true", IN_PARTS, FORM),
        ("/objects/{id}/versions?version-policy=branch-version&content-count=3&all-primary=true", SEVERAL, FORM),
        ("/batches", b'{"operations": [' + b" " * 600_000, "application/json"),
    ],
)
def test_a_caller_who_goes_away_leaves_nothing(site: Site, path: str, body: bytes, kind: str) -> None:
    made = site("POST", "/objects?object-name=a.txt", b"words", Content_Type="text/plain").json()["properties"]
    path = path.replace("{id}", made["r_object_id"])
    assert site("PUT", f"/objects/{made['r_object_id']}/lock").status_code == 200
    files, before = site.shelf.files(), site("GET", f"/objects/{made['r_object_id']}").content
    with site.shelf.database.read() as cx:
        position = changes.latest(cx, site.shelf.repository.id)
    messages: list[Message] = [
        {"type": "http.request", "body": body[:300_000], "more_body": True},
        {"type": "http.request", "body": body[300_000:500_000], "more_body": True},
        {"type": "http.disconnect"},
    ]
    waiting = iter(messages)

    async def receive() -> Message:
        return next(waiting)

    async def send(_message: Message) -> None:
        return None

    asyncio.run(site.application(posting(site, path, kind), receive, send))
    assert next(waiting, None) is None, "the caller was let in, and left in the middle"
    assert site.shelf.files() == files
    assert site.half.uploads.count() == 0
    assert site("GET", f"/objects/{made['r_object_id']}").content == before
    with site.shelf.database.read() as cx:
        assert changes.latest(cx, site.shelf.repository.id) == position


def test_contents_that_are_given_up_are_removed_outside_the_event_loop(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops, remove = list[bool](), FileStore.remove

    def observed(store: FileStore, key: str) -> bool:
        loops.append(asyncio._get_running_loop() is not None)
        return remove(store, key)

    monkeypatch.setattr(FileStore, "remove", observed)
    assert site("POST", "/objects", SEVERAL[:-9], Content_Type=FORM).status_code == 400
    assert loops == [False, False]
    assert site.shelf.files() == []


class SlowDisk:
    """A disk that is busy until the event loop lets it go on. ``is_stuck`` says that this took too long."""

    def __init__(self) -> None:
        self.is_busy, self.goes_on = threading.Event(), threading.Event()
        self.is_stuck = False

    def wait(self) -> None:
        self.is_busy.set()
        self.is_stuck = not self.goes_on.wait(PATIENCE)


async def discard(_message: Message) -> None:
    return None


UPLOADS = pytest.mark.parametrize(
    ("path", "body", "kind"),
    [("/objects?object-name=x", RAW, OCTETS), ("/objects?content-count=3", SEVERAL, FORM)],
    ids=["raw", "multipart"],
)


@pytest.mark.slow
@UPLOADS
@pytest.mark.parametrize("times", [1, 2])
def test_an_upload_that_is_cancelled_while_it_is_synced_stops_nobody_and_leaves_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, body: bytes, kind: str, times: int
) -> None:
    disk = SlowDisk()

    def sync(descriptor: int) -> None:
        if os.fstat(descriptor).st_size == len(RAW):
            disk.wait()

    monkeypatch.setattr(os, "fsync", sync)

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def scene() -> None:
        upload = asyncio.create_task(site.application(posting(site, path, kind), receive, discard))
        await until_on_loop(disk.is_busy.is_set, "nothing is synced")
        for _ in range(times):
            upload.cancel()
            # The answer of a thread comes only after the upload has taken note of the cancellation.
            await site.half.transactions.off_loop(int)
        disk.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await upload
        assert not disk.is_stuck
        await until_on_loop(lambda: not site.shelf.files(), "content is left behind")

    asyncio.run(scene())
    assert site.half.uploads.count() == 0


@UPLOADS
def test_a_caller_who_goes_away_while_a_piece_is_written_stops_nobody_and_leaves_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, body: bytes, kind: str
) -> None:
    disk, write = SlowDisk(), content_files._write
    waiting = iter([{"type": "http.request", "body": body[:500_000], "more_body": True}])

    def slow(file: BinaryIO, piece: bytes) -> None:
        if len(piece) >= PIECE:
            disk.wait()
        write(file, piece)

    monkeypatch.setattr(content_files, "_write", slow)

    async def receive() -> Message:
        message = next(waiting, None)
        if message is None:
            await until_on_loop(disk.is_busy.is_set, "nothing is written")
            asyncio.get_running_loop().call_soon(disk.goes_on.set)
        return message or {"type": "http.disconnect"}

    asyncio.run(site.application(posting(site, path, kind), receive, discard))
    assert not disk.is_stuck
    assert site.shelf.files() == []


def test_raw_content_is_created_with_a_name_in_the_address(site: Site) -> None:
    body = b"<svg/>"
    made = site("POST", "/objects?object-name=a%2Bb.svg&object-type=document", body, Content_Type="image/svg+xml")
    assert made.status_code == 201
    assert made.json()["properties"]["object_name"] == "a+b.svg"
    assert made.json()["properties"]["a_content_type"] == "svg"
    nameless = site("POST", "/objects", b"x", Content_Type="text/plain")
    assert nameless.status_code == 415
    assert "?object-name=" in nameless.json()["message"]
    assert (
        site("POST", "/objects?object-name=x", b"x", Content_Type="text/plain", Content_Encoding="gzip").status_code
        == 415
    )


def test_a_small_plain_text_is_kept_with_its_object_and_leaves_the_extractor_nothing(site: Site) -> None:
    headers = {"Content_Type": "text/plain"}
    alone = site("POST", "/objects?object-name=note.txt", b"A pump and a valve.", **headers)
    object_id = alone.json()["properties"]["r_object_id"]
    body = parts((META, b'{"properties": {"object_name": "b.txt"}}'), (BINARY + "Content-Type: text/plain\r\n", b"two"))
    in_parts = site("POST", "/objects", body, Content_Type=FORM).json()["properties"]["r_object_id"]
    markup = site("POST", "/objects?object-name=a.html", b"<p>pump</p>", Content_Type="text/html")
    long = site("POST", "/objects?object-name=long.txt", b"pump " * PIECE, **headers)
    left = [one.json()["properties"]["r_object_id"] for one in (markup, long)]
    with site.shelf.database.read() as cx:
        assert queue.text_of(cx, [object_id, in_parts]) == {object_id: "A pump and a valve.", in_parts: "two"}
        assert [status.state for status in queue.statuses(cx, left).values()] == ["waiting", "waiting"]
        start = changes.settled_position(cx, site.shelf.repository.id)
    assert site("POST", f"/objects/{object_id}/contents", b"A gasket.", **headers).status_code == 201
    with site.shelf.database.read() as cx:
        assert queue.text_of(cx, [object_id]) == {object_id: "A gasket."}
        assert [one.kind for one in changes.after(cx, site.shelf.repository.id, start, 9)] == ["content"]
    assert site("POST", f"/objects/{object_id}/contents", b"%PDF-1.7 ", **headers).status_code == 201
    with site.shelf.database.read() as cx:
        assert queue.status(cx, object_id).state == "waiting"
        assert queue.text_of(cx, [object_id]) == {}


def test_content_is_cut_off_at_the_cap_when_no_length_is_declared(site: Site) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 50_000

    assert site("POST", "/objects?object-name=x", pieces(), Content_Type="text/plain").status_code == 413
    assert site.shelf.files() == []


def test_content_of_many_pieces_comes_back_as_it_was_sent(site: Site) -> None:
    sent = random.Random(3).randbytes(5 * PIECE + 77)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 70_001):
            yield sent[start : start + 70_001]

    raw = site("POST", "/objects?object-name=x", pieces(), Content_Type="application/octet-stream").json()
    parts = [
        b'--b\r\nContent-Type: application/json\r\n\r\n{"properties": {"object_name": "x"}}',
        b"\r\n--b\r\nContent-Type: application/octet-stream\r\n\r\n" + sent + b"\r\n--b--\r\n",
    ]
    formed = site("POST", "/objects", b"".join(parts), Content_Type="multipart/mixed; boundary=b").json()
    for made in (raw, formed):
        object_id = made["properties"]["r_object_id"]
        assert site("GET", f"/objects/{object_id}/content-media").content == sent


@pytest.mark.slow
def test_a_body_waits_for_a_slow_disk_and_a_disk_that_fails_keeps_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, written, held = 0, 0, 0
    write = FileWriter.write

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent, held
        for _ in range(28):
            yield b"x" * 65_536
            sent += 65_536
            held = max(held, sent - written)
            await asyncio.sleep(0)

    def slow(writer: FileWriter, *given: bytes) -> None:
        nonlocal written
        time.sleep(0.02)
        write(writer, *given)
        written += sum(len(piece) for piece in given)
        if fails and written > 3 * PIECE:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileWriter, "write", slow)
    for fails in (False, True):
        sent = written = 0
        made = site("POST", "/objects?object-name=x", pieces(), Content_Type="text/plain")
        assert made.status_code == (500 if fails else 201)
        assert len(site.shelf.files()) == 1, "only what was kept whole"
    assert held <= 2 * PIECE + 65_536


def test_damage_at_the_end_cuts_the_answer_short(site: Site) -> None:
    object_id = site.make()
    site("POST", f"/objects/{object_id}/contents", b"0" * (3 * PIECE), Content_Type="text/plain")
    site.shelf.files()[0].write_bytes(b"0" * (3 * PIECE - 1) + b"X")
    damaged = site("GET", f"/objects/{object_id}/content-media")
    assert damaged.headers["content-length"] == str(3 * PIECE)
    assert PIECE <= len(damaged.content) < 3 * PIECE, "never whole"
    assert b"X" not in damaged.content


def test_content_is_replaced_and_the_former_file_goes(site: Site) -> None:
    object_id = site.make(object_name="a.txt")
    assert site("GET", f"/objects/{object_id}/content-media").status_code == 404
    assert site("POST", f"/objects/{object_id}/contents", b"first", Content_Type="text/plain").status_code == 201
    replaced = site("POST", f"/objects/{object_id}/contents", b"second", Content_Type="text/html")
    assert replaced.status_code == 201
    assert "muniment-position" in replaced.headers
    assert site("GET", f"/objects/{object_id}/content-media").content == b"second"
    assert len(site.shelf.files()) == 1
    described = site("GET", f"/objects/{object_id}/contents/content").json()
    assert described["properties"]["format_name"] == "html"
    assert described["properties"]["mime_type"] == "text/html"
    assert described["properties"]["full_content_size"] == 6
    feed = site("GET", f"/objects/{object_id}/contents?include-total=true", Accept="application/json").json()
    assert feed["total"] == 1
    site("DELETE", f"/objects/{object_id}")
    assert site.shelf.files() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "status", "body", "stated"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-30", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=4-2", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
    ],
)
def test_a_range_is_given_out(site: Site, asked: str, status: int, body: bytes | None, stated: str | None) -> None:
    object_id = site.make()
    site("POST", f"/objects/{object_id}/contents", b"0123456789", Content_Type="text/plain")
    path = f"/objects/{object_id}/content-media"
    response = site("GET", path, Range=asked)
    assert response.status_code == status
    assert response.headers.get("content-range") == stated
    if body is not None:
        assert response.content == body
        assert response.headers["content-length"] == str(len(body))
    etag = site("GET", path).headers["etag"]
    assert site("GET", path, If_None_Match=etag).status_code == 304
    assert site("GET", path, Range=asked, If_Range='"other"').status_code == 200
    head = site("HEAD", path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "10")


def test_damaged_content_is_answered_as_such(site: Site) -> None:
    object_id = site.make()
    site("POST", f"/objects/{object_id}/contents", b"0123456789", Content_Type="text/plain")
    site.shelf.files()[0].write_bytes(b"012345678X")
    damaged = site("GET", f"/objects/{object_id}/content-media")
    assert (damaged.status_code, damaged.json()["code"]) == (500, "E_CONTENT_DAMAGED")


def test_a_name_of_any_characters_is_a_safe_file_name(site: Site) -> None:
    """failures B12."""
    object_id = site.make(object_name='a"\r\nSet-Cookie: x\\/é%')
    site("POST", f"/objects/{object_id}/contents", b"x", Content_Type="evil\ttype")
    response = site("GET", f"/objects/{object_id}/content-media")
    assert response.status_code == 200
    assert "set-cookie" not in response.headers
    assert response.headers["content-disposition"].endswith(
        "filename*=UTF-8''a%22%0D%0ASet-Cookie%3A%20x%5C%2F%C3%A9%25"
    )
    assert response.headers["content-type"] == "application/octet-stream"


def test_permissions_are_checked_over_http(site: Site) -> None:
    object_id = site.make(acl_name="public")
    own = f"/objects/{object_id}"
    assert site("GET", own, who="jon").status_code == 200
    assert site("POST", own, {"properties": {"title": "x"}}, "jon").status_code == 403
    assert site("DELETE", own, who="jon").status_code == 403
    assert site("POST", f"{own}/contents", b"x", "jon", Content_Type="text/plain").status_code == 403
    assert site("PUT", f"{own}/permission-set", {"acl-name": "private"}, "jon").status_code == 403
    hidden = site.make()
    nobodys = f"{int(hidden, 16) ^ 0xFFFF:016x}"
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/content-media"),
        ("GET", "/permission-set"),
        ("GET", "/index-status"),
    ):
        denied, absent = (site(method, f"/objects/{o}{path}", who="jon") for o in (hidden, nobodys))
        assert denied.status_code == absent.status_code == 404
        said, unsaid = denied.json(), absent.json()
        assert json.dumps(said).replace(hidden, "") == json.dumps(unsaid).replace(nobodys, "")
    assert site("GET", own, who="").status_code == 401
    assert site("GET", own, who="stranger").headers["www-authenticate"].startswith("Bearer")
    assert site("GET", f"/objects/{hidden}", who="root").status_code == 200


def test_browse_shows_metadata_and_not_content(site: Site) -> None:
    entries = [
        {"accessor": "guests@demo", "basic-permission": "Browse"},
        {"accessor": "owner", "basic-permission": "delete"},
    ]
    assert site("POST", "/acls", {"name": "seen", "permitted": entries}).status_code == 201
    object_id = site.make(acl_name="seen")
    site("POST", f"/objects/{object_id}/contents", b"x", Content_Type="text/plain")
    assert site("GET", f"/objects/{object_id}", who="jon").status_code == 200
    for path in ("content-media", "contents", "contents/content", "index-status"):
        assert site("GET", f"/objects/{object_id}/{path}", who="jon").status_code == 403
    shown = site("GET", f"/objects/{object_id}/permission-set", who="jon").json()
    assert (shown["acl-name"], shown["basic-permission"]) == ("marta@demo/seen", "Browse")


@pytest.mark.slow
def test_acls_are_made_changed_assigned_and_deleted(site: Site) -> None:
    made = site(
        "POST", "/acls", {"name": "my acl", "permitted": [{"accessor": "guests@demo", "basic-permission": "Read"}]}
    )
    assert made.status_code == 201
    own = made.headers["location"]
    assert re.search("/acls/45[0-9a-f]{14}$", own)
    assert site("GET", "/acls/my%20acl").json() == site("GET", own).json()
    object_id = site.make()
    assert site("GET", f"/objects/{object_id}", who="jon").status_code == 404
    assert site("PUT", f"/objects/{object_id}/permission-set", {"acl-name": "my acl"}).status_code == 200
    assert site("GET", f"/objects/{object_id}", who="jon").status_code == 200
    body = b'<acl xmlns="urn:muniment:vocab"><permitted/></acl>'
    assert site("POST", own, body, Content_Type="application/xml").json()["permitted"] == []
    assert site("GET", f"/objects/{object_id}", who="jon").status_code == 404
    assert site("GET", own, who="jon").status_code == 404
    assert site("DELETE", own).status_code == 409
    assert site("DELETE", f"/objects/{object_id}").status_code == 403, "an ACL without entries lets its owner read only"
    assert site("DELETE", f"/objects/{object_id}", who="root").status_code == 204
    assert site("DELETE", own).status_code == 204
    assert site("POST", "/acls", {"name": "public", "permitted": []}).status_code == 409
    assert site("DELETE", "/acls/public", who="root").status_code == 403
    with site.shelf.database.read() as cx:
        assert [
            one.acl.name
            for one in acl_lists.acl_page(cx, site.shelf.repository.id, Principals("x@demo"), Stretch(None, 0, 10))
        ] == [
            "private",
            "public",
        ]
    feed = site("GET", "/acls?include-total=true", Accept="application/json").json()
    assert (feed["total"], [entry["title"] for entry in feed["entries"]]) == (2, ["private", "public"])
    assert site("GET", "/acls?object-type=nothing").headers["Muniment-Ignored"] == "object-type"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "", "permitted": []},
        {"name": "a", "permitted": [{"accessor": "nobody", "basic-permission": "Read"}]},
        {"name": "a", "permitted": [{"accessor": "a@b", "basic-permission": "Own"}]},
        {"name": "a", "permitted": [{"accessor": "a@b", "basic-permission": "Read"}] * 2},
        {"name": "a", "permitted": [{"accessor": "a@b"}]},
        {"name": 5, "permitted": []},
    ],
)
def test_a_bad_acl_is_refused(site: Site, body: dict[str, object]) -> None:
    assert site("POST", "/acls", body).status_code == 400


def test_a_compressed_acl_is_refused(site: Site) -> None:
    body: dict[str, object] = {"name": "a", "permitted": []}
    assert site("POST", "/acls", body, Content_Encoding="gzip").status_code == 415


@pytest.mark.parametrize("query", ["", "?all-primary=true"])
def test_a_part_whose_media_type_no_database_can_store_is_refused(site: Site, query: str) -> None:
    pieces = [(META, b'{"properties": {"object_name": "x"}}'), ("Content-Type: text/plain\r\n", b"a")]
    body = parts(*pieces, ("Content-Type: text/\x00plain\r\n", b"b"))
    assert site("POST", f"/objects{query}", body, Content_Type=FORM).status_code == 400
    assert site.shelf.files() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/acls/%00", "/acls/%ED%A0%80", "/types/%00", "/objects/%00", "/objects/0900000100000%00"]
)
def test_a_path_of_any_bytes_is_unknown(site: Site, path: str) -> None:
    assert site("GET", path).status_code == 404
    own = f"/objects/{site.make()}/permission-set"
    assert site("PUT", own, {"acl-name": "\x00"}).status_code == 400
    assert site("PUT", own, b'{"acl-name": "\\ud800"}', Content_Type="application/json").status_code == 400


@pytest.mark.slow
def test_folders_list_what_is_in_them_page_by_page(site: Site) -> None:
    cabinet = site("POST", "/cabinets", {"properties": {"object_name": "c"}}).json()["properties"]["r_object_id"]
    folder = site("POST", f"/folders/{cabinet}/folders", {"properties": {"object_name": "f"}})
    assert folder.json()["name"] == "folder"
    for name in "abcde":
        made = site("POST", f"/folders/{cabinet}/documents", {"properties": {"object_name": name}})
        assert made.json()["properties"]["i_folder_id"] == [cabinet]
    path: str | None = f"/folders/{cabinet}/documents?items-per-page=2&include-total=true"
    titles: list[list[str]] = []
    while path:
        page = site("GET", path).json()
        assert page["total"] == 5
        titles.append([entry["title"] for entry in page["entries"]])
        path = next((link["href"] for link in page["links"] if link["rel"] == "next"), None)
    assert titles == [["a", "b"], ["c", "d"], ["e"]]
    in_xml = site("GET", f"/folders/{cabinet}/objects", Accept="application/atom+xml")
    assert len(lxml.etree.fromstring(in_xml.content).findall("{http://www.w3.org/2005/Atom}entry")) == 6
    assert site("GET", "/cabinets").json()["entries"][0]["title"] == "c"
    assert site("DELETE", f"/cabinets/{cabinet}").status_code == 409
    assert site("DELETE", f"/folders/{cabinet}?del-non-empty=perhaps").status_code == 400
    assert (
        site(
            "POST", f"/folders/{cabinet}/folders", {"properties": {"object_name": "d", "r_object_type": "document"}}
        ).status_code
        == 400
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "page=-1",
        "page=x",
        "page=1000000000",
        "items-per-page=0",
        "include-total=maybe",
        "inline=maybe",
        "links=maybe",
        "view=:none",
        "view=a,,b&inline=true",
        "sort=x",
        "filter=x",
        "Object_Type=document",
        "page=1&page=2",
        "object-type=nothing",
        "object-type=folder",
    ],
)
def test_a_bad_parameter_of_a_list_is_refused(site: Site, query: str) -> None:
    cabinet = site("POST", "/cabinets", {"properties": {"object_name": "c"}}).json()["properties"]["r_object_id"]
    assert site("GET", f"/folders/{cabinet}/documents?{query}").status_code == 400


def test_conditions_are_obeyed(site: Site) -> None:
    object_id = site.make()
    read = site("GET", f"/objects/{object_id}")
    etag = read.headers["etag"]
    assert site("GET", f"/objects/{object_id}", If_None_Match=etag).status_code == 304
    assert site("POST", f"/objects/{object_id}", {"properties": {"title": "a"}}, If_Match=etag).status_code == 200
    assert site("POST", f"/objects/{object_id}", {"properties": {"title": "b"}}, If_Match=etag).status_code == 412
    assert site("DELETE", f"/objects/{object_id}", If_Match=etag).status_code == 412
    assert site("DELETE", f"/objects/{object_id}", If_Match="nonsense").status_code == 412
    assert site("GET", f"/objects/{object_id}", If_None_Match=etag).status_code == 200
    assert site("DELETE", f"/objects/{object_id}", If_Match="*").status_code == 204


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"properties": 3}', "application/json", 400),
        (b'{"properties": {"title": {"a": 1}}}', "application/json", 400),
        (b'{"properties": {"title": "\\u0000"}}', "application/json", 400),
        (b'{"properties": {"title": "x\xff"}}', "application/json", 400),
        (b'{"properties": ' + b"[" * 4000, "application/json", 400),
        (b'{"properties": {"title": ' + b"[" * 4000 + b"]" * 4000 + b"}}", "application/json", 400),
        (b"{" + b" " * 10_000 + b"}", "application/json", 413),
        (b'<a xmlns="urn:other"/>', "application/xml", 400),
        (b"<a", "application/xml", 400),
        (b'<!DOCTYPE a><a xmlns="urn:muniment:vocab"/>', "application/xml", 400),
        (b'<a xmlns="urn:muniment:vocab"><properties><title><b/></title></properties></a>', "application/xml", 400),
        (
            b'<a xmlns="urn:muniment:vocab"><properties><title>1</title><title>2</title></properties></a>',
            "application/xml",
            400,
        ),
        (b"x", "text/plain", 415),
        (b"{}", "", 415),
    ],
)
def test_bad_metadata_is_refused_in_the_shape_asked_for(site: Site, body: bytes, kind: str, status: int) -> None:
    object_id = site.make()
    response = site("POST", f"/objects/{object_id}", body, Content_Type=kind, Accept="application/xml")
    assert response.status_code == status, response.text
    root = lxml.etree.fromstring(response.content)
    assert root.findtext(f"{SPACE}status") == str(status)


def test_what_cannot_be_answered_is_not_done(site: Site) -> None:
    refused = site("POST", "/objects", {"properties": {"object_name": "x"}}, Accept="image/png")
    assert refused.status_code == 406
    with site.shelf.database.read() as cx:
        assert changes.latest(cx, site.shelf.repository.id) == changes.START
    assert site("PATCH", "/objects").status_code == 405


def test_types_are_shown_with_their_properties(site: Site) -> None:
    with site.shelf.database.begin() as cx:
        toml = b"[types.invoice.properties]\namount = 'double'"
        types_file.load(cx, site.shelf.repository.id, toml, site.shelf.now)
    shown = site("GET", "/types/invoice").json()
    assert shown["parent"] == "document"
    (amount,) = [each for each in shown["properties"] if each["name"] == "amount"]
    assert (amount["type"], amount["repeating"], amount["writable"]) == ("double", False, True)
    assert [entry["title"] for entry in site("GET", "/types?object-type=document").json()["entries"]] == [
        "document",
        "invoice",
    ]
    assert site("GET", "/types/nothing").status_code == 404
    root = lxml.etree.fromstring(site("GET", "/types/invoice", Accept="application/xml").content)
    assert "amount" in [found.text for found in root.findall(f"{SPACE}properties/{SPACE}property/{SPACE}name")]


def test_the_state_of_the_text_is_shown(site: Site) -> None:
    object_id = site.make(object_name="a.txt")
    assert site("GET", f"/objects/{object_id}").json()["properties"]["r_index_status"] == "empty"
    site("POST", f"/objects/{object_id}/contents", b"<p>x</p>", Content_Type="text/html")
    status = site("GET", f"/objects/{object_id}/index-status").json()
    assert (status["state"], status["attempts"]) == ("waiting", 0)
    site("POST", f"/objects/{object_id}/contents", b"x", Content_Type="text/plain")
    assert site("GET", f"/objects/{object_id}/index-status").json()["state"] == "done"


def test_an_acl_goes_by_its_id_and_others_acls_not_by_a_bare_name(site: Site) -> None:
    """failures C9: a name that is taken told of an ACL that is hidden."""
    permitted = [{"accessor": "guests@demo", "basic-permission": "Read"}]
    made = site("POST", "/acls", {"name": "team", "permitted": permitted})
    own, shown_id = made.headers["location"], made.json()["id"]
    assert own.endswith(f"/acls/{shown_id}")
    associations = {"rel": "urn:muniment:linkrel/associations", "href": f"{own}/associations"}
    assert made.json()["links"] == [{"rel": "self", "href": own}, {"rel": "edit", "href": own}, associations]
    assert site("POST", "/acls", {"name": "team", "permitted": []}).json()["code"] == "E_NAME_TAKEN"
    theirs = site("POST", "/acls", {"name": "team", "permitted": []}, "jon")
    assert theirs.status_code == 201
    assert site("GET", "/acls/team", who="jon").json()["id"] == theirs.json()["id"] != shown_id
    assert site("GET", own, who="jon").json()["permitted"] == permitted
    assert site("GET", f"{own}.json", who="jon", Accept="application/xml").json()["id"] == shown_id
    assert site("GET", f"{own}.xml").headers["content-type"].endswith("xml")
    hidden, absent = (site("GET", f"/acls/{one}", who="marta") for one in (theirs.json()["id"], "45ffffffffffffff"))
    assert hidden.status_code == absent.status_code == 404
    assert site("POST", own, {"name": "other", "permitted": []}).status_code == 400
    object_id = site.make("jon", acl_name="marta@demo/team")
    read = site("GET", f"/objects/{object_id}", who="jon").json()["properties"]["acl_name"]
    assert read == "marta@demo/team"
    carried = f"/objects/{object_id}/permission-set"
    for name in (read, shown_id):
        assert site("PUT", carried, {"acl-name": name}, "jon").json()["acl-name"] == read
    assert site("PUT", carried, {"acl-name": "nobody@demo/team"}, "jon").status_code == 400
    assert site("POST", "/acls", {"name": shown_id, "permitted": []}).json()["code"] == "E_INVALID_ATTR_VALUE"


def test_a_quota_of_acls_and_entries_is_refused_by_its_own_code(site: Site) -> None:
    options = msgspec.structs.replace(site.half.options, max_acls=2, max_acl_entries=3)
    site.application = Starlette(routes=routes(replace(site.half, options=options)))
    entries = [{"accessor": f"u{number}@demo", "basic-permission": "Read"} for number in range(4)]
    first = site("POST", "/acls", {"name": "a", "permitted": entries[:3]})
    assert first.status_code == 201
    refused = site("POST", "/acls", {"name": "b", "permitted": entries[:1]})
    assert (refused.status_code, refused.json()["code"]) == (403, "E_QUOTA_EXCEEDED")
    assert site("POST", first.headers["location"], {"permitted": entries}).json()["code"] == "E_QUOTA_EXCEEDED"
    assert site("POST", "/acls", {"name": "b", "permitted": []}).status_code == 201
    assert site("POST", "/acls", {"name": "c", "permitted": []}).json()["code"] == "E_QUOTA_EXCEEDED"
    for name in "cde":
        assert site("POST", "/acls", {"name": name, "permitted": entries}, "root").status_code == 201
