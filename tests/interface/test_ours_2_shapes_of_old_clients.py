"""ours 2 and ours 3: what clients of the field read of an object, and may send back. Source: docs/interface.md."""

from typing import Any

import httpx
import lxml.etree
import pytest

from tests.scenes import Person, Site

JSON = {"Accept": "application/json"}
XSI = "http://www.w3.org/2001/XMLSchema-instance"


class Desk:
    """Somebody who makes objects and reads them."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site, self.person = site, person or site.world.writer
        self.r = site.names.system_property_prefix

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = self.site.bearer(self.person) | JSON | more.pop("headers", {})
        return self.site.http.request(method, f"{self.site.repository}/{path}".rstrip("/"), headers=headers, **more)

    def make(self, path: str = "objects", content: bytes | None = None, kind: str = "text/plain", **given: Any) -> str:
        made = self.send("POST", path, json={"properties": {"object_name": self.site.world.word()} | given})
        assert made.status_code == 201, made.text
        object_id = f"{made.json()['properties'][f'{self.r}object_id']}"
        if content is not None:
            sent = self.send("POST", f"objects/{object_id}/contents", content=content, headers={"Content-Type": kind})
            assert sent.status_code in (200, 201), sent.text
        return object_id

    def read(self, object_id: str, kind: str = "objects", **parameters: str) -> dict[str, Any]:
        answer = self.send("GET", f"{kind}/{object_id}", params=parameters)
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read

    def properties(self, object_id: str, kind: str = "objects", **parameters: str) -> dict[str, Any]:
        """With `r_` as the prefix, whatever the site's is."""
        shown = self.read(object_id, kind, **parameters)["properties"]
        return {f"r_{each[len(self.r) :]}" if each.startswith(self.r) else each: shown[each] for each in shown}


@pytest.fixture
def desk(site: Site) -> Desk:
    return Desk(site)


def links(document: dict[str, Any]) -> dict[str, str]:
    return {link["rel"]: link["href"] for link in document["links"]}


def test_ours_2_known_properties_without_a_value_are_sent(desk: Desk) -> None:
    cabinet = desk.make("cabinets")
    for object_id in (desk.make(), cabinet, desk.make(f"folders/{cabinet}/folders")):
        shown = desk.properties(object_id)
        empty = {name: shown[name] for name in ("title", "subject", "r_lock_owner", "log_entry")}
        assert empty == dict.fromkeys(empty, ""), object_id
        assert (shown["authors"], shown["keywords"]) == ([], [])
        back = desk.send("POST", f"objects/{object_id}", json={"properties": desk.read(object_id)["properties"]})
        assert back.status_code == 200, back.text
        assert set(desk.read(object_id, view="subject,authors")["properties"]) >= {"subject", "authors"}
        as_xml = desk.send("GET", f"objects/{object_id}", headers={"Accept": "application/xml"})
        root = lxml.etree.fromstring(as_xml.content)
        for name in ("title", "keywords"):
            (element,) = root.findall(f"{desk.site.vocab}properties/{desk.site.vocab}{name}")
            assert (element.text, len(element)) == (None, 0)
            assert (element.get(f"{{{XSI}}}nil") == "true") is (name == "keywords")
    full = desk.properties(desk.make(title="t", subject="s", authors=["a"], keywords=["k"]))
    assert [full[name] for name in ("title", "subject", "authors", "keywords")] == ["t", "s", ["a"], ["k"]]


def test_ours_2_objects_show_their_cabinet_size_pages_and_what_everybody_may_do(desk: Desk) -> None:
    site, base = desk.site, desk.site.names.linkrel_base
    cabinet = desk.make("cabinets")
    folder = desk.make(f"folders/{cabinet}/folders")
    document = desk.make(f"folders/{folder}/documents", b"twelve bytes")
    loose = desk.make()
    address = f"{site.base}{site.repository}/cabinets/{cabinet}"
    for object_id in (folder, document):
        assert desk.properties(object_id)["i_cabinet_id"] == cabinet
        assert links(desk.read(object_id))[f"{base}/cabinet"] == address
    assert desk.properties(cabinet)["i_cabinet_id"] == cabinet
    assert f"{base}/cabinet" not in links(desk.read(cabinet))
    assert "i_cabinet_id" not in desk.properties(loose)
    assert f"{base}/cabinet" not in links(desk.read(loose))
    shown = desk.properties(document)
    assert (shown["r_content_size"], shown["r_page_cnt"], shown["world_permit"]) == (12, 1, 1)
    second = desk.send(
        "POST", f"objects/{document}/contents?page=1", content=b"2", headers={"Content-Type": "text/plain"}
    )
    assert second.status_code in (200, 201), second.text
    rendition = desk.send(
        "POST", f"objects/{document}/contents?primary=false", content=b"3", headers={"Content-Type": "text/html"}
    )
    assert rendition.status_code in (200, 201), rendition.text
    assert desk.properties(document)["r_page_cnt"] == 2
    empty = desk.properties(loose)
    assert (empty["r_content_size"], empty["r_page_cnt"]) == (0, 0)
    site.share(document)
    assert desk.properties(document)["world_permit"] == 3
    r, sysobject = desk.r, site.type("sysobject")
    for condition in (f"{r}page_cnt = 2", "world_permit >= 3", f"{r}content_size = 12", "acl_domain = ''"):
        dql = f"select object_name from {sysobject} where {r}object_id = '{document}' and {condition}"
        assert len(desk.send("GET", "", params={"dql": dql}).json()["entries"]) == 1, condition
    listed = desk.send("GET", f"folders/{folder}/documents", params={"inline": "true", "filter": "world_permit=3"})
    (entry,) = listed.json()["entries"]
    assert entry["content"] == desk.read(document, "documents")
    # They are not the caller's to write; what was read may be sent back.
    whole = desk.read(document)["properties"]
    assert desk.send("POST", f"objects/{document}", json={"properties": whole}).status_code == 200
    for name, value in {f"{r}page_cnt": 9, "world_permit": 7, "i_cabinet_id": folder, "log_entry": "x"}.items():
        refused = desk.send("POST", f"objects/{document}", json={"properties": {name: value}})
        assert (refused.status_code, refused.json()["code"]) == (400, "E_NOT_WRITABLE"), name


def test_ours_2_a_cabinet_behind_a_hidden_folder_is_not_told(desk: Desk) -> None:
    site = desk.site
    cabinet = desk.make("cabinets", acl_name="private")
    hidden = desk.make(f"folders/{cabinet}/folders", acl_name="private")
    document = desk.make(f"folders/{hidden}/documents", acl_name="private")
    reader = Desk(site, site.world.reader)
    for object_id in (document, cabinet):
        site.share(object_id)
    for who, told in ((desk, True), (reader, False)):
        assert ("i_cabinet_id" in who.properties(document)) is told
        assert (f"{site.names.linkrel_base}/cabinet" in links(who.read(document))) is told
    site.share(hidden)
    assert reader.properties(document)["i_cabinet_id"] == cabinet


def test_ours_3_the_content_type_is_the_name_of_a_format(desk: Desk) -> None:
    site, word = desk.site, desk.site.world.word()
    text, page, odd = (
        desk.make("objects", f"{word} {kind}".encode(), kind, object_name=f"{word} {kind}")
        for kind in ("text/plain; charset=iso-8859-1", "text/html", "application/x-odd")
    )
    shown = [desk.properties(each)["a_content_type"] for each in (text, page, odd)]
    assert shown == ["crtext", "html", "application/x-odd"]
    # What was read may be sent back, and the charset stays.
    before = desk.send("GET", f"objects/{text}/content-media").headers["Content-Type"]
    assert desk.send("POST", f"objects/{text}", json={"properties": {"a_content_type": "crtext"}}).status_code == 200
    assert desk.send("GET", f"objects/{text}/content-media").headers["Content-Type"] == before
    changed = desk.send("POST", f"objects/{page}", json={"properties": {"a_content_type": "application/pdf"}})
    assert changed.json()["properties"]["a_content_type"] == "pdf"
    assert desk.send("POST", f"objects/{page}", json={"properties": {"a_content_type": "html"}}).status_code == 200
    sysobject = site.type("sysobject")
    for condition in ("a_content_type = 'html'", "a_content_type = 'text/html'", "a_content_type in ('html', 'pdf')"):
        dql = f"select a_content_type from {sysobject} where object_name like '{word}%' and {condition}"
        (entry,) = desk.send("GET", "", params={"dql": dql}).json()["entries"]
        assert entry["content"]["properties"] == {"a_content_type": "html"}, condition
    site.world.catch_up()

    def search(comparison: dict[str, Any], **parameters: str) -> list[str]:
        fulltext = {"expression-type": "fulltext", "value": word}
        document = {"types": [sysobject], "expression-set": {"expressions": [fulltext, comparison]}}
        found = desk.send("POST", "search", json=document, params=parameters)
        assert found.status_code == 200, found.text
        return [entry["id"] for entry in found.json()["entries"]]

    for value in ("html", "text/html", "HTML"):
        for comparison in (
            {"expression-type": "property", "name": "a_content_type", "operator": "EQUAL", "value": value},
            {"expression-type": "property-list", "name": "a_content_type", "operator": "IN", "values": [value, "pdf"]},
        ):
            assert search(comparison) == [page], comparison
    for typed in (f"{word} format:html", f"{word} format:text/html"):
        found = desk.send("GET", "search", params={"q": typed, "typed": "true"}).json()["entries"]
        assert [entry["id"] for entry in found] == [page], typed
    faceted = desk.send("GET", "search", params={"q": word, "facet": "a_content_type"}).json()
    (facet,) = faceted["facets"]
    counts = {value["facet-value-id"]: value["facet-value-count"] for value in facet["facet-value"]}
    assert counts.items() >= {"html": 1, "crtext": 1, "application/x-odd": 1}.items()
    # The constraint that an answer names, and the name of the format, narrow alike.
    constraints = [each["facet-value-constraint"] for each in facet["facet-value"] if each["facet-value-id"] == "html"]
    for constraint in (*constraints, "html", "text/html"):
        narrow = {"q": word, "facet": "a_content_type", "facet-value-constraints": constraint}
        found = desk.send("GET", "search", params=narrow)
        assert [entry["id"] for entry in found.json()["entries"]] == [page], (constraint, found.text)
