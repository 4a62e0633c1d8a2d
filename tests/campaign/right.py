"""Right requests: what an address takes, written for what is on the stage, and those that are right but for one thing.

Of requests that are drawn as a whole few fit, for each of their parts is wrong now and then. Such a request gets no
further than the first check. So most are made right here, and one part of them stays as it was drawn or is damaged.
"""

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from muniment.repository.options import RepositoryNames
from tests.campaign.by_rest import BODIES, PLACES
from tests.campaign.json_bodies import BY_REST, Json
from tests.campaign.stage import Prop

_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_SPACE = RepositoryNames().vocab_namespace
_BELOW = f"https://127.0.0.1/rest/repositories/{Prop.REPOSITORY}"
_FORMS = ("/login", "/system-attributes", "/search/sign-in", "/search/sign-out", "/search/saved")
_WILD = (None, True, 0, -1, 2**63, 1.5, "", " ", "x", "\x00", "\ud800", "é\U0001f5c4\u202e", "9" * 40, "x" * 70_000)
_WILD_GROUPS: tuple[Any, ...] = ([], {}, [[]], [None], [{}], {"": ""}, ["x"] * 300, {"x": {"x": {"x": {}}}})

_METADATA = {"properties": {"object_name": "right", "title": "pump station"}}
_KEYWORDED = {"properties": {"object_name": "right", "keywords": ["pump", "valve"]}}
_ACL = {"name": Prop.NEW, "permitted": [{"accessor": Prop.USER, "basic-permission": "Write"}]}
_QUERY = {
    "types": ["document"],
    "expression-set": {
        "expression-type": "expression-set",
        "operator": "AND",
        "expressions": [
            {"expression-type": "fulltext", "value": "pump", "template": True},
            {"expression-type": "property", "name": "title", "operator": "BEGINS_WITH", "value": "pump"},
        ],
    },
}
_SHEET = {"name": "sheet", "type": "string", "length": 20, "values": ["A4"]}


def _saved(document: str) -> Json:
    return {"properties": {"object_name": "right", "r_is_public": True}, document: _QUERY}


def _operation(number: str, method: str, path: str, entity: str = "") -> Json:
    headers = [{"name": "Content-Type", "value": _JSON}]
    request = {"method": method, "uri": f"/rest/repositories/{Prop.REPOSITORY}{path}", "headers": headers}
    return {"id": number, "request": {**request, "entity": entity} if entity else request}


def _batch(*, together: bool) -> Json:
    made = '{"properties": {"object_name": "of a batch", "title": "pump"}}'
    operations = [
        _operation("1", "POST", "/objects", made),
        _operation("2", "GET", f"/objects/{Prop.DOCUMENT}"),
        _operation("3", "POST", f"/objects/{Prop.DOCUMENT}/comments", '{"properties": {"content": "of a batch"}}'),
        _operation("4", "PUT", f"/objects/{Prop.DOCUMENT}/lock"),
        _operation("5", "DELETE", f"/objects/{Prop.DOCUMENT}/lock"),
    ]
    return {"transactional": together, "sequential": True, "return-request": True, "operations": operations}


_BODIES: Mapping[str, tuple[Json, ...]] = {
    "POST /login": (
        {
            "grant_type": "password",
            "client_id": Prop.CLIENT,
            "username": Prop.USER,
            "password": Prop.PASSWORD,
            "scope": Prop.SCOPE,
        },
        {"grant_type": "refresh_token", "client_id": Prop.CLIENT, "refresh_token": Prop.REFRESH_TOKEN},
    ),
    "POST /oauth2/token": (
        {
            "grant_type": "password",
            "client_id": Prop.CLIENT,
            "username": Prop.USER,
            "password": Prop.PASSWORD,
            "scope": Prop.SCOPE,
        },
        {"grant_type": "authorization_code", "client_id": Prop.CLIENT, "code": Prop.TOKEN, "code_verifier": "x" * 43},
        {"grant_type": _DEVICE, "client_id": Prop.CLIENT, "device_code": Prop.TOKEN},
        {"grant_type": _EXCHANGE, "client_id": Prop.CLIENT, "subject_token": Prop.TOKEN, "subject_token_type": _TOKEN},
    ),
    "POST /oauth2/auth": (
        {"client_id": Prop.CLIENT, "redirect_uri": "https://app.example/back", "response_type": "code"},
        {"csrf": Prop.TICKET_CSRF, "request": "x", "decision": "allow"},
    ),
    "POST /oauth2/authorize": (
        {"client_id": Prop.CLIENT, "redirect_uri": "https://app.example/back", "response_type": "code"},
    ),
    "POST /oauth2/device": ({"csrf": Prop.TICKET_CSRF, "user_code": "BCDF-GHJK", "decision": "allow"},),
    "POST /oauth2/device_authorization": ({"client_id": Prop.CLIENT, "scope": Prop.SCOPE},),
    "POST /oauth2/introspect": ({"token": Prop.TOKEN, "client_id": Prop.RESOURCE, "client_secret": "x"},),
    "POST /oauth2/revoke": ({"token": Prop.DEAD_TOKEN, "client_id": Prop.CLIENT},),
    "POST /tokeninfo": ({"token": Prop.TOKEN, "resource_id": Prop.RESOURCE},),
    "POST /system-attributes": (
        {"action": "add", "name": "campaign.words", "value": "x", "csrf": Prop.TICKET_CSRF},
        {"action": "change", "name": "campaign.words", "value": "y", "csrf": Prop.TICKET_CSRF},
        {"action": "delete", "name": "campaign.words", "value": "", "csrf": Prop.TICKET_CSRF},
    ),
    "POST /search/sign-in": ({"csrf": Prop.MARK, "username": Prop.USER, "password": Prop.PASSWORD, "to": "?q=pump"},),
    "POST /search/sign-out": ({"csrf": Prop.MARK},),
    "POST /search/saved": (
        {"csrf": Prop.MARK, "action": "save", "address": "?q=pump", "name": "right", "search": ""},
        {"csrf": Prop.MARK, "action": "remove", "address": "?q=pump", "name": "", "search": Prop.SEARCH},
    ),
    "POST /search": (_QUERY, {"expression-set": _QUERY["expression-set"], "sorts": [{"property": "title"}]}),
    "POST /search/explanation": (_QUERY,),
    "POST /cabinets": (_METADATA,),
    "POST /objects": (_METADATA, _KEYWORDED),
    "POST /folders": (_METADATA,),
    "POST /documents": (_METADATA, _KEYWORDED),
    "POST /{id}": (_METADATA, {"properties": {"title": "changed"}}),
    "POST /parent-links": ({"href": f"{_BELOW}/folders/{Prop.FOLDER}"},),
    "PUT /parent-links/{other}": ({"href": f"{_BELOW}/cabinets/{Prop.CABINET}"},),
    "POST /child-links": ({"href": f"{_BELOW}/objects/{Prop.DOCUMENT}"},),
    "POST /restore": ({}, {"href": f"{_BELOW}/folders/{Prop.FOLDER}"}),
    "POST /archived-contents": ({"hrefs": [f"{_BELOW}/objects/{Prop.DOCUMENT}"]},),
    "POST /versions": (_METADATA, {"properties": {}}),
    "PUT /default-permission-set": (_ACL, {"acl-name": "public"}),
    "POST /acls": (_ACL,),
    "POST /acls/{acl}": ({"permitted": _ACL["permitted"]},),
    "PUT /permission-set": (_ACL, {"acl-name": "public"}, {"acl-name": Prop.ACL}),
    "POST /users": (
        {"properties": {"user_name": f"{Prop.NEW}@demo", "user_password": "a long sentence", "description": "x"}},
    ),
    "POST /users/{person}": ({"properties": {"description": "changed", "user_state": 0}},),
    "POST /groups": ({"properties": {"group_name": f"{Prop.NEW}@demo", "description": "x"}},),
    "POST /groups/{person}": ({"properties": {"group_name": f"{Prop.NEW}@demo", "description": "changed"}},),
    "POST /groups/{person}/users": ({"href": f"{_BELOW}/users/{Prop.USER}"},),
    "POST /groups/{person}/groups": ({"href": f"{_BELOW}/groups/{Prop.INNER_GROUP}"},),
    "POST /saved-searches": (_saved("query-document"),),
    "POST /saved-searches/{search}": (_saved("query-document"), {"properties": {"title": "changed"}}),
    "POST /search-templates": (_saved("query-document-template"),),
    "POST /search-templates/{template}/execution": (
        {"external-variables": [{"id": "v1", "variable-type": "fulltext-variable", "variable-value": "pump"}]},
    ),
    "POST /relations": (
        {"properties": {"relation_name": "peer", "parent_id": Prop.DOCUMENT, "child_id": Prop.DOCUMENT}},
        {"properties": {"relation_name": Prop.RELATION_TYPE, "parent_id": Prop.FOLDER, "child_id": Prop.DOCUMENT}},
    ),
    "POST /relation-types": ({"properties": {"relation_name": Prop.NEW, "description": "x"}},),
    "POST /comments": ({"properties": {"content": "Who has the keys?"}},),
    "POST /comments/{id}": ({"properties": {"content": "I have them."}},),
    "POST /replies": ({"properties": {"content": "I have them."}},),
    "POST /batches": (_batch(together=True), _batch(together=False)),
    "POST /types": ({"name": Prop.NEW, "parent": "document", "properties": [_SHEET]},),
    "POST /types/{name}": (
        {"properties": [_SHEET, {"name": "colour", "type": "string", "length": 9, "searchable": True}]},
        {"properties": [{"name": "sheet", "length": 40, "label": {"en": "Sheet"}}]},
    ),
    "POST /assist-values": ({"included-properties": ["sheet", "title"], "dependencies": {"title": "pump"}},),
}
"""By method and by how an address ends; the longest ending that fits counts."""

_PLACES: Mapping[str, str] = {
    **PLACES,
    "{repository}": Prop.REPOSITORY,
    "/folders/{id}": Prop.FOLDER,
    "/cabinets/{id}": Prop.CABINET,
    "/relations/{id}": Prop.RELATION,
    "/comments/{id}": Prop.COMMENT,
    "/wastebasket/{id}": Prop.DELETED,
    "/parent-links/{other}": Prop.FOLDER,
    "/child-links/{other}": Prop.LINKED,
    "/users/{person}": Prop.NEWCOMER,
    "/groups/{person}": Prop.GROUP,
    "/users/{member}": Prop.NEWCOMER,
    "/groups/{member}": Prop.INNER_GROUP,
    "{id}": Prop.DOCUMENT,
    "{relation_type}": Prop.RELATION_TYPE,
    "{token}": Prop.TOKEN,
    "{page}": "settings.md",
    "{rest}": "nowhere",
    "{search}": Prop.SEARCH,
    "{template}": Prop.TEMPLATE,
    "{format}": "pdf",
    "{location}": "local",
    "{acl}": Prop.ACL,
    "/types/{name}": Prop.TYPE,
    "/static/{name}": "style.css",
}
"""What stands in a path, by the place and what is before it; the first that fits counts."""

_PLACES_AT: Mapping[str, str] = {
    "POST /objects/{id}/versions": Prop.DRAFT,
    "DELETE /objects/{id}/lock": Prop.DRAFT,
    "GET /objects/{id}/parent-links/{other}": Prop.LINKED,
    "PUT /objects/{id}/parent-links/{other}": Prop.LINKED,
    "DELETE /objects/{id}/parent-links/{other}": Prop.LINKED,
    "GET /objects/{id}/parent-links": Prop.LINKED,
    "POST /groups/{group}/memberof": Prop.INNER_GROUP,
    "POST /groups/{group}/memberof/deletionset": Prop.INNER_GROUP,
    "POST /resources/{resource}/activate": Prop.IDLE_RESOURCE,
}
"""What stands at the thing itself where it is not what stands there elsewhere."""

_QUERIES: Mapping[str, Mapping[str, str]] = {
    "GET /object-by-path": {"path": "/cabinet of the campaign"},
    "GET /search/explanation": {"q": "pump", "object": Prop.DOCUMENT},
    "POST /search/explanation": {"object": Prop.DOCUMENT},
    "GET /search/suggestions": {"q": "pu"},
    "GET /search": {"q": "pump"},
    "GET /archived-contents": {"object-id": Prop.DOCUMENT},
    "DELETE /cabinets/{id}": {"del-non-empty": "true"},
    "DELETE /folders/{id}": {"del-non-empty": "true"},
    "DELETE /documents/{id}": {"del-version": "ALL"},
}
"""The parameters without which an address does nothing, or less than it can."""

_ROOTS: Mapping[str, str] = {
    "objects": "document",
    "cabinets": "cabinet",
    "folders": "folder",
    "documents": "document",
    "versions": "document",
    "relations": "relation",
    "relation-types": "relation-type",
    "comments": "comment",
    "replies": "comment",
    "users": "user",
    "groups": "group",
}
"""Of bodies that are properties alone: the element that they are in XML."""


def place(method: str, path: str, name: str) -> str:
    """Say what stands at a place of a path."""
    own: str | None = _ending(_PLACES_AT, method, path) if name in ("id", "group", "resource") else None
    if own is not None:
        return own
    return next(word for before, word in _PLACES.items() if before.endswith(f"{{{name}}}") and before in path)


def bodies(method: str, path: str) -> tuple[Json, ...]:
    """List right bodies for an address; none where it takes none, or any bytes."""
    below = BY_REST.sub("", path)
    return (_ending(_BODIES, method, path) if below == path else BODIES.get(f"{method} {below}")) or ()


def straighten(case: Any, chance: random.Random) -> Any:
    """Make a drawn request right but for one thing: a part that stays as it was drawn, a damaged body, or nothing."""
    method, path = case.operation.method.upper(), case.operation.path
    able = bodies(method, path)
    wrong = chance.choice(("", "path", "query", "headers", *(("drawn", *("damaged",) * 4) if able else ("query",))))
    places = dict(case.path_parameters or {})
    if wrong != "path":
        places = {name: place(method, path, name) for name in places}
    drawn = list((case.query or {}).items()) if wrong == "query" else []
    query = dict(_ending(_QUERIES, method, path) or {})
    query |= dict(chance.sample(drawn, min(len(drawn), chance.choice((1, 1, 2, 3)))))
    accepted = {"Accept": chance.choice((_JSON, "application/xml", "*/*"))}
    body, media_type = case.body, case.media_type
    if able and wrong != "drawn":
        right = chance.choice(able)
        media_type, body = written(path, damaged(right, chance) if wrong == "damaged" else right, media_type)
    headers = case.headers if wrong == "headers" else accepted
    return case.operation.Case(path_parameters=places, query=query, headers=headers, body=body, media_type=media_type)


def written(path: str, body: Json, media_type: str | None) -> tuple[str, Any]:
    """Write a body as a form where the address takes one, as XML where that was drawn and is easy, else as JSON."""
    if "/oauth2/" in path or path.endswith(_FORMS):
        fields = {name: "" if value is None else str(value) for name, value in body.items()}
        return _FORM, {name: value.encode("utf-8", "replace").decode() for name, value in fields.items()}
    root = _ROOTS.get([part for part in path.split("/") if "{" not in part][-1])
    if root and media_type == "application/xml" and list(body) == ["properties"]:
        return media_type, as_xml(root, body).encode("utf-8", "surrogatepass")
    return _JSON, body


def damaged(body: Json, chance: random.Random) -> Json:
    """Change one thing of a body: a value at any depth is another one, is missing, is doubled, or has a neighbour."""
    changed = copy.deepcopy(body)
    holder, key = chance.choice([*_values(changed), (changed, "x")])
    how = chance.choice(("other", "other", "other", "none", "neighbour"))
    if how == "none" and isinstance(holder, dict):
        holder.pop(key, None)
    elif how == "neighbour":
        other = chance.choice(_WILD + _WILD_GROUPS)
        if isinstance(holder, dict):
            holder[chance.choice(("x", "", "r_object_id", "links", "object_name", "name"))] = other
        else:
            holder.append(chance.choice((other, copy.deepcopy(holder[0]))))
    else:
        holder[key] = chance.choice(_WILD + _WILD_GROUPS)
    return changed


def as_xml(root: str, body: Json) -> str:
    """Write properties as XML; what cannot stand there is left to the reader to refuse."""
    properties = body.get("properties")
    inner = "".join(_element(name, value) for name, value in properties.items()) if isinstance(properties, dict) else ""
    return f"<{root} xmlns={quoteattr(_SPACE)}><properties>{inner}</properties></{root}>"


def _element(name: str, value: Any) -> str:
    name = name or "x"
    if isinstance(value, list):
        return f"<{name}>{''.join(_element('item', one) for one in value)}</{name}>"
    if isinstance(value, dict):
        return f"<{name}>{''.join(_element(other, one) for other, one in value.items())}</{name}>"
    return f"<{name}>{'' if value is None else escape(str(value))}</{name}>"


def _values(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give what holds a value, and where in it, for each value of a body."""
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in within:
        yield value, key
        yield from _values(inner)


def _ending(table: Mapping[str, Any], method: str, path: str) -> Any:
    """Find what a table has for the longest ending of an address."""
    steps = path.split("/")
    for at in range(1, len(steps)):
        key = f"{method} /{'/'.join(steps[at:])}"
        if key in table:
            return table[key]
    return None
