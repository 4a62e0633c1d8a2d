"""Ours 23: administrators' programs find, make, change, activate and remove resources, and say whom they let in."""

import base64
import secrets
import uuid
from typing import Any

import pytest

from muniment.directory.api.rest import access_roles
from muniment.directory.entries.table import ADMINISTRATORS
from tests.interface.by_rest import Rest
from tests.scenes import Site


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def resource(rest: Rest, **more: Any) -> dict[str, Any]:
    """Make a resource."""
    name = f"App {rest.site.world.word()}"
    return rest.done("POST", "/resources", {"resourceName": name, **more})


def own_secret() -> str:
    return base64.b64encode(secrets.token_bytes(16)).decode()


def members(role: dict[str, Any], kind: str) -> list[str]:
    return [each["displayName"] for each in role["accessRoleMembers"][kind]]


def test_a_resource_is_made_with_its_role_and_the_user_who_stands_for_it(rest: Rest) -> None:
    name = f"App {rest.site.world.word()}"
    made = rest("POST", "/resources", {"resourceName": name, "description": "D", "allowImpersonation": "true"})
    assert made.status_code == 201
    shown = made.json()
    assert (shown["resourceName"], shown["id"], shown["resourceState"]) == (name, name, 0)
    assert shown["allowImpersonation"] is True
    assert shown["resourceDN"].startswith(f"cn={name},ou=Resources,dc=")
    role = f"Access to {name}"
    assert shown["accessRoleList"] == [
        {
            "id": role,
            "name": role,
            "description": f"Default access role for resource {name}",
            "status": "enabled",
        }
    ]
    for part in (name, shown["resourceID"], name.replace(" ", "+")):
        assert rest.done("GET", f"/resources/{part}") == shown
    stand_in = f"{shown['resourceID']}@{rest.site.directory_names.administration_partition}"
    assert rest.done("GET", f"/users/{stand_in}")["id"] == stand_in
    assert rest("DELETE", f"/resources/{name}").status_code == 204
    for path in (f"/resources/{name}", f"/users/{stand_in}", f"/accessroles/{role}"):
        assert rest("GET", path).status_code == 404


def test_the_user_who_stands_for_a_resource_comes_and_goes_with_it(rest: Rest) -> None:
    shown = resource(rest)
    stand_in = f"/users/{shown['resourceID']}@{rest.site.directory_names.administration_partition}"
    for method, body in (("DELETE", None), ("PUT", {"name": "another"})):
        refused = rest(method, stand_in, body)
        assert refused.status_code == 409
        assert shown["resourceName"] in refused.json()["error"]
    assert rest.done("PUT", stand_in, {"description": "may be changed"})["description"] == "may be changed"
    assert rest("DELETE", f"/resources/{shown['resourceName']}").status_code == 204
    assert rest("GET", stand_in).status_code == 404


def test_what_programs_write_to_a_resource_is_kept_and_shown(rest: Rest) -> None:
    shown = resource(rest, logoutURL="https://app/out", connectorid="cs", logonUXVersion=1)
    assert (shown["logoutURL"], shown["connectorid"], shown["logonUXVersion"]) == ("https://app/out", "cs", 1)
    mapping = [{"sourceAttr": ["mail"], "destAttr": "email", "mappingFormat": "%s"}]
    whole = shown | {"userAttributeMapping": mapping, "displayName": "Shown", "impersonateList": None}
    changed = rest.done("PUT", f"/resources/{shown['resourceName']}", whole)
    assert changed == shown | {"userAttributeMapping": mapping, "displayName": "Shown"}
    empty = rest("PUT", f"/resources/{shown['resourceName']}", {"resourceName": "", "displayName": "Other"})
    assert (empty.status_code, rest.done("GET", f"/resources/{shown['resourceName']}")) == (400, changed)
    renamed = rest.done("PUT", f"/resources/{shown['resourceID']}", {"resourceName": shown["resourceName"] + " 2"})
    assert renamed["accessRoleList"][0]["name"] == f"Access to {shown['resourceName']} 2"


def test_a_resource_may_come_with_its_identity_and_secret(rest: Rest) -> None:
    identity, secret = str(uuid.uuid4()), own_secret()
    shown = resource(rest, resourceID=identity, secretKey=secret)
    assert (shown["resourceID"], shown["resourceState"]) == (identity, 1)
    assert rest("POST", f"/resources/{identity}/activate", {}).status_code == 409
    again = rest("POST", "/resources", {"resourceName": "Another", "resourceID": identity})
    assert again.status_code == 409
    for wrong in ({"resourceID": "no uuid"}, {"secretKey": "short"}):
        assert rest("POST", "/resources", {"resourceName": "Wrong", **wrong}).status_code == 400


def test_a_resource_is_deactivated_by_its_own_secret_and_activated_again(rest: Rest) -> None:
    shown = resource(rest)
    address, http = f"/resources/{shown['resourceID']}", rest.site.http
    for sent in (
        {"authenticator": True},
        {"secureSecret": True, "authenticator": "other"},
        {"secureSecret": "other", "authenticator": True},
    ):
        secret = rest.done("POST", f"{address}/activate", {})["secretKey"]
        body = {name: secret if value is True else value for name, value in sent.items()}
        wrong = http.post(f"{rest.site.directory}/rest{address}/deactivate", json={"secureSecret": "wrong"})
        assert wrong.status_code == 401
        done = http.post(f"{rest.site.directory}/rest{address}/deactivate", json=body)
        assert done.status_code == 204, "no administrator is asked for"
        assert rest.done("GET", address)["resourceState"] == 0


def test_the_status_ends_sessions_and_new_sign_ins(rest: Rest) -> None:
    site, shown = rest.site, resource(rest)
    name = shown["resourceName"]
    assert rest("PUT", f"/resources/{name}/status", {"isActivated": "true"}).status_code == 204
    person = site.world.person()
    rest.done("POST", f"/accessroles/Access to {name}/members", {"users": [{"name": person.id, "location": ""}]})
    scope = f"resource:{name.replace(' ', '+')}"
    token = site.ask_token(person, scope=scope).json()["access_token"]
    assert site.tokeninfo(token, shown["resourceID"]).status_code == 200
    assert rest("PUT", f"/resources/{name}/status", {"isAuthenticationEnabled": False}).status_code == 204
    assert site.tokeninfo(token, shown["resourceID"]).status_code == 410
    assert site.ask_token(person, scope=scope).json()["error"] == "invalid_scope"
    assert rest.done("GET", f"/resources/{name}/status") == {
        "isActivated": True,
        "isAuthenticationEnabled": False,
        "isSynchronizationEnabled": False,
    }
    administration = site.directory_names.administration_resource
    assert rest("PUT", f"/resources/{administration}/status", {"isActivated": False}).status_code == 400


def test_a_resource_says_whether_others_act_there(rest: Rest) -> None:
    shown = resource(rest)
    address = f"/resources/{shown['resourceName']}/impersonation"
    assert rest.done("GET", address) == {"allowImpersonation": False, "impersonateList": []}
    wanted = {"allowImpersonation": True, "impersonateList": ["ann@demo"]}
    assert rest.done("PUT", address, wanted) == wanted
    assert rest.done("GET", f"/resources/{shown['resourceName']}")["impersonateList"] == ["ann@demo"]


def test_a_resource_that_guards_a_repository_stays(rest: Rest) -> None:
    refused = rest("DELETE", f"/resources/{rest.site.world.resource_name}")
    assert refused.status_code == 409
    assert rest.site.world.repository in refused.json()["error"]
    administration = rest.site.directory_names.administration_resource
    assert rest("DELETE", f"/resources/{administration}").status_code == 409


def test_resources_and_roles_are_listed_by_page_and_by_the_beginning_of_their_names(rest: Rest) -> None:
    word = rest.site.world.word()
    made = [rest.done("POST", "/resources", {"resourceName": f"{word} {number}"}) for number in range(5)]
    for path, key in (("/resources", "resourceConfigList"), ("/accessroles", "accessRoles")):
        found: list[str] = []
        cookie, pages = "", 0
        while cookie is not None:
            more = {"next_page_cookie": cookie} if cookie else {}
            page = rest.done("GET", path, params={"where_filter": word, "page_size": "2", **more})
            found += [each["id"] for each in page[key]]
            cookie, pages = page["nextPageCookie"], pages + 1
        assert pages == 3
        assert [name.removeprefix("Access to ") for name in found] == [each["id"] for each in made]
        anywhere = rest.done("GET", path, params={"where_filter": f"*{word[1:]} 3"})
        assert [each["id"].removeprefix("Access to ") for each in anywhere[key]] == [f"{word} 3"]


@pytest.mark.parametrize("pattern", ["Access to {}", "access TO {} 3", "{}", "Access*{}", "*to {} 3"])
def test_a_role_is_found_by_the_beginning_of_its_whole_name(rest: Rest, pattern: str) -> None:
    word = rest.site.world.word()
    rest.done("POST", "/resources", {"resourceName": f"{word} 3"})
    roles = rest.done("GET", "/accessroles", params={"where_filter": pattern.format(word)})["accessRoles"]
    assert [each["name"] for each in roles] == [f"Access to {word} 3"]


@pytest.mark.parametrize("pattern", ["Acc", "Access to", "access to "])
def test_all_roles_begin_alike(rest: Rest, pattern: str) -> None:
    every = rest.listed("/accessroles", "accessRoles")
    assert rest.listed("/accessroles", "accessRoles", where_filter=pattern) == every


def test_a_role_takes_five_kinds_of_members(rest: Rest) -> None:
    names, partition = rest.site.directory_names, rest.partition()
    rest.user(partition, "ann")
    rest.done("POST", "/groups", {"userPartitionID": partition, "name": "staff"})
    rest.done("POST", "/roles", {"userPartitionID": partition, "name": "readers"})
    unit = rest.done("POST", "/orgunits", {"userPartitionID": partition, "name": "sales"})["location"]
    role = f"/accessroles/Access to {resource(rest)['resourceName']}"
    for body in (
        {"users": [{"name": f"ann@{partition}", "location": ""}]},
        {"groups": [{"name": f"staff@{partition}"}], "roles": [{"name": f"readers@{partition}"}]},
        {"userPartitions": [{"name": names.clients_partition, "location": ""}]},
        {"organizationalUnits": [{"name": "sales", "location": unit}]},
    ):
        for _ in range(2):
            assert rest("POST", f"{role}/members", body).status_code == 204, "whoever is in it may be named again"
    shown = rest.done("GET", role)
    assert members(shown, "users") == [f"ann@{partition}"]
    assert [each["name"] for each in shown["accessRoleMembers"]["groups"]] == ["staff"]
    assert members(shown, "roles") == [f"readers@{partition}"]
    assert members(shown, "userPartitions") == [names.clients_partition]
    assert [each["location"] for each in shown["accessRoleMembers"]["organizationalUnits"]] == [unit]
    assert all(each["userPartition"] for kind in shown["accessRoleMembers"].values() for each in kind)
    assert rest("POST", f"{role}/members/deletionset", {"users": [{"name": f"ann@{partition}"}]}).status_code == 204
    assert members(rest.done("GET", role), "users") == []
    assert rest("POST", f"{role}/members", {"users": [{"name": "nobody@nowhere"}]}).status_code == 404


def test_a_role_gets_no_more_members_than_can_be_sent_back(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = rest.partition()
    role = f"/accessroles/Access to {resource(rest)['resourceName']}"
    named = [{"name": rest.user(partition, name)["id"]} for name in ("ann", "ben", "cid")]
    monkeypatch.setattr(access_roles, "MOST", 2)
    assert rest("POST", f"{role}/members", {"users": named[:2]}).status_code == 204
    for method, path, body in (
        ("POST", f"{role}/members", {"users": named[2:]}),
        ("PUT", role, {"accessRoleMembers": {"userPartitions": [{"name": partition}]}}),
    ):
        refused = rest(method, path, body)
        assert refused.status_code == 413
        assert "at most 2 direct members" in refused.text
    whole = rest.done("GET", role)
    assert members(rest.done("PUT", role, whole), "users") == [f"ann@{partition}", f"ben@{partition}"]
    monkeypatch.setattr(access_roles, "MOST", 1)
    assert rest("POST", f"{role}/members", {"users": named[:1]}).status_code == 204, "who is in it already"
    assert members(rest.done("PUT", role, {"accessRoleMembers": {"users": named[:1]}}), "users") == [f"ann@{partition}"]


def test_the_whole_role_is_sent_back_with_more_members_or_fewer(rest: Rest) -> None:
    partition = rest.partition()
    rest.user(partition, "ann")
    role = f"/accessroles/Access to {resource(rest)['resourceName']}"
    rest.done("POST", f"{role}/members", {"users": [{"name": f"ann@{partition}"}]})
    whole = rest.done("GET", role)
    location = rest.done("GET", f"/partitions/{partition}")["location"]
    whole["accessRoleMembers"]["organizationalUnits"].append(
        {"location": location, "name": location, "userPartition": None}
    )
    changed = rest.done("PUT", role, whole)
    assert members(changed, "userPartitions") == [partition], "a partition may be named as a unit, by its location"
    assert members(changed, "users") == [f"ann@{partition}"]
    fewer = rest.done("PUT", role, {"accessRoleMembers": {"users": []}, "description": "Few"})
    assert (members(fewer, "users"), members(fewer, "userPartitions")) == ([], [partition])
    assert fewer["description"] == "Few"


def test_attributes_of_a_role_are_kept_each_by_its_name(rest: Rest) -> None:
    role = f"/accessroles/Access to {resource(rest)['resourceName']}"
    rest.done("PUT", f"{role}/attributes", {"attributes": [{"name": "pushAllGroups", "values": ["True"]}]})
    changed = rest.done("PUT", f"{role}/attributes", {"attributes": [{"name": "other", "values": [1, "b"]}]})
    assert changed["attributeList"] == [
        {"name": "pushAllGroups", "values": ["True"]},
        {"name": "other", "values": ["1", "b"]},
    ]


def test_the_administrators_stay_in_the_role_of_the_administration(rest: Rest) -> None:
    role = f"/accessroles/Access to {rest.site.directory_names.administration_resource}"
    group = rest.done("GET", role)["accessRoleMembers"]["groups"]
    assert rest("PUT", role, {"accessRoleMembers": {"groups": []}}).status_code == 409
    assert rest("POST", f"{role}/members/deletionset", {"groups": group}).status_code == 409
    assert rest.done("GET", role)["accessRoleMembers"]["groups"] == group


@pytest.mark.parametrize("dialect", ["rest", "v1"])
def test_both_dialects_read_both_spellings(site: Site, dialect: str) -> None:
    rest = Rest(site, dialect)
    for key in ("resourceName", "resource_name", "name"):
        name = site.world.word()
        shown = rest.done("POST", "/resources", {key: name, "displayName": "D", "resource_type": "cs"})
        assert shown["resourceName" if dialect == "rest" else "resource_name"] == name
        assert shown["displayName" if dialect == "rest" else "display_name"] == "D"
        assert shown["resourceType" if dialect == "rest" else "resource_type"] == "cs"


def test_the_user_who_stands_for_a_resource_gives_it_rights(rest: Rest) -> None:
    """A program of the field puts that user into the administrators' group."""
    shown = resource(rest)
    names = rest.site.directory_names
    group = f"{ADMINISTRATORS}@{names.administration_partition}"
    rest.done("POST", f"/users/{shown['resourceID']}/memberof", {"stringList": [group]})
    assert rest("DELETE", f"/resources/{shown['resourceName']}").status_code == 204
