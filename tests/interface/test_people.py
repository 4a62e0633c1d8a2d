"""Users, groups and the current user of a repository. Source: docs/interface.md, ours 9."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import lxml.etree

from muniment.directory.administration import decisions
from muniment.directory.entries import entries, memberships, resources
from tests.scenes import Person, Site


def get(site: Site, path: str, params: Mapping[str, str] | None = None, person: Person | None = None) -> Any:
    answer = site.http.get(
        f"{site.repository}/{path}", params=params, headers=site.bearer(person) | {"Accept": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def titles(site: Site, path: str, params: Mapping[str, str] | None = None) -> list[str]:
    return [entry["title"] for entry in get(site, path, params)["entries"]]


def test_ours_9_the_repository_leads_to_its_users_its_groups_and_the_user_who_asks(site: Site) -> None:
    resource = site.http.get(site.repository, headers=site.bearer() | {"Accept": "application/json"}).json()
    links = {link["rel"]: link.get("href") for link in resource["links"]}
    for relation, path in (("users", "users"), ("groups", "groups"), ("current-user", "currentuser")):
        assert links[f"{site.names.linkrel_base}/{relation}"] == f"{site.base}{site.repository}/{path}"


def test_ours_9_users_are_those_whom_the_access_role_lets_in(site: Site) -> None:
    listed = titles(site, "users", {"items-per-page": "1000"})
    assert site.world.reader.name in listed
    assert site.world.writer.name in listed
    assert site.world.outsider.name not in listed
    refused = site.http.get(f"{site.repository}/users/{site.world.outsider.id}", headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_PERSON")


def test_ours_9_who_comes_into_the_role_or_leaves_it_is_listed_accordingly(site: Site) -> None:
    person = site.world.person(member=False)
    every = {"items-per-page": "1000"}
    assert person.name not in titles(site, "users", every)
    site.world.admit(person, site.world.resource_id)
    assert person.name in titles(site, "users", every)
    with site.world.directory_db.begin() as cx:
        resource = resources.by_id(cx, site.world.resource_id)
        resources.remove_from_role(cx, resource, site.world.entry(person))
    assert person.name not in titles(site, "users", every)


def test_ours_9_groups_in_the_role_are_listed_however_deep_with_their_members(site: Site) -> None:
    listed = titles(site, "groups")
    assert {"everyone", "writers"} <= set(listed)
    assert "writers" in titles(site, "groups/everyone@demo/groups")
    assert site.world.writer.name in titles(site, "groups/writers@demo/users")
    unknown = site.http.get(f"{site.repository}/groups/nobody@demo/users", headers=site.bearer())
    assert (unknown.status_code, unknown.json()["code"]) == (404, "E_UNKNOWN_PERSON")


def test_ours_9_a_user_is_shown_in_json_and_xml(site: Site) -> None:
    address = f"users/{site.world.writer.id}"
    shown = get(site, address)
    assert shown["name"] == "user"
    assert shown["type"] == site.type("user")
    assert shown["properties"]["user_name"] == site.world.writer.id
    assert shown["properties"]["user_login_name"] == site.world.writer.name
    assert shown["properties"]["r_object_id"].startswith("11")
    assert shown["links"][0] == {"rel": "self", "href": f"{site.base}{site.repository}/{address}"}
    as_xml = site.http.get(f"{site.repository}/{address}", headers=site.bearer() | {"Accept": "application/xml"})
    root = lxml.etree.fromstring(as_xml.content)
    assert root.tag == f"{site.vocab}user"
    assert root.findtext(f"{site.vocab}properties/{site.vocab}user_name") == site.world.writer.id


def test_ours_9_the_current_user_is_the_one_who_asks(site: Site) -> None:
    for person in (site.world.reader, site.world.writer):
        assert get(site, "currentuser", person=person)["properties"]["user_name"] == person.id


def test_ours_9_pages_of_users_follow_each_other(site: Site) -> None:
    for _ in range(3):
        site.world.person()
    whole = titles(site, "users", {"items-per-page": "1000"})
    first = get(site, "users", {"items-per-page": str(2 + len(whole) // 5), "include-total": "true"})
    assert first["total"] == len(whole)
    listed, page = [entry["title"] for entry in first["entries"]], first
    while following := [link["href"] for link in page["links"] if link["rel"] == "next"]:
        page = site.http.get(following[0], headers=site.bearer() | {"Accept": "application/json"}).json()
        listed += [entry["title"] for entry in page["entries"]]
    assert listed == whole
    assert titles(site, "users", {"items-per-page": "2", "page": "2"}) == whole[2:4]


def test_ours_9_a_stranger_learns_nothing(site: Site) -> None:
    for path in ("users", "groups", "currentuser", f"users/{site.world.writer.id}"):
        assert site.http.get(f"{site.repository}/{path}").status_code == 401


def test_ours_9_users_are_filtered_sorted_and_inlined(site: Site) -> None:
    word = site.world.word()
    people = [site.world.person(name=f"{word}-{number}").id for number in (2, 1, 3)]
    chosen = {"filter": f"starts-with(user_name,'{word.upper()}')", "include-total": "true"}
    page = get(site, "users", chosen | {"sort": "user_login_name desc", "inline": "true"})
    assert page["total"] == 3
    names = [entry["content"]["properties"]["user_name"] for entry in page["entries"]]
    assert names == sorted(people, reverse=True)
    first = get(site, "users", chosen | {"sort": "user_login_name desc", "items-per-page": "2"})
    following = next(link["href"] for link in first["links"] if link["rel"] == "next")
    second = site.http.get(following, headers=site.bearer() | {"Accept": "application/json"}).json()
    assert [entry["title"] for entry in second["entries"]] == [min(people).removesuffix("@demo")]
    refused = site.http.get(f"{site.repository}/users", params={"filter": "password='x'"}, headers=site.bearer())
    assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_NAME")


def make_cabinet(site: Site, owner: Person, name: str, viewer: Person | None = None) -> str:
    """Make a cabinet that the viewer may browse, too."""
    made = site.http.post(
        f"{site.repository}/cabinets", json={"properties": {"object_name": name}}, headers=site.bearer(owner)
    )
    assert made.status_code == 201, made.text
    cabinet_id: str = made.json()["properties"]["r_object_id"]
    levels = {owner: "Delete"} | ({viewer: "Browse"} if viewer else {})
    permitted = [{"accessor": person.id, "basic-permission": level} for person, level in levels.items()]
    address = f"{site.repository}/objects/{cabinet_id}/permission-set"
    assert site.http.put(address, json={"permitted": permitted}, headers=site.bearer(owner)).status_code == 200
    return cabinet_id


def missing_home(site: Site, user: Person, asker: Person, code: str = "E_UNKNOWN_OBJECT") -> str:
    refused = site.http.get(f"{site.repository}/users/{user.id}/home", headers=site.bearer(asker))
    assert (refused.status_code, refused.json()["code"]) == (404, code)
    message: str = refused.json()["message"]
    return message


def test_ours_9_the_home_of_a_user_is_the_oldest_cabinet_that_they_own_and_that_has_their_name(site: Site) -> None:
    owner, reader = site.world.person(), site.world.reader
    link = f"{site.names.linkrel_base}/default-folder"
    address = f"{site.base}{site.repository}/users/{owner.id}/home"
    assert {"rel": link, "href": address} in get(site, "currentuser", person=owner)["links"]
    without = missing_home(site, owner, owner)
    make_cabinet(site, site.world.writer, owner.name, reader)  # somebody else's
    elsewhere = make_cabinet(site, owner, f"{owner.name} 2", reader)
    below = site.http.post(
        f"{site.repository}/folders/{elsewhere}/folders",
        json={"properties": {"object_name": owner.name}},
        headers=site.bearer(owner),
    )
    assert below.status_code == 201, below.text
    assert missing_home(site, owner, owner) == without
    home, _ = (make_cabinet(site, owner, name, reader) for name in (owner.id, owner.name))
    shown = get(site, f"users/{owner.id}/home", person=reader)
    assert (shown["name"], shown["properties"]["r_object_id"]) == ("cabinet", home)
    assert shown == get(site, f"cabinets/{home}", person=reader)
    less = get(site, f"users/{owner.id.upper()}/home", {"view": "object_name", "links": "false"}, reader)
    assert ("title" in less["properties"], "links" in less) == (False, False)
    etag = site.http.get(address, headers=site.bearer(reader)).headers["ETag"]
    assert site.http.get(address, headers=site.bearer(reader) | {"If-None-Match": etag}).status_code == 304
    as_xml = site.http.get(address, headers=site.bearer(reader) | {"Accept": "application/xml"})
    assert lxml.etree.fromstring(as_xml.content).tag == f"{site.vocab}folder"


def test_ours_9_a_hidden_home_answers_like_none_and_a_namesake_inherits_none(site: Site) -> None:
    owner, reader = site.world.person(), site.world.reader
    without = missing_home(site, owner, reader)
    home = make_cabinet(site, owner, owner.name, reader)
    assert missing_home(site, owner, site.world.writer) == without
    assert get(site, f"users/{owner.id}/home", person=reader)["properties"]["r_object_id"] == home
    for stranger in (site.world.outsider.id, "nobody@demo", "x", "%00", "a/b", "\N{ZERO WIDTH SPACE}" * 400):
        refused = site.http.get(f"{site.repository}/users/{quote(stranger, safe='')}/home", headers=site.bearer(reader))
        assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_PERSON"), stranger
    with site.world.directory_db.begin() as cx:
        decisions.remove(cx, site.world.entry(owner), site.world.clock())
    missing_home(site, owner, reader, "E_UNKNOWN_PERSON")
    namesake = site.world.person(name=owner.name)
    assert missing_home(site, namesake, reader) == without


def test_ours_9_groups_are_listed_by_their_members(site: Site) -> None:
    word = site.world.word()
    member, outsider = site.world.person(), site.world.person()
    inner, outer, empty = (f"{name}-{word}" for name in ("inner", "outer", "empty"))
    site.world.group(inner, member)
    site.world.group(outer, outsider)
    site.world.group(empty)
    with site.world.directory_db.begin() as cx:
        groups = [
            entries.find_group(cx, site.world.names, f"{name}@demo") for name in (inner, outer, empty, "everyone")
        ]
        memberships.add_member(cx, groups[1], groups[0])
        for group in groups[:3]:
            memberships.add_member(cx, groups[3], group)

    def named(**parameters: str) -> list[str]:
        spelled = {name.replace("_", "-"): value for name, value in parameters.items()}
        answer = get(site, "groups", {"include-total": "true", **spelled})
        assert answer["total"] == len(answer["entries"])
        return [entry["title"].partition("@")[0] for entry in answer["entries"]]

    assert named(user_name=member.id) == [inner]
    assert named(user_name=member.id.upper(), recursive="false") == [inner]
    assert set(named(user_name=member.id, recursive="true")) == {inner, outer, "everyone"}
    assert set(named(group_name=f"{inner}@demo")) == {outer, "everyone"}
    assert set(named(group_name=f"{empty}@demo", recursive="true")) == {"everyone"}
    assert named(user_name=outsider.id, group_name=f"{inner}@demo") == [outer]
    both = named(user_name=member.id, group_name=f"{inner}@demo", recursive="true", sort="group_name")
    assert both == ["everyone", outer]
    assert named(user_name=member.id, recursive="true", filter=f"starts-with(group_name,'{inner}')") == [inner]
    first = get(site, "groups", {"user-name": member.id, "recursive": "true", "items-per-page": "2"})
    (following,) = [link["href"] for link in first["links"] if link["rel"] == "next"]
    rest = site.http.get(following, headers=site.bearer() | {"Accept": "application/json"}).json()
    assert len({entry["title"] for page in (first, rest) for entry in page["entries"]}) == 3
    for wrong in ({"user-name": "nobody@demo"}, {"group-name": f"none-{word}@demo"}):
        refused = site.http.get(f"{site.repository}/groups", params=wrong, headers=site.bearer())
        assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_PERSON")
    hidden = site.world.person(member=False)
    refused = site.http.get(f"{site.repository}/groups", params={"user-name": hidden.id}, headers=site.bearer())
    assert refused.status_code == 404, "who may not enter the repository does not exist there"
