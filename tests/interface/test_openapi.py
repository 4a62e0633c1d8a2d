"""`GET /openapi.json`: the document of all addresses is the running application's own, and true of its answers."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack, closing
from typing import Any

import httpx
import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from starlette.routing import Route

from muniment import app
from muniment.front.halves import Halves
from muniment.installation import backends
from muniment.web.answers.responses import Endpoint
from tests.scenes import Loop, Site


@pytest.fixture
def document(site: Site) -> dict[str, Any]:
    answer = site.http.get("/openapi.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    written: dict[str, Any] = answer.json()
    return written


def opened(site: Site, loop: Loop) -> list[Route]:
    """Every route of the application, without the spellings with a suffix, which the document says in one sentence."""

    async def routes() -> list[Route]:
        async with AsyncExitStack() as closing:
            return await app._open_halves(Halves(site.installation, site.world.clock, backends.reader), closing)

    return [route for route in loop.run(routes()) if route.include_in_schema]


def template(path: str) -> str:
    """A route's path as OpenAPI spells it."""
    return path.replace(":path}", "}")


def fits(document: Mapping[str, Any], operation: Mapping[str, Any], answer: httpx.Response) -> None:
    """Check an answer against what the document says of it."""
    described = operation["responses"][str(answer.status_code)]
    if "$ref" in described:
        described = document["components"]["responses"][described["$ref"].rpartition("/")[2]]
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = described["content"][media_type]["schema"]
    jsonschema_rs.validator_for({"components": document["components"], **schema}).validate(answer.json())
    if answer.status_code >= 400 and "code" in answer.json():
        assert f"`{answer.json()['code']}`: " in described["description"]


def test_it_is_what_openapi_3_1_asks_for(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    assert not OPENAPI_31_VALIDATOR.is_valid({**document, "paths": {"no slash": {}}})


def test_every_address_and_method_that_answers_is_in_it_and_no_other(
    site: Site, loop: Loop, document: dict[str, Any]
) -> None:
    answering = {
        (method.lower(), template(route.path))
        for route in opened(site, loop)
        if isinstance(route.app, Endpoint) and "{rest:path}" not in route.path
        for method in route.app._methods
    }
    assert len(answering) > 50
    assert {(method, path) for path, item in document["paths"].items() for method in item} == answering


def test_it_lists_the_status_of_every_refusal(site: Site, loop: Loop, document: dict[str, Any]) -> None:
    for route in opened(site, loop):
        if isinstance(route.app, Endpoint) and "{rest:path}" not in route.path:
            statuses = {str(said.status) for said in route.app._table.values()}
            for operation in document["paths"][template(route.path)].values():
                assert statuses <= operation["responses"].keys()


def test_each_operation_says_in_a_sentence_what_it_does(document: dict[str, Any]) -> None:
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert [one["operationId"] for one in operations if not one["summary"].endswith(".")] == []
    assert len({one["operationId"] for one in operations}) == len(operations)
    parameters = [parameter for one in operations for parameter in one["parameters"]]
    assert [one["name"] for one in parameters if not one["description"].endswith(".")] == []
    for one in operations:
        told = [(parameter["in"], parameter["name"]) for parameter in one["parameters"]]
        assert len(set(told)) == len(told)


def test_its_names_are_those_that_are_set(site: Site, document: dict[str, Any]) -> None:
    below = f"/{site.names.prefix}/repositories/{{repository}}"
    made = document["paths"][f"{below}/objects"]["post"]
    for content in (made["requestBody"]["content"], made["responses"]["201"]["content"]):
        assert {f"{site.names.media_type}+json", f"{site.names.media_type}+xml"} <= content.keys()
    assert site.names.vocab_namespace in json.dumps(document["paths"][f"{below}/search"]["post"]["requestBody"])
    form = document["paths"][site.login]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    assert f'"{site.directory_names.form_prefix}csrf"' in json.dumps(form)
    cookie = document["components"]["securitySchemes"]["ticket"]["name"]
    assert cookie == (site.directory_names.ticket_cookie or "__Host-muniment_ticket")


def test_its_server_is_the_address_that_was_asked(site: Site, loop: Loop, document: dict[str, Any]) -> None:
    assert [server["url"] for server in document["servers"]] == [site.base]
    base, other = "https://files.example.org/deep", "https://other.example.org"
    with closing(
        Site(site.world, site.kind, loop, f"web.base_address={base}", f"web.other_addresses={other}")
    ) as proxied:
        for asked in (base, other, base):
            answer = proxied.http.get("/openapi.json", headers={"Host": asked.split("/")[2]})
            assert [server["url"] for server in answer.json()["servers"]] == [asked]
        assert f'"{base}/openapi.json"' in proxied.http.get("/").text


def test_caches_may_keep_it(site: Site) -> None:
    assert "max-age" in site.http.get("/openapi.json").headers["cache-control"]


def test_what_is_answered_fits_it(site: Site, document: dict[str, Any]) -> None:
    below, shown = site.repository, f"/{site.names.prefix}/repositories/{{repository}}"
    made = site.create("described", b"some words")
    asked = {
        **{
            f"/{site.names.prefix}/{name}": f"/{site.names.prefix}/{name}"
            for name in ("services", "product-info", "repositories")
        },
        shown: below,
        f"{shown}/search": f"{below}/search",
        f"{shown}/cabinets": f"{below}/cabinets",
        f"{shown}/objects/{{id}}": f"{below}/objects/{made}",
        f"{shown}/objects/{{id}}/contents": f"{below}/objects/{made}/contents",
        f"{shown}/objects/{{id}}/contents/content": f"{below}/objects/{made}/contents/content",
        f"{shown}/objects/{{id}}/index-status": f"{below}/objects/{made}/index-status",
        f"{shown}/objects/{{id}}/permission-set": f"{below}/objects/{made}/permission-set",
        f"{shown}/objects/{{id}}/permissions": f"{below}/objects/{made}/permissions",
        f"{shown}/acls": f"{below}/acls",
        f"{shown}/acls/{{acl}}": f"{below}/acls/public",
        f"{shown}/types": f"{below}/types",
        f"{shown}/formats/{{format}}": f"{below}/formats/pdf",
        f"{shown}/types/{{name}}": f"{below}/types/{site.type('document')}",
        f"{shown}/relation-types/{{relation_type}}": f"{below}/relation-types/{site.names.type_prefix}peer",
        f"{shown}/objects/{{id}}/comments": f"{below}/objects/{made}/comments",
        f"{shown}/batch-capabilities": f"{below}/batch-capabilities",
        "/health/live": "/health/live",
    }
    for path, address in asked.items():
        operation = document["paths"][path]["get"]
        for media_type in ("application/json", f"{site.names.media_type}+json"):
            headers = site.bearer() | {"Accept": f"{media_type}, */*;q=0.1"}
            answer = site.http.get(address, headers=headers)
            assert answer.status_code == 200, (address, answer.text)
            fits(document, operation, answer)
        if operation["security"]:
            refused = site.http.get(address)
            assert refused.status_code == 401
            fits(document, operation, refused)
    nowhere = site.http.get(f"{below}/objects/0900000100ffffff", headers=site.bearer())
    fits(document, document["paths"][f"{shown}/objects/{{id}}"]["get"], nowhere)


def test_what_the_directory_answers_fits_it(site: Site, document: dict[str, Any]) -> None:
    tokeninfo = document["paths"][f"{site.oauth}/tokeninfo"]["post"]
    login = document["paths"][site.login]["post"]
    issued = site.ask_token(site.world.reader)
    fits(document, login, issued)
    fits(document, login, site.refresh(issued.json()["refresh_token"]))
    fits(document, login, site.ask_token(site.world.reader, password="wrong"))
    fits(document, tokeninfo, site.tokeninfo(issued.json()["access_token"]))
    fits(document, tokeninfo, site.tokeninfo("garbage"))


def test_every_parameter_it_lists_is_known_to_its_address(site: Site, document: dict[str, Any]) -> None:
    things = {"repository": site.world.repository, "id": site.create("asked about", b"x"), "acl": "public"}
    things |= {"name": site.type("document"), "person": site.world.writer.id, "other": site.cabinet(site.world.word())}
    things |= {"relation_type": f"{site.names.type_prefix}peer"}
    things |= {"search": "5300000000000000", "template": "5400000000000000"}
    for path, item in document["paths"].items():
        if not path.startswith(f"/{site.names.prefix}/") or "get" not in item:
            continue
        for parameter in item["get"]["parameters"]:
            if parameter["in"] == "query":
                answer = site.http.get(path.format(**things), params={parameter["name"]: "1"}, headers=site.bearer())
                assert "has no parameter" not in answer.text, (path, parameter["name"])


def test_a_refusal_is_described_once(document: dict[str, Any]) -> None:
    described = document["components"]["responses"]
    assert {name.partition("-4")[0] for name in described if name.endswith("-413")} == {
        "directory",
        "directory-rest",
        "directory-v1",
        "token-endpoint",
        "oauth",
        "page",
        "repository",
        "front-door",
    }
    assert len({json.dumps(one) for one in described.values()}) == len(described)
    used = {
        answer["$ref"].rpartition("/")[2]
        for item in document["paths"].values()
        for operation in item.values()
        for answer in operation["responses"].values()
        if "$ref" in answer
    }
    assert used == described.keys()
