"""Why an object is a hit of a search, or why it is none (docs/interface.md, ours 6)."""

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.repository import bare_names
from muniment.repository.api.context import Caller, RepositoryContext, enter_for_thing
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.endpoints.search import search, search_requests
from muniment.repository.api.endpoints.search.search_requests import AskedSearch
from muniment.repository.api.shapes import representations
from muniment.repository.api.wire import parameters, positions, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.search.agent import indexing
from muniment.repository.search.answering.explaining import explanation
from muniment.repository.search.answering.explaining.condition_parts import ConditionPart
from muniment.repository.search.answering.explaining.explanation import Explanation
from muniment.repository.search.answering.inquiry import Inquiry

_TYPE = "r_object_type"


async def by_keywords(request: Request, context: RepositoryContext) -> Response:
    """Explain why an object is a hit of a search, or why it is none."""
    caller, media_type = await enter_for_thing(request, context)
    return await _answer(request, context, caller, await search_requests.read_keywords(request, context), media_type)


@events.tells()
async def by_document(request: Request, context: RepositoryContext) -> Response:
    """Explain what an object is to a query document."""
    caller, media_type = await enter_for_thing(request, context)
    return await _answer(request, context, caller, await search_requests.read_document(request, context), media_type)


async def _answer(
    request: Request, context: RepositoryContext, caller: Caller, search_request: AskedSearch, media_type: str
) -> Response:
    query, names = parameters.read(request), context.names
    object_id = query.get("object", "").strip()
    user_id = bare_names.full_name(query.get("for", "").strip(), context.options)
    if not object_id:
        raise Malformed("Name the object to explain in the parameter 'object'.")
    here = caller.here
    await search.wait_for_position(context, caller, search_request.wait_for)

    def explain(inquiry: Inquiry) -> tuple[bytes, str]:
        answer = explanation.explain(
            inquiry,
            object_id,
            lambda: search.question_of(inquiry, search_request),
            user=partial(people.principals_of, inquiry.cx, context, caller.repository, user_id) if user_id else None,
            reason_not_indexed=indexing.reason,
        )
        document = document_of(answer, names, here)
        written = spelling.document_answer(media_type, "explanation", document, names)
        return written, caller.spell(inquiry.principals, answer.position)

    body, position = await caller.search(explain)
    return Response(body, headers={"Content-Type": media_type, positions.HEADER: position, **spelling.PRIVATE})


def document_of(answer: Explanation, names: RepositoryNames, here: str = "") -> dict[str, Written]:
    """``here`` is the repository's address; without it there are no links."""
    document: dict[str, Written] = {
        "object-id": answer.stored.id,
        "user": answer.user,
        "hit": answer.hit,
    }
    if answer.score is not None:
        document["score"] = answer.score
    document["matches"] = msgspec.to_builtins(answer.matches)
    document["reasons"] = msgspec.to_builtins(answer.reasons)
    document["types"] = {
        "outcome": answer.of_type,
        "object-type": spelling.write_type(answer.type_name, names),
        "types": [spelling.write_type(name, names) for name in answer.types],
    }
    if answer.condition is not None:
        document["condition"] = msgspec.to_builtins(_on_the_wire(answer.condition, names))
    if answer.in_location is not None:
        document["locations"] = {"outcome": answer.in_location}
    if answer.in_facets is not None:
        document["facets"] = {"outcome": answer.in_facets}
    right, index, text = answer.right, answer.index, answer.text
    document["right"] = {
        "outcome": right.outcome,
        "basic-permission": right.permission.name.capitalize(),
        "acl-name": right.acl_name,
        "owner": right.owns,
        "administrator": right.administrator,
        "permitted": representations.acl_entry_documents(right.entries, names),
    }
    document["index"] = {"outcome": index.outcome, "missed": list(index.missed), "reason": index.reason}
    if text is not None:
        document["text"] = {"state": text.state, "reason": text.reason}
    if here:
        document["links"] = [{"rel": "edit", "href": f"{here}/objects/{answer.stored.id}"}]
    return document


def _on_the_wire(part: ConditionPart, names: RepositoryNames) -> ConditionPart:
    is_type = part.name == _TYPE
    return msgspec.structs.replace(
        part,
        name=spelling.write_property(part.name, names) if part.name else "",
        values=tuple(spelling.write_type(value, names) for value in part.values) if is_type else part.values,
        parts=tuple(_on_the_wire(inner, names) for inner in part.parts),
    )
