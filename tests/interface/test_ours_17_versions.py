"""Ours 17: versions. Objects are checked out and in; lists and searches show current versions.

A client of the field follows the links of these answers: the relations are in its names (fixture ``site``).
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from muniment.directory.administration import decisions
from tests.scenes import Feed, Person, Site, fulltext

RAW = {"Content-Type": "application/octet-stream"}


def links_of(body: Mapping[str, Any]) -> dict[str, str]:
    return {link["rel"].rpartition("/")[2]: link["href"] for link in body["links"]}


def read(site: Site, object_id: str, person: Person | None = None) -> dict[str, Any]:
    answer = site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer(person))
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def follow(
    site: Site, object_id: str, relation: str, method: str, person: Person | None = None, **sent: Any
) -> httpx.Response:
    """Follow a link of an object as a client of the field does; ``query`` is added to the link's."""
    address = links_of(read(site, object_id, person))[relation]
    headers = site.bearer(person) | sent.pop("headers", {})
    if query := sent.pop("query", ""):
        address += f"{'&' if '?' in address else '?'}{query}"
    return site.http.request(method, address, headers=headers, **sent)


def check_out(site: Site, object_id: str, person: Person | None = None) -> dict[str, Any]:
    answer = follow(site, object_id, "checkout", "PUT", person, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def check_in(site: Site, object_id: str, relation: str = "checkin-next-minor", **sent: Any) -> str:
    answer = follow(site, object_id, relation, "POST", **sent)
    assert answer.status_code == 201, answer.text
    new_id: str = answer.json()["properties"]["r_object_id"]
    assert answer.headers["Location"].endswith(f"/objects/{new_id}")
    return new_id


def next_version(site: Site, object_id: str, relation: str = "checkin-next-minor", **sent: Any) -> str:
    check_out(site, object_id, sent.get("person"))
    return check_in(site, object_id, relation, **sent)


def labels(site: Site, object_id: str) -> list[str]:
    found: list[str] = read(site, object_id)["properties"]["r_version_label"]
    return found


def content(site: Site, object_id: str, person: Person | None = None) -> bytes:
    answer = site.http.get(f"{site.repository}/objects/{object_id}/content-media", headers=site.bearer(person))
    assert answer.status_code == 200, answer.text
    return answer.content


def listed(site: Site, path: str, person: Person | None = None, **parameters: Any) -> list[str]:
    """Walk a list to its end; give the ids of its entries."""
    address, ids = f"{site.repository}{path}", list[str]()
    asked = {"Accept": "application/json"} | site.bearer(person)
    parameters = {name.replace("_", "-"): value for name, value in parameters.items()}
    answer = site.http.get(address, params=parameters, headers=asked)
    while True:
        assert answer.status_code == 200, answer.text
        feed = answer.json()
        ids += [entry["id"].rpartition("/")[2] for entry in feed["entries"]]
        following = [link["href"] for link in feed["links"] if link["rel"] == "next"]
        if not following:
            return ids
        answer = site.http.get(following[0], headers=asked)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def open_to(site: Site, *people: tuple[Person, str]) -> str:
    """Make an ACL with these entries; give its name."""
    name = site.world.word()
    permitted = [{"accessor": site.type("owner"), "basic-permission": "Delete"}]
    permitted += [{"accessor": person.id, "basic-permission": level} for person, level in people]
    made = site.http.post(f"{site.repository}/acls", json={"name": name, "permitted": permitted}, headers=site.bearer())
    assert made.status_code == 201, made.text
    return name


def test_ours_17_an_object_is_checked_out_and_in(site: Site) -> None:
    first = site.create("pump.txt", b"one", title="The pump")
    plain = read(site, first)
    assert plain["properties"]["r_version_label"] == ["1.0", "CURRENT"]
    assert plain["properties"]["i_chronicle_id"] == first
    assert plain["properties"]["i_latest_flag"] is True
    assert {"checkout", "version-history", "current-version"} <= links_of(plain).keys()
    assert "predecessor-version" not in links_of(plain)
    held = check_out(site, first)
    assert held["properties"]["r_lock_owner"] == site.world.writer.id
    assert held["properties"]["r_lock_date"]
    assert "checkout" not in links_of(held)
    assert {"cancel-checkout", "checkin-next-minor", "checkin-next-major", "checkin-branch"} <= links_of(held).keys()
    assert check_out_again(site, first) == held["properties"]["r_lock_date"]
    second = check_in(site, first, json={"properties": {"title": "The new pump"}}, query="comment=a+new+title")
    new, old = read(site, second), read(site, first)
    assert new["properties"]["r_version_label"] == ["1.1", "CURRENT"]
    assert (new["properties"]["title"], new["properties"]["r_log_entry"]) == ("The new pump", "a new title")
    assert new["properties"]["i_antecedent_id"] == first
    assert links_of(new)["predecessor-version"].endswith(f"/objects/{first}")
    assert (old["properties"]["r_version_label"], old["properties"]["title"]) == (["1.0"], "The pump")
    assert old["properties"]["r_lock_owner"] == ""
    assert content(site, second) == content(site, first) == b"one"
    assert new["properties"]["a_content_type"] == old["properties"]["a_content_type"]
    third = next_version(site, second, "checkin-next-major", content=b"three", headers=RAW)
    assert (labels(site, third), content(site, third)) == (["2.0", "CURRENT"], b"three")
    assert read(site, third)["properties"]["a_content_type"] == new["properties"]["a_content_type"]
    parts = {"metadata": ("", json.dumps({"properties": {"subject": "s"}}), "application/json"), "binary": ("", b"4")}
    fourth = next_version(site, third, files=parts, query="format=crtext")
    assert (labels(site, fourth), content(site, fourth)) == (["2.1", "CURRENT"], b"4")
    assert {each["properties"]["i_chronicle_id"] for each in (read(site, some) for some in (second, fourth))} == {first}
    assert listed(site, f"/objects/{second}/versions", items_per_page="2") == [fourth, third, second, first]
    now = site.http.get(f"{site.repository}/objects/{first}/versions/current", headers=site.bearer())
    assert (now.status_code, now.json()["properties"]["r_object_id"]) == (200, fourth)
    flags = [read(site, each)["properties"]["i_latest_flag"] for each in (first, second, third, fourth)]
    assert flags == [False, False, False, True]


def check_out_again(site: Site, object_id: str) -> str:
    answer = site.http.put(f"{site.repository}/objects/{object_id}/lock", headers=site.bearer())
    assert answer.status_code == 200, answer.text
    since: str = answer.json()["properties"]["r_lock_date"]
    return since


def test_ours_17_xml_is_checked_in_and_nothing_at_all(site: Site) -> None:
    first = site.create("x")
    body = f'<object xmlns="{site.names.vocab_namespace}"><properties><title>t</title></properties></object>'
    second = next_version(site, first, content=body.encode(), headers={"Content-Type": "application/xml"})
    third = next_version(site, second)
    fourth = next_version(site, third, content=b"", headers={"Content-Type": "application/json"})
    assert read(site, fourth)["properties"]["title"] == "t"
    assert labels(site, fourth) == ["1.3", "CURRENT"]
    asked = site.bearer() | {"Accept": "application/xml"}
    text = site.http.get(f"{site.repository}/objects/{fourth}", headers=asked).text
    assert "_version_label><item>1.3</item><item>CURRENT</item></" in text


def test_ours_17_a_branch_begins_and_labels_move(site: Site) -> None:
    first = site.create("branchy")
    second = next_version(site, first, query="version-label=draft,checked")
    assert labels(site, second) == ["1.1", "draft", "checked", "CURRENT"]
    branch = next_version(site, second, "checkin-branch", query="make-current=false&version-label=draft")
    assert (labels(site, second), labels(site, branch)) == (["1.1", "checked", "CURRENT"], ["1.1.1.0", "draft"])
    assert read(site, second)["properties"]["i_latest_flag"] is True
    other = next_version(site, second, "checkin-branch", query="make-current=false")
    assert labels(site, other) == ["1.1.2.0"]
    further = next_version(site, branch, query="retain-lock=true")
    assert (labels(site, further), labels(site, second)) == (["1.1.1.1", "CURRENT"], ["1.1", "checked"])
    assert read(site, further)["properties"]["r_lock_owner"] == site.world.writer.id
    check_out(site, first)
    refused = follow(site, first, "checkin-next-minor", "POST")
    assert code(refused) == (409, "E_NOT_LATEST_VERSION")
    assert labels(site, check_in(site, first, "checkin-branch", query="make-current=false")) == ["1.0.1.0"]


def test_ours_17_a_label_stays_with_a_version_that_is_out_of_reach(site: Site) -> None:
    other = site.world.person()
    acl, hidden = open_to(site, (other, "Version")), open_to(site)
    first = site.create("reached", acl_name=acl)
    second = next_version(site, first, query="version-label=approved,draft")
    for acl_of_second, left, taken in (
        (hidden, ["1.1", "approved", "draft", "CURRENT"], ["1.0.1.0", "fresh"]),
        (open_to(site, (other, "Relate")), ["1.1", "approved", "draft", "CURRENT"], ["1.0.2.0", "new"]),
        (acl, ["1.1", "draft"], ["1.0.3.0", "approved", "newest", "CURRENT"]),
    ):
        site.share(second, acl_of_second)
        check_out(site, first, other)
        own = taken[-1] if "CURRENT" not in taken else "newest"
        branch = check_in(site, first, "checkin-branch", person=other, query=f"version-label=approved,{own}")
        assert (labels(site, second), labels(site, branch)) == (left, taken)
        now = site.http.get(f"{site.repository}/objects/{first}/versions/current", headers=site.bearer())
        assert now.json()["properties"]["r_object_id"] == (branch if "CURRENT" in taken else second)


def test_ours_17_who_has_delete_cancels_the_check_out_of_somebody_without_rights(site: Site) -> None:
    holder, keeper, group = site.world.person(), site.world.person(), site.world.word()
    site.world.group(group, holder)
    object_id = site.create("stuck", acl_name=open_to(site, (holder, "Version"), (keeper, "Delete")))
    address, theirs = f"{site.repository}/objects/{object_id}", site.bearer(keeper)
    check_out(site, object_id, holder)
    by_group = site.world.word()
    permitted = [
        {"accessor": accessor, "basic-permission": level}
        for accessor, level in ((f"{group}@{site.world.partition}", "Version"), (keeper.id, "Delete"))
    ]
    made = {"name": by_group, "permitted": permitted}
    assert site.http.post(f"{site.repository}/acls", json=made, headers=site.bearer()).status_code == 201
    for acl in ("", by_group):
        if acl:
            site.share(object_id, acl)
        assert code(site.http.delete(f"{address}/lock", headers=theirs)) == (409, "E_LOCKED")
    site.share(object_id, open_to(site, (holder, "Relate"), (keeper, "Write")))
    assert code(site.http.delete(f"{address}/lock", headers=theirs)) == (409, "E_LOCKED")
    site.share(object_id, open_to(site, (holder, "Relate"), (keeper, "Delete")))
    assert site.http.delete(f"{address}/lock", headers=theirs).status_code == 204
    site.share(object_id, open_to(site, (holder, "Version"), (keeper, "Delete")))
    check_out(site, object_id, holder)
    with site.world.directory_db.begin() as cx:
        decisions.remove(cx, site.world.entry(holder), site.world.clock())
    assert site.http.delete(f"{address}/lock", headers=theirs).status_code == 204


def test_ours_17_a_check_out_keeps_others_from_changes(site: Site) -> None:
    other, third = site.world.person(), site.world.person()
    acl = open_to(site, (other, "Delete"), (third, "Browse"))
    cabinet = site.cabinet(site.world.word())
    object_id = site.create("held", b"one", acl_name=acl)
    address, theirs = f"{site.repository}/objects/{object_id}", site.bearer(other)
    check_out(site, object_id)
    seen = read(site, object_id, third)["properties"]
    assert (seen["r_lock_owner"], bool(seen["r_lock_date"])) == (site.world.writer.id, True)
    everything = (
        site.http.put(f"{address}/lock", headers=theirs),
        site.http.delete(f"{address}/lock", headers=theirs),
        site.http.post(f"{address}/versions", headers=theirs),
        site.http.post(address, json={"properties": {"title": "t"}}, headers=theirs),
        site.http.post(f"{address}/contents", content=b"two", headers=theirs | RAW),
        site.http.delete(address, headers=theirs),
        site.http.delete(f"{address}?del-version=all", headers=theirs),
        site.http.post(
            f"{address}/parent-links", json={"href": f"{site.base}{site.repository}/cabinets/{cabinet}"}, headers=theirs
        ),
    )
    assert [code(answer) for answer in everything] == [(409, "E_LOCKED")] * len(everything)
    assert site.world.writer.id in everything[0].json()["message"]
    browsing = site.bearer(third)
    assert code(site.http.put(f"{address}/lock", headers=browsing)) == (403, "E_NOT_PERMITTED")
    assert code(site.http.post(f"{address}/versions", headers=browsing)) == (403, "E_NOT_PERMITTED")
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    as_admin = site.bearer(site.world.admin(site.directory_names))
    assert code(site.http.post(address, json={"properties": {"title": "t"}}, headers=as_admin)) == (409, "E_LOCKED")
    assert site.http.delete(f"{address}/lock", headers=as_admin).status_code == 204
    assert code(site.http.delete(f"{address}/lock", headers=as_admin)) == (409, "E_NOT_LOCKED")
    assert code(site.http.post(f"{address}/versions", headers=site.bearer())) == (409, "E_NOT_LOCKED")
    check_out(site, object_id, other)
    assert code(site.http.delete(f"{address}/lock", headers=site.bearer())) == (409, "E_LOCKED")
    new_id = check_in(site, object_id, person=other)
    properties = read(site, new_id)["properties"]
    assert (properties["owner_name"], properties["r_creator_name"]) == (site.world.writer.id, other.id)


def test_ours_17_a_former_version_keeps_its_content(site: Site) -> None:
    first = site.create("kept", b"one")
    second = next_version(site, first, content=b"two", headers=RAW)
    refused = site.http.post(f"{site.repository}/objects/{first}/contents", content=b"x", headers=site.bearer() | RAW)
    assert code(refused) == (409, "E_NOT_LATEST_VERSION")
    refused = site.http.delete(f"{site.repository}/objects/{first}/contents/content", headers=site.bearer())
    assert code(refused) == (409, "E_NOT_LATEST_VERSION")
    changed = site.http.post(
        f"{site.repository}/objects/{first}", json={"properties": {"title": "late"}}, headers=site.bearer()
    )
    assert changed.status_code == 200, changed.text
    replaced = site.http.post(f"{site.repository}/objects/{second}/contents", content=b"2", headers=site.bearer() | RAW)
    assert replaced.status_code == 201, replaced.text
    assert (content(site, first), content(site, second)) == (b"one", b"2")


def test_ours_17_versions_are_deleted(site: Site) -> None:
    def delete(object_id: str, scope: str) -> int:
        address = f"{site.repository}/objects/{object_id}?del-version={scope}"
        return site.http.delete(address, headers=site.bearer()).status_code

    def history(object_id: str) -> list[list[str]]:
        return [labels(site, each) for each in listed(site, f"/objects/{object_id}/versions")]

    first = site.create("many", b"x")
    second = next_version(site, first, query="version-label=good")
    third = next_version(site, second)
    fourth = next_version(site, third)
    assert delete(third, "SELECTED") == 204
    assert read(site, fourth)["properties"]["i_antecedent_id"] == second
    assert delete(fourth, "selected") == 204
    assert history(first) == [["1.1", "good", "CURRENT"], ["1.0"]]
    assert read(site, second)["properties"]["i_latest_flag"] is True
    fifth = next_version(site, second)
    check_out(site, first)
    assert delete(fifth, "unused") == 204
    assert history(fifth) == [["1.2", "CURRENT"], ["1.1", "good"], ["1.0"]]
    assert site.http.delete(f"{site.repository}/objects/{first}/lock", headers=site.bearer()).status_code == 204
    assert delete(fifth, "UnUsed") == 204
    assert history(fifth) == [["1.2", "CURRENT"], ["1.1", "good"]]
    assert "i_antecedent_id" not in read(site, second)["properties"]
    assert delete(second, "all") == 204
    assert site.http.get(f"{site.repository}/objects/{fifth}", headers=site.bearer()).status_code == 404
    alone = site.create("alone")
    assert (delete(alone, "unused"), labels(site, alone)) == (204, ["1.0", "CURRENT"])
    assert delete(alone, "none") == 400
    assert delete(alone, "ALL") == 204


def test_ours_17_each_version_that_goes_takes_delete(site: Site) -> None:
    other = site.world.person()
    first = site.create("shared")
    second = next_version(site, first)
    site.share(second, open_to(site, (other, "Delete")))
    address = f"{site.repository}/objects/{second}"
    refused = site.http.delete(f"{address}?del-version=all", headers=site.bearer(other))
    assert (*code(refused), first in refused.text) == (403, "E_NOT_PERMITTED", False)
    assert listed(site, f"/objects/{second}/versions", other) == [second]
    assert site.http.delete(f"{address}?del-version=selected", headers=site.bearer(other)).status_code == 204
    assert labels(site, first) == ["1.0", "CURRENT"]


def test_ours_17_the_current_version_may_be_hidden(site: Site) -> None:
    other = site.world.person()
    first = site.create("half open", acl_name=open_to(site, (other, "Browse")))
    second = next_version(site, first)
    site.share(second, open_to(site))
    hidden = site.http.get(f"{site.repository}/objects/{first}/versions/current", headers=site.bearer(other))
    nothing = site.http.get(f"{site.repository}/objects/{second}", headers=site.bearer(other))
    assert code(hidden) == code(nothing) == (404, "E_UNKNOWN_OBJECT")
    assert hidden.json()["message"] == nothing.json()["message"]
    assert listed(site, f"/objects/{first}/versions", other) == [first]


def test_ours_17_lists_show_current_versions_unless_asked_for_all(site: Site) -> None:
    cabinet = site.cabinet(site.world.word())
    made: dict[str, list[str]] = {}
    for name in ("a", "b", "c"):
        answer = site.http.post(
            f"{site.repository}/folders/{cabinet}/documents",
            json={"properties": {"object_name": name}},
            headers=site.bearer(),
        )
        made[name] = [answer.json()["properties"]["r_object_id"]]
    for name in ("a", "c", "c"):
        made[name].append(next_version(site, made[name][-1]))
    now = [versions[-1] for versions in made.values()]
    former = [made["a"][0], *made["c"][:-1]]
    for part in ("documents", "objects"):
        path = f"/folders/{cabinet}/{part}"
        assert listed(site, path) == now
        every: dict[str, Any] = {"include_all_versions": "true", "items_per_page": "2"}
        assert listed(site, path, **every) == [*now, *former]
        assert listed(site, path, **every | {"filter": "object_name='c'"}) == [now[2], *made["c"][:-1]]
        assert listed(site, path, **every, sort="object_name DESC")[:3] == made["c"]
        labelled = f"{site.names.system_property_prefix}version_label='1.1'"
        assert listed(site, path, **every, filter=labelled) == [now[0], made["c"][1]]
        assert listed(site, path, filter="i_latest_flag=true", sort="i_antecedent_id") != []
    assert len(listed(site, f"/folders/{cabinet}/child-links")) == 3
    emptied = site.http.delete(f"{site.repository}/cabinets/{cabinet}?del-non-empty=true", headers=site.bearer())
    assert emptied.status_code == 204, emptied.text
    assert site.http.get(f"{site.repository}/objects/{made['c'][0]}", headers=site.bearer()).status_code == 404


def test_ours_17_what_is_checked_out_is_listed(site: Site) -> None:
    one, two = site.world.person(), site.world.person()
    acl = open_to(site, (one, "Delete"), (two, "Read"))
    ids = sorted(site.create("out", acl_name=acl) for _ in range(3))
    hidden = site.create("hidden")
    for object_id in ids:
        check_out(site, object_id, one)
    check_out(site, hidden)
    assert sorted(listed(site, "/checked-out-objects", one)) == ids
    assert sorted(listed(site, "/checked-out-objects", one, items_per_page="2")) == ids
    assert listed(site, "/checked-out-objects", two) == []
    theirs = listed(site, "/checked-out-objects", two, checked_out_by="user", user_name=one.id.upper())
    assert sorted(theirs) == ids
    assert sorted(listed(site, "/checked-out-objects", two, user_name=one.id)) == ids
    everybody = listed(site, "/checked-out-objects", two, checked_out_by="ALL")
    assert (set(ids) <= set(everybody), hidden in everybody) == (True, False)
    for wrong in (
        {"checked-out-by": "nobody"},
        {"checked-out-by": "user"},
        {"checked-out-by": "all", "user-name": "x"},
    ):
        refused = site.http.get(f"{site.repository}/checked-out-objects", params=wrong, headers=site.bearer())
        assert refused.status_code == 400, refused.text
    relation = f"{site.names.linkrel_base}/checked-out-objects"
    offered = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"}).json()["links"]
    assert relation in {link["rel"] for link in offered}


def contents_of(site: Site, object_id: str) -> dict[tuple[bool, int, str], bytes]:
    address = f"{site.repository}/objects/{object_id}"
    feed = site.http.get(f"{address}/contents?inline=true", headers=site.bearer() | {"Accept": "application/json"})
    shown = [entry["content"]["properties"] for entry in feed.json()["entries"]]
    places = [(each["is_primary"] == "true", each["page"], each["format_name"]) for each in shown]
    return {
        (primary, page, name): site.http.get(
            f"{address}/content-media",
            params={"page": page, "format": name, "primary": "true" if primary else "false"},
            headers=site.bearer(),
        ).content
        for primary, page, name in places
    }


def test_ours_17_a_check_in_replaces_the_page_that_it_names(site: Site) -> None:
    object_id = site.create("pages.txt", b"first")
    address, text = f"{site.repository}/objects/{object_id}/contents", {"Content-Type": "text/plain"}
    for query, content in (("page=1", b"second"), ("primary=false&format=pdf", b"%PDF")):
        assert site.http.post(f"{address}?{query}", content=content, headers=site.bearer() | text).status_code == 201
    former = {(True, 0, "crtext"): b"first", (True, 1, "crtext"): b"second", (False, 0, "pdf"): b"%PDF"}
    assert contents_of(site, object_id) == former
    versions = [object_id]
    for query, content in (("page=1", b"another"), ("page=2&format=html", b"third"), ("page=0", b"alone")):
        check_out(site, versions[-1])
        new = follow(site, versions[-1], "checkin-next-minor", "POST", query=query, content=content, headers=text)
        assert new.status_code == 201, new.text
        versions.append(new.json()["properties"]["r_object_id"])
    assert contents_of(site, object_id) == former
    assert contents_of(site, versions[1]) == former | {(True, 1, "crtext"): b"another"}
    third = {(True, 1, "crtext"): b"another", (True, 2, "html"): b"third"}
    assert contents_of(site, versions[2]) == former | third
    assert contents_of(site, versions[3]) == {(True, 0, "crtext"): b"alone"}


def test_ours_17_several_contents_are_checked_in_as_pages(site: Site) -> None:
    object_id = site.create("several.txt", b"first")
    parts = b"".join(
        b"--cut\r\nContent-Type: text/plain\r\n\r\n" + content + b"\r\n"
        for content in (b'{"properties": {"object_name": "several"}}', b"one", b"two", b"three")
    )
    form = {"Content-Type": "multipart/form-data; boundary=cut"}
    sent: dict[str, Any] = {"content": parts + b"--cut--\r\n", "headers": form}
    pages = {(True, number, "crtext"): text for number, text in enumerate((b"one", b"two", b"three"))}
    renditions = {(True, 0, "crtext"): b"one", (False, 0, "html"): b"two", (False, 0, "pdf"): b"three"}
    counted = "format=crtext&content-count=3"
    for query, expected in ((counted, pages), ("all-primary=false&format=crtext,html,pdf", renditions)):
        check_out(site, object_id)
        new = follow(site, object_id, "checkin-next-major", "POST", query=query, **sent)
        assert new.status_code == 201, new.text
        object_id = new.json()["properties"]["r_object_id"]
        assert contents_of(site, object_id) == expected


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("version-policy=same-version", {}),
        ("version-label=2.0", {}),
        ("version-label=" + "x" * 33, {}),
        ("version-label=" + ",".join(map(str, "abcdefghijklmnopqrstuvw")), {}),
        ("version-label=a%00b", {}),
        ("make-current=false&version-label=Current", {}),
        ("make-current=perhaps", {}),
        ("comment=" + "x" * 401, {}),
        ("page=-1", {"content": b"x", "headers": {"Content-Type": "text/plain"}}),
        ("page=1,2", {"content": b"x", "headers": {"Content-Type": "text/plain"}}),
        ("page=1000001", {"content": b"x", "headers": {"Content-Type": "text/plain"}}),
        ("", {"json": {"properties": {"r_version_label": ["9.0"]}}}),
        ("", {"json": {"properties": {"i_chronicle_id": "0900000000000001"}}}),
        ("", {"json": {"properties": {"r_lock_owner": "me"}}}),
        ("", {"json": {"properties": {"no_such_thing": "x"}}}),
        ("", {"json": {"properties": {"object_name": ""}}}),
        ("", {"json": {"href": "https://muniment.test/x"}}),
        ("", {"content": b"{", "headers": {"Content-Type": "application/json"}}),
        ("", {"content": b"--x\r\n\r\n{", "headers": {"Content-Type": "multipart/mixed; boundary=x"}}),
    ],
)
def test_ours_17_a_check_in_that_cannot_be_read_changes_nothing(site: Site, query: str, sent: dict[str, Any]) -> None:
    object_id = site.create("odd", b"one")
    check_out(site, object_id)
    before = read(site, object_id)
    refused = follow(site, object_id, "checkin-next-minor", "POST", query=query, **sent)
    assert refused.status_code == 400, refused.text
    assert read(site, object_id) == before
    assert listed(site, f"/objects/{object_id}/versions") == [object_id]


def test_ours_17_a_folder_has_no_versions(site: Site) -> None:
    cabinet = site.cabinet(site.world.word())
    body = read(site, cabinet)
    assert "r_version_label" not in body["properties"]
    assert not {"checkout", "version-history"} & links_of(body).keys()
    answer = site.http.put(f"{site.repository}/objects/{cabinet}/lock", headers=site.bearer())
    assert code(answer) == (400, "E_INVALID_ATTR_VALUE")
    unknown = f"{site.repository}/objects/0900000000000001"
    for method, address in (("PUT", "lock"), ("DELETE", "lock"), ("POST", "versions"), ("GET", "versions")):
        assert site.http.request(method, f"{unknown}/{address}", headers=site.bearer()).status_code == 404


def test_ours_17_a_revision_that_was_overtaken_is_refused(site: Site) -> None:
    object_id = site.create("tagged")
    tag = site.http.get(f"{site.repository}/objects/{object_id}", headers=site.bearer()).headers["ETag"]
    check_out(site, object_id)
    for method, part in (("PUT", "lock"), ("DELETE", "lock"), ("POST", "versions")):
        headers = site.bearer() | {"If-Match": tag}
        refused = site.http.request(method, f"{site.repository}/objects/{object_id}/{part}", headers=headers)
        assert code(refused) == (412, "E_VERSION_CONFLICT")


def test_ours_17_of_two_check_outs_at_once_one_wins(site: Site) -> None:
    """Races: two check-outs by two people, and two check-ins by one."""
    other = site.world.person()
    people = (site.world.writer, other)
    object_id = site.create("wanted", b"x", acl_name=open_to(site, (other, "Delete")))
    address = f"{site.repository}/objects/{object_id}"
    headers = [site.bearer(person) for person in people]

    def at_once(method: str, part: str, of: list[dict[str, str]]) -> list[int]:
        statuses: list[int] = []
        threads = [
            threading.Thread(
                target=lambda each: statuses.append(
                    site.http.request(method, f"{address}/{part}", headers=each).status_code
                ),
                args=(each,),
            )
            for each in of
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(statuses)

    assert at_once("PUT", "lock", headers * 2) == [200, 200, 409, 409]
    holder = people[read(site, object_id)["properties"]["r_lock_owner"] == other.id]
    assert at_once("POST", "versions", [site.bearer(holder)] * 3) == [201, 409, 409]
    assert len(listed(site, f"/objects/{object_id}/versions")) == 2


def test_ours_17_searches_find_current_versions_unless_asked_for_all(site: Site) -> None:
    word = site.world.word()
    first = site.create(f"{word} report", f"{word} alpha".encode())
    site.world.catch_up()
    assert site.keywords(word).ids == [first]
    second = next_version(site, first, content=f"{word} beta".encode(), headers={"Content-Type": "text/plain"})

    def everything(words: str, *, every: str) -> Feed:
        document = site.aql(fulltext(words)).replace("<search ", f'<search all-versions="{every}" ')
        answer = site.post_search(document, {"include-total": "true"})
        assert answer.status_code == 200, answer.text
        return Feed(answer, site)

    # The index is behind: it holds the former version as the current one, and not the new one.
    assert (site.keywords(word).ids, everything(word, every="true").ids) == ([], [])
    site.world.catch_up()
    assert site.keywords(word, include_total="true").ids == [second]
    assert everything(word, every="false").total == 1
    both = everything(word, every="true")
    assert (set(both.ids), both.total) == ({first, second}, 2)
    assert (everything(f"{word} alpha", every="true").ids, site.keywords(f"{word} alpha").ids) == ([first], [])
    body = {"all-versions": True, "expression-set": {"expressions": [{"expression-type": "fulltext", "value": word}]}}
    asked = site.bearer() | {"Content-Type": "application/json", "Accept": "application/json"}
    answer = site.http.post(site.search_address, json=body, headers=asked)
    assert len(answer.json()["entries"]) == 2
    why = site.http.get(
        f"{site.search_address}/explanation", params={"q": word, "object": first}, headers=site.bearer()
    ).json()
    assert (why["hit"], "former version" in why["reasons"][0]["message"]) == (False, True)
    deleted = site.http.delete(f"{site.repository}/objects/{second}", headers=site.bearer())
    assert deleted.status_code == 204, deleted.text
    assert site.keywords(word).ids == []
    site.world.catch_up()
    assert site.keywords(word).ids == [first]
