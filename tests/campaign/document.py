"""The product's own OpenAPI document, with what generated requests need beside it.

``GET /openapi.json`` says which parameters and bodies there are. Here stand values that lead somewhere: words for what
is on the stage, near misses, and wild ones. Addresses that nothing answers are added, because requests go there too.
"""

import copy
from collections.abc import Iterator, Mapping

from muniment.repository.store.objects.types import object_types
from muniment.web.answers.responses import SHARED
from tests.campaign import json_bodies
from tests.campaign.json_bodies import Json, text
from tests.campaign.stage import Prop

EVERY_METHOD = ("get", "post", "put", "patch", "delete", "options")
_NO_EFFECT = "Accepted, and has no effect."
SENT_SELDOM = frozenset({"Muniment-Position", "cursor"})
"""A header and a parameter that most often end in a refusal: the test adds them to few requests."""


_QUERY: Mapping[str, Json] = {
    "q": text("pump", '"pump station"', "pump OR valve*", "NOT (pump"),
    "object-type": text("document", "sysobject", "folder", "cabinet"),
    "link": text(Prop.LINK),
    "require-checksum": text("true", "false", "x"),
    "page": text("1", "2", "50", "0"),
    "items-per-page": text("1", "3", "100"),
    "start": text("0", "1", "99999"),
    "limit": text("1", "2", "1000"),
    "repositories": text(Prop.REPOSITORY, f"{Prop.REPOSITORY},nowhere", "\\,"),
    "include-total": text("true", "false"),
    "words": text("all", "any", "auto"),
    "typed": text("true", "false"),
    "links": text("true", "false"),
    "marks": text("true", "false"),
    "collapse": text("content", "none"),
    "meaning": text("auto", "false"),
    "inline": text("true", "false"),
    "view": text(":all", ":default", "object_name,title"),
    "filter": text("starts-with(object_name,'p')", "r_full_content_size > 3 and not(title='x')", "user_name != ''"),
    "sort": text("object_name desc", "r_modify_date,object_name", "name"),
    "facet": text("r_object_type"),
    "timezone": text("UTC", "Europe/Berlin", "GMT-8:00", "Moon"),
    "facet-value-constraints": text("document", "a+b|c", "\\N"),
    "facet-id-constraints": text("r_object_type=document", "x=y;z"),
    "delete-non-empty": text("true", "false"),
    "del-non-empty": text("true", "false"),
    "object": {"enum": [Prop.DOCUMENT, Prop.FOLDER, "0900000100ffffff", "%00"]},
    "for": {"enum": [Prop.USER, "nobody@nowhere", "x"]},
    "repair": text("true", "false"),
    "wait-for": {"enum": ["", "0.0", Prop.POSITION, "x"]},
    "object-name": text("raw.txt", "raw.pdf"),
    "format": text("text/plain", "pdf"),
    "locations": text("/campaign", "/nowhere"),
    "collections": text("default"),
    "max-results-count": text("1", "2", "-1", "1000000"),
    "query-locale": text("en", "de_DE"),
    "RFA": text("", Prop.RESOURCE, f"{Prop.RESOURCE}:https://elsewhere.example"),
    "done": text("add", "delete", "saved", "out"),
    "in": text(Prop.REPOSITORY, "nowhere"),
    "type": text("document", "cabinet"),
    "owner": text(Prop.USER),
    "changed": text("2026", "1999"),
    "size": text("1-9999", "10000000-"),
    "folder": text(Prop.FOLDER, Prop.DOCUMENT),
    "saved": text(Prop.SEARCH, Prop.TEMPLATE),
    "edited": text(Prop.SEARCH, Prop.TEMPLATE),
    "to": text("?q=pump", "/saved", "https://elsewhere.example"),
    "part": text("1", "2"),
    "dql": text(
        "select object_name, r_object_id as id from document where title like 'pump%' order by object_name desc",
        f"select * from sysobject (all) where folder(id('{Prop.FOLDER}'), descend) and not any keywords = 'a'",
        "select count(*) from document search document contains 'pump'",
        "select user_name from user where user_name != '' order by 1;",
        "select group_name from group",
        "select r_object_id from document where r_modify_date > date('2024-02-29', 'yyyy-mm-dd') and title is null",
        "delete document objects",
        f"select {'(' * 30}",
    ),
    "modifier": text("", "thumb", "thumb,web"),
    "content-count": text("0", "1", "2"),
    "content-length": text("0", "11", "22"),
    "content-charset": text("utf-8", "iso-8859-1", "utf-16", "moon"),
    "all-primary": text("true", "false"),
    "primary": text("true", "false"),
    "overwrite": text("true", "false"),
    "media-url-policy": text("local", "all", "dc-pref"),
    "del-all-links": text("true", "false"),
    "del-version": text("SELECTED", "unused", "ALL"),
    "include-all-versions": text("true", "false"),
    "path": text("/campaign", "/cabinet of the campaign", "/a\\/b/c", "campaign", "//", "/" + "a/" * 300),
    "object-id": text(Prop.DOCUMENT, f"{Prop.DOCUMENT},{Prop.FOLDER}", f"{Prop.DRAFT},0900000100ffffff", ",,"),
    "version-policy": text("next-minor", "next-major", "branch-version"),
    "comment": text("shorter", "", "x" * 401),
    "version-label": text("draft", "draft,CURRENT", "1.0", ",", "x" * 300),
    "make-current": text("true", "false"),
    "retain-lock": text("true", "false"),
    "checked-out-by": text("current-user", "all", "user"),
    "group-name": text(Prop.GROUP, "nobody@nowhere", "x"),
    "parent-type": text("document", Prop.TYPE, "spaceship"),
    "recursive": text("true", "false", "x"),
    "inherited": text("true", "false", "x"),
    "included-properties": text("subject", "subject,nothing", ""),
    "user-name": text(Prop.USER, "nobody@nowhere", "x"),
    "accessor": text(Prop.USER, "everyone@demo", "owner", "world", "nobody@nowhere"),
    "related-object-id": text(Prop.DOCUMENT, Prop.FOLDER, "0900000100ffffff"),
    "related-object-role": text("any", "parent", "child"),
    "relation-name": text("peer", Prop.RELATION_TYPE, "nothing"),
    "attrsAsKeys": text("true", "false", "x"),
    "attrs_as_keys": text("true", "false", "x"),
    "attrs": text("mail", "mail,memberOf", ","),
    "page_size": text("1", "2", "0", "100000"),
    "next_page_cookie": text("", "x", "MQ=="),
    "where_filter": text("camp", "*", "(cn=campaign*)", "\\"),
    "where_partition_name": text(Prop.HOME, Prop.PARTITION, "nowhere"),
    "where_location": text(Prop.UNIT, "ou=Root", "nowhere"),
    "where_state": text("enabled", "disabled", "x"),
    "client_id": text(Prop.CLIENT, "nothing", "x" * 256),
    "redirect_uri": text("https://app.example/back", "http://127.0.0.1:1/", "javascript:x", "//x"),
    "response_mode": text("query", "form_post", "fragment"),
    "resource": text(f"urn:uuid:{Prop.RESOURCE}", "https://elsewhere.example", "urn:uuid:x"),
    "scope": text(Prop.SCOPE, "openid profile", "resource:Nothing", "x" * 3_000),
    "state": text("x", "é\U0001f5c4", "x" * 5_000),
    "nonce": text("n", "x" * 2_000),
    "code_challenge": text("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "x"),
    "prompt": text("none", "login", "consent", "none login", "x"),
    "max_age": text("0", "100", "-1", "9" * 40),
    "login_hint": text(Prop.USER, "x"),
    "id_token_hint": text("x", "a.b.c"),
    "ui_locales": text("de en", "x"),
    "user_code": text("BCDF-GHJK", "x", ""),
}
_NOT_OFFERED: Mapping[str, Json] = {
    "access_token": text(Prop.TOKEN),
}
"""Parameters that no address has, and that clients send to searches."""

_PATHS: Mapping[str, Json] = {
    "repository": {"enum": [Prop.REPOSITORY]},
    "id": {
        "enum": [
            Prop.DOCUMENT,
            Prop.FOLDER,
            Prop.CABINET,
            Prop.VERSION,
            f"{Prop.DOCUMENT}.json",
            "0900000100ffffff",
            "%00",
        ]
    },
    "other": {"enum": [Prop.DOCUMENT, Prop.FOLDER, "0900000100ffffff"]},
    "member": {"enum": [Prop.NEWCOMER, Prop.USER, "nobody@nowhere", "%00"]},
    "relation_type": {"enum": [Prop.RELATION_TYPE, f"{Prop.RELATION_TYPE}.xml", "peer", "nothing", "%00"]},
    "token": {"enum": [Prop.TOKEN, Prop.DEAD_TOKEN, "x" * 60]},
    "page": {"enum": ["settings.md", "settings", "decisions", "decisions/0001-the-stack.md", "../pyproject.toml"]},
    "rest": {"type": "string"},
    "search": {"enum": [Prop.SEARCH, f"{Prop.SEARCH}.xml", Prop.TEMPLATE, "5300000000000000", "%00"]},
    "template": {"enum": [Prop.TEMPLATE, Prop.SEARCH, "5400000000000000"]},
    "format": {"enum": ["pdf", "pdf.json", "crtext", "nothing", "%00"]},
    "location": {"enum": ["local", "local.xml", "nothing", "%00"]},
    "acl": {"enum": [Prop.ACL, "public", "private", "nobody's", "4500000000000001"]},
    "user": {"enum": [Prop.NEWCOMER, "nobody@nowhere", "x", "%00"]},
    "group": {"enum": [Prop.GROUP, Prop.INNER_GROUP, "nobody@nowhere", "%00"]},
    "role": {"enum": [Prop.ROLE, "nobody@nowhere", "x", "%00"]},
    "unit": {"enum": [Prop.UNIT, "ou=nothing", "x", "%00"]},
    "partition": {"enum": [Prop.PARTITION, "nowhere", "%00"]},
    "resource": {"enum": [Prop.ADDED_RESOURCE, Prop.IDLE_RESOURCE, "nothing", "%00"]},
    "access_role": {"enum": [Prop.ADDED_ACCESS, "Access to nothing", "x", "%00"]},
    "client": {"enum": [Prop.ADDED_CLIENT, "nothing", "%00"]},
    "attribute": {"enum": [Prop.ATTRIBUTE, "nothing", "%00"]},
    "handler": {"enum": ["saml", "nothing", "%00"]},
    "entry": {"enum": [Prop.UNIT, "cn=nobody", "x", "%00"]},
}
"""What stands in a path: mostly what is there. ``raw`` puts anything else there."""

_PATHS_BELOW: Mapping[str, Json] = {
    "/static/{name}": {"enum": ["style.css", "icon.svg", "x.css"]},
    "/types/{name}": {"enum": [Prop.TYPE, "document", "cabinet", "spaceship", "%00"]},
    "/users/{person}": {"enum": [Prop.NEWCOMER, "nobody@nowhere", "x"]},
    "/groups/{person}": {"enum": [Prop.GROUP, f"{Prop.GROUP}.xml", "nobody@nowhere", "x"]},
    "/relations/{id}": {"enum": [Prop.RELATION, f"{Prop.RELATION}.xml", Prop.DOCUMENT, "%00"]},
    "/comments/{id}": {"enum": [Prop.COMMENT, f"{Prop.COMMENT}.xml", Prop.DOCUMENT, "%00"]},
    "/wastebasket/{id}": {"enum": [Prop.DELETED, f"{Prop.DELETED}.xml", Prop.DOCUMENT, "%00"]},
    "/objects/{id}/versions": {"enum": [Prop.DRAFT, Prop.DRAFT, Prop.VERSION, Prop.FOLDER, "0900000100ffffff"]},
    "/objects/{id}/lock": {"enum": [Prop.DOCUMENT, Prop.DRAFT, Prop.VERSION, Prop.FOLDER, "0900000100ffffff"]},
}
"""What stands in a path at one place. Whom the stage needs is not among those whom an administrator may change."""

_HEADERS: Mapping[str, Json] = {
    "Accept": {"enum": ["application/json", "application/xml", "application/atom+xml", "*/*;q=0.1", "text/html", "q"]},
    "If-Match": {"enum": ['"1"', "*", "", "x"]},
    "If-None-Match": {"enum": ['"1"', "*", "x"]},
    "Range": {"enum": ["bytes=0-3", "bytes=-2", "bytes=2-", "bytes=9999-", "bytes=0-1,3-4", "x"]},
    "If-Range": {"enum": ['"1"', "x"]},
}

_MEDIA_TYPES: Mapping[str, tuple[str, ...]] = {"application/octet-stream": ("text/plain", "application/octet-stream")}
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
        below = (schema for part, schema in _PATHS_BELOW.items() if part in path and f"{{{name}}}" in part)
        return next(below, None) or _PATHS[name]
    if parameter["in"] == "header":
        return _HEADERS[name]
    if parameter.get("description") == _NO_EFFECT:
        return {"enum": ["true", "false", "1", "é\U0001f5c4"]}
    if len(only := parameter.get("schema", {}).get("enum", ())) == 1:
        return {"enum": [*only, "x"]}
    return {**_QUERY, **_NOT_OFFERED}[name]


def _bodies(path: str, content: Json) -> Iterator[tuple[str, Json]]:
    """Give the bodies to be made, by media type: most as they are described, some with values that lead somewhere."""
    better = json_bodies.schema(path)
    for media_type, described in content.items():
        for generated in _MEDIA_TYPES.get(media_type, (media_type,) if media_type in _GENERATED else ()):
            is_text = generated.endswith(("json", "urlencoded"))
            yield generated, {"schema": better} if better and is_text else described


def _properties() -> Json:
    """The built-in types' properties: what a caller may give as it is shown, the rest as anything."""
    known = {definition.name: definition for kind in object_types.BUILT_IN for definition in kind.properties}
    shown: Json = {
        name: {"type": ["array", "string"], "items": {"type": "string"}} if definition.repeating else {"type": "string"}
        for name, definition in known.items()
        if definition.writable
    }
    shown["acl_name"] = text("public", "private", Prop.ACL)
    shown["r_object_type"] = text("document", "folder", "cabinet")
    return {"type": "object", "properties": shown, "additionalProperties": {}}
