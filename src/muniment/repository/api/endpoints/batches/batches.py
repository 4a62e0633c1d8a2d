"""Answer several requests that a caller sends as one.

The same application answers each, for the same caller and with the same checks as alone.

Source: docs/interface.md, ours 21.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope

from muniment.database.common_transaction import CommonTransaction
from muniment.ground import events
from muniment.ground.events import Event
from muniment.repository.api.context import Caller, RepositoryContext, enter_for_thing
from muniment.repository.api.endpoints.batches import batch_bodies
from muniment.repository.api.endpoints.batches.batch_bodies import BatchOperation, BatchPlan
from muniment.repository.api.wire import spelling
from muniment.repository.api.wire.spelling import Written
from muniment.web.answers.responses import ErrorCode
from muniment.web.requests import witness
from muniment.web.requests.transport import new_request_id

CAPABILITIES: Mapping[str, Written] = {
    "transactions": "both",
    "sequence": "both",
    "on-error": "both",
    "batchable-resources": list(batch_bodies.BATCHABLE),
    "non-batchable-resources": list(batch_bodies.NOT_BATCHABLE),
}
"""What a batch can do. ``both`` means that the caller chooses: with or without a transaction, in a fixed order or not,
and with or without a stop at the first failure."""

FINISHED, FAILED, ROLLED_BACK, PENDING = "FINISHED", "FAILED", "ROLLED_BACK", "PENDING"

_LATE = "The time of the batch was over before this operation began."
_FULL = "The answers of the batch were too large before this operation began."
_SHOWN_HEADERS = frozenset(
    {"content-type", "etag", "location", "muniment-position", "muniment-ignored", "retry-after", "allow"}
)

log = structlog.get_logger("muniment.batches")


class BatchDocument(msgspec.Struct, rename="kebab"):
    """An answer to a batch: each operation with its state and its response."""

    transactional: bool
    sequential: bool
    on_error: str
    return_request: bool
    operations: list[dict[str, Any]]


class CapabilitiesDocument(msgspec.Struct, rename="kebab"):
    """What a batch can do, and which addresses its operations may have."""

    transactions: str
    sequence: str
    on_error: str
    batchable_resources: list[str]
    non_batchable_resources: list[str]


class OperationOutcome(msgspec.Struct):
    """The state of an operation, and its answer."""

    state: str
    status: int = 0
    headers: Sequence[tuple[str, str]] = ()
    entity: str = ""


async def capabilities(request: Request, context: RepositoryContext) -> Response:
    """Show the capabilities of batches."""
    caller, media_type = await enter_for_thing(request, context)
    names = context.names
    await caller.check()
    here = caller.here
    links: Written = [{"rel": "self", "href": f"{here}/batch-capabilities"}]
    return spelling.reply(media_type, "batch-capabilities", {**CAPABILITIES, "links": links}, names)


@events.tells("acl", "object rights")
async def execute(request: Request, context: RepositoryContext) -> Response:
    """Execute several requests, each alone or all in one transaction."""
    caller, media_type = await enter_for_thing(request, context)
    names = context.names
    with caller.batching():
        here = caller.here
        batch = await batch_bodies.receive(request, context, here)
        await caller.check()
        execution = _Execution(request, context, batch)
        if batch.transactional:
            outcomes = await _in_one_transaction(execution, caller)
        else:
            outcomes = await execution.run(request.scope[witness.WITNESS])
    document = _document(batch, outcomes)
    headers = {"Content-Type": media_type, "Cache-Control": "no-store"}
    return Response(spelling.document_answer(media_type, "batch", document, names), headers=headers)


async def _in_one_transaction(execution: "_Execution", caller: Caller) -> list[OperationOutcome]:
    """Commit if all succeeded, after checking the caller's right again. If one failed, nothing is stored, and those
    that succeeded are ``ROLLED_BACK``.
    """
    done = False
    try:
        async with caller.common_transaction() as common:
            outcomes = await execution.run(execution.application)
            common.check_time()
            if all(outcome.state == FINISHED for outcome in outcomes):
                await _commit(caller, common)
                done = True
    finally:
        execution.hand_on_events(committed=done)
    if done:
        return outcomes
    return [OperationOutcome(ROLLED_BACK) if each.state == FINISHED else each for each in outcomes]


async def _commit(caller: Caller, common: CommonTransaction) -> None:
    await caller.check()
    await common.commit()


class _Execution:
    def __init__(self, request: Request, context: RepositoryContext, batch: BatchPlan) -> None:
        self.application: ASGIApp = request.scope[witness.WITNESS].app
        self._request = request
        self._context = context
        self._batch = batch
        self._events: list[Event] = []

    async def run(self, application: ASGIApp) -> list[OperationOutcome]:
        """Refuse an operation if the batch's time is over before it, or the answers are too large by then."""
        options, outcomes, size = self._context.options, list[OperationOutcome](), 0
        until = time.monotonic() + options.batch_seconds
        for operation in self._batch.operations:
            if self._batch.stops and any(outcome.state != FINISHED for outcome in outcomes):
                outcomes.append(OperationOutcome(PENDING))
            elif time.monotonic() > until:
                outcomes.append(self._refused(503, "E_OVERLOADED", _LATE))
            elif size > options.max_batch_bytes:
                outcomes.append(self._refused(413, "E_TOO_LARGE", _FULL))
            else:
                outcomes.append(await self._answer(application, operation))
                size += len(outcomes[-1].entity.encode())
        return outcomes

    def hand_on_events(self, *, committed: bool) -> None:
        """Without a commit, ``done`` becomes ``refused``."""
        for event in self._events:
            if not committed and event.result == "done":
                event.result = "refused"
        self._request.scope.setdefault("muniment.events", []).extend(self._events)

    async def _answer(self, application: ASGIApp, operation: BatchOperation) -> OperationOutcome:
        media_type, body = operation.body()
        scope = self._scope(operation, media_type, len(body))
        sent: list[Message] = []
        bodies = [body]

        async def receive() -> Message:
            return {"type": "http.request", "body": bodies.pop()} if bodies else await self._request.receive()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["muniment.status"] = message["status"]
            sent.append(message)

        with structlog.contextvars.bound_contextvars(request_id=scope["muniment.request_id"]):
            try:
                await application(scope, receive, send)
            except Exception:
                log.exception("bug", method=operation.method)
                return self._refused(500, "E_INTERNAL_ERROR", "Something went wrong in the server.")
        status = sent[0]["status"]
        if application is self.application:
            self._keep_events(scope, status)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent[0].get("headers", ())]
        return OperationOutcome(
            FINISHED if status < 400 else FAILED,
            status,
            [
                *((name, value) for name, value in headers if name.lower() in _SHOWN_HEADERS),
                ("x-request-id", scope["muniment.request_id"]),
            ],
            b"".join(message.get("body", b"") for message in sent[1:]).decode("utf-8", "replace"),
        )

    def _scope(self, operation: BatchOperation, media_type: str, size: int) -> Scope:
        outer = self._request.scope
        inherited = [pair for pair in outer["headers"] if batch_bodies.is_inherited(pair[0])]
        own = {**dict(operation.headers), **({"content-type": media_type} if media_type else {})}
        if size:
            own["content-length"] = str(size)
        copied = ("type", "asgi", "http_version", "scheme", "client", "server", "muniment.base", "muniment.credentials")
        return {
            **{key: outer[key] for key in copied if key in outer},
            "method": operation.method,
            "path": operation.path,
            "raw_path": operation.raw_path.encode("ascii"),
            "query_string": operation.query.encode("ascii"),
            "root_path": "",
            "headers": [*inherited, *((name.encode(), value.encode("latin-1")) for name, value in own.items())],
            "muniment.request_id": new_request_id(),
        }

    def _keep_events(self, scope: Scope, status: int) -> None:
        for event in scope.get("muniment.events", ()):
            event.result = event.result or witness.result(status, is_refused="muniment.refused" in scope)
            event.request_id = scope["muniment.request_id"]
            self._events.append(event)

    def _refused(self, status: int, code: str, sentence: str) -> OperationOutcome:
        response = spelling.error_shape(self._context.names)(self._request, ErrorCode(status, code), sentence)
        kind = response.headers["content-type"]
        return OperationOutcome(FAILED, status, [("content-type", kind)], bytes(response.body).decode())


def _document(batch: BatchPlan, outcomes: Sequence[OperationOutcome]) -> dict[str, Written]:
    operations: list[Written] = []
    for operation, outcome in zip(batch.operations, outcomes, strict=True):
        document: dict[str, Written] = {
            "id": operation.id,
            "description": operation.description,
            "state": outcome.state,
        }
        if batch.return_request:
            document["request"] = {
                "uri": operation.uri,
                "method": operation.method,
                "headers": _headers(operation.headers),
                "entity": operation.entity,
            }
        if outcome.status:
            document["response"] = {
                "status": outcome.status,
                "headers": _headers(outcome.headers),
                "entity": outcome.entity,
            }
        operations.append(document)
    return {
        "transactional": batch.transactional,
        "sequential": batch.sequential,
        "on-error": batch.on_error,
        "return-request": batch.return_request,
        "operations": operations,
    }


def _headers(pairs: Sequence[tuple[str, str]]) -> list[Written]:
    return [{"name": name, "value": value} for name, value in pairs]
