"""Links between folders and objects: put into a folder, moved, taken out. Source: docs/interface.md, ours 2."""

import threading
from typing import Any

import httpx
import lxml.etree

from tests.scenes import Person, Site

JSON = {"Accept": "application/json"}


def post(site: Site, path: str, body: dict[str, Any], person: Person | None = None) -> httpx.Response:
    return site.http.post(f"{site.repository}{path}", json=body, headers=site.bearer(person))


def reference(site: Site, object_id: str, kind: str = "objects") -> dict[str, str]:
    return {"href": f"{site.base}{site.repository}/{kind}/{object_id}"}


def folder(site: Site, parent: str, person: Person | None = None) -> str:
    made = post(site, f"/folders/{parent}/folders", {"properties": {"object_name": site.world.word()}}, person)
    assert made.status_code == 201, made.text
    return str(made.json()["properties"]["r_object_id"])


def children(site: Site, folder_id: str, kind: str = "objects") -> list[str]:
    listed = site.http.get(
        f"{site.repository}/folders/{folder_id}/{kind}", headers=site.bearer() | {"Accept": "application/json"}
    )
    assert listed.status_code == 200, listed.text
    return [entry["title"] for entry in listed.json()["entries"]]


def test_ours_2_an_object_is_put_into_a_folder_moved_and_taken_out(site: Site) -> None:
    first, second = site.cabinet(site.world.word()), site.cabinet(site.world.word())
    object_id = site.create("wanderer")
    links = f"/objects/{object_id}/parent-links"
    made = post(site, links, reference(site, first, "cabinets"))
    assert made.status_code == 201, made.text
    assert made.headers["Location"] == f"{site.base}{site.repository}{links}/{first}"
    assert (made.json()["parent-id"], made.json()["child-id"]) == (first, object_id)
    assert children(site, first) == children(site, first, "child-links") == ["wanderer"]
    again = post(site, links, reference(site, first, "cabinets"))
    assert (again.status_code, again.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")
    moved = site.http.put(
        f"{site.repository}{links}/{first}", json=reference(site, second, "folders"), headers=site.bearer()
    )
    assert moved.status_code == 200, moved.text
    assert (children(site, first), children(site, second)) == ([], ["wanderer"])
    old = site.http.get(f"{site.repository}{links}/{first}", headers=site.bearer())
    assert (old.status_code, old.json()["code"]) == (404, "E_UNKNOWN_OBJECT")
    assert site.http.delete(f"{site.repository}{links}/{second}", headers=site.bearer()).status_code == 204
    assert children(site, second) == []
    still = site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer())
    assert "i_folder_id" not in still.json()["properties"]


def test_ours_2_a_link_has_attributes_in_xml(site: Site) -> None:
    cabinet, object_id, xml = site.cabinet(site.world.word()), site.create("linked"), {"Accept": "application/xml"}
    made = post(site, f"/objects/{object_id}/parent-links", reference(site, cabinet, "cabinets"))
    here = f"{site.base}{site.repository}"
    for path, href in (
        (f"/objects/{object_id}/parent-links/{cabinet}", f"{here}/cabinets/{cabinet}"),
        (f"/folders/{cabinet}/child-links/{object_id}", f"{here}/objects/{object_id}"),
    ):
        shown = site.http.get(f"{site.repository}{path}", headers=site.bearer() | xml)
        listed = site.http.get(f"{site.repository}{path.rpartition('/')[0]}?inline=true", headers=site.bearer() | xml)
        (inlined,) = lxml.etree.fromstring(listed.content).iter(f"{site.vocab}folder-link")
        for link in (lxml.etree.fromstring(shown.content), inlined):
            assert link.tag == f"{site.vocab}folder-link"
            assert dict(link.items()) == {"href": href, "parent-id": cabinet, "child-id": object_id}
            assert [child.tag for child in link] == [f"{site.vocab}links"]
    assert made.json()["href"] == f"{here}/cabinets/{cabinet}"
    listed = site.http.get(f"{site.repository}/objects/{object_id}/parent-links", headers=site.bearer() | JSON)
    assert [entry["summary"] for entry in listed.json()["entries"]] == [cabinet]


def test_ours_2_a_folder_links_to_what_lies_in_it(site: Site) -> None:
    cabinet, object_id = site.cabinet(site.world.word()), site.create("from above")
    links = f"/folders/{cabinet}/child-links"
    made = post(site, links, reference(site, object_id, "documents"))
    assert made.status_code == 201, made.text
    own = f"{site.repository}{links}/{object_id}"
    assert made.headers["Location"] == site.base + own
    assert made.json()["href"] == reference(site, object_id)["href"]
    as_xml = site.http.get(own, headers=site.bearer() | {"Accept": "application/xml"})
    assert lxml.etree.fromstring(as_xml.content).get("parent-id") == cabinet
    assert site.http.delete(own, headers=site.bearer()).status_code == 204
    assert children(site, cabinet) == []


def test_ours_2_a_folder_never_lies_in_itself(site: Site) -> None:
    cabinet = site.cabinet(site.world.word())
    outer = folder(site, cabinet)
    inner = folder(site, outer)
    for target in (outer, inner):
        refused = site.http.put(
            f"{site.repository}/objects/{outer}/parent-links/{cabinet}",
            json=reference(site, target, "folders"),
            headers=site.bearer(),
        )
        assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")
    out = site.http.delete(f"{site.repository}/objects/{outer}/parent-links/{cabinet}", headers=site.bearer())
    assert (out.status_code, out.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")
    in_folder = post(site, f"/objects/{cabinet}/parent-links", reference(site, outer, "folders"))
    assert (in_folder.status_code, in_folder.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")


def test_ours_2_two_moves_at_one_time_make_no_circle(site: Site) -> None:
    for _ in range(5):
        cabinet = site.cabinet(site.world.word())
        pair = [folder(site, cabinet), folder(site, cabinet)]
        statuses: list[int] = []

        def move(inner: str, outer: str, cabinet: str = cabinet, statuses: list[int] = statuses) -> None:
            address = f"{site.repository}/objects/{inner}/parent-links/{cabinet}"
            answer = site.http.put(address, json=reference(site, outer, "folders"), headers=site.bearer())
            statuses.append(answer.status_code)

        movers = [threading.Thread(target=move, args=ends) for ends in (pair, pair[::-1])]
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.join()
        assert statuses.count(200) == 1, statuses
        assert len(children(site, cabinet, "folders")) == 1


def test_ours_2_links_take_write_on_the_object_and_on_both_folders(site: Site) -> None:
    owner, other = site.world.person(), site.world.person()
    made = post(site, "/cabinets", {"properties": {"object_name": site.world.word()}}, owner)
    cabinet = str(made.json()["properties"]["r_object_id"])
    own = site.create("own", person=other)
    hidden = post(site, f"/objects/{own}/parent-links", reference(site, cabinet, "cabinets"), other)
    assert (hidden.status_code, hidden.json()["code"]) == (404, "E_UNKNOWN_OBJECT")
    site.share(cabinet, "public", person=owner)
    refused = post(site, f"/objects/{own}/parent-links", reference(site, cabinet, "cabinets"), other)
    assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")
    filed = site.create("filed", person=owner)
    assert post(site, f"/objects/{filed}/parent-links", reference(site, cabinet, "cabinets"), owner).status_code == 201
    site.share(filed, "public", person=owner)
    refused = site.http.delete(f"{site.repository}/objects/{filed}/parent-links/{cabinet}", headers=site.bearer(other))
    assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")


def test_ours_2_old_clients_delete_what_is_not_empty(site: Site) -> None:
    for kind, query, status in (
        ("cabinets", "delete-non-empty=true", 204),
        ("folders", "delete-non-empty=TRUE", 204),
        ("cabinets", "delete-non-empty=false", 409),
        ("cabinets", "delete-non-empty=false&del-non-empty=true", 204),
        ("cabinets", "delete-non-empty=perhaps", 400),
    ):
        cabinet = site.cabinet(site.world.word())
        full = folder(site, cabinet)
        folder(site, full)
        address = f"{site.repository}/{kind}/{full if kind == 'folders' else cabinet}?{query}"
        assert site.http.delete(address, headers=site.bearer()).status_code == status, query
