"""Which operations does the body of a batch ask for, and may a batch have them?

All of it is checked before anything is executed. Source: docs/interface.md, ours 21.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from starlette.requests import Request

from muniment.ground import json_text
from muniment.ground import xml as strangers_xml
from muniment.ground.refusals import Malformed, TooLarge, UnsupportedMediaType
from muniment.ground.xml import Element
from muniment.repository.api.callers import credentials
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.shapes import object_body
from muniment.repository.api.wire import multipart
from muniment.repository.api.wire.multipart import BodyPart
from muniment.repository.api.wire.positions import HEADER
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import SUFFIXES
from muniment.web.requests import bodies

BATCHABLE = (
    *("acls", "cabinets", "comments", "currentuser", "documents", "folders", "formats", "groups", "objects"),
    *("relation-types", "relations", "types", "users"),
)

NOT_BATCHABLE = (
    *("archived-contents", "batch-capabilities", "batches", "content-media", "index-report", "saved-searches"),
    *("search", "search-templates", "similar"),
)

_READ_ONLY = frozenset({"users", "groups", "currentuser"})
"""They lead to the directory's data: no transaction of the repository can include a write there."""

_METHODS = ("GET", "POST", "PUT", "DELETE")
_OWN_HEADERS = frozenset({"accept", "accept-language", "content-type", "if-match", "if-none-match", HEADER.lower()})
_NOT_INHERITED = frozenset(
    {"range", "if-range", "if-modified-since", "if-unmodified-since", "transfer-encoding", "expect", "x-request-id"}
)
_LONGEST_ID, _LONGEST_URI, _LONGEST_VALUE = 200, 8000, 2000
_RAW_PATH = re.compile(r"[!-~]+")
_VALUE = re.compile(r"[\t -~\u00a0-\u00ff]*")
_DEPTH, _ELEMENTS_EACH = 12, 60
_XOP = "http://www.w3.org/2004/08/xop/include"
"""The namespace in which old clients write ``Include``."""

OnError = Literal["FAIL", "CONTINUE"]


class HeaderBody(msgspec.Struct):
    """A header of a request in a batch."""

    name: str
    value: str = ""


class IncludeBody(msgspec.Struct):
    """The part of a batch in parts that is meant: `cid:` and its Content-ID."""

    href: str


class AttachmentBody(msgspec.Struct):
    """A part that belongs to an operation, as content."""

    include: IncludeBody | None = None
    xop_include: IncludeBody | None = msgspec.field(default=None, name="Include")

    @property
    def href(self) -> str:
        return (self.include or self.xop_include or IncludeBody("")).href


class OperationRequestBody(msgspec.Struct):
    """A request in a batch: the address, the method, the headers, and the body as a text, as attachments, or both."""

    uri: str
    method: str = "GET"
    headers: list[HeaderBody] | None = None
    entity: str | None = None
    attachment: AttachmentBody | None = None
    attachments: list[AttachmentBody] | None = None

    @property
    def hrefs(self) -> list[str]:
        several = [*([self.attachment] if self.attachment else ()), *(self.attachments or ())]
        return [each.href for each in several]


class OperationBody(msgspec.Struct):
    """An operation of a batch."""

    id: str
    request: OperationRequestBody
    description: str | None = None


class BatchBody(msgspec.Struct, rename="kebab"):
    """A batch: its operations, and how they are executed."""

    operations: list[OperationBody]
    transactional: bool = False
    sequential: bool = False
    on_error: str | None = None
    return_request: bool = False


class BatchOperation(msgspec.Struct, frozen=True):
    """One operation of a batch, after it was checked. ``path`` is the decoded ``raw_path``.

    ``media_type`` is that of its ``entity``, or an empty text without a body.
    """

    id: str
    description: str
    uri: str
    method: str
    headers: tuple[tuple[str, str], ...]
    entity: str
    media_type: str
    attachments: tuple[BodyPart, ...]
    path: str
    raw_path: str
    query: str

    def body(self) -> tuple[str, bytes]:
        """Return the media type of the request's body, and the body: in parts, if it has an entity and attachments."""
        entity = self.entity.encode()
        if not self.attachments:
            return self.media_type, entity
        if not entity:
            (content,) = self.attachments
            return self.media_type or content.media_type, content.content
        boundary = secrets.token_hex(20)
        parts = [(self.media_type, entity), *((part.media_type, part.content) for part in self.attachments)]
        return f"multipart/form-data; boundary={boundary}", b"".join(_in_parts(parts, boundary))


class BatchPlan(msgspec.Struct, frozen=True):
    """A batch whose operations were checked."""

    operations: tuple[BatchOperation, ...]
    transactional: bool
    sequential: bool
    on_error: OnError
    return_request: bool

    @property
    def stops(self) -> bool:
        return self.transactional or self.on_error == "FAIL"


_json_body = msgspec.json.Decoder(BatchBody)


async def receive(request: Request, context: RepositoryContext, here: str) -> BatchPlan:
    """``here`` is the address of the repository to which it was sent.

    Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed.
    """
    kind, options, parts = bodies.media_type(request), context.options, list[BodyPart]()
    if kind == "multipart/related":
        root, parts = await multipart.read_related(request, options.max_batch_bytes)
        kind, raw = multipart.stated_type(root.media_type), root.content
        if not object_body.is_one(kind):
            raise UnsupportedMediaType("The first part of a batch in parts is the batch: JSON or XML.")
    else:
        bodies.check_encoding(request)
        raw = await bodies.raw(request, options.max_batch_bytes)
    if kind.endswith("json"):
        body = json_text.decode(raw, _json_body)
    else:
        elements = 20 + _ELEMENTS_EACH * options.max_batch_operations
        body = _of_xml(strangers_xml.parse(raw, _DEPTH, elements), options.names)
    if not body.operations:
        raise Malformed("A batch has at least one operation.")
    if len(body.operations) > options.max_batch_operations:
        raise TooLarge(f"A batch has at most {options.max_batch_operations} operations.")
    attachments = _Attachments(parts)
    operations = tuple(_operation(each, context, here, kind, attachments) for each in body.operations)
    if len({each.id for each in operations}) < len(operations):
        raise Malformed("Two operations of the batch have the same id.")
    attachments.check_all_taken()
    return BatchPlan(operations, body.transactional, body.sequential, _on_error(body), body.return_request)


def is_inherited(header: bytes) -> bool:
    name = header.decode("latin-1").lower()
    return not (name in _OWN_HEADERS or name in _NOT_INHERITED or name.startswith("content-"))


def _on_error(body: BatchBody) -> OnError:
    match (body.on_error or "").upper():
        case "":
            return "FAIL" if body.transactional else "CONTINUE"
        case "FAIL":
            return "FAIL"
        case "CONTINUE" if body.transactional:
            raise Malformed("A transactional batch is kept whole or not at all: 'on-error' cannot be CONTINUE.")
        case "CONTINUE":
            return "CONTINUE"
        case other:
            raise Malformed(f"'on-error' is FAIL or CONTINUE, not {other[:40]!r}.")


class _Attachments:
    """The parts of a batch besides the batch itself. Each is the attachment of one operation."""

    def __init__(self, parts: Sequence[BodyPart]) -> None:
        self._left = {part.id: part for part in parts}
        self._ids = {*self._left}
        if "" in self._left:
            raise Malformed("A part of the batch has no Content-ID: only the batch itself may lack one.")

    def take(self, href: str, what: str) -> BodyPart:
        """Raises Malformed."""
        scheme, _, content_id = href.partition(":")
        if scheme.lower() != "cid" or not content_id:
            raise Malformed(f"An attachment of {what} is named by 'cid:' and a Content-ID, not by {href[:100]!r}.")
        content_id = content_id if content_id in self._ids else unquote(content_id)
        if content_id not in self._ids:
            raise Malformed(f"An attachment of {what} is missing: no part has the Content-ID {content_id[:100]!r}.")
        if content_id not in self._left:
            raise Malformed(f"The part {content_id[:100]!r} is an attachment twice, the second time of {what}.")
        part = self._left.pop(content_id)
        if len(part.media_type) > _LONGEST_VALUE or not _VALUE.fullmatch(part.media_type):
            raise Malformed(f"The Content-Type of the part {content_id[:100]!r} is too long, or cannot be sent.")
        return part

    def check_all_taken(self) -> None:
        """Raises Malformed."""
        if self._left:
            raise Malformed(f"No operation of the batch has the part {min(self._left)[:100]!r} as an attachment.")


def _in_parts(parts: Sequence[tuple[str, bytes]], boundary: str) -> Iterator[bytes]:
    for media_type, content in parts:
        stated = f"Content-Type: {media_type}\r\n" if media_type else ""
        yield f"--{boundary}\r\n{stated}\r\n".encode("latin-1")
        yield content
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _operation(
    body: OperationBody, context: RepositoryContext, here: str, kind: str, parts: _Attachments
) -> BatchOperation:
    """``kind`` is the media type of the batch, and of each entity without a Content-Type."""
    if not 0 < len(body.id) <= _LONGEST_ID or len(body.description or "") > _LONGEST_VALUE:
        raise Malformed(
            f"The id of an operation has 1 to {_LONGEST_ID} characters, its description at most {_LONGEST_VALUE}."
        )
    method, what = body.request.method.upper(), f"the operation {body.id[:100]!r}"
    if method not in _METHODS:
        raise Malformed(f"The method of {what} is one of {', '.join(_METHODS)}.")
    entity = body.request.entity or ""
    try:
        entity.encode()
    except UnicodeEncodeError as error:
        raise Malformed(f"The entity of {what} holds a character that is no Unicode text.") from error
    raw_path, below, query = _address(body.request.uri, context, here, what)
    _check_resource(below, method, what)
    headers = tuple(_header(header, what) for header in body.request.headers or ())
    if len({name for name, _ in headers}) < len(headers):
        raise Malformed(f"A header of {what} comes twice.")
    attachments = tuple(parts.take(href, what) for href in body.request.hrefs)
    if len(attachments) > 1 and not entity:
        raise Malformed(f"With several attachments, {what} has an entity: the metadata of their object.")
    return BatchOperation(
        body.id,
        body.description or "",
        body.request.uri,
        method,
        headers,
        entity,
        dict(headers).get("content-type", kind if entity else ""),
        attachments,
        unquote(raw_path),
        raw_path,
        query,
    )


def _address(uri: str, context: RepositoryContext, here: str, what: str) -> tuple[str, list[str], str]:
    """Return the path as the application knows it, without that of the base address, its decoded parts below the
    repository, and the query.
    """
    shown_path, prefix = urlsplit(here).path, f"/{context.names.prefix}"
    base_path = shown_path.rpartition(f"{prefix}/repositories/")[0]
    target = uri.removeprefix(here.removesuffix(shown_path)) if uri.startswith(f"{here}/") else uri
    if target.startswith(f"{base_path}{prefix}/repositories/"):
        target = target.removeprefix(base_path)
    elif target.startswith("/repositories/"):
        target = prefix + target
    raw_path, _, query = target.partition("#")[0].partition("?")
    if len(uri) > _LONGEST_URI or not _RAW_PATH.fullmatch(target):
        raise Malformed(f"The address of {what} is too long, or has a character that must be percent-encoded.")
    parts, own_parts = ([*map(unquote, path.split("/"))] for path in (raw_path, shown_path.removeprefix(base_path)))
    below = parts[len(own_parts) :]
    if parts[: len(own_parts)] != own_parts or not below:
        raise Malformed(f"The address of {what} must be one below {here}/.")
    fields = bodies.form_fields(query.encode(), "The query")
    if carried := fields.keys() & {*credentials.parameters(context.options), credentials.TOKEN_PARAMETER}:
        raise Malformed(
            f"The address of {what} has {min(carried)!r}: operations have the credentials of the batch's own request."
        )
    return raw_path, below, query


def _check_resource(below: Sequence[str], method: str, what: str) -> None:
    bare = [_without_suffix(part) for part in below]
    refused = sorted({*bare} & {*NOT_BATCHABLE})
    if bare[0] not in BATCHABLE or refused:
        name = refused[0] if refused else bare[0]
        raise Malformed(f"The address of {what} cannot be part of a batch: {name[:100]!r} is not batchable.")
    if bare[0] in _READ_ONLY and method != "GET":
        raise Malformed(f"In a batch, the address of {what} can only be read.")


def _without_suffix(part: str) -> str:
    stem, dot, suffix = part.rpartition(".")
    return stem if dot and suffix in SUFFIXES else part


def _header(header: HeaderBody, what: str) -> tuple[str, str]:
    name = header.name.strip().lower()
    if name not in _OWN_HEADERS:
        raise Malformed(
            f"A request in a batch may have the headers {', '.join(sorted(_OWN_HEADERS))}; {what} has "
            f"{header.name[:100]!r}. Credentials are taken from the batch's own request."
        )
    if len(header.value) > _LONGEST_VALUE or not _VALUE.fullmatch(header.value):
        raise Malformed(f"The header {name!r} of {what} is too long, or cannot be sent.")
    return name, header.value


def _of_xml(root: Element, names: RepositoryNames) -> BatchBody:
    """Each value in it may be an attribute or an element. Headers stand in a list, or directly in their request."""
    _check_namespaces(root, names)
    lists = [child for child in root.children if child.name == "operations"]
    return BatchBody(
        [_operation_of_xml(each) for operations in lists for each in operations.children],
        _truth(root, "transactional"),
        _truth(root, "sequential"),
        _member(root, "on-error"),
        _truth(root, "return-request"),
    )


def _operation_of_xml(element: Element) -> OperationBody:
    requests = [child for child in element.children if child.name == "request"]
    if element.name != "operation" or len(requests) != 1:
        raise Malformed(f"'operations' holds elements 'operation' with one 'request' each ({element.place}).")
    of_request = requests[0]
    headers = [
        HeaderBody(_member(each, "name") or "", _member(each, "value") or "")
        for each in _listed(of_request, "headers", "header")
    ]
    body = OperationRequestBody(
        _member(of_request, "uri") or "",
        _member(of_request, "method") or "GET",
        headers,
        _member(of_request, "entity"),
        attachments=[_attachment_of_xml(each) for each in _listed(of_request, "attachments", "attachment")],
    )
    return OperationBody(_member(element, "id") or "", body, _member(element, "description"))


def _attachment_of_xml(element: Element) -> AttachmentBody:
    includes = [child for child in element.children if child.name.lower() == "include"]
    if len(includes) != 1:
        raise Malformed(f"'attachment' holds one element 'include' with an 'href' ({element.place}).")
    return AttachmentBody(IncludeBody(_member(includes[0], "href") or ""))


def _listed(element: Element, list_name: str, name: str) -> Iterator[Element]:
    """Yield the members of a list, which stand in an element of their own or directly in this one."""
    for child in element.children:
        if child.name == list_name:
            yield from child.children
        elif child.name == name:
            yield child


def _check_namespaces(element: Element, names: RepositoryNames) -> None:
    """Raises Malformed."""
    if element.namespace != _XOP:
        object_body.check_namespace(element, names)
    for child in element.children:
        _check_namespaces(child, names)


def _member(element: Element, name: str) -> str | None:
    values = [child.text for child in element.children if child.name == name]
    if name in element.attributes:
        values.append(element.attributes[name])
    if len(values) > 1:
        raise Malformed(f"{name!r} comes twice ({element.place}).")
    return values[0] if values else None


def _truth(element: Element, name: str) -> bool:
    text = (_member(element, name) or "false").strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise Malformed(f"{name!r} is true or false ({element.place}).")
    return text in ("true", "1")
