"""Ours 23: administrators' programs find, make, change and remove OAuth clients, which the token endpoint obeys."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.interface.by_rest import Rest
from tests.scenes import Person, Site


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def client(rest: Rest, **more: Any) -> dict[str, Any]:
    """Make a client."""
    return rest.done("POST", "/oauthclients", {"id": rest.site.world.word(), **more})


def ask(rest: Rest, client: dict[str, Any], person: Person | None = None) -> httpx.Response:
    """Ask for a token by the client."""
    return rest.site.ask_token(
        person or rest.site.world.reader, client_id=client["id"], client_secret=client["secret"] or None
    )


def test_a_client_gets_a_secret_that_only_the_first_answer_shows(rest: Rest) -> None:
    made = rest("POST", "/oauthclients", {"id": rest.site.world.word(), "description": "D", "confidential": True})
    assert made.status_code == 201
    shown = made.json()
    assert len(shown["secret"]) == 43, "256 bits"
    assert ask(rest, shown).status_code == 200
    assert ask(rest, shown | {"secret": "wrong"}).json()["error"] == "invalid_client"
    assert rest.done("GET", f"/oauthclients/{shown['id']}") == shown | {"secret": None}
    kept = rest.site.world.secret_of_client(shown["id"])
    assert kept is not None
    assert shown["secret"] not in kept


def test_a_client_is_also_a_user_of_the_clients_partition(rest: Rest) -> None:
    shown, partition = client(rest), rest.site.directory_names.clients_partition
    user = rest.done("GET", f"/users/{shown['id']}@{partition}")
    assert (user["uuid"], user["location"]) == (shown["uuid"], shown["location"])
    body = {"userPartitionID": partition, "values": [{"name": "oTType", "values": ["ServiceUser"]}]}
    assert rest("PATCH", f"/users/{shown['id']}@{partition}", body).status_code == 200
    assert rest.done("GET", f"/oauthclients/{shown['id']}@{partition}")["uuid"] == shown["uuid"]


def test_a_secret_may_be_chosen_and_changed_and_given_up(rest: Rest) -> None:
    shown = client(rest, secret="a secret of my own")
    assert shown["secret"] == "a secret of my own"
    kept = rest.site.world.secret_of_client(shown["id"])
    assert kept is not None
    assert kept.startswith("$argon2id$")
    assert ask(rest, shown).status_code == 200
    address = f"/oauthclients/{shown['id']}"
    assert rest.done("PATCH", address, {"secret": "another one"})["secret"] == "another one"
    assert ask(rest, shown).json()["error"] == "invalid_client"
    public = rest.done("PATCH", address, {"confidential": False})
    assert (public["confidential"], public["secret"]) == (False, None)
    assert ask(rest, public).status_code == 200
    again = rest.done("PATCH", address, {"confidential": "true"})
    assert ask(rest, again).status_code == 200
    assert rest.done("PATCH", address, {"confidential": True, "description": "x"})["secret"] is None, "it has one"


def test_lifetimes_are_numbers_or_empty_and_are_obeyed(rest: Rest) -> None:
    shown = client(rest, accessTokenLifeTime=100, refreshTokenLifeTime="200", authCodeLifeTime="")
    assert (shown["accessTokenLifeTime"], shown["refreshTokenLifeTime"]) == (100, 200)
    reply = ask(rest, shown).json()
    assert reply["expires_in"] == 100
    more = {"client_id": shown["id"], "client_secret": shown["secret"]}
    assert rest.site.refresh(reply["refresh_token"], **more).json()["expires_in"] == 100
    with rest.site.world.clock.shift(150):
        assert rest.site.refresh(reply["refresh_token"], **more).json()["expires_in"] == 50, "the grant ends then"
    with rest.site.world.clock.shift(201):
        assert rest.site.refresh(reply["refresh_token"], **more).json()["error"] == "invalid_grant"
    usual = rest.done("PATCH", f"/oauthclients/{shown['id']}", {"accessTokenLifeTime": 0})["accessTokenLifeTime"]
    assert usual == rest.site.installation.settings.directory.access_token_seconds
    assert rest("POST", "/oauthclients", {"id": "x", "accessTokenLifeTime": -1}).status_code == 400


@pytest.mark.parametrize("confidential", [True, False])
def test_a_client_without_refresh_tokens_gets_none_and_those_that_it_has_end(rest: Rest, confidential: bool) -> None:
    shown = client(rest, confidential=confidential)
    reply = ask(rest, shown).json()
    rest.done("PATCH", f"/oauthclients/{shown['id']}", {"allowRefreshToken": False})
    more = {"client_id": shown["id"], "client_secret": shown["secret"]}
    assert rest.site.refresh(reply["refresh_token"], **more).json()["error"] == "invalid_grant"
    assert "refresh_token" not in ask(rest, shown).json()


def test_only_users_of_its_partitions_sign_in_by_a_client(rest: Rest) -> None:
    world = rest.site.world
    shown = client(rest, authScopes=[world.partition.upper()])
    reply = ask(rest, shown).json()
    assert reply["access_token"]
    rest.done("PUT", f"/oauthclients/{shown['id']}", {"authScopes": [rest.partition()]})
    assert ask(rest, shown).json()["error"] == "invalid_grant"
    more = {"client_id": shown["id"], "client_secret": shown["secret"]}
    assert rest.site.refresh(reply["refresh_token"], **more).json()["error"] == "invalid_grant"
    rest.done("PUT", f"/oauthclients/{shown['id']}", {"authScopes": []})
    assert ask(rest, shown).status_code == 200


def test_what_is_set_of_a_client_is_shown_and_the_rest_stays(rest: Rest) -> None:
    custom = [{"type": "t", "name": "n", "value": "v"}]
    shown = client(rest, redirectURLs=["https://a/"], allowedScopes=["x"], customAttributes=custom, logoutMethod="GET")
    assert (shown["redirectURLs"], shown["allowedScopes"], shown["customAttributes"]) == (["https://a/"], ["x"], custom)
    changed = rest.done("PATCH", f"/oauthclients/{shown['id']}", {"description": "New", "defaultScopes": ["y"]})
    assert changed == shown | {"description": "New", "defaultScopes": ["y"], "secret": None}
    whole = rest.done("PUT", f"/oauthclients/{shown['id']}", changed | {"redirectURLs": []})
    assert whole == changed | {"redirectURLs": []}


def test_a_client_says_whether_it_acts_for_others(rest: Rest) -> None:
    shown = client(rest, allowImpersonation=True, impersonateList=["ann@demo"])
    address = f"/oauthclients/{shown['id']}/impersonation"
    assert rest.done("GET", address) == {"allowImpersonation": True, "impersonateList": ["ann@demo"]}
    wanted = {"allowImpersonation": False, "impersonateList": []}
    assert rest.done("PUT", address, wanted) == wanted


def test_two_writers_of_one_client_can_notice(rest: Rest) -> None:
    shown = client(rest)
    address = f"/oauthclients/{shown['id']}"
    state = rest("GET", address).headers["ETag"]
    assert rest("PATCH", address, {"allowRefreshToken": False}, headers=rest.matching(state)).status_code == 200
    assert rest("PATCH", address, {"allowRefreshToken": True}, headers=rest.matching(state)).status_code == 412


def test_a_client_is_renamed_and_removed_unless_people_need_it(rest: Rest) -> None:
    shown = client(rest)
    renamed = rest.done("PATCH", f"/oauthclients/{shown['id']}", {"name": shown["id"] + "-2"})
    assert renamed["id"] == shown["id"] + "-2"
    reply = ask(rest, renamed | {"secret": shown["secret"]}).json()
    assert rest("PATCH", f"/oauthclients/{renamed['id']}", {"name": "again"}).status_code == 409, "it has grants"
    assert rest("DELETE", f"/oauthclients/{renamed['id']}").status_code == 204
    assert rest.site.tokeninfo(reply["access_token"]).status_code == 410
    assert rest("GET", f"/oauthclients/{renamed['id']}").status_code == 404


def test_no_user_elsewhere_is_a_client(rest: Rest) -> None:
    assert rest("GET", f"/oauthclients/{rest.site.world.reader.id}").status_code == 404
    assert rest("DELETE", f"/oauthclients/{rest.site.world.reader.id}").status_code == 404


def test_clients_are_listed_by_page(rest: Rest) -> None:
    word = rest.site.world.word()
    made = [rest.done("POST", "/oauthclients", {"name": f"{word}-{number}"})["id"] for number in range(3)]
    first = rest.done("GET", "/oauthclients", params={"where_filter": word, "page_size": 2})
    more = {"where_filter": word, "page_size": 2, "next_page_cookie": first["nextPageCookie"]}
    second = rest.done("GET", "/oauthclients", params=more)
    assert [each["id"] for each in first["clients"] + second["clients"]] == made
    assert second["nextPageCookie"] is None
    assert all(each["secret"] is None for each in first["clients"])


@pytest.mark.parametrize("dialect", ["rest", "v1"])
def test_both_dialects_read_both_spellings(site: Site, dialect: str) -> None:
    rest = Rest(site, dialect)
    shown = client(rest, redirect_urls=["a"], accessTokenLifeTime="5", refresh_token_life_time=6)
    keys = ("redirectURLs", "accessTokenLifeTime", "refreshTokenLifeTime")
    if dialect == "v1":
        keys = ("redirect_urls", "access_token_life_time", "refresh_token_life_time")
    assert [shown[key] for key in keys] == [["a"], 5, 6]


def test_a_client_with_the_name_of_an_address_is_reached_by_its_encoded_name(rest: Rest) -> None:
    """ours 25: a Client ID Metadata Document's address is a client_id."""
    name = f"https://{rest.site.world.word()}.example/app/meta data?v=1+2#x%2Fy"
    longer, shorter = name + "/impersonation", name.rpartition("/")[0]
    made = {each: rest.done("POST", "/oauthclients", {"id": each}) for each in (name, longer, shorter)}
    for each, shown in made.items():
        address = f"/oauthclients/{quote(each, safe='')}"
        assert rest.done("GET", address) == shown | {"secret": None}
        assert rest.done("GET", address.replace("%2F", "%2f"))["uuid"] == shown["uuid"]
        rest.done("PUT", f"{address}/impersonation", {"allowImpersonation": each == longer})
        partition = rest.site.directory_names.clients_partition
        assert rest.done("GET", f"{address}@{partition}")["allowImpersonation"] is (each == longer)
        assert rest.done("PATCH", address, {"description": each})["uuid"] == shown["uuid"]
        assert rest.done("GET", f"/users/{quote(each, safe='')}@{partition}")["description"] == each
    assert rest("GET", f"/oauthclients/{name}").status_code == 404, "not encoded, they are parts of a path"
    rest.done("DELETE", f"/oauthclients/{quote(name, safe='')}")
    assert rest("GET", f"/oauthclients/{quote(name, safe='')}").status_code == 404
    assert rest.done("GET", f"/oauthclients/{quote(longer, safe='')}")["uuid"] == made[longer]["uuid"]
