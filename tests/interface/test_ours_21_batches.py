"""docs/interface.md, ours 21: several requests in one, in a transaction or not."""

import html
import itertools
import json
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.database import common_transaction
from muniment.directory.administration import decisions
from muniment.repository.api.endpoints.batches import batches
from tests.contents import contents
from tests.scenes import Loop, Person, Site, World
from tests.waiting import until_on_loop

JSON, XML = "application/json", "application/xml"

numbers = itertools.count(1)


class Batches:
    """Batches as one caller sends them."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site, self.person = site, person
        self.address = f"{site.repository}/batches"
        self.beginning = site.installation.base

    def send(self, body: Any, **more: Any) -> httpx.Response:
        headers = {"Accept": JSON, "Content-Type": JSON} | self.site.bearer(self.person) | more.pop("headers", {})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.site.http.post(self.address, content=content, headers=headers, **more)

    def run(self, *operations: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        answer = self.send({"operations": list(operations), **more})
        assert answer.status_code == 200, answer.text
        executed: list[dict[str, Any]] = answer.json()["operations"]
        assert [each["id"] for each in executed] == [each["id"] for each in operations]
        return executed

    def operation(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        request: dict[str, Any] = {"uri": f"{self.beginning}{self.site.repository}{path}", "method": method}
        if body is not None:
            request["entity"] = body if isinstance(body, str) else json.dumps(body)
            headers = {"Content_Type": JSON} | headers
        request["headers"] = [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]
        return {"id": f"op{next(numbers)}", "description": "", "request": request}

    def create(self, name: str, path: str = "/objects", **properties: str) -> dict[str, Any]:
        kind = self.site.type("document")
        return self.operation("POST", path, {"properties": {"object_name": name, "r_object_type": kind, **properties}})

    def read(self, object_id: str) -> httpx.Response:
        address = f"{self.site.repository}/objects/{object_id}"
        return self.site.http.get(address, headers=self.site.bearer(self.person) | {"Accept": JSON})


def states(executed: list[dict[str, Any]]) -> list[str]:
    return [each["state"] for each in executed]


def id_of(operation: dict[str, Any]) -> str:
    object_id: str = json.loads(operation["response"]["entity"])["properties"]["r_object_id"]
    return object_id


@pytest.fixture
def writer(site: Site) -> Batches:
    return Batches(site)


def names_of_objects(site: Site) -> set[str]:
    with site.world.repository_db.read() as cx:
        return {row[0] for row in cx.exec_driver_sql("SELECT name FROM objects")}


def test_ours_21_the_capabilities_are_shown(site: Site, writer: Batches) -> None:
    repository = site.http.get(site.repository, headers=site.bearer()).json()
    links = {each["rel"].rpartition("/")[2]: each.get("href") for each in repository["links"]}
    assert links["batches"].endswith("/batches")
    shown = site.http.get(links["batch-capabilities"], headers=site.bearer() | {"Accept": JSON}).json()
    assert [shown[name] for name in ("transactions", "sequence", "on-error")] == ["both"] * 3
    assert {"objects", "folders", "relations"} <= set(shown["batchable-resources"])
    assert {"batches", "search", "content-media"} <= set(shown["non-batchable-resources"])
    as_xml = site.http.get(f"{site.repository}/batch-capabilities.xml", headers=site.bearer())
    items = lxml.etree.fromstring(as_xml.content).findall(
        f"{site.vocab}batchable-resources/{site.vocab}batchable-resource"
    )
    assert [item.text for item in items] == shown["batchable-resources"]


@pytest.mark.parametrize("transactional", [False, True])
def test_ours_21_operations_are_executed_in_order(site: Site, writer: Batches, transactional: bool) -> None:
    made = writer.run(
        writer.create("first of a batch"),
        writer.operation("GET", f"/formats/{'pdf'}", Accept=JSON),
        transactional=transactional,
        sequential=True,
        **{"return-request": True},
    )
    assert states(made) == ["FINISHED", "FINISHED"]
    assert [each["response"]["status"] for each in made] == [201, 200]
    headers = {each["name"]: each["value"] for each in made[0]["response"]["headers"]}
    assert headers["location"].endswith(id_of(made[0]))
    assert (
        len(
            {
                value["value"]
                for each in made
                for value in each["response"]["headers"]
                if value["name"] == "x-request-id"
            }
        )
        == 2
    )
    assert made[0]["request"]["method"] == "POST"
    assert json.loads(made[0]["request"]["entity"])["properties"]["object_name"] == "first of a batch"
    assert writer.read(id_of(made[0])).status_code == 200
    object_id = id_of(made[0])
    changed = writer.run(
        writer.operation("POST", f"/objects/{object_id}", {"properties": {"object_name": "renamed"}}),
        writer.operation("GET", f"/objects/{object_id}.json"),
        writer.operation("DELETE", f"/objects/{object_id}"),
        writer.operation("GET", f"/objects/{object_id}"),
        transactional=transactional,
    )
    if transactional:
        assert states(changed) == [*["ROLLED_BACK"] * 3, "FAILED"]
        assert writer.read(object_id).json()["properties"]["object_name"] == "first of a batch"
    else:
        assert states(changed) == [*["FINISHED"] * 3, "FAILED"]
        assert json.loads(changed[1]["response"]["entity"])["properties"]["object_name"] == "renamed"
        assert writer.read(object_id).status_code == 404


@pytest.mark.parametrize(("on_error", "last"), [("FAIL", "PENDING"), ("CONTINUE", "FINISHED"), (None, "FINISHED")])
def test_ours_21_a_failure_stops_the_batch_or_does_not(writer: Batches, on_error: str | None, last: str) -> None:
    more = {"on-error": on_error} if on_error else {}
    executed = writer.run(
        writer.create("before"), writer.operation("GET", "/objects/0900000000000000"), writer.create("after"), **more
    )
    assert states(executed) == ["FINISHED", "FAILED", last]
    assert executed[1]["response"]["status"] == 404
    assert json.loads(executed[1]["response"]["entity"])["code"] == "E_UNKNOWN_OBJECT"
    assert ("response" in executed[2]) == (last == "FINISHED")


def test_ours_21_a_transactional_batch_is_kept_whole_or_not_at_all(site: Site, writer: Batches) -> None:
    name = f"kept together {next(numbers)}"
    former = writer.run(writer.create(f"{name} former"))[0]
    former_id = id_of(former)
    text = "the former text"
    assert states(
        writer.run(writer.operation("POST", f"/objects/{former_id}/contents", text, Content_Type="text/plain"))
    ) == ["FINISHED"]
    rows, bytes_kept = site_rows(site), contents(site.world.installation.content)

    def operations() -> list[dict[str, Any]]:
        return [
            writer.create(f"{name} a"),
            writer.create(f"{name} b", "/objects?object-name=raw"),
            writer.operation("POST", f"/objects/{former_id}/contents", "another text", Content_Type="text/plain"),
            writer.operation("POST", f"/objects/{former_id}/comments", {"properties": {"content": "x"}}),
            writer.operation("POST", "/acls", {"name": f"acl {name}", "permitted": []}),
            writer.operation("DELETE", f"/objects/{former_id}"),
        ]

    failed = writer.run(*operations(), writer.operation("GET", "/objects/0900000000000000"), transactional=True)
    assert states(failed) == [*["ROLLED_BACK"] * 6, "FAILED"]
    assert all("response" not in each for each in failed[:-1])
    assert site_rows(site) == rows
    assert contents(site.world.installation.content) == bytes_kept
    read = site.http.get(f"{site.repository}/objects/{former_id}/content-media", headers=site.bearer())
    assert read.text == text
    done = writer.run(*operations(), transactional=True)
    assert states(done) == ["FINISHED"] * 6
    assert {f"{name} a", "raw"} <= names_of_objects(site)
    assert writer.read(former_id).status_code == 404


def site_rows(site: Site) -> dict[str, list[Any]]:
    tables = ("objects", "acls", "acl_entries", "changes", "comments", "extraction_queue", "usage")
    with site.world.repository_db.read() as cx:
        present = {row[0] for row in cx.exec_driver_sql(_TABLES[site.world.repository_db.dialect])}
        return {
            name: sorted(map(str, cx.exec_driver_sql(f"SELECT * FROM {name}"))) for name in tables if name in present
        }


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT tablename FROM pg_tables",
}


def test_ours_21_a_transactional_batch_lists_before_its_first_write_only(site: Site, writer: Batches) -> None:
    cabinet = site.cabinet(f"of a batch {next(numbers)}")
    lists = (f"/folders/{cabinet}/documents", "/cabinets", "/types", "/users", "/acls", "/relations")
    reads = [writer.operation("GET", path, Accept=JSON) for path in lists]
    made = writer.create("inside", f"/folders/{cabinet}/documents")
    executed = writer.run(*reads, made, transactional=True)
    assert states(executed[-1:]) == ["FINISHED"]
    for path in lists:
        *_, listed = writer.run(writer.create("never kept"), writer.operation("GET", path), transactional=True)
        assert (listed["state"], listed["response"]["status"]) == ("FAILED", 400), path
    assert "never kept" not in names_of_objects(site)
    kept = site.http.get(f"{site.repository}/folders/{cabinet}/documents", headers=site.bearer() | {"Accept": JSON})
    assert [entry["title"] for entry in kept.json()["entries"]] == ["inside"]


def test_ours_21_a_transactional_batch_that_writes_for_too_long_is_rolled_back(
    site: Site, writer: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, count, name = batches._Execution._answer, itertools.count(1), f"takes too long {next(numbers)}"

    async def answer_late(self: Any, application: Any, operation: Any) -> Any:
        common = common_transaction.current()
        assert common is not None
        if next(count) == 1:
            common._seconds = 0.05
        else:
            await until_on_loop(lambda: common._connection is None, "the transaction does not end")
        return await answer(self, application, operation)

    monkeypatch.setattr(batches._Execution, "_answer", answer_late)
    refused = writer.send({"operations": [writer.create(name), writer.create(name)], "transactional": True})
    assert (refused.status_code, refused.json()["code"]) == (503, "E_OVERLOADED"), refused.text
    assert refused.headers["retry-after"] == "1"
    assert name not in names_of_objects(site)


def test_ours_21_batches_are_read_and_written_in_xml(site: Site, writer: Batches) -> None:
    space = site.names.vocab_namespace
    document = (
        f'<batch xmlns="{space}" transactional="true" on-error="FAIL"><return-request>true</return-request><operations>'
        f'<operation id="a"><description>x</description><request uri="{site.base}{site.repository}/cabinets" '
        'method="GET"><headers><header name="Accept" value="application/xml"/></headers></request></operation>'
        "<operation><id>b</id><request><method>POST</method><uri>/repositories/"
        f"{site.world.repository}/objects</uri><headers><header><name>Content-Type</name><value>{XML}</value></header>"
        f"</headers><entity>&lt;object xmlns='{space}'&gt;&lt;properties&gt;&lt;object_name&gt;XML&lt;/object_name&gt;"
        "&lt;/properties&gt;&lt;/object&gt;</entity></request></operation></operations></batch>"
    )
    answer = writer.send(document.encode(), headers={"Content-Type": XML, "Accept": XML})
    assert answer.status_code == 200, answer.text
    root = lxml.etree.fromstring(answer.content)
    operations = root.findall(f"{site.vocab}operations/{site.vocab}operation")
    assert [each.get("id") for each in operations] == ["a", "b"]
    assert [each.get("description") for each in operations] == ["x", ""]
    for name in ("description", "state"):
        assert [each.findtext(f"{site.vocab}{name}") or "" for each in operations] == [
            each.get(name) for each in operations
        ]
    assert [each.get("state") for each in operations] == ["FINISHED", "FINISHED"], answer.text
    requests, responses = (
        [next(each.iter(f"{site.vocab}{name}")) for each in operations] for name in ("request", "response")
    )
    assert [request.get("method") for request in requests] == ["GET", "POST"]
    assert requests[1].get("uri", "").endswith("/objects")
    assert [response.get("status") for response in responses] == ["200", "201"]
    entity = responses[0].findtext(f"{site.vocab}entity")
    assert lxml.etree.fromstring(str(entity).encode()).tag == "{http://www.w3.org/2005/Atom}feed"
    headers = {each.get("name"): each.get("value") for each in requests[0].findall(f"{site.vocab}header")}
    assert headers == {"accept": "application/xml"}
    headers = {each.get("name"): each.get("value") for each in responses[1].findall(f"{site.vocab}header")}
    assert "/objects/" in str(headers["location"])


def test_ours_21_headers_of_an_operation_may_stand_in_its_request(site: Site, writer: Batches) -> None:
    space, object_id = site.names.vocab_namespace, id_of(writer.run(writer.create("of old clients"))[0])
    document = (
        f'<b:batch xmlns:b="{space}"><description>of an old client</description><operations>'
        f'<b:operation id="op1"><description>DELETE</description><request method="DELETE" uri="{site.base}'
        f'{site.repository}/objects/{object_id}"><b:header name="If-Match" value="&quot;9&quot;"/></request>'
        f'</b:operation><b:operation id="op2"><request method="GET" uri="{site.base}{site.repository}/objects/'
        f'{object_id}"><b:header name="Accept" value="{XML}"/></request></b:operation></operations>'
        "<sequential>true</sequential><transactional>false</transactional></b:batch>"
    )
    answer = writer.send(document.encode(), headers={"Content-Type": XML, "Accept": JSON})
    assert answer.status_code == 200, answer.text
    refused, read = answer.json()["operations"]
    assert refused["response"]["status"] == 412
    assert read["response"]["entity"].startswith("<?xml")


def test_ours_21_an_entity_without_a_content_type_is_read_like_its_batch(site: Site, writer: Batches) -> None:
    space = site.names.vocab_namespace
    as_json = writer.operation("POST", "/objects", {"properties": {"object_name": "like its batch"}})
    as_json["request"]["headers"] = []
    assert [each["response"]["status"] for each in writer.run(as_json)] == [201]
    document = (
        f'<batch xmlns="{space}"><operations><operation id="a"><request method="POST" uri="/repositories/'
        f"{site.world.repository}/objects\"><entity>&lt;object xmlns='{space}'&gt;&lt;properties&gt;&lt;object_name&gt;"
        "like its batch&lt;/object_name&gt;&lt;/properties&gt;&lt;/object&gt;</entity></request></operation>"
        "</operations></batch>"
    )
    for media_type in (XML, "text/xml", f"{site.names.media_type}+xml; charset=utf-8"):
        answer = writer.send(document.encode(), headers={"Content-Type": media_type})
        assert [each["response"]["status"] for each in answer.json()["operations"]] == [201], answer.text


XOP = "http://www.w3.org/2004/08/xop/include"


def in_parts(*parts: tuple[str, str, bytes], kind: str = "") -> tuple[dict[str, str], bytes]:
    """Headers and body of a batch in parts, each with its Content-Type and its Content-ID."""
    pieces = [
        f"--batch-parts\r\nContent-Type: {media_type}\r\nContent-ID: {content_id}\r\n\r\n".encode() + content + b"\r\n"
        for media_type, content_id, content in parts
    ]
    return {"Content-Type": f"multipart/related; boundary=batch-parts{kind}"}, b"".join(pieces) + b"--batch-parts--\r\n"


@pytest.mark.parametrize("transactional", [False, True])
def test_ours_21_attachments_are_the_content_of_an_operation(site: Site, writer: Batches, transactional: bool) -> None:
    """As the field's clients send them: a package states the type of the batch."""
    first, second, third = (
        writer.create("with one"),
        writer.create("with two", "/objects?all-primary=false"),
        writer.operation("POST", "/objects?object-name=raw.txt"),
    )
    first["request"]["attachments"] = [{"Include": {"href": "cid:a"}}]
    second["request"]["attachments"] = [{"include": {"href": "cid:b%20b"}}, {"Include": {"href": "CID:c"}}]
    third["request"]["attachment"] = {"include": {"href": "cid:d"}}
    batch = {"operations": [first, second, third], "transactional": transactional}
    headers, body = in_parts(
        ("text/plain", "a", b"first content"),
        (f'application/jop+json;type="{site.names.media_type}+json"', "batch", json.dumps(batch).encode()),
        ("text/plain", "<b b>", b"second content"),
        ("text/html", "<c>", b"<p>third content"),
        ("text/plain", "<d>", b"fourth content"),
        kind=f';type="application/jop+json";start="<batch>";start-info="{site.names.media_type}+json"',
    )
    answer = writer.send(body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert states(answer.json()["operations"]) == ["FINISHED"] * 3, answer.text
    made = [id_of(each) for each in answer.json()["operations"]]
    media = [
        site.http.get(f"{site.repository}/objects/{object_id}/content-media", headers=site.bearer())
        for object_id in made
    ]
    assert [each.content for each in media] == [b"first content", b"second content", b"fourth content"]
    assert {each.headers["content-type"].partition(";")[0] for each in media} == {"text/plain"}
    further = site.http.get(f"{site.repository}/objects/{made[1]}/contents", headers=site.bearer() | {"Accept": JSON})
    assert len(further.json()["entries"]) == 2


def test_ours_21_attachments_are_named_in_xml(site: Site, writer: Batches) -> None:
    space, uri = site.names.vocab_namespace, f"{site.base}{site.repository}/objects"
    entity = html.escape(f"<object xmlns='{space}'><properties><object_name>x</object_name></properties></object>")
    for attachment in (
        f'<attachment><i:Include xmlns:i="{XOP}" href="cid:a"/></attachment>',
        '<attachments><attachment><include href="cid:a"/></attachment></attachments>',
    ):
        document = (
            f'<batch xmlns="{space}"><operations><operation id="op1"><request method="POST" uri="{uri}">'
            f"{attachment}<entity>{entity}</entity></request></operation></operations></batch>"
        )
        package = f'application/xop+xml;type="{site.names.media_type}+xml"'
        headers, body = in_parts((package, "batch", document.encode()), ("text/plain", "a", b"named in XML"))
        answer = writer.send(body, headers=headers)
        assert [each["state"] for each in answer.json()["operations"]] == ["FINISHED"], answer.text
        object_id = id_of(answer.json()["operations"][0])
        media = site.http.get(f"{site.repository}/objects/{object_id}/content-media", headers=site.bearer())
        assert media.content == b"named in XML"


def test_ours_21_every_part_of_a_batch_has_its_operation(site: Site, writer: Batches) -> None:
    before = names_of_objects(site)

    def refused(*hrefs: str, parts: list[tuple[str, str, bytes]], kind: str = "", root: str = JSON) -> httpx.Response:
        operation = writer.create("never made")
        operation["request"]["attachments"] = [{"Include": {"href": href}} for href in hrefs]
        batch = json.dumps({"operations": [operation]}).encode()
        headers, body = in_parts((root, "<batch>", batch), *parts, kind=kind)
        return writer.send(body, headers=headers)

    a = ("text/plain", "<a>", b"a")
    for answer, words in (
        (refused("cid:a", "cid:b", parts=[a]), "no part has the Content-ID 'b'"),
        (refused("cid:a", "cid:a", parts=[a]), "an attachment twice"),
        (refused(parts=[a]), "No operation of the batch has the part 'a'"),
        (refused("cid:a", parts=[a, a]), "the same Content-ID"),
        (refused("cid:a", parts=[("text/plain", "", b"a")]), "has no Content-ID"),
        (refused("http://elsewhere/a", parts=[a]), "'cid:'"),
        (refused("", parts=[a]), "'cid:'"),
        (refused("cid:batch", parts=[a]), "no part has the Content-ID 'batch'"),
        (refused("cid:a", parts=[a], kind="; start=other"), "'other'"),
    ):
        assert answer.status_code == 400, answer.text
        assert words in answer.json()["message"], answer.text
    assert refused("cid:a", parts=[a], root="text/plain").status_code == 415
    assert (
        refused("cid:a", parts=[("text/plain\r\nContent-Transfer-Encoding: base64", "a", b"YQ==")]).status_code == 415
    )
    assert refused("cid:a", parts=[("text/plain", "a", b"x" * 5_000_000)]).status_code == 413
    assert refused("cid:a", parts=[("text/plain", str(number), b"") for number in range(1000)]).status_code == 413
    lone = writer.operation("POST", "/objects?object-name=x")
    lone["request"]["attachments"] = [{"include": {"href": "cid:a"}}, {"include": {"href": "cid:b"}}]
    headers, body = in_parts((JSON, "r", json.dumps({"operations": [lone]}).encode()), a, ("text/plain", "b", b"b"))
    assert writer.send(body, headers=headers).status_code == 400
    lone["request"]["attachments"] = [{"include": {"href": "cid:a"}}]
    assert writer.send({"operations": [lone]}).status_code == 400, "a batch that is one part has no attachments"
    assert names_of_objects(site) == before


@pytest.mark.parametrize(("path", "prefix"), [("", "rest"), ("/sub", "rest"), ("/rest", "rest"), ("/a%20b/c", "r/s")])
def test_ours_21_an_address_may_be_whole_or_a_path(site: Site, loop: Loop, path: str, prefix: str) -> None:
    """Also behind a proxy that serves the repository below a path of its own."""
    beginning, name = f"https://files.example.org{path}", site.world.repository
    settings = (f"web.base_address={beginning}", f"repository.names.prefix={prefix}")
    with closing(Site(site.world, site.kind, loop, *settings)) as proxied:
        writer = Batches(proxied)
        made = writer.run(writer.create("below a path"))
        assert states(made) == ["FINISHED"], made
        here = f"{beginning}/{prefix}/repositories/{name}"
        links = writer.read(id_of(made[0])).json()["links"]
        (own,) = [link["href"] for link in links if link["rel"] == "self"]
        assert own.startswith(f"{here}/objects/")
        forms = [own, own.removeprefix("https://files.example.org"), own.removeprefix(f"{beginning}/{prefix}")]
        reads = [{"id": form, "request": {"uri": form, "method": "GET"}} for form in forms]
        assert states(writer.run(*reads)) == ["FINISHED"] * 3
        others = [f"{beginning}/{prefix}/repositories/other/objects", f"{here}/batches", f"{path}/repositories/other/x"]
        for address in (*others, own.replace("files", "evil"), f"/x{path}/{prefix}/repositories/{name}/objects"):
            answer = writer.send({"operations": [{"id": "a", "request": {"uri": address, "method": "GET"}}]})
            assert answer.status_code == 400, address


def test_ours_21_what_a_batch_does_not_take_is_refused_whole(site: Site, writer: Batches) -> None:
    before, repository = names_of_objects(site), site.world.repository
    host, prefix = f"{site.base}{site.repository}", f"/{site.names.prefix}"
    addresses = [
        *("", "/", "objects", "http://elsewhere.test/rest/repositories/demo/cabinets", f"{host}.evil/objects", host),
        *(f"//evil/{repository}/objects", f"{prefix}/repositories/other/objects", f"{prefix}/services", "/dirws/login"),
        *(f"{host}/batches", f"{host}/batches.json", f"{host}/%62atches", f"{host}/search?q=a"),
        *(f"{host}/../other/objects", f"{host}/objects/x/content-media", f"{host}/objects/x/content-media.json"),
        *(f"{host}/saved-searches", f"{host}/index-report", f"{host}/objects/\u00e4", f"{host}/objects/a b"),
        *(f"{host}/objects?csrf-token=x", f"{host}/objects?access_token=x", f"{host}/objects?a=%", "x" * 9000),
    ]
    first = writer.create("is never made")
    for address in addresses:
        bad = {"id": "bad", "request": {"uri": address, "method": "GET"}}
        answer = writer.send({"operations": [first, bad]})
        assert answer.status_code == 400, (address, answer.text)
        assert answer.json()["code"] == "E_MALFORMED_REQUEST"
    good = writer.operation("GET", "/cabinets")
    for wrong in (
        {"operations": []},
        {"operations": [good, good]},
        {"operations": [{**good, "id": ""}]},
        {"operations": [good], "on-error": "EXPLODE"},
        {"operations": [good], "on-error": "CONTINUE", "transactional": True},
        {"operations": [good], "transactional": "yes"},
        {"operations": [{**good, "request": {**good["request"], "method": "PATCH"}}]},
        {"operations": [{**good, "request": {**good["request"], "entity": 7}}]},
        *(
            {"operations": [{**good, "request": {**good["request"], "headers": [{"name": name, "value": "x"}]}}]}
            for name in ("Authorization", "cookie", "Host", "Content-Length", "X-Forwarded-For", "a\r\nb", "")
        ),
        {
            "operations": [
                {**good, "request": {**good["request"], "headers": [{"name": "Accept", "value": "a\r\nb: c"}]}}
            ]
        },
        {"operations": [writer.operation("POST", "/users", {"properties": {}})]},
        {},
        7,
    ):
        assert writer.send(wrong).status_code == 400, wrong
    assert writer.send(b'{"operations": ').status_code == 400
    assert writer.send(b"x", headers={"Content-Type": "multipart/related; boundary=x"}).status_code == 400
    assert writer.send(b"x", headers={"Content-Type": "multipart/form-data; boundary=x"}).status_code == 415
    many = [writer.operation("GET", "/cabinets") for _ in range(201)]
    assert writer.send({"operations": many}).status_code == 413
    assert writer.send({"operations": [{**good, "description": "x" * 5_000_000}]}).status_code == 413
    assert names_of_objects(site) == before


def test_ours_21_each_operation_is_the_callers_own(site: Site, writer: Batches) -> None:
    person = site.world.person()
    reader = Batches(site, person)
    mine = id_of(writer.run(writer.create("private", acl_name="private"))[0])
    executed = reader.run(
        reader.operation("GET", f"/objects/{mine}"),
        reader.operation("DELETE", f"/objects/{mine}"),
        reader.create("own"),
    )
    assert states(executed) == ["FAILED", "FAILED", "FINISHED"]
    assert [each["response"]["status"] for each in executed[:2]] == [404, 404]
    assert json.loads(executed[2]["response"]["entity"])["properties"]["owner_name"] == person.id
    stranger = site.http.post(reader.address, content=b"{}", headers={"Content-Type": JSON})
    assert stranger.status_code == 401


@pytest.mark.parametrize("transactional", [False, True])
def test_ours_21_a_right_that_ends_in_mid_batch_is_not_used_any_more(
    site: Site, monkeypatch: pytest.MonkeyPatch, transactional: bool
) -> None:
    person, name = site.world.person(), f"half-way {next(numbers)}"
    caller = Batches(site, person)
    answer, count = batches._Execution._answer, itertools.count(1)

    async def answer_and_disable(self: Any, application: Any, operation: Any) -> Any:
        if next(count) == 2:
            with site.world.directory_db.begin() as cx:
                decisions.set_disabled(cx, site.world.entry(person), True, site.world.clock())
        return await answer(self, application, operation)

    monkeypatch.setattr(batches._Execution, "_answer", answer_and_disable)
    operations = [caller.create(name), caller.create(name), caller.create(name)]
    executed = caller.run(*operations, transactional=transactional, **{"on-error": "FAIL"})
    assert states(executed) == ["ROLLED_BACK" if transactional else "FINISHED", "FAILED", "PENDING"]
    assert executed[1]["response"]["status"] == 401
    assert (name in names_of_objects(site)) == (not transactional)


def test_ours_21_security_events_say_what_was_kept(site: Site, writer: Batches) -> None:
    def told() -> list[dict[str, Any]]:
        lines = site.world.installation.events.read_text().splitlines()
        return [event for line in lines if (event := json.loads(line))["event"] == "acl" and name in str(event)]

    site.world.clock.advance(61)  # of one minute only the first events are written
    name = f"told-{next(numbers)}"
    acl = writer.operation("POST", "/acls", {"name": name, "permitted": []})
    missing = writer.operation("GET", "/objects/0900000000000000")
    writer.run(acl, missing, transactional=True)
    assert [event["result"] for event in told()] == ["refused"]
    writer.run(acl, missing)
    assert [event["result"] for event in told()] == ["refused", "done"]
    assert len({event["request_id"] for event in told()}) == 2


def test_ours_21_time_and_size_end_a_batch(world: World, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(world, "neutral", loop, "repository.max_batch_bytes=2048", "repository.batch_seconds=1")
    try:
        caller = Batches(site)
        name = f"too late {next(numbers)}"
        operations = [
            *(caller.operation("GET", f"/types/{site.type('document')}") for _ in range(2)),
            caller.create(name),
        ]
        executed = caller.run(*operations)
        assert executed[-1]["response"]["status"] == 413
        body = {"properties": {"object_name": f"wide {next(numbers)}", "keywords": ["ü" * 30] * 30}}
        made = site.http.post(f"{site.repository}/objects", json=body, headers=site.bearer())
        wide = caller.operation("GET", f"/objects/{made.json()['properties']['r_object_id']}?links=false")
        executed = caller.run(wide, caller.operation("GET", f"/types/{site.type('document')}"))
        entity = executed[0]["response"]["entity"]
        assert len(entity) <= 2048 < len(entity.encode())
        assert executed[-1]["response"]["status"] == 413, "bytes are counted, not characters"
        late = iter([0.0, 0.0])
        monkeypatch.setattr(batches, "time", SimpleNamespace(monotonic=lambda: next(late, 2.0)))
        executed = caller.run(caller.operation("GET", "/cabinets"), caller.create(name), transactional=True)
        assert states(executed) == ["ROLLED_BACK", "FAILED"]
        assert executed[1]["response"]["status"] == 503
        assert name not in names_of_objects(site)
    finally:
        site.close()
