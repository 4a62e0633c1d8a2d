"""Suggestions of ``search/suggestions`` while somebody who is signed in types."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.endpoints.search import suggestions
from muniment.repository.api.wire.spelling import Written
from muniment.repository.page.asking import sessions
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.related.suggestions import suggest

_MOST = 8


async def show(request: Request, context: RepositoryContext) -> Response:
    """Complete what somebody is typing."""
    asked, _, caller = await sessions.begin(request, context)

    def answer(inquiry: Inquiry) -> dict[str, Written]:
        return suggestions.document_of(suggest(inquiry.changed(typed=True), asked.words or "", _MOST))

    document = await caller.search(answer)
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(document), headers=headers)
