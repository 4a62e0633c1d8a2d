"""Ours 23: what a body or a query says wrongly is refused, and the refusal says what."""

from typing import Any

import pytest

from tests.interface.by_rest import Rest, ticket
from tests.scenes import Site

TOKENINFO = "/authentication/oauth/tokeninfo"


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


@pytest.mark.parametrize("body", [None, {}, {"stringlist": ["b"]}, {"stringList": None}])
def test_a_list_that_is_not_there_empties_nothing(rest: Rest, body: Any) -> None:
    path = "/systemconfig/whitelist"
    rest.done("PUT", path, {"stringList": ["a"]})
    answer = rest("PUT", path, body)
    assert answer.status_code == 400
    assert "stringList" in answer.json()["error"]
    assert rest.done("GET", path) == {"stringList": ["a"]}


def test_only_a_user_who_is_not_there_has_the_code_of_users(rest: Rest) -> None:
    partition = rest.partition()
    bob, nobody = rest.user(partition, "bob")["id"], f"nobody@{partition}"
    group = rest.group(partition, "g")["id"]
    refused = {
        ("POST", f"/users/{bob}/roles"): 404,
        ("POST", f"/users/{bob}/memberof"): 404,
        ("POST", f"/groups/{group}/groups"): 404,
        ("POST", f"/groups/{group}/members"): 404,
        ("GET", f"/groups/{nobody}"): 404,
        ("GET", f"/roles/{nobody}"): 404,
        ("GET", f"/users/{nobody}"): 3007,
        ("POST", f"/users/{nobody}/roles"): 3007,
        ("POST", f"/groups/{group}/users"): 3007,
    }
    for (method, path), status in refused.items():
        answer = rest(method, path, {"stringList": [nobody]} if method == "POST" else None)
        assert (answer.status_code, answer.json()["status"]) == (404, status), path
    around = rest.done("GET", f"/users/{bob}")["location"].partition(",")[2]
    assert rest("PUT", f"/users/{bob}", {"location": f"ou=nowhere,{around}"}).json()["status"] == 404


def test_tokeninfo_below_rest_needs_no_resource(rest: Rest) -> None:
    site = rest.site
    token = site.issue(site.world.reader)["access_token"]
    with_resource = rest.done("POST", TOKENINFO, {"token": token, "resourceId": site.world.resource_id}, headers={})
    for body in ({"token": token}, {"token": token, "resourceId": None}, {"token": token, "resource_id": ""}):
        assert rest.done("POST", TOKENINFO, body, headers={}) == with_resource
    given = Rest(site, "v1")("POST", TOKENINFO, {"token": token}, headers={})
    assert given.status_code == 400, "the given address needs it, also if the same bytes were asked below rest"
    other = {"token": token, "resourceId": site.world.resource_id[::-1]}
    assert rest("POST", TOKENINFO, other, headers={}).json()["status"] == 400
    assert rest("POST", TOKENINFO, {"token": "nonsense"}, headers={}).status_code == 401


def test_tokeninfo_below_rest_says_that_there_is_no_token(rest: Rest) -> None:
    site = rest.site
    for body in ({}, {"token": None}, {"token": ""}, {"token": ticket(site, site.world.reader)}):
        answer = rest("POST", TOKENINFO, body, headers={})
        assert answer.status_code == 400, answer.text
        assert answer.json().keys() == {"status", "error", "errorDetails"}
        assert "token" in answer.json()["error"]
        assert "resource_id" not in answer.text


@pytest.mark.parametrize(("dialect", "details"), [("rest", "errorDetails"), ("v1", "error_details")])
def test_an_unknown_address_is_refused_in_its_dialect(site: Site, dialect: str, details: str) -> None:
    for path in ("/nonesuch", "/%2e%2e/%2e%2e/etc/passwd"):
        answer = Rest(site, dialect)("GET", path)
        assert (answer.status_code, answer.json().keys()) == (404, {"status", "error", details})


def test_a_parameter_said_twice_is_refused(rest: Rest) -> None:
    assert rest("GET", "/users?page_size=1&page_size=2").status_code == 400
    assert rest("GET", "/users?page_size=1&other=1&other=2").status_code == 200, "what is ignored may be repeated"


@pytest.mark.parametrize(
    "values",
    [
        [{"name": "mail", "values": ["a@x"]}, {"name": "mail", "values": ["b@x"]}],
        [{"name": "mail", "values": ["a@x"]}, {"name": "MAIL", "values": ["b@x"]}],
        [{"name": "userPassword", "values": ["Correct horse 1", "Correct horse 2"]}],
    ],
)
def test_an_attribute_is_said_once(rest: Rest, values: list[dict[str, Any]]) -> None:
    body = {"userPartitionID": rest.partition(), "name": "ann", "values": values}
    assert rest("POST", "/users", body).status_code == 400
    twice = {**body, "values": values[:1], "attributes": {values[0]["name"]: ["c@x"]}}
    assert rest("POST", "/users", twice).status_code == 400


@pytest.mark.parametrize(("dialect", "key"), [("rest", "stringList"), ("v1", "string_list")])
def test_a_refusal_spells_keys_as_the_caller_does(site: Site, dialect: str, key: str) -> None:
    answer = Rest(site, dialect)("PUT", "/systemconfig/whitelist", {"string_list": "a"})
    assert answer.status_code == 400
    assert f"`$.{key}`" in answer.json()["error"]


def test_a_new_entry_is_called_what_it_is(rest: Rest) -> None:
    for kind in ("user", "group", "role"):
        answer = rest("POST", f"/{kind}s", {"name": "nopart"})
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"A new {kind} has a name and a partition")


def test_an_id_agrees_with_the_name_and_the_partition(rest: Rest) -> None:
    one, other = rest.partition(), rest.partition()
    for body in (
        {"id": f"foo@{one}", "name": "bar"},
        {"id": "foo", "name": "bar", "userPartitionID": one},
        {"id": f"foo@{other}", "userPartitionID": one},
        {"id": f"foo@{other}", "name": "foo", "userPartitionID": one},
    ):
        assert rest("POST", "/users", body).status_code == 400, body
        assert rest("POST", "/groups", body).status_code == 400, body
    for number, body in enumerate(
        (
            {"id": f"u0@{one}", "name": "U0"},
            {"id": "u1", "name": "u1", "userPartitionID": one},
            {"id": f"u2@{one}", "userPartitionID": one},
            {"id": f"u3@{one}", "name": "u3", "userPartitionID": one},
            {"id": "u4", "userPartitionID": one},
            {"name": f"u5@{one}"},
        )
    ):
        assert rest.done("POST", "/users", body)["id"].lower() == f"u{number}@{one}".lower()
