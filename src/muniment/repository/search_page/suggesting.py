"""Suggestions while somebody types into the box: those of ``search/suggestions``, for the person who is signed in."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.endpoints.search import suggestions
from muniment.repository.endpoints.spelling import Written
from muniment.repository.search.inquiry import Inquiry
from muniment.repository.search.suggestions import suggest
from muniment.repository.search_page import questions, sessions
from muniment.web import bodies

_MOST = 8


async def show(request: Request, context: RepositoryContext) -> Response:
    """Complete what somebody is typing."""
    asked = questions.read(bodies.pairs(request.scope["query_string"], "The address"))
    session = await sessions.read(request, context)
    caller = await sessions.enter(request, context, session, asked.repository)

    def answer(inquiry: Inquiry) -> dict[str, Written]:
        return suggestions.document_of(suggest(inquiry.changed(typed=True), asked.words or "", _MOST))

    document = await caller.search(answer)
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(document), headers=headers)
