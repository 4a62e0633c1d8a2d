"""Describe tables of addresses in an OpenAPI 3.1 document."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from muniment.ground.refusals import Refusal
from muniment.web.addresses import (
    Address,
    AddressTable,
    AnswerDescription,
    Content,
    CredentialKind,
    ErrorShape,
    Operation,
    first_sentence,
)
from muniment.web.answers.responses import SHARED, Table

Json: TypeAlias = dict[str, Any]

_ANY, _BYTES = "*/*", "application/octet-stream"
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_NULL = {"type": "null"}
_OPEN_PART = re.compile(r"\{(\w+)(?::\w+)?\}")
_SECURITY: Mapping[CredentialKind, list[Json]] = {
    CredentialKind.NONE: [],
    CredentialKind.BEARER: [{"bearer": []}],
    CredentialKind.CLIENT: [{"client": []}, {}],
    CredentialKind.TICKET: [{"ticket": []}],
    CredentialKind.SEARCH_PAGE: [{"search_page": []}],
    CredentialKind.DIRECTORY: [{"bearer": []}, {"ticket": []}],
}
"""An OAuth client may also identify itself in the body."""


class CallerCredentials(msgspec.Struct, frozen=True):
    """``basic``: HTTP Basic is taken. No address takes credentials with an empty name."""

    basic: bool = False
    ticket: str = ""
    csrf: str = ""
    address_token: str = ""
    search_page: str = ""

    def security(self, *, safe: bool) -> list[Json]:
        """Unless ``safe``, a ticket in a cookie also needs the CSRF token."""
        taken: list[Json] = [{"bearer": []}]
        if self.basic:
            taken.append({"basic": []})
        if self.ticket:
            taken += [{"ticket_header": []}, {"ticket": []} if safe else {"ticket": [], "csrf": []}]
        if self.address_token:
            taken.append({"address_token": []})
        return taken

    def schemes(self) -> Json:
        schemes: Json = {}
        if self.basic:
            schemes["basic"] = {"type": "http", "scheme": "basic", "description": "A user's name and password."}
        if self.ticket:
            schemes["ticket_header"] = {"type": "apiKey", "in": "header", "name": self.ticket}
            schemes["csrf"] = {"type": "apiKey", "in": "header", "name": self.csrf}
        if self.address_token:
            schemes["address_token"] = {"type": "apiKey", "in": "query", "name": self.address_token}
        if self.search_page:
            schemes["search_page"] = {"type": "apiKey", "in": "cookie", "name": self.search_page}
        return schemes


def document(
    tables: Sequence[AddressTable[Any]], base: str, version: str, ticket_cookie: str, callers: CallerCredentials
) -> Json:
    """``base`` begins every link, without a slash at its end."""
    paths: dict[str, Json] = {}
    contents: list[Content] = []
    refusal_responses = _RefusalResponses()
    for table in tables:
        for address in table.addresses:
            paths[template(table.prefix + address.path)] = {
                method.lower(): _operation(table, address, method, operation, refusal_responses, callers)
                for method, operation in address.operations.items()
            }
            contents += [table.shape_of(address).content, *_contents(address)]
    kinds = {kind for content in contents for form in content.values() for kind in _types(form)}
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "Muniment",
            "version": version,
            "description": "A directory that issues OAuth 2.0 tokens, and a content repository with full-text search.",
        },
        "servers": [{"url": base}],
        "tags": [{"name": table.name, **({"description": table.note} if table.note else {})} for table in tables],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refusal_responses.components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "client": {"type": "http", "scheme": "basic"},
                "ticket": {"type": "apiKey", "in": "cookie", "name": ticket_cookie},
                **callers.schemes(),
            },
        },
    }
    return {part: _for_generators(described[part]) for part in described}


def template(path: str) -> str:
    return _OPEN_PART.sub(r"{\1}", path)


def _operation(
    table: AddressTable[Any],
    address: Address[Any],
    method: str,
    operation: Operation[Any],
    refusal_responses: "_RefusalResponses",
    callers: CallerCredentials,
) -> Json:
    parts = {part.name: part for part in table.parts}
    path_parts = [parts[name] for name in _OPEN_PART.findall(address.path)]
    credentials = table.credentials_of(address, operation)
    description: Json = {
        "tags": [table.name],
        "operationId": _NO_LETTER.sub("_", f"{table.name} {method} {template(address.path)}".lower()).strip("_"),
        "summary": operation.sentence,
        "security": callers.security(safe=method == "GET")
        if credentials is CredentialKind.CALLER
        else _SECURITY[credentials],
        "parameters": [
            {
                "name": parameter.name,
                "in": parameter.place,
                "required": parameter.place == "path",
                "description": parameter.meaning,
                "schema": parameter.schema,
            }
            for parameter in (*path_parts, *operation.parameters)
        ],
        "responses": _responses(address.refusals, operation.answers, table.shape_of(address), refusal_responses),
    }
    if operation.body:
        description["requestBody"] = _body(operation.body)
    return description


def _body(content: Content) -> Json:
    """No generator can make a body of any media type: it is described as bytes."""
    described = _content(content)
    if described.pop(_ANY, None) is None:
        return {"required": True, "content": described}
    note = "Content may be of any media type; `Content-Type` says which."
    return {"required": True, "description": note, "content": described}


def _responses(
    refusals: Table, answers: Sequence[AnswerDescription], shape: ErrorShape, refusal_responses: "_RefusalResponses"
) -> dict[str, Json]:
    table = {**SHARED, **refusals}
    statuses = {error_code.status for error_code in table.values()}.difference(answer.status for answer in answers)
    responses = {str(status): refusal_responses.reference(table, status, shape) for status in sorted(statuses)}
    responses |= {str(answer.status): _answer(answer) for answer in answers}
    return dict(sorted(responses.items()))


def _answer(answer: AnswerDescription) -> Json:
    description: Json = {"description": answer.meaning}
    if answer.headers:
        description["headers"] = {
            header.name: {"description": header.meaning, "schema": header.schema} for header in answer.headers
        }
    if answer.content:
        description["content"] = _content(answer.content)
    return description


class _RefusalResponses:
    def __init__(self) -> None:
        self.components: dict[str, Json] = {}

    def reference(self, table: Table, status: int, shape: ErrorShape) -> Json:
        sentences = (
            _sentence(kind, shape.code(error_code)) for kind, error_code in table.items() if error_code.status == status
        )
        description = {"description": " ".join(sentences), "content": _content(shape.content)}
        same_status = [name for name in self.components if name.startswith(f"{shape.name}-{status}")]
        for name in same_status:
            if self.components[name] == description:
                break
        else:
            name = f"{shape.name}-{status}" + (f"-{len(same_status) + 1}" if same_status else "")
            self.components[name] = description
        return {"$ref": f"#/components/responses/{name}"}


def _sentence(kind: type[Refusal], code: str) -> str:
    sentence = first_sentence(kind)
    return f"`{code}`: {sentence}" if code else sentence


def _contents(address: Address[Any]) -> Iterator[Content]:
    for operation in address.operations.values():
        yield operation.body
        yield from (answer.content for answer in operation.answers)


def _content(content: Content) -> Json:
    described = {media_type: {"schema": _schema(kind)} for media_type, kind in content.items() if media_type != _ANY}
    if _ANY in content:
        described |= {media_type: {"schema": _schema(content[_ANY])} for media_type in (_BYTES, _ANY)}
    return described


def _types(form: "type[Any] | tuple[type[Any], ...] | Mapping[str, Any]") -> tuple[type[Any], ...]:
    if isinstance(form, type):
        return (form,)
    return form if isinstance(form, tuple) else ()


def _schema(form: "type[Any] | tuple[type[Any], ...] | Mapping[str, Any]") -> Mapping[str, Any]:
    if isinstance(form, Mapping):
        return form
    references = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in _types(form)]
    return references[0] if len(references) == 1 else {"anyOf": references}


def _for_generators(part: Any) -> Any:
    """Write a schema in the words that client generators know.

    They know no constant, no choice without a type, and null only as one of several types. They spell names in their
    own way, so of two properties with the same letters the first is described. For some, an object has no further
    properties unless its schema says so.
    """
    if isinstance(part, list):
        return [each if each == _NULL else _for_generators(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part == _NULL:
        return {}
    if isinstance(part.get("const"), str):
        part = {"enum": [part["const"]]}
    if isinstance(part.get("enum"), list):
        part = {"type": "string", **part}
    if part.get("type") == "object" and "properties" in part:
        part = _with_clear_names(part)
    return {name: _for_generators(each) for name, each in part.items()}


def _with_clear_names(schema: Json) -> Json:
    names: dict[str, str] = {}
    for name in schema["properties"]:
        names.setdefault(_NO_LETTER.sub("", name.lower()), name)
    kept = {name: schema["properties"][name] for name in names.values()}
    return {
        **schema,
        "properties": kept,
        "required": [name for name in schema.get("required", ()) if name in kept],
        "additionalProperties": len(kept) < len(schema["properties"]) or schema.get("additionalProperties", True),
    }
