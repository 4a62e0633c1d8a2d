"""An OpenAPI 3.1 document of everything a running application answers.

Addresses, methods and statuses come from the application's own route tables and tables of refusals, bodies from the
types that the endpoints decode. What stands in neither (parameters of the query, forms, XML) is written here; an
address without a line here, or a line without an address, fails. It lives with the tests because the product does not
serve it.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import msgspec
from starlette.routing import Route

from muniment import app, clock
from muniment.directory.endpoints.oauth import Verification
from muniment.front.halves import Halves
from muniment.installation import Installation
from muniment.repository.endpoints import acls, object_body
from muniment.repository.objects import object_types
from muniment.web.responses import SHARED, Endpoint
from tests.campaign.stage import Prop
from tests.scenes import Loop

Json: TypeAlias = dict[str, Any]

EVERY_METHOD = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_WILD = ("\x00x", "é\U0001f5c4", "9" * 40, "-1", "%")
_SUCCESSES = (200, 201, 204, 206, 303, 304, 416)
"""What no table of refusals lists: success, conditions and ranges (416 is written by the content surface itself)."""


def _either(*likely: Any) -> Json:
    """A value that leads somewhere, or any text."""
    return {"anyOf": [{"enum": list(likely)}, {"type": "string"}]}


def _text(*likely: str) -> Json:
    """A text outside of bodies: what leads somewhere, twice as often as what does not."""
    return {"enum": [*dict.fromkeys(likely), *_WILD[: max(1, len(likely) // 2)]]}


_QUERY: Mapping[str, Json] = {
    "q": _text("pump", '"pump station"', "pump OR valve*", "NOT (pump"),
    "object-type": _text("document", "sysobject", "folder", "cabinet"),
    "link": _text(Prop.LINK),
    "page": _text("1", "2", "50"),
    "items-per-page": _text("1", "3", "100"),
    "include-total": _text("true", "false"),
    "wait-for": {"enum": ["", "0.0", Prop.POSITION, "x"]},
    "facet": _text("r_object_type"),
    "view": _text(":all"),
    "object-name": _text("raw.txt", "raw.pdf"),
    "format": _text("text/plain", "pdf"),
    "content-count": _text("1"),
    "overwrite": _text("true"),
    "primary": _text("true", "false"),
    "modifier": _text("x"),
    "del-non-empty": _text("false", "true"),
    "force": _text("true"),
    "RFA": _text("", Prop.RESOURCE, f"{Prop.RESOURCE}:https://elsewhere.example"),
    "done": _text("add", "delete"),
    "access_token": _text(Prop.TOKEN),
}
_PAGING = ("page", "items-per-page", "include-total")
_CONTENT = ("format", "page", "modifier")
_CREATE = ("object-name", "object-type", "format", "content-count")

_PATHS: Mapping[str, Json] = {
    "repository": {"enum": [Prop.REPOSITORY]},
    "id": {"enum": [Prop.DOCUMENT, Prop.FOLDER, Prop.CABINET, f"{Prop.DOCUMENT}.json", "0900000100ffffff", "%00"]},
    "token": {"enum": [Prop.TOKEN, Prop.DEAD_TOKEN, "x" * 60]},
    "resource_id": {"enum": [Prop.RESOURCE, Prop.IDLE_RESOURCE, "x"]},
    "page": {"enum": ["settings.md", "decisions/0001-the-stack.md", "../pyproject.toml"]},
    "rest": {"type": "string"},
    "acl": {"enum": [Prop.ACL, "public", "private", "nobody's", "4500000000000001"]},
}
_NAMES: Mapping[str, Json] = {
    "types": {"enum": ["document", "cabinet", "spaceship"]},
    "static": {"enum": ["style.css", "icon.svg", "x.css"]},
}
"""What stands in a path: mostly what is there. ``raw`` puts anything else there."""

_ACCEPT = {"enum": ["application/json", "application/xml", "application/atom+xml", "*/*;q=0.1", "text/html", "q"]}
_CONDITIONS = {"If-Match": {"enum": ['"1"', "*", "", "x"]}, "If-None-Match": {"enum": ['"1"', "*", "x"]}}
_RANGES = {
    "Range": {"enum": ["bytes=0-3", "bytes=-2", "bytes=2-", "bytes=9999-", "bytes=0-1,3-4", "x"]},
    "If-Range": {"enum": ['"1"', "x"]},
}

_XML = ("application/xml",)
_METADATA = ("application/json", "application/xml")


def document(routes: Iterable[Route], prefixes: tuple[str, ...]) -> Json:
    """Describe the routes. ``prefixes`` are the halves' first path segments. Raises KeyError for one unknown here."""
    paths: dict[str, Json] = {}
    described = dict(_takes())
    for route in routes:
        path = template(route.path)
        bare = _bare(route.path, prefixes)
        for method in methods(route):
            line = f"{method} {bare}"
            takes = described.pop(line) if line in described else described[f"* {bare}"]
            paths.setdefault(path, {})[method.lower()] = _operation(route, takes)
    left = [line for line in described if not line.startswith("*")]
    if left:
        raise KeyError(f"described, and no route answers: {left}")
    _, components = msgspec.json.schema_components(_BODIES, ref_template="#/components/schemas/{name}")
    components["_JsonBody"]["properties"]["properties"] = _properties()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Muniment", "version": "campaign"},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def of(installation: Installation, loop: Loop) -> tuple[Json, list[Route]]:
    """Describe what an application over this data folder answers, once it is open; give the routes too."""

    async def opened() -> list[Route]:
        async with AsyncExitStack() as closing:
            return await app._open(Halves(installation, clock.now, app.reader), closing)

    routes, names = loop.run(opened()), installation.settings
    return document(routes, (names.directory.names.prefix, names.repository.names.prefix)), routes


def methods(route: Route) -> tuple[str, ...]:
    """List the methods an address knows; one without a table answers every method."""
    return tuple(route.app._methods) if isinstance(route.app, Endpoint) else EVERY_METHOD


def template(path: str) -> str:
    """Spell a route's path as OpenAPI does."""
    return _PARAMETER.sub(r"{\1}", path)


def _operation(route: Route, takes: Json) -> Json:
    table = route.app._table if isinstance(route.app, Endpoint) else SHARED
    statuses = sorted({said.status for said in table.values()} | set(_SUCCESSES))
    operation: Json = {
        "security": [{"token": []}, {}],
        "responses": {str(status): {"description": "as the tables say"} for status in statuses},
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _path_schema(route.path, name)}
            for name in _PARAMETER.findall(route.path)
        ],
    }
    for name in takes.get("query", ()):
        operation["parameters"].append({"name": name, "in": "query", "schema": _QUERY[name]})
    for name, schema in {"Accept": _ACCEPT, **takes.get("headers", {})}.items():
        operation["parameters"].append({"name": name, "in": "header", "schema": schema})
    if "body" in takes:
        operation["requestBody"] = {
            "content": {kind: {"schema": schema} for kind, schema in takes["body"].items()},
        }
    return operation


def _path_schema(path: str, name: str) -> Json:
    if name == "name":
        return next(schema for part, schema in _NAMES.items() if f"/{part}/" in path)
    return _PATHS[name]


def _bare(path: str, prefixes: tuple[str, ...]) -> str:
    for prefix, short in zip(prefixes, ("/d", "/r"), strict=True):
        if path == f"/{prefix}" or path.startswith(f"/{prefix}/"):
            return short + path[len(prefix) + 1 :]
    return path


_BODIES: tuple[type, ...] = (Verification, acls._Body, object_body._JsonBody)


def _reference(kind: type) -> Json:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _properties() -> Json:
    """The built-in types' properties: what a caller may give as it is shown, the rest as anything."""
    known = {definition.name: definition for kind in object_types.BUILT_IN for definition in kind.properties}
    shown: Json = {
        name: {"type": ["array", "string"], "items": {"type": "string"}} if definition.repeating else {"type": "string"}
        for name, definition in known.items()
        if definition.writable
    }
    shown["acl_name"] = _text("public", "private", Prop.ACL)
    shown["r_object_type"] = _text("document", "folder", "cabinet")
    return {"type": "object", "properties": shown, "additionalProperties": {}}


def _exactly(**fields: str) -> Json:
    return {
        "type": "object",
        "properties": {name: {"const": value} for name, value in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


def _login_form() -> Json:
    client = {"client_id": Prop.CLIENT}
    loose: Json = {
        "type": "object",
        "properties": {
            "grant_type": _either("password", "refresh_token"),
            "client_id": _either(Prop.CLIENT),
            "client_secret": {"type": "string"},
            "username": _either(Prop.VICTIM, "@"),
            "password": {"type": "string"},
            "scope": _either(Prop.SCOPE, "resource:"),
            "refresh_token": _either(Prop.REFRESH_TOKEN),
            "csrf": {"type": "string"},
            "RFA": {"type": "string"},
        },
        "required": ["grant_type", "client_id"],
    }
    good = {"username": Prop.USER, "password": Prop.PASSWORD}
    return {
        "anyOf": [
            loose,
            _exactly(grant_type="password", scope=Prop.SCOPE, **client, **good),
            _exactly(grant_type="refresh_token", refresh_token=Prop.REFRESH_TOKEN, **client),
            _exactly(csrf=Prop.CSRF, RFA=Prop.RESOURCE, **good),
            _exactly(csrf=Prop.CSRF, RFA="", username=Prop.VICTIM, password="x"),
        ]
    }


def _attribute_form() -> Json:
    return {
        "type": "object",
        "properties": {
            "action": _either("add", "change", "delete"),
            "name": _either("campaign.words", "x"),
            "value": {"type": "string"},
            "csrf": _either(Prop.TICKET_CSRF),
        },
        "required": ["action", "name", "value", "csrf"],
    }


def _verification() -> Json:
    good = _exactly(token=Prop.TOKEN, resource_id=Prop.RESOURCE)
    return {"anyOf": [_reference(Verification), good, _exactly(token=Prop.DEAD_TOKEN, resource_id=Prop.RESOURCE)]}


def _acl() -> Json:
    entry = {
        "type": "object",
        "properties": {
            "accessor": _text(Prop.USER, "everyone@demo", "dm_owner", "dm_world", "owner", "world"),
            "basic-permission": _text("None", "Browse", "Read", "Write", "Delete"),
        },
        "required": ["accessor", "basic-permission"],
    }
    made = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "permitted": {"type": "array", "items": entry}},
        "required": ["name", "permitted"],
    }
    return {"anyOf": [_reference(acls._Body), made, _exactly(**{"acl-name": "public"})]}


def _metadata() -> Json:
    return {kind: {**_reference(object_body._JsonBody)} for kind in _METADATA}


def _takes() -> Iterable[tuple[str, Json]]:
    """What each address takes, by method and path; ``/d`` and ``/r`` are the halves' prefixes."""
    bytes_: Json = {"type": "string", "format": "binary"}
    content = {"text/plain": bytes_, "application/octet-stream": bytes_}
    create = {
        "query": _CREATE,
        "body": {**_metadata(), **content, "multipart/form-data": {"type": "object"}},
    }
    yield "GET /health/live", {}
    yield "GET /health/ready", {}
    yield "GET /", {}
    yield "GET /style.css", {}
    yield "GET /icon.svg", {}
    yield "GET /docs/{page:path}", {}
    yield "* /{rest:path}", {"query": ("q",)}
    yield "GET /d/login", {"query": ("RFA",)}
    yield "POST /d/login", {"body": {"application/x-www-form-urlencoded": _login_form()}}
    for path in ("oauth/tokeninfo", "tokeninfo"):
        yield f"POST /d/v1/authentication/{path}", {"body": {"application/json": _verification()}}
    yield "DELETE /d/v1/authentication/oauth/{token}", {}
    yield "OPTIONS /d/v1/authentication/oauth/{token}", {}
    yield "POST /d/rest/resources/{resource_id}/activate", {}
    yield "GET /d/console", {}
    yield "GET /d/console/system-attributes", {"query": ("done",)}
    yield "POST /d/console/system-attributes", {"body": {"application/x-www-form-urlencoded": _attribute_form()}}
    yield "GET /d/static/{name}", {}
    yield "* /d", {}
    yield "* /d/{rest:path}", {}
    below = "/r/repositories/{repository}"
    yield "GET /r/repositories", {}
    yield f"GET {below}", {}
    yield f"GET {below}/search", {"query": ("q", "object-type", "link", "wait-for", "facet", "view", *_PAGING)}
    yield f"POST {below}/search", {"query": ("wait-for", *_PAGING), "body": {"application/xml": {"type": "object"}}}
    yield f"GET {below}/cabinets", {"query": ("object-type", *_PAGING)}
    yield f"POST {below}/cabinets", create
    yield f"POST {below}/objects", create
    for kind in ("objects", "documents", "folders", "cabinets"):
        one = f"{below}/{kind}/{{id}}"
        yield f"GET {one}", {"query": ("view",), "headers": _CONDITIONS}
        yield f"POST {one}", {"body": _metadata(), "headers": _CONDITIONS}
        yield f"DELETE {one}", {"query": ("del-non-empty",), "headers": _CONDITIONS}
    for name in ("folders", "documents", "objects"):
        yield f"GET {below}/folders/{{id}}/{name}", {"query": ("object-type", *_PAGING)}
        yield f"POST {below}/folders/{{id}}/{name}", create
    one = f"{below}/objects/{{id}}"
    yield f"GET {one}/contents", {"query": _PAGING}
    yield (
        f"POST {one}/contents",
        {"query": (*_CONTENT, "primary", "overwrite"), "headers": _CONDITIONS, "body": content},
    )
    yield f"GET {one}/contents/content", {"query": _CONTENT}
    yield f"GET {one}/content-media", {"query": _CONTENT, "headers": {**_CONDITIONS, **_RANGES}}
    yield f"GET {one}/index-status", {}
    yield f"GET {one}/permission-set", {}
    named = {"body": {"application/json": _acl(), "application/xml": {"type": "object"}}}
    yield f"PUT {one}/permission-set", named
    yield f"GET {below}/acls", {"query": _PAGING}
    yield f"POST {below}/acls", named
    yield f"GET {below}/acls/{{acl}}", {}
    yield f"POST {below}/acls/{{acl}}", named
    yield f"DELETE {below}/acls/{{acl}}", {"query": ("force",)}
    yield f"GET {below}/types", {"query": _PAGING}
    yield f"GET {below}/types/{{name}}", {}
