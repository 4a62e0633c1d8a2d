"""What does an OpenAPI 3.1 document say of these addresses?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from muniment.web.addresses import (
    Address,
    AddressTable,
    AnswerDescription,
    Content,
    CredentialKind,
    ErrorShape,
    Operation,
    Parameter,
)
from muniment.web.refusals import Refusal
from muniment.web.responses import SHARED, Table

Json: TypeAlias = dict[str, Any]

_OPEN_PART = re.compile(r"\{(\w+)(?::\w+)?\}")
_SECURITY: Mapping[CredentialKind, list[Json]] = {
    CredentialKind.NONE: [],
    CredentialKind.BEARER: [{"bearer": []}],
    CredentialKind.CLIENT: [{"client": []}, {}],
    CredentialKind.TICKET: [{"ticket": []}],
}
"""What is shown where. A client that does not use HTTP Basic says in the body who it is."""


def document(tables: Sequence[AddressTable[Any]], base: str, version: str, ticket_cookie: str) -> Json:
    """Describe the addresses of these tables. ``base`` is what every link begins with, without a slash at its end."""
    paths: dict[str, Json] = {}
    contents: list[Content] = []
    refused = _Refused()
    for table in tables:
        for address in table.addresses:
            paths[template(table.prefix + address.path)] = {
                method.lower(): _operation(table, address, method, operation, refused)
                for method, operation in address.operations.items()
            }
            contents += [table.shape_of(address).content, *_contents(address)]
    kinds = {kind for content in contents for kind in content.values() if isinstance(kind, type)}
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Muniment",
            "version": version,
            "description": "A directory that issues OAuth 2.0 tokens, and a content repository with full-text search.",
        },
        "servers": [{"url": base}],
        "tags": [{"name": table.name} for table in tables],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refused.described,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "client": {"type": "http", "scheme": "basic"},
                "ticket": {"type": "apiKey", "in": "cookie", "name": ticket_cookie},
            },
        },
    }


def template(path: str) -> str:
    """Spell a path with open parts as OpenAPI does."""
    return _OPEN_PART.sub(r"{\1}", path)


def _operation(
    table: AddressTable[Any], address: Address[Any], method: str, operation: Operation[Any], refused: "_Refused"
) -> Json:
    parts = {part.name: part for part in table.parts}
    in_path = [parts[name] for name in _OPEN_PART.findall(address.path)]
    described: Json = {
        "tags": [table.name],
        "operationId": re.sub(r"[^a-z0-9]+", "_", f"{table.name} {method} {template(address.path)}".lower()).strip("_"),
        "summary": operation.sentence,
        "security": _SECURITY[table.credentials_of(address, operation)],
        "parameters": [_parameter(parameter) for parameter in (*in_path, *operation.parameters)],
        "responses": _responses(address.refusals, operation.answers, table.shape_of(address), refused),
    }
    if operation.body:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    return described


def _parameter(parameter: Parameter) -> Json:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.meaning,
        "schema": parameter.schema,
    }


def _responses(
    refusals: Table, answers: Sequence[AnswerDescription], shape: ErrorShape, refused: "_Refused"
) -> dict[str, Json]:
    """Say what is answered with each status: what the operation lists, else the refusals of that status."""
    table = {**SHARED, **refusals}
    statuses = {said.status for said in table.values()}.difference(answer.status for answer in answers)
    responses = {str(status): refused.reference(table, status, shape) for status in sorted(statuses)}
    responses |= {str(answer.status): _answer(answer) for answer in answers}
    return dict(sorted(responses.items()))


def _answer(answer: AnswerDescription) -> Json:
    described: Json = {"description": answer.meaning}
    if answer.headers:
        described["headers"] = {
            header.name: {"description": header.meaning, "schema": header.schema} for header in answer.headers
        }
    if answer.content:
        described["content"] = _content(answer.content)
    return described


class _Refused:
    """The answers that refuse, each described once however many addresses give it."""

    def __init__(self) -> None:
        self.described: dict[str, Json] = {}

    def reference(self, table: Table, status: int, shape: ErrorShape) -> Json:
        """Describe what the table refuses with this status, unless that is done already; say where it is."""
        sentences = (_sentence(kind, shape.code(said)) for kind, said in table.items() if said.status == status)
        described = {"description": " ".join(sentences), "content": _content(shape.content)}
        alike = [name for name in self.described if name.startswith(f"{shape.name}-{status}")]
        for name in alike:
            if self.described[name] == described:
                break
        else:
            name = f"{shape.name}-{status}" + (f"-{len(alike) + 1}" if alike else "")
            self.described[name] = described
        return {"$ref": f"#/components/responses/{name}"}


def _sentence(kind: type[Refusal], code: str) -> str:
    """Say in one sentence why, after the code: the first of the refusal's docstring."""
    sentence = " ".join((kind.__doc__ or "").partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."
    return f"`{code}`: {sentence}" if code else sentence


def _contents(address: Address[Any]) -> Iterator[Content]:
    for operation in address.operations.values():
        yield operation.body
        yield from (answer.content for answer in operation.answers)


def _content(content: Content) -> Json:
    return {media_type: {"schema": _schema(kind)} for media_type, kind in content.items()}


def _schema(kind: "type[Any] | Mapping[str, Any]") -> Mapping[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"} if isinstance(kind, type) else kind
