"""The product's own OpenAPI document, with what generated requests need beside it.

``GET /openapi.json`` says which parameters and bodies there are. Here stand values that lead somewhere: words for what
is on the stage, near misses, and wild ones. Addresses that nothing answers are added, because requests go there too.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from muniment.repository.objects import object_types
from muniment.web.responses import SHARED
from tests.campaign.stage import Prop

Json: TypeAlias = dict[str, Any]

EVERY_METHOD = ("get", "post", "put", "patch", "delete", "options")
_WILD = ("\x00x", "é\U0001f5c4", "9" * 40, "-1", "%")
_NO_EFFECT = "Accepted, and has no effect."
SENT_SELDOM = frozenset({"Muniment-Position", "cursor"})
"""A header and a parameter that most often end in a refusal: the test adds them to few requests."""


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
    "page": _text("1", "2", "50", "0"),
    "items-per-page": _text("1", "3", "100"),
    "start": _text("0", "1", "99999"),
    "limit": _text("1", "2", "1000"),
    "repositories": _text(Prop.REPOSITORY, f"{Prop.REPOSITORY},nowhere", "\\,"),
    "include-total": _text("true", "false"),
    "words": _text("all", "any", "auto"),
    "links": _text("true", "false"),
    "marks": _text("true", "false"),
    "collapse": _text("content", "none"),
    "meaning": _text("auto", "false"),
    "inline": _text("true", "false"),
    "view": _text(":all", ":default", "object_name,title"),
    "filter": _text("starts-with(object_name,'p')", "r_full_content_size > 3 and not(title='x')", "user_name != ''"),
    "sort": _text("object_name desc", "r_modify_date,object_name", "name"),
    "facet": _text("r_object_type"),
    "timezone": _text("UTC", "Europe/Berlin", "GMT-8:00", "Moon"),
    "facet-value-constraints": _text("document", "a+b|c", "\\N"),
    "facet-id-constraints": _text("r_object_type=document", "x=y;z"),
    "del-non-empty": _text("true", "false"),
    "object": {"enum": [Prop.DOCUMENT, Prop.FOLDER, "0900000100ffffff", "%00"]},
    "for": {"enum": [Prop.USER, "nobody@nowhere", "x"]},
    "repair": _text("true", "false"),
    "wait-for": {"enum": ["", "0.0", Prop.POSITION, "x"]},
    "object-name": _text("raw.txt", "raw.pdf"),
    "format": _text("text/plain", "pdf"),
    "locations": _text("/campaign", "/nowhere"),
    "collections": _text("default"),
    "max-results-count": _text("1", "2", "-1", "1000000"),
    "query-locale": _text("en", "de_DE"),
    "RFA": _text("", Prop.RESOURCE, f"{Prop.RESOURCE}:https://elsewhere.example"),
    "done": _text("add", "delete", "saved", "out"),
    "in": _text(Prop.REPOSITORY, "nowhere"),
    "type": _text("document", "cabinet"),
    "owner": _text(Prop.USER),
    "changed": _text("2026", "1999"),
    "size": _text("1-9999", "10000000-"),
    "folder": _text(Prop.FOLDER, Prop.DOCUMENT),
    "saved": _text(Prop.SEARCH, Prop.TEMPLATE),
    "to": _text("?q=pump", "/saved", "https://elsewhere.example"),
    "part": _text("1", "2"),
}
_NOT_OFFERED: Mapping[str, Json] = {
    "access_token": _text(Prop.TOKEN),
}
"""Parameters that no address has, and that clients send to searches."""

_PATHS: Mapping[str, Json] = {
    "repository": {"enum": [Prop.REPOSITORY]},
    "id": {"enum": [Prop.DOCUMENT, Prop.FOLDER, Prop.CABINET, f"{Prop.DOCUMENT}.json", "0900000100ffffff", "%00"]},
    "other": {"enum": [Prop.DOCUMENT, Prop.FOLDER, "0900000100ffffff"]},
    "person": {"enum": [Prop.USER, "everyone@demo", "nobody@nowhere", "x"]},
    "token": {"enum": [Prop.TOKEN, Prop.DEAD_TOKEN, "x" * 60]},
    "resource_id": {"enum": [Prop.RESOURCE, Prop.IDLE_RESOURCE, "x"]},
    "page": {"enum": ["settings.md", "settings", "decisions", "decisions/0001-the-stack.md", "../pyproject.toml"]},
    "rest": {"type": "string"},
    "search": {"enum": [Prop.SEARCH, f"{Prop.SEARCH}.xml", Prop.TEMPLATE, "5300000000000000", "%00"]},
    "template": {"enum": [Prop.TEMPLATE, Prop.SEARCH, "5400000000000000"]},
    "format": {"enum": ["pdf", "pdf.json", "crtext", "nothing", "%00"]},
    "acl": {"enum": [Prop.ACL, "public", "private", "nobody's", "4500000000000001"]},
}
_NAMES: Mapping[str, Json] = {
    "types": {"enum": ["document", "cabinet", "spaceship"]},
    "static": {"enum": ["style.css", "icon.svg", "x.css"]},
}
"""What stands in a path: mostly what is there. ``raw`` puts anything else there."""

_HEADERS: Mapping[str, Json] = {
    "Accept": {"enum": ["application/json", "application/xml", "application/atom+xml", "*/*;q=0.1", "text/html", "q"]},
    "If-Match": {"enum": ['"1"', "*", "", "x"]},
    "If-None-Match": {"enum": ['"1"', "*", "x"]},
    "Range": {"enum": ["bytes=0-3", "bytes=-2", "bytes=2-", "bytes=9999-", "bytes=0-1,3-4", "x"]},
    "If-Range": {"enum": ['"1"', "x"]},
}

_MEDIA_TYPES: Mapping[str, tuple[str, ...]] = {"*/*": ("text/plain", "application/octet-stream")}
_GENERATED = ("application/json", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data")
"""What bodies are made of; the vendor's media types are read by the same readers."""


def likely(served: Json) -> Json:
    """Put values that lead somewhere into the served document. Raises KeyError for a parameter without values."""
    document = copy.deepcopy(served)
    document["components"]["schemas"]["JsonMetadata"]["properties"]["properties"] = _properties()
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["security"] = []
            operation["parameters"] = list(_parameters(path, operation["parameters"]))
            if "requestBody" in operation:
                operation["requestBody"]["content"] = dict(_bodies(path, operation["requestBody"]["content"]))
    document["paths"] |= nowhere(served)
    return document


def nowhere(served: Json) -> dict[str, Json]:
    """Describe the addresses that nothing answers: below the directory's prefix, and below none."""
    login = next(path for path in served["paths"] if path.endswith("/login"))
    prefix = login.removesuffix("/login")
    refused = {str(said.status): {"description": "A refusal."} for said in SHARED.values()}
    rest = {"name": "rest", "in": "path", "required": True, "schema": {"type": "string"}}
    q = {"name": "q", "in": "query", "schema": _QUERY["q"]}
    return {
        path: {method: {"parameters": parameters, "responses": refused} for method in EVERY_METHOD}
        for path, parameters in {prefix: [], f"{prefix}/{{rest}}": [rest], "/{rest}": [rest, q]}.items()
    }


def _parameters(path: str, declared: list[Json]) -> Iterator[Json]:
    accept = {"name": "Accept", "in": "header"}
    beside = [{"name": name, "in": "query"} for name in _NOT_OFFERED] if path.endswith("/search") else []
    for parameter in (*declared, accept, *beside):
        if parameter["name"] not in SENT_SELDOM:
            yield {**parameter, "schema": _schema(path, parameter)}


def _schema(path: str, parameter: Json) -> Json:
    name = parameter["name"]
    if parameter["in"] == "path":
        return (
            next(schema for part, schema in _NAMES.items() if f"/{part}/" in path) if name == "name" else _PATHS[name]
        )
    if parameter["in"] == "header":
        return _HEADERS[name]
    if parameter.get("description") == _NO_EFFECT:
        return {"enum": ["true", "false", "1", "é\U0001f5c4"]}
    if "const" in parameter.get("schema", {}):
        return {"enum": [parameter["schema"]["const"], "x"]}
    return {**_QUERY, **_NOT_OFFERED}[name]


def _bodies(path: str, content: Json) -> Iterator[tuple[str, Json]]:
    """Give the bodies to be made, by media type: most as they are described, some with values that lead somewhere."""
    made = {"/login": _login_form, "/system-attributes": _attribute_form, "/tokeninfo": _verification}
    made |= dict.fromkeys(("/permission-set", "/acls", "/acls/{acl}"), _acl)
    made |= dict.fromkeys(("/saved-searches", "/saved-searches/{search}", "/search-templates"), _saved)
    made["/search-templates/{template}/execution"] = _values
    made |= {"/search/saved": _saved_form, "/search/sign-in": _search_form, "/search/sign-out": _mark_form}
    made |= dict.fromkeys(("/parent-links", "/parent-links/{other}", "/child-links"), _link)
    better = next((schema for end, schema in made.items() if path.endswith(end)), None)
    for media_type, described in content.items():
        for generated in _MEDIA_TYPES.get(media_type, (media_type,) if media_type in _GENERATED else ()):
            is_text = generated.endswith(("json", "urlencoded"))
            yield generated, {"schema": better()} if better and is_text else described


def _reference(kind: str) -> Json:
    return {"$ref": f"#/components/schemas/{kind}"}


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


def _link() -> Json:
    below = f"https://127.0.0.1/rest/repositories/{Prop.REPOSITORY}"
    ends = (f"{below}/folders/{Prop.FOLDER}", f"{below}/objects/{Prop.DOCUMENT}", f"{below}/cabinets/{Prop.CABINET}")
    return {"type": "object", "properties": {"href": _either(*ends)}, "required": ["href"]}


def _saved() -> Json:
    expression = {"expression-type": "fulltext", "value": "pump", "template": True}
    good = {"types": ["document"], "expression-set": {"expressions": [expression]}}
    texts = [json.dumps(good), "<search xmlns='urn:muniment:vocab'/>", "{", ""]
    return {
        "type": "object",
        "properties": {
            "properties": {
                "type": "object",
                "properties": {
                    "object_name": {"type": "string"},
                    "title": {"type": "string"},
                    "r_is_public": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
                },
            },
            "query-document": {"anyOf": [{"enum": [good, *texts]}, {"type": "string"}]},
            "query-document-template": {"enum": [good, *texts]},
            "search-reference": _either(f"https://127.0.0.1/rest/repositories/demo/saved-searches/{Prop.SEARCH}"),
        },
        "required": ["properties"],
    }


def _values() -> Json:
    value: Json = {"anyOf": [{"type": ["string", "integer", "boolean", "null"]}, {"enum": ["pump", "*", "a OR b"]}]}
    variable = {
        "type": "object",
        "properties": {
            "id": _either("v1", "v2"),
            "variable-type": _either("fulltext-variable"),
            "variable-value": value,
            "variable-values": {"type": "array", "items": value},
        },
        "required": ["id"],
    }
    return {"type": "object", "properties": {"external-variables": {"type": "array", "items": variable}}}


def _mark_form(**fields: Json) -> Json:
    properties = {"csrf": {"enum": [Prop.MARK, Prop.MARK, "x"]}, **fields}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _saved_form() -> Json:
    return _mark_form(
        action=_either("save", "remove"),
        address=_either("?q=pump", f"?saved={Prop.SEARCH}&type=document", "?sort=name"),
        name={"type": "string"},
        search=_either(Prop.SEARCH),
    )


def _search_form() -> Json:
    return _mark_form(username=_either(Prop.VICTIM, "@"), password={"type": "string"}, to=_either("?q=pump"))


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
    return {"anyOf": [_reference("Verification"), good, _exactly(token=Prop.DEAD_TOKEN, resource_id=Prop.RESOURCE)]}


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
    return {"anyOf": [_reference("AclBody"), made, _exactly(**{"acl-name": "public"})]}
