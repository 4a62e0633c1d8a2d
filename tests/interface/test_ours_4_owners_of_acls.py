"""ours 4: an ACL's owner is its domain, its description is kept, and it leads to what uses it."""

from typing import Any

import lxml.etree
import pytest

from tests.interface.test_ours_2_shapes_of_old_clients import Desk, links
from tests.scenes import Site


@pytest.fixture
def desk(site: Site) -> Desk:
    return Desk(site)


def make_acl(desk: Desk, name: str, level: str = "Read", **properties: Any) -> dict[str, Any]:
    permitted = [{"accessor": f"{desk.site.names.type_prefix}world", "basic-permission": level}]
    body = {"properties": {"object_name": name, **properties}, "permitted": permitted}
    made = desk.send("POST", "acls", json=body)
    assert made.status_code == 201, made.text
    acl: dict[str, Any] = made.json()
    return acl


def test_ours_4_an_acl_keeps_its_description_and_shows_its_domain(desk: Desk) -> None:
    site, name = desk.site, desk.site.world.word()
    acl = make_acl(desk, name, description="For papers.", acl_domain=site.world.writer.name)
    for shown in (acl, desk.send("GET", f"acls/{acl['id']}").json()):
        properties = shown["properties"]
        assert (properties["description"], properties["acl_domain"]) == ("For papers.", site.world.writer.id)
    address = f"acls/{acl['id']}"
    changed = desk.send("POST", address, json={"properties": {"description": "For letters."}})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["properties"]["description"], changed.json()["permitted"]) == (
        "For letters.",
        acl["permitted"],
    )
    # Entries alone leave the description, and what was read may be sent back.
    for body in ({"permitted": acl["permitted"]}, desk.send("GET", address).json()):
        assert desk.send("POST", address, json=body).json()["properties"]["description"] == "For letters."
    as_xml = (
        f'<acl xmlns="{site.names.vocab_namespace}"><properties><description>In XML.</description></properties></acl>'
    )
    sent = desk.send("POST", address, content=as_xml.encode(), headers={"Content-Type": "application/xml"})
    assert sent.json()["properties"]["description"] == "In XML."
    root = lxml.etree.fromstring(desk.send("GET", address, headers={"Accept": "application/xml"}).content)
    assert root.findtext(f"{site.vocab}properties/{site.vocab}description") == "In XML."
    listed = desk.send("GET", "acls", params={"filter": f"description='In XML.' and name='{name}'"})
    assert len(listed.json()["entries"]) == 1
    for wrong in ({"description": "x" * 1001}, {"acl_domain": site.world.reader.id}):
        refused = desk.send("POST", address, json={"properties": {"description": "d"} | wrong})
        assert refused.status_code == 400, wrong
    assert desk.send("GET", address).json()["properties"]["description"] == "In XML."
    other = Desk(site, site.world.reader)
    assert other.send("POST", address, json={"properties": {"description": "mine"}}).status_code in (403, 404)


def test_ours_4_an_object_takes_and_shows_the_domain_of_its_acl(desk: Desk) -> None:
    site, name, writer = desk.site, desk.site.world.word(), desk.site.world.writer
    make_acl(desk, name, "Write")
    cabinet = desk.make("cabinets")
    for domain in (writer.id, writer.name):
        for path in (f"folders/{cabinet}/folders", f"folders/{cabinet}/documents"):
            object_id = desk.make(path, acl_name=name, acl_domain=domain)
            shown = desk.properties(object_id)
            assert (shown["acl_name"], shown["acl_domain"]) == (name, writer.id)
    whole = desk.read(object_id)["properties"]
    assert desk.send("POST", f"objects/{object_id}", json={"properties": whole}).status_code == 200
    private = desk.make()
    assert "acl_domain" not in desk.properties(private)
    assigned = desk.send("POST", f"objects/{private}", json={"properties": {"acl_name": name, "acl_domain": writer.id}})
    assert assigned.json()["properties"]["acl_name"] == name
    # The owner of an ACL tells two of one name apart.
    other = Desk(site, site.world.reader)
    make_acl(other, name)
    assigned = desk.send(
        "POST", f"objects/{private}", json={"properties": {"acl_name": name, "acl_domain": site.world.reader.id}}
    )
    assert (assigned.json()["properties"]["acl_name"], assigned.json()["properties"]["acl_domain"]) == (
        f"{site.world.reader.id}/{name}",
        site.world.reader.id,
    )
    owned = f"acl_name like '%{name}' and acl_domain = '{site.world.reader.id}'"
    dql = f"select acl_domain from {site.type('sysobject')} where {owned}"
    assert len(desk.send("GET", "", params={"dql": dql}).json()["entries"]) == 1
    for wrong in ({"acl_name": name, "acl_domain": "nobody@demo"}, {"acl_domain": site.world.reader.id}):
        refused = desk.send("POST", "objects", json={"properties": {"object_name": "x"} | wrong})
        assert refused.status_code == 400, wrong


def test_ours_4_the_domain_of_an_acl_that_the_caller_may_not_see_is_not_told(desk: Desk) -> None:
    site, name = desk.site, desk.site.world.word()
    acl = desk.send("POST", "acls", json={"name": name, "permitted": []}).json()
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    admin = Desk(site, site.world.admin(site.directory_names))
    object_id = desk.make(acl_name=name)
    assert desk.properties(object_id)["acl_domain"] == site.world.writer.id
    given = admin.send("POST", f"objects/{object_id}", json={"properties": {"owner_name": site.world.reader.id}})
    assert given.status_code == 200, given.text
    shown = Desk(site, site.world.reader).properties(object_id)
    assert (shown["acl_name"], "acl_domain" in shown) == (acl["id"], False)


def test_ours_4_an_acl_leads_to_what_uses_it(desk: Desk) -> None:
    site, name = desk.site, desk.site.world.word()
    acl = make_acl(desk, name)
    href = links(acl)[f"{site.names.linkrel_base}/associations"]
    assert href == f"{site.base}{site.repository}/acls/{acl['id']}/associations"

    def used_by(who: Desk, **parameters: str) -> list[str]:
        answer = site.http.get(
            href, params=parameters, headers=site.bearer(who.person) | {"Accept": "application/json"}
        )
        assert answer.status_code == 200, answer.text
        return [entry["title"] for entry in answer.json()["entries"]]

    assert used_by(desk) == []
    cabinet = desk.make("cabinets", object_name=f"{name} shelf", acl_name="private")
    default = desk.send("PUT", f"folders/{cabinet}/default-permission-set", json={"acl-name": name})
    assert default.status_code == 200, default.text
    for at in range(3):
        desk.make(object_name=f"{name} {at}", acl_name=name)
    assert used_by(desk) == [f"{name} shelf", *(f"{name} {at}" for at in range(3))]
    assert used_by(desk, filter=f"object_name='{name} 1'") == [f"{name} 1"]
    assert used_by(desk, sort="object_name desc", **{"items-per-page": "2"}) == [f"{name} shelf", f"{name} 2"]
    # The cabinet is private: the reader sees what the ACL lets them see.
    assert used_by(Desk(site, site.world.reader)) == [f"{name} {at}" for at in range(3)]
    hidden = desk.send("POST", "acls", json={"name": f"{name} hidden", "permitted": []}).json()
    refused = Desk(site, site.world.reader).send("GET", f"acls/{hidden['id']}/associations")
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_ACL")
