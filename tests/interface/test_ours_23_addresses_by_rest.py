"""Ours 23: the addresses of both dialects, aliases of the prefix, stubs, and what is not offered."""

from contextlib import closing

import pytest
import structlog.testing

from muniment.directory.api import routes
from muniment.directory.options import DirectoryNames
from tests.interface.by_rest import Rest
from tests.scenes import Loop, Site

NOT_OFFERED = (
    "authentication/headers",
    "authentication/token",
    "authentication/resource/http",
    "identityproviderprofiles",
    "tenants",
)


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def test_both_dialects_have_the_same_addresses() -> None:
    rest, old = routes.table(DirectoryNames()), routes.older_table(DirectoryNames())
    methods = {
        prefix: {
            (address.path.removeprefix(prefix), method)
            for table in (rest, old)
            for address in table.addresses
            for method in address.operations
            if address.path.startswith(prefix)
        }
        for prefix in ("/rest", "/v1")
    }
    only_v1 = {("/authentication/tokeninfo", "POST")}
    assert methods["/rest"] - methods["/v1"] == {("/openapi.json", "GET")}
    assert methods["/v1"] - methods["/rest"] == only_v1
    assert len(methods["/rest"]) > 60


def test_tokeninfo_and_revocation_answer_below_rest_too(rest: Rest) -> None:
    site = rest.site
    token = site.issue(site.world.reader)["access_token"]
    body = {"token": token, "resourceId": site.world.resource_id}
    answer = rest("POST", "/authentication/oauth/tokeninfo", body, headers={})
    assert answer.status_code == 200
    given = site.tokeninfo(token).json()
    shown = answer.json()
    assert (shown["tokenId"], shown["scopes"], shown["dataMap"]) == (
        given["token_id"],
        given["scopes"],
        given["data_map"],
    )
    assert shown["user"]["userPartitionID"] == given["user"]["user_partition_id"]
    assert rest("DELETE", f"/authentication/oauth/{token}", headers={}).status_code == 204
    assert rest("POST", "/authentication/oauth/tokeninfo", body, headers={}).status_code == 410


@pytest.mark.parametrize("path", NOT_OFFERED)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_not_offered_is_refused_with_a_json_object(rest: Rest, method: str, path: str) -> None:
    for accept in ("*/*", "application/json;charset=utf-8", "text/html, image/gif, *; q=.2, */*; q=.2"):
        headers = {"Authorization": f"Bearer {rest.site.administrator()}", "Accept": accept}
        answer = rest(method, f"/{path}", headers=headers)
        assert answer.status_code == 404
        assert answer.json().keys() == {"status", "error", "errorDetails"}


def test_stubs_answer_and_are_logged(rest: Rest) -> None:
    with structlog.testing.capture_logs() as logged:
        for dialect in ("rest", "v1"):
            call = Rest(rest.site, dialect)
            assert next(iter(call.done("GET", "/licensemanagement/licenses").values())) == {"_licenses": []}
            handler = call.done("GET", "/authhandlers/anything")
            assert (handler["_name"], handler["_enabled"], handler["_priority"]) == ("anything", False, "0")
            assert (
                call("POST", "/consolidation", {"objectToConsolidate": "cn=x", "resourceList": []}).status_code == 204
            )
    assert sum(line["event"] == "stub answered" for line in logged) == 6
    assert rest("POST", "/authhandlers", {"_name": "x"}).status_code == 405
    assert rest("POST", "/licensemanagement/licenses", {}).status_code == 405
    user = rest.user(rest.partition(), "ann")
    assert rest.done("GET", f"/users/{user['id']}/twofactorstate") == {"enabled": False, "supported": False}
    assert rest("PUT", f"/users/{user['id']}/twofactorstate", {"enabled": "true"}).status_code == 400


def test_the_description_of_the_directory_is_served_by_itself(rest: Rest) -> None:
    document = rest.done("GET", "/openapi.json", headers={})
    prefix = rest.site.directory
    assert all(path.startswith((prefix, "/.well-known/")) for path in document["paths"])
    assert {f"{prefix}/rest/users", f"{prefix}/v1/users", f"{prefix}/login"} <= document["paths"].keys()
    properties = document["components"]["schemas"]["RestUserObject"]["properties"]
    assert {"userPartitionID", "originUUID", "urlId"} <= properties.keys()
    assert "user_partition_id" in document["components"]["schemas"]["UserObject"]["properties"]


def test_the_directory_answers_below_its_aliases_too(site: Site, loop: Loop) -> None:
    alias = "otdstenant/acme/otdsws"
    override = f"directory.prefix_aliases={alias}"
    with closing(Site(site.world, site.kind, loop, override)) as aliased:
        headers = {"Authorization": f"Bearer {aliased.administrator()}"}
        for prefix in (aliased.directory, f"/{alias}"):
            assert aliased.http.get(f"{prefix}/rest/currentuser", headers=headers).json()["user"]["name"] == "admin"
            assert aliased.http.get(f"{prefix}/v1/currentuser").status_code == 401
            assert aliased.http.get(f"{prefix}/rest/nothing").json()["status"] == 404
            assert aliased.http.get(f"{prefix}/rest/currentuser").headers["cache-control"] == "no-store"
        form = {"grant_type": "password", "client_id": site.world.client_id, "scope": site.world.scope}
        form |= {"username": site.world.reader.id, "password": site.world.reader.password}
        token = aliased.http.post(f"/{alias}/login", data=form).json()["access_token"]
        assert aliased.tokeninfo(token, address=f"/{alias}/v1/authentication/oauth/tokeninfo").status_code == 200
    assert site.http.get(f"/{alias}/rest/currentuser").status_code == 404
