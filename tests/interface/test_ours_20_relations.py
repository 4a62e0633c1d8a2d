"""docs/interface.md, ours 20: relations between objects, their types, comments on objects, and aspects."""

import itertools
import json
from contextlib import closing
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.database.connections import repository_tables
from tests.interface.test_namesakes import again
from tests.scenes import Loop, Person, Site, World

JSON, XML = "application/json", "application/xml"
HIDDEN = "0900000000000000"

numbers = itertools.count(1)


class Desk:
    """A repository as one caller uses it."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site, self.person = site, person

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Accept": JSON} | self.site.bearer(self.person) | more.pop("headers", {})
        address = path if path.startswith(("http", self.site.repository)) else self.site.repository + path
        return self.site.http.request(method, address, headers=headers, **more)

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        answer = self.send("GET", path, params=parameters or None)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def document(self, acl: str = "", path: str = "/objects") -> str:
        properties = {"object_name": f"paper {next(numbers)}", "r_object_type": self.site.type("document")}
        properties |= {"acl_name": acl} if acl else {}
        answer = self.send("POST", path, json={"properties": properties})
        assert answer.status_code == 201, answer.text
        object_id: str = answer.json()["properties"]["r_object_id"]
        return object_id

    def relate(self, parent: str, child: str, name: str = "peer") -> httpx.Response:
        properties = {"relation_name": name, "parent_id": parent, "child_id": child}
        return self.send("POST", "/relations", json={"type": self.site.type("relation"), "properties": properties})

    def related(self, parent: str, child: str, name: str = "peer") -> str:
        answer = self.relate(parent, child, name)
        assert answer.status_code == 201, answer.text
        relation_id: str = answer.json()["properties"]["r_object_id"]
        return relation_id

    def titles(self, path: str, **parameters: str) -> list[str]:
        return [entry["title"] for entry in self.get(path, **parameters)["entries"]]

    def comment(self, path: str, text: str) -> httpx.Response:
        return self.send("POST", path, json={"properties": {"content": text}})

    def commented(self, path: str, text: str) -> str:
        answer = self.comment(path, text)
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"].endswith(f"/comments/{answer.json()['properties']['r_object_id']}")
        comment_id: str = answer.json()["properties"]["r_object_id"]
        return comment_id


def acl(site: Site, **permissions: str) -> str:
    """Make an ACL of the writer, who may do everything; ``world`` says how much all others may do."""
    name = f"acl-{site.world.word()}"
    permitted = [
        {"accessor": site.names.type_prefix + who, "basic-permission": permission}
        for who, permission in {"owner": "Delete", **permissions}.items()
    ]
    made = site.http.post(f"{site.repository}/acls", json={"name": name, "permitted": permitted}, headers=site.bearer())
    assert made.status_code == 201, made.text
    return name


def links(document: dict[str, Any]) -> dict[str, str]:
    return {each["rel"].rpartition("/")[2]: each["href"] for each in document["links"]}


def count(site: Site, table: str) -> int:
    with site.world.repository_db.read() as cx:
        return int(cx.exec_driver_sql(f"SELECT count(*) FROM {repository_tables.tables[table].name}").scalar_one())


@pytest.fixture
def writer(site: Site) -> Desk:
    return Desk(site)


@pytest.fixture
def admin(site: Site) -> Desk:
    return administrator(site)


def administrator(site: Site) -> Desk:
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    return Desk(site, site.world.admin(site.directory_names))


def test_ours_20_a_relation_is_made_shown_listed_and_removed(site: Site, writer: Desk) -> None:
    parent, child, other = writer.document(), writer.document(), writer.document()
    made = writer.relate(parent, child)
    assert made.status_code == 201, made.text
    document = made.json()
    relation_id = document["properties"]["r_object_id"]
    assert relation_id.startswith("37")
    assert len(relation_id) == 16
    assert made.headers["location"].endswith(f"/relations/{relation_id}")
    prefix = site.names.type_prefix
    assert (document["name"], document["type"]) == ("relation", f"{prefix}relation")
    assert document["properties"]["relation_name"] == "peer"
    assert (document["properties"]["parent_id"], document["properties"]["child_id"]) == (parent, child)
    assert writer.get(f"/relations/{relation_id.upper()}") == document
    address = links(document)
    assert writer.get(address["parent"])["properties"]["r_object_id"] == parent
    assert writer.get(address["child"])["properties"]["r_object_id"] == child
    assert writer.get(address["relation-type"])["name"] == "peer"
    backward = writer.related(child, other, "translation_of")

    by_object = links(writer.get(f"/objects/{child}"))["relations"]
    assert by_object.endswith(f"/relations?related-object-id={child}&related-object-role=any")
    assert writer.titles(by_object) == [relation_id, backward]
    roles = {"parent": [backward], "child": [relation_id], "any": [relation_id, backward]}
    for role, expected in roles.items():
        filters = {"related-object-id": child, "related-object-role": role}
        assert writer.titles("/relations", **filters) == expected
    named = {"related-object-id": child, "relation-name": f"{prefix}translation_of"}
    assert writer.titles("/relations", **named) == [backward]
    condition = {"related-object-id": child, "filter": "relation_name='peer'", "include-total": "true"}
    page = writer.get("/relations", inline="true", **condition)
    assert page["total"] == 1
    assert page["entries"][0]["content"]["properties"] == document["properties"]
    assert (
        writer.send("GET", f"/relations/{relation_id}", headers={"If-None-Match": made.headers["etag"]}).status_code
        == 304
    )

    assert writer.send("DELETE", f"/relations/{relation_id}").status_code == 204
    assert writer.send("GET", f"/relations/{relation_id}").status_code == 404
    assert writer.titles("/relations", **{"related-object-id": parent}) == []


def test_ours_20_relations_are_read_and_written_in_xml(site: Site, writer: Desk) -> None:
    parent, child, prefix = writer.document(), writer.document(), site.names.type_prefix
    body = (
        f'<relation xmlns="{site.names.vocab_namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:type="{prefix}relation"><properties><relation_name>peer</relation_name>'
        f"<parent_id>{parent}</parent_id><child_id>{child}</child_id></properties></relation>"
    )
    made = writer.send("POST", "/relations", content=body, headers={"Content-Type": XML, "Accept": XML})
    assert made.status_code == 201, made.text
    root = lxml.etree.fromstring(made.content)
    assert root.tag == f"{site.vocab}relation"
    assert root.get("{http://www.w3.org/2001/XMLSchema-instance}type") == f"{prefix}relation"
    assert root.findtext(f"{site.vocab}properties/{site.vocab}child_id") == child
    feed = writer.send("GET", "/relations", params={"related-object-id": parent}, headers={"Accept": XML})
    assert len(lxml.etree.fromstring(feed.content).findall("{http://www.w3.org/2005/Atom}entry")) == 1
    text = writer.send(
        "POST",
        f"/objects/{parent}/comments",
        content=f'<comment xmlns="{site.names.vocab_namespace}"><properties><content>a &amp; b</content></properties>'
        "</comment>",
        headers={"Content-Type": XML, "Accept": XML},
    )
    assert text.status_code == 201, text.text
    assert lxml.etree.fromstring(text.content).findtext(f"{site.vocab}properties/{site.vocab}content") == "a & b"


def test_ours_20_a_relation_with_a_hidden_end_is_as_if_absent(site: Site, writer: Desk) -> None:
    reader = site.world.person()
    desk = Desk(site, reader)
    seen, hidden = writer.document(acl(site, world="Delete")), writer.document(acl(site, world="None"))
    relation_id = writer.related(seen, hidden)
    shown = writer.related(seen, seen)
    absent = desk.send("GET", f"/relations/37{'0' * 14}")
    for method in ("GET", "DELETE"):
        answer = desk.send(method, f"/relations/{relation_id}")
        assert answer.status_code == 404
        assert answer.json()["message"].replace(relation_id, f"37{'0' * 14}") == absent.json()["message"]
    page = desk.get("/relations", **{"related-object-id": seen, "include-total": "true"})
    assert [entry["title"] for entry in page["entries"]] == [shown]
    assert page["total"] == 1
    assert desk.titles("/relations", **{"related-object-id": hidden}) == []
    unknown, dark = desk.relate(seen, HIDDEN), desk.relate(seen, hidden)
    assert unknown.status_code == dark.status_code == 404
    assert unknown.json()["message"].replace(HIDDEN, hidden) == dark.json()["message"]


@pytest.mark.parametrize("permission", ["Browse", "Read", "Relate"])
def test_ours_20_a_relation_takes_relate_on_both_ends(site: Site, writer: Desk, permission: str) -> None:
    desk, status = Desk(site, site.world.person()), 201 if permission == "Relate" else 403
    name = acl(site, world=permission)
    weak, strong = writer.document(name), writer.document(acl(site, world="Relate"))
    assert [desk.relate(weak, strong).status_code, desk.relate(strong, weak).status_code] == [status, status]
    relation_id = writer.related(strong, strong)
    assert desk.send("DELETE", f"/relations/{relation_id}").status_code == 204
    theirs = administrator(site).related(weak, strong)
    assert desk.send("GET", f"/relations/{theirs}").status_code == 200
    assert desk.send("DELETE", f"/relations/{theirs}").status_code == (204 if status == 201 else 403)


def test_ours_20_relations_and_comments_end_with_an_object(site: Site, writer: Desk) -> None:
    cabinet = site.cabinet("to be emptied")
    inside = writer.document(path=f"/folders/{cabinet}/documents")
    outside = writer.document()
    relations = [writer.related(inside, outside), writer.related(outside, inside)]
    remaining = writer.related(outside, outside)
    first = writer.commented(f"/objects/{inside}/comments", "first")
    writer.commented(f"/comments/{first}/replies", "reply")
    before = count(site, "comments")
    gone = writer.send("DELETE", f"/cabinets/{cabinet}", params={"del-non-empty": "true"})
    assert gone.status_code == 204, gone.text
    assert [writer.send("GET", f"/relations/{each}").status_code for each in relations] == [404, 404]
    assert writer.titles("/relations", **{"related-object-id": outside}) == [remaining]
    assert writer.send("GET", f"/comments/{first}").status_code == 404
    assert count(site, "comments") == before - 2


def test_ours_20_administrators_add_and_remove_relation_types(site: Site, writer: Desk, admin: Desk) -> None:
    name = f"supersedes_{next(numbers)}"
    built_in = ["annotation", "peer", "translation_of"]
    assert [title for title in writer.titles("/relation-types") if title in built_in] == built_in
    body = {"properties": {"relation_name": name, "description": "The child is older."}}
    assert writer.send("POST", "/relation-types", json=body).status_code == 403
    made = admin.send("POST", "/relation-types", json=body)
    assert made.status_code == 201, made.text
    assert made.headers["location"].endswith(f"/relation-types/{name}")
    assert admin.send("POST", "/relation-types", json=body).status_code == 409
    assert writer.get(f"/relation-types/{name}")["properties"] == body["properties"]
    parent = writer.document()
    relation_id = writer.related(parent, parent, name)
    assert writer.send("DELETE", f"/relation-types/{name}").status_code == 403
    assert admin.send("DELETE", f"/relation-types/{name}").status_code == 409
    assert writer.send("DELETE", f"/relations/{relation_id}").status_code == 204
    assert admin.send("DELETE", f"/relation-types/{name}").status_code == 204
    assert writer.send("GET", f"/relation-types/{name}").status_code == 404
    assert admin.send("DELETE", "/relation-types/peer").status_code == 409
    taken = {"properties": {"relation_name": "peer"}}
    assert admin.send("POST", "/relation-types", json=taken).status_code == 409
    for bad in ("", "1st", "a b", "a/b", "ä", "x" * 65, None, 7):
        answer = admin.send("POST", "/relation-types", json={"properties": {"relation_name": bad}})
        assert answer.status_code == 400, (bad, answer.text)
    assert writer.relate(parent, parent, "nonsense").json()["code"] == "E_UNKNOWN_RELATION_TYPE"


def test_ours_20_relation_types_have_no_prefix_of_the_field(world: World, loop: Loop) -> None:
    """Clients of the field relate by `peer`; the prefix is read, too, but never shown."""
    with closing(Site(world, "field", loop)) as field:
        desk = Desk(field)
        parent, child = desk.document(), desk.document()
        for name, stated in (("peer", "peer"), ("annotation", "dm_annotation")):
            made = desk.relate(parent, child, stated)
            assert made.status_code == 201, made.text
            assert made.json()["properties"]["relation_name"] == name
            relation_id = made.json()["properties"]["r_object_id"]
            for query in ({"relation-name": stated}, {"filter": f"relation_name='{name}'"}):
                listed = desk.get("/relations", **query, **{"related-object-id": parent})
                assert [entry["title"] for entry in listed["entries"]] == [relation_id]
                assert listed["entries"][0]["summary"] == f"{parent} {name} {child}"
            assert desk.get(f"/relation-types/{stated}")["properties"]["relation_name"] == name
        titles = desk.titles("/relation-types")
        assert {"annotation", "peer", "translation_of"} <= set(titles)
        assert not [title for title in titles if title.startswith("dm_")]
        admin = administrator(field)
        for taken in ("peer", "dm_peer"):
            body = {"properties": {"relation_name": taken}}
            assert admin.send("POST", "/relation-types", json=body).status_code == 409


def test_ours_20_comments_are_flat_as_well(site: Site, writer: Desk) -> None:
    object_id, space = writer.document(), site.names.vocab_namespace
    made = writer.send("POST", f"/objects/{object_id}/comments", json={"content-value": "this is my first comment"})
    assert made.status_code == 201, made.text
    shown = made.json()
    properties, prefix = shown["properties"], site.names.system_property_prefix
    assert properties["content"] == shown["content-value"] == shown["title"] == "this is my first comment"
    assert shown["comment-id"] == properties[f"{prefix}object_id"]
    assert (shown["object-id"], shown["owner-name"]) == (object_id, properties["owner_name"])
    assert shown["creation-date"] == properties[f"{prefix}creation_date"]
    assert shown["modify-date"] == properties[f"{prefix}modify_date"]
    assert (shown["can-delete"], shown["can-reply"], "parent-id" in shown) == (True, True, False)
    own = f"/comments/{shown['comment-id']}"
    body = f'<comment xmlns="{space}"><content-value>a reply</content-value></comment>'
    replied = writer.send("POST", f"{own}/replies", content=body, headers={"Content-Type": XML, "Accept": XML})
    assert replied.status_code == 201, replied.text
    root = lxml.etree.fromstring(replied.content)
    texts = {name: root.findtext(f"{site.vocab}{name}") for name in ("content-value", "parent-id", "can-delete")}
    assert texts == {"content-value": "a reply", "parent-id": shown["comment-id"], "can-delete": "true"}
    assert writer.send("POST", own, json={"content-value": "changed", "properties": None}).status_code == 200
    assert writer.get(own)["content-value"] == "changed"
    reader = Desk(site, site.world.person())
    open_id = writer.document(acl(site, world="Read"))
    writer.send("POST", f"/objects/{open_id}/comments", json={"content-value": "open"})
    (entry,) = reader.get(f"/objects/{open_id}/comments", inline="true")["entries"]
    assert (entry["content"]["content-value"], entry["content"]["can-delete"]) == ("open", False)
    for bad in (
        {"content-value": ""},
        {"content-value": 7},
        {"content-value": None},
        {},
        {"content-value": "x" * 10_001},
    ):
        assert writer.send("POST", f"/objects/{object_id}/comments", json=bad).status_code == 400, bad


def test_ours_20_bad_relations_are_refused(site: Site, writer: Desk) -> None:
    parent, prefix = writer.document(), site.names.type_prefix
    good = {"relation_name": "peer", "parent_id": parent, "child_id": parent}
    bad: list[dict[str, Any]] = [
        {"parent_id": ""},
        {"parent_id": None},
        {"parent_id": [parent]},
        {"child_id": 7},
        {"relation_name": {}},
        {"relation_name": ""},
        {"weight": "1"},
    ]
    for wrong in bad:
        answer = writer.send("POST", "/relations", json={"properties": good | wrong})
        assert answer.status_code == 400, (wrong, answer.text)
    for odd in ("x" * 5000, "../" + parent, "09\u0000", "\U0001f600" * 16):
        answer = writer.send("POST", "/relations", json={"properties": good | {"parent_id": odd}})
        assert answer.status_code == 404, (odd, answer.text)
    assert writer.send("POST", "/relations", json={"type": f"{prefix}document", "properties": good}).status_code == 400
    assert writer.send("POST", "/relations", content=b"{", headers={"Content-Type": JSON}).status_code == 400
    assert writer.send("POST", "/relations", content=b"x", headers={"Content-Type": "text/plain"}).status_code == 415
    assert writer.send("GET", "/relations", params={"related-object-role": "uncle"}).status_code == 400
    assert writer.send("GET", "/relations", params={"relation-name": "no such"}).json()["entries"] == []
    assert writer.send("GET", "/relations", params={"filter": "weight=1"}).status_code == 400


def test_ours_20_lists_of_relations_are_paged_by_place(site: Site, writer: Desk) -> None:
    parent = writer.document()
    made = [writer.related(parent, parent) for _ in range(5)]
    address, seen = f"/relations?related-object-id={parent}&items-per-page=2", list[str]()
    while address:
        page = writer.get(address)
        seen += [entry["title"] for entry in page["entries"]]
        address = links(page).get("next", "")
    assert seen == made


def test_ours_20_comments_are_written_read_changed_and_removed(site: Site, writer: Desk) -> None:
    paper = writer.document(acl(site, world="Relate"))
    address = links(writer.get(f"/objects/{paper}"))["comments"]
    other, reader = Desk(site, site.world.person()), Desk(site, site.world.person())
    text = "Grüße\nvon \U0001f600 <script>"
    first = writer.commented(address, text)
    shown = other.get(f"/comments/{first}")
    assert shown["properties"]["content"] == text
    assert shown["properties"]["owner_name"] == site.world.writer.id
    assert {"edit", "delete"}.isdisjoint(links(shown))
    assert {"edit", "delete"} <= links(writer.get(f"/comments/{first}")).keys()
    reply = other.commented(links(shown)["replies"], "a reply")
    assert other.get(f"/comments/{reply}")["links"][-3]["href"].endswith(f"/comments/{first}")
    second = other.commented(address, "second")
    assert [entry["content"]["properties"]["content"] for entry in reader.get(address, inline="true")["entries"]] == [
        text,
        "second",
    ]
    assert reader.get(address, **{"include-total": "true"})["total"] == 2
    assert reader.titles(links(shown)["replies"]) == ["a reply"]
    assert [
        reader.send("DELETE", f"/comments/{second}").status_code,
        reader.comment(f"/comments/{second}", "mine").status_code,
    ] == [403, 403]
    stale = {"If-Match": writer.send("GET", f"/comments/{first}").headers["etag"]}
    changed = writer.comment(f"/comments/{first}", "changed")
    assert changed.status_code == 200
    assert changed.json()["properties"]["content"] == "changed"
    assert writer.send("DELETE", f"/comments/{first}", headers=stale).status_code == 412
    assert writer.send("DELETE", f"/comments/{first}").status_code == 204
    assert [reader.send("GET", f"/comments/{each}").status_code for each in (first, reply, second)] == [404, 404, 200]
    etag = writer.send("GET", f"/objects/{paper}").headers["etag"]
    other.commented(address, "does not change the object")
    assert writer.send("GET", f"/objects/{paper}").headers["etag"] == etag


@pytest.mark.parametrize(
    ("permission", "reads", "writes"), [("None", 404, 404), ("Browse", 403, 403), ("Read", 200, 403)]
)
def test_ours_20_comments_take_read_to_see_and_relate_to_write(
    site: Site, writer: Desk, permission: str, reads: int, writes: int
) -> None:
    desk = Desk(site, site.world.person())
    paper = writer.document(acl(site, world=permission))
    site.share(paper, acl(site, world="Relate"))
    own = desk.commented(f"/objects/{paper}/comments", "while I could")
    site.share(paper, acl(site, world=permission))
    assert desk.send("GET", f"/objects/{paper}/comments").status_code == reads
    assert desk.comment(f"/objects/{paper}/comments", "hello").status_code == writes
    single = 200 if reads == 200 else 404
    assert desk.send("GET", f"/comments/{own}").status_code == single
    assert desk.send("GET", f"/comments/{own}/replies").status_code == single
    assert desk.comment(f"/comments/{own}/replies", "hello").status_code == (403 if single == 200 else 404)
    assert desk.comment(f"/comments/{own}", "hello").status_code == (403 if single == 200 else 404)
    if single == 404:
        absent = desk.send("GET", f"/comments/43{'0' * 14}").json()["message"]
        assert desk.send("GET", f"/comments/{own}").json()["message"].replace(own, f"43{'0' * 14}") == absent


def test_ours_20_bad_comments_are_refused_and_replies_end_somewhere(site: Site, writer: Desk) -> None:
    paper = writer.document()
    address = f"/objects/{paper}/comments"
    for bad in ("", " \n", "x" * 10_001, None, 7, ["a"], "\ud800", "a\u0000"):
        body = json.dumps({"properties": {"content": bad}})
        answer = writer.send("POST", address, content=body, headers={"Content-Type": JSON})
        assert answer.status_code == 400, (bad, answer.text)
    assert writer.send("POST", address, json={"properties": {"content": "x", "colour": "red"}}).status_code == 400
    assert writer.comment(f"/objects/{HIDDEN}/comments", "x").status_code == 404
    assert writer.comment(address, "x" * 10_000).status_code == 201
    above = writer.commented(address, "0")
    for depth in range(1, 21):
        above = writer.commented(f"/comments/{above}/replies", str(depth))
    assert writer.comment(f"/comments/{above}/replies", "21").status_code == 400


def test_ours_20_a_namesake_does_not_get_the_comments(site: Site, writer: Desk) -> None:
    paper = writer.document(acl(site, world="Relate"))
    first = site.world.person()
    comment_id = Desk(site, first).commented(f"/objects/{paper}/comments", "by the first")
    second = again(site, first)
    assert second.id == first.id
    assert Desk(site, second).send("DELETE", f"/comments/{comment_id}").status_code == 403
    assert Desk(site, second).get(f"/comments/{comment_id}")["properties"]["owner_name"] == first.id


def test_ours_20_one_user_may_make_so_many_and_an_administrator_more(world: Any, loop: Any) -> None:
    site = Site(world, "neutral", loop, "repository.max_relations=2", "repository.max_comments=1")
    try:
        keeper, desk = Desk(site), Desk(site, world.person())
        paper = keeper.document(acl(site, world="Relate"))
        made = [desk.related(paper, paper) for _ in range(2)]
        refused = desk.relate(paper, paper)
        assert (refused.status_code, refused.json()["code"]) == (403, "E_QUOTA_EXCEEDED")
        assert desk.send("DELETE", f"/relations/{made[0]}").status_code == 204
        desk.related(paper, paper)
        desk.commented(f"/objects/{paper}/comments", "one")
        assert desk.comment(f"/objects/{paper}/comments", "two").json()["code"] == "E_QUOTA_EXCEEDED"
        for text in ("one", "two"):
            administrator(site).commented(f"/objects/{paper}/comments", text)
    finally:
        site.close()


def test_ours_20_an_object_has_no_aspects(site: Site, writer: Desk) -> None:
    paper = writer.document()
    address = links(writer.get(f"/objects/{paper}"))["object-aspects"]
    assert writer.get(address)["entries"] == []
    refused = writer.send("POST", address, json={"aspects": ["a"]})
    assert (refused.status_code, refused.json()["code"]) == (400, "E_NOT_OFFERED_YET")
    assert writer.send("GET", f"/objects/{HIDDEN}/aspects").status_code == 404
