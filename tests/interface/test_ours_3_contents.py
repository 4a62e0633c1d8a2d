"""ours 3: the contents of an object: made with it or added, found by place, listed, sent, replaced and removed."""

import hashlib
from typing import Any

import httpx
import pytest

from tests.contents import contents
from tests.scenes import Site

JSON = {"Accept": "application/json"}


def ask(site: Site, method: str, path: str, content: bytes | None = None, /, **more: Any) -> httpx.Response:
    headers = JSON | site.bearer() | more.pop("headers", {})
    address = path if path.startswith("http") else f"{site.repository}/{path}"
    return site.http.request(method, address, content=content, headers=headers, **more)


def put(site: Site, made: str, content: bytes, kind: str = "text/plain", **parameters: str) -> httpx.Response:
    return ask(site, "POST", f"objects/{made}/contents", content, params=parameters, headers={"Content-Type": kind})


def listed(site: Site, made: str, **parameters: str) -> list[dict[str, Any]]:
    feed = ask(site, "GET", f"objects/{made}/contents", params={"inline": "true", **parameters}).json()
    return [entry["content"] for entry in feed["entries"]]


def link(document: dict[str, Any], name: str) -> str:
    href: str = next(link["href"] for link in document["links"] if link["rel"].endswith(name))
    return href


def media(site: Site, made: str, **parameters: str) -> httpx.Response:
    return ask(site, "GET", f"objects/{made}/content-media", params=parameters)


@pytest.fixture
def made(site: Site) -> str:
    """A document with a text, a second page and two renditions."""
    made: str = site.create("pump.txt", b"first page")
    assert put(site, made, b"second page", page="1").status_code == 201
    assert put(site, made, b"<p>first page</p>", "text/html", primary="false").status_code == 201
    assert put(site, made, b"%PDF small", format="pdf", modifier="small", primary="false").status_code == 201
    return made


def test_ours_3_contents_are_listed_with_their_places_and_each_leads_to_its_bytes(site: Site, made: str) -> None:
    every = listed(site, made)
    shown = [
        tuple(each["properties"][name] for name in ("is_primary", "page", "format_name", "page_modifier"))
        for each in every
    ]
    assert shown == [
        ("true", 0, "crtext", ""),
        ("true", 1, "crtext", ""),
        ("false", 0, "html", ""),
        ("false", 0, "pdf", "small"),
    ]
    bodies = [b"first page", b"second page", b"<p>first page</p>", b"%PDF small"]
    assert [ask(site, "GET", link(each, "/content-media")).content for each in every] == bodies
    assert [each["properties"]["sha256"] for each in every] == [hashlib.sha256(body).hexdigest() for body in bodies]
    assert len({each["properties"]["r_object_id"] for each in every}) == 4
    for each in every:
        assert ask(site, "GET", link(each, "self")).json() == each


def test_ours_3_a_content_is_found_by_format_page_and_modifier(site: Site, made: str) -> None:
    assert media(site, made).content == b"first page"
    assert media(site, made, format="crtext").content == b"first page"
    assert media(site, made, page="1", **{"media-url-policy": "LOCAL"}).content == b"second page"
    assert media(site, made, format="text/html").content == b"<p>first page</p>"
    assert media(site, made, format="pdf", modifier="small").content == b"%PDF small"
    for nowhere in ({"format": "pdf"}, {"page": "7"}, {"modifier": "small"}, {"format": "crtext", "primary": "false"}):
        refused = media(site, made, **nowhere)
        assert (refused.status_code, refused.json()["code"]) == (404, "E_NO_CONTENT")
    described = ask(site, "GET", f"objects/{made}/contents/content", params={"format": "html"}).json()
    assert described["properties"]["mime_type"] == "text/html"


def test_ours_3_the_list_has_pages_totals_filters_and_sorts(site: Site, made: str) -> None:
    first = ask(site, "GET", f"objects/{made}/contents", params={"items-per-page": "3", "include-total": "true"}).json()
    assert (first["total"], len(first["entries"])) == (4, 3)
    rest = ask(site, "GET", next(each["href"] for each in first["links"] if each["rel"] == "next")).json()
    assert len(rest["entries"]) == 1
    by_format = listed(site, made, filter="is_primary='false'", sort="full_content_size ASC")
    assert [each["properties"]["format_name"] for each in by_format] == ["pdf", "html"]
    assert [each["properties"]["page"] for each in listed(site, made, filter="page>0")] == [1]
    assert ask(site, "GET", f"objects/{made}/contents", params={"filter": "colour='red'"}).status_code == 400


def test_ours_3_the_same_place_is_overwritten_unless_the_caller_forbids_it(site: Site, made: str) -> None:
    for place in ({}, {"page": "1"}, {"format": "html", "primary": "false"}):
        refused = put(site, made, b"other", overwrite="false", **place)
        assert (refused.status_code, refused.json()["code"]) == (409, "E_CONTENT_EXISTS")
    assert put(site, made, b"<p>other</p>", "text/html; charset=utf-8", primary="false").status_code == 201
    assert media(site, made, format="html").content == b"<p>other</p>"
    assert len(listed(site, made)) == 4


def test_ours_3_a_content_is_replaced_and_removed_at_its_own_address(site: Site, made: str) -> None:
    own = f"objects/{made}/contents/content"
    once = ask(site, "POST", own, b"%PDF once", params={"format": "pdf", "modifier": "small"})
    assert once.status_code == 200
    assert b"%PDF once" in contents(site.world.installation.content)
    changed = ask(site, "POST", own, b"%PDF other", params={"format": "pdf", "modifier": "small"})
    assert (changed.status_code, changed.json()["properties"]["mime_type"]) == (200, "application/pdf")
    assert media(site, made, format="pdf", modifier="small").content == b"%PDF other"
    assert ask(site, "POST", own, b"x", params={"page": "9"}).status_code == 404
    for place in ({"page": "1"}, {"format": "html"}, {}):
        gone = ask(site, "DELETE", own, params=place)
        assert (gone.status_code, gone.content) == (204, b"")
        assert ask(site, "DELETE", own, params=place).status_code == 404
    assert [each["properties"]["format_name"] for each in listed(site, made)] == ["pdf"]
    kept = contents(site.world.installation.content)
    assert b"%PDF other" in kept
    assert b"%PDF once" not in kept
    assert ask(site, "DELETE", f"objects/{made}").status_code == 204
    assert b"%PDF other" not in contents(site.world.installation.content)


def test_ours_3_each_change_of_a_content_gives_the_object_another_tag(site: Site, made: str) -> None:
    tag = ask(site, "GET", f"objects/{made}").headers["ETag"]
    added = ask(site, "POST", f"objects/{made}/contents?page=2", b"third", headers={"If-Match": tag})
    assert added.status_code == 201
    for method, path in (
        ("POST", "contents?page=3"),
        ("POST", "contents/content?page=1"),
        ("DELETE", "contents/content?page=1"),
    ):
        stale = ask(
            site, method, f"objects/{made}/{path}", b"late" if method == "POST" else None, headers={"If-Match": tag}
        )
        assert (stale.status_code, stale.json()["code"]) == (412, "E_VERSION_CONFLICT"), path
    assert len(listed(site, made)) == 5


def test_ours_3_every_content_goes_out_as_an_attachment_with_ranges_and_a_tag(site: Site, made: str) -> None:
    whole = media(site, made, format="html")
    assert whole.headers["Content-Disposition"].startswith('attachment; filename="pump.html"')
    assert (whole.headers["X-Content-Type-Options"], whole.headers["Content-Security-Policy"]) == ("nosniff", "sandbox")
    path = f"objects/{made}/content-media?format=html"
    part = ask(site, "GET", path, headers={"Range": "bytes=3-7"})
    assert (part.status_code, part.content) == (206, b"first")
    assert ask(site, "GET", path, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304
    assert ask(site, "GET", path, headers={"Range": "bytes=99-"}).status_code == 416


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("format=nothing", "E_INVALID_ATTR_VALUE"),
        ("page=-1", "invalid"),
        ("page=x", "invalid"),
        ("page=99999999", "invalid"),
        ("primary=perhaps", "invalid"),
        ("overwrite=perhaps", "invalid"),
        ("modifier=a%0Ab", "invalid"),
        (f"modifier={'m' * 65}", "invalid"),
        ("modifier=m", "E_INVALID_ATTR_VALUE"),
        ("content-length=3", "invalid"),
        ("content-length=many", "invalid"),
        ("content-charset=a%20b", "invalid"),
    ],
)
def test_ours_3_bad_parameters_are_refused_and_nothing_is_kept(site: Site, query: str, code: str) -> None:
    made = site.create("pump.txt", b"first page")
    before = sorted(contents(site.world.installation.content))
    refused = ask(
        site, "POST", f"objects/{made}/contents?{query}", b"other bytes", headers={"Content-Type": "text/plain"}
    )
    assert refused.status_code == 400
    assert code == "invalid" or refused.json()["code"] == code
    assert sorted(contents(site.world.installation.content)) == before
    assert ask(site, "GET", f"objects/{made}/content-media?media-url-policy=elsewhere").status_code == 400


def test_ours_3_media_types_and_their_parameters_are_read_in_any_case(site: Site) -> None:
    """RFC 9110 8.3.1"""
    made = site.create("pump.txt")
    for kind, charset, expected in (
        ("Text/Plain", "utf-16", "Text/Plain; charset=utf-16"),
        ("TEXT/plain; Charset=utf-8", "utf-16", "TEXT/plain; Charset=utf-8"),
        ("Image/PNG", "utf-16", "Image/PNG"),
    ):
        stored = put(site, made, "é".encode("utf-16"), kind, **{"content-charset": charset})
        assert stored.json()["properties"]["mime_type"] == expected
        assert media(site, made).headers["content-type"] == expected


def test_ours_3_folders_have_no_contents_and_readers_change_none(site: Site, made: str) -> None:
    cabinet = ask(
        site, "POST", "cabinets", b'{"properties": {"object_name": "c"}}', headers={"Content-Type": "application/json"}
    )
    folder_id = cabinet.headers["Location"].rpartition("/")[2]
    for query in ("", "?page=1", "?primary=false&format=pdf"):
        assert put(site, folder_id, b"x", **dict(httpx.QueryParams(query))).status_code == 400
    assert ask(site, "GET", f"objects/{folder_id}/contents").json()["entries"] == []


def multipart(site: Site, parts: list[tuple[str, bytes]], shape: str = "form-data", query: str = "") -> httpx.Response:
    """Send parts as clients of the field do: names and empty file names count for nothing."""
    body = b"".join(
        b'--cut\r\nContent-Disposition: form-data; name="n"; filename=""\r\n'
        + (f"Content-Type: {kind}\r\n".encode() if kind else b"")
        + b"\r\n"
        + content
        + b"\r\n"
        for kind, content in parts
    )
    kind = f"multipart/{shape}; boundary=cut"
    return ask(site, "POST", f"objects?{query}".rstrip("?"), body + b"--cut--\r\n", headers={"Content-Type": kind})


METADATA = ("application/vnd.emc.documentum+json", b'{"properties": {"object_name": "several.txt"}}')


@pytest.mark.parametrize("shape", ["form-data", "mixed", "related"])
def test_ours_3_an_object_is_created_with_several_contents(site: Site, shape: str) -> None:
    parts = [METADATA, ("", b"words"), ("text/html", b"<p>words</p>"), ("", b"%PDF")]
    new = multipart(site, parts, shape, "content-count=3&format=crtext,,pdf&modifier=,,m")
    assert new.status_code == 201, new.text
    made = new.headers["Location"].rpartition("/")[2]
    shown = [
        tuple(each["properties"][name] for name in ("is_primary", "format_name", "page_modifier"))
        for each in listed(site, made)
    ]
    assert shown == [("true", "crtext", ""), ("false", "html", ""), ("false", "pdf", "m")]
    assert media(site, made, format="pdf", modifier="m").content == b"%PDF"


def test_ours_3_each_entry_links_to_its_bytes(site: Site) -> None:
    made = multipart(site, [METADATA, ("text/plain", b"one"), ("text/html", b"<p>")], query="all-primary=false")
    object_id = made.headers["Location"].rpartition("/")[2]
    for query in ("?inline=true&media-url-policy=local", "", "?media-url-policy=ALL&network-location=x"):
        accept = {"Accept": "application/json"}
        address = f"{site.repository}/objects/{object_id}/contents{query}"
        feed = site.http.get(address, headers=site.bearer() | accept)
        links = [
            {link["rel"]: link["href"] for link in entry["links"]}["enclosure"] for entry in feed.json()["entries"]
        ]
        assert [site.http.get(link, headers=site.bearer()).content for link in links] == [b"one", b"<p>"]
        assert "muniment-ignored" not in feed.headers


def test_ours_3_a_content_in_the_place_of_the_metadata_is_told_so(site: Site) -> None:
    refused = multipart(site, [("text/plain", b"words"), METADATA])
    assert refused.status_code == 400
    assert "The part with the object's metadata: The JSON cannot be read" in refused.json()["message"]


@pytest.mark.parametrize("query", ["all-primary=true", "", "format=crtext&content-count=2", "page=1,0", "page=,1"])
def test_ours_3_several_contents_are_pages(site: Site, query: str) -> None:
    new = multipart(site, [METADATA, ("text/plain", b"one"), ("text/plain", b"two")], query=query)
    assert new.status_code == 201, new.text
    made = new.headers["Location"].rpartition("/")[2]
    expected = [b"two", b"one"] if query == "page=1,0" else [b"one", b"two"]
    assert [media(site, made, page=str(page)).content for page in (0, 1)] == expected
    assert {each["properties"]["format_name"] for each in listed(site, made)} == {"crtext"}
    assert media(site, made, page="2").status_code == 404


def test_ours_3_a_lone_format_is_that_of_all_pages(site: Site) -> None:
    new = multipart(site, [METADATA, ("", b"a"), ("text/plain", b"b")], query="format=pub_html&content-count=2")
    assert new.status_code == 201, new.text
    made = new.headers["Location"].rpartition("/")[2]
    shown = [(each["properties"]["page"], each["properties"]["mime_type"]) for each in listed(site, made)]
    assert shown == [(0, "text/html"), (1, "text/html")]


def test_ours_3_formats_and_modifiers_tell_renditions_apart(site: Site) -> None:
    """As a client of the field sends them."""
    query = "all-primary=false&format=crtext,html,pub_html,crtext&modifier=,,m2,m3&content-count=4"
    parts = [METADATA, *(("text/plain", str(number).encode()) for number in range(4))]
    new = multipart(site, parts, query=query)
    assert new.status_code == 201, new.text
    made = new.headers["Location"].rpartition("/")[2]
    assert [media(site, made).content, media(site, made, format="html").content] == [b"0", b"1"]
    assert media(site, made, format="pub_html", modifier="m2").content == b"2"
    assert media(site, made, format="crtext", modifier="m3", primary="false").content == b"3"


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("content-count=1", [("", b"a"), ("text/html", b"b")]),
        ("format=crtext,html,pdf", [("", b"a"), ("", b"b")]),
        ("format=crtext,nothing", [("", b"a"), ("", b"b")]),
        ("modifier=m", [("", b"a")]),
        ("all-primary=false", [("", b"a"), ("text/html", b"b"), ("text/html", b"c")]),
        ("all-primary=true&modifier=,m", [("", b"a"), ("text/html", b"b")]),
        ("page=1,2", [("", b"a"), ("text/html", b"b")]),
        ("page=0,0", [("", b"a"), ("text/html", b"b")]),
        ("page=x", [("", b"a")]),
        ("content-length=7", [("", b"a")]),
    ],
)
def test_ours_3_contents_that_do_not_fit_are_refused_and_none_is_kept(
    site: Site, query: str, parts: list[tuple[str, bytes]]
) -> None:
    before = sorted(contents(site.world.installation.content))
    refused = multipart(site, [METADATA, *parts], query=query)
    assert refused.status_code == 400, refused.text
    assert sorted(contents(site.world.installation.content)) == before


def test_ours_3_a_body_cut_off_in_its_second_content_keeps_nothing(site: Site) -> None:
    before = sorted(contents(site.world.installation.content))
    head = b'--cut\r\nContent-Type: application/json\r\n\r\n{"properties": {"object_name": "x"}}\r\n'
    body = head + b"--cut\r\n\r\nfirst content\r\n--cut\r\n\r\nsecond con"
    cut = ask(site, "POST", "objects", body, headers={"Content-Type": "multipart/mixed; boundary=cut"})
    assert cut.status_code == 400
    assert sorted(contents(site.world.installation.content)) == before


def test_ours_3_a_copy_has_all_contents_and_keeps_them_when_the_original_goes(site: Site, made: str) -> None:
    assert put(site, made, b"of this object alone", page="5").status_code == 201
    reference = f'{{"href": "{site.repository}/objects/{made}"}}'.encode()
    cabinet = ask(
        site, "POST", "cabinets", b'{"properties": {"object_name": "c"}}', headers={"Content-Type": "application/json"}
    )
    folder_id = cabinet.headers["Location"].rpartition("/")[2]
    kept = sorted(contents(site.world.installation.content))
    copied = ask(site, "POST", f"folders/{folder_id}/objects", reference, headers={"Content-Type": "application/json"})
    assert copied.status_code == 201, copied.text
    assert sorted(contents(site.world.installation.content)) == kept, "the copy shares the bytes"
    assert ask(site, "DELETE", f"objects/{made}").status_code == 204
    copy = copied.headers["Location"].rpartition("/")[2]
    assert media(site, copy).content == b"first page"
    assert media(site, copy, format="html").content == b"<p>first page</p>"
    assert media(site, copy, page="5").content == b"of this object alone"
    assert ask(site, "DELETE", f"objects/{copy}").status_code == 204
    assert b"of this object alone" not in contents(site.world.installation.content)
