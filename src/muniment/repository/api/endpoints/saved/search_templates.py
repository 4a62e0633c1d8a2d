"""Search templates, executed with the values that a caller gives (docs/interface.md, ours 13)."""

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import RepositoryContext, enter
from muniment.repository.api.endpoints.saved import saved_bodies, saved_searches
from muniment.repository.api.endpoints.search import search, search_requests
from muniment.repository.api.endpoints.search.search_requests import NamedQuery, QuerySource
from muniment.repository.search.answering.kept import saved_documents, search_templates
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.saved import saved_searches as kept


@events.tells()
async def execute(request: Request, context: RepositoryContext) -> Response:
    """Execute a search template with values for its variables, and with the caller's own rights."""
    caller = await enter(request, context)
    template_id, limits = saved_searches.identifier(request, "template"), QueryLimits.of(context.options)
    search_requests.feed_type(request, context.options)
    values = await saved_bodies.values(request, context)

    def find(cx: Connection, principals: Principals) -> NamedQuery:
        template = kept.find(cx, caller.repository.id, "template", template_id, principals)
        root = saved_documents.elements(template.document, limits)
        query = search_templates.fill(root, saved_documents.names_of(template.document), limits, values)
        return NamedQuery(query, template.name, template.modified)

    return await search.execute(request, context, caller, QuerySource(find))
