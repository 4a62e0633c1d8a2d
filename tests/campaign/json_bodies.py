"""Bodies in JSON and forms for the addresses whose own descriptions lead nowhere: mostly what is right there.

Each is a schema. Values are words for what is on the stage, near misses, and any text.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tests.campaign.stage import Prop

Json: TypeAlias = dict[str, Any]

_WILD = ("\x00x", "é\U0001f5c4", "9" * 40, "-1", "%")


def either(*likely: Any) -> Json:
    """A value that leads somewhere, or any other text.

    The text excludes the likely values: of alternatives that overlap, a generator drops the narrower one.
    """
    other = {"type": "string", "maxLength": 2000, "not": {"enum": list(likely)}}
    return {"oneOf": [{"enum": list(likely)}, other]}


def text(*likely: str) -> Json:
    """A text outside of bodies: what leads somewhere, twice as often as what does not."""
    return {"enum": [*dict.fromkeys(likely), *_WILD[: max(1, len(likely) // 2)]]}


def _reference(kind: str) -> Json:
    return {"$ref": f"#/components/schemas/{kind}"}


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
            "grant_type": either("password", "refresh_token"),
            "client_id": either(Prop.CLIENT),
            "client_secret": {"type": "string"},
            "username": either(Prop.VICTIM, "@"),
            "password": {"type": "string"},
            "scope": either(Prop.SCOPE, "resource:"),
            "refresh_token": either(Prop.REFRESH_TOKEN),
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
    return {"type": "object", "properties": {"href": either(*ends)}, "required": ["href"]}


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
            "search-reference": either(f"https://127.0.0.1/rest/repositories/demo/saved-searches/{Prop.SEARCH}"),
        },
        "required": ["properties"],
    }


def _values() -> Json:
    value: Json = {"anyOf": [{"type": ["string", "integer", "boolean", "null"]}, {"enum": ["pump", "*", "a OR b"]}]}
    variable = {
        "type": "object",
        "properties": {
            "id": either("v1", "v2"),
            "variable-type": either("fulltext-variable"),
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
        action=either("save", "remove"),
        address=either("?q=pump", f"?saved={Prop.SEARCH}&type=document", "?sort=name"),
        name={"type": "string"},
        search=either(Prop.SEARCH),
    )


def _search_form() -> Json:
    return _mark_form(username=either(Prop.VICTIM, "@"), password={"type": "string"}, to=either("?q=pump"))


def _attribute_form() -> Json:
    return {
        "type": "object",
        "properties": {
            "action": either("add", "change", "delete"),
            "name": either("campaign.words", "x"),
            "value": {"type": "string"},
            "free": either("yes"),
            "csrf": either(Prop.TICKET_CSRF),
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
            "accessor": text(Prop.USER, "everyone@demo", "dm_owner", "dm_world", "owner", "world"),
            "basic-permission": text("None", "Browse", "Read", "Write", "Delete"),
        },
        "required": ["accessor", "basic-permission"],
        "additionalProperties": False,
    }
    made = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "permitted": {"type": "array", "items": entry}},
        "required": ["name", "permitted"],
        "additionalProperties": False,
    }
    return {"anyOf": [_reference("AclBody"), made, _exactly(**{"acl-name": "public"})]}


_BELOW = f"https://127.0.0.1/rest/repositories/{Prop.REPOSITORY}"


def _object_of(**properties: Json) -> Json:
    """Describe an object with these properties, any of which may be missing, or with another one besides."""
    other = {**properties, "no_such": {"enum": ["x", "", None, 1, ["a", "b"], {"a": 1}]}}
    given = [{"type": "object", "properties": each, "additionalProperties": False} for each in (properties, other)]
    return {"type": "object", "properties": {"properties": {"anyOf": given}}, "required": ["properties"]}


def _right(**properties: str) -> Json:
    return {"type": "object", "properties": {"properties": _exactly(**properties)}, "required": ["properties"]}


def _relation() -> Json:
    ends = {"relation_name": "peer", "parent_id": Prop.DOCUMENT, "child_id": Prop.FOLDER}
    end = either(Prop.DOCUMENT, Prop.FOLDER, Prop.VERSION, "0900000100ffffff")
    loose = _object_of(relation_name=either("peer", Prop.RELATION_TYPE), parent_id=end, child_id=end)
    return {"anyOf": [_right(**ends), loose]}


def _relation_type() -> Json:
    return _object_of(relation_name=either("peer", "campaign_other"), description={"type": "string"})


def _comment() -> Json:
    return {"anyOf": [_right(content="Who has the keys?"), _object_of(content={"type": "string"})]}


def _user() -> Json:
    loose = _object_of(
        user_name=either("newcomer@demo", Prop.NEWCOMER, "new@nowhere", "@"),
        user_login_name={"type": "string"},
        user_password={"type": "string"},
        user_state={"enum": [0, 1, 2, 3, 4, "1", None]},
        description={"type": "string"},
    )
    return {"anyOf": [_right(description="Of the campaign."), loose]}


def _group() -> Json:
    names = either("new group@demo", Prop.GROUP, "new@nowhere", "@")
    loose = _object_of(group_name=names, group_display_name={"type": "string"}, description={"type": "string"})
    return {"anyOf": [_right(description="Of the campaign."), loose]}


def _member() -> Json:
    people = (f"{_BELOW}/users/{Prop.NEWCOMER}", f"{_BELOW}/groups/{Prop.GROUP}", f"{_BELOW}/users/nobody@demo")
    return {"type": "object", "properties": {"href": either(*people)}, "required": ["href"]}


def _type() -> Json:
    plain = {"name": {"enum": ["sheet", "colour", "title", "r_object_id", "Sheet", "x" * 65]}}
    right = {**plain, "type": {"enum": ["string", "integer", "date"]}, "length": {"enum": [1, 20, 4000]}}
    property_ = {"type": "object", "properties": right, "required": list(right)}
    made = {
        "type": "object",
        "properties": {
            "name": either("campaign_drawing", Prop.TYPE, "document"),
            "parent": either("document", "folder", Prop.TYPE, "spaceship"),
            "properties": {"type": "array", "items": {"anyOf": [property_, _reference("PropertyBody")]}, "maxItems": 4},
        },
        "required": ["properties"],
    }
    return {"anyOf": [_reference("TypeBody"), made]}


def _assistance() -> Json:
    names = either("title", "sheet", "object_name", "r_object_id")
    dependencies = {"type": "object", "properties": {"title": {}, "sheet": {}}}
    properties = {"included-properties": {"type": "array", "items": names}, "dependencies": dependencies}
    return {"anyOf": [_reference("AssistBody"), {"type": "object", "properties": properties}]}


def _archive() -> Json:
    objects = either(*(f"{_BELOW}/objects/{word}" for word in (Prop.DOCUMENT, Prop.FOLDER, Prop.DRAFT)), _BELOW)
    right = {"type": "array", "items": {"const": f"{_BELOW}/objects/{Prop.DOCUMENT}"}, "minItems": 1, "maxItems": 3}
    hrefs = {"anyOf": [right, {"type": "array", "items": objects, "maxItems": 6}]}
    return {"type": "object", "properties": {"hrefs": hrefs}, "required": ["hrefs"]}


def _place() -> Json:
    return {"anyOf": [{"enum": [{}]}, _link()]}


def _batch() -> Json:
    here = f"/repositories/{Prop.REPOSITORY}"
    addresses = (
        *(f"{here}/objects/{Prop.DOCUMENT}", f"{here}/folders/{Prop.FOLDER}/objects", f"{here}/cabinets?page=2"),
        *(f"{here}/objects/{Prop.DOCUMENT}/comments", f"{here}/relations", f"{here}/types/document", f"{here}/users"),
        *(f"{here}/objects/{Prop.DOCUMENT}/lock", f"{here}/objects/{Prop.DOCUMENT}/permission-set", f"{here}/acls"),
        *(f"{here}/search", "/repositories/nowhere/objects", f"{here}/objects/{Prop.DOCUMENT}/contents?format=x"),
    )
    entities = ('{"properties": {"object_name": "batch", "content": "x"}}', '{"acl-name": "public"}', "pump", "{", "")
    header = {
        "type": "object",
        "properties": {
            "name": either("Accept", "Content-Type", "If-Match", "Authorization"),
            "value": either("application/json", "application/xml", '"1"'),
        },
        "required": ["name", "value"],
    }
    request = {
        "type": "object",
        "properties": {
            "uri": either(*addresses),
            "method": either("GET", "POST", "PUT", "DELETE"),
            "headers": {"type": "array", "items": header, "maxItems": 3},
            "entity": either(*entities),
        },
        "required": ["uri", "method"],
        "additionalProperties": False,
    }
    operation = {
        "type": "object",
        "properties": {"id": either("1", "2", "3"), "request": request},
        "required": ["id", "request"],
    }
    kinds = {name: {"type": "boolean"} for name in ("transactional", "sequential", "return-request")}
    operations = {"type": "array", "items": operation, "minItems": 1, "maxItems": 4}
    made = {
        "type": "object",
        "properties": {**kinds, "operations": operations, "on-error": either("FAIL", "CONTINUE")},
        "required": ["operations"],
    }
    return {"anyOf": [_reference("BatchBody"), made]}


_MADE: Mapping[str, Callable[[], Json]] = {
    "/login": _login_form,
    "/system-attributes": _attribute_form,
    "/tokeninfo": _verification,
    **dict.fromkeys(("/permission-set", "/default-permission-set", "/acls", "/acls/{acl}"), _acl),
    **dict.fromkeys(("/saved-searches", "/saved-searches/{search}", "/search-templates"), _saved),
    "/search-templates/{template}/execution": _values,
    "/search/saved": _saved_form,
    "/search/sign-in": _search_form,
    "/search/sign-out": _mark_form,
    **dict.fromkeys(("/parent-links", "/parent-links/{other}", "/child-links"), _link),
    "/restore": _place,
    "/archived-contents": _archive,
    "/relations": _relation,
    "/relation-types": _relation_type,
    **dict.fromkeys(("/comments", "/comments/{id}", "/replies"), _comment),
    **dict.fromkeys(("/groups/{person}/users", "/groups/{person}/groups"), _member),
    **dict.fromkeys(("/users", "/users/{person}"), _user),
    **dict.fromkeys(("/groups", "/groups/{person}"), _group),
    **dict.fromkeys(("/types", "/types/{name}"), _type),
    "/assist-values": _assistance,
    "/batches": _batch,
}
"""By how an address ends; the first that fits counts."""


BY_REST = re.compile(r"^/[^/]+/(?:rest|v1)(?=/)(?!/authentication/(?:oauth/|tokeninfo$))")
"""How the addresses of the directory by REST begin; their own descriptions are good enough."""


def schema(path: str) -> Json | None:
    """Describe the bodies to be made for an address; None for one whose own description is good enough."""
    if BY_REST.match(path):
        return None
    made = next((make for end, make in _MADE.items() if path.endswith(end)), None)
    return made() if made else None
